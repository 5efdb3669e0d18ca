"""Errors of element-wise operations in units in the last place, and the operands they are measured at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

import twofold.ops  # noqa: F401  (registers all operations)
from twofold import _core
from twofold.dtypes import DType, bfloat16, float16, float32, float64
from twofold.errors import TwofoldError
from twofold.ir.interpret import narrow, widen
from twofold.ir.op import REGISTRY
from twofold.ir.types import tensor_type
from twofold.ops.samples import reals
from twofold.transforms.reverse import closed_graph

DTYPES = (float16, bfloat16, float32, float64)
BITS = {float16: 11, bfloat16: 8, float32: 24, float64: 53}
"""Binary digits of a number, the leading one included."""

LEAST_EXPONENT = {float16: -13, bfloat16: -125, float32: -125, float64: -1021}
"""Of the smallest normal number, as ``frexp`` counts."""

LIMIT = {
    float16: 2.0**16,
    bfloat16: 2.0**128,
    float32: 2.0**128,
    float64: numpy.ldexp(numpy.longdouble(1), 1024),
}
"""The first power of two that is too large."""

SPECIAL = (numpy.nan, -numpy.inf, numpy.inf, -0.0, 0.0)


def measured_operations() -> list[str]:
    """Operations on one or more floats whose result is a float, computed alike for all elements."""
    found = []
    for name, op in REGISTRY.items():
        entry: Any = op
        if entry.kind != "elementwise" or getattr(entry, "rule_reference", None) is None:
            continue
        types = [tensor_type(float32, (1,))] * len(entry.parameter_names())
        try:
            result = closed_graph(entry, (), types).outputs[0].dtype
        except (TwofoldError, TypeError):
            continue
        if result is float32 and not any(entry.operand_dtypes):
            found.append(name)
    return found


def bound(op: Any, dtype: DType) -> float:
    """The largest error that the entry promises; half types are float32 rounded once more."""
    if dtype is float64:
        return float(op.accuracy[1])
    single = float(op.accuracy[0])
    return single if dtype is float32 else 0.5 + single * 2.0 ** (BITS[dtype] - BITS[float32])


def all_patterns(dtype: DType, stride: int = 1) -> Any:
    """Every ``stride``-th bit pattern of a dtype of at most 32 bits, in storage form."""
    unsigned = numpy.uint16 if BITS[dtype] < 24 else numpy.uint32
    return numpy.arange(0, numpy.iinfo(unsigned).max + 1, stride, dtype=unsigned).view(dtype.numpy)


def every_size(generator: numpy.random.Generator, dtype: DType, count: int) -> Any:
    """About ``count`` numbers, equally many of each exponent and sign, in storage form."""
    if dtype is not float64:
        stride = max(1, 2 ** (16 if BITS[dtype] < 24 else 32) // count)
        return all_patterns(dtype, stride | 1)
    bits = generator.integers(0, 2**52, count, dtype=numpy.uint64)
    exponents = numpy.resize(numpy.arange(4096, dtype=numpy.uint64), count) << numpy.uint64(52)
    return (bits | exponents).view(numpy.float64)


def operands(op: Any, dtype: DType, count: int) -> list[Any]:
    """Operands in storage form: numbers of every size, of moderate size, and of the entry's own domain."""
    generator = numpy.random.default_rng(0)
    positions = len(op.parameter_names())
    if positions == 1 and BITS[dtype] < 24 and count >= 2**16:
        return [all_patterns(dtype)]
    quarter = count // 4
    found = []
    for position in range(positions):
        domain = op.domain[position] if op.domain else reals(-3, 3)
        near = [generator.uniform(-size, size, quarter) for size in (1.5, 20)]
        parts = [*(narrow(part, dtype) for part in near), domain.sample(generator, dtype, (quarter,))]
        if position:
            # random exponents seldom go together, so each part meets every other one
            parts = [generator.permutation(part) for part in parts]
        parts.append(generator.permutation(every_size(generator, dtype, quarter)))
        found.append(numpy.concatenate(parts))
    size = min(part.size for part in found)
    mixed = [part[:size] for part in found]
    if positions > 1:
        # half of the operands meet others of another part
        second = generator.permutation(mixed[1][::2])
        mixed[1] = mixed[1].copy()
        mixed[1][::2] = second
    return mixed


def computed(op: Any, attrs: tuple[Any, ...], dtype: DType, arrays: Sequence[Any]) -> Any:
    """The result by machine code, in storage form."""
    given = [_core.from_array(numpy.array(array), False, dtype.code) for array in arrays]
    return _core.record(op, attrs, given)._numpy()


def exact_values(op: Any, attrs: tuple[Any, ...], dtype: DType, arrays: Sequence[Any]) -> Any:
    """The value by the entry's reference in a wider type: extended precision for float64, else float64."""
    wide = numpy.longdouble if dtype is float64 else numpy.float64
    with numpy.errstate(all="ignore"):
        return numpy.asarray(op.reference(attrs, *[widen(a, dtype).astype(wide) for a in arrays]))


def spacing(dtype: DType, size: Any) -> Any:
    """A unit in the last place of numbers of this size."""
    exponents = numpy.maximum(numpy.frexp(size)[1], LEAST_EXPONENT[dtype])
    return numpy.ldexp(numpy.ones_like(size), exponents - BITS[dtype])


def errors(op: Any, dtype: DType, arrays: Sequence[Any], result: Any, exact: Any) -> Any:
    """The distance of each result from the exact value in units in the last place of the exact value.

    A result that is NaN or infinite where the exact value is not, or the other way, is infinitely far; overflow
    counts as the first power of two that is too large. 0 where the entry promises nothing.
    """
    if exact.dtype != numpy.longdouble:
        exact = exact.astype(numpy.float64)
    limit = exact.dtype.type(LIMIT[dtype])
    wide = [widen(array, dtype).astype(numpy.float64) for array in arrays]
    with numpy.errstate(all="ignore"):
        found = widen(result, dtype).astype(exact.dtype)
        size = numpy.abs(exact)
        if op.amplitude is not None:
            size = numpy.maximum(size, op.amplitude(*wide))
        unit = spacing(dtype, numpy.minimum(size, limit / 2))
        distance = numpy.abs(numpy.clip(found, -limit, limit) - numpy.clip(exact, -limit, limit)) / unit
        wrong = (numpy.isnan(found) != numpy.isnan(exact)) | (numpy.isinf(exact) & (found != exact))
        distance = numpy.where(wrong, numpy.inf, numpy.where(numpy.isnan(exact), 0, distance))
        if op.accurate_where is not None:
            distance = numpy.where(op.accurate_where(*wide), distance, 0)
    return distance


def special_operands(op: Any, dtype: DType) -> list[Any]:
    """NaN, infinities, both zeros, and the smallest and largest numbers; all pairs for two operands."""
    tiny = float(numpy.ldexp(1.0, LEAST_EXPONENT[dtype] - BITS[dtype]))
    normal = float(numpy.ldexp(1.0, LEAST_EXPONENT[dtype] - 1))
    largest = float(LIMIT[dtype] * (1 - numpy.longdouble(2) ** -BITS[dtype]))
    ends = (tiny, -tiny, normal, -normal, 3 * tiny, largest, -largest, 1.0, -1.0)
    values = narrow(numpy.array([*SPECIAL, *ends]), dtype)
    return [axis.reshape(-1) for axis in numpy.meshgrid(*[values] * len(op.parameter_names()), indexing="ij")]
