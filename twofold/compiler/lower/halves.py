"""Between float32 and the half types, which are integers of their bits everywhere else.

Nothing here needs a function of the compiler's run-time library, which is not there to link with: where the
processor has no conversion instructions, integer instructions do the same, bit for bit.
"""

from __future__ import annotations

from twofold import dtypes
from twofold.compiler.lower.arithmetic import Arithmetic
from twofold.compiler.lower.target import converts_float16
from twofold.compiler.lower.values import Val, float32_bits, llvm_type
from twofold.dtypes import DType

_SIGN, _MAGNITUDE, _INFINITY = 0x8000, 0x7FFF, 0x7F800000
_BIAS_STEP = (127 - 15) << 23
"""What the exponents of float32 and float16 differ by, in place."""

_SMALLEST_NORMAL = 2.0**-14
_SUBNORMAL_UNIT = 0.5
"""Its last bit is that of float16's subnormals: adding it rounds a smaller number to them."""


def _half(lanes: int) -> str:
    return "half" if lanes == 1 else f"<{lanes} x half>"


class Halves(Arithmetic):
    """Widening and rounding of float16 and bfloat16; a NaN keeps its sign and leading bits and becomes quiet."""

    def widen_half(self, x: Val) -> Val:
        """A half type's value as float32, which is exact."""
        if x.dtype is dtypes.bfloat16:
            return self.bitcast(self.shl(self._unsigned(x), 16), dtypes.float32)
        if not converts_float16():
            return self._float16_by_integers(x)
        kind = _half(x.lanes)
        halves = self._pure(f"bitcast {x.typed} to {kind}", dtypes.float16, x.lanes)
        single = llvm_type(dtypes.float32, x.lanes)
        return self._pure(f"fpext {kind} {halves.ref} to {single}", dtypes.float32, x.lanes)

    def round_to_half(self, x: Val, dtype: DType) -> Val:
        """float32 rounded to a half type, ties to even."""
        if dtype is dtypes.bfloat16:
            # hardware bfloat16 conversions flush subnormals on some machines, so it is done on integers
            bits = self.bitcast(x, dtypes.uint32)
            odd = self.and_(self.shr(bits, 16), 1)
            rounded = self.shr(self.add(bits, self.add(odd, 0x7FFF)), 16)
            quiet = self.or_(self.shr(bits, 16), 0x40)
            return self._narrowed(self.select(self.is_nan(x), quiet, rounded), dtype)
        if not converts_float16():
            return self._to_float16_by_integers(x)
        kind = _half(x.lanes)
        halves = self._pure(f"fptrunc {x.typed} to {kind}", dtypes.float16, x.lanes)
        target = llvm_type(dtypes.float16, x.lanes)
        return self._pure(f"bitcast {kind} {halves.ref} to {target}", dtypes.float16, x.lanes)

    def _unsigned(self, x: Val) -> Val:
        bits = self.bitcast(x, dtypes.uint16)
        return self._pure(f"zext {bits.typed} to {llvm_type(dtypes.uint32, x.lanes)}", dtypes.uint32, x.lanes)

    def _narrowed(self, bits: Val, dtype: DType) -> Val:
        kind = llvm_type(dtypes.uint16, bits.lanes)
        return self.bitcast(self._pure(f"trunc {bits.typed} to {kind}", dtypes.uint16, bits.lanes), dtype)

    def _float16_by_integers(self, x: Val) -> Val:
        bits = self._unsigned(x)
        magnitude = self.shl(self.and_(bits, _MAGNITUDE), 13)
        normal = self.add(magnitude, _BIAS_STEP)
        # with the least normal exponent before them, the bits of a subnormal number stand for too much by just that
        shifted = self.bitcast(self.add(magnitude, _BIAS_STEP + (1 << 23)), dtypes.float32)
        subnormal = self.bitcast(self.sub(shifted, _SMALLEST_NORMAL), dtypes.uint32)
        special = self.or_(magnitude, _INFINITY)
        special = self.select(self.cmp("gt", special, _INFINITY), self.or_(special, 1 << 22), special)
        wide = self.select(self.cmp("lt", magnitude, 1 << 23), subnormal, normal)
        wide = self.select(self.cmp("lt", magnitude, 31 << 23), wide, special)
        sign = self.shl(self.and_(bits, _SIGN), 16)
        return self.bitcast(self.or_(wide, sign), dtypes.float32)

    def _to_float16_by_integers(self, x: Val) -> Val:
        bits = self.bitcast(x, dtypes.uint32)
        magnitude = self.and_(bits, 0x7FFFFFFF)
        odd = self.and_(self.shr(magnitude, 13), 1)
        normal = self.shr(self.add(self.sub(magnitude, _BIAS_STEP), self.add(odd, 0xFFF)), 13)
        aligned = self.bitcast(self.add(self.abs(x), _SUBNORMAL_UNIT), dtypes.uint32)
        subnormal = self.sub(aligned, float32_bits(_SUBNORMAL_UNIT))
        quiet = self.or_(self.and_(self.shr(magnitude, 13), 0x3FF), 0x7E00)
        special = self.select(self.cmp("gt", magnitude, _INFINITY), quiet, 0x7C00)
        half = self.select(self.cmp("lt", magnitude, (127 - 14) << 23), subnormal, normal)
        half = self.select(self.cmp("lt", magnitude, (127 + 16) << 23), half, special)
        return self._narrowed(self.or_(half, self.and_(self.shr(bits, 16), _SIGN)), dtypes.float16)
