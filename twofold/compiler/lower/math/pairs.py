"""Numbers as unevaluated sums of two floats, with about twice the digits.

T. Dekker, "A floating-point technique for extending the available precision", 1971; products by one FMA.
"""

from __future__ import annotations

from twofold.compiler.lower.control import Control
from twofold.compiler.lower.emitter import Operand
from twofold.compiler.lower.values import Val

Pair = tuple[Val, Val]
"""(high, low): the value is their sum, and ``high`` the nearest float to it."""

LN_2 = (float.fromhex("0x1.62e42fefa39efp-1"), float.fromhex("0x1.abc9e3b39803fp-56"))
LOG2_E = (float.fromhex("0x1.71547652b82fep+0"), float.fromhex("0x1.777d0ffda0d24p-56"))
LOG10_E = (float.fromhex("0x1.bcb7b1526e50ep-2"), float.fromhex("0x1.95355baaafad3p-57"))
HALF_PI = (float.fromhex("0x1.921fb54442d18p+0"), float.fromhex("0x1.1a62633145c07p-54"))
TWO_THIRDS = (float.fromhex("0x1.5555555555555p-1"), float.fromhex("0x1.5555555555555p-55"))


def two_sum(b: Control, x: Operand, y: Operand) -> Pair:
    """x + y and its rounding error, of numbers of any sizes."""
    total = b.add(x, y)
    part = b.sub(total, x)
    return total, b.add(b.sub(x, b.sub(total, part)), b.sub(y, part))


def quick_sum(b: Control, large: Operand, small: Operand) -> Pair:
    """large + small and its rounding error, where ``large`` is 0 or not smaller than ``small``."""
    total = b.add(large, small)
    return total, b.sub(small, b.sub(total, large))


def two_product(b: Control, x: Operand, y: Operand) -> Pair:
    """x y and its rounding error."""
    product = b.mul(x, y)
    return product, b.fma(x, y, b.neg(product))


def add(b: Control, x: Pair, y: Pair | tuple[Operand, Operand]) -> Pair:
    """x + y."""
    total, error = two_sum(b, x[0], y[0])
    return quick_sum(b, total, b.add(error, b.add(x[1], y[1])))


def multiply(b: Control, x: Pair, y: Pair | tuple[Operand, Operand]) -> Pair:
    """x y."""
    product, error = two_product(b, x[0], y[0])
    return quick_sum(b, product, b.fma(x[0], y[1], b.fma(x[1], y[0], error)))


def divide(b: Control, x: Pair | tuple[Val, Operand], y: Pair) -> Pair:
    """x / y."""
    quotient = b.div(x[0], y[0])
    rest = b.fma(b.neg(quotient), y[0], x[0])
    rest = b.sub(b.add(rest, x[1]), b.mul(quotient, y[1]))
    return quick_sum(b, quotient, b.div(rest, y[0]))


def square_root(b: Control, x: Pair) -> Pair:
    """The square root; of zero, zero."""
    root = b.sqrt(x[0])
    rest = b.add(b.fma(b.neg(root), root, x[0]), x[1])
    zero = b.cmp("eq", root, 0.0)
    return root, b.select(zero, 0.0, b.div(rest, b.select(zero, 1.0, b.add(root, root))))


def rounded(b: Control, x: Pair) -> Val:
    """The pair as one float."""
    return b.add(x[0], x[1])
