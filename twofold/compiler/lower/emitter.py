"""The frame of one kernel: naming, reuse of equal instructions, entry block and module text."""

from __future__ import annotations

from collections.abc import Sequence

from twofold import dtypes
from twofold.compiler.lower.values import LANES, SHARED, SUFFIXES, Val, literal, llvm_type
from twofold.dtypes import DType
from twofold.hashing import content_hash

Number = bool | int | float
Operand = Val | Number

_AS_INTEGERS = frozenset(d for d in SUFFIXES if SUFFIXES[d][0] == "i" and d.kind not in "ib")
"""Dtypes that LLVM knows as integers with a sign: unsigned and complex numbers, half types."""


def named_by_code(text: str) -> tuple[str, str]:
    """The name that follows from the code of a function, and its module with that name for ``shared``."""
    name = f"shared_{content_hash(text.encode()).hexdigest()[:16]}"
    return name, text.replace("@shared(", f"@{name}(")


class Emitter:
    """Appends instructions to one function; equal pure instructions in scope are emitted once.

    The text depends only on the calls made, so it serves as a cache key.
    """

    def __init__(self, name: str = "kernel") -> None:
        self.name = name
        self._entry: list[str] = []
        self._lines: list[str] = []
        self._declarations: dict[str, None] = {}
        self._known: dict[str, Val] = {}
        self._scopes: list[list[str]] = []
        self._entry_vals: dict[str, Val] = {}
        self._next_value = 0
        self._next_label = 0
        self._block = "start"
        self._uses_nontemporal = False
        self._tables: dict[tuple[DType, tuple[Number, ...]], Val] = {}
        self._called: dict[str, str] = {}
        self._counts: dict[str, Val] = {}
        """Of masks of the first lanes, how many."""
        self._limited: dict[str, tuple[Val, Val, Val | None]] = {}
        """Of values limited from above or below, what they are but for NaNs, and where these come from."""

    # A value dominates everything inside its scope; after the scope is closed it may not be reused.
    def _open_scope(self) -> None:
        self._scopes.append([])

    def _close_scope(self) -> None:
        for key in self._scopes.pop():
            del self._known[key]

    def _fresh(self) -> str:
        self._next_value += 1
        return f"%v{self._next_value}"

    def _label(self, stem: str) -> str:
        self._next_label += 1
        return f"{stem}{self._next_label}"

    def _start_block(self, label: str) -> None:
        self._lines.append(f"{label}:")
        self._block = label

    def _emit(self, text: str, dtype: DType | None, lanes: int) -> Val:
        """Append an instruction that reads or changes memory, so must stay where it is."""
        self._next_value += 1
        ref = f"%v{self._next_value}"
        self._lines.append(f"  {ref} = {text}")
        return Val(ref, dtype, lanes)

    def _pure(self, text: str, dtype: DType | None, lanes: int) -> Val:
        """Append an instruction without side effects, or return the equal one already in scope."""
        # the types in the text tell dtypes apart, except of what LLVM integers stand for
        key = text + dtype.name if dtype is not None and dtype in _AS_INTEGERS else text
        known = self._known.get(key)
        if known is None:
            known = self._emit(text, dtype, lanes)
            self._known[key] = known
            if self._scopes:
                self._scopes[-1].append(key)
        return known

    @staticmethod
    def _from(value: Val, *sources: Val) -> Val:
        """``value``, whose bits are those of some of ``sources``, with what they may hold."""
        for source in sources:
            if source.open_nan:
                value.open_nan = True
        return value

    @staticmethod
    def _computed(value: Val) -> Val:
        """``value``, marked as the result of arithmetic if it is a float."""
        if value.dtype is not None and value.dtype.kind == "f":
            value.open_nan = True
        return value

    def _in_entry(self, key: str, text: str, dtype: DType | None, lanes: int = 1) -> Val:
        """Append an instruction to the entry block, once per key."""
        known = self._entry_vals.get(key)
        if known is None:
            known = Val(self._fresh(), dtype, lanes)
            self._entry.append(f"  {known.ref} = {text}")
            self._entry_vals[key] = known
        return known

    def _declare(self, signature: str) -> None:
        self._declarations[signature] = None

    def _intrinsic(self, name: str, dtype: DType, lanes: int, operands: Sequence[Val | str]) -> Val:
        """A pure call of an intrinsic or library function; strings are literal arguments."""
        types = ", ".join(x.split()[0] if isinstance(x, str) else x.type for x in operands)
        result = llvm_type(dtype, lanes)
        self._declare(f"declare {result} @{name}({types})")
        arguments = ", ".join(x if isinstance(x, str) else f"{x.type} {x.ref}" for x in operands)
        return self._pure(f"call {result} @{name}({arguments})", dtype, lanes)

    def call(self, name: str, module: str, operands: Sequence[Val], dtype: DType) -> Val:
        """A pure call of the function that ``module`` defines, which returns a vector."""
        self._called[name] = module
        return self._intrinsic(name, dtype, LANES, operands)

    def _call_for_effect(self, name: str, module: str, operands: Sequence[Val]) -> None:
        """A call of the function that ``module`` defines, which returns an int64 that nothing reads."""
        self._called[name] = module
        self._declare(f"declare i64 @{name}({', '.join([one.type for one in operands])})")
        self._lines.append(
            f"  {self._fresh()} = call i64 @{name}({', '.join([one.typed for one in operands])})"
        )

    def const(self, value: Number, dtype: DType, lanes: int = 1) -> Val:
        """A constant; integers wrap to the width of ``dtype``.

        >>> Emitter().const(2.0, dtypes.float32, 16)
        Val(<16 x float> splat (float 0x4000000000000000))
        """
        text = literal(value, dtype)
        if lanes != 1:
            text = f"splat ({llvm_type(dtype)} {text})"
        return Val(text, dtype, lanes)

    def table(self, values: Sequence[Number], dtype: DType) -> Val:
        """A pointer to constants that live in the module, for ``load`` and ``load_indices``."""
        key = (dtype, tuple(values))
        if key not in self._tables:
            self._tables[key] = Val(f"@table{len(self._tables)}", None)
        return self._tables[key]

    def index(self, value: Val | int) -> Val:
        """``value`` as an int64 scalar.

        Raises TypeError for anything else.
        """
        if isinstance(value, Val):
            if value.dtype is not dtypes.int64 or value.lanes != 1:
                raise TypeError(f"an index must be a scalar int64, got {value}")
            return value
        return self.const(value, dtypes.int64)

    def splat(self, x: Val, lanes: int = LANES) -> Val:
        """A vector with ``x`` in every lane; a vector is returned as it is.

        Raises ValueError for a vector of another width.
        """
        if x.lanes == lanes:
            return x
        if x.lanes != 1:
            raise ValueError(f"cannot widen {x.lanes} lanes to {lanes}")
        if x.is_constant:
            return Val(f"splat ({x.type} {x.ref})", x.dtype, lanes)
        kind = llvm_type(x.dtype, lanes)
        first = self._pure(f"insertelement {kind} poison, {x.type} {x.ref}, i64 0", x.dtype, lanes)
        zeros = f"<{lanes} x i32> zeroinitializer"
        text = f"shufflevector {kind} {first.ref}, {kind} poison, {zeros}"
        return self._from(self._pure(text, x.dtype, lanes), x)

    def _unify(self, operands: Sequence[Operand], dtype: DType | None = None) -> list[Val]:
        """The operands with one dtype and one number of lanes; numbers take the dtype of the others."""
        lanes = 1
        for x in operands:
            if isinstance(x, Val):
                if dtype is None:
                    dtype = x.dtype
                elif x.dtype is not dtype:
                    raise TypeError(f"operands differ in dtype: {dtype} and {x.dtype}")
                if x.lanes > lanes:
                    lanes = x.lanes
        if dtype is None:
            raise TypeError("at least one operand must be a Val with a dtype")
        result = []
        for x in operands:
            if not isinstance(x, Val):
                x = self.const(x, dtype, lanes)
            elif x.lanes != lanes:
                x = self.splat(x, lanes)
            result.append(x)
        return result

    def _table_lines(self) -> list[str]:
        lines = []
        for (dtype, values), pointer in self._tables.items():
            elements = ", ".join(f"{llvm_type(dtype)} {literal(v, dtype)}" for v in values)
            kind = f"[{len(values)} x {llvm_type(dtype)}]"
            lines.append(f"{pointer.ref} = private unnamed_addr constant {kind} [{elements}], align 64")
        return lines

    def _code(self) -> str:
        """What the kernel returns at its end."""
        return "0"

    def finish(self) -> str:
        """The text of a whole module: declarations, then the kernel, which returns 0 unless it notes what it stores.

        What it calls follows. Raises RuntimeError while a loop or branch is open.
        """
        parameters = "ptr noalias %buffers, ptr noalias %params, i64 %begin, i64 %end"
        text = self._module(f"i64 @{self.name}({parameters})", f"i64 {self._code()}")
        return text + "".join([SHARED + module for module in self._called.values()])

    def finish_function(self, arguments: Sequence[Val], result: Val) -> str:
        """The text of a module that defines a function of vectors."""
        parameters = ", ".join([one.typed for one in arguments])
        return self._module(f"{result.type} @{self.name}({parameters})", result.typed)

    def _module(self, signature: str, result: str) -> str:
        if self._scopes:
            raise RuntimeError("a loop or branch is still open")
        body = [
            *self._table_lines(),
            *self._declarations,
            f"define {signature} #0 {{",
            "entry:",
            *self._entry,
            "  br label %start",
            "start:",
            *self._lines,
        ]
        if self._uses_nontemporal:
            # what another thread reads next is written before it is told
            body.append("  call void @llvm.x86.sse.sfence()")
        body += [f"  ret {result}", "}", "attributes #0 = { nounwind }"]
        if self._uses_nontemporal:
            body += ["declare void @llvm.x86.sse.sfence()", "!0 = !{i32 1}"]
        return "\n".join(body) + "\n"
