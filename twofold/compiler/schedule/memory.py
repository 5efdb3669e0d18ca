"""The memory plan: offsets of intermediate values in one arena, by their live ranges."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from twofold import _core


def last_uses(uses: Sequence[Sequence[Hashable]]) -> dict[Hashable, int]:
    """The end of the live range of each buffer; ``uses`` are the buffers of each instruction.

    >>> last_uses([["a"], ["a", "b"]])
    {'a': 1, 'b': 1}
    """
    return {buffer: position for position, buffers in enumerate(uses) for buffer in buffers}


def plan(
    uses: Sequence[Sequence[Hashable]], sizes: Mapping[Hashable, int], reuse: bool = True
) -> tuple[dict[Hashable, int], int]:
    """Lay out buffers in an arena so that no two live ones overlap.

    Args:
        uses: The buffers of each instruction; a buffer is live from its first use to its last, both included.
        sizes: The bytes of each buffer.
        reuse: Whether buffers with disjoint live ranges may overlap.

    Returns:
        The offset of each buffer in bytes, and the size of the arena.

    >>> plan([["a"], ["a", "b"], ["b", "c"]], {"a": 100, "b": 10, "c": 64})
    ({'a': 0, 'b': 128, 'c': 0}, 192)
    """
    names = list(sizes)
    numbers = {name: number for number, name in enumerate(names)}
    kept = [[numbers[buffer] for buffer in buffers if buffer in numbers] for buffers in uses]
    offsets, total = _core.plan_arena(kept, [sizes[name] for name in names], reuse)
    return {name: offset for name, offset in zip(names, offsets) if offset >= 0}, total
