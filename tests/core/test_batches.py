"""Equal calls of a trace run as one: which calls stand together changes no bit of a value or a gradient."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import twofold as torch
from tests.core.in_child import run
from twofold import _core, nn
from twofold.config import config

WIDTH = 7


@contextmanager
def at_once() -> Iterator[None]:
    """Every launch of several calls is planned for them the first time, where that can be."""
    torch.wait_for_compiler()
    _core.flush()
    before = _core.set_batching("at_once")
    try:
        with config.scoped(background_compile=False):
            yield
            _core.flush()
    finally:
        _core.set_batching(before)


def weight(seed: int, *shape: int) -> Any:
    values = numpy.random.default_rng(seed).normal(size=shape).astype(numpy.float32)
    return torch.tensor(values, requires_grad=True)


class Tree:
    """Weights of a network over trees, and its cells."""

    def __init__(self) -> None:
        self.table = weight(1, 11, WIDTH)
        self.both, self.bias = weight(2, 3 * WIDTH, 2 * WIDTH), weight(3, 3 * WIDTH)
        self.own, self.vector = weight(4, WIDTH, WIDTH), weight(5, WIDTH)

    def parameters(self) -> list[Any]:
        return [self.table, self.both, self.bias, self.own, self.vector]

    def leaf(self, word: int) -> Any:
        return torch.tanh(self.table[word])

    def gate(self, a: Any, b: Any) -> Any:
        i, o, u = nn.functional.linear(torch.cat([a, b]), self.both, self.bias).chunk(3)
        return torch.sigmoid(o) * torch.tanh(torch.sigmoid(i) * u + a)

    def product(self, a: Any, b: Any) -> Any:
        return torch.relu(self.own @ a) + b * self.vector

    def norm(self, a: Any, b: Any) -> Any:
        return nn.functional.layer_norm(a + b, (WIDTH,)) * 0.5 - torch.softmax(b, 0)


Shape = Any  # a word, or (name of a cell, left, right)

LEAVES = st.integers(0, 10)
SHAPES = st.recursive(
    LEAVES,
    lambda below: st.tuples(
        st.sampled_from(["gate", "product", "norm", "read", "detached", "dropout"]), below, below
    ),
    max_leaves=14,
)


def value(net: Tree, shape: Shape) -> Any:
    if isinstance(shape, int):
        return net.leaf(shape)
    name, *below = shape
    a, b = (value(net, part) for part in below)
    if name == "read":  # ends a batch in the middle
        return net.gate(a, b) if float(a.sum()) > 0 else net.product(b, a)
    if name == "detached":
        return net.gate(a.detach(), b)
    if name == "dropout":
        return nn.functional.dropout(net.product(a, b), 0.3)
    return getattr(net, name)(a, b)


def outcome(shapes: list[Shape], split: bool) -> list[bytes]:
    """Values and gradients of a loss over all shapes."""
    torch.manual_seed(3)
    net = Tree()
    values = [value(net, shape) for shape in shapes]
    seen: list[bytes] = []
    if values[0].requires_grad:
        values[0].register_hook(lambda gradient: gradient * 2)
    losses = [(one * one).sum() for one in values]
    if split:
        seen += [loss.detach().numpy().tobytes() for loss in losses]
    total = 0
    for loss in losses:
        total = total + loss
    total.backward()
    gradients = [p.grad for p in net.parameters()]
    seen += [one.detach().numpy().tobytes() for one in values]
    return seen + [b"" if one is None else one.numpy().tobytes() for one in gradients]


@settings(max_examples=25, deadline=None)
@given(st.lists(SHAPES, min_size=3, max_size=12), st.booleans())
def test_values_and_gradients_have_the_same_bits_in_batches(shapes: list[Shape], split: bool) -> None:
    with at_once():
        with torch.no_batching():
            expected = outcome(shapes, split)
        assert outcome(shapes, split) == expected


def balanced(depth: int, word: int = 0) -> Shape:
    return (
        word % 11
        if depth == 0
        else ("gate", balanced(depth - 1, word * 2), balanced(depth - 1, word * 2 + 1))
    )


def test_equal_calls_run_as_one() -> None:
    with at_once():
        outcome([balanced(3)] * 8, False)
        before = torch.stats()
        outcome([balanced(3)] * 9, False)  # another trace
        after = torch.stats()
    assert after.batched_traces > before.batched_traces
    calls, launches = after.batched_calls - before.batched_calls, after.batch_launches - before.batch_launches
    assert calls > 1000
    assert launches < 150  # three levels of cells of some 12 calls, forward and backward


def test_without_batching_calls_run_one_by_one() -> None:
    with at_once(), torch.no_batching():
        before = torch.stats().batched_traces
        outcome([balanced(3)] * 7, False)
        assert torch.stats().batched_traces == before
    with pytest.raises(RuntimeError), torch.no_batching():
        raise RuntimeError
    with at_once():
        outcome([balanced(2)] * 11, False)
    assert torch.stats().batched_traces > before


def test_blocks_without_batching_may_end_in_any_order() -> None:
    """As those of several threads do."""
    first, second = torch.no_batching(), torch.no_batching()
    with at_once():
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        before = torch.stats().batched_traces
        outcome([balanced(3)] * 6, False)
        assert torch.stats().batched_traces == before
        second.__exit__(None, None, None)
        outcome([balanced(3)] * 5, False)
        assert torch.stats().batched_traces > before


def each_on(xs: list[Any], f: Callable[[Any], Any]) -> list[bytes]:
    ys = [f(x) for x in xs]
    return [y.numpy().tobytes() for y in ys]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.bfloat16, torch.bool])
@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (2, 3)])
def test_dtypes_and_shapes(dtype: Any, shape: tuple[int, ...]) -> None:
    generator = numpy.random.default_rng(0)
    arrays = [torch.tensor(generator.integers(0, 2, shape)).to(dtype) for _ in range(40)]
    for x in arrays:
        x.numpy() if dtype is not torch.bfloat16 else x.float().numpy()

    def f(x: Any) -> Any:
        y = torch.where(x > 0, x, x + x).sum(-1) if shape else x * 2 + x
        return (y.reshape(-1).flip(0) * 3).float()

    with at_once():
        with torch.no_batching():
            expected = each_on(arrays, f)
        assert each_on(arrays, f) == expected


@pytest.mark.parametrize("f", [torch.zeros_like, torch.isreal, lambda x: torch.full_like(x, 2.0)])
def test_calls_that_read_no_more_than_a_type(f: Callable[[Any], Any]) -> None:
    def outcome() -> list[bytes]:
        return each_on([torch.arange(3.0) * float(k) + 1 for k in range(60)], f)

    with at_once():
        with torch.no_batching():
            expected = outcome()
        assert outcome() == expected


def test_numbers_that_changed_part_the_calls_anew() -> None:
    """The trace is the same; which calls share an operand is not."""
    x = torch.arange(12.0).reshape(3, 4)
    x.numpy()

    def rows(scales: list[float]) -> list[bytes]:
        return [y.numpy().tobytes() for y in [torch.tanh(x * scale) + scale for scale in scales]]

    with at_once():
        for scales in ([0.5] * 40, [float(k) for k in range(40)], [0.5, 2.0] * 20, [0.5] * 40):
            with torch.no_batching():
                expected = rows(scales)
            assert rows(scales) == expected


def test_programs_of_batches_count_in_the_budget_of_caches() -> None:
    def run_batch(rows: int) -> None:
        made = [torch.erfinv(x) for x in arrays[:rows]]
        made[0].numpy()

    arrays = [torch.tensor([0.1, 0.2, 0.3, 0.4]) for _ in range(80)]
    with at_once():
        run_batch(60)
        before = torch.stats().caches["op instances"]
        plans = torch.stats().batch_plans
        for rows in range(61, 71):
            run_batch(rows)
        after = torch.stats().caches["op instances"]
    assert torch.stats().batch_plans == plans
    assert after.count == before.count
    assert after.bytes > before.bytes + 10 * 100


def test_equal_results_do_not_share_memory() -> None:
    with at_once():
        made = [torch.zeros(3) + 1 for _ in range(40)]
        arrays = [one.numpy() for one in made]
    arrays[0][0] = 7
    assert all(array[0] == 1 for array in arrays[1:])


def test_a_value_stays_whose_equal_is_the_first_of_a_long_sum() -> None:
    def program() -> list[bytes]:
        a, b = torch.arange(3.0), torch.full((3,), 2.0)
        parts = [a * float(k) + b / float(k + 1) for k in range(40)]
        total = a + b
        for part in parts:
            total = total + part
        values = [total, a + b, *parts]
        return [one.numpy().tobytes() for one in values]

    with at_once():
        with torch.no_batching():
            expected = program()
        assert program() == expected


def test_an_error_inside_a_batch_names_its_line() -> None:
    table = weight(1, 5, 3)
    index = [torch.tensor(k % 5) for k in range(60)]
    index[41] = torch.tensor(5)
    with at_once(), pytest.raises(IndexError, match="test_batches.py"):
        rows = [torch.tanh(torch.index_select(table, 0, k.reshape(1))) for k in index]
        torch.cat(rows).sum().item()


def test_host_functions_keep_their_order_and_their_number() -> None:
    xs = [torch.tensor([float(k % 3), 1.0, -2.0]) for k in range(60)]
    with at_once():
        assert [torch.sort(torch.tanh(x)).indices.tolist() for x in xs] == [
            numpy.argsort(numpy.tanh(x.numpy()), kind="stable").tolist() for x in xs
        ]


def long_chains_are_one_launch() -> None:
    """A sum of many terms is no chain of launches, whoever reads its end."""
    config.background_compile = False
    total = 0
    for k in range(300):
        total = total + torch.tanh(torch.full((5,), float(k)))
    numpy.testing.assert_allclose(
        total.numpy(), numpy.full(5, numpy.tanh(numpy.arange(300.0)).sum()), rtol=1e-6
    )
    assert torch.stats().batched_traces == 1


def test_long_chains_are_one_launch() -> None:
    run("from tests.core.test_batches import *; long_chains_are_one_launch()")


def test_the_log_tells_launches_and_what_stands_alone() -> None:
    program = """
