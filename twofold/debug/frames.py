"""Functions that stand for those of the program: with its file, names and lines, they do what a recording did there.

Each activation becomes a code object whose lines are those of the calls that it made, so that every debugger of Python
shows and steps through it as through the program itself.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from itertools import takewhile
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from twofold.debug.activations import Activation, Item, build
from twofold.debug.backward_loops import differentiated
from twofold.debug.cotangents import Cotangents
from twofold.debug.names import Held, Scope, arguments_of
from twofold.debug.recording import STOP, Call, Recording, Site
from twofold.debug.source import (
    Position,
    assignments_before,
    function_of,
    is_method,
    last_return,
    loops_around,
    parameters_of,
    position_of,
)

HELPER = "__twofold__"
BREAKPOINT = "__breakpoint__"
_NOWHERE = Position(1, 0, 1, 0, None, None)


class Action(NamedTuple):
    """What a synthetic frame asks the interpreter for, and the variables that the frame has bound then."""

    kind: str  # call, held, more, chosen, stopping
    payload: Any
    names: dict[str, int]


class Stop(NamedTuple):
    """One execution of a statement in the forward pass: the stop above it, and the variables after it."""

    above: Stop | None
    code: CodeType
    site: Site | None
    names: dict[str, Held]


class Frames:
    """The synthetic functions of a recording; ``actions`` is what they do, by number."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.actions: list[Action] = []
        self.functions: dict[str, tuple[ast.FunctionDef, CodeType, bool]] = {}
        self.stops: dict[int, Stop] = {}  # of calls, by their results
        self._spaces: dict[str, dict[str, Any]] = {}
        self.cotangents = Cotangents(recording)
        self.roots: list[
            tuple[str, list[int]]
        ] = []  # functions, "" for none, with the actions of their arguments

    def write(self, given: dict[str, Held]) -> None:
        """Write the functions; ``given`` are arguments of the outermost one."""
        root = build(self.recording.calls, Activation(None), -1)
        writer = _Writer(self, root, Scope({}), None, False)
        for item in root.items:
            if item.child is None or item.child.code is None:
                if item.call is not None:
                    self.roots.append(("", [self.act("call", item.call, {})]))
                continue
            known = {name: held for name, held in given.items() if name in item.child.code.co_varnames}
            name, held, _ = writer.function(item.child, known, None)
            self.roots.append((name, [self.act("held", one, {}) for one in held]))

    def act(self, kind: str, payload: Any, bound: dict[str, int]) -> int:
        """The number of an action, for a frame whose variables hold the values ``bound``."""
        self.actions.append(Action(kind, payload, dict(bound)))
        return len(self.actions) - 1

    def space(self, filename: str) -> dict[str, Any]:
        """Global variables for code of a file: a copy of those of its module."""
        if filename not in self._spaces:
            modules = [m for m in list(sys.modules.values()) if getattr(m, "__file__", None) == filename]
            self._spaces[filename] = dict(vars(modules[0])) if modules else {"__name__": "__graph__"}
        return self._spaces[filename]

    def spaces(self) -> list[dict[str, Any]]:
        """The global variables of all files."""
        return list(self._spaces.values())

    def made(self) -> dict[str, FunctionType]:
        """The functions, which see one another."""
        found = {}
        for name, (definition, code, backward) in self.functions.items():
            module = ast.Module([definition], [])
            compiled = compile(module, code.co_filename, "exec", dont_inherit=True)
            inner = next(one for one in compiled.co_consts if isinstance(one, CodeType))
            shown = f"{code.co_name} (backward)" if backward else code.co_name
            inner = inner.replace(co_name=shown)
            if hasattr(inner, "co_qualname"):
                inner = inner.replace(co_qualname=shown)
            found[name] = FunctionType(inner, self.space(code.co_filename), name)
        for space in self._spaces.values():
            space.update(found)
        return found


