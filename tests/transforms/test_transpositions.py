"""Transpositions of images sink behind elementwise operations, meet the next convolution's, and cancel."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import twofold.static as tf
from twofold.dtypes import float32
from twofold.ir.bind import input_node
from twofold.ir.graph import Graph
from twofold.ir.op import ViewForm
from twofold.ir.types import tensor_type
from twofold.ir.verify import verify
from twofold.ir.views import view_form
from twofold.ops.base import apply, ops
from twofold.transforms.transpositions import sink_transpositions

LAST, FIRST = (0, 2, 3, 1), (0, 3, 1, 2)
IMAGES = (2, 6, 6, 8)


def convolved(x: Any, w: Any) -> Any:
    """A convolution of images with the channels last."""
    first = ops.reshape(ops.permute(x, FIRST), (2, 8, 1, 6, 6))
    made = apply("convolution", first, w, attrs=((1, 1, 1), (0, 1, 1), (1, 1, 1), 1, (1, 6, 6)))
    return ops.permute(ops.reshape(made, (2, 8, 6, 6)), LAST)


def transposed_images(function: Any) -> list[tuple[int, ...]]:
    """The orders of the transpositions that are left."""
    shapes = [IMAGES, (8, 8, 1, 3, 3), (8,)]
    types = [tensor_type(float32, shape) for shape in shapes]
    graph = Graph(types, [function(*(input_node(k, type) for k, type in enumerate(types)))])
    after = sink_transpositions(graph)
    verify(after)
    assert after.outputs[0].type == graph.outputs[0].type
    return [node.attrs[0] for node in after.nodes() if view_form(node) is ViewForm.PERMUTE and node.ndim == 4]


def moved_row(row: Any) -> Any:
    return ops.broadcast_to(row, IMAGES)


def test_between_two_convolutions_none_is_left() -> None:
    def network(x: Any, w: Any, row: Any) -> Any:
        middle = ops.relu(convolved(x, w) + moved_row(row))
        return convolved(middle * 2.0 + middle, w)

    # of the image that is given, of the row and the number that are repeated, and of the result
    assert sorted(transposed_images(network)) == [LAST, FIRST, FIRST, FIRST]


def test_concatenations_of_images_stop_none() -> None:
    def network(x: Any, w: Any, row: Any) -> Any:
        one, other = ops.relu(convolved(x, w)), convolved(x, w)
        return ops.relu(apply("concatenate", one, other, attrs=(3,)))

    assert sorted(transposed_images(network)) == [LAST, FIRST]


def test_whole_operands_in_another_order_stop_them() -> None:
    found = transposed_images(lambda x, w, row: convolved(ops.relu(convolved(x, w) + x), w))
    assert found.count(FIRST) == 2 and found.count(LAST) == 2


def test_products_of_matrices_are_left_alone() -> None:
    def attention(x: Any, w: Any, row: Any) -> Any:
        heads = ops.permute(ops.matmul(x, ops.permute(x, (0, 1, 3, 2))), LAST)
        return ops.relu(heads)

    assert transposed_images(attention).count(LAST) == 1


@pytest.mark.parametrize("shape", [(3, 7, 5, 4), (1, 1, 1, 4), (2, 16, 16, 4)], ids=str)
def test_a_network_and_its_gradients_are_those_of_channels_first(shape: tuple[int, ...]) -> None:
    generator = numpy.random.default_rng(0)
    image = generator.normal(size=shape).astype(numpy.float32)
    kernels = [generator.normal(size=(3, 3, 4, 4)).astype(numpy.float32) for _ in range(3)]
    biases = [generator.normal(size=4).astype(numpy.float32) for _ in range(3)]

    def trained(channels: str) -> list[Any]:
        last = channels == "NHWC"
        with tf.Graph().as_default(), tf.Session() as session:
            made = tf.constant(image if last else image.transpose(FIRST))
            weights = [tf.Variable(one) for one in (*kernels, *biases)]
            x = made
            for kernel, bias in zip(weights[:3], weights[3:]):
                one = tf.nn.conv2d(x, kernel, [1, 1, 1, 1], "SAME", data_format=channels)
                x = tf.nn.relu(tf.nn.bias_add(one, bias, data_format=channels)) + 0.5 * x
            loss = tf.reduce_mean(tf.square(x)) + tf.reduce_sum(tf.reduce_max(x, [1, 2] if last else [2, 3]))
            session.run(tf.global_variables_initializer())
            found = session.run([loss, *tf.gradients(loss, weights), x])
            return [*found[:-1], found[-1] if last else found[-1].transpose(LAST)]

    for one, other in zip(trained("NHWC"), trained("NCHW"), strict=True):
        numpy.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-4)
