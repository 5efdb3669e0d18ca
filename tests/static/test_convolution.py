"""Convolutions under TensorFlow's names against the definitions in its documentation."""

import numpy
import pytest

import twofold as torch
import twofold.static as tf

G = numpy.random.default_rng(0)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def draw(*shape):
    return G.standard_normal(shape).astype(numpy.float32)


def evaluated(*tensors):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(list(tensors))


def by_definition(x, w, strides, same, rate=(1, 1)):
    """``y[n, i, j, o] = sum over d, e, c of x[n, i * s + d * r, j * s + e * r, c] * w[d, e, c, o]``, padded."""
    spans = [(k - 1) * r + 1 for k, r in zip(w.shape, rate)]
    counts = [
        -(-n // s) if same else (n - k) // s + 1 for n, k, s in zip(x.shape[1:3], spans, strides, strict=True)
    ]
    totals = [max((m - 1) * s + k - n, 0) for m, s, k, n in zip(counts, strides, spans, x.shape[1:3])]
    padded = numpy.pad(x, [(0, 0), *((t // 2, t - t // 2) for t in totals), (0, 0)]) if same else x
    y = numpy.zeros((x.shape[0], *counts, w.shape[3]))
    for i, j in numpy.ndindex(*counts):
        at = i * strides[0], j * strides[1]
        seen = padded[:, at[0] : at[0] + spans[0] : rate[0], at[1] : at[1] + spans[1] : rate[1]]
        y[:, i, j] = numpy.einsum("ndec,deco->no", seen, w)
    return y


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("strides", [(1, 1), (2, 2), (3, 2)])
def test_conv2d(same, strides):
    x, w = draw(2, 7, 8, 3), draw(3, 2, 3, 5)
    padding = "SAME" if same else "VALID"
    last = tf.nn.conv2d(x, w, [1, *strides, 1], padding)
    first = tf.nn.conv2d(x.transpose(0, 3, 1, 2), w, [1, 1, *strides], padding, data_format="NCHW")
    wide = tf.nn.conv2d(x, w, 1, padding, dilations=[1, 2, 1, 1])
    wanted = by_definition(x, w, strides, same)
    assert last.shape.as_list() == list(wanted.shape)
    found = evaluated(last, first, wide)
    numpy.testing.assert_allclose(found[0], wanted, rtol=1e-4, atol=1e-5)
    numpy.testing.assert_array_equal(found[1].transpose(0, 2, 3, 1), found[0])
    numpy.testing.assert_allclose(found[2], by_definition(x, w, (1, 1), same, (2, 1)), rtol=1e-4, atol=1e-5)


def test_depthwise_and_separable():
    x, w, mix = draw(2, 6, 7, 3), draw(3, 3, 3, 2), draw(1, 1, 6, 4)
    apart = tf.nn.depthwise_conv2d(x, w, [1, 2, 2, 1], "SAME")
    both = tf.nn.separable_conv2d(x, w, mix, [1, 2, 2, 1], "SAME")
    found, mixed = evaluated(apart, both)
    for c in range(3):
        wanted = by_definition(x[..., c : c + 1], w[:, :, c : c + 1], (2, 2), True)
        numpy.testing.assert_allclose(found[..., 2 * c : 2 * c + 2], wanted, rtol=1e-4, atol=1e-5)
    numpy.testing.assert_allclose(
        mixed, numpy.einsum("nhwi,io->nhwo", found, mix[0, 0]), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_transposed_is_the_gradient(padding):
    x, w = tf.constant(draw(2, 7, 8, 3)), tf.constant(draw(3, 3, 3, 5))
    y = tf.nn.conv2d(x, w, [1, 2, 2, 1], padding)
    share = tf.constant(draw(*y.shape.as_list()))
    (gradient,) = tf.gradients(y, [x], [share])
    back = tf.nn.conv2d_transpose(share, w, [2, 7, 8, 3], [1, 2, 2, 1], padding)
    same = tf.nn.conv2d_backprop_input([2, 7, 8, 3], w, share, [1, 2, 2, 1], padding)
    found = evaluated(gradient, back, same)
    numpy.testing.assert_array_equal(found[0], found[1])
    numpy.testing.assert_array_equal(found[0], found[2])


def test_one_and_three_axes():
    x, w = draw(2, 9, 3), draw(4, 3, 5)
    cube, kernel = draw(1, 3, 4, 5, 2), draw(2, 2, 2, 2, 3)
    found = evaluated(tf.nn.conv1d(x, w, 2, "SAME"), tf.nn.conv3d(cube, kernel, [1, 1, 1, 1, 1], "VALID"))
    numpy.testing.assert_allclose(
        found[0], by_definition(x[:, None], w[None], (1, 2), True)[:, 0], rtol=1e-4, atol=1e-5
    )
    wanted = torch.conv3d(
        torch.tensor(cube.transpose(0, 4, 1, 2, 3)), torch.tensor(kernel.transpose(4, 3, 0, 1, 2))
    )
    numpy.testing.assert_array_equal(found[1].transpose(0, 4, 1, 2, 3), wanted.numpy())


def test_both_ways_give_the_same_bits():
    x, w = draw(2, 3, 9, 9), draw(4, 3, 3, 3)
    eager = torch.conv2d(torch.tensor(x), torch.tensor(w), stride=2, padding=1).numpy()
    (declared,) = evaluated(
        tf.nn.conv2d(x, w.transpose(2, 3, 1, 0), [1, 1, 2, 2], "SAME", data_format="NCHW")
    )
    numpy.testing.assert_array_equal(eager, declared)


def test_layers_make_their_variables():
    x = tf.placeholder(tf.float32, [None, 8, 8, 3])
    y = tf.layers.conv2d(x, 4, 3, padding="same", activation=tf.nn.relu)
    z = tf.layers.conv2d(y, 6, (3, 2), strides=2, name="second", use_bias=False)
    up = tf.layers.conv2d_transpose(z, 5, 4, strides=(2, 2), padding="same")
    apart = tf.layers.separable_conv2d(x, 7, 3, depth_multiplier=2)
    line = tf.layers.conv1d(tf.zeros([2, 9, 3]), 4, 3)
    assert {v.name: v.shape.as_list() for v in tf.trainable_variables()} == {
        "conv2d/kernel:0": [3, 3, 3, 4],
        "conv2d/bias:0": [4],
        "second/kernel:0": [3, 2, 4, 6],
        "conv2d_transpose/kernel:0": [4, 4, 5, 6],
        "conv2d_transpose/bias:0": [5],
        "separable_conv2d/depthwise_kernel:0": [3, 3, 3, 2],
        "separable_conv2d/pointwise_kernel:0": [1, 1, 6, 7],
        "separable_conv2d/bias:0": [7],
        "conv1d/kernel:0": [3, 3, 4],
        "conv1d/bias:0": [4],
    }
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = session.run([y, z, up, apart, line], {x: draw(5, 8, 8, 3)})
    assert [value.shape for value in found] == [
        (5, 8, 8, 4), (5, 3, 4, 6), (5, 6, 8, 5), (5, 6, 6, 7), (2, 7, 4)
    ]  # fmt: skip


def test_a_wrong_shape_of_the_result_is_an_error():
    with pytest.raises(ValueError, match=r"output_shape \[2, 9, 9, 3\] for filters of \(3, 3, 3, 5\)"):
        tf.nn.conv2d_transpose(draw(2, 4, 4, 5), draw(3, 3, 3, 5), [2, 9, 9, 3], [1, 2, 2, 1])


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_padding_by_numbers(data_format):
    x, w = draw(2, 5, 6, 3), draw(3, 2, 3, 4)
    padded = numpy.pad(x, [[0, 0], [1, 2], [0, 1], [0, 0]])
    expected = by_definition(padded, w, (1, 1), False)
    pairs = [[0, 0], [1, 2], [0, 1], [0, 0]]
    if data_format == "NCHW":
        x, pairs, expected = (
            x.transpose(0, 3, 1, 2),
            [[0, 0], [0, 0], *pairs[1:3]],
            expected.transpose(0, 3, 1, 2),
        )
    (found,) = evaluated(tf.nn.conv2d(x, w, [1, 1, 1, 1], pairs, data_format=data_format))
    numpy.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="padding"):
        tf.nn.conv2d(x, w, [1, 1, 1, 1], [[1, 0], [0, 0], [0, 0], [0, 0]], data_format=data_format)


def test_gradients_by_channel_take_filters_of_unknown_sizes():
    x, w, share = draw(2, 7, 8, 3), draw(3, 2, 3, 2), draw(2, 4, 4, 6)
    images, filters, shares = (tf.placeholder(tf.float32, [None] * 4) for _ in range(3))
    y = tf.nn.depthwise_conv2d(images, filters, [1, 2, 2, 1], "SAME")
    found = tf.nn.depthwise_conv2d_backprop_input(tf.shape(images), filters, shares, [1, 2, 2, 1], "SAME")
    with tf.Session() as session:
        for size in (3, 2):
            made, gradient = session.run([y, found], {images: x, filters: w[:size], shares: share})
            # the gradient of what is linear is its adjoint
            numpy.testing.assert_allclose(numpy.vdot(made, share), numpy.vdot(x, gradient), rtol=1e-4)
