"""Sums of padded blocks are one operation: the bits of the additions, zeros with a sign and NaNs included."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import twofold as torch
from twofold.compiler.compile import compile_graph
from twofold.dtypes import float32, int64
from twofold.ir.bind import constant, input_node
from twofold.ir.graph import Graph
from twofold.ir.types import tensor_type
from twofold.ops.base import apply, ops
from twofold.transforms.added_blocks import sum_added_blocks

SUM = "sum_of_blocks"
VALUES = numpy.array([0.0, -0.0, 1.5, -1.5, numpy.inf, -numpy.inf, numpy.nan], numpy.float32)


def names(graph: Graph) -> list[str]:
    return [node.op.name for node in graph.nodes()]


def padded(value: Any, start: Any, shape: Any, axis: int = 0, step: int = 1, fill: float = 0.0) -> Any:
    steps = tuple(step if k == axis else 1 for k in range(len(shape)))
    return apply("pad_block", value, constant(fill, float32), start, attrs=(shape, steps, (axis,)))


def in_order(shape: Any, axis: int, blocks: list[Any], starts: list[Any]) -> Any:
    total: Any = None
    for block, start in zip(blocks, starts, strict=True):
        whole = numpy.zeros(shape, numpy.float32)
        whole[
            tuple(
                slice(start, start + block.shape[k]) if k == axis else slice(None) for k in range(len(shape))
            )
        ] = block
        with numpy.errstate(invalid="ignore"):
            total = whole if total is None else total + whole
    return total


@given(st.data())
def test_any_blocks_have_the_bits_of_the_additions(data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from([(5,), (3, 20), (2, 4, 3), (18, 2)]))
    axis = data.draw(st.integers(0, len(shape) - 1))
    blocks, starts = [], []
    for _ in range(data.draw(st.integers(2, 5))):
        size = data.draw(st.integers(0, shape[axis]))
        own = (*shape[:axis], size, *shape[axis + 1 :])
        seed = data.draw(st.integers(0, 99))
        blocks.append(numpy.random.default_rng(seed).choice(VALUES, own))
        starts.append(data.draw(st.integers(0, shape[axis] - size)))
    types = [tensor_type(float32, block.shape) for block in blocks] + [tensor_type(int64, ())] * len(starts)
    inputs = [input_node(k, type) for k, type in enumerate(types)]
    total: Any = None
    for value, start in zip(inputs[: len(blocks)], inputs[len(blocks) :], strict=True):
        term = padded(value, start, shape, axis)
        total = term if total is None else apply("add", total, term)
    graph = Graph(types, [total])
    assert names(sum_added_blocks(graph)).count(SUM) == 1
    arrays = [*blocks, *[numpy.array(start) for start in starts]]
    made = numpy.empty(shape, numpy.float32)
    compile_graph(graph).program().run([array.ctypes.data for array in arrays], [made.ctypes.data])
    expected = in_order(shape, axis, blocks, starts)
    numpy.testing.assert_array_equal(made, expected)
    numpy.testing.assert_array_equal(numpy.signbit(made[made == 0]), numpy.signbit(expected[expected == 0]))


def graph_of(make: Any, *shapes: Any) -> Graph:
    types = [tensor_type(float32, shape) for shape in shapes]
    return Graph(types, make(*[input_node(k, type) for k, type in enumerate(types)]))


CASES: dict[str, tuple[Any, int]] = {
    "a whole value among blocks": (lambda a, b, w: [padded(a, 0, (6,)) + w + padded(b, 2, (6,))], 1),
    "one block": (lambda a, b, w: [padded(a, 0, (6,)) + w], 0),
    "a block that is read elsewhere": (
        lambda a, b, w: [padded(a, 0, (6,)) + padded(b, 1, (6,)), padded(b, 1, (6,)) * 2],
        0,
    ),
    "elements apart": (lambda a, b, w: [padded(a, 0, (6,), step=2) + padded(b, 1, (6,), step=2)], 0),
    "blocks in zeros with a sign": (
        lambda a, b, w: [padded(a, 0, (6,), fill=-0.0) + padded(b, 3, (6,), fill=-0.0)],
        0,
    ),
    "another axis": (
        lambda a, b, w: [padded(padded(a, 0, (6,)), 0, (6,)) + padded(b, 0, (6,)) + padded(a, 3, (6,))],
        1,
    ),
    "two sums": (
        lambda a, b, w: [
            (padded(a, 0, (6,)) + padded(b, 1, (6,))) + (padded(b, 2, (6,)) + padded(a, 3, (6,)))
        ],
        2,
    ),
    "products between": (
        lambda a, b, w: [
            ops.exp(padded(a, 0, (6,)) + padded(b, 1, (6,))) + padded(b, 2, (6,)) + padded(a, 3, (6,))
        ],
        2,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_which_sums_are_one_operation(name: str) -> None:
    make, count = CASES[name]
    graph = graph_of(make, (3,), (3,), (6,))
    assert names(sum_added_blocks(graph)).count(SUM) == count


def test_more_terms_than_one_operation_has_are_several() -> None:
    graph = graph_of(
        lambda a: [sum((padded(a * float(k), k, (40,)) for k in range(1, 36)), padded(a, 0, (40,)))], (3,)
    )
    assert names(sum_added_blocks(graph)).count(SUM) == 3


GATES = {
    "chunk": lambda x: sum(k * torch.tanh(part) for k, part in enumerate(x.chunk(3, 1), 1)),
    "split in unequal parts": lambda x: sum(
        part.exp().sum() * k for k, part in enumerate(x.split([1, 3, 1, 4], 1), 1)
    ),
    "overlapping": lambda x: (x[:, :-1] * x[:, 1:]).sum() + (x[:, 2:] * 3).sum(),
    "whole between": lambda x: x[:, :4].sum() + (x * x).sum() + x[:, 5:].exp().sum() + (2 * x[:, 5:]).sum(),
    "many": lambda x: sum(((k + 1) * torch.sin(x[k % 3 : k % 3 + 2])).sum() for k in range(40)),
    "twice": lambda x: (x.chunk(3, 1)[0] * x.chunk(3, 1)[0]).sum(),
}


def gradients(function: Any, x: Any, through: Any) -> list[Any]:
    given = x.clone().requires_grad_()
    inner = given * 1.0
    result = function(inner).sum()
    through(result)
    (first,) = torch.autograd.grad(result, given, create_graph=True)
    second = torch.autograd.grad((first * first).sum(), given, allow_unused=True)[0]
    return [first.detach().numpy(), None if second is None else second.numpy()]


@pytest.mark.parametrize("name", GATES)
def test_gradients_of_slices_are_the_same_in_every_way(name: str) -> None:
    function = GATES[name]
    x = torch.tensor(numpy.random.default_rng(0).standard_normal((5, 9)).astype(numpy.float32))
    pending, observed = (gradients(function, x, through) for through in (lambda r: None, lambda r: r.item()))
    functional = torch.func.grad(lambda v: function(v * 1.0).sum())(x).numpy()
    compiled = torch.compile(torch.func.grad(lambda v: function(v * 1.0).sum()))(x).numpy()
    for other in (observed[0], functional, compiled):
        assert other.tobytes() == pending[0].tobytes()
    if pending[1] is not None:
        assert observed[1].tobytes() == pending[1].tobytes()
    wide = x.double()
    for position in ((0, 0), (2, 4), (4, 8)):
        step = torch.zeros_like(wide)
        step[position] = 1e-5
        difference = (function(wide + step).sum() - function(wide - step).sum()).item() / 2e-5
        assert pending[0][position] == pytest.approx(difference, rel=1e-3, abs=1e-4)


def test_the_gradient_of_what_is_cut_in_parts_is_one_call() -> None:
    x = torch.ones(4, 6, requires_grad=True)
    with torch.no_batching(), torch.profile() as profile:
        a, b, c = (x * 2.0).chunk(3, 1)
        (a.exp() * b.sin() * c.cos()).sum().backward()
        x.grad.tolist()
    backward = [call.name for call in profile.recording.calls() if call.is_backward]
    assert backward.count("slice") == 1 and "add" not in backward
