"""Images resized, rotated, cut and measured: ``tf.image``.

Images are ``[batch, height, width, channels]``, or one without batch. Floating images hold 0 to 1, integer ones their
whole range.
"""

from __future__ import annotations

from collections.abc import Callable
from math import floor
from typing import Any

import numpy as np

from twofold.dtypes import DType, float32, int64
from twofold.errors import ArgumentError, ShapeError
from twofold.ops.base import apply, ops
from twofold.ops.convolution.interpolation import CORNERS, EDGES, STARTS
from twofold.ops.shape.movement import slice_axis
from twofold.signatures import signature
from twofold.static import math
from twofold.static.api.op_functions import (
    Number,
    as_dtype,
    convert_to_tensor,
    define,
    numbers,
    operation,
    sizes,
    whole,
)
from twofold.static.api.op_functions import limits_of as _limits_of
from twofold.static.arrays import shape_ops
from twofold.static.graph.docstrings import described, example
from twofold.static.graph.graph_elements import importable
from twofold.static.graph.scopes import name_scope
from twofold.static.image.boxes import nearest_of_corners, resize_area
from twofold.static.math import saturate_cast
from twofold.static.nn.pooling import same_padding
from twofold.static.random import next_key, random_uniform


class ResizeMethod:
    """Ways for ``resize_images``."""

    BILINEAR = 0
    NEAREST_NEIGHBOR = 1
    BICUBIC = 2
    AREA = 3


def _resized(images: Any, size: Any, align: Any, centred: Any, mode: str) -> Any:
    value = ops.movedim(images, -1, -3)
    placing = CORNERS if numbers(align) else EDGES if numbers(centred) else STARTS
    if not mode.startswith("nearest"):
        value = ops.cast(value, float32)
    made = apply("resize", value, attrs=(mode, sizes(size), placing, (None, None), False))
    return ops.movedim(made, -3, -1)


@operation("ResizeNearestNeighbor")
def _nearest(images: Any, size: Number, mode: Number) -> Any:
    return _resized(images, size, False, False, mode)


def _interpolation(kind: str, text: str) -> Callable[..., Any]:
    """The function that resizes by interpolation of a kind, in float32."""

    def body(
        images: Any, size: Number, align_corners: Number = False, half_pixel_centers: Number = False
    ) -> Any:
        return _resized(images, size, align_corners, half_pixel_centers, kind)

    name = f"resize_{kind}"
    shown = f"print(tf.image.{name}(tf.zeros([1, 2, 3, 4]), [4, 6]).shape)"
    return operation(f"Resize{kind.title()}", name_at=3)(described(body, name, text, shown, "(1, 4, 6, 4)"))


resize_bilinear = _interpolation(
    "bilinear", "Linear interpolation between the four nearest elements; float32."
)
resize_bicubic = _interpolation(
    "bicubic", "Cubic interpolation between the sixteen nearest elements; float32."
)


@example("tf.squeeze(tf.image.resize_nearest_neighbor([[[[1.0], [2.0]]]], [1, 4]))", "[1. 1. 2. 2.]")
def resize_nearest_neighbor(
    images: Any,
    size: Any,
    align_corners: bool = False,
    name: str | None = None,
    half_pixel_centers: bool = False,
) -> Any:
    """The nearest element before each position."""
    if align_corners:
        return nearest_of_corners(images, size, name=name or "ResizeNearestNeighbor")
    mode = "nearest-exact" if half_pixel_centers else "nearest"
    return _nearest(images, size, mode, name=name or "ResizeNearestNeighbor")


@example("print(tf.image.resize_images(tf.zeros([1, 2, 3, 4]), [4, 6]).shape)", "(1, 4, 6, 4)")
def resize_images(
    images: Any,
    size: Any,
    method: Any = ResizeMethod.BILINEAR,
    align_corners: bool = False,
    preserve_aspect_ratio: bool = False,
    name: str | None = None,
) -> Any:
    """Images in another size, by one of the ways of ``ResizeMethod``; with ``preserve_aspect_ratio`` within it.

    Raises ValueError for another method.
    """
    ways = {0: resize_bilinear, 1: resize_nearest_neighbor, 2: resize_bicubic, 3: resize_area}
    names = {"bilinear": 0, "nearest": 1, "bicubic": 2, "area": 3}
    chosen = names.get(method, -1) if isinstance(method, str) else method
    if chosen not in ways:
        raise ValueError(f"resize_images: method {method!r} is not there. Use one of ResizeMethod.")
    with name_scope(name, "resize"):
        tensor = convert_to_tensor(images)
        wanted = _within(tensor, size) if preserve_aspect_ratio else size
        shape = tensor.get_shape()
        if None not in (shape[-3].value, shape[-2].value) and shape[-3:-1].as_list() == _known(wanted):
            return tensor
        return ways[chosen](tensor, wanted, align_corners)


