"""Writes functions that do again what the functions of a program did line by line as they ran."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from itertools import groupby, takewhile
from typing import Any

from twofold.debug.activations import Activation, build
from twofold.debug.backward_frames import BackwardFrames
from twofold.debug.declared_stops import insert_stops
from twofold.debug.frame_writer import BREAKPOINT, CAUGHT, ENDED, FrameWriter, Stop
from twofold.debug.frames import Frames, Writer
from twofold.debug.line_trace import Raised, Step, Stretch
from twofold.debug.names import Held, Scope
from twofold.debug.recording import STOP, Call
from twofold.debug.sites import Site
from twofold.debug.source import Position, loops_around, position_of


class ReplayWriter(FrameWriter):
    """Writes the body of one stretch of a function; ``raises``: an exception that ends it goes on to its caller."""

    def __init__(
        self, frames: Frames, stretch: Stretch, above: Stop | None, raises: bool, outer: ReplayWriter | None
    ) -> None:
        self.frames = frames
        scope = Scope(self.variables(stretch.steps[0].names if stretch.steps else {}))
        super().__init__(frames, Activation(stretch.code), scope, above, False)
        self.stretch, self.raises, self.outer = stretch, raises, outer
        self._is_there = False  # on the next line, where a handler of exceptions begins
        self._callers: list[Stop] = []  # of what the line calls
        self._came: dict[int, int] = {}  # how often to each line

    def variables(self, names: dict[str, Held]) -> dict[str, Held]:
        """The variables that are shown."""
        return names

    def write(self) -> tuple[str, list[Held]]:
        """The name of the function, and what it is called with."""
        parameters = dict(self.shown)
        steps = self.stretch.steps
        for k, step in enumerate(steps):
            self._come_to(step.line)
            later = steps[k + 1] if k + 1 < len(steps) else None
            self.do_step(step, later.names if later is not None else self.stretch.after, later)
        returned = self.variables(self.stretch.returned)
        if "" in returned and not self.stretch.raises:
            self.put(ast.Return(self.do("held", returned[""])))
        return self.define(list(parameters)), list(parameters.values())

    def _come_to(self, line: int) -> None:
        """Have the function come by a line, once more if it stands there."""
        self.begin()
        if self.body and self.position.line == line and not self._is_there:
            self.once_more(line)
        self._is_there = False
        self._came[line] = self._came.get(line, 0) + 1
        self.position = Position(line, 0, line, 0, None, None)

    def stop_at(self, site: Site | None) -> Stop:
        """The execution of a statement; the number of an iteration is how often the function came to the header."""
        around: list[Any] = [] if site is None else loops_around(site)
        passes = tuple((loop, self._came.get(getattr(loop, "lineno", 0), 0)) for loop in around)
        return super().stop_at(site)._replace(passes=passes)

    def do_step(self, step: Step, after: dict[str, Held], later: Step | None) -> None:
        """What a line did, the variables then, and that it came to a ``later`` one."""
        begun, written = len(self.frames.actions), len(self.body)
        site, did = self._site(step), list(step.did)
        raised = did.pop() if did and isinstance(did[-1], Raised) and not did[-1].ends_loop else None
        is_called = raised is not None and bool(did) and isinstance(did[-1], Stretch) and did[-1].raises
        called = did.pop() if is_called and not self._changes(self.variables(after)) else None
        for kind, group in groupby(self._kinds(self._with_stops(did)), lambda one: one[0]):
            does = [one for _, one in group]
            if kind == "backward":
                BackwardFrames(self, does).write()
            elif kind == "inside":
                self._infer(does)
            else:
                for one in does:
                    self.one(one, step, "call" if raised is None else "tried")
        self._bind(self.variables(after))
        if raised is not None:
            self._raise(raised, called, later)
        if len(self.body) == written:
            self.come_by()
        for caller in self._callers:  # a backward pass comes there with what the line left
            caller.names.clear()
            caller.names.update(self.scope.known())
        self._callers = []
        stop = self.stop_at(site)
        for action in self.frames.actions[begun:]:
            if action.kind in ("call", "tried") and action.payload.result not in self.frames.stops:
                self.frames.stops[action.payload.result] = stop

    def _with_stops(self, did: Sequence[Any]) -> list[Any]:
        """What a line did, with breakpoints in the bodies of a loop or branch right before it."""
        found: list[Any] = []
        stops: list[Any] = []
        for one in did:
            is_inside = self.kind(one) == "inside"
            if is_inside and one.op is STOP:
                stops.append(one)
                continue
            if is_inside:
                found += stops
                stops = []
            found.append(one)
        return found + stops

    def _kinds(self, did: Sequence[Any]) -> list[tuple[str, Any]]:
        """What a line did, with how it is written: all that a backward pass computes together."""
        found = [(self.kind(one), one) for one in did]
        for is_call, group in groupby(range(len(did)), lambda k: isinstance(did[k], Call)):
            inside = [k for k in group if is_call and found[k][0] == "backward"]
            for k in range(inside[0], inside[-1]) if inside else ():
                found[k] = "backward", did[k]
        return found

    def _site(self, step: Step) -> Site | None:
        """Where a line stands: at the first thing that it did."""
        if self.code is None:
            return None
        for one in step.did:
            if isinstance(one, Stretch):
                return Site(self.code, one.offset)
            if isinstance(one, Call) and (depth := self._depth(one)) is not None:
                return one.chain[depth]
        return Site(self.code, step.offset)

    def _depth(self, call: Call) -> int | None:
        """The position of this function in the chain of a call."""
        found = [k for k, site in enumerate(call.chain) if site.code is self.code]
        return found[-1] if found else None

    def kind(self, one: Any) -> str:
        """How something is written that a line did."""
        if not isinstance(one, Call):
            return "alone"
        if one.forward is not None or one.result in self.frames.cotangents.forward:
            return "backward"
        depth = self._depth(one)
        return "inside" if depth is not None and (one.parts or depth + 1 < len(one.chain)) else "alone"

    def one(self, one: Any, step: Step, kind: str) -> None:
        if isinstance(one, Stretch):
            self._call_function(one, False)
        elif isinstance(one, Raised):
            self._end_loop([])
        elif one.op is STOP:
            stop = ast.Expr(ast.Call(ast.Name(BREAKPOINT, ast.Load()), [], []))
            self.put(ast.If(self.do("stopping", None), [stop], []))
        else:
            depth = self._depth(one)
            found = position_of(one.chain[depth]) if depth is not None else None
            if found is not None and found.line == step.line:
                self.position = found._replace(end_line=step.line, end_column=found.column)
            self.put(ast.Expr(self.do(kind, one)))

    def _call_function(self, stretch: Stretch, raises: bool) -> None:
        """A call of a function; what a generator does on the line where it had stopped is done before."""
        assert stretch.code is not None
        site = None if self.code is None else Site(self.code, stretch.offset)
        above = self.stop_at(site)
        self._callers.append(above)
        writer = type(self)(self.frames, stretch, above, raises or stretch.ends_loop, self)
        if stretch.before.did:
            outside, writer.body, writer.position = writer.body, self.body, self.position
            writer.do_step(stretch.before, dict(writer.scope.names), None)
            writer.body = outside
        if not stretch.steps:
            return
        name, given = writer.write()
        values = [self.do("held", held) for held in given]
        if stretch.ends_loop:
            self._end_loop([ast.Name(name, ast.Load()), *values])
        else:
            self.put(ast.Expr(ast.Call(ast.Name(name, ast.Load()), values, [])))

    def _end_loop(self, called: list[ast.expr]) -> None:
        """The end of a loop's iterator by an exception, of one of the program's own in the function ``called``."""
        ended = self.at(ast.Call(ast.Name(ENDED, ast.Load()), called, []))
        self.put(ast.For(ast.Name("_", ast.Store()), ended, [self.at(ast.Pass())], []))

    def _raise(self, raised: Raised, called: Stretch | None, later: Step | None) -> None:
        """An exception, of this line or of what it ``called``; a debugger stops where a later line handles it."""
        outside, self.body = self.body, []
        if called is not None:
            self._call_function(called, True)
        else:
            self.put(ast.Raise(self.do("raised", raised.error)))
        inside, self.body = self.body, outside
        if later is None and self.raises:
            self.body += inside
            return
        line = self.position.line if later is None else later.line
        self.position, self._is_there = Position(line, 0, line, 0, None, None), True
        kinds = self.at(ast.Call(ast.Name(CAUGHT, ast.Load()), [], []))
        handler = ast.ExceptHandler(kinds, None, [self.at(ast.Pass())])
        handler.lineno, handler.col_offset, handler.end_lineno, handler.end_col_offset = line, 0, line, 0
        made = ast.Try(inside, [handler], [], [])
        made.lineno, made.col_offset = inside[0].lineno, inside[0].col_offset
        self.body.append(made)

    def _infer(self, calls: Sequence[Call]) -> None:
        """Calls of functions of which a graph was made: what they did is read off their source."""
        k = 0
        while k < len(calls):
            depth = self._depth(calls[k]) or 0
            same = list(takewhile(lambda one, depth=depth: self._depth(one) == depth, calls[k:]))  # type: ignore[misc]
            computed = [one for one in same if one.op is not STOP]
            insert_stops(computed, [one for one in same if one.op is STOP])
            made = build(computed, Activation(self.code), depth)
            inner = Writer(self.frames, made, Scope(self.scope.names), self.above, False)
            inner.bound, inner.body, inner.outer = self.bound, self.body, self.outer
            for item in made.items:
                assert item.site is not None
                inner.position = position_of(item.site)
                inner.write_item(item)
            k += len(same)

    def _changes(self, after: dict[str, Held]) -> bool:
        """Whether variables hold something else than they are to hold."""
        names = self.scope.names
        return names.keys() != after.keys() or any(names[name] != held for name, held in after.items())

    def _bind(self, after: dict[str, Held]) -> None:
        """Have the variables hold what they held after the line."""
        for name in [one for one in self.scope.names if one not in after]:
            del self.scope.names[name]
            self.bound.pop(name, None)
            self.shown = {one: held for one, held in self.shown.items() if one != name}
            self.put(ast.Delete([ast.Name(name, ast.Del())]))
        for name, held in after.items():
            if name not in self.scope.names or self.scope.names[name] != held:
                self.scope.names[name] = held
                self.assign(name, held)


def write_root(frames: Frames, root: Stretch, writer: type[ReplayWriter] = ReplayWriter) -> None:
    """Write what a program did, and enter its outermost functions."""
    for one in root.before.did:
        if isinstance(one, Call):
            frames.roots.append(("", [frames.act("call", one, {})]))
            frames.note_done("call", one)
        elif isinstance(one, Stretch) and one.steps:
            name, given = writer(frames, one, None, False, None).write()
            frames.roots.append((name, [frames.act("held", held, {}) for held in given]))
