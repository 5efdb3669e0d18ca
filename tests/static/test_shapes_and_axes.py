"""Shapes that variables accept, axes of batch normalisation, and shapes of functions of strings."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import twofold.static as tf


def test_a_variable_takes_a_shape_that_fits() -> None:
    variable = tf.Variable(numpy.zeros((2, 3), numpy.float32))
    for shape in ([2, 3], [None, 3], None):
        variable.set_shape(shape)
    assert variable.shape.as_list() == [2, 3]
    for shape in ([3, 3], [2], [2, 3, 1]):
        with pytest.raises(ValueError):
            variable.set_shape(shape)


@pytest.mark.parametrize("axis", [[1, 1], [1, -3], [], 7, -5, (0, 4)])
def test_batch_normalisation_keeps_axes_of_its_input(axis: Any) -> None:
    x = tf.placeholder(tf.float32, [2, 3, 4, 5])
    with pytest.raises((ValueError, IndexError, RuntimeError)):
        tf.layers.batch_normalization(x, axis=axis)


@pytest.mark.parametrize("axis", [1, -3, [1], (-1,), 2, 3, [1, 2], (-1, 1), [0, 1, 2]])
@pytest.mark.parametrize("renorm", [False, True])
def test_batch_normalisation_over_the_others(axis: Any, renorm: bool) -> None:
    tf.reset_default_graph()
    values = numpy.random.default_rng(0).normal(size=(6, 3, 4, 5)).astype(numpy.float32)
    options = {"axis": axis, "momentum": 0.25, "renorm": renorm}
    made = tf.layers.batch_normalization(tf.constant(values), training=True, name="norm", **options)
    later = tf.layers.batch_normalization(tf.constant(values), name="norm", reuse=True, **options)
    kept = [one % 4 for one in numpy.ravel(axis).tolist()]
    others = tuple(k for k in range(4) if k not in kept)
    mean, variance = values.mean(others, keepdims=True), values.var(others, keepdims=True)
    shape = [values.shape[k] for k in kept] if len(kept) == 1 else list(mean.shape)
    assert {tuple(one.shape.as_list()) for one in tf.global_variables()} == {tuple(shape)}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = session.run(made)
        session.run(tf.get_collection(tf.GraphKeys.UPDATE_OPS))
        inferred = session.run(later)
    if renorm:
        return numpy.testing.assert_allclose(found, (values - 0) / numpy.sqrt(1 + 1e-3), rtol=2e-3, atol=2e-5)
    numpy.testing.assert_allclose(found, (values - mean) / numpy.sqrt(variance + 1e-3), atol=2e-5)
    count = numpy.prod([values.shape[k] for k in others])
    moved = 0.25 + 0.75 * variance * (count / (count - 1) if kept in ([1], [3]) else 1)
    numpy.testing.assert_allclose(
        inferred, (values - 0.75 * mean) / numpy.sqrt(moved + 1e-3), rtol=1e-5, atol=2e-5
    )


@pytest.mark.parametrize("axis", [2, [1, 3], 0])
def test_fused_batch_normalisation_keeps_the_channels(axis: Any) -> None:
    with pytest.raises(ValueError, match="fused=True with axis"):
        tf.layers.batch_normalization(tf.zeros([2, 3, 4, 5]), axis=axis, fused=True)


@pytest.mark.parametrize(
    ("one", "other", "wanted"),
    [
        ([None], [3], [3]),
        ([None], [1], [None]),
        ([1], [None], [None]),
        ([3], [None], [3]),
        ([2, 1], [3], [2, 3]),
        ([None, 2], [2], [None, 2]),
        ([None], [None], [None]),
    ],
)
def test_the_shape_of_joined_strings(one: list[Any], other: list[Any], wanted: list[Any]) -> None:
    made = tf.string_join([tf.placeholder(tf.string, one), tf.placeholder(tf.string, other)])
    assert made.shape.as_list() == wanted


def test_numbers_of_a_range_are_of_the_widest_dtype_given():
    with tf.Graph().as_default():
        wide, real = tf.constant(3, tf.int64), tf.constant(5.5, tf.float64)
        kinds = [
            tf.range(5),
            tf.range(wide, 5),
            tf.range(1, 5, wide),
            tf.range(wide, 5.0),
            tf.range(wide, real),
        ]
        assert [one.dtype for one in kinds] == [tf.int32, tf.int64, tf.int64, tf.float32, tf.float64]


def test_results_of_operators_and_gradients_take_sizes() -> None:
    x = tf.placeholder(tf.float32, [None, 4])
    doubled, slope = x * 2, tf.gradients(x * x, x)[0]
    for tensor in (x + x, -x, x @ tf.ones([4, 4]), doubled, slope):
        tensor.set_shape([3, None])
        assert tensor.shape.as_list() == [3, 4]
    flat = tf.reshape(doubled, [1, -1])
    assert flat.shape.as_list() == [1, 12]
    with tf.Session() as session:
        made, found = session.run([flat, slope + 0.0], {x: numpy.ones((3, 4))})
    assert made.tolist() == [[2.0] * 12] and found.tolist() == [[2.0] * 4] * 3


def test_static_shapes_of_unknown_rank_broadcast_to_one() -> None:
    assert tf.broadcast_static_shape(tf.TensorShape([2]), tf.TensorShape(None)).ndims is None


def test_parts_of_a_shape_of_unknown_rank_are_unknown() -> None:
    shape = tf.TensorShape(None)
    assert shape[1:].ndims is None and shape[:-1].ndims is None and shape[0].value is None
    assert shape[1:3].as_list() == [None, None]


def test_inputs_of_unknown_ranks_may_have_different_ones() -> None:
    logits, labels = tf.placeholder(tf.float32), tf.placeholder(tf.int32)
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    count = tf.placeholder(tf.int32)
    ones = tf.ones([count, 2])
    assert loss.shape.ndims is None
    with tf.Session() as session:
        assert session.run(loss, {logits: numpy.zeros((3, 4)), labels: [0, 1, 2]}) == pytest.approx(
            numpy.log([4.0] * 3)
        )
        assert session.run(ones, {count: 3}).shape == (3, 2)
        with pytest.raises(ValueError, match="a list of 2 numbers where one is taken"):
            session.run(ones, {count: [3, 1]})
