"""Images recoloured: ``tf.image``.

Floating images hold 0 to 1, integer ones their whole range. Colour models: Smith 1978.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from twofold.dtypes import float32
from twofold.errors import ShapeError
from twofold.ops.base import ops
from twofold.static import math
from twofold.static.api.op_functions import convert_to_tensor, operation
from twofold.static.api.signatures import defaults_of, with_parameters
from twofold.static.arrays import shape_ops
from twofold.static.graph.docstrings import described, example
from twofold.static.graph.scopes import name_scope
from twofold.static.image.transformations import convert_image_dtype
from twofold.static.random import random_uniform

_GRAY = (0.2989, 0.5870, 0.1140)


def _as_floats(scope: str, image: Any, change: Callable[[Any], Any], name: str | None = None) -> Any:
    """``change`` of the image in float32, back in its own dtype."""
    with name_scope(name, scope):
        tensor = convert_to_tensor(image)
        if tensor.dtype.kind == "f":
            return change(tensor)
        return convert_image_dtype(change(convert_image_dtype(tensor, float32)), tensor.dtype, True)


def _on_floats(type: str, named: bool = True) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A function of images from one of images in float32, which declares one operation of ``type``.

    ``named`` says whether it takes a name.
    """

    def decorate(body: Callable[..., Any]) -> Callable[..., Any]:
        declare = operation(type)(body)
        first = next(iter(defaults_of(body)))

        def adjusted(name: str | None = None, **given: Any) -> Any:
            image = given.pop(first)
            return _as_floats(body.__name__, image, lambda floats: declare(floats, **given), name)

        behind = {"name": None} if named else {}
        return with_parameters(adjusted, {**defaults_of(body), **behind}, body)

    return decorate


def _mixed(images: Any, weights: Sequence[float]) -> Any:
    """One channel that is the sum of three by ``weights``."""
    parts = [ops.multiply(ops.narrow(images, -1, k, 1), float(weight)) for k, weight in enumerate(weights)]
    return ops.add(ops.add(parts[0], parts[1]), parts[2])


@operation("RgbToGrayscale")
def _gray(images: Any) -> Any:
    if images.shape[-1] != 3:
        raise ShapeError(f"images of {images.shape[-1]} channels", "Give images of three.")
    return _mixed(images, _GRAY)


@example("print(tf.image.rgb_to_grayscale(tf.zeros([4, 4, 3])).shape)", "(4, 4, 1)")
def rgb_to_grayscale(images: Any, name: str | None = None) -> Any:
    """One channel of brightness."""
    return _as_floats("rgb_to_grayscale", images, _gray, name)


@example("print(tf.image.grayscale_to_rgb(tf.zeros([4, 4, 1])).shape)", "(4, 4, 3)")
def grayscale_to_rgb(images: Any, name: str | None = None) -> Any:
    """Three equal channels."""
    return shape_ops.concat([images, images, images], -1, name=name or "grayscale_to_rgb")


def _channels(image: Any) -> list[Any]:
    if image.shape[-1] != 3:
        raise ShapeError(f"an image of {image.shape[-1]} channels", "Give one of three.")
    return [ops.select(image, -1, k) for k in range(3)]


def _to_hsv(image: Any) -> list[Any]:
    red, green, blue = _channels(image if image.dtype.kind == "f" else ops.cast(image, float32))
    value = ops.maximum(red, ops.maximum(green, blue))
    chroma = ops.subtract(value, ops.minimum(red, ops.minimum(green, blue)))
    some = ops.greater(chroma, 0)
    by = ops.where(some, chroma, 1.0)
    sector = ops.where(
        ops.equal(value, red),
        ops.divide(ops.subtract(green, blue), by),
        ops.where(
            ops.equal(value, green),
            ops.add(ops.divide(ops.subtract(blue, red), by), 2.0),
            ops.add(ops.divide(ops.subtract(red, green), by), 4.0),
        ),
    )
    hue = ops.where(some, ops.divide(sector, 6.0), 0.0)
    hue = ops.where(ops.less(hue, 0.0), ops.add(hue, 1.0), hue)
    bright = ops.greater(value, 0)
    return [hue, ops.where(bright, ops.divide(chroma, ops.where(bright, value, 1.0)), 0.0), value]


def _from_hsv(hue: Any, saturation: Any, value: Any) -> Any:
    found = []
    for position in (5.0, 3.0, 1.0):
        k = ops.remainder(ops.add(ops.multiply(hue, 6.0), position), 6.0)
        part = ops.clamp(ops.minimum(k, ops.subtract(4.0, k)), 0.0, 1.0)
        found.append(ops.subtract(value, ops.multiply(ops.multiply(value, saturation), part)))
    return ops.stack(found, -1)


@operation("RGBToHSV")
@example("tf.squeeze(tf.image.rgb_to_hsv([[[1.0, 0.0, 0.0]]]))", "[0. 1. 1.]")
def rgb_to_hsv(images: Any) -> Any:
    """Hue, saturation and value of 0 to 1."""
    return ops.stack(_to_hsv(images), -1)


