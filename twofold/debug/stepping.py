"""Compiled graphs as frames of the program: run again, call by call, under whatever debugger is attached."""

from __future__ import annotations

import bdb
import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from types import FrameType, FunctionType
from typing import Any

from twofold import _core
from twofold.debug.declared_stops import insert_where_declared
from twofold.debug.frame_writer import BREAKPOINT, CAUGHT, ENDED, HELPER
from twofold.debug.frames import Frames
from twofold.debug.interpreter import Interpreter, Rewind
from twofold.debug.line_trace import LineTrace, Stretch
from twofold.debug.names import Given
from twofold.debug.nesting import tensors_in
from twofold.debug.recording import Recording, compute_the_same, recorded
from twofold.debug.replay import ReplayWriter, write_root
from twofold.debug.sites import chain_of
from twofold.errors import ArgumentError
from twofold.frontend.function import DeclaredGraph, graph_of_call
from twofold.runtime.pytree import flatten, unflatten

Tensor = _core.Tensor
BUDGET = 256 * 2**20
"""Bytes of values that are kept for going back; what is beyond is computed again."""


def _ended(*called: Any) -> Any:
    """An iterator that raises what ends a loop, as a function does that is ``called``; no debugger sees more."""
    function, *values = called or (next, iter(()))
    members: dict[str, Any] = {"__next__": functools.partial(function, *values)}
    made: Any = type("_Ended", (), members)()
    type(made).__iter__ = functools.partial(_core.call_untraced, lambda: made)
    return made


def frames_of(
    recording: Recording,
    given: dict[str, Any],
    root: Stretch | None,
    writer: type[ReplayWriter] = ReplayWriter,
) -> Frames:
    """The frames of a recording: of the lines that Python came by below ``root``, else as the source has them."""
    frames = Frames(recording)
    if root is None:
        frames.write(given)
    else:
        write_root(frames, root, writer)
    return frames


class Stepper:
    """Runs the frames of a recording until they are through."""

    def __init__(self, recording: Recording, frames: Frames, budget: int) -> None:
        self.frames = frames
        self.interpreter = Interpreter(recording, self.frames, budget)
        self.interpreter.on_arrival = self._follow
        self.functions: dict[str, FunctionType] = self.frames.made()
        self._do = functools.partial(_core.call_untraced, self.interpreter.act)
        helpers = {
            HELPER: self._do,
            BREAKPOINT: breakpoint,
            CAUGHT: functools.partial(_core.call_untraced, self.interpreter.caught),
            ENDED: functools.partial(_core.call_untraced, _ended),
            "back": self._back,
            "goto": self._goto,
            "grad": self._grad,
        }
        for space in self.frames.spaces():
            space.update(helpers)

    def run(self) -> None:
        """Run them; the thread is hidden from debuggers outside of them."""
        depth = _core.hide_frames(0)
        while True:
            try:
                for name, arguments in self.frames.roots:
                    self._enter(name, [self._do(number) for number in arguments])
                    _core.hide_frames(depth - _core.hide_frames(0))
                return
            except Rewind:
                target, self.interpreter.wanted = self.interpreter.wanted, None
                self.interpreter.rewind(target or 0)
            finally:
                _core.hide_frames(depth - _core.hide_frames(0))

    def _enter(self, name: str, values: Sequence[Any]) -> None:
        """Call an outermost function; a debugger follows, unless the way back to a step leads through it."""
        if self.interpreter.silent_until == self.interpreter.step:
            self.interpreter.silent_until = None
            _stop_at(self.interpreter.target)
        if not name:
            return
        if self.interpreter.silent_until is None:
            _core.call_traced(self.functions[name], *values)
        else:
            self.functions[name](*values)

    def _follow(self, frame: FrameType | None) -> None:
        """Have the debugger follow the thread again, and stop where the step begins that was gone back to."""
        _stop_at(self.interpreter.target)
        if frame is None or HELPER not in frame.f_globals:
            return  # not in the program yet
        trace: Any = sys.gettrace()
        while trace is not None and frame is not None and HELPER in frame.f_globals:
            frame.f_trace = trace
            frame = frame.f_back
        _core.hide_frames(-1)

    # What a program that is stepped through may call

    def _back(self, lines: int = 1) -> None:
        """Go back so many lines as soon as the program goes on."""
        self.interpreter.wanted = self.interpreter.step_back(lines)

    def _goto(self, line: int) -> None:
        """Go back to where a line ran last, as soon as the program goes on."""
        self.interpreter.wanted = self.interpreter.step_of_line(line)

    def _grad(self, name: Any) -> Any:
        """The gradient of a variable or value as far as the backward pass has come, or None."""
        value = sys._getframe(1).f_locals[name] if isinstance(name, str) else name
        for number, one in self.interpreter.values.items():
            if one is value:
                return self.interpreter.gradient(number)
        return None


def _stop_at(target: tuple[str, int] | None) -> None:
    """Have the debugger stop at a file and line (None: any), not at calls, returns and lines before it."""
    debugger: Any = getattr(sys.gettrace(), "__self__", None)
    debugger = getattr(getattr(debugger, "before", None), "__self__", debugger)  # of who notes declarations
    if not isinstance(debugger, bdb.Bdb):
        return
    debugger.set_step()

    def pass_by(frame: FrameType, argument: Any) -> None:
        debugger.set_step()

    def stop(frame: FrameType) -> None:
        if target is not None and (frame.f_code.co_filename, frame.f_lineno) != target:
            return
        for name in replaced:
            del vars(debugger)[name]
        debugger.user_line(frame)

    replaced = {"user_call": pass_by, "user_return": pass_by, "user_line": stop}
    vars(debugger).update(replaced)


def _compiled(function: Any) -> bool:
    return type(function).__name__ == "Compiled"