resize = resize_images


def _known(size: Any) -> list[int] | None:
    """A size that is given as integers."""
    return (
        [int(n) for n in size]
        if isinstance(size, (list, tuple)) and all(isinstance(n, int) for n in size)
        else None
    )


@operation("ScaledSize")
def _within(images: Any, size: Number) -> Any:
    """The largest size of the images' ratio that is within ``size``."""
    high, wide = images.shape[-3:-1]
    scale = min(float32.numpy.type(n / m) for n, m in zip(sizes(size), (high, wide)))
    return np.rint(np.array([scale * high, scale * wide])).astype(np.int32)


@operation(
    "ExtractImagePatches",
    row=signature("images, ksizes=None, strides=None, rates=None, padding=None, name=None, sizes=None"),
    older={"sizes": "ksizes"},
)
def extract_image_patches(
    images: Any, ksizes: Number, strides: Number, rates: Number, padding: Number
) -> Any:
    """The windows of images as channels: [batch, rows, columns, height * width * channels]."""
    apart = [1, 1, 1, 1] if rates is None else rates
    (high, wide), (down, right), (tall, broad) = (sizes(value)[1:3] for value in (ksizes, strides, apart))
    value = ops.movedim(images, -1, 1)
    if padding not in ("SAME", "VALID"):
        raise ArgumentError(f"padding {padding!r}", "Use 'SAME' or 'VALID'.")
    if padding == "SAME":
        across = same_padding(value.shape[3], wide, right, broad)
        value = ops.pad(value, across + same_padding(value.shape[2], high, down, tall))
    batch, depth = value.shape[:2]
    rows = (value.shape[2] - (high - 1) * tall - 1) // down + 1
    columns = (value.shape[3] - (wide - 1) * broad - 1) // right + 1
    parts = ops.im2col(value, (high, wide), (tall, broad), (0, 0), (down, right))
    windows = ops.reshape(parts, (batch, depth, high * wide, rows, columns))
    return ops.reshape(ops.permute(windows, (0, 3, 4, 2, 1)), (batch, rows, columns, high * wide * depth))


def _rows(image: Any) -> int:
    """The axis of rows."""
    if image.ndim not in (3, 4):
        what = f"an image of {image.ndim} axes"
        raise ShapeError(what, "Give [height, width, channels], or a batch of such images.")
    return int(image.ndim) - 3


@operation("FlipLeftRight")
@example("tf.squeeze(tf.image.flip_left_right([[[1], [2]]]))", "[2 1]")
def flip_left_right(image: Any) -> Any:
    """Columns in the opposite order."""
    return ops.flip(image, (_rows(image) + 1,))


@operation("FlipUpDown")
@example("tf.squeeze(tf.image.flip_up_down([[[1]], [[2]]]))", "[2 1]")
def flip_up_down(image: Any) -> Any:
    """Rows in the opposite order."""
    return ops.flip(image, (_rows(image),))


@operation("TransposeImage")
@example("tf.squeeze(tf.image.transpose_image([[[1], [2]], [[3], [4]]]))", "[[1 3]\n [2 4]]")
def transpose_image(image: Any) -> Any:
    """Rows and columns exchanged."""
    return ops.transpose(image, _rows(image), _rows(image) + 1)


transpose = transpose_image


@operation("Rot90")
@example("tf.squeeze(tf.image.rot90([[[1], [2]], [[3], [4]]]))", "[[2 4]\n [1 3]]")
def rot90(image: Any, k: Number = 1) -> Any:
    """Rotated to the left by ``k`` quarters."""
    return ops.rot90(image, whole(k), (_rows(image), _rows(image) + 1))


def _at_random(image: Any, changed: Any, seed: int | None) -> Any:
    """``changed`` with probability one half, sampled for each image of a batch."""
    tensor = convert_to_tensor(image)
    shape = shape_ops.shape(tensor)[:1] if tensor.type_.ndim == 4 else []
    return _either(random_uniform(shape, seed=seed), changed, tensor)


@operation("Select")
def _either(chance: Any, changed: Any, image: Any) -> Any:
    chosen = ops.less(chance, 0.5)
    return ops.where(ops.reshape(chosen, (-1, 1, 1, 1)) if image.ndim == 4 else chosen, changed, image)


@example("tf.reduce_sum(tf.image.random_flip_left_right([[[1.0], [2.0]]]))", "3.0")
def random_flip_left_right(image: Any, seed: int | None = None) -> Any:
    """``flip_left_right`` for one half of all images."""
    return _at_random(image, flip_left_right(image), seed)


