"""What an expression gives that computes several values: one of them, all in order, or what the calls do not tell."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from twofold.debug.activations import Item
from twofold.debug.names import Held, Scope
from twofold.debug.recording import Call, Recording
from twofold.debug.source import position_of


def settle(
    group: Sequence[Item],
    scope: Scope,
    read: set[int],
    recording: Recording,
    is_module: Callable[[Any], bool],
) -> None:
    """Have a scope know what the expressions of a statement gave that computed more than one value.

    Args:
        group: What the statement did.
        scope: The variables, with what each expression gave as far as its last call tells.
        read: What is read later, or returned.
        recording: What was recorded. Functions of ``twofold.static`` return parts of one value as a list, not a tuple.
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
            held = list(parts) if recording.is_declared else parts
        elif len(later) == 1 and is_module(getattr(expression, "func", None)):
            others = [call for call in calls if call.result not in later]
            if all(_is_kept(call, group, recording) for call in others):
                (held,) = later
        elif any(call.op is not first.op for call in calls):
            del scope.several[expression]  # in another order than they are computed
        scope.made[expression] = held


def _is_kept(call: Call, group: Sequence[Item], recording: Recording) -> bool:
    """Whether a call may compute what a module keeps: from what it kept before, a tensor of the same type."""
    made = {item.call.result: item.call for item in group if item.call is not None}
    type, waiting, seen = call.result_type, [call], set()
    while waiting:
        for number, given in zip((one := waiting.pop()).operands, one.types):
            if number in recording.given and recording.is_tensor(number) and given == type:
                return True
            if number in made and number not in seen:
                seen.add(number)
                waiting.append(made[number])
    return False


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
