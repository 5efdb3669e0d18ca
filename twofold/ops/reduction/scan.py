"""Running sums and products along an axis, always accumulated in the order of the axis.

Primitive form ``[outer, length, inner]``; half types are accumulated in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy

from twofold.dtypes import DType, as_dtype, bool_, complex64, int64
from twofold.errors import DTypeError
from twofold.ir.bind import constant
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.types import TensorType
from twofold.ops.base import Custom, apply, composite, convert, custom, normalize_axis, ops, strong
from twofold.ops.docstrings import shown
from twofold.ops.examples import example
from twofold.ops.shape.movement import slice_axis

_LANES = 16

_ROWS = 4
"""Rows whose elements follow each other that are taken side by side."""


class Scan(Custom):
    """A state that one element after another updates, and that is the result at each position."""

    functions = ()
    start: float = 0.0
    rows_are_lanes = False

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        return make_node(self, attrs, tuple(inputs), inputs[0].type)

    def first(self, b: Any, dtype: DType, lanes: int) -> list[Any]:
        """Emit the state before all elements; the last of its values is the result."""
        return [b.const(self.start if dtype.kind == "f" else int(self.start), dtype, lanes)]

    def advance(self, b: Any, k: Any, state: Sequence[Any], *values: Any) -> list[Any]:
        """Emit the state after element ``k``."""
        return [self.next(b, state[0], *values)]

    def next(self, b: Any, state: Any, *values: Any) -> Any:
        """Emit the state after an element, if it is one value."""
        raise NotImplementedError

    def together(self, output: TensorType) -> int:
        """How many rows go on side by side, as one alone waits for its last step."""
        outer, _, inner = output.shape
        rows = _LANES if self.rows_are_lanes else _ROWS
        return rows if inner == 1 and outer >= rows else 1

    def parameters(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[int, ...]:
        outer, length, inner = output.shape
        return (length, inner, -(-inner // _LANES), outer)

    def work(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> tuple[int, int]:
        (outer, length, inner), rows = output.shape, self.together(output)
        return -(-outer // rows) * -(-inner // _LANES), max(1, 4096 // max(length * rows, 1))

    def code_key(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[Any, ...]:
        return output.shape[2] == 1, self.together(output) > 1

    def emit(self, builder: Any, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> None:
        b, rows = builder, self.together(output)
        with b.loop(b.begin, b.end) as item:
            if rows == 1:
                self._emit_columns(
                    b, item, (inputs[0].dtype, output.dtype), output.shape[2] == 1, len(inputs)
                )
            elif self.rows_are_lanes:
                self._emit_lanes(b, item, (inputs[0].dtype, output.dtype), len(inputs))
            else:
                self._emit_rows(b, item, (inputs[0].dtype, output.dtype), len(inputs))

    def _emit_columns(self, b: Any, item: Any, dtypes: tuple[DType, DType], alone: bool, inputs: int) -> None:
        """Sixteen neighbouring columns, or one."""
        (dtype, result), lanes = dtypes, 1 if alone else _LANES
        length, inner, blocks = b.param(0), b.param(1), b.param(2)
        outer = b.idiv(item, blocks)
        column = b.mul(b.sub(item, b.mul(outer, blocks)), _LANES)
        mask = None if alone else b.lane_mask(b.sub(inner, column))
        base = b.add(b.mul(b.mul(outer, length), inner), column)
        with b.loop(0, length, carry=self.first(b, dtype.compute, lanes)) as (k, state):
            at = b.add(base, b.mul(k, inner))
            read = [b.load(b.input(j), at, dtype, lanes, mask=mask) for j in range(inputs)]
            after = self.advance(b, k, state, *(b.cast(value, dtype.compute) for value in read))
            b.store(b.buffer(inputs), at, b.cast(after[-1], result), mask=mask)
            b.loop_next(after)

    def _emit_lanes(self, b: Any, item: Any, dtypes: tuple[DType, DType], inputs: int) -> None:
        """Sixteen rows as the lanes of vectors, for steps that take longer than to collect their elements."""
        (dtype, result), length, first = dtypes, b.param(0), b.mul(item, _LANES)
        mask, base = b.lane_mask(b.sub(b.param(3), first)), b.mul(first, length)
        with b.loop(0, length, carry=self.first(b, dtype.compute, _LANES)) as (k, state):
            at = b.add(base, k)
            read = [b.load_strided(b.input(j), at, length, dtype, mask) for j in range(inputs)]
            after = self.advance(b, k, state, *(b.cast(value, dtype.compute) for value in read))
            b.store_strided(b.buffer(inputs), at, length, b.cast(after[-1], result), mask)
            b.loop_next(after)

    def _emit_rows(self, b: Any, item: Any, dtypes: tuple[DType, DType], inputs: int) -> None:
        """Rows as numbers of their own; those past the end repeat the last one."""
        (dtype, result), length, last = dtypes, b.param(0), b.sub(b.param(3), 1)
        rows = [b.minimum(b.add(b.mul(item, _ROWS), number), last) for number in range(_ROWS)]
        bases = [b.mul(row, length) for row in rows]
        start = self.first(b, dtype.compute, 1)
        with b.loop(0, length, carry=start * _ROWS) as (k, states):
            # read before anything is stored: where rows are pages apart, a load would wait for the store before it
            read = [[b.load(b.input(j), b.add(base, k), dtype) for j in range(inputs)] for base in bases]
            after = [
                self.advance(b, k, state, *(b.cast(value, dtype.compute) for value in values))
                for state, values in zip(
                    (states[n : n + len(start)] for n in range(0, len(states), len(start))), read, strict=True
                )
            ]
            for base, state in zip(bases, after, strict=True):
                b.store(b.buffer(inputs), b.add(base, k), b.cast(state[-1], result))
            b.loop_next([value for state in after for value in state])


def both_ways(shapes: Sequence[tuple[int, ...]], count: int) -> list[Any]:
    """Sample calls of ``count`` inputs of one shape."""
    return [example((), *[shape] * count) for shape in shapes]


SHAPES = ((3, 17, 1), (2, 5, 19), (1, 4, 16), (2, 0, 3), (0, 3, 1), (19, 5, 1))


def flip(x: Any) -> Any:
    """The middle axis reversed."""
    return apply("flip", x, attrs=((1,),))


def delayed(x: Any, first: float) -> Any:
    """Each element one position later along the middle axis, with ``first`` in front."""
    length = x.shape[1]
    if length == 0:
        return x
    head = slice_axis(x, 1, constant(0, int64), length - 1)
    return apply("pad_block", head, first, constant(1, int64), attrs=(x.shape, (1, 1, 1), (1,)))


@custom
class cumulative_sum(Scan):
    """Sums of the elements up to each position of the middle axis."""

    kinds = "iuf"

    def next(self, b: Any, state: Any, *values: Any) -> Any:
        return b.add(state, values[0])

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        return (flip(apply("cumulative_sum", flip(cotangent))),)

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        return numpy.cumsum(arrays[0], 1)

    def samples(self) -> Sequence[Any]:
        return [*both_ways(SHAPES, 1), example((), numpy.arange(6).reshape(1, 3, 2))]


@custom
class cumulative_product(Scan):
    """Products of the elements up to each position of the middle axis."""

    kinds = "iuf"
    start = 1.0

    def next(self, b: Any, state: Any, *values: Any) -> Any:
        return b.mul(state, values[0])

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        # sum over k >= i of ct[k] * x[i + 1] ... x[k], as a recurrence: no division, so zeros are harmless
        (x,) = inputs
        later = apply("linear_scan", delayed(flip(x), 0), flip(cotangent))
        return (delayed(output, 1) * flip(later),)

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        return numpy.cumprod(arrays[0], 1)

    def samples(self) -> Sequence[Any]:
        return [*both_ways(SHAPES, 1), example((), numpy.array([[[2.0], [0.0], [3.0], [0.0]]]))]


def products_of_others(x: Any) -> Any:
    """For each element the product of all others along the middle axis."""
    before = delayed(apply("cumulative_product", x), 1)
    return before * flip(delayed(apply("cumulative_product", flip(x)), 1))


@custom
class linear_scan(Scan):
    """``s[k] = a[k] * s[k - 1] + b[k]`` along the middle axis, from 0; inputs ``(a, b)``."""

    kinds = "f"

    def next(self, b: Any, state: Any, *values: Any) -> Any:
        return b.add(b.mul(state, values[0]), values[1])

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        share = flip(apply("linear_scan", delayed(flip(inputs[0]), 0), flip(cotangent)))
        return share * delayed(output, 0), share

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        a, b = arrays
        result, state = numpy.zeros_like(b), 0.0
        for k in range(b.shape[1]):
            state = a[:, k] * state + b[:, k]
            result[:, k] = state
        return result

    def samples(self) -> Sequence[Any]:
        return both_ways(SHAPES, 2)


def _complex_sums(z: Any) -> Any:
    return ops.complex(apply("cumulative_sum", ops.real(z)), apply("cumulative_sum", ops.imag(z)))


def doubled(z: Any, combine: str) -> Any:
    """Running results of an operation along the middle axis, by doubling (Hillis and Steele 1986).

    After step k each position holds the last 2**k elements, combined.
    """
    length, step = z.shape[1], 1
    while step < length:
        later = apply(combine, ops.narrow(z, 1, step, length - step), ops.narrow(z, 1, 0, length - step))
        z = ops.concat([ops.narrow(z, 1, 0, step), later], 1)
        step *= 2
    return z


def _along_axis(
    name: str,
    primitive: str,
    on_complex: Any,
    function: Any,
    doc: str,
    needs: tuple[float, str] = (2, ""),
) -> Any:
    class body:
        memory = needs
        methods = (name,)
        inplace = True

        def call(input: Any, dim: int, *, dtype: Any = None) -> Any:
            wanted = None if dtype is None else as_dtype(dtype)
            if wanted is bool_:
                raise DTypeError(f"{name} has no result of dtype bool", "Use an integer dtype.")
            return apply(name, input, attrs=(normalize_axis(dim, len(input.shape)), wanted))

        def compute(x: Any, axis: int, dtype: DType | None) -> Any:
            x = strong(x)
            x = convert(x, dtype or (x.dtype if x.dtype.is_differentiable else int64))
            if not x.ndim:
                return x
            flat = ops.reshape(x, (prod(x.shape[:axis]), x.shape[axis], prod(x.shape[axis + 1 :])))
            run = apply(primitive, flat) if x.dtype.kind != "c" else on_complex(flat)
            return ops.reshape(run, x.shape)

        reference = lambda x, axis, dtype: function(x, axis) if x.ndim else x
        samples = lambda: [
            example((1, None), (3, 17)),
            example((0, None), (5, 3)),
            example((0, None), ()),
            example((0, None), numpy.array([1, 2, 3])),
            example((1, None), (2, 3, 4)),
            example((1, None), (2, 5), dtype=complex64),
        ]

    body.__name__, body.__doc__ = name, doc
    return composite(body)


cumsum = _along_axis(
    "cumsum",
    "cumulative_sum",
    _complex_sums,
    numpy.cumsum,
    shown(
        "Sums of the elements up to each position along ``dim``; integers and bools are summed in int64.",
        ">>> torch.cumsum(torch.tensor([[1, 2, 3], [4, 5, 6]]), dim=1)",
        "tensor([[ 1,  3,  6],",
        "        [ 4,  9, 15]])",
    ),
)
cumprod = _along_axis(
    "cumprod",
    "cumulative_product",
    lambda z: doubled(z, "multiply"),
    numpy.cumprod,
    shown(
        "Products of the elements up to each position along ``dim``; integers are multiplied in int64.",
        ">>> torch.cumprod(torch.tensor([1, 2, 3, 4]), dim=0)",
        "tensor([ 1,  2,  6, 24])",
    ),
    (2.5, "of complex numbers the two last steps are stored"),
)
