"""Edges of images, parts of them, images resized with their shape kept, and further ways to choose boxes."""

from __future__ import annotations

from typing import Any

import numpy

from twofold.dtypes import float32, int32
from twofold.errors import ArgumentError
from twofold.runtime.calls import failed
from twofold.static.api.op_functions import convert_to_tensor
from twofold.static.arrays import creation, shape_ops
from twofold.static.functions.host_calls import in_python
from twofold.static.graph.docstrings import example
from twofold.static.graph.scopes import name_scope
from twofold.static.image.files import decode_jpeg, encode_jpeg
from twofold.static.image.transformations import (
    ResizeMethod,
    convert_image_dtype,
    extract_image_patches,
    pad_to_bounding_box,
    resize_images,
)
from twofold.static.nn.convolutions import depthwise_conv2d


@example("print(tf.image.sobel_edges(tf.zeros([1, 4, 4, 3])).shape)", "(1, 4, 4, 3, 2)")
def sobel_edges(image: Any) -> Any:
    """Derivatives down and to the right by Sobel's filters, the image reflected at its ends."""
    value = convert_to_tensor(image, float32)
    down = numpy.array([[-1, -2, -1], [0, 0, 0], [1, 2, 1]], numpy.float32)
    channels = value.get_shape()[3].value
    filters = numpy.tile(numpy.stack([down, down.T], -1)[:, :, None], [1, 1, channels, 1])
    wide = creation.pad(value, [[0, 0], [1, 1], [1, 1], [0, 0]], mode="REFLECT")
    found = depthwise_conv2d(wide, filters, [1, 1, 1, 1], "VALID")
    return shape_ops.reshape(found, shape_ops.concat([shape_ops.shape(value), [2]], 0))


def extract_patches(
    images: Any, sizes: Any, strides: Any, rates: Any, padding: str, name: str | None = None
) -> Any:
    """``extract_image_patches``.

    >>> import twofold.static as tf
    >>> ones = [1, 1, 1, 1]
    >>> tf.image.extract_patches(tf.zeros([1, 4, 4, 1]), [1, 2, 2, 1], [1, 2, 2, 1], ones, "VALID").shape.as_list()
    [1, 2, 2, 4]
    """
    return extract_image_patches(images, sizes, strides, rates, padding, name)


@example("print(tf.image.resize_image_with_pad(tf.zeros([2, 4, 1]), 8, 8).shape)", "(8, 8, 1)")
def resize_image_with_pad(
    image: Any,
    target_height: int,
    target_width: int,
    method: Any = ResizeMethod.BILINEAR,
    align_corners: bool = False,
) -> Any:
    """An image, or several, resized to fit into a size with its shape kept, and zeros around it."""
    with name_scope(None, "resize_image_with_pad"):
        value = convert_to_tensor(image)
        alone = value.type_.ndim == 3
        value = shape_ops.expand_dims(value, 0) if alone else value
        size = [numpy.float32(one) for one in value.get_shape().as_list()[1:3]]  # rounded as TensorFlow does
        target = [numpy.float32(one) for one in (target_height, target_width)]
        ratio = max(own / whole for own, whole in zip(size, target))
        high, wide = (int(one / ratio) for one in size)
        top, left = (max(int((whole - own / ratio) / 2), 0) for own, whole in zip(size, target))
        resized = resize_images(value, [high, wide], method, align_corners)
        made = pad_to_bounding_box(resized, top, left, target_height, target_width)
        return shape_ops.squeeze(made, [0]) if alone else made


@example(
    "image = tf.zeros([4, 4, 3], tf.uint8)",
    "print(tf.image.adjust_jpeg_quality(image, 50).shape)",
    "(4, 4, 3)",
)
def adjust_jpeg_quality(image: Any, jpeg_quality: Any, name: str | None = None) -> Any:
    """An image as it is after JPEG of a quality from 0 to 100."""
    with name_scope(name, "adjust_jpeg_quality"):
        value = convert_to_tensor(image)
        pixels = convert_image_dtype(value, "uint8", saturate=True)
        made = decode_jpeg(encode_jpeg(pixels, quality=jpeg_quality))
        made.set_shape(value.get_shape())
        return convert_image_dtype(made, value.dtype, saturate=True)


