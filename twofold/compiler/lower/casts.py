"""Conversion between every two dtypes, with the same bits on every machine."""

from __future__ import annotations

from twofold import dtypes
from twofold.compiler.lower.halves import Halves
from twofold.compiler.lower.values import Val, llvm_type, suffix
from twofold.dtypes import DType

_HALVES = (dtypes.float16, dtypes.bfloat16)


class Casts(Halves):
    """The cast matrix."""

    def _convert(self, opcode: str, x: Val, dtype: DType) -> Val:
        return self._pure(f"{opcode} {x.typed} to {llvm_type(dtype, x.lanes)}", dtype, x.lanes)

    def cast(self, x: Val, dtype: DType) -> Val:
        """``x`` converted to ``dtype``.

        Integers wrap; float to integer truncates, saturates and maps NaN to 0; to bool is ``x != 0``; to a
        smaller float rounds once, ties to even. Integers reach the half types through float32.

        >>> casts = Casts()
        >>> casts.cast(casts.const(1, dtypes.int32, 16), dtypes.float32)
        Val(<16 x float> %v1)
        """
        source = x.dtype
        assert source is not None
        if source is dtype:
            return x
        if source in _HALVES:
            return self.cast(self._from(self.widen_half(x), x), dtype)
        if dtype in _HALVES:
            if source.kind != "f":
                x = self.cast(x, dtypes.float32)
            near = self._float64_to_odd(x) if x.dtype is dtypes.float64 else x
            return self._from(self.round_to_half(near, dtype), x)
        if dtype.kind == "b":
            return self.cmp("ne", x, 0)
        if dtype.kind == "f":
            if source.kind == "f":
                opcode = "fpext" if dtype.itemsize > source.itemsize else "fptrunc"
                return self._computed(self._convert(opcode, x, dtype))
            return self._convert("sitofp" if source.kind == "i" else "uitofp", x, dtype)
        return self._to_integer(x, dtype)

    def _to_integer(self, x: Val, dtype: DType) -> Val:
        source = x.dtype
        assert source is not None
        if source.kind == "f":
            opcode = "fptosi" if dtype.kind == "i" else "fptoui"
            if x.lanes > 1 and dtype.itemsize == 8:
                return self._saturated(opcode, x, dtype)
            name = f"llvm.{opcode}.sat.{suffix(dtype, x.lanes)}.{suffix(source, x.lanes)}"
            return self._intrinsic(name, dtype, x.lanes, (x,))
        if source.kind == "b":
            return self._convert("zext", x, dtype)
        if source.itemsize == dtype.itemsize:
            return Val(x.ref, dtype, x.lanes)
        if source.itemsize > dtype.itemsize:
            return self._convert("trunc", x, dtype)
        return self._convert("sext" if source.kind == "i" else "zext", x, dtype)

    def _saturated(self, opcode: str, x: Val, dtype: DType) -> Val:
        """Vectors of 64-bit integers: LLVM's conversion that saturates takes lanes one by one."""
        low, high = (-(2**63), 2**63) if dtype.kind == "i" else (0, 2**64)
        above, below = self.cmp("ge", x, float(high)), self.cmp("lt", x, float(low))
        inside = self.and_(self.cmp("ge", x, float(low)), self.not_(above))
        found = self._convert(opcode, self.select(inside, x, 0.0), dtype)
        return self.select(below, low, self.select(above, high - 1, found))

    def _float64_to_odd(self, x: Val) -> Val:
        """float64 to float32 rounded to odd, so that a second rounding to a half type is correct."""
        near = self._convert("fptrunc", x, dtypes.float32)
        back = self._convert("fpext", near, dtypes.float64)
        bits = self.bitcast(near, dtypes.uint32)
        above = self.cmp("gt", self.abs(back), self.abs(x))
        toward_zero = self.select(above, self.sub(bits, 1), bits)
        exact = self.or_(self.cmp("eq", back, x), self.is_nan(x))
        return self.bitcast(self.select(exact, bits, self.or_(toward_zero, 1)), dtypes.float32)
