"""Elementary functions: error bounds over a sample of all bit patterns, and every special value."""

from __future__ import annotations

import ctypes
import math
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy
import pytest
import scipy.special

from tests.compiler.lower.processors import EMULATED, runnable
from twofold import dtypes
from twofold.compiler import jit
from twofold.compiler.lower import target
from twofold.compiler.lower.builder import LANES, Builder
from twofold.dtypes import DType

INF, NAN = math.inf, math.nan
STRIDE = 8191


def reference_sigmoid(x: numpy.ndarray) -> numpy.ndarray:
    return numpy.where(x < 0, numpy.exp(x), 1) / (1 + numpy.exp(-numpy.abs(x)))


# reference, bound for float32, bound for float64 (None: no better reference here)
UNARY: dict[str, tuple[Callable[[numpy.ndarray], numpy.ndarray], float, float | None]] = {
    "exp": (numpy.exp, 1.0, 1.1),
    "expm1": (numpy.expm1, 1.5, 2.0),
    "exp2": (numpy.exp2, 0.51, 0.8),
    "sigmoid": (reference_sigmoid, 2.3, 2.4),
    "tanh": (numpy.tanh, 1.4, 1.4),
    "softplus": (lambda x: numpy.maximum(x, 0) + numpy.log1p(numpy.exp(-numpy.abs(x))), 1.8, 2.0),
    "sinh": (numpy.sinh, 0.51, 0.8),
    "cosh": (numpy.cosh, 0.51, 0.8),
    "log": (numpy.log, 0.9, 1.0),
    "log1p": (numpy.log1p, 1.7, 1.4),
    "log2": (numpy.log2, 0.51, 0.8),
    "log10": (numpy.log10, 0.51, 0.8),
    "asinh": (numpy.arcsinh, 0.51, 1.0),
    "acosh": (numpy.arccosh, 0.51, 0.8),
    "atanh": (numpy.arctanh, 0.51, 0.8),
    "sin": (numpy.sin, 1.6, 0.8),
    "cos": (numpy.cos, 1.6, 0.8),
    "tan": (numpy.tan, 0.51, 0.8),
    "asin": (numpy.arcsin, 0.51, 0.8),
    "acos": (numpy.arccos, 0.51, 0.8),
    "atan": (numpy.arctan, 0.51, 0.8),
    "erf": (scipy.special.erf, 1.2, None),
    "erfc": (scipy.special.erfc, 3.5, None),
    "erfcx": (scipy.special.erfcx, 0.51, None),
    "ndtr": (scipy.special.ndtr, 5.8, None),
    "normal_density": (lambda x: numpy.exp(x * x * -0.5) / math.sqrt(2 * math.pi), 1.5, 1.5),
    "log_ndtr": (scipy.special.log_ndtr, 0.51, None),
    "ndtri": (lambda p: numpy.where((p < 0) | (p > 1), NAN, scipy.special.ndtri(p)), 0.51, None),
    "erfinv": (lambda x: numpy.copysign(scipy.special.erfinv(x), x), 0.51, None),
}

BINARY = {"pow": numpy.power, "atan2": numpy.arctan2, "hypot": numpy.hypot, "logaddexp": numpy.logaddexp}
BINARY["logaddexp2"] = numpy.logaddexp2


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def evaluate(
    name: str, dtype: DType, *operands: numpy.ndarray, lanes: int = LANES, compiler: jit.Jit | None = None
) -> numpy.ndarray:
    """The compiled function at each element."""
    size = operands[0].size
    b = Builder()
    with b.loop(b.begin, b.end, lanes) as i:
        mask = b.lane_mask(b.sub(b.end, i)) if lanes > 1 else None
        values = [b.load(b.input(k), i, dtype, lanes, mask) for k in range(len(operands))]
        b.store(b.buffer(len(operands)), i, b.math(name, *values), mask)
    signature = ctypes.CFUNCTYPE(
        ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
    )
    arrays = [numpy.ascontiguousarray(x, dtype.numpy) for x in operands]
    arrays.append(numpy.empty(size, dtype.numpy))
    buffers = (ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])
    address = (compiler or jit.shared()).compile_kernels({name: b.finish()})[name]
    assert signature(address)(ctypes.addressof(buffers), None, 0, size) == 0
    return arrays[-1]


