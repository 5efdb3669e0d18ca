"""Element-wise arithmetic: the four operations, powers and roots, lengths."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from twofold.dtypes import bool_, float32, float64
from twofold.errors import ArgumentError
from twofold.ops.autograd_names import beside_number
from twofold.ops.base import apply, composite, elementwise, ops, public, to_float, to_number
from twofold.ops.building_blocks import no_slope
from twofold.ops.elementwise import complex_functions
from twofold.ops.promotion import need_beside, need_whole_alpha
from twofold.ops.samples import nonzero, reals
from twofold.ops.signatures import scales_first


def _with_alpha(name: str, input: Any, other: Any, alpha: Any) -> Any:
    """``add`` or ``subtract``, of ``alpha`` times the other operand."""
    if isinstance(alpha, int) and alpha == 1 and alpha is not True:
        return apply(name, input, other)
    need_whole_alpha(alpha, input, other)
    bools = all(isinstance(one, bool) or getattr(one, "dtype", None) is bool_ for one in (input, other))
    return apply(f"{name}_scaled", input, other, bool(alpha) if bools else alpha)


def _of_infinities(sign: str) -> Callable[[Sequence[float], bool], str]:
    """Why a sum or difference is not finite."""

    def nonfinite(at: Sequence[float], is_nan: bool) -> str:
        made = is_nan and all(map(math.isinf, at))
        return f"a difference of infinities: {at[0]:g} {sign} {at[1]:g}" if made else ""

    return nonfinite


@elementwise
class add:
    """Sum of ``input`` and ``alpha * other``; of bools, whether either is true.

    >>> import twofold as torch
    >>> torch.add(torch.tensor([1, 2, 3]), 10)
    tensor([11, 12, 13])
    >>> torch.add(torch.tensor([1, 2, 3]), torch.tensor([10, 20, 30]), alpha=2)
    tensor([21, 42, 63])
    """

    nonfinite = _of_infinities("+")
    signature = "input, other"
    functions = ("add",)
    operators = ("__add__",)
    reflected = True
    shifts = ("data + shift", "shift + data")
    arity = 2
    vjp = lambda ct, y, a, b: (ct, ct)
    on_complex = complex_functions.add
    on_strings = lambda x, y: x + y
    lower = lambda b, x, y: b.or_(x, y) if x.dtype is bool_ else b.add(x, y)
    reference = numpy.add

    @staticmethod
    @scales_first("alpha")
    def call(input: Any, other: Any, *, alpha: Any = 1) -> Any:
        return _with_alpha("add", input, other, alpha)


@elementwise
class subtract:
    """Difference of ``input`` and ``alpha * other``.

    >>> import twofold as torch
    >>> torch.subtract(torch.tensor([5, 7]), torch.tensor([1, 2]))
    tensor([4, 5])
    """

    nonfinite = _of_infinities("-")
    autograd_name = beside_number("SubBackward0", "SubBackward0", "RsubBackward1")
    signature = "input, other"
    functions = ("subtract", "sub")
    operators = ("__sub__",)
    reflected = True
    shifts = ("data - shift",)
    arity = 2
    kinds = "iuf"
    vjp = lambda ct, y, a, b: (ct, -ct)
    on_complex = complex_functions.subtract
    lower = lambda b, x, y: b.sub(x, y)
    reference = numpy.subtract

    @staticmethod
    @scales_first("alpha")
    def call(input: Any, other: Any, *, alpha: Any = 1) -> Any:
        return _with_alpha("subtract", input, other, alpha)


@elementwise
class multiply:
    """Product of ``input`` and ``other``; of bools, whether both are true.

    >>> import twofold as torch
    >>> torch.multiply(torch.tensor([1, 2, 3]), torch.tensor([[10], [20]]))
    tensor([[10, 20, 30],
            [20, 40, 60]])
    """

    nonfinite = lambda at, is_nan: f"a product of zero and infinity: {at[0]:g} * {at[1]:g}" if is_nan else ""
    autograd_name = "MulBackward0"
    signature = "input, other"
    functions = ("multiply", "mul")
    operators = ("__mul__",)
    reflected = wide_numbers = True
    vjp = lambda ct, y, a, b: (ct * b, ct * a)
    on_complex = complex_functions.multiply
    lower = lambda b, x, y: b.and_(x, y) if x.dtype is bool_ else b.mul(x, y)
    reference = numpy.multiply


@elementwise
class divide:
    """Quotient of ``input`` and ``other``.

    ``rounding_mode`` "floor" rounds it down, "trunc" towards zero, and integers stay integers. Raises
    ArgumentError for another mode.

    >>> import twofold as torch
    >>> torch.divide(torch.tensor([7, -7]), 2)
    tensor([ 3.5000, -3.5000])
    >>> torch.divide(torch.tensor([7, -7]), 2, rounding_mode="floor")
    tensor([ 3, -4])
    >>> torch.divide(torch.tensor([7, -7]), 2, rounding_mode="trunc")
    tensor([ 3, -3])
    """

    nonfinite = lambda at, is_nan: f"a division of {at[0]:g} by zero" if at[1] == 0 else ""
    autograd_name = beside_number("DivBackward0", "DivBackward0", "MulBackward0")
    signature = "input, other"
    functions = ("divide", "div", "true_divide")
    operators = ("__truediv__",)
    reflected = wide_numbers = True
    arity = 2
    result_dtype = to_float
    domain = (reals(-3, 3), nonzero(-3, 3, 0.5))
    vjp = lambda ct, y, a, b: (ct / b, -ct * y / b)
    on_complex = complex_functions.divide
    holomorphic = True
    lower = lambda b, x, y: b.div(x, y)
    reference = numpy.divide

    @staticmethod
    def call(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
        if rounding_mode is None:
            return apply("divide", input, other)
        if rounding_mode == "floor":
            return apply("floor_divide", input, other)
        if rounding_mode == "trunc":
            return apply("trunc_divide", input, other)
        raise ArgumentError(f"rounding_mode {rounding_mode!r} is unknown", "Use None, 'floor' or 'trunc'.")


@elementwise
class floor_divide:
    """Quotient rounded down, as Python's ``//``; an integer divided by zero is an error.

    >>> import twofold as torch
    >>> torch.floor_divide(torch.tensor([7, -7]), 2)
    tensor([ 3, -4])
    """

    signature = "input, other"
    operators = ("__floordiv__",)
    reflected = True
    kinds = "iuf"
    divides = True
    accuracy = (2.0, 2.0)
    domain = (reals(-9, 9), nonzero(-3, 3, 0.5))
    vjp = no_slope
    lower = lambda b, x, y: b.floor_div(x, y)
    reference = numpy.floor_divide


def _trunc_divide(a: Any, b: Any) -> Any:
    """Integers exactly, by way of the rest."""
    if "f" in (a.dtype.kind, b.dtype.kind):
        return ops.trunc(a / b)
    return ops.floor_divide(a - ops.fmod(a, b), b)


@composite
class trunc_divide:
    """Quotient rounded toward zero."""

    functions = ()
    signature = "input, other"
    domain = (reals(-9, 9), nonzero(-3, 3, 0.5))
    methods = ()
    vjp = no_slope
    reference = lambda a, b: numpy.trunc(a / b)
    compute = _trunc_divide


@elementwise
class remainder:
    """Rest of ``floor_divide``, with the sign of ``other``, as Python's ``%``.

    >>> import twofold as torch
    >>> torch.remainder(torch.tensor([7, -7]), 3)
    tensor([1, 2])
    """

    autograd_name = beside_number("RemainderBackward0", "RemainderBackward1")
    signature = "input, other"
    operators = ("__mod__",)
    reflected = True
    kinds = "iuf"
    divides = True
    domain = (reals(-9, 9), nonzero(-3, 3, 0.5))
    vjp = lambda ct, y, a, b: (ct, -ct * ops.floor_divide(a, b))
    lower = lambda b, x, y: b.remainder(x, y)
    reference = numpy.remainder


@elementwise
class fmod:
    """Rest of the division rounded toward zero, with the sign of ``input``.

    >>> import twofold as torch
    >>> torch.fmod(torch.tensor([7, -7]), 3)
    tensor([ 1, -1])
    """

    autograd_name = beside_number("FmodBackward0", "FmodBackward1")
    signature = "input, other"
    kinds = "iuf"
    divides = True
    domain = (reals(-9, 9), nonzero(-3, 3, 0.5))
    vjp = lambda ct, y, a, b: (ct, -ct * ops.trunc(a / b))
    lower = lambda b, x, y: b.fmod(x, y)
    reference = numpy.fmod


def _integer_power(b: Any, x: Any, n: Any) -> Any:
    """By squaring, modulo the range of the dtype; a negative exponent gives 0 unless the base is a unit."""
    one, zero = b.const(1, x.dtype), b.const(0, x.dtype)
    held = [b.select(b.cmp("ne", b.and_(n, 1), 0), x, one), x, n]

    def step(held: list[Any]) -> list[Any]:
        result, square, rest = held
        square, rest = b.mul(square, square), b.shr(rest, 1)
        odd = b.cmp("ne", b.and_(rest, 1), 0)
        return [b.select(odd, b.mul(result, square), result), square, rest]

    bits = 8 * x.dtype.itemsize
    straight = bits if bits == 8 else 6
    for _ in range(straight - 1):
        held = step(held)
    if straight < bits:
        branch = b.if_(b.any_lane(b.cmp("gt", n, (1 << straight) - 1)))
        with branch:
            loop = b.loop(straight, bits, carry=held)
            with loop as (_, inside):
                b.loop_next(step(inside))
            branch.give(loop.results)
        with branch.else_():
            branch.give(held)
        held = branch.results
    negative = b.cmp("lt", n, 0)
    unit = b.cmp("eq", x, 1) if x.dtype.kind == "u" else b.or_(b.cmp("eq", x, 1), b.cmp("eq", x, -1))
    # a negative exponent's lowest bit is right for units: -1 to an odd power
    alternating = b.select(b.cmp("ne", b.and_(n, 1), 0), x, one)
    return b.select(negative, b.select(unit, alternating, zero), held[0])


def _power_reference(x: Any, n: Any) -> Any:
    if numpy.result_type(x, n).kind in "fc":
        return numpy.power(x, n)
    units = numpy.where(abs(x) == 1, x ** (abs(n) % 2), 0)
    return numpy.where(n < 0, units, numpy.power(x, numpy.maximum(n, 0)))


_POWERS = {-1: "reciprocal", 0.5: "sqrt", 1: "copied", 2: "square", 3: "cube"}


def _is_count(exponent: Any) -> bool:
    """Whether the exponent keeps the dtype of integers, which 2.0 does not."""
    return isinstance(exponent, int) and not isinstance(exponent, bool) and exponent >= 1


@elementwise
class pow_:
    """``input`` to the power ``exponent``; the exponents -1, 0.5, 1, 2 and 3 are exact products and roots.

    >>> import twofold as torch
    >>> torch.pow(torch.tensor([1.0, 2.0, 3.0]), 2)
    tensor([1., 4., 9.])
    >>> torch.pow(2, torch.tensor([0, 1, 10]))
    tensor([   1,    2, 1024])
    """

    autograd_name = beside_number("PowBackward0", "PowBackward1", "PowBackward2")
    signature = "input, exponent"
    functions = ("pow", "power")
    operators = ("__pow__",)
    reflected = True
    kinds = "iuf"
    accuracy = (0.51, 0.8)
    domain = (reals(0.2, 3), reals(-3, 3))
    vjp = lambda ct, y, a, n: (
        ops.where(ops.equal(n, 0), 0, ct * (n * apply("pow", a, n - 1))),
        ops.where(ops.logical_and(ops.equal(a, 0), n >= 0), 0, ct * (y * ops.log(a))),
    )
    on_complex = complex_functions.power
    lower = lambda b, x, y: b.math("pow", x, y) if x.dtype.kind == "f" else _integer_power(b, x, y)
    reference = _power_reference

    @staticmethod
    def call(input: Any, exponent: Any) -> Any:
        if isinstance(exponent, (int, float)) and not isinstance(input, (int, float)):
            name = _POWERS.get(exponent)
            if name is not None and (
                input.dtype.kind == "f" or (input.dtype.kind in "iu" and _is_count(exponent))
            ):
                return apply(name, input)
            if isinstance(exponent, int) and exponent < 0 and input.dtype.kind in "biu":
                raise ArgumentError(
                    "Integers to negative integer powers are not allowed",
                    "Use a power of floats: input.float().",
                )
            if isinstance(exponent, int) or input.dtype.itemsize < 4:
                need_beside(exponent, input)
        return apply("pow", input, exponent)


@composite
class cube:
    """Third power."""

    autograd_name = "PowBackward0"
    functions = ()
    signature = "input"
    methods = ()
    reference = lambda x: x**3
    compute = lambda x: x * ops.square(x)


@elementwise
class negative:
    """``input`` with its sign changed.

    >>> import twofold as torch
    >>> torch.negative(torch.tensor([1.0, -2.0]))
    tensor([-1.,  2.])
    """

    autograd_name = "NegBackward0"
    functions = ("negative", "neg")
    operators = ("__neg__",)
    kinds = "iuf"
    vjp = lambda ct, y, x: (-ct,)
    on_complex = complex_functions.by_parts("negative")
    keeps_nan = True
    lower = lambda b, x: b.neg(x)
    reference = numpy.negative


@composite
class copied:
    """The values of ``input``, as a new value."""

    autograd_name = None
    is_copy = True
    functions = ()
    methods = ()
    signature = "input"
    reference = lambda x: x
    compute = lambda x: x


@public(methods=("positive",))
def positive(input: Any) -> Any:
    """``input`` itself. Raises RuntimeError for bools.

    >>> import twofold as torch
    >>> x = torch.tensor([1.0, -2.0])
    >>> torch.positive(x) is x
    True
    """
    return +input


@elementwise
class abs_:
    """Absolute value; its gradient at 0 is 0. Of a complex number the length, as a real one.

    >>> import twofold as torch
    >>> torch.abs(torch.tensor([1.5, -2.0]))
    tensor([1.5000, 2.0000])
    >>> torch.abs(torch.tensor([3 + 4j]))
    tensor([5.])
    """

    functions = ("abs", "absolute")
    operators = ("__abs__",)
    domain = (nonzero(-3, 3),)
    vjp = lambda ct, y, x: (ct * ops.sign(x),)
    on_complex = complex_functions.absolute
    keeps_nan = True
    lower = lambda b, x: x if x.dtype.kind == "b" else b.abs(x)
    reference = numpy.absolute


@elementwise
class sign:
    """1, 0 or -1 by the sign of ``input``, 0 at NaN. Of a complex number ``z / |z|``.

    >>> import twofold as torch
    >>> torch.sign(torch.tensor([2.5, 0.0, -3.0]))
    tensor([ 1.,  0., -1.])
    """

    functions = ("sign", "sgn")
    domain = (nonzero(-3, 3),)
    vjp = no_slope
    on_complex = complex_functions.sign
    lower = lambda b, x: (
        x if x.dtype.kind == "b" else b.select(b.cmp("gt", x, 0), b.const(1, x.dtype), _negative_sign(b, x))
    )
    reference = lambda x: x if x.dtype.kind == "b" else _reference_sign(x)


def _reference_sign(x: Any) -> Any:
    return numpy.where(numpy.isnan(x), 0, numpy.sign(x)) if x.dtype.kind == "f" else numpy.sign(x)


def _negative_sign(b: Any, x: Any) -> Any:
    zero = b.const(0, x.dtype)
    return zero if x.dtype.kind == "u" else b.select(b.cmp("lt", x, 0), b.const(-1, x.dtype), zero)


@elementwise
class square:
    """``input`` times itself.

    >>> import twofold as torch
    >>> torch.square(torch.tensor([1.0, -3.0]))
    tensor([1., 9.])
    """

    autograd_name = "PowBackward0"
    vjp = lambda ct, y, x: (ct * (x + x),)
    result_dtype = to_number
    on_complex = complex_functions.square
    lower = lambda b, x: b.mul(x, x)
    reference = numpy.square


@elementwise
class sqrt:
    """Square root; of negative numbers NaN.

    >>> import twofold as torch
    >>> torch.sqrt(torch.tensor([0, 4, 9]))
    tensor([0., 2., 3.])
    """

    result_dtype = to_float
    domain = (reals(0.1, 9),)
    vjp = lambda ct, y, x: (ct / (y + y),)
    on_complex = complex_functions.sqrt
    holomorphic = True
    lower = lambda b, x: b.sqrt(x)
    reference = numpy.sqrt


@elementwise
class rsqrt:
    """``1 / sqrt(input)``; of negative numbers NaN.

    >>> import twofold as torch
    >>> torch.rsqrt(torch.tensor([1.0, 4.0, 16.0]))
    tensor([1.0000, 0.5000, 0.2500])
    """

    nonfinite = lambda at, is_nan: "rsqrt of zero" if at[0] == 0 else ""
    result_dtype = to_float
    accuracy = (1.7, 1.7)
    domain = (reals(0.1, 9),)
    vjp = lambda ct, y, x: (-0.5 * ct * y * (y * y),)
    on_complex = complex_functions.rsqrt
    holomorphic = True
    lower = lambda b, x: b.div(b.const(1, x.dtype), b.sqrt(x))
    reference = lambda x: 1 / numpy.sqrt(x)


@elementwise
class reciprocal:
    """``1 / input``; of 0 an infinity.

    >>> import twofold as torch
    >>> torch.reciprocal(torch.tensor([1.0, 4.0, -0.5]))
    tensor([ 1.0000,  0.2500, -2.0000])
    """

    nonfinite = lambda at, is_nan: "reciprocal of zero" if at[0] == 0 else ""
    result_dtype = to_float
    domain = (nonzero(-3, 3, 0.3),)
    vjp = lambda ct, y, x: (-ct * y * y,)
    on_complex = complex_functions.reciprocal
    holomorphic = True
    lower = lambda b, x: b.div(b.const(1, x.dtype), x)
    reference = lambda x: 1 / x


def _lower_hypot(b: Any, x: Any, y: Any) -> Any:
    """In float64 for float32, where nothing overflows; otherwise scaled by the larger side."""
    dtype = x.dtype
    x, y = b.abs(x), b.abs(y)
    if dtype is float32:
        wide, other = b.cast(x, float64), b.cast(y, float64)
        length = b.cast(b.sqrt(b.add(b.mul(wide, wide), b.mul(other, other))), dtype)
    else:
        large, small = b.maximum(x, y), b.minimum(x, y)
        ratio = b.div(small, large)
        length = b.mul(large, b.sqrt(b.add(b.mul(ratio, ratio), 1.0)))
        length = b.select(b.cmp("eq", small, 0.0), large, length)
    # as in C, an infinite side outweighs a NaN
    infinite = b.or_(b.cmp("eq", x, math.inf), b.cmp("eq", y, math.inf))
    return b.select(infinite, b.const(math.inf, dtype), length)


@elementwise
class hypot:
    """``sqrt(input**2 + other**2)`` without overflow; the gradient at the origin is 0.

    >>> import twofold as torch
    >>> torch.hypot(torch.tensor([3.0, 5.0]), torch.tensor([4.0, 12.0]))
    tensor([ 5., 13.])
    """

    signature = "input, other"
    result_dtype = to_float
    accuracy = (0.51, 2.2)
    domain = (nonzero(-3, 3), nonzero(-3, 3))
    vjp = lambda ct, y, a, b: (
        ops.where(ops.equal(y, 0), 0, ct * (a / y)),
        ops.where(ops.equal(y, 0), 0, ct * (b / y)),
    )
    lower = _lower_hypot
    reference = numpy.hypot


@elementwise
class copysign:
    """``input`` with the sign of ``other``; a NaN that was computed is positive.

    >>> import twofold as torch
    >>> torch.copysign(torch.tensor([1.0, -2.0]), torch.tensor([-0.0, 3.0]))
    tensor([-1.,  2.])
    """

    signature = "input, other"
    result_dtype = to_float
    domain = (nonzero(-3, 3), nonzero(-3, 3))
    vjp = lambda ct, y, a, b: (
        ops.where(ops.equal(a, 0), 0, ops.where(ops.equal(ops.signbit(a), ops.signbit(b)), ct, -ct)),
        None,
    )
    keeps_nan = True
    lower = lambda b, x, y: b.copysign(x, y)
    reference = numpy.copysign