import logging, sys
import twofold as torch
from twofold import _core
logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s")
_core.set_batching("at_once")
x = [torch.tensor([1.0 + k, 2.0]) for k in range(30)]
large = torch.ones(100, 300)
y = [torch.tanh(a) * 2 + torch.exp(a) for a in x]
total = (torch.cat(y).sum() + (large + large.sum()).sum()).item()
"""
    text = run(program, TWOFOLD_LOG="batches")
    assert "<string>" in text
    assert "calls in" in text and "with large operands" in text and "like no other" in text


def test_programs_of_other_calls_do_not_make_a_plan_old() -> None:
    program = """
import logging, sys
import twofold as torch
from twofold import _core
from twofold.config import config
logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s")
_core.set_batching("at_once")

def run(n, f):
    return torch.stack([f(torch.ones(n) * k) for k in range(30)]).sum().item()

with config.scoped(background_compile=False):
    for _ in range(3):
        run(5, torch.tanh)  # the same trace
    print("another")
    run(6, torch.sin)
    print("the first again")
    run(5, torch.tanh)
"""
    before, _, after = run(program, TWOFOLD_LOG="batches").partition("the first again")
    assert "calls in" in before.partition("another")[0] and "calls in" in before.partition("another")[2]
    assert "calls in" not in after


def compared(program: Callable[[], list[bytes]]) -> Any:
    """Statistics before and after a program ran in batches, where it gives what it gives without them."""
    with at_once():
        with torch.no_batching():
            expected = program()
        before = torch.stats()
        assert program() == expected
        return before, torch.stats()


def stacks(xs: list[Any]) -> list[bytes]:
    """Stacks of different lengths and parts of their rows, with gradients."""
    total: Any = 0
    for size in range(1, 9):
        tall = torch.stack([torch.tanh(x).squeeze(0) for x in xs[size * 4 - 4 : size * 4 - 4 + size]])
        parts = [tall[k, 3:] for k in range(size)]
        total = total + torch.cat([torch.exp(part) for part in parts]).sum()
    for x in xs:
        x.grad = None
    total.backward()
    return [total.detach().numpy().tobytes(), *[x.grad.numpy().tobytes() for x in xs if x.grad is not None]]


def test_what_is_stacked_has_the_same_bits_in_batches() -> None:
    xs = [weight(k, 1, 6) for k in range(40)]
    before, after = compared(lambda: stacks(xs))
    assert after.batched_traces > before.batched_traces


def test_calls_that_move_elements_are_no_launches() -> None:
    program = """