class _Writer:
    """Writes the body of one function."""

    def __init__(
        self, frames: Frames, activation: Activation, scope: Scope, above: Stop | None, backward: bool
    ) -> None:
        self.frames, self.activation, self.scope, self.above = frames, activation, scope, above
        self.backward = backward
        self.outer: _Writer | None = None
        self.bound = scope.values()  # what the variables of the frame hold, as it is written so far
        self.body: list[ast.stmt] = []
        self.position = _NOWHERE
        self.loops: list[ast.AST] = []
        self.computed: set[ast.AST] = set()  # loops whose headers compute something
        self.passed = 0  # the line of the statement that was run last

    # Pieces of syntax, all at the present position

    def _at(self, node: Any) -> Any:
        first, column, last, end = self.position[:4]
        for one in ast.walk(node):
            if isinstance(one, (ast.expr, ast.stmt)):
                one.lineno, one.col_offset, one.end_lineno, one.end_col_offset = first, column, last, end
        return node

    def _do(self, kind: str, payload: Any) -> ast.expr:
        number = self.frames.act(kind, payload, self.bound)
        return ast.Call(ast.Name(HELPER, ast.Load()), [ast.Constant(number)], [])

    def _put(self, node: ast.stmt) -> None:
        self.body.append(self._at(node))

    def assign(self, name: str, held: Held) -> None:
        """Have a local variable hold a value."""
        self._put(ast.Assign([ast.Name(name, ast.Store())], self._do("held", held)))
        self._bound(name, held)

    def _bound(self, name: str, held: Held) -> None:
        self.bound.pop(name, None)
        if isinstance(held, int):
            self.bound[name] = held

    def function(
        self, child: Activation, given: dict[str, Held], above: Stop | None
    ) -> tuple[str, list[Held], Held]:
        """Write another activation; its name, what it is given, and what it returns."""
        assert child.code is not None
        given = {**self._closure(child.code), **given}
        writer = _Writer(self.frames, child, Scope(given), above, False)
        writer.outer = self
        returned = writer.statements()
        return writer.define(list(given)), list(given.values()), returned

    def _closure(self, code: CodeType) -> dict[str, Held]:
        """The variables of functions around that a function reads."""
        found: dict[str, Held] = {}
        for name in code.co_freevars:
            writer: _Writer | None = self
            while writer is not None and name not in (writer.activation.code or code).co_cellvars:
                writer = writer.outer
            held = writer.scope.names.get(name) if writer is not None else None
            if held is not None:
                found[name] = held
        return found

    def define(self, parameters: Sequence[str]) -> str:
        """Enter the function that was written."""
        code = self.activation.code
        assert code is not None
        name = f"__frame_{len(self.frames.functions)}__"
        arguments = ast.arguments([], [ast.arg(one) for one in parameters], None, [], [], None, [])
        self.position = Position(code.co_firstlineno, 0, code.co_firstlineno, 0, None, None)
        body = self.body or [self._at(ast.Pass())]
        definition = ast.FunctionDef(name, arguments, body, [], None)
        for one in (definition, *definition.args.args):
            first = code.co_firstlineno
            one.lineno, one.col_offset, one.end_lineno, one.end_col_offset = first, 0, first, 0  # type: ignore[attr-defined]
        if sys.version_info >= (3, 12):
            definition.type_params = []
        self.frames.functions[name] = definition, code, self.backward
        self.frames.space(code.co_filename)
        return name

    # The statements of a forward activation

    def statements(self) -> Held:
        """Write all that the activation did; what it returns."""
        items = self.activation.items
        start = 0
        while start < len(items):
            statement = self._statement(items[start])
            end = start + 1
            while end < len(items) and self._statement(items[end]) is statement and not items[end].again:
                end += 1
            group = items[start:end]
            around = loops_around(group[0].site) if group[0].site is not None else []
            entered = [loop for loop in around if loop not in self.loops]
            if entered:
                self._copies(statement, entered[-1].lineno)  # type: ignore[attr-defined]
            self._headers(group[0])
            if group[0].again and around:
                self.passed = around[0].lineno  # type: ignore[attr-defined]
            self._copies(statement)
            self._execute(group, statement)
            self.passed = getattr(statement, "lineno", self.passed)
            start = end
        return self._end()

    def _copies(self, statement: Any, end: int = sys.maxsize) -> None:
        """The assignments on the way to a statement, up to a line, that give a value another name."""
        code = self._code()
        for one in assignments_before(code, statement) if statement is not None and code is not None else ():
            if self.passed < one.lineno < end and self.scope.held(one.value) is not None:
                self.passed = one.lineno
                self.position = Position(one.lineno, one.col_offset, one.lineno, one.col_offset, None, None)
                for name, held in self.scope.written(one):
                    self.assign(name, held)

    @staticmethod
    def _statement(item: Item) -> Any:
        return None if item.site is None else position_of(item.site).statement

    def _headers(self, item: Item) -> None:
        """The headers of the loops around that are left, entered, or begin another round."""
        if item.site is None:
            return
        around = loops_around(item.site)[::-1]
        self._leave(around)
        entered = [loop for loop in around if loop not in self.loops]
        if not entered and item.again and around:
            entered = around[-1:]
        for loop in entered:
            if position_of(item.site).statement is loop:
                self.computed.add(loop)
            else:
                self._header(loop)
        self.loops = around

    def _leave(self, around: Sequence[ast.AST]) -> None:
        """The headers of loops that end because there is no more to go through."""
        for loop in reversed([one for one in self.loops if one not in around]):
            if loop not in self.computed and not any(isinstance(one, ast.Break) for one in ast.walk(loop)):
                self._header(loop)

    def _header(self, loop: Any) -> None:
        self.position = Position(loop.lineno, 0, loop.lineno, 0, None, None)
        self._put(ast.Pass())

    def _execute(self, group: Sequence[Item], statement: Any) -> None:
        self.scope.made = {}
        begun = len(self.frames.actions)
        calls: list[Call] = []
        for k, item in enumerate(group):
            if item.site is not None:
                self.position = position_of(item.site)
            if self._is_backward(item):
                if k == 0 or not self._is_backward(group[k - 1]):
                    later = takewhile(self._is_backward, group[k:])
                    _Backward(self, [one.call for one in later if one.call]).write()
                continue
            self._item(item)
            if item.call is not None:
                calls.append(item.call)
        for item in group:
            if item.parts:
                self.scope.made[position_of(item.site).expression] = self._results(item.call, group)  # type: ignore[arg-type]
        for name, held in self.scope.written(statement):
            self._name(name, held)
        if isinstance(statement, ast.Return):
            self._return(statement.value)
        stop = Stop(self.above, self._code(), group[0].site, dict(self.scope.names))
        inner = [
            action.payload
            for action in self.frames.actions[begun:]
            if action.kind == "call" and action.payload.result not in self.frames.stops
        ]
        for call in [*calls, *inner]:
            self.frames.stops[call.result] = stop

    def _is_backward(self, item: Item) -> bool:
        """Whether an item is a call of a backward pass, shown on a line of the forward pass."""
        call = item.call
        return call is not None and (
            call.forward is not None or call.result in self.frames.cotangents.forward
        )

    def _code(self) -> Any:
        return self.activation.code

    def _name(self, name: str, held: Held) -> None:
        """Bind a name, in the statement that computed the value where that was the last thing done."""
        last: Any = self.body[-1] if self.body else None
        call = last.value if isinstance(last, ast.Expr) else None
        is_action = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == HELPER
        number = last.value.args[0].value if is_action else None
        action = self.frames.actions[number] if number is not None else None
        if action is not None and action.kind == "call" and action.payload.result == held:
            self.body[-1] = self._at(ast.Assign([ast.Name(name, ast.Store())], last.value))
            self._bound(name, held)
        else:
            self.assign(name, held)

    def _item(self, item: Item) -> None:
        expression = self.position.expression
        if item.child is not None:
            given = self._arguments(item, expression)
            above = Stop(self.above, self._code(), item.site, dict(self.scope.names))
            name, taken, returned = self.function(item.child, given, above)
            values = [self._do("held", held) for held in taken]
            self._put(ast.Expr(ast.Call(ast.Name(name, ast.Load()), values, [])))
            self.scope.made[expression] = returned
            return
        assert item.call is not None
        if item.call.op is STOP:
            stop = ast.Expr(ast.Call(ast.Name(BREAKPOINT, ast.Load()), [], []))
            self._put(ast.If(self._do("stopping", None), [stop], []))
            return
        if item.parts:
            self._parts(item, item.call)
        self._put(ast.Expr(self._do("call", item.call)))
        self.scope.made[expression] = item.call.result

    def _arguments(self, item: Item, expression: Any) -> dict[str, Held]:
        assert item.child is not None and item.child.code is not None
        code = item.child.code
        parameters = parameters_of(code)
        if is_method(code):
            parameters = parameters[1:]
        called = expression.func if isinstance(expression, ast.Call) else None
        name = getattr(called, "id", getattr(called, "attr", ""))
        if (carried := self._carried(item)) is not None and len(carried) == len(parameters):
            return dict(zip(parameters, carried))
        if function_of(code) is None or (
            name != code.co_name and not is_method(code) and self._is_library(name)
        ):
            return {}
        return arguments_of(expression, parameters, self.scope)

    def _is_library(self, name: str) -> bool:
        """Whether a name of the program belongs to this library, which calls the program's functions in turn."""
        found = self.frames.space(self._code().co_filename).get(name)
        return getattr(found, "__module__", "").startswith("twofold")

    def _carried(self, item: Item) -> list[int] | None:
        """What a loop hands to the function that it calls here."""
        for one in self.activation.items:
            if one.parts and one.site == item.site and hasattr(one.call.content, "carried"):  # type: ignore[union-attr]
                call: Any = one.call
                spec = call.content
                first = spec.first + 1
                return list(call.operands[first : first + spec.carried - 1])
        return None

    def _parts(self, item: Item, call: Call) -> None:
        """A loop as a loop, a branch as a branch."""
        content = call.content
        bodies = [
            _Part(self, inside, part, content).written() for inside, part in zip(item.parts, call.parts)
        ]
        if hasattr(content, "carried"):
            self._put(ast.While(self._do("more", call), bodies[0], []))
            return
        rest: list[ast.stmt] = []
        for number in reversed(range(len(bodies))):
            rest = [self._at(ast.If(self._do("chosen", (call, number)), bodies[number], rest))]
        self.body += rest

    def _results(self, loop: Call, group: Sequence[Item]) -> Held:
        """What a loop or branch gives the program: for each result the value that its dtype's block became."""
        numbers = self.frames.recording.results_of(loop)
        first = 1 if hasattr(loop.content, "carried") else 0
        by_start: dict[tuple[Any, int], int] = {}
        flat: dict[int, Any] = {}
        for call in (one.call for one in group if one.call is not None):
            if call.content is loop.content:
                flat[call.result] = call.attrs[2]
                by_start[call.attrs[2], -1] = call.result
            elif call.op.name == "result_block" and call.operands[0] in flat:
                by_start[flat[call.operands[0]], call.attrs[0]] = call.result
        held: list[int] = []
        starts: dict[Any, int] = {}
        alone = [type.dtype for type in loop.result_types]
        for number, type in zip(numbers, loop.result_types):
            start = -1 if alone.count(type.dtype) == 1 else starts.get(type.dtype, 0)
            starts[type.dtype] = starts.get(type.dtype, 0) + type.size
            held.append(by_start.get((type.dtype, start), number))
        shown = held[first : len(held) - first]
        if self._is_static_scan(group):
            shown = held[loop.content.carried : len(held) - 1]
        return shown[0] if len(shown) == 1 else tuple(shown)

    def _is_static_scan(self, group: Sequence[Item]) -> bool:
        """Whether the program calls ``tf.scan``, which returns the rows alone."""
        called = getattr(position_of(group[0].site).expression, "func", None)  # type: ignore[arg-type]
        owner = getattr(getattr(called, "value", None), "id", "")
        module = self.frames.space(self._code().co_filename).get(owner)
        return getattr(called, "attr", "") == "scan" and getattr(module, "__name__", "") == "twofold.static"

    def _return(self, value: Any) -> None:
        held = self.scope.held(value)
        self.scope.made[_RETURNED] = held
        self._put(ast.Return(None if held is None else self._do("held", held)))

    def _end(self) -> Held:
        """Return what the function returns at its end, unless it has returned."""
        code = self._code()
        if self.body and isinstance(self.body[-1], ast.Return):
            return self.scope.made.get(_RETURNED)
        if code is None:
            return None
        if code.co_name == "<lambda>" and (definition := function_of(code)) is not None:
            held = self.scope.held(definition.body)
            if held is not None:
                self._put(ast.Return(self._do("held", held)))
            return held
        statement = last_return(code)
        if statement is None:
            return None
        self._leave([])
        self._copies(statement)
        line = statement.lineno
        self.position = Position(line, statement.col_offset, line, statement.col_offset, None, None)
        self._return(statement.value)
        return self.scope.made[_RETURNED]


