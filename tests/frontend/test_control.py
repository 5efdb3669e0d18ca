"""Choices and loops as operations, beside the plain Python that says the same."""

import functools
import signal
import threading

import numpy
import pytest

import twofold as torch
from twofold import _core
from twofold.autograd import gradcheck
from twofold.ir import graph
from twofold.ir.bind import constant, input_node
from twofold.ir.types import tensor_type
from twofold.ops.base import apply, ops
from twofold.ops.control_flow import programs
from twofold.runtime import calls


def bits(tensor):
    return tensor.detach().numpy().tobytes()


def cell(weight, bias):
    return lambda h, x: (lambda new: (new, new * 2.0))(torch.tanh(weight @ h + x * bias))


def by_hand(function, h, xs, order):
    ys = {}
    for k in order:
        h, ys[k] = function(h, xs[k])
    return h, torch.stack([ys[k] for k in sorted(ys)])


@pytest.fixture(params=["unfused", "fused"])
def tier(request):
    _core.flush()
    _core.set_tier(request.param)
    yield request.param
    _core.flush()
    _core.set_tier("auto")


@pytest.mark.parametrize("reverse", [False, True])
def test_scan_returns_the_bits_of_a_python_loop(tier, reverse):
    generator = torch.Generator().manual_seed(1)
    weight, bias = torch.randn(5, 5, generator=generator), torch.tensor(0.3)
    h, xs = torch.randn(5, generator=generator), torch.randn(7, 5, generator=generator)
    last, ys = torch.scan(cell(weight, bias), h, xs, reverse=reverse)
    order = range(6, -1, -1) if reverse else range(7)
    expected, stacked = by_hand(cell(weight, bias), h, xs, order)
    assert bits(last) == bits(expected)
    assert bits(ys) == bits(stacked)


def test_gradients_of_scan_are_those_of_a_python_loop(tier):
    generator = torch.Generator().manual_seed(2)
    weight = torch.randn(4, 4, generator=generator, requires_grad=True)
    bias = torch.tensor(0.7, requires_grad=True)
    h = torch.randn(4, generator=generator, requires_grad=True)
    xs = torch.randn(6, 4, generator=generator, requires_grad=True)
    inputs = (weight, bias, h, xs)

    def loss(run):
        last, ys = run()
        return (ys * ys).sum() + last.sum()

    one = torch.autograd.grad(loss(lambda: torch.scan(cell(weight, bias), h, xs)), inputs)
    two = torch.autograd.grad(loss(lambda: by_hand(cell(weight, bias), h, xs, range(6))), inputs)
    for mine, theirs in zip(one, two):
        numpy.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=2e-6, atol=1e-6)


def double(*shape):
    generator = torch.Generator().manual_seed(len(shape) + sum(shape))
    return torch.randn(*shape, generator=generator, dtype=torch.float64, requires_grad=True)


def scanned(h, xs, w):
    last, ys = torch.scan(lambda h, x: (torch.tanh(w * h + x), torch.sin(h) * w), h, xs)
    return last + ys.sum(0)


def looped(x, w):
    _, x = torch.while_loop(lambda k, x: k < 4, lambda k, x: (k + 1, torch.sin(x * w) + x), (0, x))
    return x


def nested(x, w):
    def inner(y):
        return torch.scan(lambda c, v: (c * torch.cos(v), c), y, torch.stack([y, w * y]))[0]

    return torch.while_loop(lambda k, x: k < 3, lambda k, x: (k + 1, inner(x) + w), (0, x))[1]


def chosen(x, w):
    return torch.cond((x.sum() > 0), lambda x: torch.exp(x * w), lambda x: x * x + w, (x,))


