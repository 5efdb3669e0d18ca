"""Tensors limited to ranges and norms; of ``IndexedSlices`` the values are, which stay slices."""

from __future__ import annotations

import math as numbers_of_python
from collections.abc import Sequence
from typing import Any

from twofold.ops.base import apply, ops
from twofold.static.api.op_functions import Number, Tensors, axis_of, operation
from twofold.static.autodiff.indexed_slices import IndexedSlices, keeps_slices
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import get_default_graph


@keeps_slices
@operation("ClipByValue")
@example("tf.clip_by_value([-2.0, 0.5, 3.0], 0.0, 1.0)", "[0.  0.5 1. ]")
def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any) -> Any:
    """Elements limited to a range; those at a limit have the gradient, those outside do not."""
    return apply("first_minimum", apply("first_maximum", t, clip_value_min), clip_value_max)


@keeps_slices
@operation("ClipByNorm")
@example("tf.clip_by_norm([3.0, 4.0], 1.0)", "[0.6 0.8]")
def clip_by_norm(t: Any, clip_norm: Any, axes: Number = None) -> Any:
    """``t`` scaled down so that its norm is at most ``clip_norm``."""
    found = axis_of(axes)
    squares = ops.sum(ops.square(t), tuple(range(t.ndim)) if found is None else found, True)
    positive = ops.greater(squares, 0)  # the root has no derivative at zero
    norm = ops.where(positive, ops.sqrt(ops.where(positive, squares, 1.0)), squares)
    return apply("divide", apply("multiply", t, clip_norm), apply("first_maximum", norm, clip_norm))


@keeps_slices
@operation("ClipByAverageNorm")
@example("tf.clip_by_average_norm([3.0, 4.0], 0.5)", "[0.6 0.8]")
def clip_by_average_norm(t: Any, clip_norm: Any) -> Any:
    """``t`` scaled down so that its norm over the number of its elements is at most ``clip_norm``."""
    average = apply("divide", ops.sqrt(ops.sum(ops.square(t))), numbers_of_python.prod(t.shape))
    return apply("divide", apply("multiply", t, clip_norm), ops.maximum(average, clip_norm))


def _need_list(t_list: Any) -> None:
    if not isinstance(t_list, Sequence) or isinstance(t_list, str):
        raise TypeError(f"t_list should be a sequence of tensors, not {type(t_list).__name__}")


@operation("GlobalNorm")
def _global_norm(tensors: Tensors) -> Any:
    total: Any = None
    for value in tensors:
        part = ops.sum(ops.square(value))
        total = part if total is None else apply("add", total, part)
    return ops.sqrt(total)


@example("tf.global_norm([tf.constant([3.0]), tf.constant([4.0])])", "5.0")
def global_norm(t_list: Any, name: str | None = None) -> Any:
    """Norm of all tensors together; None counts for nothing, and of slices their values do, as in TensorFlow."""
    _need_list(t_list)
    given = [item.values if isinstance(item, IndexedSlices) else item for item in t_list if item is not None]
    return _global_norm(given, name=name)


@example(
    "tf.clip_by_global_norm([tf.constant([3.0]), tf.constant([4.0])], 1.0)",
    "([array([0.6], dtype=float32), array([0.8], dtype=float32)], np.float32(5.0))",
)
def clip_by_global_norm(
    t_list: Any, clip_norm: Any, use_norm: Any = None, name: str | None = None
) -> tuple[list[Any], Any]:
    """Tensors scaled down so that their common norm is at most ``clip_norm``, and that norm; None stays None."""
    _need_list(t_list)
    with get_default_graph().name_scope(name or "clip_by_global_norm"):
        norm = global_norm(t_list) if use_norm is None else use_norm
        return [None if value is None else _scaled(value, clip_norm, norm) for value in t_list], norm


@keeps_slices
@operation("ScaleByNorm")
def _scaled(t: Any, clip_norm: Any, norm: Any) -> Any:
    scale = apply("divide", clip_norm, ops.maximum(norm, clip_norm))
    if hasattr(norm, "dtype"):  # of a norm that is no number nothing is kept, which tells of it
        scale = ops.where(ops.isfinite(norm), scale, float("nan"))
    return apply("multiply", t, ops.cast(scale, t.dtype) if hasattr(scale, "dtype") else scale)
