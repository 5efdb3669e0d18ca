"""Sample calls written down by shape or by array, for operations whose operands differ in kind."""

from __future__ import annotations

from typing import Any

import numpy

from twofold.dtypes import DType, as_dtype, float32, int64
from twofold.ir.interpret import narrow
from twofold.ir.node import Attributes
from twofold.ops.samples import Sample


def _normal(generator: numpy.random.Generator, shape: tuple[int, ...], dtype: DType) -> Any:
    samples = generator.standard_normal(shape)
    return samples + 1j * generator.standard_normal(shape) if dtype.kind == "c" else samples


def example(attrs: Attributes, *operands: Any, dtype: DType = float32, smooth: bool = True) -> Sample:
    """A call on ``operands``.

    A shape samples normal values of ``dtype``, an int is a scalar, an array is itself.
    """
    generator = numpy.random.default_rng(len(operands))
    arrays, dtypes = [], []
    for operand in operands:
        if isinstance(operand, tuple):
            arrays.append(narrow(_normal(generator, operand, dtype), dtype))
            dtypes.append(dtype)
        else:
            array = numpy.asarray(operand, numpy.int64) if isinstance(operand, (int, list)) else operand
            arrays.append(array)
            dtypes.append(int64 if array.dtype == numpy.int64 else as_dtype(array.dtype))
    return Sample(attrs, tuple(arrays), tuple(dtypes), smooth)
