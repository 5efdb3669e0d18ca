"""Element-wise functions of number theory, of the parts of a float, and replacements of special values."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy

from twofold.dtypes import DType, bool_, complex128, float64, int32, int64
from twofold.errors import ArgumentError
from twofold.ops.base import (
    apply,
    composite,
    convert,
    elementwise,
    filled,
    ops,
    public,
    to_bool,
    to_float,
)
from twofold.ops.building_blocks import no_slope
from twofold.ops.elementwise import complex_functions
from twofold.ops.examples import example
from twofold.ops.return_types import return_type
from twofold.ops.samples import nonzero, reals


def _gcd(b: Any, x: Any, y: Any) -> Any:
    """Euclid's algorithm; consecutive Fibonacci numbers take it longest, 1.44 steps for each bit."""
    steps = 3 * 8 * x.dtype.itemsize // 2
    lanes = max(x.lanes, y.lanes)
    x, y = b.splat(x, lanes), b.splat(y, lanes)
    loop = b.loop(0, steps, carry=[x, y])
    with loop as (_, (u, v)):
        branch = b.if_(b.any_lane(b.cmp("ne", v, 0)))
        with branch:
            rest = b.sub(u, b.mul(b.idiv(u, v), v))
            done = b.cmp("eq", v, 0)
            branch.give([b.select(done, u, v), b.select(done, v, rest)])
        with branch.else_():
            branch.give([u, v])
        b.loop_next(branch.results)
    return b.abs(loop.results[0])


def _lcm(b: Any, x: Any, y: Any) -> Any:
    # a quotient by 0 is 0, so the multiple of two zeros is 0
    return b.mul(b.idiv(b.abs(x), _gcd(b, x, y)), b.abs(y))


@elementwise
class gcd:
    """Greatest common divisor, not negative; ``gcd(0, 0)`` is 0.

    >>> import twofold as torch
    >>> torch.gcd(torch.tensor([12, 7]), torch.tensor([18, 5]))
    tensor([6, 1])
    """

    signature = "input, other"
    kinds = "iu"
    domain = (reals(-99, 99), reals(-99, 99))
    differentiable = False
    lower = _gcd
    reference = numpy.gcd


@elementwise
class lcm:
    """Least common multiple, not negative unless it overflows; 0 if either is 0.

    >>> import twofold as torch
    >>> torch.lcm(torch.tensor([4, 7]), torch.tensor([6, 5]))
    tensor([12, 35])
    """

    signature = "input, other"
    kinds = "iu"
    domain = (reals(-9, 9), reals(-9, 9))
    differentiable = False
    lower = _lcm
    reference = numpy.lcm


@elementwise
class heaviside:
    """0 where ``input`` is negative, 1 where positive, ``values`` where it is 0; of NaN, 0.

    >>> import twofold as torch
    >>> torch.heaviside(torch.tensor([-2.0, 0.0, 3.0]), torch.tensor(0.5))
    tensor([0.0000, 0.5000, 1.0000])
    """

    signature = "input, values"
    differentiable = False
    lower = lambda b, x, value: b.select(b.cmp("eq", x, 0), value, b.cast(b.cmp("gt", x, 0), x.dtype))
    reference = lambda x, value: numpy.where(x == 0, value, x > 0)


def _frexp_bits(b: Any, x: Any) -> tuple[Any, Any, Any, Any]:
    """(bits of ``x`` scaled out of the subnormals, the scaling exponent, bits of the significand, plain)."""
    double = x.dtype is float64
    bits, width, tiny = (int64, 52, 2.0**-1022) if double else (int32, 23, 2.0**-126)
    small = b.cmp("lt", b.abs(x), tiny)
    scaled = b.bitcast(b.select(small, b.mul(x, 2.0**64), x), bits)
    plain = b.or_(b.cmp("eq", x, 0.0), b.not_(b.cmp("lt", b.abs(x), math.inf)))
    return scaled, b.select(small, b.const(-64, bits), 0), width, plain


def _lower_mantissa(b: Any, x: Any) -> Any:
    scaled, _, width, plain = _frexp_bits(b, x)
    bias = 1022 if x.dtype is float64 else 126
    exponents = (2 * bias + 3) << width
    half = b.or_(b.and_(scaled, ~exponents), bias << width)
    return b.select(plain, x, b.bitcast(half, x.dtype))


def _lower_exponent(b: Any, x: Any) -> Any:
    scaled, shift, width, plain = _frexp_bits(b, x)
    bias = 1022 if x.dtype is float64 else 126
    exponent = b.add(b.sub(b.and_(b.shr(scaled, width), 2 * bias + 3), bias), shift)
    return b.cast(b.select(plain, 0, exponent), int32)


@elementwise
class frexp_mantissa:
    """The first result of ``frexp``."""

    functions = ()
    kinds = "f"
    domain = (nonzero(-9, 9),)
    vjp = lambda ct, y, x: (ct * ops.exp2(-ops.cast(apply("frexp_exponent", x), x.dtype)),)
    lower = _lower_mantissa
    reference = lambda x: numpy.frexp(x)[0]


