"""Conversion between every two dtypes, with the same bits on every machine."""

from __future__ import annotations

from twofold import dtypes
from twofold.compiler.lower.halves import Halves
from twofold.compiler.lower.values import Val, llvm_type, suffix
from twofold.dtypes import DType

_HALVES = (dtypes.float16, dtypes.bfloat16)


class Casts(Halves):
    """The cast matrix and integer division."""

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
            name = f"llvm.{opcode}.sat.{suffix(dtype, x.lanes)}.{suffix(source, x.lanes)}"
            return self._intrinsic(name, dtype, x.lanes, (x,))
        if source.kind == "b":
            return self._convert("zext", x, dtype)
        if source.itemsize == dtype.itemsize:
            return Val(x.ref, dtype, x.lanes)
        if source.itemsize > dtype.itemsize:
            return self._convert("trunc", x, dtype)
        return self._convert("sext" if source.kind == "i" else "zext", x, dtype)

    def _float64_to_odd(self, x: Val) -> Val:
        """float64 to float32 rounded to odd, so that a second rounding to a half type is correct."""
        near = self._convert("fptrunc", x, dtypes.float32)
        back = self._convert("fpext", near, dtypes.float64)
        bits = self.bitcast(near, dtypes.uint32)
        above = self.cmp("gt", self.abs(back), self.abs(x))
        toward_zero = self.select(above, self.sub(bits, 1), bits)
        exact = self.or_(self.cmp("eq", back, x), self.is_nan(x))
        return self.bitcast(self.select(exact, bits, self.or_(toward_zero, 1)), dtypes.float32)

    def idiv(self, a: Val | int, b: Val | int) -> Val:
        """Integer division toward zero; by zero gives 0, the smallest integer by -1 wraps."""
        x, y = self._unify((a, b))
        dtype = x.dtype
        if dtype is None or dtype.kind not in "iu":
            raise TypeError(f"needs an integer dtype, got {dtype}")
        zero = self.cmp("eq", y, 0)
        unsafe = zero
        if dtype.kind == "i":
            smallest = -(1 << (dtype.itemsize * 8 - 1))
            unsafe = self.or_(zero, self.and_(self.cmp("eq", x, smallest), self.cmp("eq", y, -1)))
        safe = self.select(unsafe, 1, y)
        return self.select(zero, 0, self._divide(x, safe))

    def _divide(self, x: Val, y: Val) -> Val:
        dtype = x.dtype
        assert dtype is not None
        signed = dtype.kind == "i"
        if x.lanes == 1 or dtype.itemsize == 8:
            return self._binary("sdiv" if signed else "udiv", x, y)
        # There is no vector division of integers. A quotient of n-bit integers that is not whole is at least
        # 2**-n (relative) away from the next integer, so a float with more than n bits truncates it rightly.
        wide = dtypes.float64 if dtype.itemsize == 4 else dtypes.float32
        quotient = self.div(self.cast(x, wide), self.cast(y, wide))
        return self._convert("fptosi" if signed else "fptoui", quotient, dtype)

    def floor_div(self, a: Val | float, b: Val | float) -> Val:
        """Division rounded down, as Python's //; an integer by zero gives 0."""
        x, y = self._unify((a, b))
        if x.dtype is not None and x.dtype.kind == "f":
            return self._float_floor_div(x, y)
        quotient = self.idiv(x, y)
        if x.dtype is not None and x.dtype.kind == "u":
            return quotient
        rest = self.sub(x, self.mul(quotient, y))
        return self.select(self._wrong_sign(rest, y), self.sub(quotient, 1), quotient)

    def _wrong_sign(self, rest: Val, divisor: Val) -> Val:
        """Whether a truncated division left a rest whose sign differs from a non-zero divisor's."""
        differ = self.cmp("lt", self.xor(rest, divisor), 0)
        return self.and_(self.and_(differ, self.cmp("ne", rest, 0)), self.cmp("ne", divisor, 0))

    def remainder(self, a: Val | float, b: Val | float) -> Val:
        """a - floor_div(a, b) * b, with the sign of ``b``, as Python's %; an integer by zero gives 0."""
        x, y = self._unify((a, b))
        if x.dtype is not None and x.dtype.kind == "f":
            return self._float_remainder(x, y)
        rest = self.sub(x, self.mul(self.idiv(x, y), y))
        if x.dtype is not None and x.dtype.kind == "i":
            rest = self.select(self._wrong_sign(rest, y), self.add(rest, y), rest)
        return self.select(self.cmp("eq", y, 0), 0, rest)

    def fmod(self, a: Val | float, b: Val | float) -> Val:
        """The exact rest of a division truncated toward zero, with the sign of ``a``; floats and integers."""
        x, y = self._unify((a, b))
        if x.dtype in (dtypes.float32, dtypes.float64):
            return self.call_library("fmodf" if x.dtype is dtypes.float32 else "fmod", x, y)
        rest = self.sub(x, self.mul(self.idiv(x, y), y))
        return self.select(self.cmp("eq", y, 0), 0, rest)

    def _float_remainder(self, x: Val, y: Val) -> Val:
        rest = self.fmod(x, y)
        below = self.xor(self.cmp("lt", rest, 0), self.cmp("lt", y, 0))
        shifted = self.select(below, self.add(rest, y), rest)
        return self.select(self.cmp("eq", rest, 0), self.copysign(0, y), shifted)

    def _float_floor_div(self, x: Val, y: Val) -> Val:
        """Exact as in CPython's float floor division: the rest is removed before dividing."""
        rest = self.fmod(x, y)
        whole = self.div(self.sub(x, rest), y)
        below = self.and_(self.xor(self.cmp("lt", rest, 0), self.cmp("lt", y, 0)), self.cmp("ne", rest, 0))
        whole = self.select(below, self.sub(whole, 1), whole)
        down = self.floor(whole)
        down = self.select(self.cmp("gt", self.sub(whole, down), 0.5), self.add(down, 1), down)
        quotient = self.div(x, y)
        down = self.select(self.cmp("eq", whole, 0), self.copysign(0, quotient), down)
        return self.select(self.cmp("eq", y, 0), quotient, down)
