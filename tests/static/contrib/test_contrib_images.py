"""Projections of images beside NumPy, element by element."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import twofold.static as tf

IMAGE = numpy.random.default_rng(0).normal(size=(2, 5, 6, 3)).astype(numpy.float32)
PROJECTIONS = numpy.array(
    [[1.1, 0.2, -0.3, 0.1, 0.9, 0.4, 0.01, 0.02], [0.8, -0.3, 1.0, 0.2, 1.2, -0.5, 0.0, 0.01]], numpy.float32
)


def element(image: Any, row: int, column: int) -> Any:
    inside = 0 <= row < image.shape[0] and 0 <= column < image.shape[1]
    return image[row, column] if inside else numpy.zeros(image.shape[2])


def projected(image: Any, t: Any, smooth: bool) -> Any:
    made = numpy.zeros_like(image)
    for y in range(image.shape[0]):
        for x in range(image.shape[1]):
            k = t[6] * x + t[7] * y + 1
            column, row = (t[0] * x + t[1] * y + t[2]) / k, (t[3] * x + t[4] * y + t[5]) / k
            if smooth:
                top, left = int(numpy.floor(row)), int(numpy.floor(column))
                for down in (0, 1):
                    for right in (0, 1):
                        share = (1 - abs(row - top - down)) * (1 - abs(column - left - right))
                        made[y, x] += share * element(image, top + down, left + right)
            else:
                near = [int(numpy.copysign(numpy.floor(abs(one) + 0.5), one)) for one in (row, column)]
                made[y, x] = element(image, *near)
    return made


@pytest.mark.parametrize("smooth", [False, True])
def test_projections(smooth: bool) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, None, None, 3])
        made = tf.contrib.image.transform(x, PROJECTIONS, "BILINEAR" if smooth else "NEAREST")
        found = session.run(made, {x: IMAGE})
    wanted = [projected(image, t, smooth) for image, t in zip(IMAGE, PROJECTIONS)]
    numpy.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_quarters_moves_and_products() -> None:
    image = IMAGE[0, :, :5, 0]
    with tf.Graph().as_default(), tf.Session() as session:
        contrib = tf.contrib.image
        turned = contrib.rotate(image, numpy.pi / 2)
        moved = contrib.translate(image, [2, -1])
        steps = [contrib.translations_to_projective_transforms([1.0, k]) for k in (1.0, 2.0)]
        both = contrib.transform(image, contrib.compose_transforms(*steps))
        found = session.run([turned, moved, both])
    numpy.testing.assert_array_equal(found[0], numpy.rot90(image))
    wanted = numpy.zeros_like(image)
    wanted[:-1, 2:] = image[1:, :-2]
    numpy.testing.assert_array_equal(found[1], wanted)
    wanted = numpy.zeros_like(image)
    wanted[3:, 2:] = image[:-3, :-2]
    numpy.testing.assert_array_equal(found[2], wanted)
