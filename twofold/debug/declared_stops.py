"""Where a run comes by the breakpoints that its graph was declared with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from twofold.debug.activations import Activation, Item, build
from twofold.debug.recording import Call
from twofold.debug.sites import Site
from twofold.debug.source import loops_around


def insert_stops(calls: list[Call], stops: Sequence[Call]) -> None:
    """Put breakpoints, in the order of their declaration, where the run computes something in their function."""
    for k, stop in enumerate(stops):
        if stop.chain:
            _insert(calls, stop, sum(other.chain == stop.chain for other in stops[:k]))


def insert_where_declared(calls: list[Call], stops: Sequence[tuple[Call, int]]) -> None:
    """Put breakpoints, in the order of their declaration, before as many calls as were declared after each.

    Calls of a backward pass do not count, nor do those in branches: breakpoints there go where ``insert_stops``
    puts them.
    """
    forward = [k for k, call in enumerate(calls) if call.forward is None]
    bodies = {one.chain[:-1] for call in calls for part in call.parts for one in part.calls if one.chain}
    for stop, later in reversed(stops):
        if stop.chain[:-1] not in bodies:
            calls.insert(forward[-later] if later else len(calls), stop)
    insert_stops(calls, [stop for stop, _ in stops if stop.chain[:-1] in bodies])


def _insert(calls: list[Call], stop: Call, number: int) -> None:
    """Put a breakpoint into the pass ``number`` through its function, before what that declared later."""
    site = stop.chain[-1]
    found = list(_passes(build(calls, Activation(None), -1), stop))
    if number >= len(found):
        return
    made = found[number]
    later = [item for item in made if item.site is not None and item.site.offset > site.offset]
    near = _calls_of(later[0])[0] if later else _calls_of(made[-1])[-1]
    holder = _holder(calls, near)
    assert holder is not None
    holder.insert(holder.index(near) + (not later), stop)


def _passes(activation: Activation, stop: Call) -> Iterator[list[Item]]:
    """What the activations of the function of a breakpoint do, each time they come by it."""
    if activation.code is stop.chain[-1].code:
        yield from _iterations([item for item in activation.items if _leads_to(item, stop)], stop.chain[-1])
    for item in activation.items:
        for below in [item.child, *item.parts]:
            if below is not None:
                yield from _passes(below, stop)


def _leads_to(item: Item, stop: Call) -> bool:
    depth = len(stop.chain) - 1
    calls = _calls_of(item)
    return bool(calls) and calls[0].chain[:depth] == stop.chain[:depth]


def _iterations(items: Sequence[Item], site: Site) -> Iterator[list[Item]]:
    """Items, divided where a loop around a site has led back."""
    made: list[Item] = []
    for item in items:
        if made and item.again and _loop_of(made[-1], item) in loops_around(site):
            yield made
            made = []
        made.append(item)
    if made:
        yield made


def _loop_of(item: Item, later: Item) -> object:
    """The innermost loop around both."""
    if item.site is None or later.site is None:
        return None
    around = loops_around(later.site)
    return next((loop for loop in loops_around(item.site) if loop in around), None)


def _calls_of(item: Item) -> list[Call]:
    """The calls of an item in order: its own, or those of the function that it calls."""
    if item.call is not None:
        return [item.call]
    return [call for one in (item.child.items if item.child else ()) for call in _calls_of(one)]


def _holder(calls: list[Call], call: Call) -> list[Call] | None:
    """The list that has a call: these, or those of the body of a loop or branch."""
    if call in calls:
        return calls
    inside = (_holder(part.calls, call) for one in calls for part in one.parts)
    return next((found for found in inside if found is not None), None)
