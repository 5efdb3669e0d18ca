"""Law 4 for tables that several calls look up rows of: the gradient is one addition of rows in their order."""

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import twofold as torch
import twofold.nn.functional as F
import twofold.static as tf
from twofold import _core

ROWS = 9
LOOK_UPS = {
    "embedding": lambda table, k: F.embedding(torch.tensor(k), table),
    "several": lambda table, k: F.embedding(torch.tensor([k]), table)[0],
    "integers": lambda table, k: F.embedding(torch.tensor(k, dtype=torch.int32), table),
    "number": lambda table, k: table[k],
    "from the end": lambda table, k: table[k - ROWS],
    "row": lambda table, k: table[k : k + 1].reshape(table.shape[1:]),
    "index": lambda table, k: table[torch.tensor([k])][0],
    "select": lambda table, k: table.select(0, k),
}


def normal(seed, *shape):
    return numpy.random.default_rng(seed).normal(size=shape).astype("f")


def added(words, updates, shape):
    """The definition: rows added to zeros one by one."""
    total = numpy.zeros(shape, "f")
    for word, update in zip(words, updates, strict=True):
        total[word] = total[word] + update
    return total


def gradient(words, kinds, updates, values, hooked=False):
    table, loss = torch.tensor(values, requires_grad=True), 0
    used = table * 1 if hooked else table
    if hooked:
        used.register_hook(lambda found: found * float(found.isfinite().all()))
    for word, kind, update in zip(words, kinds, updates, strict=True):
        row = LOOK_UPS[kind](used, word)
        if hooked:
            row.register_hook(lambda found: found * float(found.isfinite().all()))
        loss = loss + (row * torch.tensor(update)).sum()
    loss.backward()
    return table.grad.numpy()


@given(
    st.lists(st.tuples(st.integers(0, ROWS - 1), st.sampled_from(sorted(LOOK_UPS))), min_size=2, max_size=40)
)
@settings(max_examples=20, deadline=None)
def test_rows_are_added_in_the_order_of_the_calls(calls):
    words, kinds = zip(*calls, strict=True)
    updates, values = normal(1, len(words), 6), normal(2, ROWS, 6)
    expected = added(words, updates, values.shape).tobytes()
    for tier in ("unfused", "fused"):
        _core.set_tier(tier)
        try:
            assert gradient(words, kinds, updates, values).tobytes() == expected
        finally:
            _core.set_tier("auto")
    assert gradient(words, kinds, updates, values, hooked=True).tobytes() == expected
    simple = ["index" if kind in ("embedding", "several", "integers") else kind for kind in kinds]
    assert gradient(words, simple, updates, values).tobytes() == expected


@pytest.mark.parametrize("shape", [(), (2, 3)])
def test_rows_of_any_number_of_axes(shape):
    words, values = [3, 1, 3, 8, 3], normal(1, ROWS, *shape)
    updates = normal(2, len(words), *shape)
    expected = added(words, updates, values.shape).tobytes()
    for kinds in (["number"] * 5, ["index", "select"] * 2 + ["row"]):
        assert gradient(words, kinds, updates, values).tobytes() == expected


def test_both_ways_of_declaring():
    words, updates, values = [3, 1, 3, 8, 3], normal(1, 5, 6), normal(2, ROWS, 6)
    with tf.Graph().as_default(), tf.Session() as session:
        table = tf.placeholder(tf.float32, [ROWS, 6])
        loss = sum(tf.reduce_sum(tf.gather(table, k) * update) for k, update in zip(words, updates))
        found = session.run(tf.convert_to_tensor(tf.gradients(loss, table)[0]), {table: values})
    assert found.tobytes() == added(words, updates, values.shape).tobytes()


def test_loops_and_samples():
    words, updates, values = numpy.array([3, 1, 3, 8, 3]), normal(1, 5, 6), normal(2, ROWS, 6)
    expected = added(words, updates, values.shape).tobytes()
    order, scales = torch.tensor(words), torch.tensor(updates)

    def loop(table):
        def body(k, loss):
            return k + 1, loss + (table[order[k]] * scales[k]).sum()

        return torch.while_loop(lambda k, loss: k < 5, body, (torch.tensor(0), torch.tensor(0.0)))[1]

    def plain(table, scale):
        return sum((table[int(k)] * scales[position] * scale).sum() for position, k in enumerate(words))

    table = torch.tensor(values, requires_grad=True)
    assert torch.autograd.grad(loop(table), table)[0].numpy().tobytes() == expected
    each = torch.func.vmap(torch.func.grad(plain), in_dims=(None, 0))(table.detach(), torch.ones(3))
    assert all(one.numpy().tobytes() == expected for one in each)


def test_a_table_that_is_a_weight_too():
    words, updates, x, values = [3, 1, 3], normal(1, 3, 6), normal(2, 4, 6), normal(3, ROWS, 6)
    table = torch.tensor(values, requires_grad=True)
    rows = sum((table[k] * torch.tensor(u)).sum() for k, u in zip(words, updates))
    (rows + F.linear(torch.tensor(x), table).sum()).backward()
    weight = torch.tensor(values, requires_grad=True)
    F.linear(torch.tensor(x), weight).sum().backward()
    expected = weight.grad.numpy().copy()
    numpy.add.at(expected, words, updates)  # the rows go on from the product
    assert table.grad.numpy().tobytes() == expected.tobytes()


def test_second_derivatives_and_steps_in_other_positions():
    table = torch.tensor(normal(1, ROWS, 6), requires_grad=True)
    loss = sum((table[k] ** 3).sum() for k in (3, 1, 3))
    (first,) = torch.autograd.grad(loss, table, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), table)
    expected = 6 * table.detach().numpy() * added([3, 1, 3], numpy.ones((3, 6), "f"), (ROWS, 6))
    numpy.testing.assert_allclose(second.numpy(), expected, rtol=1e-5)


def test_each_step_takes_its_own_numbers():
    table = torch.zeros(ROWS, 6, requires_grad=True)
    for step in range(8):
        words = [(step * k) % ROWS for k in range(5)]
        table.grad = None
        sum(table[k].sum() for k in words).backward()
        assert table.grad.numpy().tobytes() == added(words, numpy.ones((5, 6), "f"), (ROWS, 6)).tobytes()
