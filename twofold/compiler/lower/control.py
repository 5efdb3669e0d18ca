"""Loops and branches with values, as context managers."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any

from twofold import dtypes
from twofold.compiler.lower.memory import Memory
from twofold.compiler.lower.values import LANES, Val
from twofold.dtypes import DType


class Loop:
    """An open loop; ``results`` holds the carried values after it is left."""

    def __init__(self, builder: Control, low: Val, high: Val, step: Val, carry: Sequence[Val] | None) -> None:
        self._builder = builder
        self._low, self._high, self._step = low, high, step
        self._initial = carry
        self._following: list[Val] | None = None
        self.carried: list[Val] = []
        self.results: list[Val] = []
        self.magnitudes: dict[tuple[DType, int], tuple[Val, Val]] = {}
        """By dtype and lanes, the largest before an iteration and after it, see ``lower.memory``."""

    def __enter__(self) -> Any:
        """Open the body; gives the index, or (index, carried) if values are carried."""
        b = self._builder
        self._body, self._exit = b._label("loop"), b._label("after")
        self._before = b._block
        # tested at the bottom: no pass runs later that would rotate it
        some = b.cmp("lt", self._low, self._high)
        b._lines.append(f"  br i1 {some.ref}, label %{self._body}, label %{self._exit}")
        b._start_block(self._body)
        b._open_scope()
        b._loops.append(self)
        self.index = Val(b._fresh(), dtypes.int64)
        self._phis_at = len(b._lines)
        b._lines.append("")
        for start in self._initial or ():
            # what comes round is not known yet
            self.carried.append(b._computed(Val(b._fresh(), start.dtype, start.lanes)))
            b._lines.append("")
        if b.checks_finite:
            b._lines.append("")
        self.branches = b._branches
        return self.index if self._initial is None else (self.index, self.carried)

    def next(self, values: Sequence[Val]) -> None:
        """State the carried values of the next iteration (once, anywhere in the body outside inner branches).

        Raises TypeError if their types differ from the initial ones.
        """
        for value, start in zip(values, self._initial or (), strict=True):
            if value.type != start.type or value.dtype is not start.dtype:
                raise TypeError(f"a loop carries {start.type} but the next value is {value.type}")
        self._following = list(values)

    def __exit__(self, kind: type[BaseException] | None, _: object, __: TracebackType | None) -> None:
        b = self._builder
        if b._loops.pop() is not self:
            raise RuntimeError("loops must be closed from the inside out")
        if kind is not None:
            return
        if self._initial and self._following is None:
            raise RuntimeError("a loop with carried values needs loop_next")
        after = b.add(self.index, self._step)
        more = b.cmp("lt", after, self._high)
        latch = b._block
        b._lines.append(f"  br i1 {more.ref}, label %{self._body}, label %{self._exit}")
        firsts = [self._low, *(self._initial or ())]
        seconds = [after, *(self._following or ())]
        for k, phi in enumerate([self.index, *self.carried]):
            arms = f"[ {firsts[k].ref}, %{self._before} ], [ {seconds[k].ref}, %{latch} ]"
            b._lines[self._phis_at + k] = f"  {phi.ref} = phi {phi.type} {arms}"
        if b.checks_finite:
            b._lines[self._phis_at + 1 + len(self.carried)] = "\n".join(
                f"  {before.ref} = phi {before.type} [ zeroinitializer, %{self._before} ], [ {now.ref}, %{latch} ]"
                for before, now in self.magnitudes.values()
            )
        b._close_scope()
        b._start_block(self._exit)
        for first, second in zip(firsts[1:], seconds[1:], strict=True):
            arms = f"[ {first.ref}, %{self._before} ], [ {second.ref}, %{latch} ]"
            result = b._emit(f"phi {first.type} {arms}", first.dtype, first.lanes)
            self.results.append(b._from(result, first, second))
        noted = []
        for (dtype, lanes), (_, now) in self.magnitudes.items():
            arms = f"[ zeroinitializer, %{self._before} ], [ {now.ref}, %{latch} ]"
            noted.append((dtype, b._emit(f"phi {now.type} {arms}", now.dtype, lanes)))
        for dtype, largest in noted:
            b._keep(dtype, largest)


class Branch:
    """An open branch; with both arms given, ``results`` holds the chosen values."""

    def __init__(self, builder: Control, condition: Val) -> None:
        self._builder = builder
        self._condition = condition
        self._values: list[list[Val]] = [[], []]
        self._ends: list[str] = []
        self.results: list[Val] = []

    def __enter__(self) -> Branch:
        b = self._builder
        arm = b._label("then" if not self._ends else "else")
        if not self._ends:
            self._jump_at = len(b._lines)
            b._lines.append("")
            self._then, self._end = arm, b._label("end")
        else:
            # nothing may stand between the arms: the end label moves behind the second one
            if b._lines[-1] != f"{self._end}:":
                raise RuntimeError("else_ must follow its branch at once")
            b._lines.pop()
        other = arm if self._ends else self._end
        b._lines[self._jump_at] = f"  br i1 {self._condition.ref}, label %{self._then}, label %{other}"
        b._start_block(arm)
        b._open_scope()
        b._branches += 1
        return self

    def give(self, values: Sequence[Val]) -> None:
        """State the values of this arm, for ``results``."""
        self._values[len(self._ends)] = list(values)

    def else_(self) -> Branch:
        """The other arm, entered by ``with branch.else_():`` straight after the first."""
        return self

    def __exit__(self, kind: type[BaseException] | None, _: object, __: TracebackType | None) -> None:
        b = self._builder
        b._branches -= 1
        if kind is not None:
            return
        self._ends.append(b._block)
        b._lines.append(f"  br label %{self._end}")
        b._close_scope()
        b._start_block(self._end)
        if len(self._ends) == 2:
            for x, y in zip(*self._values, strict=True):
                if x.type != y.type or x.dtype is not y.dtype:
                    raise TypeError(f"the arms of a branch give {x.type} and {y.type}")
                arms = f"[ {x.ref}, %{self._ends[0]} ], [ {y.ref}, %{self._ends[1]} ]"
                self.results.append(b._from(b._emit(f"phi {x.type} {arms}", x.dtype, x.lanes), x, y))


class Control(Memory):
    """Structured control flow."""

    def __init__(self, name: str = "kernel") -> None:
        super().__init__(name)
        self._loops: list[Loop] = []
        self._branches = 0

    def _keep(self, dtype: DType, found: Val) -> None:
        loop = self._loops[-1] if self._loops else None
        if loop is None or loop.branches != self._branches:
            super()._keep(dtype, found)
            return
        key = dtype, found.lanes
        before, now = loop.magnitudes.get(key) or [Val(self._fresh(), found.dtype, found.lanes)] * 2
        loop.magnitudes[key] = before, self.maximum(now, found)

    def loop(
        self, low: Val | int, high: Val | int, step: Val | int = 1, carry: Sequence[Val] | None = None
    ) -> Loop:
        """A loop over low, low + step, ... < high; step must be positive.

        ``with b.loop(0, n) as i`` gives the index; with ``carry=[...]`` it gives (i, carried), the body calls
        ``b.loop_next([...])`` and the object returned by ``loop`` has ``results`` afterwards.
        """
        return Loop(self, self.index(low), self.index(high), self.index(step), carry)

    def loop_next(self, values: Sequence[Val]) -> None:
        """State the carried values of the next iteration of the innermost open loop."""
        self._loops[-1].next(values)

    def if_(self, condition: Val) -> Branch:
        """``with b.if_(c) as branch:`` runs the body if the scalar bool ``c`` is true; see Branch.

        Raises TypeError unless the condition is a scalar bool.
        """
        if condition.dtype is not dtypes.bool_ or condition.lanes != 1:
            raise TypeError(f"a branch needs a scalar bool, got {condition}")
        return Branch(self, condition)

    def lane_range(self, low: Val | int, high: Val | int) -> Val:
        """The 16-lane bool vector ``low <= lane < high``, made from its bits as one number."""
        count = dtypes.int64
        first, after = (
            self.maximum(self.minimum(self.index(end), LANES), self.const(0, count)) for end in (low, high)
        )
        full = self.const((1 << LANES) - 1, count)
        word = self.and_(self.shl(full, first), self.sub(self.shl(self.const(1, count), after), 1))
        bits = self.cast(word, dtypes.uint16)
        return self._pure(f"bitcast {bits.typed} to <{LANES} x i1>", dtypes.bool_, LANES)

    def any_lane(self, mask: Val) -> Val:
        """Whether any lane of a bool vector is true, as a scalar bool."""
        return mask if mask.lanes == 1 else self.cmp("ne", self.lane_bits(mask), 0)

    def lane_bits(self, mask: Val) -> Val:
        """The 16 lanes of a bool vector as the bits of an int64, the first one lowest."""
        word = self._pure(f"bitcast {mask.typed} to i{mask.lanes}", dtypes.uint16, 1)
        return self.cast(word, dtypes.int64)

    def fail(self, code: Val | int) -> None:
        """Leave the kernel with the nonzero ``code`` (use inside ``if_``)."""
        self._lines.append(f"  ret i64 {self.index(code).ref}")
        self._start_block(self._label("dead"))
