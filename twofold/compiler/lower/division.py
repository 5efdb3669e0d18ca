"""Division of integers, and what is left of divisions that are rounded down or toward zero."""

from __future__ import annotations

from twofold import dtypes
from twofold.compiler.lower.control import Control
from twofold.compiler.lower.values import Val


class Division(Control):
    """Quotients and rests, the same on every machine."""

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
            return self._float_rest(x, y)
        rest = self.sub(x, self.mul(self.idiv(x, y), y))
        return self.select(self.cmp("eq", y, 0), 0, rest)

    def _float_rest(self, x: Val, y: Val) -> Val:
        """x - q y for the quotient q, rounded to nearest and then toward zero, so that it may be one too large.

        The difference is exact, as is that after a step back, where q has no more digits than the format. The C
        library computes that of other operands.
        """
        quotient = self.trunc(self.div(x, y))
        # infinity times 0 is no number, but the rest is x
        finite = self.select(self.cmp("eq", self.abs(y), float("inf")), 0.0, y)
        rest = self.fma(self.neg(quotient), finite, x)
        beyond = self.and_(self.xor(self.cmp("lt", rest, 0), self.cmp("lt", x, 0)), self.cmp("ne", rest, 0))
        rest = self.copysign(self.select(beyond, self.sub(self.abs(y), self.abs(rest)), rest), x)
        near = self.cmp("lt", self.abs(quotient), 2.0 ** (24 if x.dtype is dtypes.float32 else 53))
        branch = self.if_(self.any_lane(self.not_(near)))
        with branch:
            branch.give([self._rest_by_library(x, y)])
        with branch.else_():
            branch.give([rest])
        return branch.results[0]

    def _rest_by_library(self, x: Val, y: Val) -> Val:
        dtype = x.dtype
        assert dtype is not None
        name = "fmodf" if dtype is dtypes.float32 else "fmod"
        if x.lanes == 1:
            return self.call_library(name, x, y)
        block, divisors = self.alloca(dtype, x.lanes), self.alloca(dtype, x.lanes)
        self.store(block, 0, x)
        self.store(divisors, 0, y)
        with self.loop(0, x.lanes) as lane:
            one = self.load(block, lane, dtype), self.load(divisors, lane, dtype)
            self.store(block, lane, self.call_library(name, *one))
        return self.load(block, 0, dtype, x.lanes)

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
