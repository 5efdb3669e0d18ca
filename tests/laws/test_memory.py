"""Memory of one call: at most twice inputs plus result, unless its entry, and so docs/memory.md, says otherwise.

Each sample call of each entry is taken for as many samples as make some megabytes, once with all inputs for each
sample and once with all but the first shared; the smaller need counts. What kernels need is read off the memory plan;
what NumPy takes in operations that it computes is traced while they run.

    python tests/laws/test_memory.py    writes the table of docs/memory.md
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

import twofold.ops  # noqa: F401  (registers all operations)
from twofold.compiler.compile import compile_graph
from twofold.compiler.requests import wait_for_compiler
from twofold.compiler.schedule.memory import plan
from twofold.compiler.schedule.schedule import Schedule
from twofold.ir.bind import input_node
from twofold.ir.graph import Graph
from twofold.ir.op import REGISTRY
from twofold.ir.types import tensor_type
from twofold.transforms.derived import closed_graph
from twofold.transforms.pipeline import run_passes
from twofold.transforms.vmap import batch_graph

ENOUGH = 1 << 22  # bytes of inputs and result: fixed costs no longer count
ENOUGH_FOR_NUMPY = 1 << 17  # where Python runs for each sample
ROUNDING = 0.02  # buffers lie at multiples of 64 bytes
PAGE = Path(__file__).resolve().parents[2] / "docs" / "memory.md"
MARK = "| operation | times | why |\n| --- | --- | --- |\n"


def for_many(op: Any, sample: Any, enough: int = ENOUGH) -> Iterator[tuple[Graph, list[bool]]]:
    """The call for many samples: every input for each, and all but the first shared."""
    graph = closed_graph(op, sample.attrs, sample.types)
    count = len(sample.types)
    result = graph.outputs[0].type.nbytes
    for flags in ([True] * count, [True] + [False] * (count - 1))[: 1 if count == 1 else 2]:
        per_sample = sum(type.nbytes for type, flag in zip(sample.types, flags, strict=True) if flag) + result
        if not per_sample:
            continue
        size = max(enough // per_sample, 1)
        types = [
            tensor_type(type.dtype, (size, *type.shape)) if flag else type
            for type, flag in zip(sample.types, flags, strict=True)
        ]
        nodes = [input_node(k, type) for k, type in enumerate(types)]
        ((made, has_samples),) = batch_graph(graph, nodes, flags)
        if has_samples:
            yield Graph(types, [made]), flags


def at_hand(graph: Graph) -> int:
    return sum(type.nbytes for type in graph.input_types) + graph.outputs[0].type.nbytes


def planned(op: Any, sample: Any) -> float:
    """Bytes of a call in all, over those of inputs and result, as the memory plan says; 0 without elements."""
    needs = []
    for graph, _ in for_many(op, sample):
        schedule = Schedule(run_passes(graph))
        _, arena = plan([each.buffers for each in schedule.instructions], schedule.sizes, True)
        needs.append(1 + arena / at_hand(graph))
    return min(needs, default=0)


def measured(op: Any, sample: Any) -> float:
    """As ``planned``, with what NumPy takes while the call runs."""
    needs = []
    for graph, flags in for_many(op, sample, ENOUGH_FOR_NUMPY):
        program = compile_graph(graph)
        arrays = [
            numpy.ascontiguousarray(numpy.broadcast_to(array, type.shape)) if flag else numpy.array(array)
            for array, type, flag in zip(sample.arrays, graph.input_types, flags, strict=True)
        ]
        result = numpy.zeros(graph.outputs[0].shape, graph.outputs[0].dtype.numpy)
        positions = [array.ctypes.data for array in arrays], [result.ctypes.data]
        program.program().run(*positions)  # what the first call imports is no memory of a call
        wait_for_compiler()
        tracemalloc.start()
        try:
            program.program().run(*positions)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        needs.append(1 + (program.arena()[1] + peak) / at_hand(graph))
    return min(needs, default=0)


def limit(op: Any, sample: Any) -> float:
    """What the entry of a call, or of an operation that it is made of, allows."""
    parts = {node.op for node in closed_graph(op, sample.attrs, sample.types).nodes()}
    return max(part.memory[0] for part in (op, *parts))


ENTRIES = [op for op in REGISTRY.values() if op.samples()]
COMPUTED_BY_NUMPY = [op for op in ENTRIES if op.kind == "host"]


@pytest.mark.parametrize("op", ENTRIES, ids=lambda op: op.name)
def test_the_memory_plan_keeps_the_limit(op: Any) -> None:
    calls = [sample for sample in op.samples() if sample.types]
    for sample in calls:
        assert planned(op, sample) <= limit(op, sample) + ROUNDING, sample
    if op.memory[0] > 2 and op.kind != "host":
        assert max(planned(op, sample) for sample in calls) > 2 + ROUNDING, (
            "the entry allows more than it needs"
        )


@pytest.mark.parametrize("op", COMPUTED_BY_NUMPY, ids=lambda op: op.name)
def test_what_numpy_takes_keeps_the_limit(op: Any) -> None:
    for sample in [sample for sample in op.samples() if sample.types][:1]:
        assert measured(op, sample) <= op.memory[0]


def table() -> str:
    rows = [(op.name, *op.memory) for op in sorted(ENTRIES, key=lambda op: op.name) if op.memory[0] > 2]
    return "".join(f"| `{name}` | {times:g} | {why} |\n" for name, times, why in rows)


def test_the_page_says_what_the_entries_say() -> None:
    assert PAGE.read_text().partition(MARK)[2] == table()


if __name__ == "__main__":
    text = PAGE.read_text()
    PAGE.write_text(text.partition(MARK)[0] + MARK + table())
