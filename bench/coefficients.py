"""Computes the coefficients of the elementary and special functions, and writes twofold/compiler/lower/math/tables.py.

    python bench/coefficients.py          (needs mpmath)

Each fit is a polynomial or a quotient of two that agrees with the function, computed to 60 digits, at the Chebyshev
points of its interval; such a fit is near the best one. The largest
error of each, relative to the largest value, is printed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import mpmath
from mpmath import mp, mpf
from tqdm import tqdm

mp.dps = 60
TARGET = Path(__file__).parent.parent / "twofold" / "compiler" / "lower" / "math" / "tables.py"
Real = mpmath.mpf


@dataclass(frozen=True)
class Fit:
    """``function`` on [low, high] as P(x - center) / Q(x - center) of the given degrees; Q is 1 if its is 0."""

    name: str
    function: Callable[[Real], Real]
    low: float
    high: float
    above: int
    below: int = 0
    center: float = 0.0


def solve(fit: Fit) -> tuple[list[Real], list[Real], Real]:
    """(P, Q, largest error over the largest value), lowest power first; the first coefficient of Q is 1."""
    low, high, center = mpf(fit.low), mpf(fit.high), mpf(fit.center)
    count = fit.above + fit.below + 1
    points = [
        (low + high) / 2 + (high - low) / 2 * mpmath.cos(mp.pi * (2 * k + 1) / (2 * count))
        for k in range(count)
    ]
    matrix, right = mpmath.matrix(count, count), mpmath.matrix(count, 1)
    for row, x in enumerate(points):
        value, u = fit.function(x), x - center
        for power in range(fit.above + 1):
            matrix[row, power] = u**power
        for power in range(1, fit.below + 1):
            matrix[row, fit.above + power] = -value * u**power
        right[row] = value
    found = list(mpmath.lu_solve(matrix, right))
    p = [mpf(float(c)) for c in found[: fit.above + 1]]
    q = [mpf(1)] + [mpf(float(c)) for c in found[fit.above + 1 :]]
    worst = largest = mpf(0)
    for k in range(65):
        x = low + (high - low) * mpf(2 * k + 1) / 130
        u, value = x - center, fit.function(x)
        worst = max(worst, abs(mpmath.polyval(p[::-1], u) / mpmath.polyval(q[::-1], u) - value))
        largest = max(largest, abs(value))
    return p, q, worst / largest


def at_zero(function: Callable[[Real], Real], limit: Real) -> Callable[[Real], Real]:
    """``function`` with its limit at 0."""
    return lambda x: limit if x == 0 else function(x)


def of_root(function: Callable[[Real], Real]) -> Callable[[Real], Real]:
    """``function`` as one of the square of its argument."""
    return lambda z: function(mpmath.sqrt(z))


def _log_tail(s: Real) -> Real:
    return (2 * mpmath.atanh(s) - 2 * s - 2 * s**3 / 3) / s**5


ELEMENTARY = [
    Fit("LOG_TAIL", of_root(_log_tail), 1e-9, 0.02945, 7),
    Fit("SINH", of_root(lambda x: (mpmath.sinh(x) - x) / x**3), 1e-9, 1.01, 8),
    Fit("TANH", of_root(lambda x: (mpmath.tanh(x) - x) / x**3), 1e-9, 1.01, 6, 5),
    Fit("ATAN", of_root(lambda t: (mpmath.atan(t) - t) / t**3), 1e-9, 0.1716, 13),
    Fit("ASIN", of_root(lambda t: (mpmath.asin(t) - t) / t**3), 1e-9, 0.2501, 8, 5),
]
# to a few 1e-11, for results of float32 that are computed in float64
SHORT = [
    Fit(
        "LOG2_SHORT",
        at_zero(lambda f: mpmath.log(1 + f, 2) / f, 1 / mpmath.log(2)),
        float(mpmath.sqrt(0.5)) - 1.0000001,
        float(mpmath.sqrt(2)) - 0.9999999,
        13,
    ),
    Fit("EXP2_SHORT", lambda r: mpf(2) ** r, -0.5, 0.5, 7),
    Fit("TAN_SHORT", of_root(lambda r: mpmath.tan(r) / r), 1e-9, 0.6169, 8),
    Fit("ATAN_SHORT", of_root(lambda t: mpmath.atan(t) / t), 1e-9, 1.0, 11),
    Fit("ASIN_SHORT", of_root(lambda t: mpmath.asin(t) / t), 1e-9, 0.25, 7),
]


def _erfc_scaled(t: Real) -> Real:
    x = ERFC_TURN * (1 + t) / (1 - t)
    # far out mpmath's product would be 0 times infinity
    scaled = (
        mpmath.exp(x * x) * mpmath.erfc(x)
        if x < 60
        else mpmath.hyperu(mpf(1) / 2, mpf(1) / 2, x * x) / _SQRT_PI
    )
    return (1 + 2 * x) * scaled


def _quantile_of_tail(r: Real) -> Real:
    """The x with a probability of exp(-r**2) above it."""
    x = mpmath.sqrt(2) * r
    for _ in range(60):
        step = (mpmath.log(mpmath.erfc(x / mpmath.sqrt(2)) / 2) + r * r) * mpmath.erfc(x / mpmath.sqrt(2))
        step *= mpmath.sqrt(mp.pi / 2) * mpmath.exp(x * x / 2)
        x += step
        if abs(step) < mpf(10) ** -45:
            break
    return x


def _quantile_of_centre(r: Real) -> Real:
    q = mpmath.sqrt(mpf("0.180625") - r)
    return mpmath.sqrt(2) * mpmath.erfinv(2 * q) / q


_SQRT_PI = mpmath.sqrt(mp.pi)
ERFC_TURN = mpf(3)
ERROR = [
    Fit("ERF", of_root(lambda x: mpmath.erf(x) / x - 1), 1e-9, 1.01, 13),
    Fit("ERFC", _erfc_scaled, -1.0, 0.9999999, 24),
    Fit("QUANTILE_CENTRE", _quantile_of_centre, 0.0, 0.1806249, 8, 8),
    Fit("QUANTILE_TAIL", _quantile_of_tail, 1.6, 5.0, 8, 7, 1.6),
    Fit("QUANTILE_FAR_TAIL", _quantile_of_tail, 5.0, 27.3, 9, 8, 5.0),
]


def _stirling_rest(z: Real) -> Real:
    x = 1 / mpmath.sqrt(z)
    return x * (mpmath.loggamma(x) - (x - 0.5) * mpmath.log(x) + x - mpmath.log(2 * mp.pi) / 2)


def _digamma_rest(z: Real) -> Real:
    x = 1 / mpmath.sqrt(z)
    return (mpmath.log(x) - 1 / (2 * x) - mpmath.digamma(x)) / z


DIGAMMA_ROOT = mpmath.findroot(mpmath.digamma, 1.46163214496836)
GAMMA = [
    Fit("LGAMMA_NEAR", lambda x: mpmath.loggamma(x) / ((x - 1) * (x - 2)), 0.4999, 3.0, 11, 10, 0.5),
    Fit("LGAMMA_MIDDLE", mpmath.loggamma, 3.0, 8.0, 9, 8, 3.0),
    Fit("LGAMMA_FAR", _stirling_rest, 1e-9, 1 / 64, 7),
    Fit("DIGAMMA_NEAR", lambda x: mpmath.digamma(x) / (x - DIGAMMA_ROOT), 1.0, 3.0, 8, 7, 1.0),
    Fit("DIGAMMA_MIDDLE", mpmath.digamma, 3.0, 10.0, 8, 8, 3.0),
    Fit("DIGAMMA_FAR", _digamma_rest, 1e-9, 0.01, 6),
]


def _at_quarter_square(function: Callable[[Real], Real]) -> Callable[[Real], Real]:
    return lambda y: function(2 * mpmath.sqrt(y))


def _at_reciprocal(function: Callable[[Real], Real]) -> Callable[[Real], Real]:
    return lambda z: function(1 / z)


def _hankel(order: int, part: int) -> Callable[[Real], Real]:
    """Of sqrt(pi x / 2) H(x) exp(-i phase) the real part, or x times the imaginary part, at 1 / x**2."""

    def function(z: Real) -> Real:
        x = 1 / mpmath.sqrt(z)
        phase = x - mp.pi / 4 - order * mp.pi / 2
        both = mpmath.mpc(mpmath.besselj(order, x), mpmath.bessely(order, x))
        both *= mpmath.sqrt(mp.pi * x / 2) * mpmath.expj(-phase)
        return both.imag * x if part else both.real

    return function


def _over_roots(order: int) -> Callable[[Real], Real]:
    """J / (x**order (x**2 - first root**2) (x**2 - second root**2)) as a function of x**2."""
    first, second = (mpmath.besseljzero(order, k) ** 2 for k in (1, 2))
    return lambda z: (
        mpmath.besselj(order, mpmath.sqrt(z)) / (mpmath.sqrt(z) ** order * (z - first) * (z - second))
    )


def _y0_rest(x: Real) -> Real:
    return mpmath.bessely(0, x) - 2 / mp.pi * mpmath.log(x) * mpmath.besselj(0, x)


def _y1_rest(x: Real) -> Real:
    return (mpmath.bessely(1, x) - 2 / mp.pi * (mpmath.log(x) * mpmath.besselj(1, x) - 1 / x)) / x


def _airy_parts(z: Real, part: int) -> Real:
    """Of Ai(-x) as sin(u + pi/4) P - cos(u + pi/4) Q / u over sqrt(pi) x**(1/4), u = 2/3 x**(3/2), at 1 / u**2."""
    u = 1 / mpmath.sqrt(z)
    x = (mpf(3) / 2 * u) ** (mpf(2) / 3)
    scale = _SQRT_PI * x ** (mpf(1) / 4)
    ai, bi = scale * mpmath.airyai(-x), scale * mpmath.airybi(-x)
    sine, cosine = mpmath.sin(u + mp.pi / 4), mpmath.cos(u + mp.pi / 4)
    return (sine * bi - cosine * ai) * u if part else sine * ai + cosine * bi


def _airy_right(z: Real) -> Real:
    x = (mpf(3) / 2 / z) ** (mpf(2) / 3)
    return mpmath.airyai(x) * 2 * _SQRT_PI * x ** (mpf(1) / 4) * mpmath.exp(1 / z)


def _i_large(order: int) -> Callable[[Real], Real]:
    return _at_reciprocal(lambda x: mpmath.sqrt(x) * mpmath.exp(-x) * mpmath.besseli(order, x))


def _k_large(order: int) -> Callable[[Real], Real]:
    return _at_reciprocal(lambda x: mpmath.sqrt(x) * mpmath.exp(x) * mpmath.besselk(order, x))


BESSEL = [
    Fit("I0_NEAR", _at_quarter_square(lambda x: (mpmath.besseli(0, x) - 1) * 4 / x**2), 1e-9, 36.0, 24),
    Fit("I0_FAR", _i_large(0), 1e-6, 1 / 12, 20, 0, 1 / 24),
    Fit(
        "I1_NEAR", _at_quarter_square(lambda x: (2 / x * mpmath.besseli(1, x) - 1) * 4 / x**2), 1e-9, 36.0, 24
    ),
    Fit("I1_FAR", _i_large(1), 1e-6, 1 / 12, 20, 0, 1 / 24),
    Fit(
        "K0_NEAR",
        of_root(lambda x: mpmath.besselk(0, x) + mpmath.log(x) * mpmath.besseli(0, x)),
        1e-9,
        1.0,
        8,
    ),
    Fit("K0_FAR", _k_large(0), 1e-6, 1.0, 10, 10),
    Fit(
        "K1_NEAR",
        of_root(lambda x: (mpmath.besselk(1, x) - 1 / x - mpmath.log(x) * mpmath.besseli(1, x)) / x),
        1e-9,
        1.0,
        8,
    ),
    Fit("K1_FAR", _k_large(1), 1e-6, 1.0, 10, 10),
    Fit("J0_NEAR", _over_roots(0), 1e-9, 64.0, 17, 0, 32.0),
    Fit("J1_NEAR", _over_roots(1), 1e-9, 64.0, 17, 0, 32.0),
    Fit("Y0_NEAR", of_root(_y0_rest), 1e-9, 64.0, 20, 0, 32.0),
    Fit("Y1_NEAR", of_root(_y1_rest), 1e-9, 64.0, 19, 0, 32.0),
    *(
        Fit(f"{'PQ'[part]}{order}_FAR", _hankel(order, part), 1e-9, 1 / 64, 6, 5)
        for order in (0, 1)
        for part in (0, 1)
    ),
]
AIRY = [
    Fit("AIRY_NEAR", mpmath.airyai, -2.28, 2.25, 25),
    Fit("AIRY_RIGHT", _airy_right, 1e-7, 1 / 2.25, 8, 8),
    Fit("AIRY_LEFT_P", lambda z: _airy_parts(z, 0), 1e-9, 0.1976, 11, 11),
    Fit("AIRY_LEFT_Q", lambda z: _airy_parts(z, 1), 1e-9, 0.1976, 12, 12),
]
GROUPS = {
    "elementary functions": ELEMENTARY,
    "elementary functions of float32": SHORT,
    "error functions": ERROR,
    "gamma functions": GAMMA,
    "Bessel functions": BESSEL,
    "the Airy function": AIRY,
}


def bernoulli() -> list[Real]:
    """B(2 j) / (2 j)! for j = 1 to 12."""
    return [mpmath.bernoulli(2 * j) / mpmath.factorial(2 * j) for j in range(1, 13)]


def temme(rows: int = 14, columns: int = 20) -> list[list[Real]]:
    """Coefficients of Temme's expansion of the incomplete gamma function, DLMF 8.12.7 to 8.12.11.

    With eta**2 / 2 = mu - log(1 + mu), row k holds those of c_k in powers of eta. The series of mu follows from
    mu mu' = eta (1 + mu), that of c_k from c_(k-1), as the pole of 1 / mu has to vanish.
    """
    count = columns + 2 * rows + 4
    mu = [mpf(0), mpf(1)]
    for n in range(2, count + 1):
        known = sum((i * mu[i] * mu[n + 1 - i] for i in range(2, n)), mpf(0))
        mu.append((mu[n - 1] - known) / (n + 1))
    reciprocal = [mpf(1)]
    for n in range(1, count):
        reciprocal.append(-sum((mu[i + 1] * reciprocal[n - i] for i in range(1, n + 1)), mpf(0)))
    row = reciprocal[1:]
    found = [row[:columns]]
    for _ in range(rows - 1):
        pole = -row[1]
        row = [(n + 2) * row[n + 2] + pole * reciprocal[n + 1] for n in range(len(row) - 2)]
        found.append(row[:columns])
    return found


def literal(values: list[Real]) -> str:
    """A tuple of Python floats, several on a line."""
    lines, line = [], "   "
    for value in values:
        text = f" {float(value)!r},"
        if len(line) + len(text) > 105:
            lines.append(line)
            line = "   "
        line += text
    return "(\n" + "\n".join([*lines, line]) + "\n)"


def main() -> None:
    """Compute every fit and write the tables."""
    text = '"""Coefficients of polynomials and quotients, lowest power first; written by bench/coefficients.py."""\n\n'
    text += "# fmt: off\n"
    for title, fits in GROUPS.items():
        text += f"\n# {title}\n"
        for fit in tqdm(fits, unit="fit"):
            p, q, worst = solve(fit)
            tqdm.write(f"{fit.name:24}{float(worst):10.1e}")
            text += f"{fit.name} = {literal(p)}\n"
            if fit.below:
                text += f"{fit.name}_BELOW = {literal(q)}\n"
    text += "\n# constants of expansions\n"
    text += f"BERNOULLI = {literal(bernoulli())}\n"
    text += "TEMME = (\n" + "".join(f"{literal(row)},\n" for row in temme()) + ")\n"
    TARGET.write_text(text)


if __name__ == "__main__":
    main()
