"""Shared parts of the elementary functions: registry, number formats, polynomials."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from twofold import dtypes
from twofold.compiler.lower.control import Control
from twofold.compiler.lower.emitter import Operand
from twofold.compiler.lower.values import Val
from twofold.dtypes import DType
from twofold.index import MATH
from twofold.lazy import Registry, by_name

Function = Callable[..., Val]
"""Takes the builder and one or two operands of equal dtype and lanes."""


class Format(NamedTuple):
    """Constants of one floating format; ``ln2_high + ln2_low`` is log 2 to twice the precision."""

    dtype: DType
    bits: DType
    mantissa: int
    one: int
    round_magic: float
    ln2_high: float
    ln2_low: float
    smallest_normal: float
    bias_shift: int


SINGLE = Format(
    dtypes.float32, dtypes.int32, 23, 0x3F800000, 1.5 * 2.0**23,
    float.fromhex("0x1.62e430p-1"), float.fromhex("-0x1.05c610p-29"), 2.0**-126, 23,
)  # fmt: skip
DOUBLE = Format(
    dtypes.float64, dtypes.int64, 52, 0x3FF0000000000000, 1.5 * 2.0**52,
    float.fromhex("0x1.62e42fefa39efp-1"), float.fromhex("0x1.abc9e3b39803fp-56"), 2.0**-1022, 54,
)  # fmt: skip

LOG2_E = float.fromhex("0x1.71547652b82fep+0")
LN_2 = float.fromhex("0x1.62e42fefa39efp-1")
PI = float.fromhex("0x1.921fb54442d18p+1")
INFINITY = float("inf")
NAN = float("nan")


def format_of(x: Val) -> Format:
    """The format of ``x``.

    Raises TypeError unless it is float32 or float64.
    """
    if x.dtype is dtypes.float32:
        return SINGLE
    if x.dtype is dtypes.float64:
        return DOUBLE
    raise TypeError(f"elementary functions need float32 or float64, got {x.dtype}; cast first")


FUNCTIONS: Registry[Function] = Registry(by_name(MATH))
"""Every elementary function by name; a look-up imports the module that has it."""


def function(implementation: Function) -> Function:
    """Register an implementation under its own name, less a trailing underscore."""
    FUNCTIONS.enter(implementation.__name__.rstrip("_"), implementation)
    return implementation


def horner(b: Control, coefficients: Sequence[float], x: Val) -> Val:
    """The polynomial with ``coefficients`` from the lowest power up, by Horner's rule with FMA."""
    result: Operand = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        result = b.fma(result, x, coefficient)
    assert isinstance(result, Val)
    return result


def quotient(b: Control, above: Sequence[float], below: Sequence[float], x: Val) -> Val:
    """The polynomial with coefficients ``above`` over that with ``below``."""
    return b.div(horner(b, above, x), horner(b, below, x))


def in_double(b: Control, implementation: Function, *operands: Val) -> Val:
    """Run an implementation in float64 and round the result to float32, so with an error below 0.51 units."""
    wide = [b.cast(x, dtypes.float64) for x in operands]
    return b.cast(implementation(b, *wide), dtypes.float32)


def wide(implementation: Function) -> Function:
    """Register an implementation in float64, under its own name; float32 is rounded from it."""
    return with_single(lambda b, *operands: in_double(b, implementation, *operands))(implementation)


def with_single(single: Function) -> Callable[[Function], Function]:
    """As ``wide``, with an implementation of its own for float32."""

    def enter(implementation: Function) -> Function:
        def either(b: Control, *operands: Val) -> Val:
            return (single if format_of(operands[0]) is SINGLE else implementation)(b, *operands)

        FUNCTIONS.enter(implementation.__name__.rstrip("_"), either)
        return implementation

    return enter


def scale_exponent(b: Control, fmt: Format, n: Operand) -> Val:
    """2**n for an integer vector ``n`` within the normal exponents."""
    assert isinstance(n, Val)
    return b.bitcast(b.add(b.shl(n, fmt.mantissa), fmt.one), fmt.dtype)


def clamp(b: Control, x: Val, low: float | None, high: float | None) -> Val:
    """``x`` limited to [low, high]; a NaN passes, which a minimum instruction would not promise."""
    if high is not None:
        x = b.select(b.cmp("gt", x, high), high, x)
    if low is not None:
        x = b.select(b.cmp("lt", x, low), low, x)
    return x
