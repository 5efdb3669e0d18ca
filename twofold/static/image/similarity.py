"""How like two images are, window by window: ``tf.image.ssim``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy

from twofold.dtypes import float32
from twofold.errors import ArgumentError
from twofold.runtime.tracing import here
from twofold.static import math as functions
from twofold.static import nn
from twofold.static.api.op_functions import convert_to_tensor
from twofold.static.arrays import creation, shape_ops
from twofold.static.graph.docstrings import example
from twofold.static.image.colors import convert_image_dtype

__all__ = ["ssim", "ssim_multiscale"]


def _window(size: int, sigma: float) -> numpy.ndarray:
    """Weights of a normal distribution, whose sum is 1."""
    offsets = numpy.arange(size) - (size - 1) / 2
    row = numpy.exp(-(offsets**2) / (2 * sigma**2))
    weights = numpy.outer(row, row)
    return (weights / weights.sum()).astype(numpy.float32)


def _means(images: Any, weights: numpy.ndarray) -> Any:
    """Weighted means of all windows that lie inside of the images."""
    *batch, height, width, channels = (size if size >= 0 else -1 for size in images.type_.shape)
    kernel = numpy.repeat(weights[:, :, None, None], channels, 2)
    flat = shape_ops.reshape(images, [-1, height, width, channels])
    found = nn.depthwise_conv2d(flat, kernel, [1, 1, 1, 1], "VALID")
    size = weights.shape[0] - 1
    inner = [height - size, width - size, channels]
    return shape_ops.reshape(found, shape_ops.concat([shape_ops.shape(images)[: len(batch)], inner], 0))


def _likeness(one: Any, two: Any, peak: Any, weights: numpy.ndarray, k1: float, k2: float) -> tuple[Any, Any]:
    """For each image and channel the mean likeness, and that of contrast and structure alone."""
    c1, c2 = functions.square(k1 * peak), functions.square(k2 * peak)
    mean1, mean2 = _means(one, weights), _means(two, weights)
    product, squares = 2.0 * mean1 * mean2, functions.square(mean1) + functions.square(mean2)
    luminance = (product + c1) / (squares + c1)
    mixed = 2.0 * _means(one * two, weights)
    own = _means(functions.square(one) + functions.square(two), weights)
    structure = (mixed - product + c2) / (own - squares + c2)
    axes = [-3, -2]
    return functions.reduce_mean(luminance * structure, axes), functions.reduce_mean(structure, axes)


def _taken(what: str, img1: Any, img2: Any, max_val: Any, smallest: int) -> tuple[Any, Any, Any]:
    """Both images and the peak as floats; raises ArgumentError for images that are too small or of unknown sizes."""
    one, two = convert_to_tensor(img1), convert_to_tensor(img2)
    peak = convert_image_dtype(functions.cast(max_val, one.dtype), float32)
    made = [convert_image_dtype(image, float32) for image in (one, two)]
    for image in made:
        sizes = image.type_.shape[-3:]
        if len(sizes) < 3 or min(sizes) < 0 or min(sizes[:2]) < smallest:
            told = f"{what}: images of {tuple(sizes)}, of which windows take {smallest} rows and columns, at {here()}"
            raise ArgumentError(told, "Give images of known sizes that are larger, or a smaller filter_size.")
    return made[0], made[1], peak


@example("image = tf.ones([1, 16, 16, 3])", "tf.image.ssim(image, image, max_val=1.0)", "[1.]")
def ssim(
    img1: Any,
    img2: Any,
    max_val: Any,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
) -> Any:
    """For each pair of images the index of structural similarity, 1 for equal ones (Wang et al. 2004).

    Args:
        img1: Images, of any number of axes before height, width and channels.
        img2: Images of the same sizes.
        max_val: The difference of the largest and the smallest value that there may be.
        filter_size: The rows and columns of a window.
        filter_sigma: The width of the normal distribution by which a window is weighted.
        k1: How much dark regions count.
        k2: How much even regions count.
    """
    one, two, peak = _taken("ssim", img1, img2, max_val, filter_size)
    found, _ = _likeness(one, two, peak, _window(filter_size, filter_sigma), k1, k2)
    return functions.reduce_mean(found, [-1])


_WEIGHTS = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)  # of Wang, Simoncelli, Bovik 2003


def _halved(images: Any) -> Any:
    """Images of half the height and width; the last row or column of an odd number is repeated."""
    *batch, height, width, channels = images.type_.shape
    flat = shape_ops.reshape(images, [-1, height, width, channels])
    if height % 2 or width % 2:
        flat = creation.pad(flat, [[0, 0], [0, height % 2], [0, width % 2], [0, 0]], "SYMMETRIC")
    half = nn.avg_pool(flat, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    sizes = [math.ceil(height / 2), math.ceil(width / 2), channels]
    return shape_ops.reshape(half, shape_ops.concat([shape_ops.shape(images)[: len(batch)], sizes], 0))


@example(
    "image = tf.ones([1, 32, 32, 3])",
    "tf.image.ssim_multiscale(image, image, 1.0, power_factors=[0.5, 0.5])",
    "[1.]",
)
def ssim_multiscale(
    img1: Any,
    img2: Any,
    max_val: Any,
    power_factors: Sequence[float] = _WEIGHTS,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
) -> Any:
    """``ssim`` over several scales, each of half the height and width (Wang, Simoncelli, Bovik 2003).

    ``power_factors`` are the exponents of the scales, the finest first; the other arguments are those of ``ssim``.
    """
    scale = 2 ** (len(power_factors) - 1)
    one, two, peak = _taken("ssim_multiscale", img1, img2, max_val, (filter_size - 1) * scale + 1)
    weights, factors = _window(filter_size, filter_sigma), []
    for k in range(len(power_factors)):
        if k:
            one, two = _halved(one), _halved(two)
        whole, structure = _likeness(one, two, peak, weights, k1, k2)
        factors.append(nn.relu(whole if k == len(power_factors) - 1 else structure))
    powers = shape_ops.stack(factors, axis=-1) ** numpy.array(power_factors, numpy.float32)
    return functions.reduce_mean(functions.reduce_prod(powers, [-1]), [-1])
