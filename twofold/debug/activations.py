"""Calls of a recording as activations of the program's functions, nested as the functions called each other.

A recording tells for each call the chain of instructions that led to it. A function goes on where instructions come
later in its code, or where a loop leads back to them; else it was called anew.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Sequence
from types import CodeType
from typing import Any

from twofold.debug.recording import GIVEN, STOP, Call
from twofold.debug.sites import Chain, Site
from twofold.debug.source import (
    calls_within,
    comes_before,
    exclusive,
    is_passed,
    may_repeat,
    position_of,
    repetitions_around,
    root_of,
    yields_between,
)


class Item:
    """What an activation does at one position: a call of an operation, or of a function of the program."""

    __slots__ = ("again", "call", "child", "parts", "site")

    def __init__(self, site: Site | None, call: Call | None, child: Activation | None, again: bool) -> None:
        self.site, self.call, self.child = site, call, child
        self.again = again  # a loop has led back here
        self.parts: list[Activation] = []  # the bodies of a loop or branch, in this activation's function


class Activation:
    """One call of a function of the program, or (``code`` None) what calls the outermost ones."""

    __slots__ = ("code", "first", "items", "last", "sites")

    def __init__(self, code: CodeType | None) -> None:
        self.code = code
        self.items: list[Item] = []
        self.last: Site | None = None
        self.sites: set[Site] = set()
        self.first: dict[Site | None, Any] = {}  # what happened first at each site since a loop led back

    def calls(self) -> Iterator[Call]:
        """The calls of operations that it makes, and those that it calls."""
        for item in self.items:
            if item.call is not None:
                yield item.call
            if item.child is not None:
                yield from item.child.calls()

    def is_repeated(self, site: Site, call: Call | None, what: Any) -> bool:
        """Whether what happens once more at the last site is another iteration, or another call of the function.

        Either would begin with what the present one began with. A value that is taken apart is one call.
        """
        loop = repetitions_around(site)[:1]
        inside = (
            one for one in self.first if not loop or (one is not None and loop[0] in repetitions_around(one))
        )
        if self.first.get(site) != what or next(inside) != site:
            return False
        if loop and any(is_passed(loop[0], one) for one in self.sites if one.offset > site.offset):
            return False  # what always comes behind it has not come yet
        position = position_of(site)
        root = root_of(position.expression, position.statement)
        if call is None and (most := calls_within(root, what)) is not None:
            begun = next((k for k, one in enumerate(reversed(self.items), 1) if one.again), len(self.items))
            made = [one for one in self.items[-begun:] if one.site == site and one.child is not None]
            return len(made) >= most
        before = self.items[-1].call
        if call is None or before is None or not call.operands:
            return True
        same = call.operands[0] == before.operands[0]
        expression = position.expression
        if isinstance(expression, (ast.For, ast.AsyncFor)):
            return same  # the rows of other tensors are read in the same iteration
        apart = (call.op.is_view and len(call.operands) > 1) or isinstance(expression, (ast.Tuple, ast.List))
        return not (apart and same)

    def add(self, site: Site | None, call: Call | None, child: Activation | None) -> Item:
        """Append what happens at a site."""
        last = self.last
        again = last is not None and site is not None and (comes_before(site, last) or exclusive(last, site))
        what: Any = (call.op, call.attrs) if call is not None else child and child.code
        if site is not None and site == last:
            again = self.is_repeated(site, call, what) and may_repeat(site, site)
        if again:
            self.first = {}
        self.first.setdefault(site, what)
        if site is not None and not (call is not None and call.op in (GIVEN, STOP)):
            self.sites.add(site)
        item = Item(site, call, child, again)
        self.items.append(item)
        self.last = site
        return item


class _Builder:
    def __init__(self, root: Activation, index: int) -> None:
        self.stack = [root]
        self.index = index  # of the root in a chain; -1: it stands before all

    def sites(self, chain: Chain) -> list[Site | None]:
        if self.index < 0:
            return [None, *chain]
        below = chain[self.index :]
        return list(below) if below else [None]

    def add(self, call: Call) -> None:
        sites = self.sites(call.chain)
        depth = 0
        while depth + 1 < len(sites) and self._goes_on(depth, sites, call):
            depth += 1
        del self.stack[depth + 1 :]
        for k in range(depth, len(sites) - 1):
            below: Any = sites[k + 1]
            child = Activation(below.code)
            self.stack[k].add(sites[k], None, child)
            self.stack.append(child)
        item = self.stack[-1].add(sites[-1], call, None)
        for part in call.parts:
            inside = Activation(self.stack[-1].code)
            build(part.calls, inside, len(call.chain) - 1)
            item.parts.append(inside)

    def _goes_on(self, depth: int, sites: Sequence[Site | None], call: Call) -> bool:
        """Whether the activation below ``depth`` is the one that makes the call."""
        if depth + 1 >= len(self.stack) or self.stack[depth].last != sites[depth]:
            return False
        return self._continues(depth + 1, sites, call)

    def _continues(self, depth: int, sites: Sequence[Site | None], call: Call) -> bool:
        found, site = self.stack[depth], sites[depth]
        if site is None or found.code is not site.code:
            return False
        last = found.last
        if last is None:
            return True
        if found.code.co_flags & inspect.CO_GENERATOR and site != last and yields_between(last, site):
            return False
        if comes_before(site, last) or exclusive(last, site):
            return may_repeat(site, last)
        if site != last:
            return True
        if depth + 1 == len(sites):
            again = found.is_repeated(site, call, (call.op, call.attrs))
            is_generator = found.code.co_flags & inspect.CO_GENERATOR
            return not again or (may_repeat(site, site) and not (is_generator and yields_between(site, site)))
        return True  # what is called there tells by itself whether it is called anew


def build(calls: Sequence[Call], root: Activation, index: int) -> Activation:
    """``root`` with what the calls do inside it; ``index`` is its position in their chains."""
    builder = _Builder(root, index)
    for call in calls:
        builder.add(call)
    return root
