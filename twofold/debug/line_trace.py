"""What the functions of a program do line by line: the lines that they come by, with their variables then.

Where Python itself runs a function, nothing about it has to be read off its source.
"""

from __future__ import annotations

import functools
import gc
import linecache
import os
import sys
from collections.abc import Callable, Sequence
from types import CodeType, FrameType, GeneratorType
from typing import Any

from twofold import _core
from twofold.debug.names import Held
from twofold.debug.recording import Recording
from twofold.debug.snapshots import Declared, Known, Snapshot, is_symbolic

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
STANDARD = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_NEEDED = tuple(f"{os.sep}{name}{os.sep}" for name in ("numpy", "llvmlite"))
_INTERNAL = ("<frozen importlib", *[PACKAGE + name + os.sep for name in ("compiler", "ir", "transforms")])
"""How the files begin of what imports and plans."""
_STOPS = 0x20 | 0x80 | 0x200
"""The flags of code that suspends: of generators, coroutines and asynchronous generators."""


class Raised:
    """An exception that a line raised, or that came through it.

    ``ends_loop`` is that of the iterator of a loop, which nothing has to catch.
    """

    def __init__(self, error: BaseException, ends_loop: bool) -> None:
        self.error, self.ends_loop = error, ends_loop


class Ran:
    """Entries of the tape: from one up to another."""

    def __init__(self, begin: int, end: int) -> None:
        self.begin, self.end = begin, end


Names = Any
"""A snapshot of variables; where these are resolved, what they hold by name."""


class Step:
    """A line that a function came by: its variables before, and what it did."""

    __slots__ = ("did", "line", "names", "offset")

    def __init__(self, line: int, offset: int, names: Names) -> None:
        self.line, self.offset, self.names = line, offset, names
        self.did: list[Any] = []  # entries of the tape, functions called, exceptions


class Stretch:
    """A function of the program from where it was entered, or went on, to where it returned or was suspended."""

    __slots__ = ("after", "before", "begin", "code", "ends_loop", "offset", "returned", "steps")

    def __init__(self, code: CodeType | None, offset: int) -> None:
        self.code = code
        self.offset = offset  # of the instruction that called it
        self.begin = 0  # entries of the tape before it
        self.before = Step(0, 0, None)  # what it did before it came to a line
        self.steps: list[Step] = []
        self.after: Names = None
        self.returned: Names = None  # by the name ""
        self.ends_loop = False  # by the exception that it raised, as the iterator of a loop

    @property
    def last(self) -> Step:
        """The line on which it stands."""
        return self.steps[-1] if self.steps else self.before

    @property
    def raises(self) -> bool:
        """Whether it ended by an exception."""
        did = self.last.did
        return bool(did) and isinstance(did[-1], Raised) and not did[-1].ends_loop


@functools.lru_cache(maxsize=4096)
def is_followed(code: CodeType) -> bool | None:
    """Whether code is a function's, with a source, outside of this library; None: where the program calls it."""
    name = code.co_filename
    if name.startswith(PACKAGE) or code.co_name == "<module>" or not linecache.getlines(name):
        return False
    is_standard = name.startswith(STANDARD) and not any(one in name for one in _INSTALLED)
    return (
        None if is_standard or any(one in name for one in _NEEDED) else True
    )  # this library calls these, too


def position_in(frame: FrameType) -> int:
    return frame.f_lasti if sys.version_info >= (3, 11) else frame.f_lineno


