"""Parts of images chosen at random around boxes, and boxes drawn on images.

Source: the kernels ``sample_distorted_bounding_box_op`` and ``draw_bounding_box_op`` of TensorFlow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy

from twofold.dtypes import float32
from twofold.errors import ArgumentError, InvalidArgumentError
from twofold.runtime.calls import failed
from twofold.static.api.op_functions import convert_to_tensor
from twofold.static.functions.host_calls import in_python
from twofold.static.graph.docstrings import example
from twofold.static.random import next_key

_COLORS = (
    (1, 1, 0, 1), (0, 0, 1, 1), (1, 0, 0, 1), (0, 1, 0, 1), (0.5, 0, 0.5, 1),
    (0.5, 0.5, 0, 1), (0.5, 0, 0, 1), (0, 0, 0.5, 1), (0, 1, 1, 1), (1, 0, 1, 1),
)  # fmt: skip
"""Of boxes, one after the other, as red, green, blue and opacity."""


class BoundingBoxes(NamedTuple):
    """A part of an image: where it begins and its size for ``tf.slice``, and its box for drawing."""

    begin: Any
    size: Any
    bboxes: Any


@example(
    "boxes = tf.constant([[[0.2, 0.2, 0.8, 0.8]]])",
    "begin, size, box = tf.image.sample_distorted_bounding_box([10, 20, 3], boxes, min_object_covered=1.0)",
    "print(session.run(size)[0] >= 6, box.shape)",
    "True (1, 1, 4)",
)
def sample_distorted_bounding_box(
    image_size: Any,
    bounding_boxes: Any,
    seed: int | None = None,
    seed2: int | None = None,
    min_object_covered: Any = 0.1,
    aspect_ratio_range: Sequence[float] | None = None,
    area_range: Sequence[float] | None = None,
    max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None,
    name: str | None = None,
) -> BoundingBoxes:
    """A part of an image, chosen at random in each run, that covers enough of one of some boxes.

    Args:
        image_size: The shape of the image, [height, width, channels].
        bounding_boxes: [batch, boxes, 4], the corners (y, x, y, x) in shares of the image.
        seed, seed2: Of the choice.
        min_object_covered: The share of a box that the part covers at least.
        aspect_ratio_range: The limits of width over height; (0.75, 1.33) unless given.
        area_range: The limits of the share of the image; (0.05, 1) unless given.
        max_attempts: After how many tries it is the whole image; 100 unless given.
        use_image_if_no_bounding_boxes: Whether without boxes the image is one; else that raises.
        name: The name of the operation.
    """
    low, high = aspect_ratio_range or (0.75, 1.33)
    smallest, largest = area_range or (0.05, 1.0)
    if not 0 < low <= high or not 0 < smallest <= largest <= 1:
        what = f"aspect_ratio_range {(low, high)} and area_range {(smallest, largest)}"
        raise failed("sample_distorted_bounding_box", ArgumentError(what, "Give rising, positive limits."))
    random = numpy.random.default_rng(next_key(seed if seed is not None else seed2))

    def choose(shape: Any, boxes: Any, covered: Any) -> list[Any]:
        height, width = int(shape[0]), int(shape[1])
        edges = numpy.asarray(boxes, float).reshape(-1, 4) * [height, width, height, width]
        if not len(edges):
            if not use_image_if_no_bounding_boxes:
                fix = "Give boxes, or set use_image_if_no_bounding_boxes."
                raise InvalidArgumentError("there are no bounding boxes", fix)
            edges = numpy.array([[0, 0, height, width]], float)
        part = None
        for _ in range(100 if max_attempts is None else max_attempts):
            part = _part(height, width, smallest, largest, random.uniform(low, high), random)
            if part is not None and (_covered(part, edges) >= covered).any():
                break
            part = None
        y, x, rows, columns = part or (0, 0, height, width)
        box = numpy.array([y / height, x / width, (y + rows) / height, (x + columns) / width], "f")
        begin, size = (numpy.array(one, shape.dtype) for one in ([y, x, 0], [rows, columns, -1]))
        return [begin, size, box[None, None]]

    shape = convert_to_tensor(image_size)
    given = [shape, bounding_boxes, convert_to_tensor(min_object_covered, float32)]
    types = [(shape.dtype, (3,)), (shape.dtype, (3,)), (float32, (1, 1, 4))]
    return BoundingBoxes(*in_python("SampleDistortedBoundingBoxV2", choose, given, types, name))


def _part(
    height: int, width: int, smallest: float, largest: float, ratio: float, random: Any
) -> tuple[int, int, int, int] | None:
    """A part of a width over height at a random position; None where none fits."""
    least, most = smallest * height * width, largest * height * width
    rows, highest = round((least / ratio) ** 0.5), round((most / ratio) ** 0.5)
    if round(highest * ratio) > width:
        highest = int((width + 0.5 - 1e-7) / ratio)
    highest = min(highest, height)
    rows = min(rows, highest)
    if rows < highest:
        rows += int(random.integers(highest - rows + 1))
    columns = round(rows * ratio)
    for wrong, step in ((rows * columns < least, 1), (rows * columns > most, -1)):
        if wrong:
            rows += step
            columns = round(rows * ratio)
    if not least <= rows * columns <= most or not 0 < columns <= width or not 0 < rows <= height:
        return None
    y, x = (
        int(random.integers(most - own)) if most > own else 0
        for most, own in ((height, rows), (width, columns))
    )
    return y, x, rows, columns


def _covered(part: tuple[int, int, int, int], boxes: Any) -> Any:
    """The shares of boxes that a part covers; of one without area none."""
    y, x, rows, columns = part
    inner_low = numpy.maximum(boxes[:, :2], [y, x])
    inner_high = numpy.minimum(boxes[:, 2:], [y + rows, x + columns])
    area = (boxes[:, 2:] - boxes[:, :2]).prod(1)
    common = numpy.maximum(inner_high - inner_low, 0).prod(1)
    return numpy.where(area > 0, common / numpy.where(area > 0, area, 1), 0)


@example(
    "drawn = tf.image.draw_bounding_boxes(tf.zeros([1, 4, 4, 3]), [[[0.0, 0.0, 1.0, 1.0]]])",
    "drawn[0, :, :, 0]",
    "[[1. 1. 1. 1.]\n [1. 0. 0. 1.]\n [1. 0. 0. 1.]\n [1. 1. 1. 1.]]",
)
def draw_bounding_boxes(images: Any, boxes: Any, name: str | None = None, colors: Any = None) -> Any:
    """Images with the edges of boxes drawn one element wide.

    Args:
        images: [batch, height, width, channels] of float32.
        boxes: [batch, boxes, 4], the corners (y, x, y, x) in shares of the image.
        name: The name of the operation.
        colors: [colors, channels], taken in turn; ten of its own unless given.
    """
    pictures = convert_to_tensor(images, float32)

    def draw(pictures: Any, boxes: Any, palette: Any) -> Any:
        found = pictures.copy()
        height, width, channels = found.shape[1:]
        if channels == 1:
            palette = numpy.ones((1, 1), "f")
        for picture, own in zip(found, boxes):
            for number, box in enumerate(own):
                color = palette[number % len(palette), :channels]
                top, left, bottom, right = (box * [height - 1, width - 1, height - 1, width - 1]).astype(int)
                if top > bottom or left > right or top >= height or bottom < 0 or left >= width or right < 0:
                    continue
                y, x = slice(max(top, 0), bottom + 1), slice(max(left, 0), right + 1)
                for row in {top, bottom} & set(range(height)):
                    picture[row, x] = color
                for column in {left, right} & set(range(width)):
                    picture[y, column] = color
        return found

    palette = numpy.array(_COLORS, "f") if colors is None else colors
    given = [pictures, convert_to_tensor(boxes, float32), convert_to_tensor(palette, float32)]
    sizes = [size if size >= 0 else None for size in pictures.type_.shape]
    return in_python("DrawBoundingBoxesV2", draw, given, [(float32, sizes)], name)[0]
