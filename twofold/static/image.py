"""Images in other sizes: ``tf.image``. Images are ``[batch, height, width, channels]``, or one without batch."""

from __future__ import annotations

from typing import Any

from twofold.dtypes import float32
from twofold.ops.base import apply, ops
from twofold.ops.convolution.interpolation import CORNERS, EDGES, STARTS
from twofold.static.control import name_scope
from twofold.static.define import Number, convert_to_tensor, numbers, operation, sizes
from twofold.static.docstrings import example
from twofold.static.image_changes import adjust_brightness as adjust_brightness
from twofold.static.image_changes import adjust_contrast as adjust_contrast
from twofold.static.image_changes import adjust_gamma as adjust_gamma
from twofold.static.image_changes import adjust_hue as adjust_hue
from twofold.static.image_changes import adjust_saturation as adjust_saturation
from twofold.static.image_changes import central_crop as central_crop
from twofold.static.image_changes import convert_image_dtype as convert_image_dtype
from twofold.static.image_changes import crop_to_bounding_box as crop_to_bounding_box
from twofold.static.image_changes import flip_left_right as flip_left_right
from twofold.static.image_changes import flip_up_down as flip_up_down
from twofold.static.image_changes import grayscale_to_rgb as grayscale_to_rgb
from twofold.static.image_changes import hsv_to_rgb as hsv_to_rgb
from twofold.static.image_changes import image_gradients as image_gradients
from twofold.static.image_changes import pad_to_bounding_box as pad_to_bounding_box
from twofold.static.image_changes import per_image_standardization as per_image_standardization
from twofold.static.image_changes import psnr as psnr
from twofold.static.image_changes import random_brightness as random_brightness
from twofold.static.image_changes import random_contrast as random_contrast
from twofold.static.image_changes import random_crop as random_crop
from twofold.static.image_changes import random_flip_left_right as random_flip_left_right
from twofold.static.image_changes import random_flip_up_down as random_flip_up_down
from twofold.static.image_changes import random_hue as random_hue
from twofold.static.image_changes import random_saturation as random_saturation
from twofold.static.image_changes import resize_image_with_crop_or_pad as resize_image_with_crop_or_pad
from twofold.static.image_changes import resize_with_crop_or_pad as resize_with_crop_or_pad
from twofold.static.image_changes import rgb_to_grayscale as rgb_to_grayscale
from twofold.static.image_changes import rgb_to_hsv as rgb_to_hsv
from twofold.static.image_changes import rot90 as rot90
from twofold.static.image_changes import total_variation as total_variation
from twofold.static.image_changes import transpose as transpose
from twofold.static.image_changes import transpose_image as transpose_image


class ResizeMethod:
    """Ways for ``resize_images``."""

    BILINEAR = 0
    NEAREST_NEIGHBOR = 1
    BICUBIC = 2


def _resized(images: Any, size: Any, align: Any, centred: Any, mode: str) -> Any:
    value = ops.movedim(images, -1, -3)
    placing = CORNERS if numbers(align) else EDGES if numbers(centred) else STARTS
    if mode != "nearest":
        value = ops.cast(value, float32)
    made = apply("resize", value, attrs=(mode, sizes(size), placing, (None, None), False))
    return ops.movedim(made, -3, -1)


@operation("ResizeNearestNeighbor")
def _nearest(images: Any, size: Number, align: Number, centred: Number) -> Any:
    return _resized(images, size, align, centred, "nearest")


@operation("ResizeBilinear", name_at=3)
@example("print(tf.image.resize_bilinear(tf.zeros([1, 2, 3, 4]), [4, 6]).shape)", "(1, 4, 6, 4)")
def resize_bilinear(
    images: Any, size: Number, align_corners: Number = False, half_pixel_centers: Number = False
) -> Any:
    """Linear interpolation between the four nearest elements; float32."""
    return _resized(images, size, align_corners, half_pixel_centers, "bilinear")


@example("tf.squeeze(tf.image.resize_nearest_neighbor([[[[1.0], [2.0]]]], [1, 4]))", "[1. 1. 2. 2.]")
def resize_nearest_neighbor(
    images: Any, size: Any, align_corners: bool = False, name: str | None = None
) -> Any:
    """The nearest element before each position.

    Raises ValueError for ``align_corners``.
    """
    if align_corners:
        raise ValueError("resize_nearest_neighbor: align_corners is not there. Leave it out.")
    return _nearest(images, size, False, False, name=name or "ResizeNearestNeighbor")


@operation("ResizeBicubic", name_at=3)
@example("print(tf.image.resize_bicubic(tf.zeros([1, 2, 3, 4]), [4, 6]).shape)", "(1, 4, 6, 4)")
def resize_bicubic(
    images: Any, size: Number, align_corners: Number = False, half_pixel_centers: Number = False
) -> Any:
    """Cubic interpolation between the sixteen nearest elements; float32."""
    return _resized(images, size, align_corners, half_pixel_centers, "bicubic")


@example("print(tf.image.resize_images(tf.zeros([1, 2, 3, 4]), [4, 6]).shape)", "(1, 4, 6, 4)")
def resize_images(
    images: Any,
    size: Any,
    method: int = ResizeMethod.BILINEAR,
    align_corners: bool = False,
    name: str | None = None,
) -> Any:
    """Images in another size, by one of the ways of ``ResizeMethod``.

    Raises ValueError for another method.
    """
    ways = {0: resize_bilinear, 1: resize_nearest_neighbor, 2: resize_bicubic}
    if method not in ways:
        raise ValueError(f"resize_images: method {method!r} is not there. Use one of ResizeMethod.")
    with name_scope(name, "resize"):
        return ways[method](convert_to_tensor(images), size, align_corners)


@operation("ExtractImagePatches")
def _patches(images: Any, size: Number, steps: Number, rates: Number, padding: Number) -> Any:
    (high, wide), (down, right), (tall, broad) = (sizes(value)[1:3] for value in (size, steps, rates))
    value = ops.movedim(images, -1, 1)
    if padding == "SAME":
        value = ops.pad(
            value, _same(value.shape[3], wide, right, broad) + _same(value.shape[2], high, down, tall)
        )
    batch, depth = value.shape[:2]
    rows = (value.shape[2] - (high - 1) * tall - 1) // down + 1
    columns = (value.shape[3] - (wide - 1) * broad - 1) // right + 1
    parts = ops.im2col(value, (high, wide), (tall, broad), (0, 0), (down, right))
    apart = ops.reshape(parts, (batch, depth, high * wide, rows, columns))
    return ops.reshape(ops.permute(apart, (0, 3, 4, 2, 1)), (batch, rows, columns, high * wide * depth))


def _same(size: int, window: int, step: int, rate: int) -> tuple[int, int]:
    span = (window - 1) * rate + 1
    total = max((-(-size // step) - 1) * step + span - size, 0)
    return total // 2, total - total // 2


def extract_image_patches(
    images: Any,
    ksizes: Any = None,
    strides: Any = None,
    rates: Any = None,
    padding: str | None = None,
    name: str | None = None,
    sizes: Any = None,
) -> Any:
    """The windows of images as channels: [batch, rows, columns, height * width * channels]."""
    window = ksizes if sizes is None else sizes
    given = [1, 1, 1, 1] if rates is None else rates
    return _patches(convert_to_tensor(images), window, strides, given, padding, name=name)
