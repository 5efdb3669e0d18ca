"""The pass pipeline of the compiler: graph to graph."""

from __future__ import annotations

from collections.abc import Callable

from twofold.config import config
from twofold.ir.graph import Graph, inline_calls
from twofold.ir.verify import verify
from twofold.transforms.added_blocks import sum_added_blocks
from twofold.transforms.canonicalize import canonicalize, transpose_products
from twofold.transforms.control_flow import merge_loops, prune_control_flow, separate_blocks
from twofold.transforms.fold import fold
from twofold.transforms.in_place_loops import update_carries_in_place
from twofold.transforms.products_in_blocks import products_in_blocks
from twofold.transforms.sparse_rows import sparse_table_updates

PASSES: tuple[Callable[[Graph], Graph], ...] = (
    # symbols of a callee are known only at its call sites
    inline_calls,
    # constants before the rest: a folded factor of 1 is one that canonicalize removes
    fold,
    # needs folded offsets of slices; afterwards it is known which results of loops and branches are read
    separate_blocks,
    merge_loops,
    prune_control_flow,
    # once no loop changes any more
    update_carries_in_place,
    # fewer nodes for all that follows; equal nodes merge by themselves, as nodes are interned
    canonicalize,
    # once loops know their updates, which are additions of blocks, too
    sum_added_blocks,
    # needs sums of rows directly below their consumers
    sparse_table_updates,
    # its loops run this pipeline on their bodies
    products_in_blocks,
    # last, on the final users of each product; the scheduler folds its transpositions into strides
    transpose_products,
)
"""All keep every bit. Dead code needs no pass: what no output reaches is not part of a graph."""


def run_passes(graph: Graph) -> Graph:
    """The graph after all passes: same inputs, and outputs with the same bits.

    Raises:
        GraphError: With ``config.verify``, the graph is invalid before the first pass or after one of them.
    """
    for run in PASSES:
        if config.verify:
            verify(graph)
        graph = run(graph)
    if config.verify:
        verify(graph)
    return graph
