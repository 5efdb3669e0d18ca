"""A program under pdb: tensors line by line, runs of sessions and compiled functions as frames."""

from __future__ import annotations

import functools
import os
import pdb
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType, ModuleType
from typing import Any

from twofold.debug.declarations import Declarations
from twofold.debug.stepping import run, untraced
from twofold.frontend import function
from twofold.frontend.breakpoints import stopping
from twofold.static.session.session import BaseSession


def debug_script(script: str, arguments: Sequence[str]) -> int:
    """Run a program under pdb, stopped at its first line; returns the exit status.

    Operations run at the line that calls them. The debugger steps through runs of sessions and calls of compiled
    functions as through the functions that declared them, and not through this library. An error that nobody
    catches leaves the debugger where it was raised.
    """
    with open(script, "rb") as file:
        code = compile(file.read(), os.path.abspath(script), "exec")
    debugger = _Debugger()
    with _as_main(script, arguments) as main, _stepping(debugger):
        try:
            debugger.run(code, vars(main))
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else int(end.code is not None)
        except Exception as error:
            traceback.print_exc()
            debugger.interaction(None, error.__traceback__)
            return 1
    return 0


class _Debugger(pdb.Pdb):
    """Notes what the program declares, for stepping through its runs, for as long as it follows the program."""

    def __init__(self) -> None:
        super().__init__(skip=["twofold", "twofold.*"])
        self.declarations = Declarations(super().trace_dispatch)
        self.declarations.follows = self.trace_dispatch

    def trace_dispatch(self, frame: FrameType, event: str, arg: Any) -> Any:
        """Called where a function is entered, and at its lines while the debugger follows it."""
        follow = self.declarations.begin if event == "call" else super().trace_dispatch
        return follow(frame, event, arg)


@contextmanager
def _as_main(script: str, arguments: Sequence[str]) -> Iterator[ModuleType]:
    """The main module and the arguments of a program, in place of ours."""
    before = sys.modules["__main__"], sys.argv, sys.path[:]
    made = ModuleType("__main__")
    made.__file__ = os.path.abspath(script)
    sys.modules["__main__"], sys.argv = made, [script, *arguments]
    sys.path.insert(0, os.path.dirname(made.__file__))
    try:
        yield made
    finally:
        sys.modules["__main__"], sys.argv, sys.path[:] = before


@contextmanager
def _stepping(debugger: _Debugger) -> Iterator[None]:
    """Inside, runs of sessions are stepped through, and so are functions that are compiled inside.

    ``breakpoint()`` stops in the debugger that is there.
    """

    @untraced  # the debugger may be at work already
    def stop() -> None:
        if stopping():
            debugger.set_trace(sys._getframe(1))

    BaseSession.stepped = True
    function.stepped = _steppable
    before, sys.breakpointhook = sys.breakpointhook, stop
    debugger.declarations.start()
    try:
        yield
    finally:
        debugger.declarations.stop()
        sys.breakpointhook = before
        BaseSession.stepped = False
        function.stepped = None


def _steppable(compiled: Any) -> Any:
    """A compiled function that a debugger steps through."""
    return functools.update_wrapper(functools.partial(run, compiled), compiled)
