"""Images rotated, moved and transformed by projections: ``tf.contrib.image``.

A projection is a vector of eight numbers ``(a0, a1, a2, b0, b1, b2, c0, c1)``: the result at (x, y) is the image at
((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k), where k = c0 x + c1 y + 1.
"""

from __future__ import annotations

from typing import Any

from twofold.dtypes import float32, int32
from twofold.runtime.tracing import here
from twofold.static import math
from twofold.static.api.op_functions import convert_to_tensor
from twofold.static.arrays import creation, selection, shape_ops
from twofold.static.graph.docstrings import example
from twofold.static.graph.scopes import name_scope


def _batch(images: Any) -> tuple[Any, int]:
    """Images [images, rows, columns, channels] of two to four axes, and how many there were."""
    value = convert_to_tensor(images)
    ndim = value.type_.ndim
    if ndim not in (2, 3, 4):
        raise TypeError(f"contrib.image: images of {ndim} axes, at {here()}. Give two to four.")
    if ndim == 2:
        value = shape_ops.expand_dims(value, -1)
    return (shape_ops.expand_dims(value, 0) if ndim < 4 else value), ndim


def _unbatched(images: Any, ndim: int) -> Any:
    return images if ndim == 4 else images[0] if ndim == 3 else images[0, :, :, 0]


def _rows_of(transforms: Any) -> Any:
    given = convert_to_tensor(transforms, float32)
    return shape_ops.expand_dims(given, 0) if given.type_.ndim == 1 else given


@example(
    "image = tf.constant([[1, 2, 3], [4, 5, 6], [7, 8, 9]])",
    "tf.contrib.image.transform(image, [1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0])",
    "[[2 3 0]\n [5 6 0]\n [8 9 0]]",
)
def transform(
    images: Any,
    transforms: Any,
    interpolation: str = "NEAREST",
    output_shape: Any = None,
    name: str | None = None,
) -> Any:
    """Images transformed by projections, zeros where the image ends.

    Args:
        images: [images, rows, columns, channels], without the first axis one image, without the last one channel.
        transforms: A projection for all images, or one for each.
        interpolation: "NEAREST" or "BILINEAR".
        output_shape: Rows and columns of the result; those of the images unless given.
        name: That of the scope.
    """
    if interpolation.upper() not in ("NEAREST", "BILINEAR"):
        raise ValueError(f"transform: interpolation {interpolation!r}, at {here()}. Use NEAREST or BILINEAR.")
    with name_scope(name, "transform"):
        value, ndim = _batch(images)
        t = _rows_of(transforms)
        count, height, width, channels = shape_ops.unstack(shape_ops.shape(value), 4)
        wanted = [height, width] if output_shape is None else [output_shape[0], output_shape[1]]
        y, x = (math.cast(creation.range(size), float32) for size in wanted)
        x, y = shape_ops.reshape(x, [1, 1, -1]), shape_ops.reshape(y, [1, -1, 1])
        a = [shape_ops.reshape(t[:, k], [-1, 1, 1]) for k in range(8)]
        k = a[6] * x + a[7] * y + 1.0
        column, row = (a[0] * x + a[1] * y + a[2]) / k, (a[3] * x + a[4] * y + a[5]) / k
        first = shape_ops.reshape(creation.range(count) * height, [-1, 1, 1])
        flat = shape_ops.reshape(value, [-1, channels])

        def at(rows: Any, columns: Any) -> Any:
            """The elements there, 0 outside."""
            here_ = (rows >= 0) & (columns >= 0)
            inside = here_ & (rows < math.cast(height, float32)) & (columns < math.cast(width, float32))
            zero = creation.zeros_like(rows)
            down, right = (math.cast(selection.where(inside, one, zero), int32) for one in (rows, columns))
            found = shape_ops.gather(flat, (first + down) * width + right)
            kept = math.logical_or(inside, first < 0)  # of the sizes of all images
            return found * math.cast(shape_ops.expand_dims(kept, -1), value.dtype)

        if interpolation.upper() == "NEAREST":
            made = at(_rounded(row), _rounded(column))
        else:
            top, left = math.floor(row), math.floor(column)
            down, right = (shape_ops.expand_dims(one, -1) for one in (row - top, column - left))
            parts = [at(top, left), at(top, left + 1), at(top + 1, left), at(top + 1, left + 1)]
            upper, lower = (
                math.cast(one, float32) * (1 - right) + math.cast(two, float32) * right
                for one, two in (parts[:2], parts[2:])
            )
            made = math.cast(upper * (1 - down) + lower * down, value.dtype)
        sizes = value.get_shape().as_list()
        known = (
            sizes[1:3] if output_shape is None else [s if isinstance(s, int) else None for s in output_shape]
        )
        made.set_shape([sizes[0], *known, sizes[3]])
        return _unbatched(made, ndim)


