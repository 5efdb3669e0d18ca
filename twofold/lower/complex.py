"""Complex numbers: whole elements are moved as integers of their bits, arithmetic runs on their parts."""

from __future__ import annotations

from twofold import dtypes
from twofold.dtypes import DType
from twofold.lower.casts import Casts
from twofold.lower.values import Val, llvm_type

_BITS: dict[DType, DType] = {dtypes.float32: dtypes.uint32, dtypes.float64: dtypes.uint64}


class Complex(Casts):
    """Taking complex elements apart and putting them together; the real part lies in the low half."""

    def _part_bits(self, x: Val, dtype: DType) -> Val:
        assert x.dtype is not None
        bits = self.bitcast(self.settled(x), _BITS[x.dtype])
        return self._pure(f"zext {bits.typed} to {llvm_type(dtype, x.lanes)}", dtype, x.lanes)

    def _half_width(self, dtype: DType, lanes: int) -> str:
        width = str(dtype.itemsize * 4)
        return width if lanes == 1 else f"splat ({llvm_type(dtype)} {width})"

    def pack_complex(self, real: Val, imag: Val) -> Val:
        """The complex numbers with these parts, both float32 or both float64."""
        real, imag = self._unify((real, imag))
        assert real.dtype is not None
        dtype, lanes = real.dtype.complex, real.lanes
        low, high = self._part_bits(real, dtype), self._part_bits(imag, dtype)
        shift = self._half_width(dtype, lanes)
        raised = self._pure(f"shl {high.typed}, {shift}", dtype, lanes)
        return self._pure(f"or {low.typed}, {raised.ref}", dtype, lanes)

    def real_part(self, x: Val) -> Val:
        """The real parts of complex numbers."""
        assert x.dtype is not None
        part = x.dtype.real
        kind = llvm_type(_BITS[part], x.lanes)
        return self.bitcast(self._pure(f"trunc {x.typed} to {kind}", _BITS[part], x.lanes), part)

    def imaginary_part(self, x: Val) -> Val:
        """The imaginary parts of complex numbers."""
        assert x.dtype is not None
        shift = self._half_width(x.dtype, x.lanes)
        return self.real_part(self._pure(f"lshr {x.typed}, {shift}", x.dtype, x.lanes))