_RETURNED = ast.Pass()
"""Stands for what a function returns among the expressions of a scope."""


class _Part(_Writer):
    """Writes a body of a loop or branch, inside the function that runs it."""

    def __init__(self, outer: _Writer, inside: Activation, part: Any, content: Any) -> None:
        super().__init__(outer.frames, inside, Scope(outer.scope.names), outer.above, False)
        self.bound, self.outer = dict(outer.bound), outer.outer
        self.part, self.content, self.position = part, content, outer.position
        self.called = 0

    def written(self) -> list[ast.stmt]:
        """The statements of the body."""
        for item in self.activation.items:
            self._execute([item], None)
        return self.body or [self._at(ast.Pass())]

    def _carried(self, item: Item) -> list[int] | None:
        if not hasattr(self.content, "carried"):
            return None
        self.called += 1
        held = self.part.inputs if self.called == 1 else self.part.results
        rows = self.content.read if self.called == 1 else 0
        return list(held[1 : self.content.carried + rows])


class _Step(NamedTuple):
    """A step of a backward pass: what the frame asks for, and the call of the forward pass that it belongs to."""

    kind: str  # call, pull
    call: Call
    forward: int


def _together(steps: Sequence[_Step]) -> list[_Step]:
    """The steps of each call of the forward pass together, where what they read is there: a run sums weights late."""
    groups: list[list[_Step]] = []
    latest: dict[int, int] = {}  # the group of a call of the forward pass
    made: dict[int, int] = {}  # the group of a result
    for step in steps:
        position = latest.get(step.forward, -1)
        if step.forward < 0 or position < max((made.get(one, 0) for one in step.call.operands), default=0):
            position = latest[step.forward] = len(groups)
            groups.append([])
        groups[position].append(step)
        made[step.call.result] = position
    return [step for group in groups for step in group]