@elementwise
class frexp_exponent:
    """The second result of ``frexp``."""

    functions = ()
    kinds = "f"
    domain = (nonzero(-9, 9),)
    result_dtype = lambda common: (common, int32)
    differentiable = False
    lower = _lower_exponent
    reference = lambda x: numpy.where(numpy.isfinite(x), numpy.frexp(x)[1], 0)


class MantissaAndExponent(NamedTuple):
    """What ``frexp`` returns."""

    mantissa: Any
    exponent: Any


_FREXP = return_type("frexp", MantissaAndExponent)


@public("frexp", methods=("frexp",))
def frexp(input: Any) -> MantissaAndExponent:
    """``(mantissa, exponent)`` with ``input = mantissa * 2**exponent`` and ``|mantissa|`` in [1/2, 1).

    Of floats; exponents are int32. Zeros, infinities and NaN are their own mantissas, with exponent 0.

    >>> import twofold as torch
    >>> torch.frexp(torch.tensor([10.0, -0.25])).mantissa
    tensor([ 0.6250, -0.5000])
    """
    return _FREXP(apply("frexp_mantissa", input), apply("frexp_exponent", input))


@public(methods=("ldexp",), inplace="value")
def ldexp(input: Any, other: Any) -> Any:
    """``input * 2**other``.

    >>> import twofold as torch
    >>> torch.ldexp(torch.tensor([1.0, 3.0]), torch.tensor([2, -1]))
    tensor([4.0000, 1.5000])
    """
    return ops.multiply(input, ops.exp2(other))


def _widest(x: Any) -> Any:
    return convert(x, complex128 if x.dtype.kind == "c" else float64)


@composite
class float_power:
    """``input`` to the power ``exponent``, computed in float64 (complex numbers: in complex128).

    >>> import twofold as torch
    >>> torch.float_power(torch.tensor([2, 9]), 0.5)
    tensor([1.4142, 3.0000], dtype=twofold.float64)
    """

    inplace = True
    signature = "input, exponent"
    methods = ("float_power",)
    domain = (reals(0.2, 3), reals(-3, 3))
    reference = numpy.float_power
    compute = lambda x, n: apply("pow", _widest(x), _widest(n))


@elementwise
class isposinf:
    """Whether each element is positive infinity.

    >>> import twofold as torch
    >>> torch.isposinf(torch.tensor([float("inf"), float("-inf"), 1.0]))
    tensor([ True, False, False])
    """

    result_dtype = to_bool
    differentiable = False
    lower = lambda b, x: b.cmp("eq", x, math.inf) if x.dtype.kind == "f" else b.cmp("ne", x, x)
    reference = lambda x: x == math.inf


@elementwise
class isneginf:
    """Whether each element is negative infinity.

    >>> import twofold as torch
    >>> torch.isneginf(torch.tensor([float("inf"), float("-inf"), 1.0]))
    tensor([False,  True, False])
    """

    result_dtype = to_bool
    differentiable = False
    lower = lambda b, x: b.cmp("eq", x, -math.inf) if x.dtype.kind == "f" else b.cmp("ne", x, x)
    reference = lambda x: x == -math.inf


@composite
class isreal:
    """Whether each element is real: of real dtypes, everywhere true.

    >>> import twofold as torch
    >>> torch.isreal(torch.tensor([1 + 0j, 1 + 2j]))
    tensor([ True, False])
    """

    signature = "input"
    methods = ("isreal",)
    kinds = "biuf"
    on_complex = lambda z: ops.equal(ops.imag(z), 0)
    reference = numpy.isreal
    compute = lambda x: filled(True, bool_, x.shape)


@elementwise
class angle:
    """Angle of each number in the complex plane: pi where it is negative, else 0; NaN stays.

    >>> import twofold as torch
    >>> torch.angle(torch.tensor([1.0, -1.0]))
    tensor([0.0000, 3.1416])
    >>> torch.angle(torch.tensor([1j]))
    tensor([1.5708])
    """

    result_dtype = to_float
    domain = (nonzero(-3, 3),)
    inplace = False
    vjp = no_slope
    on_complex = complex_functions.angle
    lower = lambda b, x: b.select(
        b.is_nan(x), x, b.select(b.cmp("lt", x, 0.0), math.pi, b.const(0.0, x.dtype))
    )
    reference = lambda x: (
        numpy.angle(x)
        if x.dtype.kind == "c"
        else numpy.where(numpy.isnan(x), x, numpy.where(x < 0, math.pi, 0.0))
    )


# The largest finite numbers; NumPy has no bfloat16.
_LARGEST = {name: float(numpy.finfo(name).max) for name in ("float16", "float32", "float64")}
_LARGEST["bfloat16"] = float.fromhex("0x1.fep127")
_LARGEST.update(complex64=_LARGEST["float32"], complex128=_LARGEST["float64"])


