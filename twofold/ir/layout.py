"""Where the elements of a tensor lie in the storage that it shows: sizes, strides and offset."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from twofold.dtypes import DType
from twofold.ir.types import Shape


class Layout(NamedTuple):
    """Element ``index`` lies ``offset + sum(stride * index)`` elements of ``dtype`` behind the start of the storage."""

    dtype: DType
    size: Shape
    stride: Shape
    offset: int = 0

    @property
    def is_row_major(self) -> bool:
        """Whether the elements lie side by side in row-major order."""
        return is_dense(self.size, self.stride, range(len(self.size)))

    @property
    def repeats(self) -> bool:
        """Whether an axis shows one element several times."""
        return any(step == 0 and size > 1 for size, step in zip(self.size, self.stride))

    def reshaped(self, size: Shape) -> Layout | None:
        """The same elements in row-major order in another shape; None where no strides show them."""
        stride = merged_strides(self.size, self.stride, size)
        return None if stride is None else self._replace(size=size, stride=stride)

    def expanded(self, size: Shape) -> Layout:
        """With new axes in front and axes of size 1 repeated."""
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
    """Whether the elements lie side by side when the axes are taken in ``order``, the last one innermost."""
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
    """The strides that show the elements in the shape ``wanted``, in row-major order; None if there are none.

    Axes between which the elements are evenly spaced form a run; the new axes must divide each run.

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
    """The axes from the largest stride to the smallest; of equal ones the larger axis, then the first, comes first."""
    return tuple(sorted(range(len(size)), key=lambda axis: (-stride[axis], -size[axis], axis)))


def span(layout: Layout) -> tuple[int, int]:
    """The first element that the layout shows, and the one behind the last, counted from the start of the storage."""
    if not prod(layout.size):
        return layout.offset, layout.offset
    ends = [(size - 1) * step for size, step in zip(layout.size, layout.stride)]
    return layout.offset + sum(min(end, 0) for end in ends), layout.offset + sum(
        max(end, 0) for end in ends
    ) + 1
