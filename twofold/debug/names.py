"""Which values the variables of a function hold, read off the source at the positions of its calls."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from twofold.debug.source import Parameters

Held = Any
"""What an expression gives: the number of a value, a tuple, list or dictionary of such, None where it is not known."""


class Given:
    """What is no value of the graph: an argument, or a number or function of Python."""

    __slots__ = ("value",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Given):
            return False
        own, value = self.value, other.value
        return own is value or (isinstance(own, PLAIN) and type(own) is type(value) and own == value)


class Literal(Given):
    """What a variable was assigned as the program has it written, a number, text or None."""

    __slots__ = ()


PLAIN = (bool, int, str, bytes, range)
"""Of these nobody can tell equal ones apart."""


class Built:
    """An object or container of another class than tuple, list and dictionary: what makes it, of what."""

    __slots__ = ("content", "kind", "make")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, kind: Any, make: Callable[[Any], Any], content: Held) -> None:
        self.kind, self.make, self.content = kind, make, content

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Built) and self.kind == other.kind and self.content == other.content


def numbers_of(held: Held) -> Iterator[int]:
    """The numbers of the values that something is made of."""
    if isinstance(held, Built):
        yield from numbers_of(held.content)
    elif isinstance(held, (tuple, list, dict)):
        for one in held.values() if isinstance(held, dict) else held:
            yield from numbers_of(one)
    elif isinstance(held, int):
        yield held


def object_of(held: Held, value_of: Callable[[int], Any]) -> Any:
    """What something is in the program, made of values by their numbers."""
    if isinstance(held, (tuple, list)):
        return type(held)(object_of(one, value_of) for one in held)
    if isinstance(held, dict):
        return {key: object_of(one, value_of) for key, one in held.items()}
    if isinstance(held, Given):
        return held.value
    return held.make(object_of(held.content, value_of)) if isinstance(held, Built) else value_of(held)


def is_whole(held: Held) -> bool:
    """Whether all parts of what an expression gives are known."""
    if isinstance(held, dict):
        return all(map(is_whole, held.values()))
    return all(map(is_whole, held)) if isinstance(held, (tuple, list)) else held is not None


def is_known(held: Held) -> bool:
    """Whether anything of what an expression gives is known."""
    return any(map(is_known, held)) or not held if isinstance(held, (tuple, list)) else held is not None


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

    def known(self) -> dict[str, Held]:
        """The variables of which all parts are known."""
        return {name: held for name, held in self.names.items() if is_whole(held)}

    def held(self, node: Any) -> Held:
        """What an expression gives."""
        if node in self.made:
            return self.made[node]
        if isinstance(node, ast.Name):
            return self.names.get(node.id)
        if isinstance(node, (ast.Constant, ast.UnaryOp)):
            return Literal(literal(node)) if is_literal(node) else None
        if isinstance(node, (ast.Tuple, ast.List)):
            found = [self.held(one) for one in node.elts]
            whole = all(one is not None for one in found)
            return (tuple(found) if isinstance(node, ast.Tuple) else found) if whole else None
        if isinstance(node, ast.NamedExpr):
            return self.held(node.value)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            left, right = self.held(node.left), self.held(node.right)
            same = type(left) is type(right) and isinstance(left, (tuple, list))
            return left + right if same else None
        if isinstance(node, ast.IfExp):
            return self._chosen(node)
        if isinstance(node, ast.Subscript):
            return _part(self.held(node.value), node.slice)
        if isinstance(node, ast.Dict):
            keys = [one.value if isinstance(one, ast.Constant) else None for one in node.keys]
            return None if None in keys else dict(zip(keys, map(self.held, node.values)))
        return self._called(node) if isinstance(node, ast.Call) else None

    def parts(self, node: Any) -> Held:
        """What an expression gives, as far as its parts are known."""
        held = self.held(node)
        if held is None and isinstance(node, (ast.Tuple, ast.List)):
            return tuple(map(self.parts, node.elts))
        return held

    def _chosen(self, node: ast.IfExp) -> Held:
        """What the branch gives that was taken: the one in which something was computed."""
        ways = [node.body, node.orelse]
        taken = [way for way in ways if any(one in self.made for one in ast.walk(way))]
        ways = taken or [way for way in ways if self.held(way) is not None]
        return self.held(ways[0]) if len(ways) == 1 else None

    def _called(self, node: ast.Call) -> Held:
        """What a function of Python gives that only collects values."""
        function = node.func
        if isinstance(function, ast.Name) and function.id in ("list", "tuple") and len(node.args) == 1:
            held = self.held(node.args[0])
            held = list(held.values()) if isinstance(held, dict) else held
            return (
                (tuple if function.id == "tuple" else list)(held) if isinstance(held, (tuple, list)) else None
            )
        if not isinstance(function, ast.Attribute):
            return None
        held, method = self.held(function.value), function.attr
        if method in ("values", "items") and isinstance(held, dict):
            return [one if method == "values" else (None, one) for one in held.values()]
        if not isinstance(held, (list, dict)) or len(node.args) > 1:
            return None
        if method == "pop":
            return _part(held, node.args[0] if node.args else ast.Constant(-1))
        if method == "get":
            return _part(held, node.args[0])
        return held.copy() if method == "copy" else None

    def bind(self, target: Any, held: Held) -> Iterator[tuple[str, Held]]:
        """Have the names of a target hold something; yields them, with None where that is not known."""
        if isinstance(target, ast.Starred):
            target = target.value
        if isinstance(target, ast.Name):
            self.names.pop(target.id, None)
            if is_known(held):
                self.names[target.id] = held
            yield target.id, held if is_whole(held) else None
        elif isinstance(target, (ast.Tuple, ast.List)):
            for one, part in zip(target.elts, _distributed(target.elts, held)):
                yield from self.bind(one, part)

    def written(self, statement: Any) -> Iterator[tuple[str, Held]]:
        """The names that a statement has bound, all its expressions computed."""
        for one in ast.walk(header_of(statement)) if statement is not None else ():
            if isinstance(one, ast.NamedExpr):
                yield from self.bind(one.target, self.held(one.value))
        if isinstance(statement, ast.Assign):
            held = self.parts(statement.value)  # before the first of the targets is another
            for target in statement.targets:
                yield from self.bind(target, self._parts(statement.value, held, target))
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            yield from self.bind(statement.target, self.held(statement.value))
        elif isinstance(statement, ast.AugAssign) and not isinstance(statement.target, ast.Subscript):
            yield from self.bind(statement.target, self.made.get(statement))
        elif isinstance(statement, ast.Delete):
            for target in statement.targets:
                yield from self.bind(target, None)

    def _parts(self, node: Any, held: Held, target: Any) -> Held:
        """What an expression gives to a target that may take it apart, as it may a tensor by rows."""
        several = self.several.get(target, ()) or self.several.get(node, ())
        if isinstance(target, (ast.Tuple, ast.List)) and len(several) == len(target.elts):
            return several
        return held


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


def _part(parts: Held, index: Any) -> Held:
    """What an index written as a constant picks of what an expression gives."""
    key = literal(index)
    try:
        return parts[key] if isinstance(parts, (tuple, list, dict)) and key is not None else None
    except (TypeError, LookupError):
        return None


def is_literal(node: Any) -> bool:
    """Whether an expression is a number, text or None as it is written."""
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant)
    return isinstance(node, ast.Constant) and node.value is not Ellipsis


def literal(index: Any) -> Any:
    """An index written as a constant; None for others."""
    try:
        if isinstance(index, ast.Slice):
            return slice(*[one and ast.literal_eval(one) for one in (index.lower, index.upper, index.step)])
        return ast.literal_eval(index)
    except (ValueError, TypeError):
        return None


def header_of(statement: Any) -> Any:
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
