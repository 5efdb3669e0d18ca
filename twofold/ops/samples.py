"""Sample calls: what generated tests run every operation on.

Arrays are in storage form: bfloat16 travels as uint16 with the upper half of a float32's bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy

from twofold.dtypes import (
    DType,
    bfloat16,
    bool_,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int32,
    int64,
    uint8,
)
from twofold.ir.interpret import Array, narrow
from twofold.ir.node import Attributes
from twofold.ir.types import Shape, TensorType, tensor_type


class Sample(NamedTuple):
    """One call: attributes, arrays in storage form and their dtypes.

    ``smooth`` says that finite differences may be taken here.
    """

    attrs: Attributes
    arrays: tuple[Array, ...]
    dtypes: tuple[DType, ...]
    smooth: bool = True

    @property
    def types(self) -> tuple[TensorType, ...]:
        """The input types of the call."""
        pairs = zip(self.dtypes, self.arrays)
        return tuple(tensor_type(dtype, array.shape) for dtype, array in pairs)


class Domain(NamedTuple):
    """Where the elements of one operand are sampled from: [low, high], at least ``gap`` away from zero."""

    low: float
    high: float
    gap: float = 0.0

    def sample(self, generator: numpy.random.Generator, dtype: DType, shape: Shape) -> Array:
        """An array in storage form."""
        if dtype.kind == "b":
            return generator.integers(0, 2, shape).astype(bool)
        if dtype.kind in "iu":
            low = max(int(numpy.ceil(self.low)), 0 if dtype.kind == "u" else -100)
            values = generator.integers(low, max(int(self.high), low) + 1, shape)
            if self.gap:
                values = numpy.where(values == 0, max(1, low), values)
            return numpy.asarray(values).astype(dtype.numpy)
        if dtype.kind == "c":
            real, imag = (self.sample(generator, dtype.real, shape) for _ in "xy")
            return numpy.asarray(real + 1j * imag).astype(dtype.numpy)
        samples = generator.uniform(self.low, self.high, shape)
        if self.gap:
            samples = numpy.where(
                abs(samples) < self.gap, numpy.where(samples < 0, -self.gap, self.gap), samples
            )
        return narrow(numpy.asarray(samples), dtype)


def reals(low: float, high: float) -> Domain:
    """Elements from [low, high]; the integers in it for an integer dtype."""
    return Domain(low, high)


def nonzero(low: float, high: float, gap: float = 0.1) -> Domain:
    """Elements from [low, high] that are at least ``gap`` away from zero."""
    return Domain(low, high, gap)


SPECIAL = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    numpy.inf,
    -numpy.inf,
    numpy.nan,
    1e-40,
    -1e-30,
    1e30,
    -3e38,
    0.5,
    -2.5,
    88.0,
)

_UNARY: tuple[Shape, ...] = ((), (1,), (0,), (19,), (2, 3), (3, 0, 2), (2, 1, 33))
_BINARY: tuple[tuple[Shape, ...], ...] = (
    ((), ()), ((17,), (17,)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((0, 3), (3,)), ((1,), (4,)), ((), (2, 2)),
    ((4, 1, 5), (3, 1)), ((0,), (1,)),
)  # fmt: skip
_TERNARY: tuple[tuple[Shape, ...], ...] = (
    ((), (), ()), ((17,), (17,), (17,)), ((2, 3), (3,), ()), ((2, 1), (1, 3), (1,)), ((0, 3), (3,), (1, 3)),
)  # fmt: skip
_DTYPES = {
    "f": (float32, float64, float16, bfloat16),
    "i": (int32, int64, int8),
    "u": (uint8,),
    "b": (bool_,),
    "c": (complex64, complex128),
}


_MAIN = {"f": float32, "i": int32, "b": bool_, "c": complex64}


def elementwise_samples(
    kinds: str,
    domains: Sequence[Domain],
    fixed: Sequence[DType | None],
    attributes: Sequence[Attributes] = ((),),
    special: bool = True,
) -> Iterator[Sample]:
    """Calls of an element-wise operation: awkward shapes, every dtype of ``kinds``, special values."""
    generator = numpy.random.default_rng(len(domains))
    count = len(domains)
    more = [shape + ((),) * (count - 3) for shape in _TERNARY]
    by_count: dict[int, list[tuple[Shape, ...]]] = {1: [(shape,) for shape in _UNARY], 2: list(_BINARY)}
    shapes = by_count.get(count, more)
    main = next(dtype for kind, dtype in _MAIN.items() if kind in kinds)
    others = [dtype for kind in kinds for dtype in _DTYPES[kind] if dtype is not main]

    def sample(attrs: Attributes, shape: tuple[Shape, ...], dtype: DType) -> Sample:
        types = tuple(given or dtype for given in fixed)
        arrays = tuple(d.sample(generator, t, s) for d, t, s in zip(domains, types, shape))
        return Sample(attrs, arrays, types)

    for attrs in attributes:
        for shape in shapes:
            yield sample(attrs, shape, main)
        for dtype in others:
            yield sample(attrs, shapes[3 if count == 1 else 1], dtype)
            yield sample(attrs, shapes[4 if count == 1 else 2], dtype)
        if special and main is float32 and count < 3 and not any(fixed):
            grid = numpy.meshgrid(*[numpy.array(SPECIAL, numpy.float32)] * count, indexing="ij")
            values = tuple(numpy.ascontiguousarray(axis.reshape(-1)) for axis in grid)
            yield Sample(attrs, values, (float32,) * count, smooth=False)


_REDUCED: tuple[tuple[Shape, tuple[int, ...]], ...] = (
    ((19,), (0,)), ((2, 3), (1,)), ((2, 3), (0,)), ((2, 3, 4), (0, 2)), ((2, 3, 4), (1,)), ((1, 5), (0,)),
    ((3, 1), (1,)), ((2, 3), (0, 1)), ((), ()), ((0, 3), (1,)), ((2, 3), ()),
)  # fmt: skip
_LARGE: tuple[tuple[Shape, tuple[int, ...]], ...] = (((5000,), (0,)), ((3, 4097), (1,)), ((4100, 3), (0,)))
_EMPTY: tuple[tuple[Shape, tuple[int, ...]], ...] = (((0, 3), (0,)), ((0,), (0,)))


def reduction_samples(kinds: str, domain: Domain, empty: bool, large: bool = True) -> Iterator[Sample]:
    """Calls of a reduction with attributes ``(axes, keepdims)``: awkward shapes, large ones, every dtype."""
    generator = numpy.random.default_rng(7)
    main = float32 if "f" in kinds else bool_
    for shape, axes in _REDUCED + (_EMPTY if empty else ()) + (_LARGE if large else ()):
        for keepdims in (False, True)[: 1 if numpy.prod(shape) > 100 else 2]:
            array = domain.sample(generator, main, shape)
            yield Sample((axes, keepdims), (array,), (main,), smooth=array.size < 100)
    for dtype in (dtype for kind in kinds for dtype in _DTYPES[kind] if dtype is not main):
        for shape, axes in _REDUCED[:4]:
            yield Sample((axes, False), (domain.sample(generator, dtype, shape),), (dtype,))