CASES = {
    "scan": (scanned, ((3,), (4, 3), (3,))),
    "while": (looped, ((3,), (3,))),
    "scan in while": (nested, ((2,), (2,))),
    "cond": (chosen, ((3,), (3,))),
    "map": (lambda xs, w: torch.map(lambda x: torch.sin(x) * w, xs), ((4, 2), (2,))),
    "associative scan": (
        lambda xs, w: torch.associative_scan(lambda a, b: a * b, xs * w),
        ((5, 2), (2,)),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_gradients_agree_with_finite_differences(name):
    function, shapes = CASES[name]
    inputs = tuple(double(*shape) for shape in shapes)
    assert gradcheck(function, inputs)

    def gradient(*values):
        values = [v if v.requires_grad else v.detach().clone().requires_grad_() for v in values]
        found = torch.autograd.grad((function(*values) ** 2).sum(), values, create_graph=True)
        return sum((g * g).sum() for g in found)

    assert gradcheck(gradient, inputs)


def test_while_stops_where_python_does(tier):
    def body(k, x):
        return k + 1, torch.sqrt(x)

    k, x = torch.while_loop(lambda k, x: x > 1.5, body, (torch.tensor(0), torch.tensor(1e30)))
    count, y = 0, torch.tensor(1e30)
    while y.item() > 1.5:
        count, y = count + 1, torch.sqrt(y)
    assert k.item() == count
    assert bits(x) == bits(y)


def test_no_round_at_all(tier):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    _, y = torch.while_loop(lambda k, x: k < 0, lambda k, x: (k + 1, x * 5), (0, x))
    (y * torch.tensor([1.0, 3.0])).sum().backward()
    assert x.grad.tolist() == [1.0, 3.0]
    last, ys = torch.scan(lambda c, v: (c * v.sum(), c), torch.tensor(2.0), torch.zeros(0, 3))
    assert last.item() == 2.0
    assert tuple(ys.shape) == (0,)


def test_only_the_branch_taken_runs():
    picked = torch.tensor([0.0, 1.0])

    def bad(x):
        return torch.index_select(x, 0, torch.tensor([7]))

    out = torch.cond(picked.sum() > 5, bad, lambda x: x[:1], (picked,))
    assert out.tolist() == [0.0]
    with pytest.raises(IndexError, match=r"test_control\.py"):
        torch.cond(picked.sum() < 5, bad, lambda x: x[:1], (picked,)).tolist()


def test_switch_takes_the_last_for_all_others():
    branches = [lambda x: x + 1, lambda x: x * 10, lambda x: -x]
    x = torch.tensor(3.0)
    found = [torch.switch(torch.tensor(k), branches, (x,)).item() for k in (0, 1, 2, 3, -1)]
    assert found == [4.0, 30.0, -3.0, -3.0, -3.0]


def test_structures_of_several_dtypes():
    start = {"n": torch.tensor(0), "pair": (torch.zeros(2, dtype=torch.float64), [torch.tensor(True)])}

    def step(carry, x):
        new = {
            "n": carry["n"] + 1,
            "pair": (carry["pair"][0] + x["a"].double(), [~carry["pair"][1][0]]),
        }
        return new, (x["a"] * 2, carry["n"])

    last, (ys, counts) = torch.scan(step, start, {"a": torch.arange(6.0).reshape(3, 2)})
    assert last["n"].item() == 3
    assert last["pair"][0].tolist() == [6.0, 9.0]
    assert last["pair"][1][0].item() is False
    assert ys.tolist() == [[0.0, 2.0], [4.0, 6.0], [8.0, 10.0]]
    assert counts.tolist() == [0, 1, 2]


def test_captured_numbers_compile_nothing_new():
    x = torch.tensor(1.0)

    def grow(rate):
        return torch.scan(lambda c, v: (c + v * rate, c), x, torch.ones(5))[0].item()

    assert grow(0.5) == 3.5
    torch.wait_for_compiler()
    before = _core.statistics()["executables"]
    assert [grow(rate) for rate in (0.25, 2.0)] == [2.25, 11.0]
    assert _core.statistics()["executables"] == before


def test_detach_and_no_grad_hold_inside_a_body():
    x = torch.tensor(2.0, requires_grad=True)
    w = torch.tensor(3.0, requires_grad=True)
    last, _ = torch.scan(lambda c, v: (c * w.detach() + v * w, c), x, torch.ones(2))
    gx, gw = torch.autograd.grad(last, (x, w))
    assert gx.item() == 9.0
    assert gw.item() == 4.0


def test_threads_do_not_change_bits():
    xs, weight = torch.randn(4, 300, 300), torch.randn(300, 300)
    found = []
    before = torch.get_num_threads()
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            last, _ = torch.scan(lambda h, x: (torch.tanh(weight @ h + x), h), torch.zeros(300, 300), xs)
            found.append(bits(last))
    finally:
        torch.set_num_threads(before)
    assert found[0] == found[1] == found[2]


def test_interrupt_ends_a_loop_that_would_never_end():
    kept = torch.tensor([1.0, 2.0]) * 3
    x = torch.tensor(1.0)
    timer = threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT))
    # a shell starts what runs in its background with the signal ignored
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            torch.while_loop(lambda x: x > 0, lambda x: (x * 1.0,), (x,))
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert kept.tolist() == [3.0, 6.0]
    assert (x + 1).item() == 2.0
    assert torch.while_loop(lambda x: x < 100, lambda x: (x * 2.0,), (x,))[0].item() == 128.0


