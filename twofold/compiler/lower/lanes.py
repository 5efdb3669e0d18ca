"""Vectors that are partly in memory, or lie apart in it, on processors without instructions that are fast at that.

LLVM would write a branch for each lane of a masked gather: that compiles for long, and runs no faster than lanes one by
one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from twofold import dtypes
from twofold.compiler.lower.complex import is_long
from twofold.compiler.lower.division import Division
from twofold.compiler.lower.emitter import named_by_code
from twofold.compiler.lower.memory import stored
from twofold.compiler.lower.target import masks_stores
from twofold.compiler.lower.values import LANES, Val, llvm_type
from twofold.dtypes import DType


@lru_cache
def _storing_first(dtype: DType) -> tuple[str, str]:
    """The name and the module of the function that stores the first lanes of a vector.

    It is longer than most kernels, which call it for what is left at their end.
    """
    b = Lanes("shared")
    value, address, count = Val("%x", dtype, LANES), Val("%to", None), Val("%count", dtypes.int64)
    b.store_first(address, value, count)
    return named_by_code(b.finish_function([value, address, count], b.const(0, dtypes.int64)))


class Lanes(Division):
    """Access to the first lanes of vectors, and to lanes a stride or indices apart."""

    def _store_masked(self, address: Val, raw: Val, mask: Val) -> None:
        count = self._counts.get(mask.ref)
        if count is None or masks_stores():
            super()._store_masked(address, raw, mask)
            return
        assert raw.dtype is not None
        if self._loops:  # for each row: a call would be felt
            self.store_first(address, raw, count)
        else:
            name, module = _storing_first(raw.dtype)
            self._call_for_effect(name, module, [raw, address, count])

    def store_first(self, address: Val, raw: Val, count: Val) -> None:
        """Store the first lanes as runs of 8, 4, 2 and 1."""
        assert raw.dtype is not None
        branch = self.if_(self.cmp("eq", count, LANES))
        with branch:
            self._lines.append(f"  store {raw.typed}, ptr {address.ref}, align {raw.dtype.itemsize}")
        with branch.else_():
            count, rest = self.maximum(count, 0), raw
            for lanes in (8, 4, 2, 1):
                low, high = self._low_and_high(rest)
                some = self.cmp("ne", self.and_(count, lanes), 0)
                with self.if_(some):
                    to = self.offset(address, self.and_(count, LANES - 2 * lanes), raw.dtype)
                    self._lines.append(f"  store {low.typed}, ptr {to.ref}, align {raw.dtype.itemsize}")
                rest = self._pure(f"select {some.typed}, {high.typed}, {low.typed}", raw.dtype, lanes)

    def _low_and_high(self, x: Val) -> tuple[Val, Val]:
        """The first and the second half of the lanes."""
        if x.lanes == 2:
            return self.extract(x, 0), self.extract(x, 1)
        half = x.lanes // 2
        orders = [", ".join(f"i32 {k + first}" for k in range(half)) for first in (0, half)]
        texts = [f"shufflevector {x.typed}, {x.type} poison, <{half} x i32> <{order}>" for order in orders]
        low, high = [self._pure(text, x.dtype, half) for text in texts]
        return low, high

    def load_strided(
        self, pointer: Val, index: Val | int, stride: Val | int, dtype: DType, mask: Val | None = None
    ) -> Val:
        """The 16 elements index, index + stride, ...; masked-off lanes are not touched and give 0."""
        if not self._takes_lanes(dtype, mask):
            return super().load_strided(pointer, index, stride, dtype, mask)
        first, step = self.offset(pointer, index, dtype), self.index(stride)
        if mask is not None:
            return self._first_loaded(
                mask, dtype, lambda lane: self.offset(first, self.mul(lane, step), dtype)
            )
        found = Val("poison", stored(dtype), LANES)
        for lane in range(LANES):
            found = self.insert(found, self._loaded(first, dtype), lane)
            first = self.offset(first, step, dtype)
        return self._from_memory(found, dtype)

    def load_indices(self, pointer: Val, indices: Val, dtype: DType, mask: Val | None = None) -> Val:
        """The elements at 16 int64 indices; masked-off lanes are not touched and give 0."""
        if mask is None or not self._takes_lanes(dtype, mask):
            return super().load_indices(pointer, indices, dtype, mask)
        numbers = self.alloca(dtypes.int64, LANES)
        self.store(numbers, 0, self.splat(indices))
        return self._first_loaded(
            mask, dtype, lambda lane: self.offset(pointer, self.load(numbers, lane, dtypes.int64), dtype)
        )

    def _store_apart(
        self, pointer: Val, index: Val | int, stride: Val | int, raw: Val, mask: Val | None
    ) -> None:
        assert raw.dtype is not None
        if not self._takes_lanes(raw.dtype, mask):
            super()._store_apart(pointer, index, stride, raw, mask)
            return
        to, step = self.offset(pointer, index, raw.dtype), self.index(stride)
        if mask is None:
            for lane in range(LANES):
                self._lines.append(
                    f"  store {self.extract(raw, lane).typed}, ptr {to.ref}, align {raw.dtype.itemsize}"
                )
                to = self.offset(to, step, raw.dtype)
            return
        block = self.alloca(raw.dtype, LANES)
        self._lines.append(f"  store {raw.typed}, ptr {block.ref}, align 64")
        with self.loop(0, self._counts[mask.ref]) as lane:
            element = self._loaded(self.offset(block, lane, raw.dtype), raw.dtype)
            address = self.offset(to, self.mul(lane, step), raw.dtype)
            self._lines.append(f"  store {element.typed}, ptr {address.ref}, align {raw.dtype.itemsize}")

    def _takes_lanes(self, dtype: DType, mask: Val | None) -> bool:
        """Whether lanes are accessed one by one: all, or the first ones."""
        known = mask is None or mask.ref in self._counts
        return known and not masks_stores() and not is_long(stored(dtype), LANES)

    def _loaded(self, address: Val, dtype: DType) -> Val:
        memory = stored(dtype)
        return self._emit(f"load {llvm_type(memory)}, ptr {address.ref}, align {memory.itemsize}", memory, 1)

    def _first_loaded(self, mask: Val, dtype: DType, address: Callable[[Val], Val]) -> Val:
        """The elements at the addresses of the first lanes; 0 for the others."""
        memory = stored(dtype)
        block, kind = self.alloca(memory, LANES), llvm_type(memory, LANES)
        self._lines.append(f"  store {kind} zeroinitializer, ptr {block.ref}, align 64")
        with self.loop(0, self._counts[mask.ref]) as lane:
            element, to = self._loaded(address(lane), dtype), self.offset(block, lane, memory)
            self._lines.append(f"  store {element.typed}, ptr {to.ref}, align {memory.itemsize}")
        return self._from_memory(self._emit(f"load {kind}, ptr {block.ref}, align 64", memory, LANES), dtype)
