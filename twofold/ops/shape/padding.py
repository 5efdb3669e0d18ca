"""Elements added around a tensor, or taken off: ``pad`` with all its modes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy

from twofold.dtypes import int64
from twofold.errors import ArgumentError, ShapeError
from twofold.ir.bind import constant
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.types import TensorType, tensor_type
from twofold.ops import kernels
from twofold.ops.base import Custom, apply, custom, ops, public, strong
from twofold.ops.examples import example
from twofold.ops.promotion import need_fitting
from twofold.ops.shape import shapes
from twofold.ops.shape.movement import slice_axis

Widths = tuple[int, int, int]
"""An axis, and what is added (negative: taken off) before and after it."""


def _widths(input: Any, pad: Sequence[int]) -> list[Widths]:
    """PyTorch's flat list, which begins at the last axis."""
    given = shapes.integers((tuple(pad),))
    ndim = len(input.shape)
    if len(given) % 2 or len(given) > 2 * ndim:
        raise ArgumentError(
            f"{len(given)} pad widths for {ndim} axes", "Give (low, high) for each of the last axes."
        )
    return [(ndim - 1 - k, given[2 * k], given[2 * k + 1]) for k in range(len(given) // 2)]


def _cropped(input: Any, pairs: Sequence[Widths]) -> Any:
    """What is left where widths are negative."""
    for axis, low, high in pairs:
        cut_low, cut_high = max(-low, 0), max(-high, 0)
        size = input.shape[axis]
        if cut_low + cut_high > size:
            raise ShapeError(
                f"pad widths {low}, {high} leave {size - cut_low - cut_high} elements of axis {axis}",
                f"Take off at most its size, {size}.",
            )
        input = slice_axis(input, axis, cut_low, size - cut_low - cut_high)
    return input


def _filled(input: Any, pairs: Sequence[Widths], value: Any) -> Any:
    """The input with ``value`` around it."""
    need_fitting(value, input.dtype)
    input = _cropped(input, pairs)
    added = sorted((axis, max(low, 0), max(high, 0)) for axis, low, high in pairs if low > 0 or high > 0)
    if not added:
        return ops.copied(input)
    shape = list(input.shape)
    for axis, low, high in added:
        shape[axis] += low + high
    attrs = (tuple(shape), (1,) * len(shape), tuple(axis for axis, _, _ in added))
    return apply(
        "pad_block", input, 0 if value is None else value, *[low for _, low, _ in added], attrs=attrs
    )


_LIMITS: dict[str, Callable[[int], int | None]] = {
    "reflect": lambda size: size - 1,
    "replicate": lambda size: None if size else 0,
    "circular": lambda size: size,
}
"""The widest that an axis of a size is padded with its own elements."""


class Rows(NamedTuple):
    """Adjacent axes taken as one: their elements in the result and in the input, and those added in front."""

    outer: int
    inner: int
    low: int
    padded: bool


def _rows(shape: Sequence[int], lows: Sequence[int], highs: Sequence[int]) -> list[Rows]:
    """The axes of an input, those that are not padded merged into those before."""
    found: list[Rows] = []
    for size, low, high in zip(shape, lows, highs, strict=True):
        padded = bool(low or high)
        if found and not padded and not found[-1].padded:
            found[-1] = found[-1]._replace(outer=found[-1].outer * size, inner=found[-1].inner * size)
        else:
            found.append(Rows(low + size + high, size, low, padded))
    return found


def _source(b: Any, mode: str, index: Any, size: Any) -> Any:
    """Emit which element is at an index that counts from the first one of the input."""
    last = b.sub(size, 1)
    if mode == "reflect":
        return b.sub(last, b.abs(b.sub(last, b.abs(index))))
    if mode == "replicate":
        return kernels.clamp(b, index, b.const(0, int64), last)
    index = b.select(b.cmp("lt", index, 0), b.add(index, size), index)
    return b.select(b.cmp("ge", index, size), b.sub(index, size), index)


@custom
class pad_with_own(Custom):
    """The input with its own elements around it; attributes ``(mode, widths in front, widths behind)`` of all axes."""

    functions = ()

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        x, (_, lows, highs) = strong(inputs[0]), attrs
        shape = tuple([low + size + high for size, low, high in zip(x.shape, lows, highs, strict=True)])
        return make_node(self, attrs, (x,), tensor_type(x.dtype, shape))

    def batching_rule(
        self, node: Node, values: Sequence[Node], flags: Sequence[bool], size: int
    ) -> Node | None:
        """Samples are one more axis in front."""
        mode, lows, highs = node.attrs
        return make_node(
            self, (mode, (0, *lows), (0, *highs)), tuple(values), tensor_type(node.dtype, (size, *node.shape))
        )

    def parameters(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[int, ...]:
        return tuple(number for rows in _rows(inputs[0].shape, *attrs[1:]) for number in rows[:3])

    def work(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> tuple[int, int]:
        *above, last = _rows(inputs[0].shape, *attrs[1:])
        return prod(rows.outer for rows in above), kernels.grain(16384, last.outer)

    def code_key(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[Any, ...]:
        return attrs[0], tuple(rows.padded for rows in _rows(inputs[0].shape, *attrs[1:]))

    def emit(self, builder: Any, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> None:
        b, dtype, mode = builder, output.dtype, attrs[0]
        *above, last = _rows(inputs[0].shape, *attrs[1:])
        numbers = [[b.param(3 * k + part) for part in range(3)] for k in range(len(above) + 1)]
        (outer, inner, low), rest, start = numbers.pop(), b.begin, []
        for size, _, _ in reversed(numbers):
            rest, position = kernels.split(b, rest, size)
            start.append(position)
        with b.loop(b.begin, b.end, carry=start[::-1]) as (row, positions):
            source, following, more = b.const(0, int64), [], None
            for rows, (_, size, before), position in zip(above, numbers, positions, strict=True):
                index = _source(b, mode, b.sub(position, before), size) if rows.padded else position
                source = b.add(b.mul(source, size), index)
            for (size, _, _), position in zip(reversed(numbers), reversed(positions), strict=True):
                moved = b.add(position, 1) if more is None else b.select(more, b.add(position, 1), position)
                wraps = b.cmp("ge", moved, size)
                following.append(b.select(wraps, 0, moved))
                more = wraps
            self._row(
                b, dtype, mode, (b.mul(row, outer), b.mul(source, inner)), (outer, inner, low), last.padded
            )
            b.loop_next(following[::-1])

    def _row(
        self, b: Any, dtype: Any, mode: str, where: tuple[Any, Any], sizes: tuple[Any, Any, Any], padded: bool
    ) -> None:
        """Emit a row of the result; ``where`` is where it and its elements in the input begin."""
        (at, source), (outer, inner, low) = where, sizes
        after = b.add(low, inner)
        for first, end in ((0, low), (after, outer)) if padded else ():
            with b.loop(first, end) as j:
                value = b.load(b.input(0), b.add(source, _source(b, mode, b.sub(j, low), inner)), dtype)
                b.store(b.buffer(1), b.add(at, j), value)
        kernels.copy(b, dtype, b.buffer(1), b.add(at, low) if padded else at, b.input(0), source, inner)

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        mode, *widths = attrs
        for axis, (size, low, high) in enumerate(zip(inputs[0].shape, *widths, strict=True)):
            if low or high:
                cotangent = _folded(cotangent, axis, (low, size, high), mode)
        return (cotangent,)

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        mode, lows, highs = attrs
        names: Any = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
        return numpy.pad(arrays[0], tuple(zip(lows, highs, strict=True)), names[mode])

    def samples(self) -> Sequence[Any]:
        return [
            *(example((mode, (0, 1, 2), (0, 2, 0)), (2, 3, 17)) for mode in _LIMITS),
            *(example((mode, (1, 0, 0), (2, 0, 0)), (4, 2, 3)) for mode in _LIMITS),
            *(example((mode, (3,), (2,)), (4,)) for mode in _LIMITS),
            example(("replicate", (0, 7), (1, 5)), (2, 1)),
            example(("circular", (0, 2), (0, 2)), numpy.array([[True, False, False]])),
        ]


def _folded(cotangent: Node, axis: int, sizes: tuple[int, int, int], mode: str) -> Node:
    """The cotangent of an axis before it was padded: its own, and those of the elements added to both ends."""
    low, size, high = sizes
    ends = slice_axis(cotangent, axis, 0, low), slice_axis(cotangent, axis, low + size, high)
    starts = {"reflect": (1, size - 1 - high), "replicate": (0, size - 1), "circular": (size - low, 0)}
    found = slice_axis(cotangent, axis, low, size)
    for width, end, start in zip((low, high), ends, starts[mode], strict=True):
        if not width:
            continue
        if mode == "reflect":
            end = ops.flip(end, axis)
        elif mode == "replicate":
            end = apply("sum", end, attrs=((axis,), True))
        attrs = found.shape, (1,) * found.ndim, (axis,)
        found = found + apply("pad_block", end, 0, constant(start, int64), attrs=attrs)
    return found


def _pad_with_own(input: Any, pairs: Sequence[Widths], mode: str) -> Any:
    """Axes padded with elements of the input; negative widths count as 0."""
    ndim = len(input.shape)
    lows, highs = [0] * ndim, [0] * ndim
    for axis, low, high in pairs:
        lows[axis], highs[axis] = max(low, 0), max(high, 0)
        size = input.shape[axis]
        limit = _LIMITS[mode](size)
        if limit is not None and max(lows[axis], highs[axis]) > max(limit, 0):
            most = "of an axis with elements" if limit <= 0 and not size else f"of at most {limit}"
            raise ArgumentError(
                f"pad widths {low}, {high} for size {size} with mode {mode!r}", f"Use widths {most}."
            )
    return apply("pad_with_own", input, attrs=(mode, tuple(lows), tuple(highs)))


@public(methods=("pad",))
def pad(input: Any, pad: Sequence[int], mode: str = "constant", value: Any = None) -> Any:
    """The input with elements added (negative: removed) around it.

    ``pad`` holds ``(low, high)`` of the last axis, then of the one before it, and so on, as in PyTorch.
    ``mode`` is ``"constant"`` (``value``, 0 by default), ``"replicate"``, ``"reflect"`` or ``"circular"``.

    >>> import twofold as torch
    >>> torch.nn.functional.pad(torch.tensor([[1, 2]]), (1, 2))
    tensor([[0, 1, 2, 0, 0]])
    >>> torch.nn.functional.pad(torch.tensor([[1, 2, 3]]), (1, 1), mode="reflect")
    tensor([[2, 1, 2, 3, 2]])
    """
    pairs = _widths(input, pad)
    if mode == "constant":
        if isinstance(value, (int, float)):  # as a float it does not wrap round
            need_fitting(float(value), input.dtype)
        return _filled(input, pairs, value)
    if not any(low or high for _, low, high in pairs):
        return ops.copied(input)
    if mode not in _LIMITS:
        raise ArgumentError(f"pad mode {mode!r}", "Use 'constant', 'replicate', 'reflect' or 'circular'.")
    if mode == "circular":  # what is wrapped around is what is left
        input = _cropped(input, pairs)
    input = _pad_with_own(input, pairs, mode)
    return input if mode == "circular" else _cropped(input, pairs)


@public()
def constant_pad_nd(input: Any, pad: Sequence[int], value: Any = 0) -> Any:
    """``pad`` with mode ``"constant"``.

    >>> import twofold as torch
    >>> torch.constant_pad_nd(torch.tensor([1, 2]), (1, 1), 9)
    tensor([9, 1, 2, 9])
    """
    return _filled(input, _widths(input, pad), value)
