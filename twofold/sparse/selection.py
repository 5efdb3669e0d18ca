"""Which elements of a sparse tensor lie in chosen slices of a sparse axis."""

from __future__ import annotations

from twofold import _core
from twofold.errors import IndexRangeError
from twofold.ops.base import ops

Tensor = _core.Tensor


def selected(coordinates: Tensor, index: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """The elements whose coordinate is one of ``index``, once for each time that it stands there.

    Args:
        coordinates: One coordinate for each element, int64[count].
        index: The chosen coordinates, int64[number].
        size: That of the axis.

    Returns:
        tuple: For each found element the position in ``index``, and its own number, both in the order of ``index``.

    Raises:
        IndexRangeError: A coordinate outside of the axis.
    """
    if index.numel() and not (int(index.min()) >= 0 and int(index.max()) < size):
        raise IndexRangeError(f"index_select: an index outside an axis of size {size}", "Use ones inside.")
    order = ops.argsort(coordinates, stable=True)
    ordered = ops.index_select(coordinates, 0, order)
    first = ops.searchsorted(ordered, index)
    counts = ops.searchsorted(ordered, index, right=True) - first
    positions = ops.repeat_interleave(ops.arange(index.shape[0]), counts)
    # the number of each found element among those of its coordinate
    starts = ops.cumsum(counts, 0) - counts
    among = ops.arange(positions.shape[0]) - ops.index_select(starts, 0, positions)
    return positions, ops.index_select(order, 0, ops.index_select(first, 0, positions) + among)
