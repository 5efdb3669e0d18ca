"""Written-out attention: large batches of products become loops over blocks, with the same bits."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

from twofold.compiler.compile import compile_graph
from twofold.dtypes import float32
from twofold.ir.bind import input_node
from twofold.ir.graph import Graph
from twofold.ir.types import tensor_type
from twofold.ops.base import apply, ops
from twofold.ops.control_flow import blocks
from twofold.transforms.pipeline import run_passes

SHAPES = [
    ((3, 2, 5, 4), (3, 2, 7, 4), (3, 2, 7, 6), (5, 7)),
    ((1, 3, 5, 4), (1, 3, 7, 4), (1, 3, 7, 6), (3, 1, 7)),
    ((1, 140, 4), (1, 9, 4), (1, 9, 3), (140, 9)),
]


def written_out(shapes: Any, with_weights: bool) -> Graph:
    types = [tensor_type(float32, shape) for shape in shapes]
    query, key, value, mask = [input_node(k, type) for k, type in enumerate(types)]
    last = query.ndim - 1
    turned = ops.permute(key, (*range(last - 1), last, last - 1))
    weights = apply("softmax", ops.matmul(query, turned) / 2.0 + mask, attrs=(last,))
    return Graph(types, [ops.matmul(weights, value), *([weights] if with_weights else [])])


def bits(graph: Graph, arrays: list[Any]) -> list[bytes]:
    results = [numpy.zeros(node.shape, node.dtype.numpy) for node in graph.outputs]
    pointers = [array.ctypes.data for array in arrays], [result.ctypes.data for result in results]
    compile_graph(graph).program().run(*pointers)
    return [result.tobytes() for result in results]


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_blocks_keep_every_bit(shapes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = numpy.random.default_rng(1)
    arrays = [generator.normal(size=shape).astype("float32") for shape in shapes]
    wanted = bits(written_out(shapes, False), arrays)
    scores = tensor_type(float32, (*shapes[0][:-1], shapes[1][-2]))
    monkeypatch.setattr(blocks, "WHOLE", scores.nbytes - 1)
    monkeypatch.setattr(blocks, "BLOCK", 1)
    graph = written_out(shapes, False)
    assert any(node.op.kind == "control_flow" for node in run_passes(graph).nodes())
    assert bits(graph, arrays) == wanted
    kept = written_out(shapes, True)  # what is read outside is stored whole
    assert not any(node.op.kind == "control_flow" for node in run_passes(kept).nodes())
    assert bits(kept, arrays)[0] == wanted[0]
