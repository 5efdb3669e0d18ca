"""Runs the actions of synthetic frames, one call at a time, and goes back to earlier ones."""

from __future__ import annotations

import bisect
import ctypes
import sys
from types import CodeType, FrameType
from typing import Any

from twofold import _core
from twofold.debug.backward_loops import BackwardLoop, pull
from twofold.debug.bodies import Bodies
from twofold.debug.frame_writer import HELPER, Action
from twofold.debug.frames import Frames
from twofold.debug.names import object_of
from twofold.debug.recording import Call, Recording
from twofold.errors import TwofoldError
from twofold.runtime.closure_conversion import as_tensor

Tensor = _core.Tensor


class _Lines:
    """The lines of synthetic frames; ``f_lineno`` goes through all lines before one, and their functions are long."""

    def __init__(self) -> None:
        self._tables: dict[
            int, tuple[CodeType, list[int], list[int | None]]
        ] = {}  # by id: hashing code is slow, too

    def of(self, frame: FrameType) -> int:
        """The line at which a frame stands."""
        code = frame.f_code
        if id(code) not in self._tables:
            found = list(code.co_lines())
            self._tables[id(code)] = code, [start for start, *_ in found], [line for *_, line in found]
        _, starts, lines = self._tables[id(code)]
        return lines[bisect.bisect_right(starts, frame.f_lasti) - 1] or frame.f_lineno


class Rewind(BaseException):
    """Leaves all synthetic frames, to begin anew."""


class Interpreter(Bodies):
    """The values of one recording while its frames are stepped through."""

    def __init__(self, recording: Recording, frames: Frames, budget: int) -> None:
        super().__init__(recording)
        self.frames, self.budget = frames, budget
        self._line = _Lines()
        self.spent = 0  # bytes of results that are kept
        self.kept: dict[int, Any] = {}  # results of calls, by the step
        self.lines: list[
            tuple[int, str, int, int, int]
        ] = []  # step, file, line, statement, depth of the frame
        self.changes: list[tuple[int, int, Any]] = []  # step, value, what it became
        self.recomputed = 0
        self.wanted: int | None = None  # the step to go back to
        self.silent_until: int | None = None
        self.target: tuple[str, int] | None = None  # the file and line of that step
        self.on_arrival: Any = None
        self._begin()

    def _begin(self) -> None:
        self.step = 0
        self.reset()
        self.gradients: dict[int, Any] = {}  # of values, as far as the backward pass has come
        self._backward: dict[int, BackwardLoop] = {}
        self._turns: dict[int, int] = {}

    def rewind(self, target: int) -> None:
        """Begin anew; frames are hidden from debuggers until step ``target``."""
        self.changes = [change for change in self.changes if change[0] <= target]
        self._begin()
        self.silent_until = target
        self.target = next((one[1:3] for one in self.lines if one[0] == target), None)

    # Actions

    def act(self, number: int) -> Any:
        """Do what a synthetic frame asks for."""
        frame = sys._getframe(1)
        action = self.frames.actions[number]
        if self.wanted is not None:
            _core.hide_frames(1)  # nobody is to see how the frames are left
            raise Rewind
        self._note_line(frame, action.statement)
        self._exchange(frame, action)
        result = getattr(self, f"_{action.kind}")(action.payload)
        self.step += 1
        if self.silent_until is not None and self.step >= self.silent_until:
            self.arrive(frame)
        return result

    def caught(self) -> Any:
        """What a line that raises an exception catches: not what goes back to an earlier step."""
        return BaseException if self.wanted is None else ()

    def arrive(self, frame: FrameType | None) -> None:
        """Have the debugger follow again."""
        self.silent_until = None
        self.on_arrival(frame)

    def _note_line(self, frame: FrameType, statement: int) -> None:
        """Note that a line begins, unless the frame goes on with it after a call."""
        depth, above = 0, frame.f_back
        while above is not None:
            depth, above = depth + 1, above.f_back
        found = frame.f_code.co_filename, self._line.of(frame), statement, depth
        while self.lines and self.lines[-1][0] >= self.step:
            self.lines.pop()
        here = next((one for one in reversed(self.lines) if one[-1] <= depth), None)
        if here is None or here[1:] != found:
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
        return object_of(held, self._value)

    def _value(self, number: int) -> Any:
        if number not in self.values:
            self.values[number] = self._computed(self.frames.storage.derived[number])
        return self.values[number]

    def _passed(self, payload: None) -> None:
        """A line where nothing is computed."""

    def _quietly(self, call: Call) -> None:
        """A loop or branch of which there are no lines to step through."""
        for _ in self.run_quietly(call):
            pass

    def _raised(self, error: BaseException) -> BaseException:
        """An exception for a line to raise."""
        return error.with_traceback(None)

    def _call(self, call: Call) -> Any:
        seen = self.frames.storage.read_again.get(call.result)
        result = self.values[seen] if seen in self.values else self.kept.get(self.step)
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

    def _tried(self, call: Call) -> None:
        """A call of a line that raised an exception: it may be the one that did."""
        try:
            self._call(call)
        except TwofoldError as error:
            del error

    def _turned(self, number: int) -> bool:
        """Twice true: an empty ``while`` loop runs once, which is a step on the same line."""
        self._turns[number] = self._turns.get(number, 0) + 1
        if self._turns[number] <= 2:
            return True
        del self._turns[number]
        return False

    def _stopping(self, payload: None) -> bool:
        """Whether a breakpoint stops: not on the way back to a step."""
        return self.silent_until is None

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


__all__ = ["HELPER", "Interpreter", "Rewind"]