@example("tf.reduce_sum(tf.image.random_flip_up_down([[[1.0]], [[2.0]]]))", "3.0")
def random_flip_up_down(image: Any, seed: int | None = None) -> Any:
    """``flip_up_down`` for one half of all images."""
    return _at_random(image, flip_up_down(image), seed)


def _cut(image: Any, top: int, left: int, height: int, width: int) -> Any:
    axis = _rows(image)
    for position, start, size in ((axis, top, height), (axis + 1, left, width)):
        if start < 0 or size < 0 or start + size > image.shape[position]:
            what = f"elements {start} to {start + size} of axis {position}, which has {image.shape[position]}"
            raise ShapeError(what, "Cut inside the image.")
        image = ops.narrow(image, position, start, size)
    return image


@operation("CropToBoundingBox")
@example("print(tf.image.crop_to_bounding_box(tf.zeros([4, 4, 3]), 1, 1, 2, 3).shape)", "(2, 3, 3)")
def crop_to_bounding_box(
    image: Any, offset_height: Number, offset_width: Number, target_height: Number, target_width: Number
) -> Any:
    """The rectangle of this size at these offsets."""
    given = (offset_height, offset_width, target_height, target_width)
    return _cut(image, *[whole(value) for value in given])


def _surrounded(image: Any, top: int, left: int, height: int, width: int) -> Any:
    axis = _rows(image)
    below, right = height - top - image.shape[axis], width - left - image.shape[axis + 1]
    if min(top, left, below, right) < 0:
        what = f"an image of {image.shape[axis]} x {image.shape[axis + 1]} at {top}, {left} in {height} x {width}"
        raise ShapeError(what, "Give a size that holds the image.")
    return ops.pad(image, (0, 0, left, right, top, below))


@operation("PadToBoundingBox")
@example("print(tf.image.pad_to_bounding_box(tf.zeros([2, 2, 3]), 1, 1, 4, 5).shape)", "(4, 5, 3)")
def pad_to_bounding_box(
    image: Any, offset_height: Number, offset_width: Number, target_height: Number, target_width: Number
) -> Any:
    """The image at these offsets in one of this size that is zero elsewhere."""
    given = (offset_height, offset_width, target_height, target_width)
    return _surrounded(image, *[whole(value) for value in given])


