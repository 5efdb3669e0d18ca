"""Has the variables of a frame hold what they hold in the program, and none that it may not hold."""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Iterable, Sequence
from types import CodeType
from typing import Any

from twofold.debug.activations import Item
from twofold.debug.call_writer import CallWriter, Tensor
from twofold.debug.effects import is_in_place, may_jump, may_write, writes
from twofold.debug.frame_writer import HELPER, NOWHERE
from twofold.debug.iterations import rows
from twofold.debug.names import Held, Literal, is_known, is_whole
from twofold.debug.recording import Call
from twofold.debug.source import (
    ELEMENTWISE,
    SIMPLE,
    Position,
    comprehension_around,
    function_of,
    is_yield,
    position_of,
    rebound_names,
)

_BINDS = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Delete)
_ALONE = (*_BINDS, ast.FunctionDef, ast.Import, ast.ImportFrom, ast.Assert, ast.Pass)
"""Statements that have one line, and are come by where the function did not go elsewhere before."""
_OUT_OF_PLACE = {"twofold.dynet", "twofold.static"}
"""The faces where ``x += y`` makes another ``x``."""


class VariableWriter(CallWriter):
    """Writes what binds variables: statements that compute something, and those between them that compute nothing."""

    def names(self, statement: Any, calls: Sequence[Call] = ()) -> None:
        """Bind what a statement binds, and note what it writes to, all its expressions computed."""
        storage = self.frames.storage
        storage.note(calls)
        written = [] if statement is None else list(writes(statement, self.scope, self.is_library))
        found = list(self.scope.written(statement))
        if isinstance(statement, ast.AugAssign) and self.frames.faces(self.code) & _OUT_OF_PLACE:
            written = [one for one in written if not isinstance(one[0], int)]
        for before, held in written:
            storage.write(before, held)
        for name, held in found:
            self.name(name, storage.now(held))
        if isinstance(statement, (ast.For, ast.AsyncFor)) and (
            statement in self.scope.made or statement in self.scope.several
        ):
            several = self.scope.several.get(statement) or tuple(self.rows if len(self.rows) > 1 else ())
            self.bind_rows(statement, several or (self.scope.made.get(statement),))
        self.refresh()

    def bind_rows(self, loop: Any, read: Sequence[Held], outer: Any = None) -> None:
        """Bind the target of a loop, in a statement or in a comprehension inside ``outer``, to what its header read."""
        targets = list(rows(loop.target, loop.iter, self.scope if outer is None else outer.scope))
        for target, held in zip(targets, read if len(read) == len(targets) else ()):
            for name, one in self.scope.bind(target, held):
                self.name(name, one)

    def refresh(self) -> None:
        """Have variables hold the current versions of their values."""
        storage = self.frames.storage
        if self.version == storage.version:
            return
        self.version = storage.version
        for name, held in list(self.scope.names.items()):
            now = storage.now(held)
            if now is held or (isinstance(now, int) and now == held):
                continue
            self.scope.names[name] = now
            if now is None:
                del self.scope.names[name]
            self.name(name, now if is_whole(now) else None)

    def name(self, name: str, held: Held) -> None:
        """Bind a name, in the statement that computed the value where that was the last thing done."""
        held = held if self.frames.is_there(held) else None
        if isinstance(held, int) and self.code is not None and name in _others(self.code):
            held = None  # a part of it
            self.scope.names.pop(name, None)
        elif isinstance(held, Literal) and self.code is not None and name in rebound_names(self.code):
            held = None  # another function may have bound it meanwhile
            self.scope.names.pop(name, None)
        if not self.body and self.position is NOWHERE:  # before the first line: a parameter
            self.shown.pop(name, None)
            self.bound.pop(name, None)
            if held is not None:
                self.shown[name] = held
                if isinstance(held, int):
                    self.bound[name] = held
            return
        if held is None:
            self.bound.pop(name, None)
            if name in self.shown:
                self.shown = {one: held for one, held in self.shown.items() if one != name}
                self.put(ast.Delete([ast.Name(name, ast.Del())]))
            return
        last: Any = self.body[-1] if self.body else None
        call = last.value if isinstance(last, ast.Expr) else None
        is_action = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == HELPER
        number = last.value.args[0].value if is_action else None
        action = self.frames.actions[number] if number is not None else None
        if action is not None and action.kind == "call" and action.payload.result == held:
            self.body[-1] = self.at(ast.Assign([ast.Name(name, ast.Store())], last.value))
            self.bind(name, held)
        else:
            self.assign(name, held)

    def forget(self, names: Iterable[str]) -> None:
        """Have variables hold nothing that is known."""
        for name in names:
            if self.scope.names.pop(name, None) is not None or name in self.shown:
                self.name(name, None)

    # Statements that compute nothing

    def pass_by(self, statements: Sequence[ast.stmt], jumps: tuple[type, ...] = ()) -> None:
        """Write what statements do that the function has come by on its way, which ``jumps`` may have cut short."""
        jumped = False  # whether the function may have gone elsewhere before one of them
        for one in statements:
            is_assignment = isinstance(one, (ast.Assign, ast.AnnAssign)) and one.value is not None
            is_known_to_run = not jumped and isinstance(one, _ALONE) and not is_yield(one)
            if isinstance(one, ast.If) and not jumped and one is not self.last:
                self._come_by_statement(one)
            if is_known_to_run or (is_assignment and is_known(self.scope.parts(one.value))):  # type: ignore[attr-defined]
                self._come_by_statement(one, shows=is_known_to_run)
                if isinstance(one, _BINDS):
                    self.names(one)
                else:
                    self.forget(
                        sorted(may_write(one, self.computes, jumps) & {*self.scope.names, *self.shown})
                    )
            elif (
                isinstance(one, ast.If) and (is_so := self.iterations.decide([(one.test, True)])) is not None
            ):
                block = one.body if is_so else one.orelse
                self.pass_by(block, jumps)
                if block and isinstance(block[-1], jumps):
                    return
            elif jumped and self.computes(one):
                return  # which is not in the recording: it has not run
            elif isinstance(one, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Delete)):
                self.names(one)
            else:
                self.forget(sorted(may_write(one, self.computes, jumps) & {*self.scope.names, *self.shown}))
            jumped = jumped or may_jump(one, jumps)

    def _come_by_statement(self, statement: ast.stmt, shows: bool = True) -> None:
        """Begin a statement that computes nothing; where it ``shows``, even if it binds nothing."""
        self.begin()
        line, column = statement.lineno, statement.col_offset
        self.passed = line
        self.position = Position(line, column, line, column, None, None)
        if shows:
            self.come_by()

    def computes(self, statement: ast.stmt) -> bool:
        """Whether a simple statement would compute something of a tensor."""
        for node in () if hasattr(statement, "body") else ast.walk(statement):
            if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Call, ast.Subscript)):
                read = [one for one in ast.walk(node) if isinstance(one, ast.Name)]
                if any(isinstance(self.scope.names.get(one.id), int) for one in read):
                    return True
        return False

    # What the calls of a statement tell

    def correct(self, group: Sequence[Item]) -> None:
        """Have variables hold what a statement reads where it reads something else than they held."""
        made = self._read(group)
        if made is None:
            return
        storage, known = self.frames.storage, self.scope.names
        read = {storage.now(one) for calls in made.values() for call in calls for one in call.operands}
        read |= {one for item in group if item.child for call in item.child.calls() for one in call.operands}
        here = [call for calls in made.values() for call in calls]
        read |= {storage.known_view(call) for call in here}
        later = {call.result for call in here}  # which nothing holds yet
        self.forget(one for one in _parts_taken(group, made) if isinstance(known.get(one), int))
        for node, calls in made.items():
            names = [one for one in _operands(node) if isinstance(one, ast.Name)]
            wrong = [
                one.id for one in names if isinstance(known.get(one.id), int) and known[one.id] not in read
            ]
            self.forget(wrong)
            sides = _operands(node)
            first = next((one for one in calls if not one.op.is_view), None)
            if first is None or len(first.operands) != len(sides):
                continue
            pairs = list(zip(sides, first.operands))
            declared = self.frames.recording.is_declared
            if not declared and "twofold.dynet" in self.frames.faces(self.code):  # which may swap them
                held = [known.get(getattr(one, "id", "")) for one in sides]
                rest = [one for one in first.operands if one not in held]
                pairs = [(side, rest[0]) for side, one in zip(sides, held) if one is None and len(rest) == 1]
            for side, number in pairs:
                unknown = isinstance(side, ast.Name) and side.id not in known
                if unknown and number not in later and self.frames.recording.is_tensor(number):
                    known[side.id] = number
                    self.name(side.id, number)

    def _read(self, group: Sequence[Item]) -> dict[Any, list[Call]] | None:
        """The calls of each expression of a statement; None where these may read what the statement has made."""
        made: dict[Any, list[Call]] = {}
        for item in group:
            if item.site is None or item.parts or self.is_backward(item):
                return None
            inside = ast.walk(position_of(item.site).statement or ast.Pass())
            if any(isinstance(one, ast.NamedExpr) or _is_written(one) for one in inside):
                return None
            if item.call is not None and comprehension_around(item.site) is None:
                made.setdefault(position_of(item.site).expression, []).append(item.call)
        return made


