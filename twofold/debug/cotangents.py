"""Which call of the forward pass a call of a backward pass differentiates, and whose gradient it computes."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from typing import Any

from twofold.debug.recording import Call, Recording
from twofold.debug.sites import Chain
from twofold.transforms.derived import PULLBACK


class Cotangents:
    """``forward``: results of a backward pass to those of the calls they differentiate; ``target``: to the values whose
    gradients, as far as they have come, they are.
    """

    def __init__(self, recording: Recording) -> None:
        self.forward: dict[int, int] = {}
        self.target: dict[int, int] = {}
        self.loops: dict[int, Call] = {}  # loops and branches by what they give
        self._last: int | None = None
        self._calls: dict[Chain, list[Call]] = defaultdict(list)
        # the call that gradients were met for last, and of which operands
        self._present: dict[tuple[Chain, str], tuple[Call, set[int]]] = {}
        self._kept: dict[
            tuple[Chain, str, int, bool], tuple[tuple[int, int], list[Call], dict[int, int]]
        ] = {}
        self._is_new = True  # whether something was computed since a pass began
        self._made_by: dict[int, Call] = {}  # calls of forward passes by their results
        self._reached: set[int] = set()  # values that passes begin at, and those that they were computed of
        self._gradients: set[int] = set()  # values that are computed of results of a pass
        for call in recording.calls:
            if call.loop is not None:
                self.loops[call.result] = call.loop
            if call.forward is not None or not self._gradients.isdisjoint(call.operands):
                self._gradients.add(call.result)
            if call.forward is None:
                self._calls[call.chain].append(call)
                self._made_by[call.result] = call
                self._is_new |= call.result not in self._gradients
                self._add_sum(call)
                if call.result in self.target and self._last is not None:
                    self.forward[call.result] = self._last
            else:
                self._match(call)

    def _match(self, call: Call) -> None:
        assert call.forward is not None
        known = self._calls.get(call.forward, [])
        if call.op is not PULLBACK:
            self._add_sum(call)
            if call.result in self.target and self._last is not None:
                self.forward[call.result] = self._last  # added where the second of the two came
            elif known:  # a product over one or several calls, which ends at the first of them
                gradients_of = {self.target.get(one) for one in call.operands}
                own = [one for one in known if one.result in gradients_of]
                self.forward[call.result] = (own or known)[0].result
            return
        name, _, types, index, _ = call.attrs
        key = call.forward, name
        begins = self._gradients.isdisjoint(call.operands)
        if begins and self._is_new:
            self._is_new = False
            self._present.clear()
        candidates, positions = self._candidates(call.forward, name, len(types), begins)
        found, seen = self._present.get(key, (None, {index}))
        position = len(candidates) if found is None else positions.get(found.result, -1)
        if position < 0 or index in seen:
            if position < 0 and found is not None:  # that has another number of operands
                position = bisect_left(candidates, found.result, key=lambda one: one.result)
            if position <= 0:
                return
            found, seen = candidates[position - 1], set()
        assert found is not None
        seen.add(index)
        self._present[key] = found, seen
        if begins:
            self._reach(found)
        self.forward[call.result] = self._last = found.result
        if index < len(types):
            self.target[call.result] = found.operands[index]
        if call.operands and call.operands[0] != found.result and call.operands[0] not in found.operands:
            self.target.setdefault(call.operands[0], found.result)

    def _candidates(
        self, chain: Chain, name: str, count: int, begins: bool
    ) -> tuple[list[Call], dict[int, int]]:
        """The calls of an operation at a line with so many operands, in order, and their positions by their results.

        Unless a pass begins, without those that no gradient comes to, such as of the last state of a loop.
        """
        known, key = self._calls.get(chain, []), (chain, name, count, begins)
        state = len(known), 0 if begins else len(self._reached)
        kept = self._kept.get(key)
        if kept is None or kept[0] != state:
            found = [
                one
                for one in known
                if one.op.name == name
                and len(one.operands) == count
                and (begins or one.result in self._reached)
            ]
            kept = self._kept[key] = state, found, {one.result: k for k, one in enumerate(found)}
        return kept[1], kept[2]

    def _reach(self, call: Call) -> None:
        """Note that a pass begins at a call."""
        open_ = [call.result]
        while open_:
            value = open_.pop()
            if value not in self._reached:
                self._reached.add(value)
                open_ += self._made_by[value].operands if value in self._made_by else ()

    def _add_sum(self, call: Call) -> None:
        """The sum of two gradients of one value is its gradient, too."""
        targets: set[Any] = {self.target.get(one) for one in call.operands}
        if len(call.operands) == 2 and len(targets) == 1 and None not in targets:
            self.target[call.result] = targets.pop()
