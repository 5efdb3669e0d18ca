"""Small promises of layers, losses and initial values: signatures, generators, refused settings."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import twofold as torch
import twofold.nn.functional as F
from twofold import nn


@pytest.mark.parametrize("name", ["sparse_", "normal_", "uniform_", "xavier_uniform_", "kaiming_normal_"])
def test_initial_values_come_from_the_generator_that_is_given(name: str) -> None:
    fill = getattr(nn.init, name)
    settings = {"sparsity": 0.5} if name == "sparse_" else {}

    def filled(seed: int, other: int) -> Any:
        torch.manual_seed(other)
        return fill(torch.empty(8, 6), **settings, generator=torch.Generator().manual_seed(seed)).tolist()

    assert filled(1, 10) == filled(1, 11) != filled(2, 10)


@pytest.mark.parametrize(
    "name", ["margin_ranking_loss", "hinge_embedding_loss", "cosine_embedding_loss", "soft_margin_loss"]
)
def test_the_older_flags_stand_before_the_reduction(name: str) -> None:
    parameters = list(inspect.signature(getattr(F, name)).parameters)
    flags = ["size_average", "reduce", "reduction"]
    assert parameters[-3:] == flags
    assert len(set(parameters)) == len(parameters)


@pytest.mark.parametrize("count", [0, -1])
def test_spectral_norm_needs_an_iteration(count: int) -> None:
    with pytest.raises(ValueError, match="n_power_iterations"):
        nn.utils.spectral_norm(nn.Linear(2, 3), n_power_iterations=count)


@pytest.mark.parametrize("layer", [nn.RNN, nn.LSTM, nn.GRU])
def test_a_recurrent_layer_takes_operands_of_one_dtype(layer: Any) -> None:
    made, x = layer(3, 4), torch.ones(5, 2, 3)
    with pytest.raises(ValueError, match="dtype"):
        made(x.double())
    state = torch.zeros(1, 2, 4, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="Expected hidden"):
        made(x, (state, state) if layer is nn.LSTM else state)[0].sum().item()
    for name in ("weight_hh_l0", "bias_ih_l0", "bias_hh_l0"):
        made = layer(3, 4)
        getattr(made, name).data = getattr(made, name).data.double()
        with pytest.raises(RuntimeError, match="dtype"):
            made(x)[0].sum().item()


@pytest.mark.parametrize("layer", [nn.RNNCell, nn.LSTMCell, nn.GRUCell])
def test_initial_weights_of_cells_fill_their_interval(layer: Any) -> None:
    bound = 1 / 64**0.5
    for weight in layer(64, 64).parameters():
        largest, least = weight.max().item(), weight.min().item()
        assert 0.9 * bound < largest <= bound and -bound <= least < -0.9 * bound
    assert all(weight.numel() == 0 for weight in layer(3, 0).parameters())


def test_one_ratio_of_fractional_pooling_holds_for_all_axes() -> None:
    x = torch.rand(1, 1, 10, 12)
    assert F.fractional_max_pool2d(x, 2, output_ratio=0.5).shape == (1, 1, 5, 6)
    assert F.fractional_max_pool2d(x, 2, output_ratio=(0.5, 0.25)).shape == (1, 1, 5, 3)
    volume = torch.rand(1, 1, 8, 10, 12)
    assert F.fractional_max_pool3d(volume, 2, output_ratio=0.5).shape == (1, 1, 4, 5, 6)
