"""Pointers, loads and stores; kernels that tell whether they stored something that is not finite.

The largest magnitude of what is stored is kept in a register of the innermost loop, and behind that on the stack; the
kernel returns what the largest of all stands for, see ``csrc/finite.h``. Infinity has the bits of the largest magnitude
that is not NaN. The search for first bad values asks for such kernels.
"""

from __future__ import annotations

from twofold import dtypes
from twofold.compiler.lower.complex import Complex, is_long
from twofold.compiler.lower.mode import MODE
from twofold.compiler.lower.values import LANES, SUFFIXES, Val, literal, llvm_type, suffix
from twofold.dtypes import DType

_CODES = -(1 << 63)
"""Below a kernel's codes for infinity, 1, and NaN, 2."""

_UNSIGNED = {2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}


def magnitude_dtype(dtype: DType) -> DType:
    """The integers that magnitudes of a float dtype are compared as: the bits without sign, moved up by one.

    >>> magnitude_dtype(dtypes.float32)
    twofold.uint32
    """
    return _UNSIGNED[dtype.itemsize]


def infinity_bits(dtype: DType) -> int:
    """The bits of infinity.

    >>> hex(infinity_bits(dtypes.float32)), hex(infinity_bits(dtypes.bfloat16))
    ('0x7f800000', '0x7f80')
    """
    if dtype.itemsize == 2:
        return int(literal(float("inf"), dtype))
    return 0x7F800000 if dtype.itemsize == 4 else 0x7FF << 52


def stored(dtype: DType) -> DType:
    """The dtype that memory instructions name: bytes for bool.

    >>> stored(dtypes.bool_)
    twofold.uint8
    """
    return dtypes.uint8 if dtype.kind == "b" else dtype


class FiniteChecks(Complex):
    """Notes what stores write, and makes the kernel's code of it."""

    def __init__(self, name: str = "kernel") -> None:
        super().__init__(name)
        self.checks_finite = MODE.on
        self._own: set[str] = set()  # pointers to the stack
        self._largest: dict[tuple[DType, int], Val] = {}  # pointers, by dtype and lanes

    def magnitudes(self, dtype: DType, lanes: int = LANES) -> Val:
        """A pointer to the largest magnitudes of ``dtype`` so far, see ``magnitude_dtype``."""
        found = self._largest.get((dtype, lanes))
        if found is None:
            found, kind = Val(self._fresh(), None), llvm_type(magnitude_dtype(dtype), lanes)
            self._entry.append(f"  {found.ref} = alloca {kind}, align 64")
            self._entry.append(f"  store {kind} zeroinitializer, ptr {found.ref}, align 64")
            self._largest[dtype, lanes] = found
        return found

    def _note(self, pointer: Val, value: Val, mask: Val | None) -> None:
        """Note ``value``, which is stored at ``pointer`` but for the lanes that ``mask`` leaves out."""
        dtype = value.dtype
        if not self.checks_finite or pointer.ref in self._own or dtype is None:
            return
        if dtype.kind == "c":
            for part in (self.real_part(value), self.imaginary_part(value)):
                self._note(pointer, part, mask)
        elif dtype.kind == "f":
            bits = self.bitcast(value, magnitude_dtype(dtype))
            found = self.add(bits, bits)
            if mask is not None:
                found = self.select(mask, found, 0)
            self._keep(dtype, found)

    def _keep(self, dtype: DType, found: Val) -> None:
        """Keep ``found`` if it is larger than the magnitudes so far."""
        slot = self.magnitudes(dtype, found.lanes)
        before = self._emit(f"load {found.type}, ptr {slot.ref}, align 64", found.dtype, found.lanes)
        self._lines.append(f"  store {self.maximum(before, found).typed}, ptr {slot.ref}, align 64")

    def _code(self) -> str:
        """What the kernel returns."""
        found = self.const(0, dtypes.int64)
        for (dtype, lanes), slot in self._largest.items():
            integers = magnitude_dtype(dtype)
            text = f"load {llvm_type(integers, lanes)}, ptr {slot.ref}, align 64"
            most = self.reduce_lanes("max", self._emit(text, integers, lanes))
            infinity = 2 * infinity_bits(dtype)
            levels = [self.cast(self.cmp(order, most, infinity), dtypes.int64) for order in ("ge", "gt")]
            found = self.maximum(found, self.add(*levels))
        if not self._largest:
            return super()._code()
        return self.select(self.cmp("gt", found, 0), self.add(found, _CODES), 0).ref


