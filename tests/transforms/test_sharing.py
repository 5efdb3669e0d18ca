"""Gradients of several inputs of a call: what they have in common is computed once, and only if somebody wants it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy
import pytest

import twofold as torch
import twofold.nn.functional as F

sys.path.insert(0, str(Path(__file__).parent.parent / "ops"))

import samples as sampled

from twofold import _core
from twofold.ir.bind import input_node
from twofold.ir.graph import Graph
from twofold.ir.node import Node
from twofold.ir.op import REGISTRY, ContractionOp, TemplateOp
from twofold.runtime.instances import OpInstance, compile_op_instance
from twofold.transforms.derived import stable_graph
from twofold.transforms.reverse import split_vjp, vjp_of

NAMES = sampled.operations_with_samples()


def whole(pieces: dict[int, Any], index: int, values: dict[int | str, Node]) -> Node:
    """A gradient with every shared value in its place; ``values`` are what the inputs stand for, by slot."""
    graph, used = pieces[index]
    for slot in used:
        if slot not in values:
            values[slot] = whole(pieces, slot, values)
    made: Node = graph.inline([values[slot] for slot in used])[0]
    return made


@pytest.mark.parametrize("name", NAMES)
def test_the_pieces_put_together_are_the_gradient_of_each_input_alone(name: str) -> None:
    op: Any = REGISTRY[name]
    for sample in list(op.samples())[:2] if op.differentiable else ():
        graph = stable_graph(op, sample.attrs, sample.types)
        if any(node.op.kind == "control_flow" for node in graph.nodes()):
            continue  # results are packed: another graph of the same bits
        floating = [k for k, type in enumerate(sample.types) if type.dtype.is_differentiable]
        wanted = [k for k in floating if k not in op.without_gradient]
        pieces = split_vjp(op, sample.attrs, graph, wanted)
        for k in wanted:
            alone = vjp_of(op, sample.attrs, graph, k)
            assert (alone is None) == (k not in pieces)
            if alone is None:
                continue
            types = alone[0].input_types
            values = {slot: input_node(j, types[j]) for j, slot in enumerate(alone[1])}
            assert whole(pieces, k, values) is alone[0].outputs[0]


@contextmanager
def computed() -> Iterator[list[Graph]]:
    """The graphs that are compiled by themselves meanwhile."""
    graphs: list[Graph] = []

    def compiled(instance: OpInstance) -> Any:
        graphs.append(instance.graph)
        return compile_op_instance(instance)

    _core.set_templates("off")  # sizes that were met before would not be compiled again
    _core.set_hook("compile_op_instance", compiled)
    try:
        yield graphs
    finally:
        _core.set_hook("compile_op_instance", compile_op_instance)
        _core.set_templates("second_size")


def backward(run: Callable[[], Any]) -> list[Node]:
    """The nodes that the backward pass of what ``run`` gives computes, op by op."""
    with computed() as graphs:
        result = run()
        result.detach().numpy()
        cotangent = torch.ones(*result.shape)
        _core.flush()
        graphs.clear()
        result.backward(cotangent)
        _core.flush()
    return [node for graph in graphs for node in graph.nodes()]


def products(run: Callable[[], Any]) -> int:
    """How many matrix products and convolutions are among them."""
    return sum(isinstance(node.op, (ContractionOp, TemplateOp)) for node in backward(run))


def leaf(*shape: int) -> Any:
    numbers = numpy.random.default_rng(sum(shape)).normal(size=shape).astype("float32")
    return torch.tensor(numbers, requires_grad=True)


def test_attention_computes_weights_and_their_gradient_once() -> None:
    query, key, value = leaf(2, 11, 13), leaf(2, 17, 13), leaf(2, 17, 9)
    # the weights and their cotangent, and one product for each input
    assert products(lambda: F.scaled_dot_product_attention(query, key, value)) == 5


def test_what_nobody_wants_is_not_computed() -> None:
    query, key, value = leaf(2, 11, 14).detach(), leaf(2, 17, 14).detach(), leaf(2, 17, 9)
    assert products(lambda: F.scaled_dot_product_attention(query, key, value)) == 2
    weight = leaf(4, 3, 3, 3)  # sizes differ, as what is known by its sizes is not compiled again
    assert products(lambda: F.conv2d(leaf(2, 3, 9, 9), weight)) == 2
    assert products(lambda: F.conv2d(leaf(3, 3, 9, 9).detach(), weight)) == 1
    assert products(lambda: F.conv2d(leaf(4, 3, 9, 9), weight.detach())) == 1


def test_gradients_asked_for_alone_have_the_bits_of_those_asked_for_together() -> None:
    values = [leaf(2, 11, 15), leaf(2, 17, 15), leaf(2, 17, 9)]
    result = F.scaled_dot_product_attention(*values, is_causal=True).sin().sum()
    together = torch.autograd.grad(result, values, retain_graph=True)
    for value, found in zip(values, together, strict=True):
        (alone,) = torch.autograd.grad(result, value, retain_graph=True)
        assert alone.numpy().tobytes() == found.numpy().tobytes()


def test_a_recurrent_layer_runs_backwards_once() -> None:
    layer, x = torch.nn.LSTM(5, 7), leaf(6, 2, 5)
    names = [node.op.name for node in backward(lambda: layer(x)[0])]
    assert names.count("lstm_cotangents") == 1


def test_second_derivatives_through_shared_values() -> None:
    rng = numpy.random.default_rng(3)
    arrays = [rng.normal(size=shape) for shape in ((5, 4), (6, 4), (6, 3))]
    direction = [rng.normal(size=array.shape) for array in arrays]

    def slope(step: float) -> tuple[Any, list[Any]]:
        """The derivative along the direction, at a distance."""
        values = [
            torch.tensor(array + step * along, requires_grad=True)
            for array, along in zip(arrays, direction, strict=True)
        ]
        result = F.scaled_dot_product_attention(*values).sin().sum()
        found = torch.autograd.grad(result, values, create_graph=True)
        total = sum((g * torch.tensor(along)).sum() for g, along in zip(found, direction, strict=True))
        return total, values

    total, values = slope(0.0)
    second = torch.autograd.grad(total, values)
    along = sum(float((g.numpy() * d).sum()) for g, d in zip(second, direction, strict=True))
    step = 1e-5
    numeric = (float(slope(step)[0]) - float(slope(-step)[0])) / (2 * step)
    assert along == pytest.approx(numeric, rel=1e-6)


def test_kept_values_are_asked_for_once() -> None:
    unpacked = []

    def unpack(value: Any) -> Any:
        unpacked.append(value)
        return value

    values = [leaf(2, 11, 16), leaf(2, 17, 16), leaf(2, 17, 9)]
    with torch.autograd.graph.saved_tensors_hooks(lambda value: value, unpack):
        result = F.scaled_dot_product_attention(*values)
        result.detach().numpy()
    result.sum().backward()
    assert len(unpacked) == 3