def assert_close(result: numpy.ndarray, exact: numpy.ndarray, bound: float, operand: numpy.ndarray) -> None:
    """Within ``bound`` units in the last place; infinities, NaNs and signs of zeros as in ``exact``."""
    rounded = exact.astype(result.dtype)
    tiny = numpy.finfo(result.dtype).tiny
    spacing = numpy.spacing(numpy.maximum(numpy.abs(rounded), tiny)).astype(exact.dtype)
    finite = numpy.isfinite(rounded) & numpy.isfinite(result)
    error = numpy.where(finite, numpy.abs(result.astype(exact.dtype) - exact) / spacing, 0)
    wrong = (error > bound) | (numpy.isnan(result) != numpy.isnan(exact))
    wrong |= ~finite & ~numpy.isnan(exact) & (result != rounded)
    wrong |= (result == 0) & (rounded == 0) & (numpy.signbit(result) != numpy.signbit(rounded))
    where = numpy.flatnonzero(wrong)[:5]
    report = [(float(operand[k]), float(result[k]), float(exact[k]), float(error[k])) for k in where]
    assert not report, f"operand, result, exact value, error: {report}"


def float32_sample() -> numpy.ndarray:
    specials = [0.0, 1.0, 0.5, 1e-45, 1.1754944e-38, 3.4028235e38, INF, NAN, 88.72284, 103.97, 128.0, 9.0]
    patterns = numpy.arange(0, 2**32, STRIDE, dtype=numpy.uint32).view(numpy.float32)
    both = numpy.array([*specials, *[-x for x in specials]], numpy.float32)
    return numpy.concatenate([patterns, both])


def float64_sample() -> numpy.ndarray:
    generator = numpy.random.default_rng(0)
    bits = generator.integers(0, 2**64, 40000, dtype=numpy.uint64).view(numpy.float64)
    specials = [
        0.0,
        1.0,
        0.5,
        5e-324,
        2.2250738585072014e-308,
        1.7976931348623157e308,
        INF,
        NAN,
        709.8,
        745.2,
    ]
    near = [generator.uniform(-scale, scale, 40000) for scale in (1.5, 20, 800)]
    return numpy.concatenate([bits, *near, specials, numpy.negative(specials)])


@pytest.mark.parametrize("name", UNARY)
def test_float32(name: str) -> None:
    x = float32_sample()
    reference, bound, _ = UNARY[name]
    assert_close(evaluate(name, dtypes.float32, x), reference(x.astype(numpy.float64)), bound, x)


@pytest.mark.parametrize("name", [name for name in UNARY if UNARY[name][2] is not None])
@pytest.mark.skipif(numpy.finfo(numpy.longdouble).nmant < 60, reason="no extended precision to compare with")
def test_float64(name: str) -> None:
    x = float64_sample()
    reference, _, bound = UNARY[name]
    assert bound is not None
    assert_close(evaluate(name, dtypes.float64, x), reference(x.astype(numpy.longdouble)), bound, x)


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=str)
def test_one_lane_gives_the_bits_of_sixteen(name: str, dtype: DType) -> None:
    x = (float32_sample()[::97] if dtype is dtypes.float32 else float64_sample()[::97]).copy()
    bits = numpy.uint32 if dtype is dtypes.float32 else numpy.uint64
    one, many = (evaluate(name, dtype, x, lanes=lanes) for lanes in (1, LANES))
    same = (one.view(bits) == many.view(bits)) | (numpy.isnan(one) & numpy.isnan(many))
    assert same.all(), x[~same][:5]


@pytest.mark.parametrize("processor", EMULATED)
def test_bits_do_not_depend_on_the_processor(
    processor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not runnable(processor):
        pytest.skip(f"this processor does not run code for {processor}")
    narrow = jit.Jit(tmp_path, processor)
    for dtype in (dtypes.float32, dtypes.float64):
        sample = float32_sample()[::300] if dtype is dtypes.float32 else float64_sample()[::300]
        for name in UNARY:
            here = evaluate(name, dtype, sample)
            with monkeypatch.context() as patch:
                patch.setattr(target, "scales_by_powers", lambda: False)
                there = evaluate(name, dtype, sample, compiler=narrow)
            different = ~((here == there) | (numpy.isnan(here) & numpy.isnan(there)))
            assert not different.any(), (name, dtype, sample[different][:5])


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 1e30, -1e30, 1e-40, -1e-40, INF, -INF, NAN]


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=str)
@pytest.mark.parametrize("name", BINARY)
def test_special_values_of_two_operands(name: str, dtype: DType) -> None:
    x, y = (v.ravel().astype(dtype.numpy) for v in numpy.meshgrid(SPECIAL, SPECIAL))
    exact = BINARY[name](x.astype(numpy.float64), y.astype(numpy.float64))
    assert_close(evaluate(name, dtype, x, y), exact, 2.0, x)


@pytest.mark.parametrize("name", BINARY)
def test_two_operands(name: str) -> None:
    generator = numpy.random.default_rng(3)
    scale = 10.0 ** generator.uniform(-6, 6, 50000)
    x = (numpy.abs(generator.normal(size=50000)) * scale).astype(numpy.float32)
    y = generator.uniform(-20, 20, 50000).astype(numpy.float32)
    exact = BINARY[name](x.astype(numpy.float64), y.astype(numpy.float64))
    if name.startswith("logaddexp"):
        # the sum may cancel, so the operands set the scale of the error
        result = evaluate(name, dtypes.float32, x, y)
        larger = numpy.maximum(numpy.abs(x), numpy.abs(y))
        assert (numpy.abs(result - exact) <= 2 * numpy.spacing(numpy.maximum(larger, 1))).all()
    else:
        assert_close(evaluate(name, dtypes.float32, x, y), exact, 0.51, x)