class Memory(FiniteChecks):
    """Access to the buffers and parameters of the kernel and to memory behind any pointer."""

    def buffer(self, position: int) -> Val:
        """The data pointer of buffer ``position``, loaded once on entry."""
        address = f"%a{position}"
        self._in_entry_raw(f"a{position}", f"{address} = getelementptr ptr, ptr %buffers, i64 {position}")
        return self._in_entry(f"buffer{position}", f"load ptr, ptr {address}, align 8", None)

    input = buffer

    def param(self, position: int) -> Val:
        """The int64 parameter ``position``, loaded once on entry."""
        address = f"%q{position}"
        self._in_entry_raw(f"q{position}", f"{address} = getelementptr i64, ptr %params, i64 {position}")
        return self._in_entry(f"param{position}", f"load i64, ptr {address}, align 8", dtypes.int64)

    def buffer_at(self, position: Val) -> Val:
        """The data pointer of the buffer with this number, which the run decides."""
        address = self._pure(f"getelementptr ptr, ptr %buffers, {self.index(position).typed}", None, 1)
        return self._emit(f"load ptr, ptr {address.ref}, align 8", None, 1)

    def param_at(self, position: Val) -> Val:
        """The int64 parameter with this number, which the run decides."""
        address = self._pure(f"getelementptr i64, ptr %params, {self.index(position).typed}", None, 1)
        return self._emit(f"load i64, ptr {address.ref}, align 8", dtypes.int64, 1)

    def begins_vector(self, pointer: Val, index: Val, dtype: DType) -> Val:
        """Whether the address of element ``index`` is a multiple of the size of 16 of them."""
        return self.cmp("eq", self._past_vector(pointer, index, dtype), 0)

    def _past_vector(self, pointer: Val, index: Val, dtype: DType) -> Val:
        """How many bytes past a multiple of the size of 16 elements the one with number ``index`` lies."""
        address = self.offset(pointer, index, dtype)
        number = self._pure(f"ptrtoint ptr {address.ref} to i64", dtypes.int64, 1)
        return self.and_(number, LANES * dtype.itemsize - 1)

    def begin_of_vector(self, pointer: Val, index: Val, dtype: DType) -> Val:
        """The number, at most ``index``, of the element that begins the vector in which that one lies."""
        return self.sub(
            index, self.shr(self._past_vector(pointer, index, dtype), dtype.itemsize.bit_length() - 1)
        )

    def same_memory(self, a: Val, b: Val) -> Val:
        """Whether two pointers are one."""
        return self._pure(f"icmp eq ptr {a.ref}, {b.ref}", dtypes.bool_, 1)

    def _in_entry_raw(self, key: str, line: str) -> None:
        if key not in self._entry_vals:
            self._entry.append(f"  {line}")
            self._entry_vals[key] = Val(f"%{key}", None)

    @property
    def begin(self) -> Val:
        """The first work item."""
        return Val("%begin", dtypes.int64)

    @property
    def end(self) -> Val:
        """The work item after the last."""
        return Val("%end", dtypes.int64)

    def alloca(self, dtype: DType, count: int = 1) -> Val:
        """A pointer to ``count`` uninitialised elements on the stack, 64-byte aligned."""
        ref = Val(self._fresh(), None)
        self._entry.append(f"  {ref.ref} = alloca {llvm_type(stored(dtype))}, i64 {count}, align 64")
        self._own.add(ref.ref)
        return ref

    def offset(self, pointer: Val, index: Val | int, dtype: DType) -> Val:
        """The pointer ``index`` elements of ``dtype`` further on (index may have 16 lanes)."""
        if isinstance(index, int) and index == 0:
            return pointer
        where = index if isinstance(index, Val) and index.lanes != 1 else self.index(index)
        text = f"getelementptr {llvm_type(stored(dtype))}, ptr {pointer.ref}, {where.typed}"
        found = self._pure(text, None, where.lanes)
        if pointer.ref in self._own:
            self._own.add(found.ref)
        return found

    def _from_memory(self, raw: Val, dtype: DType) -> Val:
        return self.cmp("ne", raw, 0) if dtype.kind == "b" else raw

    def _to_memory(self, value: Val) -> Val:
        assert value.dtype is not None
        return self.cast(value, dtypes.uint8) if value.dtype.kind == "b" else value

    def load(
        self, pointer: Val, index: Val | int, dtype: DType, lanes: int = 1, mask: Val | None = None
    ) -> Val:
        """Element ``index`` and the ``lanes`` - 1 after it; masked-off lanes are not touched and give 0."""
        memory = stored(dtype)
        address = self.offset(pointer, index, dtype)
        kind = llvm_type(memory, lanes)
        if mask is None:
            raw = self._emit(f"load {kind}, ptr {address.ref}, align {memory.itemsize}", memory, lanes)
        else:
            mask = self._full_mask(mask, lanes)
            if is_long(memory, lanes):
                words = self._load_masked(address, dtypes.uint64, self.mask_of_words(mask))
                return self._reread(words, memory, lanes)
            raw = self._load_masked(address, memory, mask)
        return self._from_memory(raw, dtype)

    def _load_masked(self, address: Val, dtype: DType, mask: Val) -> Val:
        kind, name = llvm_type(dtype, mask.lanes), f"llvm.masked.load.{suffix(dtype, mask.lanes)}.p0"
        self._declare(f"declare {kind} @{name}(ptr, i32, {mask.type}, {kind})")
        arguments = f"ptr {address.ref}, i32 {dtype.itemsize}, {mask.typed}, {kind} zeroinitializer"
        return self._emit(f"call {kind} @{name}({arguments})", dtype, mask.lanes)

    def _full_mask(self, mask: Val, lanes: int) -> Val:
        if lanes == 1:
            raise ValueError("a mask needs a vector access")
        return self.splat(mask, lanes)

    def store(
        self, pointer: Val, index: Val | int, value: Val, mask: Val | None = None, nontemporal: bool = False,
        settle: bool = True,
    ) -> None:  # fmt: skip
        """Store a scalar or vector at element ``index``; masked-off lanes stay as they were.

        ``nontemporal`` bypasses the caches; the address of a vector must then be a multiple of its size. Without
        ``settle`` NaNs stay as arithmetic made them, for memory that more arithmetic reads.
        """
        if settle:
            value = self.settled(value)
            self._note(pointer, value, None if mask is None else self._full_mask(mask, value.lanes))
        assert value.dtype is not None
        address = self.offset(pointer, index, value.dtype)
        raw = self._to_memory(value)
        assert raw.dtype is not None
        if mask is None:
            align, hint = raw.dtype.itemsize, ""
            if nontemporal:
                align, hint, self._uses_nontemporal = (
                    raw.dtype.itemsize * raw.lanes,
                    ", !nontemporal !0",
                    True,
                )
            self._lines.append(f"  store {raw.typed}, ptr {address.ref}, align {align}{hint}")
            return
        mask = self._full_mask(mask, raw.lanes)
        if is_long(raw.dtype, raw.lanes):
            raw, mask = self.words(raw), self.mask_of_words(mask)
        self._store_masked(address, raw, mask)

    def _store_masked(self, address: Val, raw: Val, mask: Val) -> None:
        assert raw.dtype is not None
        name = f"llvm.masked.store.{suffix(raw.dtype, raw.lanes)}.p0"
        self._declare(f"declare void @{name}({raw.type}, ptr, i32, {mask.type})")
        arguments = f"{raw.typed}, ptr {address.ref}, i32 {raw.dtype.itemsize}, {mask.typed}"
        self._lines.append(f"  call void @{name}({arguments})")

    def load_indices(self, pointer: Val, indices: Val, dtype: DType, mask: Val | None = None) -> Val:
        """The elements at 16 int64 indices; masked-off lanes are not touched and give 0."""
        memory = stored(dtype)
        addresses = self.offset(pointer, indices, dtype)
        active = self._full_mask(mask, LANES) if mask is not None else self.const(True, dtypes.bool_, LANES)
        if is_long(memory, LANES):
            words = [self._gather(self._word_at(addresses, k), dtypes.uint64, active) for k in (0, 1)]
            return self._reread(self._side_by_side(*words), memory, LANES)
        return self._from_memory(self._gather(addresses, memory, active), dtype)

    def _gather(self, addresses: Val, dtype: DType, active: Val) -> Val:
        kind, name = llvm_type(dtype, LANES), f"llvm.masked.gather.v{LANES}{SUFFIXES[dtype]}.v{LANES}p0"
        self._declare(f"declare {kind} @{name}({addresses.type}, i32, {active.type}, {kind})")
        arguments = f"{addresses.typed}, i32 {dtype.itemsize}, {active.typed}, {kind} zeroinitializer"
        return self._emit(f"call {kind} @{name}({arguments})", dtype, LANES)

    def _word_at(self, addresses: Val, number: int) -> Val:
        """The addresses of one of the words of long elements."""
        if number == 0:
            return addresses
        return self._pure(f"getelementptr i64, {addresses.typed}, i64 {number}", None, addresses.lanes)

    def load_strided(
        self, pointer: Val, index: Val | int, stride: Val | int, dtype: DType, mask: Val | None = None
    ) -> Val:
        """The 16 elements index, index + stride, ...; masked-off lanes are not touched and give 0."""
        return self.load_indices(pointer, self._strided(index, stride), dtype, mask)

    def load_reversed(self, pointer: Val, index: Val | int, dtype: DType, mask: Val | None = None) -> Val:
        """The 16 elements index, index - 1, ... of at most 8 bytes; masked-off lanes are not touched and give 0."""
        if mask is not None:
            mask = self.reversed_lanes(self._full_mask(mask, LANES))
        first = self.sub(self.index(index), LANES - 1)
        return self.reversed_lanes(self.load(pointer, first, dtype, LANES, mask))

    def _strided(self, index: Val | int, stride: Val | int) -> Val:
        steps = self.mul(self.iota(), self.splat(self.index(stride)))
        return self.add(self.splat(self.index(index)), steps)

    def store_indices(self, pointer: Val, indices: Val, value: Val, mask: Val | None = None) -> None:
        """Store 16 lanes at 16 int64 indices; of equal indices the last lane stays."""
        self._store_at(pointer, indices, self._settled_for(pointer, value, mask), mask)

    def _settled_for(self, pointer: Val, value: Val, mask: Val | None) -> Val:
        """The lanes of ``value`` as memory at ``pointer`` holds them."""
        value = self.splat(self.settled(value))
        self._note(pointer, value, mask)
        return self._to_memory(value)

    def _store_at(self, pointer: Val, indices: Val, raw: Val, mask: Val | None) -> None:
        assert raw.dtype is not None
        addresses = self.offset(pointer, indices, raw.dtype)
        active = self._full_mask(mask, LANES) if mask is not None else self.const(True, dtypes.bool_, LANES)
        if is_long(raw.dtype, LANES):
            for k in (0, 1):
                self._scatter(self._word_at(addresses, k), self._one_of_two(self.words(raw), k), active)
        else:
            self._scatter(addresses, raw, active)

    def _scatter(self, addresses: Val, raw: Val, active: Val) -> None:
        assert raw.dtype is not None
        name = f"llvm.masked.scatter.v{LANES}{SUFFIXES[raw.dtype]}.v{LANES}p0"
        self._declare(f"declare void @{name}({raw.type}, {addresses.type}, i32, {active.type})")
        arguments = f"{raw.typed}, {addresses.typed}, i32 {raw.dtype.itemsize}, {active.typed}"
        self._lines.append(f"  call void @{name}({arguments})")

    def prefetch(self, pointer: Val, index: Val | int, dtype: DType, written: bool = False) -> None:
        """Ask for the memory around element ``index``, which need not exist, to be brought near (to be ``written``)."""
        address = self.offset(pointer, index, dtype)
        self._declare("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        self._lines.append(
            f"  call void @llvm.prefetch.p0(ptr {address.ref}, i32 {int(written)}, i32 3, i32 1)"
        )

    def store_strided(
        self, pointer: Val, index: Val | int, stride: Val | int, value: Val, mask: Val | None = None
    ) -> None:
        """Store 16 lanes at index, index + stride, ..."""
        self._store_apart(pointer, index, stride, self._settled_for(pointer, value, mask), mask)

    def _store_apart(
        self, pointer: Val, index: Val | int, stride: Val | int, raw: Val, mask: Val | None
    ) -> None:
        self._store_at(pointer, self._strided(index, stride), raw, mask)