_BOXES = "tf.constant([[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.9], [0.0, 0.0, 0.2, 0.2]])"


def _areas(boxes: Any) -> tuple[Any, Any, Any]:
    low, high = numpy.minimum(boxes[:, :2], boxes[:, 2:]), numpy.maximum(boxes[:, :2], boxes[:, 2:])
    return low, high, (high - low).prod(1)


def _overlaps(boxes: Any) -> Any:
    """For each pair of boxes the share of their intersection in their union."""
    low, high, area = _areas(boxes)
    common = numpy.minimum(high[:, None], high) - numpy.maximum(low[:, None], low)
    shared = numpy.maximum(common, 0).prod(2)
    union = area[:, None] + area - shared
    return numpy.where((area[:, None] > 0) & (area > 0), shared / numpy.where(union > 0, union, 1), 0)


def _softly_chosen(overlaps: Any, scores: Any, most: int, limit: float, least: float, sigma: float) -> Any:
    """Boxes in descending order of scores, which boxes chosen before lower (Bodla et al., 2017)."""
    left: Any = scores.astype(numpy.float32).copy()
    chosen: list[int] = []
    found: list[Any] = []
    decay = -0.5 / sigma if sigma > 0 else 0.0
    while len(chosen) < most and left.size:
        one = int(numpy.argmax(left))
        if not left[one] > least:
            break
        chosen.append(one)
        found.append(left[one])
        near = overlaps[one]
        left = numpy.where(near > limit, -numpy.inf, left * numpy.exp(decay * near * near)).astype(left.dtype)
        left[one] = -numpy.inf
    return numpy.array(chosen, numpy.int32), numpy.array(found, numpy.float32)


@example(f"tf.image.non_max_suppression_with_scores({_BOXES}, [0.5, 0.9, 0.3], 3)[0]", "[1 2]")
def non_max_suppression_with_scores(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = float("-inf"),
    soft_nms_sigma: Any = 0.0,
    name: str | None = None,
) -> tuple[Any, Any]:
    """``non_max_suppression``, and the scores; with ``soft_nms_sigma`` boxes chosen lower those that they overlap."""

    def choose(boxes: Any, scores: Any, most: Any, limit: Any, least: Any, sigma: Any) -> list[Any]:
        numbers = int(most), float(limit), float(least), float(sigma)
        return list(_softly_chosen(_overlaps(boxes), scores, *numbers))

    options = [convert_to_tensor(one, float32) for one in (iou_threshold, score_threshold, soft_nms_sigma)]
    given = [boxes, scores, max_output_size, *options]
    results = [(int32, (None,)), (float32, (None,))]
    chosen, found = in_python("NonMaxSuppressionV5", choose, given, results, name)
    return chosen, found


@example(
    f"tf.image.non_max_suppression_padded({_BOXES}, [0.5, 0.9, 0.3], 3, pad_to_max_output_size=True)[0]",
    "[1 2 0]",
)
def non_max_suppression_padded(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = float("-inf"),
    pad_to_max_output_size: bool = False,
    name: str | None = None,
) -> tuple[Any, Any]:
    """``non_max_suppression`` and how many are chosen; filled with zeros to ``max_output_size`` if asked."""
    with name_scope(name, "non_max_suppression_padded"):
        found, _ = non_max_suppression_with_scores(
            boxes, scores, max_output_size, iou_threshold, score_threshold
        )
        count = shape_ops.shape(found)[0]
        if pad_to_max_output_size:
            found = creation.pad(found, [[0, max_output_size - count]])
        return found, count