def _is_written(node: ast.AST) -> bool:
    name = getattr(getattr(node, "func", None), "attr", "")
    return isinstance(node, ast.Call) and is_in_place(name)


def _operands(node: Any) -> list[Any]:
    """The expressions that an operator reads, in order."""
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.AugAssign):
        return [node.target, node.value]
    return [node.operand] if isinstance(node, ast.UnaryOp) else []


_CHOICES = (ast.IfExp, ast.BoolOp, ast.Lambda, *ELEMENTWISE)


def _parts_taken(group: Sequence[Item], made: dict[Any, list[Call]]) -> list[str]:
    """The variables that are no tensors: a statement takes parts of them, and computes nothing by that."""
    statement = position_of(group[0].site).statement if group[0].site is not None else None
    if not isinstance(statement, SIMPLE) or any(isinstance(one, _CHOICES) for one in ast.walk(statement)):
        return []
    nodes = [one for one in ast.walk(statement) if isinstance(one, ast.Subscript) and one not in made]
    taken = [one.value for one in nodes if isinstance(one.ctx, ast.Load)]
    return [one.id for one in taken if isinstance(one, ast.Name)]


@functools.lru_cache(maxsize=1024)
def _others(code: CodeType) -> frozenset[str]:
    """The variables of a function of which it reads an attribute that no tensor has, such as tuples with names."""
    nodes = list(ast.walk(function_of(code) or ast.Pass()))
    called = {one.func for one in nodes if isinstance(one, ast.Call)}
    expression = getattr(sys.modules.get("twofold.dynet.expression"), "Expression", Tensor)
    variable = getattr(sys.modules.get("twofold.static.variables.variable"), "Variable", Tensor)
    found: set[str] = set()
    for node in nodes:
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Load)
            and isinstance(node.value, ast.Name)
        ):
            kinds = [kind for kind in (Tensor, expression, variable) if hasattr(kind, node.attr)]
            has = [getattr(kind, node.attr) for kind in kinds]
            if not has or (node not in called and all(map(callable, has))):
                found.add(node.value.id)
    return frozenset(found)