@operation("ResizeImageWithCropOrPad")
@example("print(tf.image.resize_image_with_crop_or_pad(tf.zeros([2, 6, 3]), 4, 4).shape)", "(4, 4, 3)")
def resize_image_with_crop_or_pad(image: Any, target_height: Number, target_width: Number) -> Any:
    """The middle of the image, with zeros around where it is too small."""
    wanted = (whole(target_height), whole(target_width))
    axis = _rows(image)
    found = tuple(image.shape[axis : axis + 2])
    kept = [min(a, b) for a, b in zip(found, wanted)]
    top, left = [(a - b) // 2 for a, b in zip(found, kept)]
    image = _cut(image, top, left, kept[0], kept[1])
    top, left = [(a - b) // 2 for a, b in zip(wanted, kept)]
    return _surrounded(image, top, left, *wanted)


resize_with_crop_or_pad = resize_image_with_crop_or_pad


@operation("CentralCrop")
@example("print(tf.image.central_crop(tf.zeros([4, 4, 3]), 0.5).shape)", "(2, 2, 3)")
def central_crop(image: Any, central_fraction: Number) -> Any:
    """The middle of the image, ``central_fraction`` of its height and width."""
    fraction, axis = float(numbers(central_fraction)), _rows(image)
    if not 0 < fraction <= 1:
        raise ArgumentError(f"a fraction of {fraction}", "Give one above 0 and at most 1.")
    starts = [floor((size - size * fraction) / 2) for size in image.shape[axis : axis + 2]]
    kept = [size - 2 * start for size, start in zip(image.shape[axis : axis + 2], starts)]
    return _cut(image, *starts, *kept)


@importable
def _random_part(value: Any, size: Any, key: int, counter: Any) -> Any:
    wanted = [n if n >= 0 else value.shape[axis] for axis, n in enumerate(sizes(size))]
    for axis, (have, want) in enumerate(zip(value.shape, wanted)):
        if want > have:
            raise ShapeError(f"{want} elements of axis {axis}, which has {have}", "Cut inside the tensor.")
        if want < have:
            attrs = ((), int64)
            start = apply("random_integers", key ^ (axis << 56), counter, 0, have - want + 1, attrs=attrs)
            value = slice_axis(value, axis, start, want)
    return value


def random_crop(value: Any, size: Any, seed: int | None = None, name: str | None = None) -> Any:
    """A part of this size (-1: the whole axis) at an offset that is new in every run."""
    keywords = {"value": convert_to_tensor(value), "size": size, "key": next_key(seed)}
    made = define("RandomCrop", _random_part, (), keywords, name or "random_crop", frozenset({"size"}), True)
    return made.outputs[0]


@example(
    "tf.image.convert_image_dtype(tf.constant([[[0], [255]]], tf.uint8), tf.float32)", "[[[0.]\n  [1.]]]"
)
def convert_image_dtype(image: Any, dtype: Any, saturate: bool = False, name: str | None = None) -> Any:
    """The image in another dtype and its range: floats hold 0 to 1, integers 0 to their largest number."""
    tensor, wanted = convert_to_tensor(image), as_dtype(dtype)
    if tensor.dtype is wanted:
        return shape_ops.identity(tensor, name=name)
    with name_scope(name, "convert_image"):
        if tensor.dtype.kind == "f" and wanted.kind != "f":
            scaled = _stretched(tensor, _limits_of(wanted)[1] + 0.5)
            return saturate_cast(scaled, wanted) if saturate else math.cast(scaled, wanted)
        if wanted.kind == "f":
            found = math.cast(tensor, wanted)
            return found if tensor.dtype.kind == "f" else _stretched(found, 1.0 / _limits_of(tensor.dtype)[1])
        return _shifted(tensor, wanted)


@operation("Mul")
def _stretched(image: Any, factor: Any) -> Any:
    return ops.multiply(image, float(factor))


@operation("ConvertImageDtype")
def _shifted(image: Any, dtype: DType) -> Any:
    """Integers of one range in that of another."""
    have, want = _limits_of(image.dtype)[1], _limits_of(dtype)[1]
    if have > want:
        return ops.cast(ops.floor_divide(image, (have + 1) // (want + 1)), dtype)
    return ops.multiply(ops.cast(image, dtype), (want + 1) // (have + 1))


@operation("PerImageStandardization")
def _standardised(image: Any) -> Any:
    image = ops.cast(image, float32)
    count = 1
    for size in image.shape[-3:]:
        count *= size
    mean = ops.mean(image, (-3, -2, -1), True)
    deviation = ops.sqrt(ops.mean(ops.square(ops.subtract(image, mean)), (-3, -2, -1), True))
    return ops.divide(ops.subtract(image, mean), ops.maximum(deviation, float(count) ** -0.5))


@example("tf.squeeze(tf.image.per_image_standardization([[[1.0], [3.0]]]))", "[-1.  1.]")
def per_image_standardization(image: Any) -> Any:
    """Each image with mean 0 and variance 1; one that is all equal becomes 0."""
    tensor = convert_to_tensor(image)
    return _standardised(tensor if tensor.dtype.kind == "f" else math.cast(tensor, float32))


@operation("TotalVariation")
@example("tf.image.total_variation([[[0.0], [1.0]], [[3.0], [3.0]]])", "6.0")
def total_variation(images: Any) -> Any:
    """For each image the sum of absolute differences of neighbours."""
    axis = _rows(images)
    total: Any = 0
    for position in (axis, axis + 1):
        rest = images.shape[position] - 1
        change = ops.subtract(ops.narrow(images, position, 1, rest), ops.narrow(images, position, 0, rest))
        total = ops.add(ops.sum(ops.abs(change), (axis, axis + 1, axis + 2), dtype=images.dtype), total)
    return total


@operation("ImageGradients", several=list)
def _neighbours(image: Any) -> Any:
    found = []
    for position in (1, 2):
        rest = image.shape[position] - 1
        change = ops.subtract(ops.narrow(image, position, 1, rest), ops.narrow(image, position, 0, rest))
        found.append(ops.pad(change, (0, 0, *((0, 0, 0, 1) if position == 1 else (0, 1)))))
    return found


def image_gradients(image: Any) -> tuple[Any, Any]:
    """The differences to the next row and to the next column, zero in the last one."""
    down, right = _neighbours(convert_to_tensor(image))
    return down, right


@operation("PSNR")
def _noise_ratio(a: Any, b: Any, peak: Any) -> Any:
    error = ops.mean(ops.square(ops.subtract(a, b)), (-3, -2, -1))
    return ops.subtract(ops.multiply(ops.log10(peak), 20.0), ops.multiply(ops.log10(error), 10.0))


@example("tf.image.psnr(tf.zeros([2, 2, 1]), tf.ones([2, 2, 1]), 1.0)", "0.0")
def psnr(a: Any, b: Any, max_val: float, name: str | None = None) -> Any:
    """For each image the ratio of the largest signal to the noise, in decibels."""
    one, two = convert_image_dtype(a, float32), convert_image_dtype(b, float32)
    kind = convert_to_tensor(a).dtype
    peak = float(max_val) if kind.kind == "f" else float(max_val) / _limits_of(kind)[1]
    return _noise_ratio(one, two, convert_to_tensor(peak), name=name)
