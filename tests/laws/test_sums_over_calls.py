"""Law 4 for sums over calls: the gradient of a shared weight is one product over the rows of all calls in order.

That of a bias, or of what else calls repeat, is one sum of these rows.
"""

import itertools
from fractions import Fraction

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import twofold as torch
import twofold.nn.functional as F
import twofold.static as tf
from twofold import _core

INNER, WIDTH, OUTER = 5, 4, 3
HIDDEN = numpy.random.default_rng(0).normal(size=(WIDTH, INNER)).astype("f")
LAST = numpy.random.default_rng(1).normal(size=(WIDTH, OUTER)).astype("f")
BIAS = numpy.random.default_rng(2).normal(size=WIDTH).astype("f")


def run_with(tier, threads, program):
    before = _core.threads()
    _core.set_tier(tier)
    _core.set_threads(threads)
    try:
        return program()
    finally:
        _core.set_tier("auto")
        _core.set_threads(before)


def rows_of(seed, shape):
    return numpy.random.default_rng(seed).normal(size=shape).astype("f")


CALLS = {
    "linear": lambda x, w, b: F.linear(x, w, b),
    "transposed": lambda x, w, b: x @ w.t() + b,
    "left": lambda x, w, b: b + (w @ x if len(x.shape) == 1 else x @ w.T),
}


def loss_of(values, calls, w, v, b):
    """The summed loss of calls one after another that share both weights and the bias."""
    total = 0
    for x, call in zip(values, calls, strict=True):
        total = total + (torch.tanh(CALLS[call](x, w, b)) @ v).sin().sum()
    return total


def by_run(values, calls, observed=False):
    leaves = weights()
    loss = loss_of([torch.tensor(x) for x in values], calls, *leaves)
    if observed:
        loss.item()
    loss.backward()
    return [leaf.grad.numpy().tobytes() for leaf in leaves]


def declared(values, calls):
    with tf.Graph().as_default(), tf.Session() as session:
        holders = [tf.placeholder(tf.float32, x.shape) for x in values]
        leaves = {tf.placeholder(tf.float32, value.shape): value for value in (HIDDEN, LAST, BIAS)}
        wanted = tf.gradients(loss_of(holders, calls, *leaves), list(leaves))
        fed = {**dict(zip(holders, values)), **leaves}
        return [value.tobytes() for value in session.run(wanted, fed)]


def programs():
    shape = st.one_of(
        st.just((INNER,)),
        st.integers(0, 4).map(lambda n: (n, INNER)),
        st.integers(1, 3).map(lambda n: (n, 2, INNER)),
    )
    return st.lists(st.tuples(shape, st.sampled_from(sorted(CALLS))), min_size=1, max_size=40)


@given(programs(), st.integers(0, 99))
@settings(max_examples=25, deadline=None)
def test_single_samples_and_parts_equal_the_whole_batch(program, seed):
    values = [rows_of((seed, k), shape) for k, (shape, _) in enumerate(program)]
    calls = [call for _, call in program]
    whole = numpy.concatenate([x.reshape(-1, INNER) for x in values])
    expected = by_run([whole], ["linear"])
    for tier, threads in itertools.product(("unfused", "fused"), (1, 2)):
        assert run_with(tier, threads, lambda: by_run(values, calls)) == expected
    assert run_with("unfused", 1, lambda: by_run(values, calls, observed=True)) == expected
    assert declared(values, calls) == expected


def accumulated(pairs, shape):
    """The chain of fused multiply-adds, in exact arithmetic rounded once a step."""
    total = numpy.zeros(shape)
    for left, right in pairs:
        for i, j in numpy.ndindex(shape):
            exact = Fraction(left[i]) * Fraction(right[j]) + Fraction(total[i, j])
            total[i, j] = float(exact)
    return total


@pytest.mark.parametrize("count", [2, 17, 37])
def test_the_sum_is_a_chain_in_the_order_of_the_calls(count):
    generator = numpy.random.default_rng(count)
    xs, scales = generator.normal(size=(count, 3)), generator.normal(size=(count, 2))
    w = torch.zeros(2, 3, dtype=torch.float64, requires_grad=True)
    outputs = [F.linear(torch.tensor(x), w) for x in xs]
    # the order of what reads the results does not matter
    sum((y * torch.tensor(s)).sum() for y, s in reversed(list(zip(outputs, scales)))).backward()
    assert w.grad.numpy().tobytes() == accumulated(zip(scales, xs), (2, 3)).tobytes()


