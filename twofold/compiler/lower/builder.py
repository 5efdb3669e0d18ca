"""The builder of one kernel: appends LLVM IR text, deterministic, so the text is a cache key.

A kernel is ``i64 NAME(ptr buffers, ptr params, i64 begin, i64 end)``: it handles the work items [begin, end)
of ``buffers`` (array of data pointers) and ``params`` (array of int64); it returns 0 or a nonzero error code.
Every value is a ``Val`` (ref, dtype, lanes 1 or 16; a pointer has dtype None). Operands of differing lanes
are splat, Python numbers become constants of the other operand's dtype, differing dtypes raise TypeError.

=============  ============================================================================================
constants      const(value, dtype, lanes=1)  iota(start) -> 16 x int64  lane_mask(remaining) -> 16 x bool
               lane_range(low, high) -> 16 x bool
               identity(kind, dtype)
floats         add sub mul div fma neg abs copysign sqrt floor ceil trunc rint fmod is_nan math(name, x[, y])
               scale(x, exponent)
integers       add sub mul idiv neg abs mulhi_u32 shl shr and_ or_ xor not_  (defined for all operands)
               count_ones(x)  trailing_zeros(x)
both           floor_div remainder (Python signs) minimum maximum (NaN wins) cmp("eq ne lt le gt ge", a, b)
selection      select(cond, a, b)  cast(x, dtype)  bitcast(x, dtype)
lanes          splat(x) extract(x, lane) insert(x, value, lane) any_lane(mask) zip_lanes(a, b)
               even_lanes(a, b)  pushed_lanes(x, first)  reversed_lanes(x)  lane_bits(mask) -> int64
               combine(kind, a, b)  reduce_lanes(kind, vec, mask=None); kind: sum prod max min and or
pointers       buffer(k) = input(k)  param(k) -> int64  begin  end  alloca(dtype, count)
               buffer_at(index)  param_at(index)
               offset(ptr, index, dtype)
loads          load(ptr, index, dtype, lanes=1, mask=None)  load_strided(ptr, index, stride, dtype, mask=None)
               load_indices(ptr, indices, dtype, mask=None)  load_reversed(ptr, index, dtype, mask=None)
               prefetch(ptr, index, dtype)
stores         store(ptr, index, value, mask=None, nontemporal=False)
               store_strided(ptr, index, stride, value, mask=None)
               store_indices(ptr, indices, value, mask=None)
control        loop if_ fail(code) finish() -> str
processor      accumulators(dtype) -> int  gathers() -> bool  streams() -> bool
=============  ============================================================================================

Indices count elements (int64 Val or int). float16 and bfloat16 are only loaded, stored, selected and cast.

Control flow::

    with b.loop(low, high, step) as i: ...              # step > 0, runs while i < high
    loop = b.loop(low, high, carry=[zero])
    with loop as (i, (total,)):
        b.loop_next([b.add(total, x)])                   # outside inner branches
    total, = loop.results
    branch = b.if_(condition)                            # scalar bool; else_ may be left out
    with branch: branch.give([x])
    with branch.else_(): branch.give([y])
    chosen, = branch.results
    with b.if_(bad): b.fail(3)

Arithmetic is strict IEEE 754: nothing is reassociated, and only ``fma`` fuses. Equal pure instructions in
scope are emitted once. Loads are never merged or moved.
"""

from __future__ import annotations

from twofold.compiler.lower import math, target
from twofold.compiler.lower.control import Branch, Loop
from twofold.compiler.lower.emitter import Operand
from twofold.compiler.lower.lanes import Lanes
from twofold.compiler.lower.values import LANES, Val
from twofold.dtypes import DType

__all__ = ["LANES", "Branch", "Builder", "Loop", "Operand", "Val"]


class Builder(Lanes):
    """Writes one kernel; see the module docstring for the whole interface.

    >>> from twofold import dtypes
    >>> b = Builder("double")
    >>> with b.loop(b.begin, b.end) as i:
    ...     x = b.load(b.input(0), i, dtypes.float32)
    ...     b.store(b.buffer(1), i, b.add(x, x))
    >>> b.finish().splitlines()[0]
    'define i64 @double(ptr noalias %buffers, ptr noalias %params, i64 %begin, i64 %end) #0 {'
    """

    def gathers(self) -> bool:
        """Whether sixteen elements at indices are read faster than one after another."""
        return target.vector_bits() == 512

    def streams(self) -> bool:
        """Whether vectors can be written past the caches."""
        return target.streams()

    def accumulators(self, dtype: DType) -> int:
        """How many sums of sixteen lanes the registers hold, with room for factors."""
        bits = target.vector_bits()
        return max((24 if bits == 512 else 12) * bits // (LANES * 8 * dtype.itemsize), 1)

    def math(self, name: str, x: Val, y: Operand | None = None) -> Val:
        """The elementary function ``name`` of float32 or float64, from the own accurate implementations.

        Raises KeyError for an unknown name, TypeError for another dtype.
        """
        return math.apply(self, name, x, y)
