"""``tf.image.ssim`` and ``ssim_multiscale``: what TensorFlow 2.21 returns, and the formula window by window."""

import numpy
import pytest

import twofold.static as tf

A = (numpy.arange(2 * 14 * 15 * 2).reshape(2, 14, 15, 2) * 37 % 101 / 101).astype("f")
B = numpy.clip(A * 0.9 + (numpy.arange(15) / 100)[:, None].astype("f"), 0, 1)


def run(value):
    with tf.Graph().as_default(), tf.Session() as session:
        return session.run(value())


def reference(one, two, size, sigma, peak=1.0, k1=0.01, k2=0.03):
    offsets = numpy.arange(size) - (size - 1) / 2
    row = numpy.exp(-(offsets**2) / (2 * sigma**2))
    weights = (numpy.outer(row, row) / row.sum() ** 2)[:, :, None]
    found = []
    for i in range(one.shape[0] - size + 1):
        for j in range(one.shape[1] - size + 1):
            x, y = (image[i : i + size, j : j + size].astype("d") for image in (one, two))
            mx, my = ((weights * part).sum((0, 1)) for part in (x, y))
            vx, vy = (weights * (x - mx) ** 2).sum((0, 1)), (weights * (y - my) ** 2).sum((0, 1))
            both = (weights * (x - mx) * (y - my)).sum((0, 1))
            c1, c2 = (k1 * peak) ** 2, (k2 * peak) ** 2
            found.append((2 * mx * my + c1) / (mx**2 + my**2 + c1) * (2 * both + c2) / (vx + vy + c2))
    return numpy.mean(found)


def test_the_mean_over_windows_and_channels():
    expected = [reference(a, b, 11, 1.5) for a, b in zip(A, B, strict=True)]
    numpy.testing.assert_allclose(run(lambda: tf.image.ssim(A, B, 1.0)), expected, rtol=1e-4)
    small = [reference(a, b, 5, 1.0, k1=0.02, k2=0.05) for a, b in zip(A, B, strict=True)]
    found = run(
        lambda: tf.image.ssim(A[None], B[None], 1.0, filter_size=5, filter_sigma=1.0, k1=0.02, k2=0.05)
    )
    numpy.testing.assert_allclose(found, [small], rtol=1e-4)


def test_integers_are_scaled_with_the_peak():
    one, two = ((image * 255).astype("uint8") for image in (A, B))
    expected = [reference(a / 255, b / 255, 11, 1.5) for a, b in zip(one, two, strict=True)]
    numpy.testing.assert_allclose(run(lambda: tf.image.ssim(one, two, 255)), expected, rtol=1e-4)


def test_several_scales():
    found = run(lambda: tf.image.ssim_multiscale(A, B, 1.0, power_factors=(0.5, 0.3), filter_size=5))
    numpy.testing.assert_allclose(found, [0.9799618721008301, 0.9750106334686279], rtol=1e-4)  # TensorFlow's


def test_images_that_are_too_small():
    with tf.Graph().as_default(), pytest.raises(ValueError, match="windows take 11"):
        tf.image.ssim(tf.ones([1, 8, 8, 1]), tf.ones([1, 8, 8, 1]), 1.0)
