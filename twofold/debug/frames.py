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
from typing import Any

from twofold.debug.activations import Activation, Item, build
from twofold.debug.backward_frames import BackwardFrames
from twofold.debug.cotangents import Cotangents
from twofold.debug.frame_writer import BREAKPOINT, Action, FrameWriter, Stop, Way
from twofold.debug.handed import COLLECTS, GENERATOR, name_of
from twofold.debug.iterations import count_of, element, element_names, loops_that_end
from twofold.debug.names import Held, Scope, is_whole, numbers_of
from twofold.debug.recording import STOP, Call, Recording
from twofold.debug.results import settle
from twofold.debug.sites import Site
from twofold.debug.source import (
    COMPREHENSIONS,
    ELEMENTWISE,
    Position,
    comprehension_around,
    conditions_of,
    encloses,
    function_of,
    last_return,
    loops_around,
    nonlocal_names,
    position_of,
    returns_after,
    statements_after,
    statements_before,
    statements_between,
    target_of,
    yields_after,
)
from twofold.debug.storage import Storage
from twofold.debug.variable_writer import VariableWriter
from twofold.ops.control_flow.programs import LoopSpec


class Frames:
    """The synthetic functions of a recording; ``actions`` is what they do, by number."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.actions: list[Action] = []
        self.statements = 0  # executions of statements so far
        self.functions: dict[str, tuple[ast.FunctionDef, CodeType, bool]] = {}
        self.read = {one for call in recording.calls if call.forward is None for one in call.operands}
        self.read |= recording.returned
        self.stops: dict[int, Stop] = {}  # of calls, by their results
        self.held: dict[str, list[Held]] = {}  # by variables, in the order of the forward pass
        self._done = set(recording.given)  # values that are there where the next action is
        self._spaces: dict[str, dict[str, Any]] = {}
        self.cotangents = Cotangents(recording)
        self.storage = Storage(recording)
        self.roots: list[
            tuple[str, list[int]]
        ] = []  # functions, "" for none, with the actions of their arguments

    def write(self, given: dict[str, Held]) -> None:
        """Write the functions; ``given`` are arguments of the outermost one."""
        root = build(self.recording.calls, Activation(None), -1)
        writer = Writer(self, root, Scope({}), None, False)
        for item in root.items:
            if item.child is None or item.child.code is None:
                if item.call is not None:
                    self.roots.append(("", [self.act("call", item.call, {})]))
                continue
            known = {name: held for name, held in given.items() if name in item.child.code.co_varnames}
            name, held, _ = writer.function(item.child, known, None)
            self.roots.append((name, [self.act("held", one, {}) for one in held]))

    def read_outside(self, activation: Activation) -> set[int]:
        """What calls of the forward pass read that an activation has not made."""
        inside = {id(call) for call in activation.calls()}
        others = [call for call in self.recording.calls if call.forward is None and id(call) not in inside]
        return {one for call in others for one in call.operands}

    def act(self, kind: str, payload: Any, bound: dict[str, int], statement: int = 0) -> int:
        """The number of an action, for a frame whose variables hold the values ``bound``."""
        self.actions.append(Action(kind, payload, dict(bound), statement))
        return len(self.actions) - 1

    def note_done(self, kind: str, payload: Any) -> None:
        """Note the values that an action makes."""
        if kind in ("call", "tried"):
            self._done.add(payload.result)
            self._done.update(self.recording.results_of(payload.loop) if payload.loop is not None else ())
        elif kind == "chosen":
            call, number = payload
            self._done.update(call.parts[number].inputs)

    def is_there(self, held: Held) -> bool:
        """Whether all values that something is made of are there where the next action is."""
        return all(one in self._done or one in self.storage.derived for one in numbers_of(held))

    def faces(self, code: CodeType) -> set[str]:
        """The names of modules that the file of a function uses, the faces of this library among them."""
        return {getattr(one, "__name__", "") for one in self.space(code.co_filename).values()}

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


class Writer(VariableWriter):
    """Writes the body of one function of the forward pass."""

    def __init__(
        self, frames: Frames, activation: Activation, scope: Scope, above: Stop | None, backward: bool
    ) -> None:
        super().__init__(frames, activation, scope, above, backward)
        self.elements: list[Held] = []  # of a comprehension

    def function(
        self,
        child: Activation,
        given: dict[str, Held],
        above: Stop | None,
        generator: Any = None,
        owner: Any = None,
        sent: Held = None,
    ) -> tuple[str, list[Held], Held]:
        assert child.code is not None
        generators = (owner or self).generators
        before = generators.get(generator)
        given = {**self._closure(child.code), **(before.scope.names if before is not None else given)}
        given = {name: held for name, held in given.items() if self.frames.is_there(held)}
        writer = Writer(self.frames, child, Scope(given), above, False)
        writer.outer, writer.suspends = self, generator is not None
        if before is not None:
            writer.resume(before, sent)
        if generator is not None:
            generators[generator] = writer
        parameters = writer.shown
        returned = writer.statements()
        for name in nonlocal_names(child.code):
            self.changed[name] = writer.scope.names.get(name)
        return writer.define(list(parameters)), list(parameters.values()), returned

    def resume(self, before: Any, sent: Held = None) -> None:
        """Go on as a generator does where another activation has left it, with what was sent to it."""
        self.iterations.loops, self.iterations.number = (
            list(before.iterations.loops),
            dict(before.iterations.number),
        )
        self.last, self.passed, self.computed = before.last, before.passed, before.computed
        self.elements, self.generators = before.elements, before.generators
        self.iterated, self.times = before.iterated, before.times + 1
        for one in yields_after(self.code, self.last)[:1] if sent is not None else ():
            self.passed = one.lineno
            for name, held in self.scope.bind(target_of(self.code, one), sent):
                self.name(name, held)
        last, first = before.activation.last, self.activation.items[:1]
        if first and last is not None and first[0].site is not None and first[0].site.offset <= last.offset:
            first[0].again = True

    def _closure(self, code: CodeType) -> dict[str, Held]:
        """The variables of functions around that a function reads."""
        found: dict[str, Held] = {}
        for name in code.co_freevars:
            writer: FrameWriter | None = self
            while writer is not None and name not in (writer.activation.code or code).co_cellvars:
                writer = writer.outer
            held = writer.scope.names.get(name) if writer is not None else None
            if held is not None:
                found[name] = held
        return found

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
            if group[0].site is not None:
                self._go_to(group[0], statement)
            self._execute(group, statement)
            self.last = statement
            self.passed = getattr(statement, "lineno", self.passed)
            start = end
        return self._end()

    @property
    def is_part(self) -> bool:
        """Whether the function is an expression of another."""
        return self.code is not None and self.code.co_name in (*COMPREHENSIONS, "<lambda>")

    def _come_to(self, statement: Any, end: int = sys.maxsize) -> None:
        """What stands on the way to a statement, up to a line."""
        if statement is not None and self.code is not None and not self.is_part:
            before = statements_before(self.code, statement)
            self.pass_by([one for one in before if self.passed < one.lineno < end])

    def _go_on(self, statement: Any) -> None:
        """What stands behind the last statement in the blocks that are left on the way to one."""
        loop = self.iterations.loops[-1] if self.iterations.loops else None
        if (
            self.last is None
            or statement is None
            or (loop is not None and not encloses(self.code, loop, statement))
        ):
            return
        if isinstance(self.last, (ast.If, *_WITH)) and not encloses(self.code, self.last, statement):
            is_past = isinstance(self.last, _WITH) and self.last not in self.inside
            self.pass_by([] if is_past else self.last.body if isinstance(self.last, _WITH) else [self.last])
        self.pass_by(statements_between(self.code, self.last, statement))

    @staticmethod
    def _statement(item: Item) -> Any:
        return None if item.site is None else position_of(item.site).statement

    def _go_to(self, item: Item, statement: Any) -> None:
        """What is between the statement before and an item: headers of loops, and copies."""
        around: list[Any] = loops_around(item.site)[::-1]  # type: ignore[arg-type]
        ended = [loop for loop in around if loop in self.iterated and self.is_fresh(loop, item)]
        gone = self.iterations.repeated(item, [loop for loop in around if loop not in ended])
        staying = around[: around.index(gone) + 1] if gone is not None else around
        if gone is None:
            self._go_on(statement)
        self._leave(staying)
        self._leave_blocks(statement)
        self._elements(item, gone)
        if gone is not None:
            self._finish(gone, ast.Continue)
            self._iterations(gone, self.iterations.number[gone] + 1, item, statement)
        for loop in around:
            if loop not in self.iterations.loops:
                self._come_to(loop, loop.lineno)
                self._iterations(loop, 0, item, statement)
        self.iterations.loops = around
        self._come_to(statement)

    def _iterations(self, loop: Any, number: int, item: Item, statement: Any) -> None:
        """The iterations of a loop from ``number`` to the one in which an item stands; those before compute nothing."""
        for k in range(number, self.iterations.number_of(loop, number, item) + 1):
            self._round(loop, k, statement)

    def _round(self, loop: Any, number: int, statement: Any) -> None:
        """The header of a loop as an iteration begins, and what it gives the target."""
        self.iterations.number[loop] = number
        self.passed = loop.lineno
        if isinstance(loop, ast.While) and loop in (statement, self.last):
            self.computed.add(loop)
            return
        self.header(loop)
        if not isinstance(loop, ast.While):
            for name, held in self.scope.bind(loop.target, element(loop.iter, number, self.scope)):
                self.name(name, held)

    def _leave(self, around: Sequence[Any]) -> None:
        """The ends of loops that are left, and their headers where they have no more iterations."""
        for loop in reversed([one for one in self.iterations.loops if one not in around]):
            if not self.iterations.is_left_early(loop) and self.last is not loop:
                self._finish(loop, ast.Continue, ast.Break)
                for k in range(self.iterations.number[loop] + 1, count_of(loop, self.scope) or 0):
                    self._round(loop, k, None)
                if loop not in self.computed:
                    self.header(loop)
                self._exhaust_all(loop)
            self.iterations.loops.remove(loop)
            self.last = loop

    def _leave_blocks(self, statement: Any) -> None:
        """The ends of ``with`` statements that were entered and do not contain a statement: their lines once more."""
        while self.inside and not encloses(self.code, self.inside[-1], statement):
            self.header(self.inside.pop())

    def _exhaust_all(self, loop: Any) -> None:
        """Have the generators go on that a loop goes over, to the end of the first."""
        for k, (owner, one) in enumerate(self.iterated.pop(loop, ())):
            before = owner.generators.pop(one, None)
            self._exhaust(before if k == 0 else None)

    def _exhaust(self, before: Any) -> None:
        """Have a generator go on to its end, where it computes nothing."""
        if before is None:
            return
        writer = Writer(self.frames, Activation(before.code), Scope(before.scope.names), self.above, False)
        writer.outer, writer.position = self, before.position
        writer.resume(before)
        if before.code.co_name in COMPREHENSIONS:
            writer.put(ast.Pass())
            for comprehension in list(writer.iterated):
                writer._exhaust_all(comprehension)
        writer._leave([])
        known = before.scope.known()
        if writer.body:
            values = [self.do("held", held) for held in known.values()]
            self.put(ast.Expr(ast.Call(ast.Name(writer.define(list(known)), ast.Load()), values, [])))

    def _finish(self, loop: Any, *jumps: type) -> None:
        """What stands behind the last statement of an iteration, as far as ``jumps`` let the function come."""
        code = self.code
        if code is not None and self.last is not None and self.last is not loop:
            self.pass_by(statements_after(code, self.last, loop), jumps)

    def _elements(self, item: Item | None, gone: Any) -> None:
        """The iterations of a comprehension, whose line comes again with each of them and at its end."""
        around = comprehension_around(item.site) if item is not None and item.site is not None else None
        stood = self.iterations.comprehension
        again = item is not None and item.again and gone is None
        self.iterations.comprehension = around
        if stood is around and not again:
            return
        is_own = self.code is not None and self.code.co_name in COMPREHENSIONS
        if stood is not None:
            ends = 1
            if is_own:
                self.elements.append(self.scope.held(stood.elt) if hasattr(stood, "elt") else None)
                ends = loops_that_end(stood.generators, len(self.elements), self.scope, self.outer)
            for _ in range(ends if item is not None or not self.suspends else 0):
                self.once_more(stood.lineno)
            if item is None and not self.suspends:
                self._exhaust_all(stood)
        if around is not None and is_own and item is not None and item.site is not None:
            line = position_of(item.site).line
            self.position = Position(line, 0, line, 0, None, None)
            for name, held in element_names(around.generators, len(self.elements), self.scope, self.outer):
                self.name(name, held)

    def _execute(self, group: Sequence[Item], statement: Any) -> None:
        self.correct(group)
        self.begin()
        self.scope.made, self.scope.several = {}, {}
        self.eager, self.rows = [], []
        begun = len(self.frames.actions)
        calls: list[Call] = []
        way = Way(self, group[0].site, statement)
        through = 0
        for k, item in enumerate(group):
            if item.site is not None:
                way.to(item.site)
                self.position = position_of(item.site)
            if self.is_backward(item) and k >= through:
                through = self._end_of_pass(group, k)
                BackwardFrames(self, [one.call for one in group[k:through] if one.call]).write()
            if k < through:
                continue
            self.write_item(item)
            if isinstance(self.position.expression, ELEMENTWISE):
                self._row_of_comprehension(self.position.expression, item)
            if item.call is not None:
                calls.append(item.call)
        for one in self.eager:
            self._exhaust(self.generators.pop(one, None))
        way.to_end()
        settle(group, self.scope, self.frames.read, self.frames.recording, self.is_module)
        for item in group:
            if item.parts and item.site is not None:
                self.scope.made[position_of(item.site).expression] = self._results(item, group)
        self.names(None if self.is_part else statement, calls)
        if isinstance(statement, ast.Return) and not self.is_part:
            self._return(statement.value)
        stop = self.stop_at(group[0].site)
        inner = [
            action.payload
            for action in self.frames.actions[begun:]
            if action.kind == "call" and action.payload.result not in self.frames.stops
        ]
        for call in [*calls, *inner]:
            self.frames.stops[call.result] = stop

    def _row_of_comprehension(self, comprehension: Any, item: Item) -> None:
        """Bind the variable of a comprehension to a row of a tensor, or to what a generator gave."""
        if self.code.co_name not in COMPREHENSIONS or len(comprehension.generators) != 1:
            return
        if item.call is not None:
            self.rows.append(item.call.result)
        self.bind_rows(comprehension.generators[0], self.rows, self.outer)

    def _end_of_pass(self, group: Sequence[Item], begin: int) -> int:
        """Where a backward pass ends, with what it computes between that belongs to no line of the forward pass."""
        site = group[begin].site
        same = list(takewhile(lambda item: item.site == site and item.child is None, group[begin:]))
        return begin + 1 + max(k for k, item in enumerate(same) if self.is_backward(item))

    def write_item(self, item: Item) -> None:
        expression = self.position.expression
        if item.child is not None:
            self.call_function(item, expression)
            return
        assert item.call is not None
        if item.call.op is STOP:
            stop = ast.Expr(ast.Call(ast.Name(BREAKPOINT, ast.Load()), [], []))
            self.put(ast.If(self.do("stopping", None), [stop], []))
            return
        if item.parts:
            self._parts(item, item.call)
        self.put(ast.Expr(self.do("call", item.call)))
        if name_of(getattr(expression, "func", None)) not in COLLECTS and not item.call.op.is_written_view:
            self.scope.made[expression] = item.call.result

    def _parts(self, item: Item, call: Call) -> None:
        """A loop as a loop, a branch as a branch."""
        content = call.content
        for number in range(len(call.parts)):
            self.frames.note_done("chosen", (call, number))
        bodies = [
            _Part(self, inside, part, content).written() for inside, part in zip(item.parts, call.parts)
        ]
        if isinstance(content, LoopSpec):
            self.put(ast.While(self.do("more", call), bodies[0], []))
            return
        rest: list[ast.stmt] = []
        for number in reversed(range(len(bodies))):
            rest = [self.at(ast.If(self.do("chosen", (call, number)), bodies[number], rest))]
        self.body += rest

    def _results(self, item: Item, group: Sequence[Item]) -> Held:
        """What a loop or branch gives the program: for each result the value that its dtype's block became."""
        loop, site = item.call, item.site
        assert loop is not None and site is not None
        numbers = self.frames.recording.results_of(loop)
        first = 1 if isinstance(loop.content, LoopSpec) else 0
        by_start: dict[tuple[Any, int], int] = {}
        flat: dict[int, Any] = {}
        for call in (one.call for one in group if one.call is not None):
            if call.content is loop.content:
                flat[call.result] = call.attrs[2]
                by_start[call.attrs[2], -1] = call.result
            elif call.op.is_program_result and call.operands[0] in flat:
                by_start[flat[call.operands[0]], call.attrs[0]] = call.result
        held: list[int] = []
        starts: dict[Any, int] = {}
        alone = [type.dtype for type in loop.result_types]
        for number, type in zip(numbers, loop.result_types):
            start = -1 if alone.count(type.dtype) == 1 else starts.get(type.dtype, 0)
            starts[type.dtype] = starts.get(type.dtype, 0) + type.size
            held.append(by_start.get((type.dtype, start), number))
        shown = held[first : len(held) - first]
        if self._is_static_scan(site):
            shown = held[loop.content.carry : len(held) - 1]
        return shown[0] if len(shown) == 1 else tuple(shown)

    def _is_static_scan(self, site: Site) -> bool:
        """Whether the program calls ``tf.scan``, which returns the rows alone."""
        called = getattr(position_of(site).expression, "func", None)
        owner = getattr(getattr(called, "value", None), "id", "")
        module = self.frames.space(self.code.co_filename).get(owner)
        return getattr(called, "attr", "") == "scan" and getattr(module, "__name__", "") == "twofold.static"

    def _return(self, value: Any) -> None:
        held = self.scope.held(value)
        self.scope.made[_RETURNED] = held
        is_known = is_whole(held) and self.frames.is_there(held)
        self.put(ast.Return(self.do("held", held) if is_known else None))

    def _end(self) -> Held:
        """Return what the function returns at its end, unless it has returned."""
        code = self.code
        self._elements(None, None)
        if self.body and isinstance(self.body[-1], ast.Return):
            self.suspends = False
            is_generator = code is not None and code.co_flags & GENERATOR
            return None if is_generator else self.scope.made.get(_RETURNED)
        if code is None:
            return None
        if code.co_name in COMPREHENSIONS:
            if self.suspends:
                return self.elements[-1] if is_whole(self.elements) else None
            return list(self.elements) if code.co_name == "<listcomp>" and is_whole(self.elements) else None
        if code.co_flags & GENERATOR:
            return self._suspended(code)
        if code.co_name == "<lambda>" and (definition := function_of(code)) is not None:
            held = self.scope.held(definition.body)
            if is_whole(held):
                self.put(ast.Return(self.do("held", held)))
            return held
        statement = self._way_out(code)
        inside = (
            []
            if statement is None
            else [one for one in self.iterations.loops if encloses(code, one, statement)]
        )
        self._leave(inside)
        self._leave_blocks(statement)
        if statement is None:
            return None
        self._come_to(statement)
        self.begin()
        line = statement.lineno
        self.position = Position(line, statement.col_offset, line, statement.col_offset, None, None)
        self._return(statement.value)
        return self.scope.made[_RETURNED]

    def _way_out(self, code: CodeType) -> Any:
        """The ``return`` that a function came to behind its last statement, or None."""
        last, stood = last_return(code), self.last
        ways = [one for one in returns_after(code, stood) if self.scope.held(one.value) is not None]
        decided = {one: self.iterations.decide(conditions_of(code, one, stood)) for one in ways}
        ways = [one for one in ways if decided[one] is not False]
        if ways and decided[ways[0]]:
            return ways[0]
        if not ways:
            has_run = last is None or not isinstance(last.value, ast.BinOp) or not self.computes(last)
            return last if has_run else None
        if last not in ways or len(ways) == 1:
            return ways[0]  # what comes between computes something, and has not run
        made = {call.result for call in self.activation.calls()}
        left = made & self.frames.read_outside(self.activation)  # only these have been returned
        returned = [one for one in ways if self.scope.held(one.value) in left]
        others = [one for one in ways if self.scope.held(one.value) not in made]
        return next(iter(returned), last if last in others or not others else others[0])

    def _suspended(self, code: CodeType) -> Held:
        """What a generator yields behind its last statement."""
        if inside := [one for one in self.scope.made if isinstance(one, ast.YieldFrom)]:
            return self.scope.made[inside[-1]]
        ways = yields_after(code, self.last)
        held = self.scope.held(ways[0].value) if ways else None
        return held if is_whole(held) else None


_WITH = (ast.With, ast.AsyncWith)
_RETURNED = ast.Pass()
"""Stands for what a function returns among the expressions of a scope."""


class _Part(Writer):
    """Writes a body of a loop or branch, inside the function that runs it."""

    def __init__(self, outer: Writer, inside: Activation, part: Any, content: Any) -> None:
        super().__init__(outer.frames, inside, Scope(outer.scope.names), outer.above, False)
        self.bound, self.outer = dict(outer.bound), outer.outer
        self.part, self.content, self.position = part, content, outer.position
        self.called = 0

    def written(self) -> list[ast.stmt]:
        """The statements of the body."""
        for item in self.activation.items:
            self._execute([item], None)
        return self.body or [self.at(ast.Pass())]

    def _carried(self, item: Item) -> list[int] | None:
        if not isinstance(self.content, LoopSpec):
            return None
        self.called += 1
        held = self.part.inputs if self.called == 1 else self.part.results
        rows = self.content.xs if self.called == 1 else 0
        return list(held[1 : self.content.carry + rows])
