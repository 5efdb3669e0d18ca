"""Law 4 for passes: backward passes one after another leave the bits of `.grad` that one pass over the sum leaves."""

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import twofold as torch
import twofold.nn.functional as F
from twofold import _core

WIDTH, WORDS, FILTERS = 6, 9, 3


def random(seed, *shape):
    return numpy.random.default_rng(seed).normal(size=shape).astype("f")


START = {
    "w": random(0, WIDTH, WIDTH) / 2,
    "v": random(1, WIDTH, WIDTH) / 2,
    "b": random(2, WIDTH),
    "g": random(3, WIDTH),
    "q": random(4, WIDTH),
    "s": numpy.array(0.7, "f"),
    "t": random(5, WORDS, WIDTH),
    "k": random(6, FILTERS, 1, 3),
    "c": random(7, FILTERS),
    "a": random(8, WIDTH, WIDTH) / 2,
    "z": (random(9, WIDTH) + 1j * random(10, WIDTH)).astype("complex64"),
}


def filtered(p, h, n):
    images = F.conv1d(h.reshape(-1, 1, WIDTH), p["k"], p["c"], padding=1)
    return torch.tanh(images.sum(1)).reshape(h.shape)


def branched(p, h, n):
    return torch.tanh(h @ p["v"]) if h.sum().item() > 0 else torch.sigmoid(h @ p["v"].t())


def hooked(p, h, n):
    h = F.linear(h, p["w"])
    h.register_hook(lambda gradient: gradient * 0.5)
    return torch.tanh(h)


CELLS = {
    "linear": lambda p, h, n: torch.tanh(F.linear(h, p["w"], p["b"])),
    "transposed": lambda p, h, n: torch.tanh(h @ p["w"].t()),
    "norm": lambda p, h, n: F.layer_norm(h, (WIDTH,), p["g"], p["b"]),
    "element-wise": lambda p, h, n: h * p["q"],
    "scaled": lambda p, h, n: h * p["s"],
    "look-up": lambda p, h, n: (
        h + F.embedding(torch.tensor((n * 5 + numpy.arange(h.shape[0])) % WORDS), p["t"])
    ),
    "filtered": filtered,
    "computed factors": lambda p, h, n: torch.einsum("ij,kj->ki", p["a"], torch.sin(h)),
    "complex": lambda p, h, n: (h * p["z"]).real,
    "dropout": lambda p, h, n: F.dropout(h, 0.3),
    "detached": lambda p, h, n: h * h.detach(),
    "branched": branched,
    "hooked": hooked,
}


def run_with(tier, batching, program):
    _core.set_tier(tier)
    try:
        if batching:
            return program()
        with torch.no_batching():
            return program()
    finally:
        _core.set_tier("auto")


def gradients(samples, passes, watched=False):
    """The bits of `.grad` after backward passes over so many samples each."""
    torch.manual_seed(3)
    p = {name: torch.tensor(value, requires_grad=True) for name, value in START.items()}
    if watched:
        for leaf in p.values():
            leaf.register_hook(lambda gradient: None)
    waiting, total = list(passes), 0
    for n, (rows, cells) in enumerate(samples):
        h = torch.tensor(random((n, 1), rows, WIDTH), requires_grad=True)
        for cell in cells:
            h = CELLS[cell](p, h, n)
        total = total + torch.sin(h).sum()
        waiting[0] -= 1
        if not waiting[0]:
            total.backward()
            del waiting[0]
            total = 0
    return {name: leaf.grad.numpy().tobytes() for name, leaf in p.items() if leaf.grad is not None}


@st.composite
def programs(draw):
    cells = st.lists(st.sampled_from(list(CELLS)), min_size=1, max_size=4)
    kinds = draw(st.lists(st.tuples(st.integers(1, 3), cells), min_size=1, max_size=3))
    samples = draw(st.lists(st.sampled_from(kinds), min_size=2, max_size=9))
    passes = []
    while sum(passes) < len(samples):
        passes.append(draw(st.integers(1, len(samples) - sum(passes))))
    return samples, passes


@settings(max_examples=25, deadline=None)
@given(programs())
def test_passes_over_any_numbers_of_samples_leave_the_bits_of_one_pass(program):
    samples, passes = program
    expected = run_with("unfused", False, lambda: gradients(samples, [len(samples)]))
    for tier in ("unfused", "fused", "auto"):
        for batching in (False, True):
            assert run_with(tier, batching, lambda: gradients(samples, passes)) == expected
    assert gradients(samples, passes, watched=True) == expected
    assert gradients(samples, [1] * len(samples)) == expected


