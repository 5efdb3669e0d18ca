"""Updates of large tables by sums of few rows: the same bits as with a dense gradient, and no other row touched."""

import numpy as np
import pytest

import twofold as torch
import twofold.static as tf
from twofold import _core
from twofold.compiler.compile import compile_graph
from twofold.dtypes import float32, int64
from twofold.ir.bind import input_node
from twofold.ir.graph import Graph
from twofold.ir.types import tensor_type
from twofold.ops.base import apply, ops
from twofold.transforms.sparse_rows import sparse_table_updates

ROWS, WIDTH = 3000, 9
F = torch.nn.functional


def table(dtype=torch.float32):
    drawn = np.random.default_rng(3).standard_normal((ROWS, WIDTH))
    drawn[5] = -0.0
    drawn[6], drawn[7] = np.inf, np.nan
    return torch.tensor(drawn, dtype=dtype)


def in_both_tiers(run):
    found = []
    try:
        for tier in ("unfused", "fused"):
            _core.set_tier(tier)
            found.append([value.view(np.uint8) for value in map(np.ascontiguousarray, run())])
    finally:
        _core.set_tier("auto")
    for first, fused in zip(*found, strict=True):
        np.testing.assert_array_equal(first, fused)


POSITIONS = [3, ROWS - 1, 3, 5, 6, 3]
UPDATES = {
    "step": lambda w, g, lr: w - g * lr,
    "step with a factor in front": lambda w, g, lr: g * -lr + w,
    "scaled twice": lambda w, g, lr: w + (g / 3) * -lr,
    "per column": lambda w, g, lr: w - g * (torch.arange(WIDTH) * lr).to(w.dtype),
    "where it is not 0": lambda w, g, lr: torch.where(g != 0, w + g / (torch.sqrt(w * w) + lr), w),
    "where it is 0": lambda w, g, lr: torch.where(g == 0, w + g * lr, w),
    "with decay": lambda w, g, lr: w - (g + w * 0.1) * lr,
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", UPDATES)
def test_updates_keep_the_bits_of_dense_ones(name, dtype):
    def run():
        found = []
        for lr in (0.3, 0.0, -0.5, float("inf"), float("nan")):
            w = table(dtype).requires_grad_()
            rows = F.embedding(torch.tensor(POSITIONS), w)
            (gradient,) = torch.autograd.grad((rows * rows).sum(), w)
            with torch.no_grad():
                updated = UPDATES[name](w, gradient, lr)
            del gradient
            found.append(updated.to(torch.float64).numpy())
        return found

    in_both_tiers(run)


def test_several_lookups_of_one_table():
    def run():
        w = table().requires_grad_()
        first, second = F.embedding(torch.tensor(POSITIONS), w), F.embedding(torch.tensor([3, 8]), w, 8)
        (gradient,) = torch.autograd.grad((first * first).sum() + (second * 0.3).sum(), w)
        updated = w.detach() - gradient * 0.1
        del gradient
        return [updated.numpy()]

    in_both_tiers(run)


def update_graph(rows, count, width=64):
    p = input_node(0, tensor_type(float32, (rows, width)))
    index = input_node(1, tensor_type(int64, (count,)))
    updates = input_node(2, tensor_type(float32, (count, width)))
    total = apply(
        "scatter_sum",
        ops.reshape(index, (1, count, 1)),
        ops.reshape(updates, (1, count, width)),
        attrs=(rows,),
    )
    return Graph(
        [p.type, index.type, updates.type], [ops.subtract(p, ops.reshape(total, (rows, width)) * 0.1)]
    )


def test_no_table_of_gradients_is_made():
    program = compile_graph(update_graph(1_000_000, 32))
    assert program.donations == [(0, 0)]
    assert program.arena()[1] < 4_100_000  # a number for each row, of which a few are touched


@pytest.mark.parametrize(("rows", "count"), [(100, 2), (1000, 400)])
def test_small_tables_and_many_rows_stay_dense(rows, count):
    graph = update_graph(rows, count)
    assert sparse_table_updates(graph) is graph or all(
        node.op.name != "changed_rows" for node in sparse_table_updates(graph).nodes()
    )


def test_a_wrong_index_leaves_the_tables_whole():
    a, b = torch.ones(ROWS, WIDTH, requires_grad=True), torch.ones(ROWS, WIDTH, requires_grad=True)
    for turn in range(5):
        before = a.tolist(), b.tolist()
        positions = torch.tensor([1, ROWS if turn == 4 else 3])
        (F.embedding(positions, b).sum() + F.embedding(torch.tensor([1]), a).sum()).backward()
        gradients = a.grad, b.grad
        a.grad = b.grad = None
        with torch.no_grad():
            a.sub_(gradients[0])
            b.sub_(gradients[1])
        del gradients
        if turn < 4:
            torch.wait_for_compiler()
            _core.flush()
        else:
            with pytest.raises(IndexError, match=f"index {ROWS} is outside"):
                _core.flush()
    assert before[0][1][0] == -3


def test_static_descent_changes_rows_only():
    with tf.Graph().as_default(), tf.Session() as session:
        start = np.random.default_rng(1).standard_normal((ROWS, WIDTH)).astype(np.float32)
        w = tf.Variable(start)
        positions = tf.placeholder(tf.int64, [None])
        loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(w, positions)))
        step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        session.run(tf.global_variables_initializer())
        expected = start.copy()
        for _ in range(4):
            session.run(step, {positions: [1, 4, 1]})
            gradient = np.zeros_like(expected)
            np.add.at(gradient, [1, 4, 1], expected[[1, 4, 1]] * 2)
            expected += gradient * np.float32(-0.1)
        np.testing.assert_array_equal(session.run(w), expected)
