"""The memory plan: where in one arena every intermediate value lies, space being used again when a value is dead."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Hashable, Mapping, Sequence

ALIGNMENT = 64
"""Bytes; a cache line and the widest vector."""


def last_uses(uses: Sequence[Sequence[Hashable]]) -> dict[Hashable, int]:
    """The last position at which each buffer occurs in ``uses``, the buffers of each instruction.

    >>> last_uses([["a"], ["a", "b"]])
    {'a': 1, 'b': 1}
    """
    return {buffer: position for position, buffers in enumerate(uses) for buffer in buffers}


class Arena:
    """Free space kept as sorted, disjoint holes; a request takes the smallest hole that holds it."""

    def __init__(self) -> None:
        self.size = 0
        self._starts: list[int] = []
        self._holes: dict[int, int] = {}

    def take(self, size: int) -> int:
        """The offset of ``size`` bytes."""
        best = min(
            (start for start in self._starts if self._holes[start] >= size),
            key=lambda start: self._holes[start],
            default=-1,
        )
        if best >= 0:
            return self._cut(best, size)
        last = self._starts[-1] if self._starts else -1
        if last >= 0 and last + self._holes[last] == self.size:
            self.size += size - self._holes[last]
            self._holes[last] = size
            return self._cut(last, size)
        start, self.size = self.size, self.size + size
        return start

    def _cut(self, start: int, size: int) -> int:
        rest = self._holes.pop(start) - size
        at = bisect_left(self._starts, start)
        if rest:
            self._starts[at] = start + size
            self._holes[start + size] = rest
        else:
            del self._starts[at]
        return start

    def give(self, start: int, size: int) -> None:
        """Make [start, start + size) free; neighbouring holes are joined."""
        at = bisect_left(self._starts, start)
        if at < len(self._starts) and self._starts[at] == start + size:
            size += self._holes.pop(self._starts.pop(at))
        if at and self._starts[at - 1] + self._holes[self._starts[at - 1]] == start:
            self._holes[self._starts[at - 1]] += size
            return
        insort(self._starts, start)
        self._holes[start] = size


def plan(
    uses: Sequence[Sequence[Hashable]], sizes: Mapping[Hashable, int], reuse: bool = True
) -> tuple[dict[Hashable, int], int]:
    """Byte offsets of the buffers in ``sizes``, and the bytes of the arena.

    A buffer lives from the first instruction that uses it to the last, both included; no two live ones overlap.

    >>> plan([["a"], ["a", "b"], ["b", "c"]], {"a": 100, "b": 10, "c": 64})
    ({'a': 0, 'b': 128, 'c': 0}, 192)
    """
    arena = Arena()
    offsets: dict[Hashable, int] = {}
    last = last_uses(uses)
    for position, buffers in enumerate(uses):
        for buffer in buffers:
            if buffer in sizes and buffer not in offsets:
                offsets[buffer] = arena.take(_rounded(sizes[buffer]))
        if reuse:
            for buffer in dict.fromkeys(buffers):
                if buffer in sizes and last[buffer] == position:
                    arena.give(offsets[buffer], _rounded(sizes[buffer]))
    return offsets, arena.size


def _rounded(size: int) -> int:
    return max(-(-size // ALIGNMENT), 1) * ALIGNMENT
