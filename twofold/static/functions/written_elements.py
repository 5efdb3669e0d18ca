"""Which elements of a tensor array are written, where only a run tells: a vector of booleans beside the elements."""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from typing import Any

from twofold.dtypes import bool_, int64
from twofold.ops.base import apply, ops


def marks_of(elements: Any) -> Any:
    """What tells of the elements of an array which are written, or None where nothing is known of it in a run."""
    return getattr(elements, "_written_marks", None)


def mark(elements: Any, marks: Any) -> Any:
    """The elements of an array, of which ``marks`` are written."""
    elements._written_marks = marks
    return elements


def first_marks(rows: Any, known: Collection[int] | None) -> Any:
    """The marks of an array of ``rows`` elements, of which those ``known`` are written; None: all."""
    if not known:
        return ops.full((rows,), known is None, dtype=bool_)
    positions = ops.arange(rows)
    found = ops.full((rows,), False, dtype=bool_)
    for index in sorted(known):
        found = ops.logical_or(found, ops.equal(positions, index))
    return found


def longer_marks(marks: Any, rows: Any) -> Any:
    """The marks of an array that has grown to ``rows`` elements."""
    missing = rows - marks.shape[0]
    if missing <= 0:
        return marks
    return ops.concatenate([marks, ops.full((missing,), False, dtype=bool_)], 0)


def write_once(marks: Any, rows: Any, positions: Any) -> tuple[Any, Any]:
    """The positions of elements, which a run finds to be unwritten, and the marks after a write to them.

    Args:
        marks: Of the array before; it may have grown since.
        rows: The number of its elements.
        positions: A vector of integers.
    """
    gather = import_module("twofold.ops.indexing.gather")  # which a program without arrays does not load
    nonnegative = gather.NONNEGATIVE
    positions, marks = ops.cast(positions, int64), longer_marks(marks, rows)
    count = positions.shape[0]
    line, index = ops.reshape(marks, (1, rows, 1)), ops.reshape(positions, (1, count, 1))
    found = ops.reshape(apply("gather_block", line, index, attrs=(nonnegative,)), (count,))
    checked = apply("unwritten", positions, ops.cast(found, int64))
    written = ops.full((1, count, 1), True, dtype=bool_)
    after = apply("scatter_set", line, ops.reshape(checked, (1, count, 1)), written, attrs=(nonnegative,))
    return checked, ops.reshape(after, (rows,))