import logging, sys
from tests.core.test_batches import *
from twofold import _core
logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s")
_core.set_batching("at_once")
stacks([weight(k, 1, 6) for k in range(40)])
"""
    found = re.search(r"(\d+) calls in (\d+) launches", run(program, TWOFOLD_LOG="batches"))
    assert found is not None
    assert int(found[1]) > 400
    assert int(found[2]) < 150  # a joined value for each stack, and what computes


def test_parts_move_with_their_numbers() -> None:
    """The trace is the same, but its integers, which only move a part, are others."""
    table = weight(0, 30, 5)
    table.detach().numpy()

    def rows(first: int) -> list[bytes]:
        parts = [
            table[(first + 7 * k) % 30] * 2 + table[(first * k) % 28 : (first * k) % 28 + 2]
            for k in range(40)
        ]
        table.grad = None
        sum(part.sum() for part in parts).backward()
        return [part.detach().numpy().tobytes() for part in parts] + [table.grad.numpy().tobytes()]

    for first in (0, 1, 5, 11):
        compared(lambda first=first: rows(first))


def test_what_is_shown_or_joined_and_kept_has_memory_of_its_own() -> None:
    xs = [torch.full((4,), float(k)) for k in range(40)]
    for x in xs:
        x.numpy()
    with at_once():
        made = [torch.exp(x) for x in xs]
        joined = [torch.cat([a, b]) for a, b in zip(made, reversed(made))]
        tall = torch.cat(joined)
        shown = (
            [one[2:6] + 0 for one in joined] + [one.reshape(2, 4) for one in joined] + [x[1:3] for x in xs]
        )
        arrays = [one.numpy() for one in [*joined, *shown, tall]]
    expected = numpy.exp(numpy.arange(40, dtype=numpy.float32))
    numpy.testing.assert_allclose(tall.numpy().reshape(40, 8)[:, 0], expected, rtol=1e-6)
    numpy.testing.assert_array_equal(tall.numpy().reshape(40, 8)[:, 4], tall.numpy().reshape(40, 8)[::-1, 0])
    numpy.testing.assert_array_equal(arrays[-2], xs[-1].numpy()[1:3])


def cells(xs: list[Any], w: Any) -> list[bytes]:
    """A cell for each input, as often as it holds, in loops of different lengths; one value stays out of all sums."""
    ends, kept = [], []
    for k, x in enumerate(xs):
        h = x
        for _ in range(k % 3 + 1):
            gates = nn.functional.linear(h, w)
            i, u = gates.chunk(2)
            h = torch.sigmoid(i) * torch.tanh(u) + h
        ends.append(h)
        kept.append(gates if k % 5 == 0 else h)
    total = sum((end * end).sum() for end in ends)
    w.grad = None
    total.backward()
    return [
        total.detach().numpy().tobytes(),
        w.grad.numpy().tobytes(),
        *[one.detach().numpy().tobytes() for one in kept],
    ]


def test_what_one_pass_of_a_loop_records_runs_as_one() -> None:
    w = weight(0, 12, 6)
    xs = [torch.tensor(numpy.full(6, k / 40, numpy.float32)) for k in range(40)]
    before, after = compared(lambda: cells(xs, w))
    launches = after.batch_launches - before.batch_launches
    assert after.batched_calls - before.batched_calls > 80 * 12
    assert (
        launches < 24
    )  # three lengths, of which two differ in what stays; twelve calls each, with the gradients


def test_a_cell_that_is_called_once_runs_as_several_do() -> None:
    w = weight(0, 12, 6)
    xs = [torch.tensor(numpy.full(6, k / 40, numpy.float32)) for k in range(3)]
    compared(lambda: cells(xs * 8, w))
    compared(lambda: cells(xs, w))
    compared(lambda: cells([*xs, *xs, *xs, xs[0]], w))


def test_a_row_whose_number_is_that_of_a_gate_stands_beside_others() -> None:
    table, w = weight(0, 13, 6), weight(1, 18, 6)

    def gated(words: Sequence[int]) -> list[bytes]:
        found = []
        for word in [*words] * 12:
            i, o, u = nn.functional.linear(table[word], w).chunk(3)  # at 0, 6 and 12
            found.append(torch.sigmoid(o) * torch.tanh(torch.sigmoid(i) * u))
        return [one.detach().numpy().tobytes() for one in found]

    launches = []
    for words in ([1, 2, 3, 4, 5], [1, 2, 0, 6, 12]):
        before, after = compared(lambda words=words: gated(words))
        launches.append(after.batch_launches - before.batch_launches)
    assert launches[0] == launches[1]


def in_use() -> int:
    gc.collect()  # tensors in cycles, of the tests before, are not to end between two measurements
    torch.wait_for_compiler()  # which may hold memory, too
    return torch.stats().pool_in_use


def test_what_a_backward_pass_reads_stays_where_it_was_computed() -> None:
    w = weight(0, 12, 6)
    xs = [torch.tensor(numpy.full(6, k / 64, numpy.float32)) for k in range(64)]

    def forward() -> Any:
        gates = [nn.functional.linear(x, w).chunk(2) for x in xs]
        return [torch.sigmoid(i) * torch.tanh(u) for i, u in gates]

    with at_once():
        ends = forward()
        total = sum((end * end).sum() for end in ends)
        del ends
        before = in_use()
        total.item()
        kept = in_use() - before  # six numbers three to five times for each input, but no block for each
        assert 64 * 3 * 24 <= kept <= 64 * 6 * 24
        total.backward()
        assert in_use() - before <= kept


def test_a_value_that_stays_does_not_keep_its_batch() -> None:
    w = weight(0, 60, 60)
    xs = [torch.tensor(numpy.full(60, k / 64, numpy.float32)) for k in range(64)]
    with at_once():
        before = in_use()
        ends = [torch.tanh(nn.functional.linear(x, w)) for x in xs]
        sum((end * end).sum() for end in ends).item()
        last = ends[-1].detach().numpy()
        del ends
        assert last.nbytes <= in_use() - before <= 2 * last.nbytes


def test_a_trace_in_batches_is_compiled_as_a_whole_once_its_runs_took_as_long_as_that_takes() -> None:
    """Two runs of little work do not pay for planning some hundred operations."""

    def asked_for(work: Any, runs: int) -> bool:
        torch.wait_for_compiler()
        before = torch.stats()
        for _ in range(runs):
            sum((torch.sin(x) * x).sum() for x in work).item()
        torch.wait_for_compiler()
        after = torch.stats()
        return (after.plans, after.fused) != (
            before.plans,
            before.fused,
        )  # fused without a plan: found on disk

    def few_runs_ask(width: int) -> bool:
        small = [torch.full((width + k % 2,), k / 64) for k in range(120)]
        asked_for(small, 1)  # plans the launches
        batched = torch.stats().batched_traces
        asked = asked_for(small, 3)
        assert torch.stats().batched_traces == batched + 3 or asked
        return asked

    assert not all(few_runs_ask(width) for width in (3, 5, 7))  # on a busy machine even three may take long
    small = [torch.full((3 + k % 2,), k / 64) for k in range(120)]
    assert any(asked_for(small, 5000) for _ in range(6))  # after slow compiles more runs have to pay for one
