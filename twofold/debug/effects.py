"""What statements write to besides the variables that they bind, read off the source."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator
from typing import Any

from twofold.debug.names import Held, Scope, header_of, literal

_READS = ("copy", "count", "get", "items", "keys", "values")
_KEEPS = ("requires_grad_", "detach_", "share_memory_")
_JUMPS = (ast.Break, ast.Continue, ast.Return, ast.Raise)
Write = tuple[Held, Held]
"""What was written to, as it was before, and what has taken its place: None where that is not known."""


def is_in_place(name: str) -> bool:
    """Whether a function or method with a name writes to its first tensor."""
    return name.endswith("_") and not name.endswith("__")


def writes(statement: Any, scope: Scope, is_library: Callable[[str], bool]) -> Iterator[Write]:
    """What a statement writes to, all its expressions computed; ``is_library`` tells of a name of this library."""
    for node in _calls(header_of(statement)):
        yield from _called(node, scope, is_library)
    if isinstance(statement, ast.AugAssign):
        before = scope.held(statement.target)
        if isinstance(before, list):
            rest = scope.held(statement.value)
            yield before, [*before, *rest] if isinstance(rest, (tuple, list)) else None
        elif isinstance(before, int):
            yield before, scope.made.get(statement)
    for target, held in _elements(statement, scope):
        owner = scope.held(target.value)
        if isinstance(owner, (list, dict)):
            yield owner, _with_element(owner, literal(target.slice), held)


def _elements(statement: Any, scope: Scope) -> Iterator[tuple[ast.Subscript, Held]]:
    """The elements that a statement assigns to or deletes, with what they hold then."""
    if isinstance(statement, ast.Assign):
        held = scope.held(statement.value)
        for target in statement.targets:
            if isinstance(target, ast.Subscript):
                yield target, held
            elif isinstance(target, (ast.Tuple, ast.List)):
                parts = held if isinstance(held, (tuple, list)) and len(held) == len(target.elts) else ()
                for k, one in enumerate(target.elts):
                    if isinstance(one, ast.Subscript):
                        yield one, parts[k] if parts else None
    elif isinstance(statement, (ast.AugAssign, ast.AnnAssign)) and isinstance(
        statement.target, ast.Subscript
    ):
        yield statement.target, scope.made.get(statement)
    elif isinstance(statement, ast.Delete):
        for target in statement.targets:
            if isinstance(target, ast.Subscript):
                yield target, _GONE


_GONE = object()


def _with_element(owner: Any, key: Any, held: Held) -> Held:
    """A container after an assignment to an element or its deletion."""
    made: Any = owner.copy()
    try:
        if held is _GONE:
            del made[key]
        elif isinstance(key, slice):
            return None
        else:
            made[key] = held
    except (TypeError, LookupError):
        return None
    return None if key is None else made


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    """The calls in an expression, those inside of others first."""
    if isinstance(node, ast.Lambda):
        return
    for inner in ast.iter_child_nodes(node):
        yield from _calls(inner)
    if isinstance(node, ast.Call):
        yield node


def _called(node: ast.Call, scope: Scope, is_library: Callable[[str], bool]) -> Iterator[Write]:
    function = node.func
    name = str(getattr(function, "attr", getattr(function, "id", "")))
    owner = scope.held(function.value) if isinstance(function, ast.Attribute) else None
    made = scope.made.get(node)
    if isinstance(owner, (list, dict)):
        if name not in _READS:
            yield owner, _after(owner, name, node.args, scope) if not node.keywords else None
        return
    named = {one.arg: one.value for one in node.keywords}
    root = function
    while isinstance(root, ast.Attribute):
        root = root.value
    from_library = isinstance(root, ast.Name) and is_library(root.id)
    if from_library and "out" in named:
        yield scope.held(named["out"]), made
    elif isinstance(owner, int) and is_in_place(name) and name not in _KEEPS:
        yield owner, made
    elif from_library and (is_in_place(name) or getattr(named.get("inplace"), "value", False) is True):
        yield scope.held(node.args[0] if node.args else None), made
    known = from_library or (isinstance(root, ast.Name) and hasattr(builtins, root.id))
    if (
        node not in scope.made and not known
    ):  # a function of which nothing is known may write to what it is given
        for held in map(scope.held, [*node.args, *named.values()]):
            if isinstance(held, (list, dict)):
                yield held, None


def _after(owner: Any, method: str, arguments: list[Any], scope: Scope) -> Held:
    """A container after one of its methods, None where that is not known."""
    held = [scope.held(one) for one in arguments]
    made: Any = owner.copy()
    try:
        if method in ("append", "clear", "reverse"):
            getattr(made, method)(*held)
        elif method in ("extend", "update") and isinstance(held[0], (tuple, list, dict)):
            getattr(made, method)(held[0])
        elif method == "insert":
            made.insert(ast.literal_eval(arguments[0]), held[1])
        elif method == "pop":
            made.pop(*map(ast.literal_eval, arguments))
        else:
            return None
    except (ValueError, TypeError, LookupError):
        return None
    return made


def may_write(
    statement: ast.AST, has_not_run: Callable[[ast.stmt], bool], jumps: tuple[type, ...]
) -> set[str]:
    """The variables that a statement may bind or write to, with all that is in it but what has not run.

    That is so of blocks that end in a jump, but one of the kinds ``jumps``, for what stands behind them has run.
    """
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {statement.name}
    if isinstance(statement, ast.stmt) and has_not_run(statement):
        return set()
    inner = list(ast.iter_child_nodes(statement))
    left = {id(one) for block in blocks_of(statement) if _ends_elsewhere(block, jumps) for one in block}
    below = [one for one in inner if not isinstance(one, ast.expr) and id(one) not in left]
    found = {name for one in below for name in may_write(one, has_not_run, jumps)}
    for node in [node for one in inner if isinstance(one, ast.expr) for node in ast.walk(one)]:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            found |= set() if isinstance(node.ctx, ast.Load) else {node.value.id}
        elif isinstance(node, ast.Call):
            owner = getattr(node.func, "value", None)
            if isinstance(owner, ast.Name) and getattr(node.func, "attr", "") not in _READS:
                found.add(owner.id)
            if not hasattr(builtins, str(getattr(node.func, "id", ""))):
                found.update(one.id for one in node.args if isinstance(one, ast.Name))
    return found


def blocks_of(statement: ast.AST) -> list[list[ast.stmt]]:
    """The blocks of statements in a statement."""
    found = [getattr(statement, field, None) for field in ("body", "orelse", "finalbody")]
    return [one for one in found if isinstance(one, list)]


def _ends_elsewhere(block: list[ast.stmt], jumps: tuple[type, ...]) -> bool:
    return bool(block) and isinstance(block[-1], _JUMPS) and not isinstance(block[-1], jumps)


def may_jump(statement: ast.AST, jumps: tuple[type, ...]) -> bool:
    """Whether what stands behind a statement may not have run, because of jumps of these kinds."""
    return any(isinstance(one, jumps) for one in ast.walk(statement))