def _largest(dtype: DType) -> float:
    return _LARGEST.get(dtype.name, 0.0)


@composite
class nan_to_num:
    """NaN replaced by ``nan``, infinities by ``posinf`` and ``neginf`` (default: the largest finite numbers).

    >>> import twofold as torch
    >>> torch.nan_to_num(torch.tensor([1.0, float("nan"), float("inf")]), posinf=9.0)
    tensor([1., 0., 9.])
    """

    inplace = True
    signature = "input, nan, posinf, neginf"
    methods = ("nan_to_num",)
    reference = lambda x, nan, above, below: numpy.select(
        (x != x, x == numpy.inf, x == -numpy.inf), (nan, above, below), x
    )
    compute = lambda x, nan, above, below: _replaced(x, nan, above, below)
    samples = lambda: (
        [
            example(
                (),
                numpy.array([numpy.nan, numpy.inf, -numpy.inf, 1.5, -2.0, 0.0], dtype),
                *map(numpy.array, ends),
            )
            for dtype in ("float32", "float64", "float16")
            for ends in ((0.5, 9.0, -7.0), (-1.0, 2.0, 3.0))
        ]
        + [example((), (3, 4), *map(numpy.array, (1.0, 2.0, 3.0)))]
    )

    @staticmethod
    def call(input: Any, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Any:
        above = _largest(input.dtype) if posinf is None else float(posinf)
        below = -_largest(input.dtype) if neginf is None else float(neginf)
        return apply("nan_to_num", input, 0.0 if nan is None else float(nan), above, below)


def _replaced(x: Any, nan: Any, above: Any, below: Any) -> Any:
    if x.dtype.kind == "c":
        return ops.complex(*(_replaced(part(x), nan, above, below) for part in (ops.real, ops.imag)))
    if x.dtype.kind != "f":
        return x
    found = ops.where(ops.isposinf(x), above, ops.where(ops.isneginf(x), below, x))
    return ops.where(ops.isnan(x), nan, found)


def _close(x: Any, y: Any, relative: Any, absolute: Any, equal_nan: bool) -> Any:
    """Integers are compared in float64, where no distance overflows."""
    same = ops.equal(x, y)
    if x.dtype.kind != "f" and y.dtype.kind != "f":
        x, y = convert(x, float64), convert(y, float64)
    near = ops.less_equal(ops.abs(x - y), absolute + ops.abs(y * relative))
    near = ops.logical_or(same, ops.logical_and(near, ops.isfinite(x - y)))
    return ops.logical_or(near, ops.logical_and(ops.isnan(x), ops.isnan(y))) if equal_nan else near


@composite
class isclose:
    """Where ``|input - other| <= atol + rtol * |other|``, or both are equal; NaN equals NaN if ``equal_nan``.

    >>> import twofold as torch
    >>> torch.isclose(torch.tensor([1.0, 2.0]), torch.tensor([1.000001, 2.1]))
    tensor([ True, False])
    """

    signature = "input, other, rtol, atol"
    methods = ("isclose",)
    domain = (reals(-3, 3), reals(-3, 3), reals(0.1, 1), reals(0.1, 1))
    attribute_samples = ((False,), (True,))
    reference = lambda x, y, rtol, atol, equal_nan: abs(x - y) <= atol + rtol * abs(y)
    compute = _close

    @staticmethod
    def call(input: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
        for name, value in (("rtol", rtol), ("atol", atol)):
            if value < 0:
                raise ArgumentError(f"{name} is {value}", "Give a tolerance of 0 or more.")
        return apply("isclose", input, other, float(rtol), float(atol), attrs=(bool(equal_nan),))


@elementwise
class logaddexp2:
    """``log2(2**input + 2**other)``, without overflow.

    >>> import twofold as torch
    >>> torch.logaddexp2(torch.tensor([0.0, 1000.0]), torch.tensor([0.0, 1000.0]))
    tensor([1.0000e+00, 1.0010e+03])
    """

    signature = "input, other"
    result_dtype = to_float
    accuracy = (0.51, 2.4)
    vjp = lambda ct, y, a, b: (
        ct * ops.sigmoid((a - b) * math.log(2)),
        ct * ops.sigmoid((b - a) * math.log(2)),
    )
    amplitude = lambda x, y: numpy.fmax(numpy.abs(x), numpy.abs(y))
    lower = lambda b, x, y: b.math("logaddexp2", x, y)
    reference = numpy.logaddexp2


@public(methods=("rsub",))
def rsub(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """``other - alpha * input``.

    >>> import twofold as torch
    >>> torch.rsub(torch.tensor([1.0, 2.0]), 5.0)
    tensor([4., 3.])
    """
    return ops.subtract(other, input, alpha=alpha)


@public()
def fill(input: Any, value: Any) -> Any:
    """A tensor like ``input`` with ``value`` everywhere.

    >>> import twofold as torch
    >>> torch.fill(torch.tensor([1.0, 2.0]), 5)
    tensor([5., 5.])
    """
    return ops.full_like(input, value)