def test_a_loop_of_passes_repeats():
    samples = [(2, ["linear", "look-up", "norm", "scaled", "filtered"])] * 6
    expected = gradients(samples, [6])
    for _ in range(4):
        assert gradients(samples, [1] * 6) == expected


@pytest.mark.parametrize(
    "shape, kernel, options",
    [
        ((6, 3, 9, 9), (5, 3, 3, 3), {"padding": 1}),
        ((6, 1, 28, 28), (8, 1, 5, 5), {}),
        ((6, 8, 12, 12), (8, 1, 3, 3), {"groups": 8, "padding": 1}),
        ((6, 16, 10, 10), (40, 16, 3, 3), {"stride": 2}),
        ((6, 16, 7, 7), (70, 16, 1, 1), {}),
        ((6, 4, 20), (7, 4, 3), {}),
    ],
)
def test_images_one_by_one_have_the_bits_of_their_batch(shape, kernel, options):
    images, convolution = random(1, *shape), F.conv2d if len(shape) == 4 else F.conv1d

    def run(parts, at_once):
        w = torch.tensor(random(2, *kernel), requires_grad=True)
        b = torch.tensor(random(3, kernel[0]), requires_grad=True)
        losses = [torch.sin(convolution(torch.tensor(part), w, b, **options)).sum() for part in parts]
        if at_once:
            sum(losses).backward()
        else:
            for loss in losses:
                loss.backward()
        return w.grad.numpy().tobytes(), b.grad.numpy().tobytes()

    expected = run([images], True)
    for parts in (numpy.split(images, [1, 4]), numpy.split(images, 6)):
        assert run(parts, True) == run(parts, False) == expected


def leaf_and_rows():
    return torch.tensor(START["w"], requires_grad=True), [torch.tensor(random(k, WIDTH)) for k in range(4)]


def loss_of(w, x):
    return torch.tanh(F.linear(x, w)).sum()


def test_what_a_program_writes_to_grad_is_where_the_sum_goes_on():
    w, xs = leaf_and_rows()
    loss_of(w, xs[0]).backward()
    held = w.grad
    with torch.no_grad():
        w.grad.mul_(0.5)
    begun = w.grad.numpy().copy()
    loss_of(w, xs[1]).backward()
    assert w.grad is held
    (ct,) = torch.autograd.grad(loss_of(w, xs[1]), [w])
    other = torch.tensor(START["w"], requires_grad=True)
    other.grad = torch.tensor(begun)
    loss_of(other, xs[1]).backward()
    assert other.grad.numpy().tobytes() == w.grad.numpy().tobytes()
    numpy.testing.assert_allclose(w.grad.numpy(), begun + ct.numpy(), rtol=1e-5, atol=1e-6)


def test_zeros_are_a_start_like_nothing():
    found = []
    for to_none in (True, False):
        w, xs = leaf_and_rows()
        loss_of(w, xs[0]).backward()
        torch.optim.SGD([w], lr=0.1).zero_grad(set_to_none=to_none)
        for x in xs:
            loss_of(w, x).backward()
        found.append(w.grad.numpy())
    numpy.testing.assert_array_equal(*found)


@pytest.mark.parametrize("changes", [False, True])
def test_hooks_see_the_gradient_of_their_pass(changes):
    w, xs = leaf_and_rows()
    seen = []
    w.register_hook(lambda gradient: seen.append(gradient) or (gradient * 2 if changes else None))
    for x in xs:
        loss_of(w, x).backward()
    alone = [torch.autograd.grad(loss_of(other, x), [other])[0] for x in xs for other in [leaf_and_rows()[0]]]
    assert [one.numpy().tobytes() for one in seen] == [one.numpy().tobytes() for one in alone]
    total = 0
    for one in alone:
        total = total + one * 2
    if changes:
        assert w.grad.numpy().tobytes() == total.numpy().tobytes()


def test_gradients_that_are_themselves_differentiable():
    found = []
    for count in (1, 4):
        w, xs = leaf_and_rows()
        for k in range(0, 4, 4 // count):
            sum(loss_of(w, x) for x in xs[k : k + 4 // count]).backward(create_graph=True)
        found.append(torch.autograd.grad((w.grad * w.grad).sum(), [w])[0].numpy())
    numpy.testing.assert_allclose(*found, rtol=1e-5, atol=1e-6)


def test_gradients_that_are_asked_for_know_nothing_of_grad():
    w, xs = leaf_and_rows()
    (expected,) = torch.autograd.grad(loss_of(w, xs[0]), [w])
    loss_of(w, xs[1]).backward()
    (found,) = torch.autograd.grad(loss_of(w, xs[0]), [w])
    assert found.numpy().tobytes() == expected.numpy().tobytes()
