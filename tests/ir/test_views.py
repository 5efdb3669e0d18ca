"""What is said of views holds of their values, for every sample call of every view."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "ops"))

import samples as sampled

from twofold.ir.interpret import evaluate
from twofold.ir.op import REGISTRY
from twofold.ir.views import (
    below_reshapes,
    below_views,
    is_broadcast,
    is_identity,
    is_matrix_transpose,
    is_reshape,
)
from twofold.transforms.reverse import closed_graph

VIEWS = [name for name in sampled.operations_with_samples() if REGISTRY[name].kind == "view"]


@pytest.mark.parametrize("name", VIEWS)
def test_what_is_said_of_a_view_holds_of_its_value(name: str) -> None:
    op: Any = REGISTRY[name]
    for sample in op.samples():
        graph = closed_graph(op, sample.attrs, sample.types)
        (node,) = graph.outputs
        if node.op.kind != "view" or node.inputs[0].op.name != "input":
            continue
        source = sample.arrays[node.inputs[0].attrs[0]]
        (value,) = evaluate(graph, sample.arrays)
        if is_identity(node):
            numpy.testing.assert_array_equal(value, source)
        if is_reshape(node):
            numpy.testing.assert_array_equal(value.ravel(), source.ravel())
        if is_broadcast(node):
            numpy.testing.assert_array_equal(value, numpy.broadcast_to(source, node.shape))
        if is_matrix_transpose(node):
            numpy.testing.assert_array_equal(value, numpy.swapaxes(source, -1, -2))
        assert is_reshape(node) or name != "reshape"
        assert is_broadcast(node) or name != "broadcast_to"
        assert below_views(node) is node.inputs[0]
        assert below_reshapes(node) is (node.inputs[0] if is_reshape(node) or is_identity(node) else node)
