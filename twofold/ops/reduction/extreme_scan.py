"""Running maxima and minima with their positions, and the running log of a sum of exponentials.

Primitive form ``[outer, length, inner]``, always in the order of the axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, prod
from typing import Any

import numpy

from twofold.dtypes import DType, bool_, default_float, int32, int64, uint8
from twofold.errors import DTypeError
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.types import tensor_type
from twofold.ops.base import apply, composite, convert, custom, normalize_axis, ops, public, strong
from twofold.ops.docstrings import shown
from twofold.ops.examples import example
from twofold.ops.reduction.reductions import ValuesAndIndices
from twofold.ops.reduction.scan import SHAPES, Scan, both_ways, delayed, doubled, flip
from twofold.ops.return_types import return_type
from twofold.ops.shape.movement import axis_numbers


class ExtremeIndex(Scan):
    """The position of the extreme element so far along the middle axis, int64; the last of equal ones, NaN wins."""

    differentiable = False
    better: str
    identity: str
    running: Callable[..., Any]

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        return make_node(self, attrs, tuple(inputs), tensor_type(int64, inputs[0].shape))

    def first(self, b: Any, dtype: DType, lanes: int) -> list[Any]:
        worst = b.identity(self.identity, dtype)
        return [b.splat(worst) if lanes > 1 else worst, b.const(0, int64, lanes)]

    def advance(self, b: Any, k: Any, state: Sequence[Any], *values: Any) -> list[Any]:
        (value,), (best, position) = values, state
        wins = b.cmp(self.better, value, best)
        if value.dtype.kind == "f":
            wins = b.or_(wins, b.is_nan(value))
        here = b.splat(k) if value.lanes > 1 else k
        return [b.select(wins, value, best), b.select(wins, here, position)]

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        (x,) = arrays
        numbers = numpy.broadcast_to(numpy.arange(x.shape[1])[:, None], x.shape)
        reached = (x == self.running(x, 1)) | numpy.isnan(x)
        return numpy.maximum.accumulate(numpy.where(reached, numbers, 0), 1)

    def samples(self) -> Sequence[Any]:
        special = numpy.array([1.0, 3.0, 3.0, -numpy.inf, numpy.nan, 5.0, numpy.nan, 1.0], numpy.float32)
        return [
            *both_ways(SHAPES, 1),
            example((), special.reshape(1, 8, 1)),
            example((), -special.reshape(1, 8, 1)),
            example((), numpy.array([[[3, 1], [3, 0], [2, 5]]])),
        ]


@custom
class running_argmax(ExtremeIndex):
    """The position of the largest element up to each position of the middle axis."""

    better, identity = "ge", "max"
    running = staticmethod(numpy.maximum.accumulate)


@custom
class running_argmin(ExtremeIndex):
    """The position of the smallest element up to each position of the middle axis."""

    better, identity = "le", "min"
    running = staticmethod(numpy.minimum.accumulate)


def _has_room(dtype: DType) -> bool:
    """Whether a signed integer of 64 bits holds an element and a position."""
    return dtype.itemsize < 4 or (dtype.itemsize == 4 and dtype.kind != "u")


class PackedExtremeIndex(ExtremeIndex):
    """The same in rows of less than 2**32: each element of at most 32 bits and its position are one ordered integer.

    So a step is one maximum, which waits for the one before for a fraction of the time.
    """

    def first(self, b: Any, dtype: DType, lanes: int) -> list[Any]:
        if not _has_room(dtype):
            return super().first(b, dtype, lanes)
        return [b.const(-(2**63), int64, lanes), b.const(0, int64, lanes)]

    def advance(self, b: Any, k: Any, state: Sequence[Any], *values: Any) -> list[Any]:
        if not _has_room(values[0].dtype):
            return super().advance(b, k, state, *values)
        (value,), here = values, b.splat(k) if values[0].lanes > 1 else k
        order = value
        if value.dtype.kind == "f":
            bits = b.bitcast(b.add(value, 0.0), int32)  # of -0.0 makes 0.0
            order = b.xor(bits, b.and_(b.shr(bits, 31), 2**31 - 1))
        order = b.not_(order) if self.identity == "min" else order
        if value.dtype.kind == "f":
            order = b.select(b.is_nan(value), 2**31 - 1, order)
        best = b.maximum(state[0], b.or_(b.shl(b.cast(order, int64), 32), here))
        return [best, b.and_(best, 2**32 - 1)]


@custom
class packed_running_argmax(PackedExtremeIndex):
    """As ``running_argmax``."""

    better, identity = "ge", "max"
    running = staticmethod(numpy.maximum.accumulate)


@custom
class packed_running_argmin(PackedExtremeIndex):
    """As ``running_argmin``."""

    better, identity = "le", "min"
    running = staticmethod(numpy.minimum.accumulate)


def _extreme_index(primitive: str, flat: Node) -> Any:
    """The positions, by integers with room for an element and its position where that suffices."""
    return apply(f"packed_{primitive}" if flat.shape[1] < 2**32 else primitive, flat)


@custom
class cumulative_logsumexp(Scan):
    """``log(sum(exp(x)))`` of the elements up to each position of the middle axis, from pairs: no overflow."""

    kinds = "f"
    start = -inf
    rows_are_lanes = True

    def next(self, b: Any, state: Any, *values: Any) -> Any:
        high, low = b.maximum(state, values[0]), b.minimum(state, values[0])
        near = b.add(high, b.math("log1p", b.math("exp", b.sub(low, high))))
        return b.select(b.cmp("eq", low, high), b.add(high, float(numpy.log(2.0))), near)

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        # sum over k >= i of ct[k] * exp(x[i] - y[k]), as a recurrence in which no exponent is positive
        x = inputs[0]
        ct, y, wide = (convert(value, x.dtype.compute) for value in (cotangent, output, x))
        back = flip(y)
        after = ops.where(ops.equal(axis_numbers(1, y.shape), 0), back, delayed(back, 0))
        later = flip(apply("linear_scan", _ratio(back, after), flip(ct)))
        return (convert(_ratio(wide, y) * later, x.dtype),)

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        return numpy.logaddexp.accumulate(arrays[0], 1)

    def samples(self) -> Sequence[Any]:
        special = numpy.array([-numpy.inf, -numpy.inf, 0.0, 0.0, 88.0, 300.0, numpy.inf, 1.0], numpy.float32)
        return [*both_ways(SHAPES, 1), example((), special.reshape(1, 8, 1), smooth=False)]


def _ratio(a: Any, b: Any) -> Any:
    """``exp(a - b)``, 1 where both are the same infinity."""
    return ops.exp(ops.where(ops.equal(a, b), 0, a - b))


def _blocks(x: Any, axis: int) -> Any:
    return ops.reshape(x, (prod(x.shape[:axis]), x.shape[axis], prod(x.shape[axis + 1 :])))


def _positions(name: str, primitive: str) -> Any:
    class body:
        functions = ()
        methods = ()
        signature = "input"
        differentiable = False

        def compute(x: Any, axis: int) -> Any:
            x = strong(x)
            if x.dtype.kind == "c":
                raise DTypeError(f"takes real numbers, not {x.dtype.name}", "Take .abs() first.")
            x = convert(x, uint8) if x.dtype is bool_ else x
            flat = ops.reshape(x, (1, 1, 1)) if not x.ndim else _blocks(x, axis)
            return ops.reshape(_extreme_index(primitive, flat), x.shape)

        samples = lambda: [
            example((1,), (3, 17)),
            example((0,), (2, 3, 4)),
            example((0,), ()),
            example((0,), numpy.array([True, False, True])),
        ]

    body.__name__, body.__doc__ = name, f"The positions that ``{primitive}`` finds along an axis, int64."
    return composite(body)


cummax_indices = _positions("cummax_indices", "running_argmax")
cummin_indices = _positions("cummin_indices", "running_argmin")


def _running(name: str, offsets: str, description: str, extremes: list[int], positions: list[int]) -> Any:
    kind = return_type(name, ValuesAndIndices)

    def running(input: Any, dim: int) -> ValuesAndIndices:
        axis = normalize_axis(dim, len(input.shape))
        indices = apply(offsets, input, attrs=(axis,))
        return kind(ops.gather(input, axis, indices), indices)

    running.__name__ = name
    running.__doc__ = shown(
        f"The {description} element up to each position along ``dim``, and its position (of equal ones the last).",
        f">>> values, positions = torch.{name}(torch.tensor([2, 1, 3]), dim=0)",
        ">>> values.tolist(), positions.tolist()",
        f"({extremes}, {positions})",
    )
    return public(name, methods=(name,))(running)


cummax = _running("cummax", "cummax_indices", "largest", [2, 2, 3], [0, 0, 2])
cummin = _running("cummin", "cummin_indices", "smallest", [2, 1, 1], [0, 1, 1])


@composite
class logcumsumexp:
    """``log(cumsum(exp(input)))`` along ``dim``, without overflow; integers are computed in float32.

    Of complex numbers it is one of the logarithms: the imaginary part need not lie between -pi and pi.

    >>> import twofold as torch
    >>> torch.logcumsumexp(torch.tensor([1000.0, 1000.0, 0.0]), 0)
    tensor([1000.0000, 1000.6932, 1000.6932])
    """

    methods = ("logcumsumexp",)

    def call(input: Any, dim: int) -> Any:
        return apply("logcumsumexp", input, attrs=(normalize_axis(dim, len(input.shape)),))

    def compute(x: Any, axis: int) -> Any:
        x = strong(x)
        x = x if x.dtype.kind in "fc" else convert(x, default_float())
        flat = ops.reshape(x, (1, 1, 1)) if not x.ndim else _blocks(x, axis)
        sums = doubled(flat, "logaddexp") if x.dtype.kind == "c" else apply("cumulative_logsumexp", flat)
        return ops.reshape(sums, x.shape)

    reference = lambda x, axis: numpy.logaddexp.accumulate(x * 1.0, axis) if x.ndim else x * 1.0
    samples = lambda: [
        example((1,), (3, 17)),
        example((0,), (2, 3, 4)),
        example((0,), ()),
        example((0,), numpy.array([1, 2, 3])),
    ]
