"""``pdb``, given "step" wherever it stops, which notes what it shows of one file."""

from __future__ import annotations

import inspect
import io
import pdb
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import twofold as torch
import twofold.dynet as dy
import twofold.static as tf
from twofold import _core, debug


class Seen(NamedTuple):
    """A line about to run: its function and number, and the values of the variables that hold tensors or numbers."""

    function: str
    line: int
    values: dict[str, Any]
    collections: dict[str, Any]
    frame: int

    @property
    def what(self) -> tuple[str, int, dict[str, Any]]:
        """What is equal in equal runs."""
        return self.function, self.line, self.values


def value_of(value: Any) -> Any:
    """A tensor as lists, a tuple of tensors as lists, an expression as the tensor that it is."""
    value = getattr(value, "_tensor", value)
    if isinstance(value, torch.Tensor):
        return value.detach().tolist()
    if isinstance(value, (tuple, list)):
        return [value_of(one) for one in value]
    return {key: value_of(one) for key, one in value.items()} if isinstance(value, dict) else value


def is_seen(value: Any) -> bool:
    """Whether a variable holds a tensor with a value, or a tuple of them."""
    if isinstance(value, torch.Tensor):
        return not value._is_symbolic
    return isinstance(value, dy.Expression) or (isinstance(value, tuple) and all(map(is_seen, value)))


def is_collection(value: Any) -> bool:
    """Whether a variable holds a list or dictionary of tensors; one that the source does not tell of is missing."""
    parts = list(value.values()) if isinstance(value, dict) else value
    return isinstance(parts, list) and bool(parts) and all(map(is_seen, parts))


class StepRecorder(pdb.Pdb):
    """Steps into every line."""

    def __init__(self, file: str) -> None:
        super().__init__(stdin=io.StringIO(), stdout=io.StringIO(), nosigint=True, readrc=False)
        self.clear_all_breaks()  # those of other tests
        self.file = file
        self.seen: list[Seen] = []
        self.recorded_on: set[tuple[str, int]] = set()
        self.frames: list[Any] = []
        self.result: Any = None  # of the call that was stepped through
        self._count = 0
        self._last: tuple[str, int] | None = None

    def run_steps(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What ``function`` returns, stepped through."""
        self.result = self.runcall(function, *arguments)
        return self.result

    def user_call(self, frame: Any, argument_list: Any) -> None:
        """Called where a function is entered; pdb would ask for a command there, too."""

    def interaction(self, frame: Any, tb_or_exc: Any) -> None:
        """Called where pdb asks for a command as a line is about to run."""
        if frame.f_code.co_filename == self.file:
            self._note_operations(frame)
            found = {name: value_of(one) for name, one in frame.f_locals.items() if is_seen(one)}
            self.frames.append(frame)  # alive, so that each has another number
            lists = {name: value_of(one) for name, one in frame.f_locals.items() if is_collection(one)}
            self.seen.append(Seen(frame.f_code.co_name, frame.f_lineno, found, lists, id(frame)))
        self.set_step()

    def user_return(self, frame: Any, value: Any) -> None:
        """Called where a function is about to return."""
        if frame.f_code.co_filename == self.file:
            self._note_operations(frame)
        self.set_step()

    def _note_operations(self, frame: Any) -> None:
        now = _core.statistics()["recorded"]
        if self._last is not None and now > self._count:
            self.recorded_on.add(self._last)
        self._count = _core.statistics()["recorded"]
        self._last = frame.f_code.co_name, frame.f_lineno

    def on_lines(self, lines: set[tuple[str, int]]) -> list[Seen]:
        """What was seen on these lines."""
        return [one for one in self.seen if one[:2] in lines]

    @property
    def lines(self) -> set[tuple[str, int]]:
        """The functions and lines that were seen."""
        return {one[:2] for one in self.seen}


def stepped(program: Any, function: Callable[..., Any], *arguments: Any) -> StepRecorder:
    """What stepping through a call shows of the file of ``program``, a module or function."""
    recorder = StepRecorder(inspect.getsourcefile(program) or "")
    recorder.run_steps(function, *arguments)
    return recorder


def compare(stepped: StepRecorder, straight: StepRecorder, headers: Collection[int] = ()) -> None:
    """The steps are equal; each iteration of a declared loop stops at its line, one of ``headers``, once more."""
    assert straight.recorded_on <= stepped.lines
    found = [one for one in stepped.seen if one.line not in headers]
    expected = [one for one in straight.on_lines(stepped.lines) if one.line not in headers]
    assert found and [one.what for one in found] == [one.what for one in expected]
    for one, other in zip(found, expected):
        assert one.collections == {name: other.collections.get(name) for name in one.collections}


def declared_and_at_once(
    module: Any, program: Any, of: Callable[[Any, Any], Any] = lambda result, x: result
) -> tuple[StepRecorder, StepRecorder]:
    """The steps of a program's declared graph, and of the program where each operation is computed at once.

    The graph is run for what ``of`` makes of the program's result and its input.
    """
    value = [0.5, -1.0]
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2])
        fetched = of(program(x), x)
        usual = session.run(fetched, {x: value})
        recorder = stepped(module, lambda: session.run(fetched, {x: value}, debug=True))
    assert recorder.result.tolist() == usual.tolist()
    tf.enable_eager_execution()
    try:
        return recorder, stepped(module, program, tf.constant(value))
    finally:
        tf.disable_eager_execution()


def compare_declared(module: Any, program: Any, headers: Collection[int]) -> None:
    """A program's declared graph steps as the program does where each operation is computed at once."""
    compare(*declared_and_at_once(module, program), headers)


def programs_of(module: Any) -> list[Any]:
    """The functions of a module whose first tensor is called ``x``: what is stepped through in tests."""
    return [
        one
        for one in vars(module).values()
        if inspect.isfunction(one)
        and one.__module__ == module.__name__
        and "x" in inspect.signature(one).parameters
    ]


def arguments_of(program: Any) -> list[Any]:
    """One tensor for each of the at most two parameters of a program."""
    given = [torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])]
    return given[: len(inspect.signature(program).parameters)]


def steps_as_it_runs(module: Any, program: Any, compiles: bool) -> None:
    """Stepping shows what plain define-by-run shows, and returns the same."""
    function = torch.compile(program) if compiles else program
    usual = function(*arguments_of(program))
    recorder = stepped(module, debug.run, function, *arguments_of(program))
    compare(recorder, stepped(module, program, *arguments_of(program)))
    assert value_of(recorder.result) == value_of(usual)