def _by_matrix(
    own: str, text: str, rows: Sequence[Sequence[float]], inverse: bool = False
) -> Callable[..., Any]:
    """The function that mixes channels by the rows of a matrix, or of its inverse."""
    weights = np.linalg.inv(rows) if inverse else np.array(rows)
    declare = operation(own)(lambda images: ops.concat([_mixed(images, row) for row in weights], -1))

    def function(images: Any) -> Any:
        return declare(images)

    return described(function, own, text, f"print(tf.image.{own}(tf.zeros([2, 2, 3])).shape)", "(2, 2, 3)")


_YUV = ((0.299, 0.587, 0.114), (-0.14714119, -0.28886916, 0.43601035), (0.61497538, -0.51496512, -0.10001026))
_YIQ = ((0.299, 0.587, 0.114), (0.59590059, -0.27455667, -0.32134392), (0.2115, -0.52273617, 0.31119955))
rgb_to_yuv = _by_matrix("rgb_to_yuv", "Brightness and two differences of colour, those of PAL.", _YUV)
yuv_to_rgb = _by_matrix("yuv_to_rgb", "Red, green and blue of the channels of ``rgb_to_yuv``.", _YUV, True)
rgb_to_yiq = _by_matrix("rgb_to_yiq", "Brightness and two differences of colour, those of NTSC.", _YIQ)
yiq_to_rgb = _by_matrix("yiq_to_rgb", "Red, green and blue of the channels of ``rgb_to_yiq``.", _YIQ, True)


@operation("HSVToRGB")
@example("tf.squeeze(tf.image.hsv_to_rgb([[[0.0, 1.0, 1.0]]]))", "[1. 0. 0.]")
def hsv_to_rgb(images: Any) -> Any:
    """Red, green and blue of hue, saturation and value."""
    return _from_hsv(*_channels(images))


@example("tf.squeeze(tf.image.adjust_brightness([[[0.5], [0.25]]], 0.25))", "[0.75 0.5 ]")
def adjust_brightness(image: Any, delta: Any) -> Any:
    """``delta`` (of a range of 0 to 1) added."""
    return _as_floats("adjust_brightness", image, lambda floats: math.add(floats, delta))


@_on_floats("AdjustContrast", named=False)
@example("tf.squeeze(tf.image.adjust_contrast([[[0.0], [1.0]]], 2.0))", "[-0.5  1.5]")
def adjust_contrast(images: Any, contrast_factor: Any) -> Any:
    """The distance from the mean of each channel times a factor."""
    mean = ops.mean(images, (-3, -2), True)
    return ops.add(ops.multiply(ops.subtract(images, mean), contrast_factor), mean)


@_on_floats("AdjustGamma", named=False)
@example("tf.squeeze(tf.image.adjust_gamma([[[0.5], [1.0]]], 2.0))", "[0.25 1.  ]")
def adjust_gamma(image: Any, gamma: Any = 1, gain: Any = 1) -> Any:
    """``gain * image ** gamma``."""
    return ops.multiply(ops.pow(image, gamma), gain)


@_on_floats("AdjustHue")
@example("print(tf.image.adjust_hue(tf.zeros([4, 4, 3]), 0.25).shape)", "(4, 4, 3)")
def adjust_hue(image: Any, delta: Any) -> Any:
    """The hue rotated by ``delta`` (1 is once around)."""
    hue, saturation, value = _to_hsv(image)
    return _from_hsv(ops.remainder(ops.add(hue, delta), 1.0), saturation, value)


@_on_floats("AdjustSaturation")
@example("print(tf.image.adjust_saturation(tf.zeros([4, 4, 3]), 2.0).shape)", "(4, 4, 3)")
def adjust_saturation(image: Any, saturation_factor: Any) -> Any:
    """The saturation times a factor."""
    hue, saturation, value = _to_hsv(image)
    return _from_hsv(hue, ops.clamp(ops.multiply(saturation, saturation_factor), 0.0, 1.0), value)


def _between(low: float, high: float, seed: int | None, what: str) -> Any:
    if low > high:
        raise ValueError(f"{what}: from {low} to {high} is empty. Give the lower one first.")
    return random_uniform([], low, high, seed=seed)


@example("print(tf.image.random_brightness(tf.zeros([4, 4, 3]), 0.5).shape)", "(4, 4, 3)")
def random_brightness(image: Any, max_delta: float, seed: int | None = None) -> Any:
    """``adjust_brightness`` by up to ``max_delta``."""
    return adjust_brightness(image, _between(-max_delta, max_delta, seed, "random_brightness"))


@example("print(tf.image.random_contrast(tf.zeros([4, 4, 3]), 0.5, 2.0).shape)", "(4, 4, 3)")
def random_contrast(image: Any, lower: float, upper: float, seed: int | None = None) -> Any:
    """``adjust_contrast`` by a factor between two."""
    return adjust_contrast(image, _between(lower, upper, seed, "random_contrast"))


def random_hue(image: Any, max_delta: float, seed: int | None = None) -> Any:
    """``adjust_hue`` by up to ``max_delta``."""
    return adjust_hue(image, _between(-max_delta, max_delta, seed, "random_hue"))


@example("print(tf.image.random_saturation(tf.zeros([4, 4, 3]), 0.5, 2.0).shape)", "(4, 4, 3)")
def random_saturation(image: Any, lower: float, upper: float, seed: int | None = None) -> Any:
    """``adjust_saturation`` by a factor between two."""
    return adjust_saturation(image, _between(lower, upper, seed, "random_saturation"))
