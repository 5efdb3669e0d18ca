"""Parts of images around points: ``tf.image.extract_glimpse``."""

from __future__ import annotations

from typing import Any

from twofold.dtypes import float32, int32
from twofold.errors import ShapeError
from twofold.runtime.calls import failed
from twofold.static import math, random
from twofold.static.api.op_functions import convert_to_tensor
from twofold.static.arrays import creation, selection, shape_ops
from twofold.static.graph.docstrings import example


@example(
    "image = tf.reshape(tf.range(9.0), [1, 3, 3, 1])",
    "tf.image.extract_glimpse(image, [1, 2], [[0.0, 0.0]])[0, :, :, 0]",
    "[[3. 4.]]",
)
def extract_glimpse(
    input: Any,
    size: Any,
    offsets: Any,
    centered: bool = True,
    normalized: bool = True,
    uniform_noise: bool = True,
    name: str | None = None,
) -> Any:
    """A window of each image around a point; what lies outside of the image is noise.

    Args:
        input: Images (batch, height, width, channels) of float32.
        size: Height and width of the windows.
        offsets: For each image the coordinates y and x of the middle of its window.
        centered: Whether they are counted from the middle of the image.
        normalized: Whether they are shares of the image, from -1 to 1 if centered, else from 0.
        uniform_noise: Whether noise is distributed evenly over [0, 1), else normally.
        name: The name of the operation.
    """
    images, points = convert_to_tensor(input), convert_to_tensor(offsets)
    if images.shape.ndims not in (None, 4):
        what = f"the images are of shape {images.shape}"
        raise failed("extract_glimpse", ShapeError(what, "Give batch, height, width and channels."))
    height, width = (int(one) for one in size)
    shape = shape_ops.shape(images)
    extents = math.cast(shape[1:3], float32)
    middles = points * extents if normalized else points
    if centered:
        middles = middles / 2.0 + extents / 2.0
    first = math.cast(middles - [height / 2.0, width / 2.0], int32)
    rows, inside_rows = _indices(first[:, 0], height, shape[1])
    columns, inside_columns = _indices(first[:, 1], width, shape[2])
    pixels = shape_ops.gather_nd(images, _positions(shape[0], rows, columns))
    inside = math.logical_and(shape_ops.expand_dims(inside_rows, 2), shape_ops.expand_dims(inside_columns, 1))
    noise = (random.random_uniform if uniform_noise else random.random_normal)(shape_ops.shape(pixels))
    made = selection.where(
        creation.broadcast_to(shape_ops.expand_dims(inside, 3), shape_ops.shape(pixels)), pixels, noise
    )
    made.set_shape([images.shape.as_list()[0], height, width, images.shape.as_list()[3]])
    return shape_ops.identity(made, name=name or "ExtractGlimpse")


def _indices(first: Any, count: int, extent: Any) -> tuple[Any, Any]:
    """The indices of windows along an axis, 0 where they are outside, and whether they are inside."""
    found = shape_ops.expand_dims(first, 1) + list(range(count))
    inside = math.logical_and(math.greater_equal(found, 0), math.less(found, extent))
    return found * math.cast(inside, int32), inside


def _positions(batch: Any, rows: Any, columns: Any) -> Any:
    """The index of each pixel of the windows: image, row and column."""
    numbers = shape_ops.reshape(creation.range(batch), [-1, 1, 1])
    zeros = shape_ops.expand_dims(rows, 2) * 0 + shape_ops.expand_dims(columns, 1) * 0
    parts = [
        numbers + zeros,
        shape_ops.expand_dims(rows, 2) + zeros,
        shape_ops.expand_dims(columns, 1) + zeros,
    ]
    return shape_ops.stack(parts, -1)
