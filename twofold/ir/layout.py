"""Strided layouts: the sizes, strides and offset of a tensor in its storage."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from twofold.dtypes import DType
from twofold.ir.types import Shape


class Layout(NamedTuple):
    """A strided layout: element ``index`` is at ``offset + sum(stride * index)``, in elements of ``dtype``."""

    dtype: DType
    size: Shape
    stride: Shape
    offset: int = 0

    @property
    def is_row_major(self) -> bool:
        """Whether the layout is dense and row-major."""
        return is_dense(self.size, self.stride, range(len(self.size)))

    @property
    def repeats(self) -> bool:
        """Whether an axis is broadcast, with stride 0."""
        return any(step == 0 and size > 1 for size, step in zip(self.size, self.stride))

    def reshaped(self, size: Shape) -> Layout | None:
        """The layout of a reshape; None if strides cannot express it."""
        stride = merged_strides(self.size, self.stride, size)
        return None if stride is None else self._replace(size=size, stride=stride)

    def expanded(self, size: Shape) -> Layout:
        """The layout of a broadcast to ``size``."""
        extra, stride = len(size) - len(self.size), [0] * len(size)
        if not self.size:
            return self._replace(size=size, stride=tuple(stride))
        for axis in range(len(size) - 1, -1, -1):
            if axis >= extra:
                own, step = self.size[axis - extra], self.stride[axis - extra]
            else:
                own, step = 1, size[axis + 1] * stride[axis + 1] if axis + 1 < len(size) else 1
            stride[axis] = step if own == size[axis] else 0
        return self._replace(size=size, stride=tuple(stride))


def row_major(size: Sequence[int]) -> Shape:
    """The strides of a dense tensor of ``size`` in row-major order.

    >>> row_major((2, 3, 5))
    (15, 5, 1)
    """
    steps, step = [], 1
    for length in reversed(size):
        steps.append(step)
        step *= max(length, 1)
    return tuple(reversed(steps))


def is_dense(size: Shape, stride: Shape, order: Sequence[int]) -> bool:
    """Whether a layout is dense.

    Args:
        size: The shape.
        stride: The strides.
        order: The axes from the outermost to the innermost.
    """
    if 0 in size:
        return True
    expected = 1
    for axis in reversed(order):
        if size[axis] != 1:
            if stride[axis] != expected:
                return False
            expected *= size[axis]
    return True


def merged_strides(size: Shape, stride: Shape, wanted: Shape) -> Shape | None:
    """The strides of a reshape without a copy.

    Adjacent axes with evenly spaced elements are merged; the new axes must divide each merged axis.

    Args:
        size: The shape.
        stride: The strides.
        wanted: The new shape, with as many elements.

    Returns:
        The new strides; None if a copy is needed.

    >>> merged_strides((4, 3), (6, 2), (12,)), merged_strides((2, 3), (1, 2), (6,))
    ((2,), None)
    """
    if not size:
        return (1,) * len(wanted)
    if 0 in size:
        return stride if size == wanted else row_major(wanted)
    found = [0] * len(wanted)
    position, axis = len(wanted) - 1, len(size) - 1
    while axis >= 0:
        base, count = stride[axis], size[axis]
        while axis > 0 and (size[axis - 1] == 1 or stride[axis - 1] == count * base):
            axis -= 1
            count *= size[axis]
        filled = 1
        while position >= 0 and (filled < count or wanted[position] == 1):
            found[position] = filled * base
            filled *= wanted[position]
            position -= 1
        if filled != count:
            return None
        axis -= 1
    return tuple(found) if position < 0 else None


def dense_order(size: Shape, stride: Shape) -> tuple[int, ...]:
    """The axes by decreasing stride; of equal strides the larger axis, then the first, comes first."""
    return tuple(sorted(range(len(size)), key=lambda axis: (-stride[axis], -size[axis], axis)))


def span(layout: Layout) -> tuple[int, int]:
    """The range ``(first, end)`` of the storage that a layout refers to, in elements."""
    if not prod(layout.size):
        return layout.offset, layout.offset
    ends = [(size - 1) * step for size, step in zip(layout.size, layout.stride)]
    return layout.offset + sum(min(end, 0) for end in ends), layout.offset + sum(
        max(end, 0) for end in ends
    ) + 1
