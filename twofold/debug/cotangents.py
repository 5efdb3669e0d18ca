"""Which call of the forward pass a call of a backward pass differentiates, and whose gradient it computes."""

from __future__ import annotations

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
        self._present: dict[tuple[Chain, str], tuple[int, set[int]]] = {}
        for call in recording.calls:
            if call.loop is not None:
                self.loops[call.result] = call.loop
            if call.forward is None:
                self._calls[call.chain].append(call)
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
            elif known:  # a product over several calls
                self.forward[call.result] = known[0].result
            return
        name, _, types, index, _ = call.attrs
        key = call.forward, name
        position, seen = self._present.get(key, (len(known), {index}))
        if index in seen or not (position < len(known) and _has(known[position], name, len(types))):
            position, seen = self._before(known, position, name, len(types)), set()
        if position < 0:
            return
        seen.add(index)
        self._present[key] = position, seen
        found = known[position]
        self.forward[call.result] = self._last = found.result
        if index < len(types):
            self.target[call.result] = found.operands[index]
        if call.operands and call.operands[0] != found.result and call.operands[0] not in found.operands:
            self.target.setdefault(call.operands[0], found.result)

    @staticmethod
    def _before(known: list[Call], position: int, name: str, count: int) -> int:
        """The last call of an operation with so many operands before ``position``."""
        position -= 1
        while position >= 0 and not _has(known[position], name, count):
            position -= 1
        return position

    def _add_sum(self, call: Call) -> None:
        """The sum of two gradients of one value is its gradient, too."""
        targets: set[Any] = {self.target.get(one) for one in call.operands}
        if len(call.operands) == 2 and len(targets) == 1 and None not in targets:
            self.target[call.result] = targets.pop()


def _has(call: Call, name: str, count: int) -> bool:
    """Whether a call is one of an operation with so many operands."""
    return call.op.name == name and len(call.operands) == count
