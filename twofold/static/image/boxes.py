"""Boxes in images: cut out, chosen, and images averaged over areas. Part of ``tf.image``."""

from __future__ import annotations

from typing import Any

import numpy

from twofold.dtypes import float32, int32, int64
from twofold.errors import ArgumentError
from twofold.ops.axes import given_once
from twofold.ops.base import apply, ops
from twofold.runtime.calls import failed
from twofold.static import math
from twofold.static.api.op_functions import Number, convert_to_tensor, counted, numbers, operation, sizes
from twofold.static.arrays import creation, selection, shape_ops
from twofold.static.functions.host_calls import in_python
from twofold.static.graph.docstrings import example
from twofold.static.graph.scopes import name_scope


def _covered(size: int, wanted: int, align: bool, like: Any) -> Any:
    """How much of each element of the result each element of an axis covers, (wanted, size).

    Where corners are aligned the last window ends outside; what is outside counts for the last element.
    """
    pace = (size - 1) / (wanted - 1) if align and wanted > 1 else size / wanted
    first = ops.reshape(ops.multiply(ops.cast(counted(wanted, like), float32), pace), (wanted, 1))
    low = ops.reshape(ops.cast(counted(size, like), float32), (1, size))
    end = ops.add(first, pace)
    high = ops.where(ops.equal(low, size - 1), float("inf"), ops.add(low, 1.0))
    common = ops.subtract(ops.minimum(high, end), ops.maximum(low, first))
    return ops.divide(ops.maximum(common, 0.0), pace)


@operation("ResizeArea", name_at=3)
@example("tf.squeeze(tf.image.resize_area([[[[1.0], [2.0], [6.0], [8.0]]]], [1, 2]))", "[1.5 7. ]")
def resize_area(images: Any, size: Number, align_corners: Number = False) -> Any:
    """Each element the mean of the area that it stands for; float32."""
    value, align = ops.cast(ops.movedim(images, -1, -3), float32), bool(numbers(align_corners))
    (height, width), (tall, broad) = value.shape[-2:], sizes(size)
    rows, columns = _covered(height, tall, align, value), _covered(width, broad, align, value)
    made = ops.matmul(ops.matmul(rows, value), ops.transpose(columns, 0, 1))
    return ops.movedim(made, -3, -1)


@operation("ResizeNearestNeighbor")
def nearest_of_corners(images: Any, size: Number) -> Any:
    """The nearest element where the centres of corner elements are laid on each other."""
    for axis, wanted in zip((-3, -2), sizes(size)):
        have = images.shape[axis]
        pace = (have - 1) / (wanted - 1) if wanted > 1 else have / wanted
        position = ops.floor(ops.add(ops.multiply(ops.cast(counted(wanted, images), float32), pace), 0.5))
        position = ops.minimum(ops.cast(position, int64), have - 1)
        images = apply("index_select", images, position, attrs=(images.ndim + axis,))
    return images


def _coordinates(low: Any, high: Any, size: Any, wanted: int) -> Any:
    """Where in an axis of ``size`` the elements of boxes lie, (boxes, wanted)."""
    last = math.cast(size - 1, float32)
    if wanted == 1:
        return shape_ops.expand_dims((low + high) * 0.5 * last, 1)
    steps = shape_ops.expand_dims(math.cast(creation.range(wanted), float32), 0)
    return shape_ops.expand_dims(low * last, 1) + steps * shape_ops.expand_dims(
        (high - low) * last / (wanted - 1), 1
    )


def _limited(position: Any, size: Any) -> Any:
    return math.minimum(math.maximum(math.cast(position, int32), 0), size - 1)


