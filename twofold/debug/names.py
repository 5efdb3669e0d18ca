"""Which values the variables of a function hold, read off the source at the positions of its calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

Held = Any
"""What an expression gives: the number of a value, a tuple or list of such, or None where that is not known."""


class Scope:
    """Variables of one activation, and what the expressions of the statement that runs gave."""

    def __init__(self, names: dict[str, Held]) -> None:
        self.names = dict(names)
        self.made: dict[ast.AST, Held] = {}

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
            whole = self.held(node.value)
            position = node.slice.value
            if (
                isinstance(whole, (tuple, list))
                and isinstance(position, int)
                and -len(whole) <= position < len(whole)
            ):
                return whole[position]
            return None
        return None

    def bind(self, target: Any, held: Held) -> Iterator[tuple[str, Held]]:
        """Have the names of a target hold something; yields those that do."""
        if isinstance(target, ast.Name):
            self.names[target.id] = held
            if held is None:
                del self.names[target.id]
            else:
                yield target.id, held
        elif isinstance(target, (ast.Tuple, ast.List)):
            whole = isinstance(held, (tuple, list)) and len(held) == len(target.elts)
            for k, one in enumerate(target.elts):
                yield from self.bind(one, held[k] if whole else None)

    def written(self, statement: Any) -> Iterator[tuple[str, Held]]:
        """The names that a statement has bound, all its expressions computed."""
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, ast.Subscript) and target in self.made:
                    yield from self._changed(target.value, self.made[target])
                else:
                    yield from self.bind(target, self.held(statement.value))
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            yield from self.bind(statement.target, self.held(statement.value))
        elif isinstance(statement, ast.AugAssign):
            yield from self.bind(statement.target, self.made.get(statement))
        elif isinstance(statement, (ast.For, ast.AsyncFor)) and statement.iter in self.made:
            yield from self.bind(statement.target, self.made[statement.iter])
        elif isinstance(statement, ast.Expr) and _writes(statement.value):
            yield from self._changed(
                statement.value.func.value,  # type: ignore[attr-defined]
                self.made.get(statement.value),
            )

    def _changed(self, node: Any, held: Held) -> Iterator[tuple[str, Held]]:
        """The names of a tensor that was written to."""
        before = self.held(node)
        if before is None or held is None:
            return
        for name, one in list(self.names.items()):
            if one == before:
                self.names[name] = held
                yield name, held


def _writes(node: Any) -> bool:
    method = node.func if isinstance(node, ast.Call) else None
    return isinstance(method, ast.Attribute) and method.attr.endswith("_") and not method.attr.endswith("__")


def arguments_of(node: Any, parameters: Sequence[str], scope: Scope) -> dict[str, Held]:
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
    given = dict(zip(parameters, values))
    for keyword in node.keywords:
        if keyword.arg is not None and keyword.arg in parameters:
            given[keyword.arg] = scope.held(keyword.value)
    return {name: held for name, held in given.items() if held is not None}
