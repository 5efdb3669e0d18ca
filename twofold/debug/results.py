"""What an expression gives that computes several values: one of them, all in order, or what the calls do not tell."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from twofold.debug.activations import Item
from twofold.debug.names import Held, Scope
from twofold.debug.recording import Call
from twofold.debug.source import position_of


def settle(
    group: Sequence[Item], scope: Scope, read: set[int], listed: bool, is_module: Callable[[Any], bool]
) -> None:
    """Have a scope know what the expressions of a statement gave that computed more than one value.

    Args:
        group: What the statement did.
        scope: The variables, with what each expression gave as far as its last call tells.
        read: What is read later, or returned.
        listed: Whether functions return parts of one value as a list, as those of ``twofold.static`` do, not a tuple.
        is_module: Whether what is called may be a module, whose calls keep values besides what they give.
    """
    for expression, calls in _several(group).items():
        scope.several[expression] = tuple(call.result for call in calls)
        if expression not in scope.made:
            continue
        first = calls[0]
        held: Held = None
        later = [one for one in scope.several[expression] if one in read]
        if all(call.op is first.op and call.operands[:1] == first.operands[:1] for call in calls):
            parts = scope.several[expression]
            held = list(parts) if listed else parts
        elif len(later) == 1 and is_module(getattr(expression, "func", None)):
            (held,) = later  # the others are what the module keeps
        elif any(call.op is not first.op for call in calls):
            del scope.several[expression]  # in another order than they are computed
        scope.made[expression] = held


def _several(group: Sequence[Item]) -> dict[ast.AST, list[Call]]:
    """The calls of each expression whose results it did not read itself, where these are more than one."""
    made: dict[ast.AST, list[Call]] = {}
    for item in group:
        if item.site is not None and item.call is not None:
            made.setdefault(position_of(item.site).expression, []).append(item.call)
    found = {}
    for expression, calls in made.items():
        if any(call.parts for call in calls):
            continue
        read = {operand for call in calls for operand in call.operands}
        found[expression] = [call for call in calls if call.result not in read]
    return {expression: calls for expression, calls in found.items() if len(calls) > 1}