def test_erfinv_of_float64() -> None:
    y = numpy.concatenate([numpy.linspace(-5.8, 5.8, 2001), [1e-300, -1e-9]])
    x = scipy.special.erf(y)
    result = evaluate("erfinv", dtypes.float64, x)
    # an error of x is amplified by the slope, which is large near 1
    slope = math.sqrt(math.pi) / 2 * numpy.exp(result * result)
    allowed = 4 * numpy.spacing(numpy.abs(y)) + numpy.spacing(numpy.abs(x)) * slope
    assert (numpy.abs(result - y) <= allowed).all()
    assert evaluate("erfinv", dtypes.float64, numpy.array([1.0, -1.0, 1.5]))[:2].tolist() == [INF, -INF]


def test_large_arguments_of_trigonometric_functions() -> None:
    # the float32 and float64 nearest to a multiple of pi/2 are the hardest to reduce
    hard = numpy.array([1.6e29, 1.5702955e26, 3.3e38, 16367173 * 2.0**72, -16367173 * 2.0**72], numpy.float32)
    for name, reference in (("sin", numpy.sin), ("cos", numpy.cos), ("tan", numpy.tan)):
        exact = reference(hard.astype(numpy.float64))
        assert_close(evaluate(name, dtypes.float32, hard), exact, 1.6, hard)
    wide = numpy.array([6381956970095103 * 2.0**797, 1e300, -1e22])
    assert_close(evaluate("sin", dtypes.float64, wide), numpy.sin(wide.astype(numpy.longdouble)), 1.6, wide)


def test_subnormal_results_of_exp_however_it_scales(monkeypatch: pytest.MonkeyPatch) -> None:
    x = numpy.linspace(-104.0, -87.3, 20_001).astype(numpy.float32)
    ends = numpy.array([-87.33655, -87.33656, -103.97208, -103.97209, -INF, NAN], numpy.float32)
    x = numpy.concatenate([x, ends])
    exact = numpy.exp(x.astype(numpy.float64))
    results = []
    for scales in (target.scales_by_powers(), False):
        monkeypatch.setattr(target, "scales_by_powers", lambda scales=scales: scales)
        results.append(evaluate("exp", dtypes.float32, x))
        assert (numpy.abs(results[-1] - exact)[:-1] <= 0.9 * 2.0**-149).all()
    assert results[0].tobytes() == results[1].tobytes()


def test_sigmoid_keeps_its_subnormal_tail() -> None:
    x = numpy.array([-100.0, -95.0, -103.0], numpy.float32)
    result = evaluate("sigmoid", dtypes.float32, x)
    assert (result > 0).all() and (result < 1.2e-38).all()


def test_erfc_keeps_its_subnormal_tail() -> None:
    x = numpy.linspace(9.0, 10.3, 5001).astype(numpy.float32)
    result = evaluate("erfc", dtypes.float32, x)
    exact = scipy.special.erfc(x.astype(numpy.float64))
    subnormal = exact < 1.1754944e-38
    assert (numpy.abs(result - exact)[subnormal] <= 2 * 1.4e-45).all()
    assert_close(result, exact, 3.5, x)
    ends = evaluate("erfc", dtypes.float32, numpy.array([0.0, -0.0, INF, -INF, 11.0, -11.0, NAN]))
    assert ends[:6].tolist() == [1.0, 1.0, 0.0, 2.0, 0.0, 2.0] and numpy.isnan(ends[6])


def test_ndtr_keeps_its_subnormal_tail() -> None:
    x = numpy.linspace(-14.6, -12.5, 5001).astype(numpy.float32)
    for name, units, exact in (
        ("ndtr", 4, scipy.special.ndtr(x.astype(numpy.float64))),
        ("normal_density", 2, numpy.exp(-0.5 * x.astype(numpy.float64) ** 2) / math.sqrt(2 * math.pi)),
    ):
        result = evaluate(name, dtypes.float32, x)
        subnormal = exact < 1.1754944e-38
        assert subnormal.any() and (result > 0).any()
        assert (numpy.abs(result - exact)[subnormal] <= units * 1.4e-45).all()
    ends = evaluate("ndtr", dtypes.float32, numpy.array([0.0, -0.0, INF, -INF, 15.0, -15.0, NAN]))
    assert ends[:6].tolist() == [0.5, 0.5, 1.0, 0.0, 1.0, 0.0] and numpy.isnan(ends[6])
