"""The memory plan: where in one arena every intermediate value lies, space being used again when a value is dead."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from twofold import _core


def last_uses(uses: Sequence[Sequence[Hashable]]) -> dict[Hashable, int]:
    """The last position at which each buffer occurs in ``uses``, the buffers of each instruction.

    >>> last_uses([["a"], ["a", "b"]])
    {'a': 1, 'b': 1}
    """
    return {buffer: position for position, buffers in enumerate(uses) for buffer in buffers}


def plan(
    uses: Sequence[Sequence[Hashable]], sizes: Mapping[Hashable, int], reuse: bool = True
) -> tuple[dict[Hashable, int], int]:
    """Byte offsets of the buffers in ``sizes``, and the bytes of the arena.

    A buffer lives from the first instruction that uses it to the last, both included; no two live ones overlap.

    >>> plan([["a"], ["a", "b"], ["b", "c"]], {"a": 100, "b": 10, "c": 64})
    ({'a': 0, 'b': 128, 'c': 0}, 192)
    """
    names = list(sizes)
    numbers = {name: number for number, name in enumerate(names)}
    kept = [[numbers[buffer] for buffer in buffers if buffer in numbers] for buffers in uses]
    offsets, total = _core.plan_arena(kept, [sizes[name] for name in names], reuse)
    return {name: offset for name, offset in zip(names, offsets) if offset >= 0}, total