class LineTrace:
    """Runs a function and notes what the program's functions do; ``tape`` is the list that keeps what it computes."""

    def __init__(self, tape: list[Any]) -> None:
        self.root = Stretch(None, 0)
        self.is_whole = True
        self.tape = tape
        self._taken = 0
        self._stack: list[tuple[FrameType | None, Stretch]] = [(None, self.root)]
        self._left: set[int] = set()  # frames of generators that functions have left behind, by ``id``
        self._collects = False
        self._known = Known()

    def run(self, function: Callable[..., Any], arguments: Sequence[Any], named: dict[str, Any]) -> Any:
        """What ``function`` returns."""
        before, depth = sys.gettrace(), _core.hide_frames(0)
        gc.callbacks.insert(0, self._collected)
        sys.settrace(self._begin)
        _core.hide_frames(-depth)
        try:
            result = function(*arguments, **named)
        finally:
            _core.hide_frames(depth)
            self.is_whole = sys.gettrace() == self._begin and len(self._stack) == 1
            sys.settrace(before)
            gc.callbacks.remove(self._collected)
        self._take()
        return result

    def _collected(self, phase: str, info: dict[str, int]) -> None:
        """Called where the garbage collector begins and ends: the finalisers between are not what the line did."""
        self._collects = phase == "start"

    def _begin(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Called where a function begins or a generator goes on."""
        if self._collects:
            return None
        follows = is_followed(frame.f_code)
        if follows is None:
            follows = frame.f_back is self._stack[-1][0]
        if not follows or self._is_of_library(frame) or any(map(is_symbolic, frame.f_locals.values())):
            return None  # the library's, or the body of a loop or branch, of which a graph is made
        self._enter(frame)
        return self._go_on

    def _is_of_library(self, frame: FrameType) -> bool:
        """Whether this library imports or plans something, or memory is collected: there nothing may run."""
        collecting = [getattr(one, "__code__", None) for one in gc.callbacks]
        above: FrameType | None = frame
        while above is not None and above is not self._stack[-1][0]:
            if above.f_code in collecting or above.f_code.co_filename.startswith(_INTERNAL):
                return True
            above = above.f_back
        return False

    def _go_on(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Called where a function comes to a line, has an exception, returns or is suspended."""
        if self._stack[-1][0] is not frame:  # where an exception is thrown into a generator, in some versions
            self._enter(frame)
        stretch = self._stack[-1][1]
        if event == "exception":
            if not (argument[0] is GeneratorExit and id(frame) in self._left):
                self._except(frame, *argument)
            return self._go_on
        names = self._names(frame)
        if event == "line":
            self._take()
            stretch.steps.append(Step(frame.f_lineno, position_in(frame), names))
        elif event == "return":
            made = [one for one in frame.f_locals.values() if isinstance(one, GeneratorType)]
            self._left.update(id(one.gi_frame) for one in made)
            stretch.returned = Snapshot({"": argument}, self._known)
            self._take()
            stretch.after = names
            self._stack.pop()
        return self._go_on

    def _except(self, frame: FrameType, kind: Any, error: Any, trace: Any) -> None:
        """Note an exception; one that is thrown into a generator as a line that it comes to."""
        self._take()
        stretch = self._stack[-1][1]
        if frame.f_code.co_flags & _STOPS and kind is StopIteration and trace is None:
            return  # of what it goes on in, which debuggers pass over
        if stretch.steps:
            made = error if isinstance(error, BaseException) else kind(error)
            did, ends_loop = stretch.last.did, trace is None or trace.tb_frame is not frame
            if ends_loop and did and isinstance(did[-1], Stretch) and did[-1].raises:
                did[-1].ends_loop = True
            else:
                did.append(Raised(made, ends_loop))
        else:
            stretch.steps.append(Step(frame.f_lineno, position_in(frame), self._names(frame)))

    def _enter(self, frame: FrameType) -> None:
        self._take()
        outer, stretch = self._stack[-1]
        made = Stretch(frame.f_code, 0 if outer is None else position_in(outer))
        stretch.last.did.append(made)
        self._stack.append((frame, made))

    def _names(self, frame: FrameType) -> Snapshot:
        """The variables of a function."""
        return Snapshot(frame.f_locals, self._known)

    def _take(self) -> None:
        """Have what was called so far run, and note that the present line did it."""
        _core.flush()
        if len(self.tape) > self._taken:
            self._note_taken()

    def _note_taken(self) -> None:
        self._stack[-1][1].last.did.append(Ran(self._taken, len(self.tape)))
        self._taken = len(self.tape)

    def add_to(self, recording: Recording) -> Stretch:
        """Add the tape to a recording; what was noted, with its calls and values."""
        ends = [0]
        for entry in self.tape:
            recording.add_tape([entry])
            ends.append(len(recording.calls))
        return _Resolver(recording, ends).resolved(self.root)


class Resolver:
    """Makes what was noted anew, with calls and values of a run instead of what stands for them."""

    def did(self, step: Step) -> list[Any]:
        """What a line did in the run."""
        raise NotImplementedError

    def variables(self, names: Snapshot) -> dict[str, Held]:
        """Variables, with numbers for their values."""
        raise NotImplementedError

    def resolved(self, stretch: Stretch) -> Stretch:
        """A function as it was in the run."""
        made = Stretch(stretch.code, stretch.offset)
        made.before = self._step(stretch.before)
        made.steps = [self._step(step) for step in stretch.steps]
        made.after, made.returned = self._names(stretch.after), self._names(stretch.returned)
        made.ends_loop = stretch.ends_loop
        return made

    def _step(self, step: Step) -> Step:
        made = Step(step.line, step.offset, self._names(step.names))
        made.did = self.did(step)
        return made

    def _names(self, names: Snapshot | None) -> dict[str, Held]:
        return {} if names is None else self.variables(names)


class _Resolver(Resolver):
    def __init__(self, recording: Recording, ends: Sequence[int]) -> None:
        self._recording, self._ends = recording, ends
        self._done: dict[int, Any] = {}

    def did(self, step: Step) -> list[Any]:
        found: list[Any] = []
        for one in step.did:
            if isinstance(one, Ran):
                found += self._recording.calls[self._ends[one.begin] : self._ends[one.end]]
            else:
                found.append(self.resolved(one) if isinstance(one, Stretch) else one)
        return found

    def variables(self, names: Snapshot) -> dict[str, Held]:
        return names.resolved(
            lambda one: None if isinstance(one, Declared) else self._recording.give(one), self._done
        )
