"""The loops of a program that one of its functions stands in while it runs, and in which iteration of each."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

from twofold.debug.activations import Item
from twofold.debug.names import Held, Scope
from twofold.debug.source import position_of


class Iterations:
    """Loops of one activation, outermost first, with the number of the iteration that each is in."""

    def __init__(self, scope: Scope, given: dict[int, Any]) -> None:
        self.scope, self.given = scope, given
        self.loops: list[Any] = []
        self.number: dict[Any, int] = {}
        self.comprehension: Any = None  # the one that the function stands in

    def repeated(self, item: Item, around: list[Any]) -> Any:
        """The loop that has led back to an item: the innermost that, as far as is known, has another iteration."""
        shared = [loop for loop in around if loop in self.loops] if item.again else []
        for loop in reversed(shared):
            count = count_of(loop, self.scope)
            if count is None or self.number[loop] + 1 < count:
                return loop
        return shared[-1] if shared else None

    def number_of(self, loop: Any, number: int, item: Item) -> int:
        """The iteration that begins, ``number`` or, where that computes nothing, the later one that the item reads."""
        if item.call is None or isinstance(loop, ast.While):
            return number
        counted = self._counted(loop, item)
        if counted is not None:
            return max(number, counted)
        if element(loop.iter, number, self.scope) is None:
            return number  # such as an integer
        for k in range(number, count_of(loop, self.scope) or 0):
            if _reads(item.call.operands, element(loop.iter, k, self.scope)):
                return k
        return number

    def _counted(self, loop: Any, item: Item) -> int | None:
        """The iteration of a loop over ``range`` or ``enumerate`` whose number an operator reads."""
        node = position_of(item.site).expression if item.site is not None else None
        if not isinstance(node, ast.BinOp) or len(item.call.operands) != 2:  # type: ignore[union-attr]
            return None
        numbers, counter = _numbers(loop.iter), _counter(loop)
        for side, operand in zip((node.left, node.right), item.call.operands):  # type: ignore[union-attr]
            if isinstance(side, ast.Name) and side.id == counter and numbers is not None:
                value = self.given.get(operand)
                return numbers.index(value) if isinstance(value, int) and value in numbers else None
        return None

    def decide(self, conditions: Sequence[tuple[ast.expr, bool]]) -> bool | None:
        """Whether conditions on the numbers of iterations are what is given with them; None where that is not known."""
        known = {}
        for loop in [one for one in self.loops if isinstance(one, ast.For)]:
            numbers, counter = _numbers(loop.iter), _counter(loop)
            if numbers is not None and counter is not None and self.number[loop] < len(numbers):
                known[counter] = numbers[self.number[loop]]
        found: list[bool | None] = [None] * (not conditions)
        for test, wanted in conditions:
            nodes = list(ast.walk(test))
            names = {one.id for one in nodes if isinstance(one, ast.Name)}
            if names <= known.keys() and not any(isinstance(one, (ast.Call, ast.Attribute)) for one in nodes):
                code = compile(ast.Expression(test), "<condition>", "eval")
                found.append(bool(eval(code, {"__builtins__": {}}, known)) == wanted)
            else:
                found.append(None)
        return False if False in found else None if None in found else True

    def is_left_early(self, loop: Any) -> bool:
        """Whether a loop that is left has more iterations, and so was left by ``break``."""
        if not _may_break(loop):
            return False
        count = count_of(loop, self.scope)
        return count is None or self.number[loop] + 1 < count


def _counter(loop: ast.For) -> str | None:
    """The variable that counts the iterations of a loop, None where an iteration binds it to something else."""
    target = loop.target.elts[0] if isinstance(loop.target, (ast.Tuple, ast.List)) else loop.target
    inside = [one for statement in loop.body for one in ast.walk(statement) if isinstance(one, ast.Name)]
    if not isinstance(target, ast.Name) or any(
        one.id == target.id and not isinstance(one.ctx, ast.Load) for one in inside
    ):
        return None
    return target.id


def _numbers(iterable: Any) -> range | None:
    """What ``range`` or ``enumerate`` count, where that is written as constants."""
    if not isinstance(iterable, ast.Call) or iterable.keywords:
        return None
    limits: list[Any] = [one.value for one in iterable.args if isinstance(one, ast.Constant)]
    name = getattr(iterable.func, "id", "")
    if name == "range" and limits and len(limits) == len(iterable.args):
        return range(*limits)
    return range(sys.maxsize) if name == "enumerate" and len(iterable.args) == 1 else None


def _reads(operands: Sequence[int], held: Held) -> bool:
    parts = held if isinstance(held, (tuple, list)) else (held,)
    return any(_reads(operands, one) if isinstance(one, (tuple, list)) else one in operands for one in parts)


def count_of(loop: Any, scope: Scope) -> int | None:
    """How many iterations a loop has, where that can be read off the program."""
    return _length(loop.iter, scope) if isinstance(loop, ast.For) else None


def _length(iterable: Any, scope: Scope) -> int | None:
    if isinstance(iterable, ast.Call) and isinstance(iterable.func, ast.Name):
        name, arguments = iterable.func.id, iterable.args
        if name == "range":
            numbers = _numbers(iterable)
            return None if numbers is None else len(numbers)
        if name in ("enumerate", "reversed", "sorted", "list", "tuple") and arguments:
            return _length(arguments[0], scope)
        if name in ("zip", "map"):
            arguments = arguments[name == "map" :]
            known = [one for one in (_length(one, scope) for one in arguments) if one is not None]
            return min(known) if len(known) == len(arguments) and known else None
    if isinstance(iterable, (ast.Tuple, ast.List)):
        return len(iterable.elts)
    held = scope.held(iterable)
    return len(held) if isinstance(held, (tuple, list)) else None


def element(iterable: Any, number: int, scope: Scope) -> Held:
    """What a loop over an expression gives its target in an iteration, None where that is not known."""
    if isinstance(iterable, ast.Call) and isinstance(iterable.func, ast.Name) and iterable.args:
        name, arguments = iterable.func.id, iterable.args
        if name == "enumerate":
            inner: Held = element(arguments[0], number, scope)
            return (None, inner)
        if name == "zip":
            return tuple(element(one, number, scope) for one in arguments)
        if name == "reversed":
            held = scope.held(arguments[0])
            return held[-1 - number] if isinstance(held, (tuple, list)) and number < len(held) else None
    if isinstance(iterable, (ast.Tuple, ast.List)):
        return scope.parts(iterable.elts[number]) if number < len(iterable.elts) else None
    held = scope.held(iterable)
    return held[number] if isinstance(held, (tuple, list)) and number < len(held) else None


def element_names(
    generators: Sequence[ast.comprehension], number: int, scope: Scope, outer: Any
) -> Iterator[tuple[str, Held]]:
    """What the variables of a comprehension hold for an element; ``outer`` writes the function around it."""
    counts = _counts(generators, scope, outer)
    for k, one in enumerate(generators):
        later = counts[k + 1 :]
        if one.ifs or None in later:
            return
        block = prod(later)  # type: ignore[arg-type]
        position = number // block % (counts[k] or number + 1) if block else 0
        around = outer.scope if k == 0 and outer is not None else scope
        yield from scope.bind(one.target, element(one.iter, position, around))


def loops_that_end(generators: Sequence[ast.comprehension], number: int, scope: Scope, outer: Any) -> int:
    """How many loops of a comprehension have another iteration, or end, behind ``number`` elements."""
    counts = _counts(generators, scope, outer)
    ends = 1
    for k in range(len(counts) - 1, 0, -1):
        block = None if None in counts[k:] else prod(counts[k:])  # type: ignore[arg-type]
        if not block or number % block:
            break
        ends += 1
    return ends


def _counts(generators: Sequence[ast.comprehension], scope: Scope, outer: Any) -> list[int | None]:
    """The iterations of each loop of a comprehension; what the first goes over is evaluated outside."""
    around = outer.scope if outer is not None else scope
    return [
        None if one.ifs else _length(one.iter, scope if k else around) for k, one in enumerate(generators)
    ]


def rows(target: Any, iterable: Any, scope: Scope) -> Iterator[Any]:
    """The parts of a loop's target that get rows of a tensor, which the header of the loop computes."""
    if isinstance(iterable, ast.Call) and isinstance(iterable.func, ast.Name) and iterable.args:
        name = iterable.func.id
        parts: list[Any] = getattr(target, "elts", [])
        if name == "enumerate" and len(parts) == 2:
            yield from rows(parts[1], iterable.args[0], scope)
            return
        if name == "zip" and len(parts) == len(iterable.args):
            for part, one in zip(parts, iterable.args):
                yield from rows(part, one, scope)
            return
    if not isinstance(scope.held(iterable), (tuple, list)):
        yield target


def _may_break(loop: Any) -> bool:
    if isinstance(loop, ast.While) and isinstance(loop.test, ast.Constant) and loop.test.value:
        return True
    stack = list(loop.body)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Break):
            return True
        if not isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            stack += ast.iter_child_nodes(node)
    return False
