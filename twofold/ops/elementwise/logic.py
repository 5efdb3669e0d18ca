"""Element-wise comparison, logic, bits and selection."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy

from twofold.dtypes import (
    DType,
    bool_,
    int16,
    int32,
    int64,
    uint8,
)  # fmt: skip
from twofold.errors import ArgumentError, DTypeError
from twofold.ir.node import Attributes, Node
from twofold.ops.base import Elementwise, apply, elementwise, logical, ops, publish, to_bool
from twofold.ops.elementwise import complex_functions
from twofold.ops.promotion import need_beside, need_fitting_tensor
from twofold.ops.samples import reals


class _Comparison:
    signature = "input, other"
    result_dtype = to_bool
    differentiable = False


class _Logical:
    signature = "input, other"
    kinds = "biufc"
    result_dtype = logical
    differentiable = False


class _Bitwise:
    signature = "input, other"
    reflected = True
    kinds = "biu"
    differentiable = False


@elementwise
class equal(_Comparison):
    """Whether the two are equal; NaN equals nothing.

    >>> import twofold as torch
    >>> torch.eq(torch.tensor([1.0, 2.0, float("nan")]), torch.tensor([1.0, 3.0, float("nan")]))
    tensor([ True, False, False])
    """

    functions = ("equal", "eq")
    operators = ("__eq__",)
    on_complex = complex_functions.both("equal", "logical_and")
    on_strings = "kernel"
    lower = lambda b, x, y: b.cmp("eq", x, y)
    reference = numpy.equal


@elementwise
class not_equal(_Comparison):
    """Whether the two differ; NaN differs from everything.

    >>> import twofold as torch
    >>> torch.not_equal(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 3.0]))
    tensor([False,  True])
    """

    functions = ("not_equal", "ne")
    operators = ("__ne__",)
    on_complex = complex_functions.both("not_equal", "logical_or")
    on_strings = "kernel"
    lower = lambda b, x, y: b.cmp("ne", x, y)
    reference = numpy.not_equal


@elementwise
class less(_Comparison):
    """Whether ``input`` is less than ``other``.

    >>> import twofold as torch
    >>> torch.less(torch.tensor([1, 2, 3]), 2)
    tensor([ True, False, False])
    """

    functions = ("less", "lt")
    operators = ("__lt__",)
    lower = lambda b, x, y: b.cmp("lt", x, y)
    reference = numpy.less


@elementwise
class less_equal(_Comparison):
    """Whether ``input`` is at most ``other``.

    >>> import twofold as torch
    >>> torch.less_equal(torch.tensor([1, 2, 3]), 2)
    tensor([ True,  True, False])
    """

    functions = ("less_equal", "le")
    operators = ("__le__",)
    lower = lambda b, x, y: b.cmp("le", x, y)
    reference = numpy.less_equal


@elementwise
class greater(_Comparison):
    """Whether ``input`` is greater than ``other``.

    >>> import twofold as torch
    >>> torch.greater(torch.tensor([1, 2, 3]), 2)
    tensor([False, False,  True])
    """

    functions = ("greater", "gt")
    operators = ("__gt__",)
    lower = lambda b, x, y: b.cmp("gt", x, y)
    reference = numpy.greater


@elementwise
class greater_equal(_Comparison):
    """Whether ``input`` is at least ``other``.

    >>> import twofold as torch
    >>> torch.greater_equal(torch.tensor([1, 2, 3]), 2)
    tensor([False,  True,  True])
    """

    functions = ("greater_equal", "ge")
    operators = ("__ge__",)
    lower = lambda b, x, y: b.cmp("ge", x, y)
    reference = numpy.greater_equal


@elementwise
class logical_and(_Logical):
    """Whether both are non-zero.

    >>> import twofold as torch
    >>> torch.logical_and(torch.tensor([0, 1, 2]), torch.tensor([1, 0, 3]))
    tensor([False, False,  True])
    """

    lower = lambda b, x, y: b.and_(x, y)
    reference = numpy.logical_and


@elementwise
class logical_or(_Logical):
    """Whether either is non-zero.

    >>> import twofold as torch
    >>> torch.logical_or(torch.tensor([0, 1, 0]), torch.tensor([1, 0, 0]))
    tensor([ True,  True, False])
    """

    lower = lambda b, x, y: b.or_(x, y)
    reference = numpy.logical_or


@elementwise
class logical_xor(_Logical):
    """Whether exactly one is non-zero.

    >>> import twofold as torch
    >>> torch.logical_xor(torch.tensor([True, True]), torch.tensor([True, False]))
    tensor([False,  True])
    """

    lower = lambda b, x, y: b.xor(x, y)
    reference = numpy.logical_xor


@elementwise
class logical_not:
    """Whether ``input`` is zero.

    >>> import twofold as torch
    >>> torch.logical_not(torch.tensor([0.0, 2.5]))
    tensor([ True, False])
    """

    inplace = True
    kinds = "biufc"
    result_dtype = logical
    differentiable = False
    lower = lambda b, x: b.not_(x)
    reference = numpy.logical_not


@elementwise
class bitwise_and(_Bitwise):
    """Bits set in both.

    >>> import twofold as torch
    >>> torch.bitwise_and(torch.tensor([12, 5]), torch.tensor([10, 3]))
    tensor([8, 1])
    """

    operators = ("__and__",)
    lower = lambda b, x, y: b.and_(x, y)
    reference = numpy.bitwise_and


@elementwise
class bitwise_or(_Bitwise):
    """Bits set in either.

    >>> import twofold as torch
    >>> torch.bitwise_or(torch.tensor([12, 5]), torch.tensor([10, 3]))
    tensor([14,  7])
    """

    operators = ("__or__",)
    lower = lambda b, x, y: b.or_(x, y)
    reference = numpy.bitwise_or


@elementwise
class bitwise_xor(_Bitwise):
    """Bits set in exactly one.

    >>> import twofold as torch
    >>> torch.bitwise_xor(torch.tensor([12, 5]), torch.tensor([10, 3]))
    tensor([6, 6])
    """

    operators = ("__xor__",)
    lower = lambda b, x, y: b.xor(x, y)
    reference = numpy.bitwise_xor


@elementwise
class bitwise_invert:
    """Every bit flipped; of bools, the opposite.

    >>> import twofold as torch
    >>> torch.bitwise_not(torch.tensor([0, 5]))
    tensor([-1, -6])
    >>> torch.bitwise_not(torch.tensor([True, False]))
    tensor([False,  True])
    """

    functions = ("bitwise_invert", "bitwise_not")
    operators = ("__invert__",)
    kinds = "biu"
    differentiable = False
    lower = lambda b, x: b.not_(x)
    reference = numpy.invert


@elementwise
class bitwise_left_shift:
    """Bits moved up by ``other`` positions; 0 where ``other`` is outside the width.

    >>> import twofold as torch
    >>> torch.bitwise_left_shift(torch.tensor([1, 3]), 2)
    tensor([ 4, 12])
    """

    signature = "input, other"
    operators = ("__lshift__",)
    reflected = True
    kinds = "iu"
    domain = (reals(-9, 9), reals(0, 6))
    differentiable = False
    lower = lambda b, x, y: b.shl(x, y)
    reference = numpy.left_shift


@elementwise
class bitwise_right_shift:
    """Bits moved down by ``other`` positions, keeping the sign.

    >>> import twofold as torch
    >>> torch.bitwise_right_shift(torch.tensor([12, -8]), 2)
    tensor([ 3, -2])
    """

    signature = "input, other"
    operators = ("__rshift__",)
    reflected = True
    kinds = "iu"
    domain = (reals(-90, 90), reals(0, 6))
    differentiable = False
    lower = lambda b, x, y: b.shr(x, y)
    reference = numpy.right_shift


@elementwise
class isnan:
    """Whether each element is NaN.

    >>> import twofold as torch
    >>> torch.isnan(torch.tensor([1.0, float("nan"), float("inf")]))
    tensor([False,  True, False])
    """

    result_dtype = to_bool
    differentiable = False
    on_complex = complex_functions.both("isnan", "logical_or")
    lower = lambda b, x: b.cmp("ne", x, x)
    reference = lambda x: numpy.not_equal(x, x)


@elementwise
class isinf:
    """Whether each element is an infinity.

    >>> import twofold as torch
    >>> torch.isinf(torch.tensor([1.0, float("nan"), float("-inf")]))
    tensor([False, False,  True])
    """

    result_dtype = to_bool
    differentiable = False
    on_complex = complex_functions.both("isinf", "logical_or")
    lower = lambda b, x: b.cmp("eq", b.abs(x), math.inf) if x.dtype.kind == "f" else b.cmp("ne", x, x)
    reference = lambda x: numpy.isinf(x) if x.dtype.kind == "f" else numpy.zeros(x.shape, bool)


@elementwise
class isfinite:
    """Whether each element is neither NaN nor an infinity.

    >>> import twofold as torch
    >>> torch.isfinite(torch.tensor([1.0, float("nan"), float("inf")]))
    tensor([ True, False, False])
    """

    result_dtype = to_bool
    differentiable = False
    on_complex = complex_functions.both("isfinite", "logical_and")
    lower = lambda b, x: b.cmp("lt", b.abs(x), math.inf) if x.dtype.kind == "f" else b.cmp("eq", x, x)
    reference = lambda x: numpy.isfinite(x) if x.dtype.kind == "f" else numpy.ones(x.shape, bool)


_BITS = {2: int16, 4: int32, 8: int64}


def _lower_signbit(b: Any, x: Any) -> Any:
    if x.dtype.kind != "f":
        return b.cmp("ne", x, x) if x.dtype.kind == "b" else b.cmp("lt", x, 0)
    return b.cmp("lt", b.bitcast(x, _BITS[x.dtype.itemsize]), 0)


@elementwise
class signbit:
    """Whether the sign is negative, that of -0.0 included; a NaN that was computed is positive.

    >>> import twofold as torch
    >>> torch.signbit(torch.tensor([1.0, 0.0, -0.0]))
    tensor([False, False,  True])
    """

    result_dtype = to_bool
    differentiable = False
    keeps_nan = True
    lower = _lower_signbit
    reference = lambda x: numpy.signbit(x) if x.dtype.kind == "f" else x < 0


def _next_after(b: Any, x: Any, y: Any, dtype: DType) -> Any:
    """One step on the bits in ``dtype``, which are ordered like the magnitudes."""
    bits = _BITS[dtype.itemsize]
    xi = b.bitcast(b.cast(x, dtype), bits)
    away = b.cmp("eq", b.cmp("gt", y, x), b.cmp("gt", x, 0.0))
    stepped = b.select(away, b.add(xi, 1), b.sub(xi, 1))
    # from zero to the smallest number, with the sign of the direction
    smallest = b.select(b.cmp("gt", y, 0.0), b.const(1, bits), -(1 << (8 * dtype.itemsize - 1)) | 1)
    stepped = b.bitcast(b.select(b.cmp("eq", x, 0.0), smallest, stepped), dtype)
    stepped = b.select(b.cmp("eq", x, y), y, b.cast(stepped, x.dtype))
    return b.select(b.is_nan(x), x, b.select(b.is_nan(y), y, stepped))


def _next_bfloat16(x: Any, y: Any) -> Any:
    """The step by counting the numbers from the most negative to the largest, both zeros as one."""
    here, there = (numpy.where(bits >> 15, -(bits & 0x7FFF).astype(int), bits) for bits in (x, y))
    position = here + numpy.sign(there - here)
    stepped = numpy.where(position < 0, 0x8000 - position, position)
    # to zero: with the sign of where it comes from
    stepped = numpy.where((position == 0) & (here < 0), 0x8000, numpy.where(here == there, y, stepped))
    nan = numpy.maximum(x & 0x7FFF, y & 0x7FFF) > 0x7F80
    return numpy.where(nan, 0x7FC0, stepped).astype(numpy.uint16)


@elementwise
class nextafter(Elementwise):
    """The next float of the dtype after ``input`` towards ``other``.

    >>> import twofold as torch
    >>> torch.nextafter(torch.tensor([1.0]), torch.tensor([2.0])) - 1
    tensor([1.1921e-07])
    """

    signature = "input, other"
    kinds = "f"
    exact_reference = True

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        """The step counts as constant."""
        return cotangent, None

    def lower(self, builder: Any, attrs: Attributes, dtype: Any, *values: Any) -> Any:
        """The step in the dtype of the result."""
        return _next_after(builder, values[0], values[1], dtype)

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        """The step by NumPy, or on the bits of bfloat16, which NumPy lacks."""
        return _next_bfloat16(*arrays) if arrays[0].dtype.kind == "u" else numpy.nextafter(*arrays)


@elementwise
class where:
    """``input`` where ``condition`` is true, else ``other``; ``condition`` alone: the positions where it is true.

    >>> import twofold as torch
    >>> torch.where(torch.tensor([True, False]), torch.tensor([1.0, 2.0]), 0.0)
    tensor([1., 0.])
    >>> torch.where(torch.tensor([0, 5, 7]))
    (tensor([1, 2]),)
    """

    selects = True
    signature = "condition, input, other"
    methods = ()
    kinds = "biufc"
    on_strings = "kernel"
    operand_dtypes = (bool_, None, None)
    arity = 3
    checks_numbers = True
    vjp = lambda ct, y, c, a, b: (None, ops.where(c, ct, 0), ops.where(c, 0, ct))
    keeps_nan = True
    lower = lambda b, c, x, y: b.select(c, x, y)
    reference = numpy.where

    @staticmethod
    def call(condition: Any, input: Any = None, other: Any = None) -> Any:
        if input is None and other is None:
            return ops.nonzero(condition, as_tuple=True)
        if input is None or other is None:
            raise ArgumentError("takes one tensor or three", "Give both, input and other, or none.")
        need_beside(other, input, need=need_fitting_tensor)
        need_beside(input, other, need=need_fitting_tensor)
        return apply("where", condition, input, other)

    @staticmethod
    def build(attrs: Attributes, inputs: Sequence[Node]) -> Node:
        """The choice; bytes are PyTorch's older truth values."""
        dtype = inputs[0].type.dtype
        if dtype is not bool_ and dtype is not uint8:
            what = f"expected condition to be a boolean tensor, got one of {dtype.name}"
            raise DTypeError(what, "Compare it, such as x != 0.")
        return Elementwise.build(where, attrs, inputs)  # type: ignore[arg-type]


publish(lambda input, condition, other: where.call(condition, input, other), (), ("where",))
