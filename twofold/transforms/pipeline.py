"""The passes that every compiled graph goes through, in order."""

from __future__ import annotations

from collections.abc import Callable

from twofold.config import config
from twofold.ir.graph import Graph, inline_calls
from twofold.ir.verify import verify
from twofold.transforms.canonicalize import canonicalize, transpose_products
from twofold.transforms.control_flow import merge_loops, prune_programs, separate_blocks
from twofold.transforms.fold import fold
from twofold.transforms.in_place_loops import change_in_place
from twofold.transforms.products_in_blocks import products_in_blocks
from twofold.transforms.sparse_rows import keep_rows

PASSES: tuple[Callable[[Graph], Graph], ...] = (
    # what calls leave open is known only where they stand
    inline_calls,
    # constants before the rest: a folded factor of 1 is one that canonicalize removes
    fold,
    # on folded starts of blocks; what comes apart shows which results of programs are read
    separate_blocks,
    merge_loops,
    prune_programs,
    # when no loop changes any more
    change_in_place,
    # fewer nodes for all that follows; equal nodes merge by themselves, as nodes are interned
    canonicalize,
    # when sums of rows stand right below what reads them
    keep_rows,
    # whose loops run all of these on their bodies
    products_in_blocks,
    # last, on the final users of each product; its transpositions are read as strides by the scheduler
    transpose_products,
)
"""All keep every bit. Dead nodes need no pass: what no output reaches is not part of a graph."""


def run_passes(graph: Graph) -> Graph:
    """The graph after all passes: same inputs, and outputs with the same bits.

    With ``config.verify`` it is checked before the first and after each; raises GraphError naming what is wrong.
    """
    for run in PASSES:
        if config.verify:
            verify(graph)
        graph = run(graph)
    if config.verify:
        verify(graph)
    return graph
