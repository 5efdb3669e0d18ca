"""Choices and loops under the transforms of ``func``."""

import numpy
import pytest

import twofold as torch
from twofold.func import grad, hessian, jacfwd, jacrev, jvp, vmap

X = torch.tensor([[0.5, -0.25, 1.25], [2.0, 0.125, 0.75], [-0.5, -1.0, -2.0], [3.0, 1.0, 0.25]])
W = torch.tensor([1.5, 0.75, -0.5])


def doubled(x):
    """As many rounds as each sample needs."""
    return torch.while_loop(lambda k, y: y.sum() < 20, lambda k, y: (k + 1, y * 2 + 1), (0, x))


def scanned(x):
    return torch.scan(lambda h, v: (torch.tanh(h * v + W), h * v), x * W, x)


PROGRAMS = {
    "while_loop": doubled,
    "counted": lambda x: torch.while_loop(lambda k, y: k < 3, lambda k, y: (k + 1, y * W), (0, x))[1],
    "no round": lambda x: torch.while_loop(lambda y: y.sum() < -99, lambda y: (y * 2,), (x,))[0],
    "scan": scanned,
    "empty scan": lambda x: torch.scan(lambda h, v: (h * v, h + x), x, x[:0]),
    "cond": lambda x: torch.cond(x.sum() > 0, lambda x: torch.exp(x * W), lambda x: x * W, (x,)),
    "switch": lambda x: torch.switch((x > 0.5).sum(), [lambda: x, lambda: x * 2, lambda: x * W]),
    "map": lambda x: torch.map(lambda v: v * W, x),
    "associative_scan": lambda x: torch.associative_scan(lambda a, b: a * b, x),
    "nested": lambda x: torch.while_loop(
        lambda k, y: k < 2, lambda k, y: (k + 1, torch.scan(lambda h, v: (h * v + x, h), y, y)[0]), (0, x)
    )[1],
}


def flat(value):
    return [*map_flat(value)]


def map_flat(value):
    if isinstance(value, tuple):
        for item in value:
            yield from map_flat(item)
    else:
        yield value


@pytest.mark.parametrize("name", PROGRAMS)
def test_batches_are_samples(name):
    program = PROGRAMS[name]
    together = flat(vmap(program)(X))
    alone = [flat(program(x)) for x in X]
    for k, found in enumerate(together):
        for row, sample in zip(found, alone, strict=True):
            assert row.numpy().tobytes() == sample[k].numpy().tobytes()


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_of_batches_are_those_of_samples(name):
    def loss(x):
        return sum((value * value).sum() for value in flat(PROGRAMS[name](x)) if value.is_floating_point())

    together = vmap(grad(loss))(X)
    for row, x in zip(together, X, strict=True):
        numpy.testing.assert_allclose(row.numpy(), grad(loss)(x).numpy(), rtol=1e-6)


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_of_both_directions_agree(name):
    def program(x):
        return sum(value.sum() * (x + 1) for value in flat(PROGRAMS[name](x)) if value.is_floating_point())

    x = X[1].double()
    numpy.testing.assert_allclose(jacfwd(program)(x).numpy(), jacrev(program)(x).numpy(), rtol=1e-6)
    _, slope = jvp(program, (x,), (W.double(),))
    numpy.testing.assert_allclose(slope.numpy(), (jacrev(program)(x) @ W.double()).numpy(), rtol=1e-6)
    square = hessian(lambda x: (program(x) ** 2).sum())(x)
    numpy.testing.assert_allclose(square.numpy(), square.t().numpy(), rtol=1e-6, atol=1e-6)