def uncompiled(function: Callable[..., Any]) -> Any:
    """The function behind ``compile``; any other as it is."""
    return inspect.unwrap(function, stop=lambda one: not _compiled(one))


def untraced(function: Callable[..., Any]) -> Any:
    """``function`` as a callable that debuggers do not step into."""
    made = functools.partial(_core.call_untraced, function)
    functools.update_wrapper(made, function)
    return made


Keys = dict[int, int]
"""Of the values that tensors held before the function ran, by the tensors' ``id``: it may write to its arguments."""


def keys_of(values: Sequence[Any]) -> Keys:
    return {id(one): _core.value_key(one) for one in tensors_in(values)}


def given_by_name(
    recording: Recording, function: Any, arguments: Sequence[Any], named: dict[str, Any], keys: Keys
) -> dict[str, Any]:
    """The arguments of the outermost function by name, as values of the recording where they are."""
    forward = getattr(function, "forward", None)
    inner = inspect.unwrap(forward if forward is not None else function)
    try:
        bound = inspect.signature(inner).bind(*arguments, **named)
    except (TypeError, ValueError):
        return {}
    bound.apply_defaults()
    found: dict[str, Any] = {}
    owner = getattr(inner, "__self__", None)
    if owner is not None:
        found[inner.__code__.co_varnames[0]] = Given(owner)
    return {**found, **{name: _held(recording, value, keys) for name, value in bound.arguments.items()}}


def _held(recording: Recording, value: Any, keys: Keys) -> Any:
    value = getattr(value, "_tensor", value)  # of an expression of DyNet's
    if isinstance(value, Tensor):
        number = recording.numbers.get(keys.get(id(value), 0))
        return Given(value) if number is None else number
    if type(value) in (tuple, list):
        return type(value)(_held(recording, one, keys) for one in value)
    return Given(value)


@untraced
def run(function: Callable[..., Any], *arguments: Any, budget: int = BUDGET, **named: Any) -> Any:
    """Call ``function`` and step through what it computed, on its own lines, with the debugger that is attached.

    The function runs once without the debugger, and its operations are recorded; those of a compiled function are the
    graph that a call runs. Then they run one by one, in frames with the file, the lines and the variables of the
    program. What the debugger assigns to a variable is used from there on. ``back(lines)`` and ``goto(line)`` go back,
    ``grad(name)`` is a gradient in a backward pass.

    Args:
        function: A function of tensors, compiled or not, or a module.
        arguments: What it is called with.
        budget: Bytes of values that are kept for going back; what is beyond is computed again.
        named: Keyword arguments of the function.

    Returns:
        What the function returns, with the values that the stepped run computed.

    >>> import twofold as torch
    >>> def f(x):
    ...     y = x * 2
    ...     return y + 1
    >>> torch.debug.run(f, torch.tensor([1.0, 2.0]))
    tensor([3., 5.])
    """
    if not callable(function):
        raise ArgumentError(
            f"debug.run: {type(function).__name__} cannot be called", "Give a function or module."
        )
    graph = graph_of_call(function, arguments) if _compiled(function) and not named else None
    function = uncompiled(function)
    for value in (*arguments, *named.values()):
        if isinstance(value, Tensor):
            value._realise()
    if graph is not None:
        return run_graph(graph, function, arguments, budget)
    return Run(function, arguments, named).step(budget)


class Run:
    """A run of a function, what it computed and the lines that it came by."""

    def __init__(self, function: Callable[..., Any], arguments: Sequence[Any], named: dict[str, Any]) -> None:
        keys = keys_of((*arguments, *named.values()))
        with recorded() as tape:
            caller = chain_of(_core.capture_location())
            trace = LineTrace(tape)
            self.result = trace.run(function, arguments, named)
        self.recording = recording = Recording()
        root = trace.add_to(recording)
        self.results = [recording.number_of(one) or 0 for one in tensors_in(self.result)]
        recording.returned = set(self.results)
        if caller:
            recording.begin_below(caller[-1])
        self.given = given_by_name(recording, function, arguments, named, keys)
        self.root = root if trace.is_whole else None

    def step(self, budget: int) -> Any:
        """Step through it; the result as the steps leave it."""
        stepper = Stepper(self.recording, frames_of(self.recording, self.given, self.root), budget)
        stepper.run()
        values, _, structure = flatten(self.result, "result")
        return unflatten(structure, [_after(stepper.interpreter, value) for value in values])


def run_graph(
    graph: DeclaredGraph, function: Callable[..., Any], arguments: Sequence[Any], budget: int = BUDGET
) -> Any:
    """Step through a graph that was declared by ``function``, with its breakpoints.

    The function runs once more, which tells its lines and variables as long as it computes what the graph does.
    """
    recording = Recording()
    results = recording.add_closed(graph.closed(), arguments)
    run = Run(function, arguments, {})
    if run.root is not None and compute_the_same(recording, results, run.recording, run.results):
        return run.step(budget)
    stops = [recording.stop(location) for location, _ in graph.stops]
    recording.begin_in(inspect.unwrap(function).__code__, stops)
    insert_where_declared(
        recording.calls, list(zip(stops, [graph.calls_after(mark) for _, mark in graph.stops]))
    )
    given = given_by_name(recording, function, arguments, {}, keys_of(arguments))
    stepper = Stepper(recording, frames_of(recording, given, None), budget)
    stepper.run()
    found = tuple(stepper.interpreter.values[number] for number in results)
    return found[0] if graph.single else found


def _after(interpreter: Interpreter, value: Any) -> Any:
    """A result as the steps left it: itself, unless a change has reached it."""
    number = interpreter.recording.number_of(value) if isinstance(value, Tensor) else None
    return interpreter.values[number] if number is not None and interpreter.changes else value
