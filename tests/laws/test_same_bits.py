"""Law 4: the tier, the threads and the way of declaring never change a bit."""

import itertools

import numpy
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import twofold as torch
from twofold import _core

TIERS = ("unfused", "fused")


def run_with(tier, threads, program):
    before = _core.threads()
    _core.set_tier(tier)
    _core.set_threads(threads)
    _core.clear_caches()
    try:
        return program()
    finally:
        _core.set_tier("auto")
        _core.set_threads(before)


def train(steps=6, batch=32, dtype=torch.float32):
    generator = numpy.random.default_rng(0)
    shapes = [(20, 16), (20,), (10, 20), (10,)]
    parameters = [
        torch.tensor(generator.normal(size=s) * 0.3, dtype=dtype, requires_grad=True) for s in shapes
    ]
    for _ in range(steps):
        x = torch.tensor(generator.normal(size=(batch, 16)), dtype=dtype)
        target = torch.tensor(generator.integers(0, 10, batch))
        w1, b1, w2, b2 = parameters
        hidden = torch.nn.functional.gelu(x @ w1.t() + b1)
        loss = torch.nn.functional.cross_entropy(hidden @ w2.t() + b2, target)
        loss.backward()
        with torch.no_grad():
            for p in parameters:
                p -= 0.1 * p.grad
                p.grad = None
    return [p.detach().numpy().copy() for p in parameters]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_training_has_the_same_bits_in_every_tier_and_thread_count(dtype):
    results = [
        run_with(tier, threads, lambda: train(dtype=dtype))
        for tier, threads in itertools.product(TIERS, (1, 2))
    ]
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            assert a.tobytes() == b.tobytes()


def test_a_row_alone_equals_the_row_in_a_batch():
    generator = numpy.random.default_rng(1)
    x = torch.tensor(generator.normal(size=(37, 50)), dtype=torch.float32)
    w = torch.tensor(generator.normal(size=(50, 23)), dtype=torch.float32)
    whole = (x @ w).softmax(-1).numpy()
    for k in (0, 11, 36):
        alone = (x[k : k + 1] @ w).softmax(-1).numpy()
        assert alone.tobytes() == whole[k : k + 1].tobytes()


def test_results_do_not_change_when_a_graph_heats_up():
    generator = numpy.random.default_rng(2)
    x = torch.tensor(generator.normal(size=(33, 65)), dtype=torch.float32)
    seen = set()
    for _ in range(4):
        y = torch.nn.functional.layer_norm(x, (65,)).tanh() * x.exp().sum(0)
        seen.add(y.numpy().tobytes())
        torch.wait_for_compiler()
    assert len(seen) == 1


LAYERS = {
    "tanh": lambda h, p, words: torch.tanh(h @ p["a"] + p["c"]),
    "gate": lambda h, p, words: torch.sigmoid(h @ p["b"].t()) * h,
    "table": lambda h, p, words: h + torch.nn.functional.embedding(words, p["t"]),
    "softmax": lambda h, p, words: torch.softmax(h @ p["a"].t(), -1) + p["u"].sum(0),
    "norm": lambda h, p, words: torch.nn.functional.layer_norm(h, (5,), p["c"], p["u"][1]),
    "centred": lambda h, p, words: h - h.mean(0, keepdim=True) * p["c"],
    "row": lambda h, p, words: h * p["t"][2] + p["a"][:4],
}


def second_order(kinds, observed):
    """Gradients of a loss and of its squared gradients, with ``observed`` values read before the passes."""
    generator = numpy.random.default_rng(len(kinds))
    shapes = {"a": (5, 5), "b": (5, 5), "c": (5,), "t": (7, 5), "u": (3, 5)}
    values = {name: generator.normal(size=shape).astype("f") / 2 for name, shape in shapes.items()}
    p = {name: torch.tensor(value, requires_grad=True) for name, value in values.items()}
    h, words = torch.tensor(generator.normal(size=(4, 5)).astype("f")), torch.tensor([3, 0, 3, 6])
    for number, kind in enumerate(kinds):
        h = LAYERS[kind](h, p, words)
        if observed[number]:
            h.sum().item()
    loss = (h * h).mean()
    if observed[-2]:
        loss.item()
    first = torch.autograd.grad(loss, list(p.values()), create_graph=True, allow_unused=True)
    penalty = sum((g * g).sum() for g in first if g is not None)
    if observed[-1]:
        penalty.item()
    (penalty + loss).backward()
    return [None if leaf.grad is None else leaf.grad.numpy().tobytes() for leaf in p.values()]


@given(
    st.lists(st.tuples(st.sampled_from(sorted(LAYERS)), st.booleans()), min_size=1, max_size=4), st.booleans()
)
@example([("softmax", False), ("table", False)], False)
@settings(max_examples=20, deadline=None)
def test_what_is_read_changes_no_second_derivative(layers, reads_penalty):
    kinds, observed = zip(*layers, strict=True)
    expected = second_order(kinds, (False,) * 6)
    for some in ((*observed, False, True), (*observed, True, reads_penalty)):
        assert second_order(kinds, some) == expected
