"""Which values the variables of a function hold, read off the source at the positions of its calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

from twofold.debug.source import Parameters

Held = Any
"""What an expression gives: the number of a value, a tuple or list of such, or None where that is not known."""


class Scope:
    """Variables of one activation, and what the expressions of the statement that runs gave."""

    def __init__(self, names: dict[str, Held]) -> None:
        self.names = dict(names)
        self.made: dict[ast.AST, Held] = {}
        self.several: dict[ast.AST, tuple[Held, ...]] = {}
        """All that an expression gave, where that may be a tuple: results that it did not read itself."""

    def values(self) -> dict[str, int]:
        """The variables that hold one value each."""
        return {name: held for name, held in self.names.items() if isinstance(held, int)}

    def held(self, node: Any) -> Held:
        """What an expression gives."""
        if node in self.made:
            return self.made[node]
        if isinstance(node, ast.Name):
            return self.names.get(node.id)
        if isinstance(node, (ast.Tuple, ast.List)):
            found = [self.held(one) for one in node.elts]
            whole = all(one is not None for one in found)
            return (tuple(found) if isinstance(node, ast.Tuple) else found) if whole else None
        if isinstance(node, ast.NamedExpr):
            return self.held(node.value)
        if isinstance(node, ast.IfExp):
            ways = [found for found in (self.held(node.body), self.held(node.orelse)) if found is not None]
            return ways[0] if len(ways) == 1 else None
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            parts: Held = self.several.get(node.value) or self.held(node.value)
            position = node.slice.value
            if (
                isinstance(parts, (tuple, list))
                and isinstance(position, int)
                and -len(parts) <= position < len(parts)
            ):
                return parts[position]
            return None
        return None

    def bind(self, target: Any, held: Held) -> Iterator[tuple[str, Held]]:
        """Have the names of a target hold something; yields them, with None where that is not known."""
        if isinstance(target, ast.Starred):
            target = target.value
        if isinstance(target, ast.Name):
            self.names[target.id] = held
            if held is None:
                del self.names[target.id]
            yield target.id, held
        elif isinstance(target, (ast.Tuple, ast.List)):
            for one, part in zip(target.elts, _distributed(target.elts, held)):
                yield from self.bind(one, part)

    def written(self, statement: Any) -> Iterator[tuple[str, Held]]:
        """The names that a statement has bound, all its expressions computed."""
        for one in ast.walk(_header_of(statement)) if statement is not None else ():
            if isinstance(one, ast.NamedExpr):
                yield from self.bind(one.target, self.held(one.value))
        if isinstance(statement, ast.Assign):
            held = self.held(statement.value)  # before the first of the targets is another
            for target in statement.targets:
                yield from self.bind(target, self._parts(statement.value, held, target))
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            yield from self.bind(statement.target, self.held(statement.value))
        elif isinstance(statement, ast.AugAssign) and not isinstance(statement.target, ast.Subscript):
            yield from self.bind(statement.target, self.made.get(statement))
        elif isinstance(statement, ast.Expr) and _writes(statement.value):
            before = self.held(statement.value.func.value)  # type: ignore[attr-defined]
            yield from self.changed(before, self.made.get(statement.value))

    def _parts(self, node: Any, held: Held, target: Any) -> Held:
        """What an expression gives to a target that may take it apart, as it may a tensor by rows."""
        several = self.several.get(target, ()) or self.several.get(node, ())
        if isinstance(target, (ast.Tuple, ast.List)) and len(several) == len(target.elts):
            return several
        return held

    def changed(self, before: Held, held: Held) -> Iterator[tuple[str, Held]]:
        """The names of a tensor that was written to, which held ``before``."""
        if before is None or held is None:
            return
        for name, one in list(self.names.items()):
            if one == before:
                self.names[name] = held
                yield name, held


def _distributed(targets: Sequence[Any], held: Held) -> Sequence[Held]:
    """What each of several targets gets; one with a star gets what is left."""
    starred = [k for k, one in enumerate(targets) if isinstance(one, ast.Starred)]
    if not isinstance(held, (tuple, list)) or len(held) < len(targets) - len(starred):
        return [None] * len(targets)
    if not starred:
        return held if len(held) == len(targets) else [None] * len(targets)
    first, behind = starred[0], len(targets) - starred[0] - 1
    end = len(held) - behind
    return [*held[:first], list(held[first:end]), *held[end:]]


def _writes(node: Any) -> bool:
    method = node.func if isinstance(node, ast.Call) else None
    return isinstance(method, ast.Attribute) and method.attr.endswith("_") and not method.attr.endswith("__")


def _header_of(statement: Any) -> Any:
    """A statement without the statements in it."""
    for field in ("test", "items", "subject"):
        found = getattr(statement, field, None)
        if isinstance(found, ast.AST):
            return found
    return ast.Pass() if hasattr(statement, "body") else statement


def arguments_of(node: Any, parameters: Parameters, scope: Scope) -> dict[str, Held]:
    """What a call expression gives to parameters, as far as that is known."""
    if not isinstance(node, ast.Call):
        return {}
    values: list[Held] = []
    for one in node.args:
        if isinstance(one, ast.Starred):
            held = scope.held(one.value)
            if not isinstance(held, (tuple, list)):
                return {}
            values += held
        else:
            values.append(scope.held(one))
    given = dict(zip(parameters.positional, values))
    rest = values[len(parameters.positional) :]
    if parameters.rest is not None and all(one is not None for one in rest):
        given[parameters.rest] = tuple(rest)
    for keyword in node.keywords:
        if keyword.arg in (*parameters.positional, *parameters.named):
            given[keyword.arg] = scope.held(keyword.value)
    return {name: held for name, held in given.items() if held is not None}
