"""Fusion, threads and memory reuse change no bit of any result."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy
from hypothesis import HealthCheck, given, settings

sys.path.insert(0, str(Path(__file__).parent))

from tests.compiler.schedule.random_graphs import arrays_for, graphs
from tests.compiler.schedule.runner import run_program
from twofold.compiler.compile import compile_graph
from twofold.compiler.schedule.memory import last_uses
from twofold.ir.graph import Graph
from twofold.ir.interpret import evaluate, widen

EXAMPLES = settings(
    max_examples=int(os.environ.get("TWOFOLD_TEST_EXAMPLES", "40")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def same(first: list[numpy.ndarray], second: list[numpy.ndarray]) -> bool:
    return all(a.tobytes() == b.tobytes() for a, b in zip(first, second, strict=True))


@EXAMPLES
@given(graphs())
def test_fused_has_the_bits_of_single_nodes_and_of_any_split(graph: Graph) -> None:
    arrays = arrays_for(graph)
    fused = compile_graph(graph)
    found = run_program(fused, arrays)
    assert same(found, run_program(compile_graph(graph, fuse=False), arrays))
    for pieces in (2, 7):
        assert same(found, run_program(fused, arrays, pieces))


@EXAMPLES
@given(graphs())
def test_results_are_close_to_the_reference(graph: Graph) -> None:
    arrays = arrays_for(graph)
    for output, found, expected in zip(
        graph.outputs, run_program(compile_graph(graph), arrays), evaluate(graph, arrays), strict=True
    ):
        wide = (widen(value, output.dtype).astype(float) for value in (found, expected))
        tolerance = 0.05 if any(node.dtype.itemsize == 2 for node in graph.nodes()) else 1e-3
        if output.dtype.kind == "f" and not _has_jumps(graph):
            numpy.testing.assert_allclose(*wide, rtol=tolerance, atol=tolerance)


def _has_jumps(graph: Graph) -> bool:
    """Whether a rounding difference may become a whole number."""
    return any(node.op.name in ("floor", "argmax", "cast") for node in graph.nodes())


@EXAMPLES
@given(graphs())
def test_live_values_never_overlap_in_the_arena(graph: Graph) -> None:
    schedule = compile_graph(graph).schedule
    program = compile_graph(graph)
    uses = [instruction.buffers for instruction in schedule.instructions]
    offsets, _ = program.arena()
    first: dict[object, int] = {}
    where: dict[object, int] = {}
    for position, (buffers, made) in enumerate(zip(uses, program.instructions, strict=True)):
        for buffer, (kind, number) in zip(buffers, made[1], strict=True):
            if kind == 2:
                first.setdefault(buffer, position)
                where[buffer] = offsets[number]
    last = last_uses(uses)
    for a in where:
        for b in where:
            apart_in_time = last[a] < first[b] or last[b] < first[a]
            low, high = sorted((a, b), key=lambda buffer: where[buffer])
            assert a == b or apart_in_time or where[low] + schedule.sizes[low] <= where[high]
