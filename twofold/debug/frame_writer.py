"""What writes functions that stand for those of the program, statement by statement."""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from types import CodeType
from typing import TYPE_CHECKING, Any, NamedTuple

from twofold.debug.activations import Activation
from twofold.debug.iterations import Iterations
from twofold.debug.names import Held, Literal, Scope, numbers_of
from twofold.debug.sites import Site
from twofold.debug.source import Position, lines_of, position_of, rebound_names

if TYPE_CHECKING:
    from twofold.debug.frames import Frames

HELPER = "__twofold__"
BREAKPOINT = "__breakpoint__"
CAUGHT = "__caught__"
ENDED = "__ended__"
NOWHERE = Position(1, 0, 1, 0, None, None)


class Action(NamedTuple):
    """What a synthetic frame asks the interpreter for, and the variables that the frame has bound then."""

    kind: str  # call, tried, held, passed, raised, more, chosen, stopping
    payload: Any
    names: dict[str, int]
    statement: int  # the number of the execution of a statement that it is a part of


class Stop(NamedTuple):
    """One execution of a statement in the forward pass: the stop above it, and the variables after it.

    ``passes`` are the loops of the function that it stands in, each with the number of the iteration.
    """

    above: Stop | None
    code: CodeType
    site: Site | None
    names: dict[str, Held]
    passes: tuple[tuple[ast.AST, int], ...]


class FrameWriter:
    """Writes the body of one function."""

    def __init__(
        self, frames: Frames, activation: Activation, scope: Scope, above: Stop | None, backward: bool
    ) -> None:
        self.frames, self.activation, self.scope, self.above = frames, activation, scope, above
        self.backward = backward
        self.outer: FrameWriter | None = None
        for name in rebound_names(activation.code) if activation.code is not None else ():
            if isinstance(scope.names.get(name), Literal):
                del scope.names[name]  # another function may bind it
        self.bound = scope.values()  # what the variables of the frame hold, as it is written so far
        self.shown = scope.known()  # the variables that the frame has, as it is written so far
        for name, held in self.shown.items():
            self.note(name, held)
        self.body: list[ast.stmt] = []
        self.version = frames.storage.version  # of what the variables hold
        self.position = NOWHERE
        self.iterations = Iterations(scope, frames.recording.given)
        self.computed: set[ast.AST] = set()  # loops whose headers compute something
        self.statement = 0  # the number of the execution of a statement that is written
        self.passed = 0  # the line of the statement that was run last
        self.last: ast.AST | None = None  # that statement, or the loop that was left since

    @property
    def code(self) -> Any:
        """The code of the function, None before all functions."""
        return self.activation.code

    def stop_at(self, site: Site | None) -> Stop:
        """The execution of a statement that is written now."""
        passes = tuple((loop, self.iterations.number[loop]) for loop in self.iterations.loops)
        return Stop(self.above, self.code, site, self.scope.known(), passes)

    # Pieces of syntax, all at the present position

    def at(self, node: Any) -> Any:
        first, column, last, end = self.position[:4]
        for one in ast.walk(node):
            if isinstance(one, (ast.expr, ast.stmt)):
                one.lineno, one.col_offset, one.end_lineno, one.end_col_offset = first, column, last, end
        return node

    def do(self, kind: str, payload: Any) -> ast.expr:
        self.frames.note_done(kind, payload)
        number = self.frames.act(kind, payload, self.bound, self.statement)
        return ast.Call(ast.Name(HELPER, ast.Load()), [ast.Constant(number)], [])

    def begin(self) -> None:
        """What is written from now on is another execution of a statement."""
        self.frames.statements += 1
        self.statement = self.frames.statements

    def put(self, node: ast.stmt) -> None:
        self.body.append(self.at(node))

    def assign(self, name: str, held: Held) -> None:
        """Have a local variable hold a value."""
        self.put(ast.Assign([ast.Name(name, ast.Store())], self.do("held", held)))
        self.bind(name, held)

    def bind(self, name: str, held: Held) -> None:
        self.bound.pop(name, None)
        self.shown = {**self.shown, name: held}
        if isinstance(held, int):
            self.bound[name] = held
        self.note(name, held)

    def note(self, name: str, held: Held) -> None:
        """Note what a variable has come to hold, in the order of the forward pass, if there are values in it."""
        if not self.backward and any(True for _ in numbers_of(held)):
            self.frames.held.setdefault(name, []).append(held)

    def define(self, parameters: Sequence[str]) -> str:
        """Enter the function that was written."""
        code = self.activation.code
        assert code is not None
        name = f"__frame_{len(self.frames.functions)}__"
        arguments = ast.arguments([], [ast.arg(one) for one in parameters], None, [], [], None, [])
        self.position = Position(code.co_firstlineno, 0, code.co_firstlineno, 0, None, None)
        body = self.body or [self.at(ast.Pass())]
        definition = ast.FunctionDef(name, arguments, body, [], None)
        for one in (definition, *definition.args.args):
            first = code.co_firstlineno
            one.lineno, one.col_offset, one.end_lineno, one.end_col_offset = first, 0, first, 0  # type: ignore[attr-defined]
        if sys.version_info >= (3, 12):
            definition.type_params = []
        self.frames.functions[name] = definition, code, self.backward
        self.frames.space(code.co_filename)
        return name

    def header(self, loop: Any) -> None:
        self.begin()
        if self.body and self.position.line == loop.lineno:
            self.once_more(loop.lineno)
            return
        self.position = Position(loop.lineno, 0, loop.lineno, 0, None, None)
        self.come_by()

    def come_by(self) -> None:
        """Have the function come by a line where it does nothing."""
        self.put(ast.Expr(self.do("passed", None)))

    def once_more(self, line: int) -> None:
        """Have the function come by the line that it stands on once more."""
        self.position = Position(line, 0, line, 0, None, None)
        self.put(ast.While(self.do("turned", len(self.frames.actions)), [self.at(ast.Pass())], []))


class Way:
    """The lines that Python comes by between the calls of a statement of several lines."""

    def __init__(self, writer: FrameWriter, site: Site | None, statement: Any) -> None:
        self.writer = writer
        self.left = lines_of(site.code, statement, site.offset) if site is not None else []
        self.line = 0

    def to(self, site: Site) -> None:
        """Come by all lines up to a call."""
        while self.left and self.left[0][0] <= site.offset:
            self._pass(self.left.pop(0)[1])
        self.line = position_of(site).line

    def to_end(self) -> None:
        """Come by the lines behind the last call."""
        for _, line in self.left:
            self._pass(line)

    def _pass(self, line: int) -> None:
        if line != self.line:
            self.writer.position = Position(line, 0, line, 0, None, None)
            self.writer.come_by()
        self.line = line
