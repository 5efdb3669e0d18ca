"""Runs the actions of synthetic frames, one call at a time, and goes back to earlier ones."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

import numpy

from twofold import _core
from twofold.debug.backward_loops import BackwardLoop, pull
from twofold.debug.evaluation import computed
from twofold.debug.frames import HELPER, Action, Frames
from twofold.debug.recording import GIVEN, Call, Part, Recording
from twofold.ops.base import FUNCTIONS
from twofold.runtime.closures import as_tensor

Tensor = _core.Tensor


class Rewind(BaseException):
    """Leaves all synthetic frames, to begin anew."""


class Given:
    """An argument that is no value of the graph."""

    def __init__(self, value: Any) -> None:
        self.value = value


class _Loop:
    """A loop that runs: what it carries, and the rows that its iterations wrote."""

    def __init__(self, carried: list[Any], go_on: bool, most: int | None) -> None:
        self.carried, self.go_on, self.most = carried, go_on, most
        self.made = 0
        self.written: dict[int, list[Any]] = {}


class Interpreter:
    """The values of one recording while its frames are stepped through."""

    def __init__(self, recording: Recording, frames: Frames, budget: int) -> None:
        self.recording, self.frames, self.budget = recording, frames, budget
        self.spent = 0  # bytes of results that are kept
        self.kept: dict[int, Any] = {}  # results of calls, by the step
        self.lines: list[tuple[int, str, int, int]] = []  # step, file, line, depth of the frame
        self.changes: list[tuple[int, int, Any]] = []  # step, value, what it became
        self.recomputed = 0
        self.wanted: int | None = None  # the step to go back to
        self.silent_until: int | None = None
        self.on_arrival: Any = None
        self._begin()

    def _begin(self) -> None:
        self.step = 0
        self.values: dict[int, Any] = dict(self.recording.given)
        self.gradients: dict[int, Any] = {}  # of values, as far as the backward pass has come
        self._loops: dict[int, _Loop] = {}
        self._finished: dict[int, list[Any]] = {}  # results of loops and branches, by their calls
        self._backward: dict[int, BackwardLoop] = {}

    def rewind(self, target: int) -> None:
        """Begin anew; frames are hidden from debuggers until step ``target``."""
        self.changes = [change for change in self.changes if change[0] <= target]
        self._begin()
        self.silent_until = target

    # Actions

    def act(self, number: int) -> Any:
        """Do what a synthetic frame asks for."""
        frame = sys._getframe(1)
        action = self.frames.actions[number]
        if self.wanted is not None:
            _core.hide_frames(1)  # nobody is to see how the frames are left
            raise Rewind
        self._note_line(frame)
        self._exchange(frame, action)
        result = getattr(self, f"_{action.kind}")(action.payload)
        self.step += 1
        if self.silent_until is not None and self.step >= self.silent_until:
            self.arrive(frame)
        return result

    def arrive(self, frame: FrameType | None) -> None:
        """Have the debugger follow again."""
        self.silent_until = None
        self.on_arrival(frame)

    def _note_line(self, frame: FrameType) -> None:
        depth, above = 0, frame.f_back
        while above is not None:
            depth, above = depth + 1, above.f_back
        found = frame.f_code.co_filename, frame.f_lineno, depth
        del self.lines[
            next((k for k, one in enumerate(self.lines) if one[0] >= self.step), len(self.lines)) :
        ]
        if not self.lines or self.lines[-1][1:] != found:
            self.lines.append((self.step, *found))

    def _exchange(self, frame: FrameType, action: Action) -> None:
        """Take what the debugger has assigned to variables, or repeat it on the way back to a step."""
        if self.silent_until is not None:
            for step, number, value in self.changes:
                if step == self.step:
                    self._set(number, value)
                    for name in [one for one, held in action.names.items() if held == number]:
                        _assign(frame, name, self.values[number])
            return
        here = frame.f_locals
        for name, number in action.names.items():
            if name in here and number in self.values and here[name] is not self.values[number]:
                self._set(number, here[name])
                self.changes.append((self.step, number, self.values[number]))
                self._forget(self.step)
                _assign(frame, name, self.values[number])

    def _set(self, number: int, value: Any) -> None:
        before = self.values[number]
        self.values[number] = as_tensor(value, before.type_) if isinstance(before, Tensor) else value

    def _forget(self, step: int) -> None:
        """Drop results that a change may have made wrong."""
        for k in [k for k in self.kept if k >= step]:
            self.spent -= _bytes(self.kept.pop(k))

    def _held(self, held: Any) -> Any:
        if isinstance(held, (tuple, list)):
            return type(held)(self._held(one) for one in held)
        return held.value if isinstance(held, Given) else self.values[held]

    def _call(self, call: Call) -> Any:
        result = self.kept.get(self.step)
        if result is None:
            self.recomputed += self.silent_until is not None
            result = self._computed(call)
            size = _bytes(result)
            if self.spent + size <= self.budget:
                self.kept[self.step] = result
                self.spent += size
        self.values[call.result] = result
        target = self.frames.cotangents.target.get(call.result)
        if target is not None:
            self.gradients[target] = result
        return result

    def _computed(self, call: Call) -> Any:
        if call.op is GIVEN:
            return self.values[call.result]
        operands = [self.values[number] for number in call.operands]
        if call.loop is not None:
            return self._results_of(call, call.loop)
        return computed(call.op, call.attrs, operands)

    def _stopping(self, payload: None) -> bool:
        """Whether a breakpoint stops: not on the way back to a step."""
        return self.silent_until is None

    # Loops and branches

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
        rows = [value[row] for value in operands[spec.carried : spec.carried + spec.read]]
        fixed = operands[spec.carried + spec.read :]
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
        return _Loop(given[spec.first : spec.first + spec.carried], go_on, most)

    @staticmethod
    def _row(spec: Any, loop: _Loop) -> int:
        return (loop.most or 0) - 1 - loop.made if spec.descending else loop.made

    def _iterated(self, loop: _Loop, spec: Any, part: Part) -> None:
        found = [self.values[number] for number in part.results]
        loop.carried = found[: spec.carried]
        row = self._row(spec, loop)
        for k in range(spec.written):
            loop.written.setdefault(k, []).append((row, found[spec.carried + k]))
        loop.go_on = bool(found[-1]) if spec.conditional else True
        loop.made += 1

    def _ended(self, call: Call, loop: _Loop) -> list[Any]:
        """The results of a loop, as the call's operation has them."""
        spec: Any = call.content
        types = call.result_types
        found = [as_tensor(value, type) for value, type in zip(loop.carried, types)]
        for k, type in enumerate(types[spec.carried : -1]):
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
        if not hasattr(call.content, "carried"):
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

    # The backward pass of loops and branches

    def _more_backward(self, payload: tuple[Call, int]) -> bool:
        loop, result = payload
        run = self._backward.get(loop.result)
        if run is None:
            run = self._backward[loop.result] = BackwardLoop(self, loop, result)
        if run.go_back():
            return True
        del self._backward[loop.result]
        return False

    def _chosen_backward(self, payload: tuple[Call, int, int]) -> bool:
        loop, result, number = payload
        run = self._backward.get(loop.result)
        if run is None:
            run = self._backward[loop.result] = BackwardLoop(self, loop, result)
            run.go_back()
        return run.row == number

    def _left_backward(self, loop: Call) -> None:
        self._backward.pop(loop.result).go_back()

    def _pull(self, call: Call) -> None:
        pull(self.values, self.gradients, call)

    def numbers_of(self, part: Part) -> list[int]:
        """The values of a body."""
        made = [call.result for call in part.calls]
        inner = [
            number for call in part.calls if call.loop is call for number in self.recording.results_of(call)
        ]
        return [number for number in (*part.inputs, *made, *inner) if number in self.values]

    # What helpers ask

    def gradient(self, number: int) -> Any:
        """The gradient of a value as far as the backward pass has come, or None."""
        return self.gradients.get(number)

    def step_back(self, lines: int) -> int:
        """The step at which the line stood ``lines`` before the present one begins."""
        begun = [one[0] for one in self.lines if one[0] < self.step]
        return begun[-lines] if lines <= len(begun) else 0

    def step_of_line(self, line: int) -> int:
        """The last step before the present one at which a line begins; raises ValueError if there is none."""
        found = [one[0] for one in self.lines if one[2] == line and one[0] < self.step]
        if not found:
            raise ValueError(f"line {line} has not run")
        return found[-1]


def _bytes(value: Any) -> int:
    return int(value.type_.nbytes) if isinstance(value, Tensor) else 0


def _assign(frame: FrameType, name: str, value: Any) -> None:
    """Assign to a local variable of a frame that runs."""
    frame.f_locals[name] = value
    if sys.version_info < (3, 13):
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))


__all__ = ["HELPER", "Given", "Interpreter", "Rewind"]
