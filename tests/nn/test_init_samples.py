"""Initial values: their distributions, their structure, and streams of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest
from scipy import stats

import twofold as torch
from twofold import nn
from twofold.nn import init


def uniform(bound: float) -> Any:
    return stats.uniform(-bound, 2 * bound)


# of a tensor of 100 x 50: 50 inputs and 100 outputs
DRAWS: dict[str, tuple[Callable[..., Any], Any]] = {
    "uniform": (lambda x, g: init.uniform_(x, -1, 3, generator=g), stats.uniform(-1, 4)),
    "normal": (lambda x, g: init.normal_(x, 2, 0.5, generator=g), stats.norm(2, 0.5)),
    "trunc_normal": (
        lambda x, g: init.trunc_normal_(x, 0.5, 2, -1, 3, generator=g), stats.truncnorm(-0.75, 1.25, 0.5, 2)
    ),
    "far tail": (lambda x, g: init.trunc_normal_(x, 0, 1, 6, 7, generator=g), stats.truncnorm(6, 7)),
    "xavier_uniform": (lambda x, g: init.xavier_uniform_(x, 2, generator=g), uniform(2 * (6 / 150) ** 0.5)),
    "xavier_normal": (lambda x, g: init.xavier_normal_(x, 2, generator=g), stats.norm(0, 2 * (2 / 150) ** 0.5)),
    "kaiming_uniform": (
        lambda x, g: init.kaiming_uniform_(x, nonlinearity="relu", generator=g), uniform((6 / 50) ** 0.5)
    ),
    "kaiming_normal": (
        lambda x, g: init.kaiming_normal_(x, mode="fan_out", nonlinearity="relu", generator=g),
        stats.norm(0, (2 / 100) ** 0.5),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DRAWS)
def test_distribution_and_stream(name: str) -> None:
    draw, law = DRAWS[name]
    generator = torch.Generator().manual_seed(4)
    state = generator.get_state()
    first = draw(torch.empty(100, 50), generator)
    assert stats.kstest(first.numpy().ravel(), law.cdf).pvalue > 0.005
    generator.set_state(state)
    assert torch.equal(draw(torch.empty(100, 50), generator), first)
    assert not torch.equal(draw(torch.empty(100, 50), generator), first)


def test_structure() -> None:
    torch.manual_seed(0)
    wide = init.orthogonal_(torch.empty(3, 4, 2), 2.0).reshape(3, 8)
    numpy.testing.assert_allclose((wide @ wide.T).numpy(), 4 * numpy.eye(3), atol=1e-5)
    sparse = init.sparse_(torch.empty(10, 4), 0.35)
    assert ((sparse == 0).sum(0) == 4).all()
    through = torch.nn.functional.conv1d(torch.ones(1, 2, 5), init.dirac_(torch.empty(2, 2, 3)), padding=1)
    assert (through == 1).all()
    assert torch.equal(init.eye_(torch.empty(2, 3)), torch.eye(2, 3))


# every parameter is uniform up to one over the root of this many inputs
INPUTS: dict[str, tuple[Callable[[], Any], int]] = {
    "Linear": (lambda: nn.Linear(50, 40), 50),
    "Bilinear": (lambda: nn.Bilinear(50, 7, 40), 50),
    "Conv1d": (lambda: nn.Conv1d(5, 40, 10), 50),
    "ConvTranspose1d": (lambda: nn.ConvTranspose1d(40, 5, 10), 50),
    "RNN": (lambda: nn.RNN(7, 50), 50),
    "LSTM": (lambda: nn.LSTM(7, 50, bidirectional=True), 50),
    "RNNCell": (lambda: nn.RNNCell(7, 50), 50),
    "LSTMCell": (lambda: nn.LSTMCell(7, 50), 50),
    "GRUCell": (lambda: nn.GRUCell(7, 50), 50),
}


@pytest.mark.parametrize("name", INPUTS)
def test_layers_begin_as_is_documented(name: str) -> None:
    make, inputs = INPUTS[name]
    torch.manual_seed(3)
    layer = make()
    law = uniform(inputs**-0.5)
    parameters = dict(layer.named_parameters())
    assert len(parameters) >= 2
    for kind, parameter in parameters.items():
        values = parameter.detach().numpy().ravel()
        assert stats.kstest(values, law.cdf).pvalue > 0.002, kind
    first = parameters.copy()
    kept = {kind: parameter.detach().clone() for kind, parameter in first.items()}
    layer.reset_parameters()
    assert not any(torch.equal(first[kind], kept[kind]) for kind in kept)