class _Backward:
    """Writes the frames of a backward pass: those of the forward pass, from the end to the beginning."""

    def __init__(self, writer: _Writer, calls: Sequence[Call]) -> None:
        self.writer, self.calls = writer, list(calls)
        self.frames = writer.frames
        self._begun: set[int] = set()  # loops and branches that were gone through

    def write(self) -> None:
        """Write them, and the calls of the outermost into the statement that runs the pass."""
        forward = self.frames.cotangents.forward
        steps = [_Step("call", call, forward.get(call.result, -1)) for call in self.calls]
        self._level(self.writer, [(step, self._path(step.forward)) for step in _together(steps)], 0)

    def _path(self, result: int) -> list[Stop]:
        """The stops that lead to a call of the forward pass."""
        stop = self.frames.stops.get(result)
        path: list[Stop] = []
        while stop is not None:
            path.append(stop)
            stop = stop.above
        return path[::-1]

    def _level(self, writer: _Writer, steps: Sequence[tuple[_Step, list[Stop]]], depth: int) -> None:
        k = 0
        while k < len(steps):
            step, path = steps[k]
            if depth >= len(path):
                if path:
                    writer.position = _position_of(path[-1])
                loop = self.frames.cotangents.loops.get(step.forward)
                if loop is not None and loop.result not in self._begun:
                    self._begun.add(loop.result)
                    self._through(writer, loop, step.forward, depth)
                writer._put(ast.Expr(writer._do(step.kind, step.call)))
                k += 1
                continue
            end = k + 1
            while end < len(steps) and _same_activation(steps[end][1], path, depth):
                end += 1
            self._frame(writer, steps[k:end], depth)
            k = end

    def _through(self, writer: _Writer, loop: Call, result: int, depth: int) -> None:
        """The bodies of a loop or branch, backward; ``result`` is what the gradient comes from."""
        position, bodies = writer.position, []
        for part in loop.parts:
            steps = [_Step("pull", call, call.result) for call in differentiated(part)]
            outside, writer.body = writer.body, []
            self._level(writer, [(step, self._path(step.forward)) for step in steps], depth)
            writer.position = position
            bodies.append(writer.body or [writer._at(ast.Pass())])
            writer.body = outside
        if hasattr(loop.content, "carried"):
            writer._put(ast.While(writer._do("more_backward", (loop, result)), bodies[0], []))
            return
        rest: list[ast.stmt] = []
        for number in reversed(range(len(bodies))):
            chosen = writer._do("chosen_backward", (loop, result, number))
            rest = [writer._at(ast.If(chosen, bodies[number], rest))]
        writer.body += rest
        writer._put(ast.Expr(writer._do("left_backward", loop)))

    def _frame(self, outer: _Writer, steps: Sequence[tuple[_Step, list[Stop]]], depth: int) -> None:
        first = steps[0][1][depth]
        writer = _Writer(self.frames, Activation(first.code), Scope(first.names), None, True)
        writer.position = _position_of(first)
        k, before = 0, first
        while k < len(steps):
            stop = steps[k][1][depth]
            if stop is not before:
                self._turn(writer, before, stop)
            writer.position = _position_of(stop)
            group = list(takewhile(lambda one, stop=stop: one[1][depth] is stop, steps[k:]))  # type: ignore[misc]
            k += len(group)
            before = stop
            self._level(writer, group, depth + 1)
        names = list(first.names)
        name = writer.define(names)
        values = [outer._do("held", first.names[one]) for one in names]
        outer._put(ast.Expr(ast.Call(ast.Name(name, ast.Load()), values, [])))

    @staticmethod
    def _turn(writer: _Writer, before: Stop, stop: Stop) -> None:
        """Between two statements: the header of the loop that was gone round; the variables as they were then."""
        around = [] if stop.site is None else loops_around(stop.site)
        if around and before.site is not None and stop.site.offset >= before.site.offset:  # type: ignore[union-attr]
            writer._header(around[0])
        for name in [one for one in writer.scope.names if one not in stop.names]:
            del writer.scope.names[name]
            writer.bound.pop(name, None)
            writer._put(ast.Delete([ast.Name(name, ast.Del())]))
        for name, held in stop.names.items():
            if writer.scope.names.get(name) != held:
                writer.scope.names[name] = held
                writer.assign(name, held)


def _same_activation(a: Sequence[Stop], b: Sequence[Stop], depth: int) -> bool:
    """Whether two paths go through one activation at a depth."""
    return len(a) > depth and a[depth].code is b[depth].code and a[depth].above is b[depth].above


def _position_of(stop: Stop) -> Position:
    return _NOWHERE if stop.site is None else position_of(stop.site)