def _rounded(value: Any) -> Any:
    """The nearest integer, of two equally near ones the farther from 0."""
    return math.sign(value) * math.floor(math.abs(value) + 0.5)


@example(
    "image = tf.constant([[1, 2], [3, 4]])", "tf.contrib.image.rotate(image, 3.14159265)", "[[4 3]\n [2 1]]"
)
def rotate(images: Any, angles: Any, interpolation: str = "NEAREST", name: str | None = None) -> Any:
    """Images rotated around their middles by angles in radians, counterclockwise."""
    with name_scope(name, "rotate"):
        value, ndim = _batch(images)
        height, width = (math.cast(one, float32) for one in shape_ops.unstack(shape_ops.shape(value)[1:3], 2))
        made = transform(value, angles_to_projective_transforms(angles, height, width), interpolation)
        return _unbatched(made, ndim)


@example(
    "image = tf.constant([[1, 2], [3, 4]])", "tf.contrib.image.translate(image, [1, 0])", "[[0 1]\n [0 3]]"
)
def translate(images: Any, translations: Any, interpolation: str = "NEAREST", name: str | None = None) -> Any:
    """Images moved by (dx, dy)."""
    with name_scope(name, "translate"):
        return transform(images, translations_to_projective_transforms(translations), interpolation)


@example(
    "found = tf.contrib.image.angles_to_projective_transforms(0.0, 4.0, 4.0)",
    "found",
    "[[ 1. -0.  0.  0.  1.  0.  0.  0.]]",
)
def angles_to_projective_transforms(
    angles: Any, image_height: Any, image_width: Any, name: str | None = None
) -> Any:
    """The projections that rotate images of a size by angles."""
    with name_scope(name, "angles_to_projective_transforms"):
        angle = convert_to_tensor(angles, float32)
        angle = shape_ops.reshape(angle, [-1])
        high, wide = (math.cast(convert_to_tensor(one), float32) - 1 for one in (image_height, image_width))
        cos, sin = math.cos(angle), math.sin(angle)
        x = (wide - (cos * wide - sin * high)) / 2.0
        y = (high - (sin * wide + cos * high)) / 2.0
        zero = creation.zeros_like(angle)
        x, y = x + zero, y + zero
        return shape_ops.stack([cos, -sin, x, sin, cos, y, zero, zero], 1)


@example(
    "tf.contrib.image.translations_to_projective_transforms([1.0, 2.0])",
    "[[ 1.  0. -1.  0.  1. -2.  0.  0.]]",
)
def translations_to_projective_transforms(translations: Any, name: str | None = None) -> Any:
    """The projections that move images by (dx, dy)."""
    with name_scope(name, "translations_to_projective_transforms"):
        given = math.cast(convert_to_tensor(translations), float32)
        rows = shape_ops.expand_dims(given, 0) if given.type_.ndim == 1 else given
        one, zero = creation.ones_like(rows[:, 0]), creation.zeros_like(rows[:, 0])
        return shape_ops.stack([one, zero, -rows[:, 0], zero, one, -rows[:, 1], zero, zero], 1)


@example(
    "tf.contrib.image.flat_transforms_to_matrices([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]])",
    "[[[1. 2. 3.]\n  [4. 5. 6.]\n  [7. 8. 1.]]]",
)
def flat_transforms_to_matrices(transforms: Any) -> Any:
    """Projections as matrices of three rows."""
    rows = _rows_of(transforms)
    return shape_ops.reshape(shape_ops.concat([rows, creation.ones_like(rows[:, :1])], 1), [-1, 3, 3])


@example("tf.contrib.image.matrices_to_flat_transforms(2.0 * tf.eye(3))", "[[1. 0. 0. 0. 1. 0. 0. 0.]]")
def matrices_to_flat_transforms(transform_matrices: Any) -> Any:
    """Matrices of three rows as projections."""
    flat = shape_ops.reshape(convert_to_tensor(transform_matrices), [-1, 9])
    return flat[:, :8] / flat[:, 8:]


@example(
    "one = tf.contrib.image.translations_to_projective_transforms([1.0, 0.0])",
    "tf.contrib.image.compose_transforms(one, one)",
    "[[ 1.  0. -2.  0.  1.  0.  0.  0.]]",
)
def compose_transforms(*transforms: Any) -> Any:
    """The projection that transforms by one after the other."""
    if not transforms:
        raise ValueError(f"compose_transforms: no transforms, at {here()}. Give at least one.")
    with name_scope(None, "compose_transforms"):
        found = flat_transforms_to_matrices(transforms[0])
        for one in transforms[1:]:
            found = math.matmul(found, flat_transforms_to_matrices(one))
        return matrices_to_flat_transforms(found)