@example(
    "image = tf.reshape(tf.range(9.0), [1, 3, 3, 1])",
    "tf.squeeze(tf.image.crop_and_resize(image, [[0.0, 0.0, 1.0, 1.0]], [0], [2, 2]))",
    "[[0. 2.]\n [6. 8.]]",
)
def crop_and_resize(
    image: Any,
    boxes: Any,
    box_ind: Any = None,
    crop_size: Any = None,
    method: str = "bilinear",
    extrapolation_value: float = 0,
    name: str | None = None,
    box_indices: Any = None,
) -> Any:
    """Boxes of images in one size, float32 [boxes, height, width, channels].

    Args:
        image: [batch, height, width, channels].
        boxes: [boxes, 4]: from the row and column to the row and column, where 0 is the first and 1 the last element;
            a box may be flipped.
        box_ind: for each box the number of its image.
        crop_size: height and width of the results, two integers.
        method: "bilinear" or "nearest".
        extrapolation_value: what stands outside of the image.
        name: the name of the scope.
        box_indices: a later name of ``box_ind``.
    """
    if method not in ("bilinear", "nearest"):
        raise failed(
            "crop_and_resize", ArgumentError(f"method is {method!r}", "Use 'bilinear' or 'nearest'.")
        )
    with name_scope(name, "CropAndResize"):
        pixels, corners = math.cast(convert_to_tensor(image), float32), convert_to_tensor(boxes, float32)
        index = math.cast(convert_to_tensor(given_once(box_ind=box_ind, box_indices=box_indices)), int32)
        height, width = (int(size) for size in sizes_of(crop_size))
        shape = shape_ops.shape(pixels)
        rows = _coordinates(corners[:, 0], corners[:, 2], shape[1], height)
        columns = _coordinates(corners[:, 1], corners[:, 3], shape[2], width)
        flat = shape_ops.reshape(pixels, [-1, shape[3]])
        of_box = shape_ops.reshape(index * shape[1], [shape_ops.shape(corners)[0], 1, 1])

        def at(row: Any, column: Any) -> Any:
            line = of_box + shape_ops.expand_dims(_limited(row, shape[1]), 2)
            return shape_ops.gather(
                flat, line * shape[2] + shape_ops.expand_dims(_limited(column, shape[2]), 1)
            )

        if method == "nearest":
            found = at(math.floor(rows + 0.5), math.floor(columns + 0.5))
        else:
            top, left = math.floor(rows), math.floor(columns)
            down = shape_ops.expand_dims(shape_ops.expand_dims(rows - top, 2), 3)
            right = shape_ops.expand_dims(shape_ops.expand_dims(columns - left, 1), 3)
            above = at(top, left) * (1 - right) + at(top, math.ceil(columns)) * right
            below = at(math.ceil(rows), left) * (1 - right) + at(math.ceil(rows), math.ceil(columns)) * right
            found = above * (1 - down) + below * down
        inside = math.logical_and(
            shape_ops.expand_dims(_inside(rows, shape[1]), 2),
            shape_ops.expand_dims(_inside(columns, shape[2]), 1),
        )
        inside = math.logical_and(shape_ops.expand_dims(inside, 3), math.equal(found, found))
        made = selection.where(inside, found, creation.zeros_like(found) + float(extrapolation_value))
        made.set_shape([corners.get_shape()[0].value, height, width, pixels.get_shape()[3].value])
        return made


def _inside(coordinates: Any, size: Any) -> Any:
    return math.logical_and(coordinates >= 0, coordinates <= math.cast(size - 1, float32))


def sizes_of(value: Any) -> list[Any]:
    """The two sizes of a crop, which must be known when the graph is declared."""
    found = numpy.ravel(numpy.asarray(value if isinstance(value, (list, tuple, numpy.ndarray)) else []))
    if found.size != 2:
        raise failed("crop_and_resize", ArgumentError(f"crop_size is {value!r}", "Give two integers."))
    return list(found)


@example(
    "boxes = tf.constant([[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.9], [0.0, 0.0, 0.2, 0.2]])",
    "tf.image.non_max_suppression(boxes, [0.5, 0.9, 0.3], 3)",
    "[1 2]",
)
def non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = float("-inf"),
    name: str | None = None,
) -> Any:
    """Numbers of boxes in descending order of their scores, without those that overlap one before.

    Args:
        boxes: [boxes, 4], two opposite corners each.
        scores: [boxes].
        max_output_size: the largest number of boxes.
        iou_threshold: the share of the intersection in the union above which two boxes overlap.
        score_threshold: boxes with scores up to this are left out.
        name: the name of the operation.
    """

    def choose(boxes: Any, scores: Any, most: Any, overlap: Any, least: Any) -> numpy.ndarray:
        low, high = numpy.minimum(boxes[:, :2], boxes[:, 2:]), numpy.maximum(boxes[:, :2], boxes[:, 2:])
        area = (high - low).prod(1)
        chosen: list[int] = []
        for one in numpy.argsort(-scores, kind="stable"):
            if len(chosen) >= int(most) or not scores[one] > least:
                break
            common = numpy.minimum(high[one], high[chosen]) - numpy.maximum(low[one], low[chosen])
            shared = numpy.maximum(common, 0).prod(1)
            union = area[one] + area[chosen] - shared
            proper = (area[one] > 0) & (area[chosen] > 0)
            if not (proper & (shared > overlap * union)).any():
                chosen.append(int(one))
        return numpy.array(chosen, numpy.int32)

    given = [boxes, scores, max_output_size, convert_to_tensor(iou_threshold, float32)]
    given.append(convert_to_tensor(score_threshold, float32))
    return in_python("NonMaxSuppressionV3", choose, given, [(int32, (None,))], name)[0]