def test_what_else_arrives_is_added_to_products():
    generator = numpy.random.default_rng(5)
    xs, scales, plain = (generator.normal(size=shape) for shape in ((4, 3), (4, 2), (2, 2, 3)))
    w = torch.zeros(2, 3, dtype=torch.float64, requires_grad=True)
    loss = 0
    for k, (x, s) in enumerate(zip(xs, scales)):
        loss = loss + (F.linear(torch.tensor(x), w) * torch.tensor(s)).sum()
        if k % 2:
            loss = loss + (w * torch.tensor(plain[k // 2])).sum()
    loss.backward()
    expected = (accumulated(zip(scales, xs), (2, 3)) + plain[0]) + plain[1]
    assert w.grad.numpy().tobytes() == expected.tobytes()


VALUES = [rows_of(k, (INNER,) if k % 3 else (2, INNER)) for k in range(20)]
STYLES = ["linear", "transposed", "linear", "left"] * 5


@pytest.fixture(scope="module")
def expected():
    return by_run(VALUES, STYLES)


def weights():
    return [torch.tensor(value, requires_grad=True) for value in (HIDDEN, LAST, BIAS)]


def loss_of_values(*leaves):
    return loss_of([torch.tensor(x) for x in VALUES], STYLES, *leaves)


def bits(*values):
    return [value.detach().numpy().tobytes() for value in values]


def test_gradients_of_several_inputs(expected):
    leaves = weights()
    assert bits(*torch.autograd.grad(loss_of_values(*leaves), leaves)) == expected
    assert bits(*torch.autograd.grad(loss_of_values(*leaves), leaves[1:])) == expected[1:]
    whole = torch.func.grad(loss_of_values, argnums=(0, 1, 2))
    assert bits(*whole(*[leaf.detach() for leaf in leaves])) == expected


def test_a_search_for_nan_changes_nothing(expected):
    leaves = weights()
    with torch.autograd.detect_anomaly():
        loss_of_values(*leaves).backward()
    assert bits(*[leaf.grad for leaf in leaves]) == expected


def test_a_search_for_nan_names_the_call():
    w = torch.ones(2, 3, requires_grad=True)
    good, bad = F.linear(torch.ones(3), w), F.linear(torch.zeros(3), w)
    with torch.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="LinearBackward"):
        (good.sum() + (bad * float("inf")).sum()).backward()


def test_hooks_and_kept_gradients(expected):
    w, v, b = weights()
    seen = []
    w.register_hook(lambda gradient: seen.append(bits(gradient)[0]))
    wide = w * 1
    wide.retain_grad()
    wide.register_hook(lambda gradient: seen.append(gradient.sum().item()))
    loss_of_values(wide, v, b).backward()
    assert bits(w.grad, v.grad, b.grad) == expected
    assert bits(wide.grad) == expected[:1] and seen[1] == expected[0] and len(seen) == 2


def test_hooks_on_results_in_between(expected):
    w, v, b = weights()
    total = 0
    for x, call in zip(VALUES, STYLES):
        y = CALLS[call](torch.tensor(x), w, b)
        y.register_hook(lambda gradient: gradient * float(gradient.isfinite().all()))
        total = total + (torch.tanh(y) @ v).sin().sum()
    total.backward()
    assert bits(w.grad, v.grad, b.grad) == expected


def test_a_hook_on_a_transposed_weight_sees_its_cotangent():
    w = torch.tensor(HIDDEN, requires_grad=True)
    turned = w.t()
    turned.register_hook(lambda gradient: gradient * 2)
    (sum((torch.tensor(x) @ turned).sum() for x in VALUES)).backward()
    once, w.grad = w.grad, None
    (sum((torch.tensor(x) @ w.t()).sum() for x in VALUES)).backward()
    assert bits(once) == bits(w.grad * 2)


def test_values_kept_by_hooks(expected):
    leaves = weights()
    with torch.autograd.graph.saved_tensors_hooks(
        lambda value: value.numpy(), lambda array: torch.tensor(array)
    ):
        loss = loss_of_values(*leaves)
    loss.backward()
    assert bits(*[leaf.grad for leaf in leaves]) == expected


def test_values_written_over_are_noticed():
    w = torch.ones(2, 3, requires_grad=True)
    x = torch.ones(3)
    shared = x.detach()
    y = F.linear(x, w).sum() + F.linear(x, w).sum()
    shared.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_second_derivatives():
    w, v, b = leaves = weights()
    whole = torch.tensor(numpy.concatenate([x.reshape(-1, INNER) for x in VALUES]))
    found = []
    for loss in (loss_of_values(*leaves), (torch.tanh(F.linear(whole, w, b)) @ v).sin().sum()):
        first = torch.autograd.grad(loss, leaves, create_graph=True)
        found.append(torch.autograd.grad(sum((g * g).sum() for g in first), leaves))
    for ours, theirs in zip(*found, strict=True):
        numpy.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-4, atol=1e-4)


def test_graphs_used_twice(expected):
    leaves = weights()
    loss = loss_of_values(*leaves)
    loss.backward(retain_graph=True)
    for leaf in leaves:
        leaf.grad = None
    loss.backward()
    assert bits(*[leaf.grad for leaf in leaves]) == expected


def test_several_traces(expected):
    w, v, b = weights()
    total = 0
    for x, call in zip(VALUES, STYLES):
        part = (torch.tanh(CALLS[call](torch.tensor(x), w, b)) @ v).sin().sum()
        part.item()
        total = total + part
    total.backward()
    assert bits(w.grad, v.grad, b.grad) == expected


REPEATED = {
    "gain": ((4,), lambda x, g: x * g),
    "bias and gain": ((2, 4), lambda x, p: F.layer_norm(x, (4,), p[0], p[1])),
    "positions": ((3, 4), lambda x, p: x.reshape(-1, 3, 4) + p),
    "one more axis": ((1, 3, 4), lambda x, p: torch.tanh(x.reshape(-1, 3, 4)) * p),
    "short rows": ((1,), lambda x, b: x.sum(1, keepdim=True) + b),
    "expanded": ((4,), lambda x, b: b.expand(x.shape).sin() * x),
    "normalised": ((4,), lambda x, g: F.rms_norm(x, (4,), g)),
}


@pytest.mark.parametrize("name", REPEATED)
@pytest.mark.parametrize("tier", ["unfused", "fused"])
def test_what_calls_repeat_gets_the_rows_of_all_calls(name, tier):
    shape, call = REPEATED[name]
    whole, start = rows_of(1, (36, 4)), rows_of(2, shape)

    def gradient(parts):
        p = torch.tensor(start, requires_grad=True)
        used = (p[0].clone(), p[1].clone()) if name == "bias and gain" else p
        sum(torch.exp(torch.sin(call(torch.tensor(x), used))).sum() for x in parts).backward()
        return bits(p.grad)

    expected = run_with("unfused", 1, lambda: gradient([whole]))
    for parts in (numpy.split(whole, 6), numpy.split(whole, [6, 18])):
        for threads in (1, 2):
            assert run_with(tier, threads, lambda parts=parts: gradient(parts)) == expected


@pytest.mark.parametrize("name", REPEATED)
def test_a_hook_that_observes_the_pass_changes_no_rows(name):
    shape, call = REPEATED[name]
    first, start = rows_of(1, (6, 4)), rows_of(2, shape)

    def gradient(observes):
        p, seen = torch.tensor(start, requires_grad=True), []
        used = (p[0].clone(), p[1].clone()) if name == "bias and gain" else p
        h = call(torch.tensor(first), used)
        if observes:
            h.register_hook(lambda cotangent: seen.append(cotangent.sum().item()))
        (torch.sin(call((h * 2.0).reshape(6, -1)[:, :4], used)) ** 2.0).sum().backward()
        assert len(seen) == observes
        return bits(p.grad)

    expected = run_with("unfused", 1, lambda: gradient(False))
    for tier in ("unfused", "fused"):
        assert run_with(tier, 1, lambda: gradient(True)) == expected


def test_a_bias_has_the_bits_of_the_weight_of_ones():
    xs, seed = rows_of(1, (50, 5)), torch.tensor(rows_of(2, (50, 3)))
    bias, weight = torch.zeros(3, requires_grad=True), torch.zeros(3, 6, requires_grad=True)
    F.linear(torch.tensor(xs), torch.zeros(3, 5), bias).backward(seed)
    F.linear(torch.tensor(numpy.concatenate([xs, numpy.ones((50, 1), "f")], 1)), weight).backward(seed)
    assert bits(bias.grad) == bits(weight.grad[:, 5])


@pytest.mark.parametrize("shape", [(37, 3), (4, 5, 70), (5000, 2), (300, 200)])
def test_rows_are_added_one_after_another(shape):
    rows = rows_of(1, shape)
    for tier, threads in itertools.product(("unfused", "fused"), (1, 2)):
        b = torch.zeros(shape[-1], requires_grad=True)
        run_with(tier, threads, lambda b=b: ((torch.zeros(shape) + b) * torch.tensor(rows)).sum().backward())
        chain = numpy.add.accumulate(rows.reshape(-1, shape[-1]))[-1]
        assert b.grad.numpy().tobytes() == chain.tobytes()


def test_no_number_of_calls_makes_a_new_op_instance():
    def once(count):
        w = torch.ones(2, 3, requires_grad=True)
        sum(F.linear(torch.ones(3), w).sum() for _ in range(count)).backward()
        return w.grad.tolist()

    for count in range(2, 40):
        once(count)
    before = _core.statistics()["op instances"]
    for count in (250, 251, 262):
        assert once(count) == [[count] * 3] * 2
    assert _core.statistics()["op instances"] - before < 16


def test_a_sample_of_a_batched_gradient_has_the_bits_that_it_has_alone():
    w, xs = torch.tensor(rows_of(1, (4, 4))), rows_of(2, (6, 3, 4))

    def loss(w, x):
        h = torch.tanh(F.linear(x, w)) @ w.t()
        return (torch.tanh(F.linear(h[0], w)) * F.linear(h[1], w) * w[0]).sum()

    each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(w, torch.tensor(xs))
    alone = [torch.func.grad(loss)(w, torch.tensor(x)) for x in xs]
    assert [bits(one) for one in each] == [bits(one) for one in alone]


def cell(w, u, b, g):
    total = w.sum(0)  # in a loop's body it would be computed once as well, before the loop

    def step(h, x):
        h = torch.tanh(h @ w + x @ u + b)
        h = torch.tanh(F.linear(h, w, b)) * total
        h = F.layer_norm(h, (6,), g, b) if len(h.shape) > 1 else h
        return h, h

    return step


def unrolled(step, h, xs, reverse):
    found = []
    for k in reversed(range(9)) if reverse else range(9):
        h, y = step(h, xs[k])
        found.append(y)
    return h, torch.stack(found[::-1] if reverse else found)


def scanned(step, h, xs, reverse):
    return torch.scan(step, h, xs, reverse=reverse)


def repeated(step, h, xs, reverse):
    def body(k, h, ys):
        h, _ = step(h, xs[8 - k] if reverse else xs[k])
        return k + 1, h, ys

    _, h, ys = torch.while_loop(lambda k, h, ys: k < 9, body, (torch.tensor(0), h, torch.zeros(1)))
    return h, ys


@pytest.mark.parametrize("tier", ["unfused", "fused"])
@pytest.mark.parametrize("batch", [(), (4,)])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("loop", [scanned, repeated])
def test_a_loop_operation_has_the_bits_of_its_unrolled_calls(loop, reverse, batch, tier):
    start = [
        rows_of(1, (6, 6)) / 3,
        rows_of(2, (7, 6)) / 3,
        rows_of(3, (*batch, 6)),
        rows_of(4, (9, *batch, 7)),
        rows_of(5, (6,)),
        rows_of(6, (6,)),
    ]

    def gradients(run):
        w, u, h, xs, b, g = values = [torch.tensor(value, requires_grad=True) for value in start]
        h, ys = run(cell(w, u, b, g), h, xs, reverse)
        loss = (h * h).sum() if loop is repeated else (h * h).sum() + (ys * ys).sum()
        return bits(*torch.autograd.grad(loss, values if batch else values[:-1]))

    expected = gradients(unrolled)
    assert run_with(tier, 1, lambda: gradients(loop)) == expected
    assert run_with(tier, 2, lambda: gradients(unrolled)) == expected


def test_loops_inside_loops():
    w = torch.tensor(rows_of(1, (4, 4)) / 3, requires_grad=True)
    xs = torch.tensor(rows_of(2, (3, 2, 4)))

    def inner(h, x):
        return torch.tanh(h @ w + x), h

    nested = torch.scan(lambda h, rows: torch.scan(inner, h, rows), torch.zeros(4), xs)[0]
    plain = torch.zeros(4)
    for x in xs.reshape(6, 4):
        plain, _ = inner(plain, x)
    assert bits(*torch.autograd.grad(nested.sum(), w)) == bits(*torch.autograd.grad(plain.sum(), w))
