"""The pass pipeline of the compiler: graph to graph."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from twofold.config import config
from twofold.ir.graph import Graph, inline_calls
from twofold.ir.op import ContractionOp
from twofold.ir.views import assembly, transposes_kernel
from twofold.transforms.canonicalize import canonicalize, transpose_products
from twofold.transforms.fold import fold
from twofold.transforms.sparse_rows import sparse_table_updates


def _where(applies: Callable[[Graph], bool], module: str, name: str) -> Callable[[Graph], Graph]:
    """A pass that is imported when the first graph comes to which it applies."""

    def run(graph: Graph) -> Graph:
        if not applies(graph):
            return graph
        made: Graph = getattr(import_module(f"twofold.transforms.{module}"), name)(graph)
        return made

    run.__name__ = name
    return run


def _has_control_flow(graph: Graph) -> bool:
    return any(node.op.kind == "control_flow" for node in graph.nodes())


def _has_assemblies(graph: Graph) -> bool:
    return any(assembly(node) is not None for node in graph.nodes())


def _has_batched_products(graph: Graph) -> bool:
    return any(isinstance(node.op, ContractionOp) and node.ndim > 2 for node in graph.nodes())


def _has_transposed_kernels(graph: Graph) -> bool:
    return any(map(transposes_kernel, graph.nodes()))


PASSES: tuple[Callable[[Graph], Graph], ...] = (
    # symbols of a callee are known only at its call sites
    inline_calls,
    # constants before the rest: a folded factor of 1 is one that canonicalize removes
    fold,
    # needs folded offsets of slices; afterwards it is known which results of loops and branches are read
    _where(_has_assemblies, "control_flow", "separate_blocks"),
    _where(_has_control_flow, "control_flow", "merge_loops"),
    _where(_has_control_flow, "control_flow", "prune_control_flow"),
    # once no loop changes any more
    _where(_has_control_flow, "in_place_loops", "update_carries_in_place"),
    # fewer nodes for all that follows; equal nodes merge by themselves, as nodes are interned
    canonicalize,
    # once equal values are one node, and identities are gone
    _where(_has_transposed_kernels, "transpositions", "sink_transpositions"),
    # once loops know their updates, which are additions of blocks, too
    _where(_has_assemblies, "added_blocks", "sum_added_blocks"),
    # needs sums of rows directly below their consumers
    sparse_table_updates,
    # its loops run this pipeline on their bodies
    _where(_has_batched_products, "products_in_blocks", "products_in_blocks"),
    # last, on the final users of each product; the scheduler folds its transpositions into strides
    transpose_products,
)
"""All keep every bit. Dead code needs no pass: what no output reaches is not part of a graph."""


def run_passes(graph: Graph) -> Graph:
    """The graph after all passes: same inputs, and outputs with the same bits.

    Raises:
        GraphError: With ``config.verify``, the graph is invalid before the first pass or after one of them.
    """
    verify = import_module("twofold.ir.verify").verify if config.verify else None
    for run in PASSES:
        if verify is not None:
            verify(graph)
        graph = run(graph)
    if verify is not None:
        verify(graph)
    return graph
