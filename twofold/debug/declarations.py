"""What the functions of a program do line by line as they declare a graph."""

from __future__ import annotations

import bdb
import functools
import linecache
import os
import sys
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from twofold.debug.frame_writer import HELPER
from twofold.debug.line_trace import PACKAGE, STANDARD, LineTrace, Step, is_followed, position_in
from twofold.debug.sites import Site, chain_of
from twofold.debug.snapshots import Snapshot
from twofold.debug.source import position_of
from twofold.static.graph.context import local
from twofold.static.graph.graph import Operation

_RUNS = PACKAGE + os.path.join("static", "session") + os.sep
_MOST_IDLE = 2048  # lines without an operation; what comes by more of them does something else than declaring
_MOST_FRAMES = 16


@functools.lru_cache(maxsize=4096)
def _is_noted(code: CodeType) -> bool | None:
    """As ``is_followed``, for modules of the program, too."""
    name = code.co_filename
    if code.co_name != "<module>":
        return is_followed(code)
    return not name.startswith((PACKAGE, STANDARD)) and bool(linecache.getlines(name))


class Declarations(LineTrace):
    """Notes what the functions of a thread do as they declare graphs; ``before`` is a debugger that follows them, too.

    The entries of the tape are operations, and locations of breakpoints.
    """

    def __init__(self, before: Any = None) -> None:
        super().__init__([])
        self.before = before
        self.follows_debugger = False  # and ends where that goes
        self.follows: Any = self.begin  # what follows the thread
        self._idle = 0
        self._is_lost = False  # a line has passed that was not noted
        self._joined: list[tuple[FrameType, Any, Any]] = []  # with what followed it, before and inside
        self._outer: Any = None

    def __enter__(self) -> Declarations:
        if local.noted is None or not local.noted.is_following():
            self.before = sys.gettrace()
            self._join(sys._getframe(1), only=True)
            self.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._joined:
            if self.is_following():
                self._take()
                sys.settrace(self.before)
            for frame, before, inside in self._joined:
                frame.f_trace = before if frame.f_trace == inside else frame.f_trace
            self.stop()

    def start(self) -> None:
        """Note what this thread declares from now on."""
        self._outer, local.noted = local.noted, self

    def stop(self) -> None:
        """Note nothing that comes."""
        local.noted = self._outer

    def is_following(self) -> bool:
        """Whether this still follows the thread."""
        return bool(sys.gettrace() == self.follows)

    def is_complete(self) -> bool:
        """Whether the lines are known on which all was declared so far."""
        if self.is_following():
            self._take()
        return not self._is_lost and len(self.tape) == self._taken

    def follow(self, frame: FrameType) -> None:
        """Begin at a function, for as long as the debugger is there that follows the thread."""
        self.follows_debugger = True
        self._join(frame, only=False)
        self.start()

    def _join(self, frame: FrameType, only: bool) -> None:
        """Begin in the middle of a function, with the lines on which those that called it stand.

        With ``only`` what these do later is not noted.
        """
        frames = [frame]
        while frames[-1].f_code.co_name != "<module>" and len(frames) < _MOST_FRAMES:
            above = frames[-1].f_back
            if above is None:
                break
            frames.append(above)
        if frames[-1].f_code.co_name != "<module>":
            frames = [frame]
        for one in [one for one in reversed(frames) if _is_noted(one.f_code)]:
            self._enter(one)
            self._stack[-1][1].steps.append(Step(one.f_lineno, position_in(one), self._names(one)))
            if one is frame or not only:
                inside = self._local(one.f_trace)
                self._joined.append((one, one.f_trace, inside))
                one.f_trace = inside
        sys.settrace(self.follows)

    def begin(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Called where a function begins or a generator goes on."""
        theirs = None if self.before is None else self.before(frame, event, argument)
        follows = _is_noted(frame.f_code)
        if follows is None:
            follows = frame.f_back is self._stack[-1][0]
        if not follows or HELPER in frame.f_globals or self._is_of_library(frame):
            return theirs
        self._enter(frame)
        return self._local(theirs)

    def _local(self, theirs: Any) -> Any:
        """What is called at the lines of a function; ``theirs``: for what else follows it."""
        if theirs is None:
            return self._go_on

        def both(frame: FrameType, event: str, argument: Any) -> Any:
            nonlocal theirs
            self._go_on(frame, event, argument)
            theirs = None if theirs is None else theirs(frame, event, argument)
            return both

        return both

    def _is_of_library(self, frame: FrameType) -> bool:
        above: FrameType | None = frame
        while above is not None and above is not self._stack[-1][0]:
            if above.f_code.co_filename.startswith(_RUNS):
                return True
            above = above.f_back
        return super()._is_of_library(frame)

    def _go_on(self, frame: FrameType, event: str, argument: Any) -> Any:
        self._idle += 1
        if self._idle > _MOST_IDLE and event == "line" and self._stack[-1][0] is frame:
            self._take()
            if self._idle:
                return self._go_on
        super()._go_on(frame, event, argument)
        return self._go_on

    def _resume(self) -> None:
        """Note the line of the first operation after many lines without one."""
        frame, stretch = self._stack[-1]
        site = self._site_of(self.tape[self._taken], frame)
        if site is not None:
            stretch.steps.append(Step(position_of(site).line, site.offset, Snapshot({}, self._known)))

    def _names(self, frame: FrameType) -> Snapshot:
        found = frame.f_locals
        if frame.f_code.co_name == "<module>":
            given = (ModuleType, FunctionType, type)
            found = {
                name: one
                for name, one in found.items()
                if not name.startswith("__") and not isinstance(one, given)
            }
        return Snapshot(found, self._known)

    def _enter(self, frame: FrameType) -> None:
        super()._enter(frame)
        self._stack[-1][1].begin = len(self.tape)

    def _take(self) -> None:
        if len(self.tape) == self._taken:
            return
        if self._idle > _MOST_IDLE:
            self._resume()
        self._idle = 0
        frame, stretch = self._stack[-1]
        site = self._site_of(self.tape[self._taken], frame)
        if site is None or position_of(site).line != stretch.last.line:
            self._is_lost = True
        for one in self.tape[self._taken :]:
            if isinstance(one, Operation) and self not in one.graph.notes:
                one.graph.notes.append(self)
        self._note_taken()

    @staticmethod
    def _site_of(entry: Any, frame: FrameType | None) -> Site | None:
        """Where a function declared something, None where that is not known."""
        location = entry.location if isinstance(entry, Operation) else entry
        code = None if frame is None else frame.f_code
        return next((one for one in reversed(chain_of(location)) if one.code is code), None)


def note(what: Any) -> None:
    """Note an operation or breakpoint, for a block of ``declaring``, or for the debugger that follows the thread."""
    notes = local.noted
    if notes is None or (notes.follows_debugger and not notes.is_following()):
        local.noted = None
        notes = _beside_debugger()
    if notes is not None:
        notes.tape.append(what)


def _beside_debugger() -> Declarations | None:
    """Notes for a debugger of Python's that follows this thread, begun where the program is now."""
    trace: Any = sys.gettrace()
    if not isinstance(getattr(trace, "__self__", None), bdb.Bdb):
        return None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not _is_noted(frame.f_code):
        frame = frame.f_back
    if frame is None:
        return None
    made = Declarations(trace)
    made.follow(frame)
    return made


def declaring() -> Declarations:
    """Note lines and variables of the graph that the block declares, for stepping through its runs.

    ``session.run(..., debug=True)`` steps through what was noted as the program ran: by all its lines, as often as it
    came by them, with all variables. What was declared elsewhere is stepped through as far as its source tells it.
    Declaring takes some four times as long. All is noted without asking under ``python -m twofold debug``, and where
    ``pdb`` follows the program.

    >>> import twofold as torch
    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), torch.debug.declaring():
    ...     y = tf.constant(1.0) + 2.0
    """
    return Declarations()
