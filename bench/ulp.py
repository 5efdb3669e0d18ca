"""Largest error of each elementary function, in units in the last place, over a sample of all bit patterns.

    python bench/ulp.py [--stride 9973] [--lanes 16] [names...]

float32 is compared with NumPy and SciPy in float64; of float64 functions a sample of values is compared with
NumPy in extended precision where it has one (a column is empty where there is no better reference).
"""

from __future__ import annotations

import argparse
import ctypes
import warnings
from collections.abc import Callable

import numpy
import scipy.special
from tqdm import tqdm

from twofold import dtypes
from twofold.dtypes import DType
from twofold.lower.builder import LANES, Builder
from twofold.runtime import jit

Function = Callable[..., numpy.ndarray]

REFERENCES: dict[str, Function] = {
    "exp": numpy.exp,
    "expm1": numpy.expm1,
    "exp2": numpy.exp2,
    "sigmoid": lambda x: numpy.where(x < 0, numpy.exp(x), 1) / (1 + numpy.exp(-numpy.abs(x))),
    "tanh": numpy.tanh,
    "softplus": lambda x: numpy.maximum(x, 0) + numpy.log1p(numpy.exp(-numpy.abs(x))),
    "sinh": numpy.sinh,
    "cosh": numpy.cosh,
    "log": numpy.log,
    "log1p": numpy.log1p,
    "log2": numpy.log2,
    "log10": numpy.log10,
    "asinh": numpy.arcsinh,
    "acosh": numpy.arccosh,
    "atanh": numpy.arctanh,
    "sin": numpy.sin,
    "cos": numpy.cos,
    "tan": numpy.tan,
    "asin": numpy.arcsin,
    "acos": numpy.arccos,
    "atan": numpy.arctan,
    "erf": scipy.special.erf,
    "erfc": scipy.special.erfc,
    "erfinv": lambda x: numpy.copysign(scipy.special.erfinv(x), x),
    "cbrt": numpy.cbrt,
    "lgamma": lambda x: numpy.where(numpy.isinf(x), numpy.inf, scipy.special.gammaln(x)),
    "tgamma": scipy.special.gamma,
    "atan2": numpy.arctan2,
    "hypot": numpy.hypot,
    "logaddexp": numpy.logaddexp,
    "pow": numpy.power,
}
BINARY = {"atan2", "hypot", "logaddexp", "pow"}
EXTENDED = set(REFERENCES) - {"erf", "erfc", "erfinv", "lgamma", "tgamma"}


def evaluate(name: str, dtype: DType, lanes: int, *operands: numpy.ndarray) -> numpy.ndarray:
    """The compiled function at each element of the operands, whose length is a multiple of ``lanes``."""
    b = Builder()
    with b.loop(b.begin, b.end, lanes) as i:
        values = [b.load(b.input(k), i, dtype, lanes) for k in range(len(operands))]
        b.store(b.buffer(len(operands)), i, b.math(name, *values))
    kernel = ctypes.CFUNCTYPE(
        ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
    )(jit.compile_kernels({name: b.finish()})[name])
    result = numpy.empty_like(operands[0])
    arrays = [*operands, result]
    buffers = (ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])
    kernel(ctypes.addressof(buffers), None, 0, operands[0].size)
    return result


def errors(result: numpy.ndarray, exact: numpy.ndarray) -> numpy.ndarray:
    """The distance of each result from the exact value in units in the last place of the exact value.

    A value that should be NaN, infinite or a zero of one sign, and is not, counts as infinitely far.
    """
    dtype = result.dtype
    rounded = exact.astype(dtype)
    spacing = numpy.spacing(numpy.maximum(numpy.abs(rounded), numpy.finfo(dtype).tiny)).astype(exact.dtype)
    distance = numpy.abs(result.astype(exact.dtype) - exact) / spacing
    same = (result == rounded) & (numpy.isinf(rounded) | (numpy.signbit(result) == numpy.signbit(rounded)))
    special = ~numpy.isfinite(rounded) | ~numpy.isfinite(result) | ((rounded == 0) & (result == 0))
    distance = numpy.where(special, numpy.where(same, 0.0, numpy.inf), distance)
    return numpy.where(numpy.isnan(exact), numpy.where(numpy.isnan(result), 0.0, numpy.inf), distance)


def sample(dtype: DType, stride: int, lanes: int) -> numpy.ndarray:
    """Every ``stride``-th bit pattern of float32, as many random ones of float64, and the special values."""
    info = numpy.finfo(dtype.numpy)
    specials = [0.0, 1.0, 0.5, 2.0, info.max, info.tiny, info.smallest_subnormal, numpy.inf, numpy.nan]
    if dtype is dtypes.float32:
        values = numpy.arange(0, 2**32, stride, dtype=numpy.uint32).view(numpy.float32)
    else:
        generator = numpy.random.default_rng(0)
        count = 2**32 // stride // 4
        bits = generator.integers(0, 2**63, count, dtype=numpy.uint64)
        near = generator.uniform(-20, 20, count)
        small = generator.uniform(-1.5, 1.5, count)
        values = numpy.concatenate([bits.view(numpy.float64), -bits.view(numpy.float64), near, small])
    values = numpy.concatenate([values, specials, numpy.negative(specials)]).astype(dtype.numpy)
    return numpy.resize(values, -(-values.size // lanes) * lanes)


def measure(name: str, dtype: DType, stride: int, lanes: int) -> tuple[float, float]:
    """The largest error of one function and the operand it occurs at."""
    wide = numpy.float64 if dtype is dtypes.float32 else numpy.longdouble
    operands = [sample(dtype, stride, lanes)]
    if name in BINARY:
        operands.append(numpy.random.default_rng(1).permutation(operands[0]))
        # random bits seldom have sizes that go together
        operands[1][::2] = numpy.clip(operands[1][::2], -100, 100)
        operands[0][::4] = numpy.abs(numpy.clip(operands[0][::4], -100, 100))
    exact = REFERENCES[name](*[x.astype(wide) for x in operands])
    wrong = errors(evaluate(name, dtype, lanes, *operands), exact)
    worst = int(wrong.argmax())
    return float(wrong[worst]), float(operands[0][worst])


def main() -> None:
    """Print a table of the largest errors."""
    parser = argparse.ArgumentParser(description="Largest errors of the elementary functions.")
    parser.add_argument("--stride", type=int, default=9973)
    parser.add_argument("--lanes", type=int, default=LANES, choices=(1, LANES))
    parser.add_argument("names", nargs="*")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{'function':12}{'float32':>10} at {'':12}{'float64':>10} at")
    for name in tqdm(chosen.names or list(REFERENCES), unit="function"):
        row = f"{name:12}"
        for dtype in (dtypes.float32, dtypes.float64):
            if dtype is dtypes.float32 or name in EXTENDED:
                error, at = measure(name, dtype, chosen.stride, chosen.lanes)
                row += f"{error:10.2f} at {at:<12.6g}"
        tqdm.write(row)


if __name__ == "__main__":
    main()
