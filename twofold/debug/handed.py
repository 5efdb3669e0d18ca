"""What functions of Python hand to functions of the program, and where a function that runs later was called."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from types import CodeType
from typing import Any

from twofold.debug.iterations import element
from twofold.debug.names import Held, Scope, is_whole
from twofold.debug.source import assigned_once, made_by

_BY_POSITION = {"map": 0, "filter": 0, "starmap": 0, "reduce": 0, "accumulate": 1}
_BY_KEY = ("sorted", "min", "max", "sort")
COLLECTS = ("list", "tuple", "dict", "set", "sorted", "filter")
"""Functions of Python that give none of the values that are computed as they run."""
GENERATOR = 0x20
"""The flag of code that yields."""


def name_of(function: Any) -> str:
    """The last part of the name that a function is called by, empty for other expressions."""
    return str(getattr(function, "id", getattr(function, "attr", "")))


def _calls(root: Any, here: CodeType) -> Iterator[ast.Call]:
    """The calls in an expression, and those that its variables were assigned."""
    nodes = list(root.items) if isinstance(root, (ast.With, ast.AsyncWith)) else [root]
    for node in [inner for one in nodes for inner in ast.walk(one)]:
        if isinstance(node, ast.Name):
            node = assigned_once(here, node.id)
        if isinstance(node, ast.Call):
            yield node


def handing(root: Any, code: CodeType, here: CodeType) -> ast.Call | None:
    """The call of a function of Python in ``root``, a part of ``here``, that calls ``code`` in turn."""
    for call in _calls(root, here):
        name = name_of(call.func)
        given = [one.value for one in call.keywords if one.arg in ("key", "func")]
        position = _BY_POSITION.get(name)
        if position is not None:
            given += call.args[position : position + 1]
        if (position is not None or name in _BY_KEY) and any(_is_function(one, code, here) for one in given):
            return call
    return None


def _is_function(node: Any, code: CodeType, here: CodeType) -> bool:
    if code.co_name == "<lambda>":
        found = assigned_once(here, node.id) if isinstance(node, ast.Name) else node
        return isinstance(found, ast.Lambda) and made_by(found, code)
    return name_of(node) == code.co_name


def handed(call: ast.Call, number: int, returned: Sequence[Held], scope: Scope) -> Sequence[Held]:
    """The arguments of the ``number``-th call of the function, after those that ``returned`` something."""
    name, arguments = name_of(call.func), call.args
    if name == "map":
        return [element(one, number, scope) for one in arguments[1:]]
    if name == "filter":
        return [element(arguments[1], number, scope)]
    if name == "starmap":
        found = element(arguments[1], number, scope)
        return found if isinstance(found, (tuple, list)) else ()
    if name in _BY_KEY:
        owner = getattr(call.func, "value", None)
        if name != "sort" and len(arguments) > 1:
            return [scope.held(arguments[number])] if number < len(arguments) else ()
        return [element(arguments[0] if name != "sort" else owner, number, scope)]
    rest = arguments[1] if name == "reduce" else arguments[0]
    first = [*arguments[2:3], *[one.value for one in call.keywords if one.arg == "initial"]]
    if number:
        before: Held = returned[-1]
    else:
        before = scope.held(first[0]) if first else element(rest, 0, scope)
    return [before, element(rest, number + (not first), scope)]


def given_back(call: ast.Call, returned: Sequence[Held]) -> Held:
    """What a call gives after the function that it calls returned this, None where that is not known."""
    name = name_of(call.func)
    if name == "reduce":
        return returned[-1]
    return list(returned) if name in ("map", "starmap") and is_whole(list(returned)) else None


def makers_of(root: Any, code: CodeType, here: CodeType) -> list[Any]:
    """The expressions in ``root`` that may have made a generator, which runs as it is iterated over."""
    if code.co_name == "<genexpr>":
        return [one for one in ast.walk(root) if isinstance(one, ast.GeneratorExp) and made_by(one, code)][:1]
    if code.co_name == "__iter__":
        return [root]
    found: list[Any] = []
    for one in _calls(root, here):
        found += [one] if name_of(one.func) == code.co_name and one not in found else []
    return found


def completed(call: Any, here: CodeType) -> Any:
    """A call with the arguments that ``functools.partial`` put before its own; anything else as it is."""
    if not isinstance(call, ast.Call):
        return call
    made = assigned_once(here, call.func.id) if isinstance(call.func, ast.Name) else None
    if not isinstance(made, ast.Call) or name_of(made.func) != "partial" or not made.args:
        return call
    function, *first = made.args
    return ast.Call(function, [*first, *call.args], [*made.keywords, *call.keywords])
