"""NumPy's arrays behind the names of the loop builder, so that one formula is both kernel and reference."""

from __future__ import annotations

import math
from typing import Any

import numpy

from twofold.dtypes import DType

_lgamma = numpy.vectorize(math.lgamma, otypes=[numpy.float64])
_COMPARED = {"gt": numpy.greater, "ge": numpy.greater_equal, "lt": numpy.less, "le": numpy.less_equal}
_MATH: dict[str, Any] = {
    "log": numpy.log,
    "log1p": numpy.log1p,
    "exp": numpy.exp,
    "cos": numpy.cos,
    "acos": numpy.arccos,
    "lgamma": lambda x: _lgamma(x) if x.size else x,
}


class Arrays:
    """The builder's element-wise operations on arrays."""

    add, sub, mul = (staticmethod(f) for f in (numpy.add, numpy.subtract, numpy.multiply))
    div, sqrt, abs, neg = (
        staticmethod(f) for f in (numpy.divide, numpy.sqrt, numpy.absolute, numpy.negative)
    )
    floor, minimum, maximum = (staticmethod(f) for f in (numpy.floor, numpy.minimum, numpy.maximum))
    and_, or_, not_ = (staticmethod(f) for f in (numpy.logical_and, numpy.logical_or, numpy.logical_not))
    select, copysign = (staticmethod(f) for f in (numpy.where, numpy.copysign))
    shl = staticmethod(lambda x, count: x << numpy.uint64(count))
    shr = staticmethod(lambda x, count: x >> numpy.uint64(count))
    cmp = staticmethod(lambda kind, a, b: _COMPARED[kind](a, b))
    math = staticmethod(lambda name, x: _MATH[name](x))

    @staticmethod
    def cast(x: Any, dtype: DType) -> Any:
        """``x`` in the NumPy dtype of ``dtype``."""
        return numpy.asarray(x).astype(dtype.numpy)
