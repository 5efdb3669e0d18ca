"""Pooling, local normalisation and images in other sizes under TensorFlow's names."""

import numpy
import pytest

import twofold.static as tf

G = numpy.random.default_rng(9)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def run(tensor, feed=None):
    with tf.Session() as session:
        return session.run(tensor, feed)


def pooled(x, kernel, stride, same, take):
    """Windows over NHWC by hand, cut at the ends."""
    sizes = x.shape[1:3]
    counts = [-(-n // stride) if same else (n - kernel) // stride + 1 for n in sizes]
    lows = [max((c - 1) * stride + kernel - n, 0) // 2 if same else 0 for c, n in zip(counts, sizes)]
    result = numpy.empty((x.shape[0], *counts, x.shape[3]))
    for i, j in numpy.ndindex(*counts):
        cut = [slice(max(o * stride - low, 0), o * stride - low + kernel) for o, low in zip((i, j), lows)]
        result[:, i, j] = take(x[:, cut[0], cut[1]], axis=(1, 2))
    return result


@pytest.mark.parametrize("kernel, stride", [(2, 2), (3, 2), (3, 1)])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_windows_of_images(kernel, stride, padding):
    x = G.normal(size=(2, 7, 6, 3)).astype(numpy.float32)
    given = tf.placeholder(tf.float32, [None, 7, 6, 3])
    sizes = ([1, kernel, kernel, 1], [1, stride, stride, 1])
    largest, mean = tf.nn.max_pool(given, *sizes, padding), tf.nn.avg_pool(given, *sizes, padding=padding)
    same = padding == "SAME"
    expected = pooled(x, kernel, stride, same, numpy.max)
    numpy.testing.assert_array_equal(run(largest, {given: x}), expected)
    numpy.testing.assert_allclose(
        run(mean, {given: x}), pooled(x, kernel, stride, same, numpy.mean), rtol=1e-5, atol=1e-6
    )
    layer = tf.layers.max_pooling2d(given, kernel, stride, padding.lower())
    numpy.testing.assert_array_equal(run(layer, {given: x}), expected)
    assert largest.get_shape().as_list() == [None, *expected.shape[1:]]


def test_channels_first_and_gradients():
    x = G.normal(size=(2, 3, 6, 8)).astype(numpy.float32)
    last = tf.constant(x.transpose(0, 2, 3, 1))
    first = tf.nn.max_pool(tf.constant(x), [1, 1, 2, 2], [1, 1, 2, 2], "VALID", data_format="NCHW")
    again = tf.nn.max_pool(last, 2, 2, "VALID")
    numpy.testing.assert_array_equal(run(first), run(again).transpose(0, 3, 1, 2))
    (share,) = tf.gradients(tf.reduce_sum(again), last)
    assert run(share).sum() == 2 * 3 * 3 * 4


def test_one_and_three_axes():
    signal = tf.constant(numpy.arange(6, dtype=numpy.float32).reshape(1, 6, 1))
    assert run(tf.layers.average_pooling1d(signal, 2, 2)).ravel().tolist() == [0.5, 2.5, 4.5]
    volume = tf.ones([1, 4, 4, 4, 2])
    assert run(tf.layers.max_pooling3d(volume, 2, 2)).shape == (1, 2, 2, 2, 2)
    assert run(tf.nn.avg_pool3d(volume, [1, 2, 2, 2, 1], [1, 2, 2, 2, 1], "SAME")).max() == 1


def test_local_response_normalization():
    x = G.normal(size=(1, 2, 2, 7)).astype(numpy.float32)
    sums = [(x[..., max(c - 2, 0) : c + 3] ** 2).sum(-1) for c in range(7)]
    expected = x / numpy.sqrt(1 + 0.5 * numpy.stack(sums, -1))
    numpy.testing.assert_allclose(run(tf.nn.lrn(tf.constant(x), 2, alpha=0.5)), expected, rtol=1e-5)


def test_images_in_other_sizes():
    ramp = tf.constant(numpy.arange(4, dtype=numpy.float32).reshape(1, 1, 4, 1))
    wide = tf.image.resize_bilinear(ramp, [1, 8])
    assert run(wide).ravel().tolist() == [0, 0.5, 1, 1.5, 2, 2.5, 3, 3]
    corners = tf.image.resize_images(ramp, [1, 7], align_corners=True)
    numpy.testing.assert_allclose(run(corners).ravel(), numpy.arange(7) / 2, rtol=1e-6)
    near = tf.image.resize_nearest_neighbor(ramp, [2, 2])
    assert run(near)[0, :, :, 0].tolist() == [[0, 2], [0, 2]]


def test_what_cannot_be():
    x = tf.ones([1, 4, 4, 1])
    with pytest.raises(ValueError, match="padding 'FULL'"):
        tf.nn.max_pool(x, 2, 2, "FULL")
    with pytest.raises(ValueError, match="over batch or channels"):
        tf.nn.avg_pool(x, [1, 2, 2, 2], [1, 1, 1, 1], "SAME")
    with pytest.raises(ValueError, match="windows over 9 positions do not fit size 4"):
        tf.nn.max_pool(x, 9, 1, "VALID")


def test_dilated_windows_and_their_gradients():
    x = G.normal(size=(2, 7, 9, 3)).astype(numpy.float32)
    windows = numpy.lib.stride_tricks.sliding_window_view(x, (3, 3), (1, 2))[
        ..., ::2, :
    ]  # 2 by 3, 2 rows apart
    last = tf.constant(x)
    first = tf.transpose(last, [0, 3, 1, 2])
    for kind, take in (("MAX", numpy.max), ("AVG", numpy.mean)):
        made = tf.nn.pool(last, [2, 3], kind, "VALID", dilation_rate=[2, 1])
        other = tf.nn.pool(first, [2, 3], kind, "VALID", dilations=[2, 1], data_format="NCHW")
        expected = take(windows, axis=(-2, -1))
        assert made.shape.as_list() == list(expected.shape)
        numpy.testing.assert_allclose(run(made), expected, rtol=1e-5, atol=1e-6)
        numpy.testing.assert_allclose(run(other), expected.transpose(0, 3, 1, 2), rtol=1e-5, atol=1e-6)
        (share,) = tf.gradients(made, last)
        shares = numpy.zeros_like(x)
        for n, i, j, c in numpy.ndindex(*expected.shape):
            window = x[n, i : i + 3 : 2, j : j + 3, c]
            part = window == window.max() if kind == "MAX" else numpy.full((2, 3), 1 / 6)
            shares[n, i : i + 3 : 2, j : j + 3, c] += part
        numpy.testing.assert_allclose(run(share), shares, rtol=1e-5, atol=1e-6)
    line = tf.nn.pool(last[:, 0], [2], "MAX", "VALID", dilation_rate=[3])
    numpy.testing.assert_array_equal(run(line), numpy.maximum(x[:, 0, :-3], x[:, 0, 3:]))


def test_dilated_windows_that_tensorflow_has_not_raise():
    x = tf.zeros([1, 6, 6, 1])
    with pytest.raises(ValueError, match="dilation_rate"):
        tf.nn.pool(x, [2, 2], "MAX", "SAME", [1, 2])
    with pytest.raises(ValueError, match="dilation_rate"):
        tf.nn.pool(x, [2, 2], "MAX", "VALID", [1, 2], [2, 2])
    with pytest.raises(ValueError, match="do not fit"):
        tf.nn.pool(x, [3, 3], "AVG", "VALID", [4, 1])
    with pytest.raises(ValueError, match="dilation_rate"):
        tf.nn.pool(x, [2, 2], "MAX", "VALID", [0, 1])