@example(
    "tf.image.non_max_suppression_overlaps([[1.0, 0.8], [0.8, 1.0]], [0.5, 0.9], 2)",
    "[1]",
)
def non_max_suppression_overlaps(
    overlaps: Any,
    scores: Any,
    max_output_size: Any,
    overlap_threshold: Any = 0.5,
    score_threshold: Any = float("-inf"),
    name: str | None = None,
) -> Any:
    """``non_max_suppression`` of boxes whose overlaps are given, a row for each."""

    def choose(overlaps: Any, scores: Any, most: Any, limit: Any, least: Any) -> Any:
        return _softly_chosen(overlaps, scores, int(most), float(limit), float(least), 0.0)[0]

    options = [convert_to_tensor(one, float32) for one in (overlap_threshold, score_threshold)]
    given = [overlaps, scores, max_output_size, *options]
    return in_python("NonMaxSuppressionWithOverlaps", choose, given, [(int32, (None,))], name)[0]


def _ranked(boxes: Any, scores: Any, total: int, options: tuple[Any, ...], clips: bool) -> list[Any]:
    """Of an image the ``total`` boxes of the highest scores, chosen class by class: boxes, scores, classes, count."""
    rows: list[Any] = []
    for kind in range(scores.shape[1]):
        own = boxes[:, min(kind, boxes.shape[1] - 1)]
        chosen, found = _softly_chosen(_overlaps(own), scores[:, kind], *options)
        rows += [(-score, kind, own[box]) for box, score in zip(chosen, found)]
    rows = sorted(rows, key=lambda row: row[0])[:total]
    made = [numpy.zeros((total, 4), numpy.float32), *numpy.zeros((2, total), numpy.float32)]
    for k, (score, kind, box) in enumerate(rows):
        made[0][k] = numpy.clip(box, 0, 1) if clips else box
        made[1][k], made[2][k] = -score, kind
    return [*made, numpy.int32(len(rows))]


def combined_non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_size_per_class: Any,
    max_total_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = float("-inf"),
    pad_per_class: bool = False,
    clip_boxes: bool = True,
    name: str | None = None,
) -> tuple[Any, Any, Any, Any]:
    """``non_max_suppression`` for each class of each image: boxes, scores, classes, and how many are chosen.

    Args:
        boxes: [images, boxes, 1 or classes, 4].
        scores: [images, boxes, classes].
        max_output_size_per_class: How many boxes a class may have.
        max_total_size: How many all together may have.
        iou_threshold: The share of the intersection in the union above which two boxes overlap.
        score_threshold: Boxes with scores up to this are left out.
        pad_per_class: Whether results have at most ``max_output_size_per_class`` for each class.
        clip_boxes: Whether results are clipped to [0, 1].
        name: The name of the operation.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     found = tf.image.combined_non_max_suppression([[[[0.0, 0.0, 1.0, 1.0]]]], [[[0.5, 0.9]]], 1, 2)
    ...     print(session.run(found)[2])
    [[1. 0.]]
    """
    if not isinstance(max_total_size, int) or not isinstance(max_output_size_per_class, int):
        what = "sizes that a run decides"
        raise failed("combined_non_max_suppression", ArgumentError(what, "Give integers."))
    given = [convert_to_tensor(boxes), convert_to_tensor(scores)]
    classes = given[1].get_shape()[2].value
    total = min(max_total_size, max_output_size_per_class * classes) if pad_per_class else max_total_size

    def choose(boxes: Any, scores: Any, limit: Any, least: Any) -> list[Any]:
        options = max_output_size_per_class, float(limit), float(least), 0.0
        found = [_ranked(*image, total, options, clip_boxes) for image in zip(boxes, scores)]
        return [numpy.stack(part) for part in zip(*found)]

    images = given[0].get_shape()[0].value
    results = [(float32, (images, total, 4)), (float32, (images, total)), (float32, (images, total))]
    options = [convert_to_tensor(one, float32) for one in (iou_threshold, score_threshold)]
    found = in_python(
        "CombinedNonMaxSuppression", choose, [*given, *options], [*results, (int32, (images,))], name
    )
    return found[0], found[1], found[2], found[3]
