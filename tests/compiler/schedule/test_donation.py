"""Outputs that take over the memory of inputs."""

import pytest

import twofold as torch
from twofold import _core
from twofold.compiler.compile import compile_graph
from twofold.dtypes import float32, int64
from twofold.ir.bind import input_node
from twofold.ir.graph import Graph
from twofold.ir.types import tensor_type
from twofold.ops.base import apply, ops


def compiled(make, *types):
    nodes = [input_node(k, type) for k, type in enumerate(types)]
    return compile_graph(Graph(types, make(*nodes)))


def test_element_by_element_updates_take_over_their_input():
    square = tensor_type(float32, (40, 50))
    assert compiled(lambda p, g: [p - g * 0.5], square, square).donations in ([(0, 0)], [(1, 0)])


def test_an_input_that_is_read_elsewhere_keeps_its_memory():
    square = tensor_type(float32, (40, 40))
    assert compiled(lambda p: [p + ops.permute(p, (1, 0))], square).donations == []
    assert (0, 0) not in compiled(lambda p, g: [p - g, ops.matmul(ops.exp(g), p)], square, square).donations


def test_kernels_that_report_nothing_may_come_later():
    cube = tensor_type(float32, (4, 10, 40))
    program = compiled(lambda p, x: [p * 2, apply("cumulative_sum", ops.exp(x))], cube, cube)
    assert (0, 0) in program.donations


def test_no_memory_changes_hands_before_a_kernel_that_may_fail():
    table, positions = tensor_type(float32, (40, 50)), tensor_type(int64, (3,))
    program = compiled(lambda p, k: [p * 2, ops.index_select(ops.exp(p), 0, k)], table, positions)
    fallible = [
        k for k, item in enumerate(program.schedule.instructions) if item.nodes[0].op.kind == "custom"
    ]
    writer = [k for k, item in enumerate(program.schedule.instructions) if ("output", 0) in item.buffers]
    assert (0, 0) not in program.donations or min(writer) > max(fallible)


def test_a_failed_run_leaves_parameters_whole():
    w = torch.ones(4, 5, requires_grad=True)
    for turn in range(6):
        before = w.tolist()
        positions = torch.tensor([1, 9 if turn == 5 else 3])
        loss = w.index_select(0, positions).sum()
        loss.backward()
        with torch.no_grad():
            w.sub_(w.grad)
        if turn < 5:
            loss.item()
            torch.wait_for_compiler()
        else:
            with pytest.raises(IndexError, match="9"):
                loss.item()
        w.grad = None
    assert before == [[1.0] * 5, [-4.0] * 5, [1.0] * 5, [-4.0] * 5]


def test_what_failed_is_run_again_on_whole_inputs():
    data = torch.arange(6.0)._realise()
    _core.set_tier("fused")
    try:
        index = torch.full((40,), 5)._realise()
        shifted = index + 1  # could take over the memory of index, which dies with the run
        picked = data[shifted]
        del index
        with pytest.raises(IndexError, match="index 6 is outside"):
            picked.sum().item()
    finally:
        _core.set_tier("auto")
    assert shifted is not None


def test_changed_rows_that_are_returned_twice():
    rows = [tensor_type(float32, (40, 5)), tensor_type(int64, (2,)), tensor_type(float32, (2, 5))]

    def program(data, index, new):
        changed = apply("changed_rows", data, index, new, attrs=("data",))
        return [changed, changed]

    assert compiled(program, *rows).donations in ([(0, 0)], [(0, 1)])
