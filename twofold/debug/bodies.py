"""Loops and branches of a recording run call by call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy

from twofold import _core
from twofold.debug.evaluation import computed
from twofold.debug.recording import GIVEN, Call, Part, Recording
from twofold.ops.base import FUNCTIONS
from twofold.ops.control_flow.programs import LoopSpec
from twofold.runtime.closure_conversion import as_tensor


class _Loop:
    """A loop that runs: what it carries, and the rows that its iterations wrote."""

    def __init__(self, carried: list[Any], go_on: bool, most: int | None) -> None:
        self.carried, self.go_on, self.most = carried, go_on, most
        self.made = 0
        self.written: dict[int, list[Any]] = {}


class Bodies:
    """The values of a recording, and the loops that are running."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.reset()

    def reset(self) -> None:
        """Begin anew, with what was there before the calls."""
        self.values: dict[int, Any] = dict(self.recording.given)
        self._loops: dict[int, _Loop] = {}
        self._finished: dict[int, list[Any]] = {}  # results of loops and branches, by their calls

    def _computed(self, call: Call) -> Any:
        if call.op is GIVEN:
            return self.values[call.result]
        operands = [self.values[number] for number in call.operands]
        if call.loop is not None:
            return self._results_of(call, call.loop)
        return computed(call.op, call.attrs, operands, call.differentiated or call.location)

    def _more(self, call: Call) -> bool:
        spec, (part,) = call.content, call.parts
        loop = self._loops.get(call.result)
        if loop is None:
            loop = self._loops[call.result] = self._entered(call)
        else:
            self._iterated(loop, spec, part)
        if not loop.go_on or (loop.most is not None and loop.made >= loop.most):
            del self._loops[call.result]
            self._finished[call.result] = self._ended(call, loop)
            return False
        row = self._row(spec, loop)
        operands = [self.values[number] for number in call.operands[spec.first :]]
        rows = [value[row] for value in operands[spec.carry : spec.carry + spec.xs]]
        fixed = operands[spec.carry + spec.xs :]
        for number, value in zip(part.inputs, [*loop.carried, *rows, *fixed]):
            self.values[number] = value
        return True

    def _entered(self, call: Call) -> _Loop:
        spec = call.content
        given = [self.values[number] for number in call.operands]
        go_on = bool(given[0]) if spec.conditional else True
        most = spec.limit
        if spec.counted:
            count = max(int(given[spec.first - 1]), 0)
            most = count if most is None else min(count, most)
        return _Loop(given[spec.first : spec.first + spec.carry], go_on, most)

    @staticmethod
    def _row(spec: Any, loop: _Loop) -> int:
        return (loop.most or 0) - 1 - loop.made if spec.descending else loop.made

    def _iterated(self, loop: _Loop, spec: Any, part: Part) -> None:
        found = [self.values[number] for number in part.results]
        loop.carried = found[: spec.carry]
        row = self._row(spec, loop)
        for k in range(spec.ys):
            loop.written.setdefault(k, []).append((row, found[spec.carry + k]))
        loop.go_on = bool(found[-1]) if spec.conditional else True
        loop.made += 1

    def _ended(self, call: Call, loop: _Loop) -> list[Any]:
        """The results of a loop, as the call's operation has them."""
        spec: Any = call.content
        types = call.result_types
        found = [as_tensor(value, type) for value, type in zip(loop.carried, types)]
        for k, type in enumerate(types[spec.carry : -1]):
            rows = FUNCTIONS["zeros"](type.shape, dtype=type.dtype)
            for row, value in loop.written.get(k, ()):
                rows[row] = value
            found.append(rows)
        return [*found, _core.from_array(numpy.asarray(loop.made, numpy.int64), False)]

    def _chosen(self, payload: tuple[Call, int]) -> bool:
        call, number = payload
        index, last = int(self.values[call.operands[0]]), len(call.parts) - 1
        chosen = index if 0 <= index <= last else last
        if chosen != number:
            return False
        for inner, outer in zip(call.parts[number].inputs, call.operands[1:]):
            self.values[inner] = self.values[outer]
        self._finished[call.result] = [call.parts[number]]
        return True

    def _results_of(self, call: Call, loop: Call) -> Any:
        """The results of one dtype, in the form of ``program_results``."""
        found = self._finished[loop.result]
        if found and isinstance(found[0], Part):
            found = [self.values[number] for number in found[0].results]
        for number, value in zip(self.recording.results_of(loop), found):
            self.values[number] = value
        parts = [value for value in found if value.dtype is call.attrs[2]]
        if len(parts) == 1:
            return parts[0]
        return FUNCTIONS["cat"]([FUNCTIONS["reshape"](value, (-1,)) for value in parts])

    def run_quietly(self, call: Call) -> Iterator[int]:
        """Run a loop or branch where nobody looks, up to each end of a body that it comes to; yields its row."""
        if not isinstance(call.content, LoopSpec):
            chosen = [k for k in reversed(range(len(call.parts))) if self._chosen((call, k))]
            self._run_part(call.parts[chosen[0]])
            yield chosen[0]
            return
        while self._more(call):
            self._run_part(call.parts[0])
            yield self._row(call.content, self._loops[call.result])

    def _run_part(self, part: Part) -> None:
        for call in part.calls:
            if call.loop is call:
                for _ in self.run_quietly(call):
                    pass
            self.values[call.result] = self._computed(call)

    def numbers_of(self, part: Part) -> list[int]:
        """The values of a body."""
        made = [call.result for call in part.calls]
        inner = [
            number for call in part.calls if call.loop is call for number in self.recording.results_of(call)
        ]
        return [number for number in (*part.inputs, *made, *inner) if number in self.values]