def test_memory_does_not_grow_with_the_rounds():
    def peak(iterations):
        x = torch.zeros(10_000)
        torch.while_loop(lambda k, x: k < iterations, lambda k, x: (k + 1, x + 1.0), (0, x))[1].sum().item()
        _core.clear_caches()
        return _core.statistics()["pool_peak_bytes"]

    peak(10)
    assert peak(2000) == peak(20)


def test_rows_written_in_place_are_those_of_a_copy(tier):
    generator = torch.Generator().manual_seed(4)
    xs = torch.randn(9, 3, generator=generator, requires_grad=True)

    def write(i, h, rows):
        h = torch.tanh(h * 0.5 + xs[i])
        rows = rows.clone()
        rows[i] = h + rows[i - 1]
        return i + 1, h, rows

    start = (torch.tensor(1), torch.zeros(3), torch.randn(9, 3, generator=generator))
    _, last, rows = torch.while_loop(lambda i, h, rows: i < 9, write, start)
    i, h, expected = start
    for _ in range(8):
        i, h, expected = write(i, h, expected)
    assert bits(rows) == bits(expected)
    assert bits(last) == bits(h)
    weight = torch.arange(27.0).reshape(9, 3)
    (one,) = torch.autograd.grad((rows * weight).sum() + last.sum(), xs)
    (two,) = torch.autograd.grad((expected * weight).sum() + h.sum(), xs)
    numpy.testing.assert_allclose(one.numpy(), two.numpy(), rtol=1e-5, atol=1e-5)


def test_rows_in_place_are_as_cheap_as_they_are_few():
    def bodies():
        return [c.body for c in graph._CONTENTS.values() if isinstance(c, programs.LoopSpec) and c.in_place]

    def write(i, rows):
        rows = rows.clone()
        rows[i] = rows[0] + 1.0
        return i + 1, rows

    before = len(bodies())
    torch.while_loop(lambda i, rows: i < 5, write, (0, torch.zeros(5, 2)))[1].tolist()
    assert len(bodies()) == before + 1
    with pytest.raises(IndexError, match="index 5"):
        torch.while_loop(lambda i, rows: i < 6, write, (0, torch.zeros(5, 2)))[1].tolist()


def test_rows_added_in_place_keep_the_sign_of_zeros(tier):
    def add(k, total):
        padded = torch.zeros(3, 2)
        padded[k] = 1.0
        return k + 1, total + padded

    start = torch.full((3, 2), -0.0)
    for iterations in (0, 1, 2):
        more = functools.partial(lambda iterations, k, total: k < iterations, iterations)
        _, total = torch.while_loop(more, add, (0, start))
        expected = start
        for k in range(iterations):
            _, expected = add(k, expected)
        assert bits(total) == bits(expected)


@pytest.mark.parametrize("fill", [0.0, -0.0])
def test_rows_among_negative_zeros_keep_these(tier, fill):
    """-0.0 + 0.0 is positive, -0.0 + -0.0 is not: the second loop may not add its rows in place alone."""
    types = [tensor_type(torch.int64, ()), tensor_type(torch.float32, (3, 2))]
    k, total = (input_node(n, type) for n, type in enumerate(types))
    row = ops.broadcast_to(constant(1.0, torch.float32), (1, 2))
    rows = apply("pad_block", row, constant(fill, torch.float32), k, attrs=((3, 2), (1, 1), (0,)))
    spec = graph.interned(programs.LoopSpec(graph.Graph(types, [k + 1, total + rows]), 2, limit=2))
    start = [torch.tensor(0), torch.full((3, 2), -0.0)]
    found = calls.call_program("loop", spec, (), calls.result_types(spec), start)[1]
    assert found.tolist() == [[1.0] * 2, [1.0] * 2, [0.0] * 2]
    assert torch.signbit(found[2]).tolist() == [str(fill) == "-0.0"] * 2


def test_gradients_of_a_table_read_by_rows_are_added_in_place(tier):
    table = torch.arange(6.0).reshape(3, 2).requires_grad_()
    positions = torch.tensor([2, 0, 2])

    def loss(positions):
        return torch.scan(lambda c, k: (c + (table[k] ** 2).sum(), c), torch.tensor(0.0), positions)[0]

    assert torch.autograd.grad(loss(positions), table)[0].tolist() == [[0.0, 2.0], [0.0, 0.0], [16.0, 20.0]]
    (none,) = torch.autograd.grad(loss(positions[:0]), table)
    assert none.tolist() == [[0.0, 0.0]] * 3


def test_random_draws_differ_from_round_to_round():
    torch.manual_seed(0)
    drawn = torch.map(lambda x: torch.map(lambda y: y + torch.rand(2), torch.zeros(3)), torch.zeros(2))
    assert len(set(drawn.ravel().tolist())) == 12
