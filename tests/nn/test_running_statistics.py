"""Normalisation layers and functions whose running statistics follow the batches."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import twofold as torch
from twofold import nn
from twofold.nn import functional as F

G = numpy.random.default_rng(11)


def statistics() -> tuple[Any, Any]:
    return torch.tensor(numpy.zeros(3)), torch.tensor(numpy.ones(3))


@pytest.mark.parametrize("momentum", [0.1, 1.0, -1.2])
def test_batch_norm_moves_the_statistics_in_place(momentum: float) -> None:
    x = G.normal(2.0, 3.0, size=(4, 3, 5))
    mean, variance = statistics()
    made = F.batch_norm(torch.tensor(x), mean, variance, training=True, momentum=momentum)
    numpy.testing.assert_allclose(mean.numpy(), momentum * x.mean((0, 2)), rtol=1e-12)
    expected = 1 - momentum + momentum * x.var((0, 2), ddof=1)
    numpy.testing.assert_allclose(variance.numpy(), expected, rtol=1e-12)
    numpy.testing.assert_allclose(made.numpy().mean((0, 2)), 0, atol=1e-12)


def test_the_two_orders_of_arguments() -> None:
    x, weight = torch.tensor(G.normal(size=(4, 3, 5))), torch.tensor(numpy.array([1.0, 2.0, 3.0]))
    mean, variance = torch.tensor(numpy.array([0.1, 0.2, 0.3])), torch.tensor(numpy.array([1.0, 4.0, 9.0]))
    here = torch.batch_norm(x, weight, None, mean, variance, False, 0.1, 1e-5, False)
    assert torch.equal(here, F.batch_norm(x, mean, variance, weight))
    there = torch.instance_norm(x, weight, None, None, None, True, 0.1, 1e-5, False)
    assert torch.equal(there, F.instance_norm(x, weight=weight))


def test_evaluation_keeps_the_dtype_of_the_input() -> None:
    x = torch.ones(2, 3, 4, dtype=torch.float16)
    assert F.batch_norm(x, torch.zeros(3), torch.ones(3)).dtype is torch.float16


def test_instance_norm_follows_the_mean_of_the_samples() -> None:
    x = G.normal(1.0, 2.0, size=(4, 3, 6))
    layer = nn.InstanceNorm1d(3, affine=True, track_running_stats=True, dtype=torch.float64)
    assert repr(layer) == (
        "InstanceNorm1d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)"
    )
    names = ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"]
    assert list(layer.state_dict()) == names
    made = layer(torch.tensor(x))
    numpy.testing.assert_allclose(made.detach().numpy().std(2), 1, rtol=1e-4)
    numpy.testing.assert_allclose(layer.running_mean.numpy(), 0.1 * x.mean(2).mean(0), rtol=1e-10)
    numpy.testing.assert_allclose(layer.running_var.numpy(), 0.9 + 0.1 * x.var(2, ddof=1).mean(0), rtol=1e-10)
    layer.eval()
    held = layer.running_mean.numpy()[:, None]
    scale = numpy.sqrt(layer.running_var.numpy()[:, None] + 1e-5)
    numpy.testing.assert_allclose(layer(torch.tensor(x)).detach().numpy(), (x - held) / scale, rtol=1e-10)


def test_one_sample_without_a_batch_axis() -> None:
    x = torch.tensor(G.normal(size=(3, 4, 5)).astype(numpy.float32))
    layer = nn.InstanceNorm2d(3)
    assert torch.equal(layer(x), layer(x.unsqueeze(0)).squeeze(0))
    with pytest.raises(ValueError, match="expected 3D or 4D input"):
        layer(torch.ones(2, 2))


def test_native_forms_return_what_they_saved() -> None:
    x = G.normal(size=(4, 6, 5))
    made, mean, inverse = torch.native_layer_norm(torch.tensor(x), (6, 5), None, None, 1e-5)
    numpy.testing.assert_allclose(mean.numpy(), x.mean((1, 2), keepdims=True))
    numpy.testing.assert_allclose((x - mean.numpy()) * inverse.numpy(), made.numpy(), rtol=1e-10)
    made, mean, inverse = torch.native_group_norm(torch.tensor(x), None, None, 4, 6, 5, 2, 1e-5)
    assert mean.shape == inverse.shape == (4, 2)
    made, mean, inverse = torch.native_batch_norm(
        torch.tensor(x), None, None, *[torch.tensor(numpy.ones(6))] * 2, False, 0.1, 1e-5
    )
    assert mean.shape == inverse.shape == (0,)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 8, 20])
def test_local_response_norm(size: int) -> None:
    x = G.normal(size=(2, 7, 3, 2))
    layer = nn.LocalResponseNorm(size, alpha=0.3)
    assert repr(layer) == f"LocalResponseNorm({size}, alpha=0.3, beta=0.75, k=1.0)"
    low = size // 2
    sums = [(x[:, max(c - low, 0) : c - low + size] ** 2).sum(1) for c in range(7)]
    expected = x / (1 + 0.3 / size * numpy.stack(sums, 1)) ** 0.75
    numpy.testing.assert_allclose(layer(torch.tensor(x)).numpy(), expected, rtol=1e-10)
    side = (size - 1) // 2  # an odd number of channels around each, also where size is even
    sums = [(x[:, max(c - side, 0) : c + side + 1] ** 2).sum(1) for c in range(7)]
    expected = x / (1 + 0.3 / size * numpy.stack(sums, 1)) ** 0.75
    across = nn.CrossMapLRN2d(size, alpha=0.3)
    numpy.testing.assert_allclose(across(torch.tensor(x)).numpy(), expected, rtol=1e-10)


@pytest.mark.parametrize(
    ("size", "channels", "sums"),
    [
        (2, 1, [1]),
        (3, 2, [5, 5]),
        (4, 2, [5, 5]),
        (5, 3, [14, 14, 14]),
        (8, 4, [30, 30, 30, 30]),
        (6, 2, [5, 5]),
    ],
)
def test_cross_map_lrn_where_all_channels_take_part(size: int, channels: int, sums: list[int]) -> None:
    """What PyTorch's ``CrossMapLRN2d`` gives; with more channels it leaves the first in all later sums."""
    x = torch.arange(1.0, channels + 1).reshape(1, channels, 1, 1)
    found = nn.CrossMapLRN2d(size, alpha=size, beta=1.0, k=0.0)(x)
    numpy.testing.assert_allclose((x / found).flatten().numpy(), sums, rtol=1e-6)


def test_renorm_in_place() -> None:
    x = torch.tensor(numpy.array([[3.0, 4.0], [0.3, 0.4]]))
    x.renorm_(2, 0, 1.0)
    numpy.testing.assert_allclose(x.numpy(), [[0.6, 0.8], [0.3, 0.4]], rtol=1e-6)


def test_feature_alpha_dropout_drops_whole_channels() -> None:
    torch.manual_seed(3)
    made = nn.FeatureAlphaDropout(0.5)(torch.tensor(G.normal(size=(20, 10, 4)))).numpy()
    constant = (made == made[:, :, :1]).all(2)
    assert 60 < constant.sum() < 140
    with pytest.raises(RuntimeError, match="at least 2 dimensions"):
        F.feature_alpha_dropout(torch.ones(3), 0.5, training=True)


@pytest.mark.parametrize("name", ["batch_norm", "instance_norm"])
@pytest.mark.parametrize("given", ["running_mean", "running_var"])
def test_one_running_statistic_alone_is_refused(name: str, given: str) -> None:
    statistics = {"running_mean": None, "running_var": None, given: torch.ones(4)}
    with pytest.raises(ValueError, match="both be None or neither"):
        getattr(torch.nn.functional, name)(torch.randn(3, 4, 2), **statistics)


@pytest.mark.parametrize("shape", [(0, 2), (0, 2, 3), (3, 2, 0)])
@pytest.mark.parametrize("momentum", [0.1, None])
def test_a_batch_without_elements_leaves_the_running_statistics(
    shape: tuple[int, ...], momentum: Any
) -> None:
    """As in PyTorch; they were NaN from then on."""
    norm = nn.BatchNorm1d(2, momentum=momentum)
    norm.running_mean.fill_(5)
    assert norm(torch.zeros(shape)).shape == shape
    assert norm.running_mean.tolist() == [5, 5] and norm.running_var.tolist() == [1, 1]
    assert norm.num_batches_tracked.item() == 1


def test_samples_without_elements_leave_the_running_statistics() -> None:
    norm = nn.InstanceNorm1d(2, track_running_stats=True)
    norm(torch.zeros(3, 2, 0))
    assert norm.running_mean.tolist() == [0, 0] and norm.running_var.tolist() == [1, 1]


def test_a_layer_whose_statistics_are_no_longer_tracked_keeps_them() -> None:
    layer = nn.BatchNorm1d(2)
    layer(torch.tensor([[1.0, 2.0], [3.0, 7.0]]))
    layer.track_running_stats = False
    kept = [value.clone() for value in (layer.running_mean, layer.running_var, layer.num_batches_tracked)]
    made = layer(torch.tensor([[5.0, 2.0], [9.0, 0.0]]))
    numpy.testing.assert_allclose(made.detach().numpy(), [[-1, 1], [1, -1]], rtol=1e-5)
    for value, before in zip(
        (layer.running_mean, layer.running_var, layer.num_batches_tracked), kept, strict=True
    ):
        assert value.tolist() == before.tolist()
    layer.eval()
    expected = (1.0 - layer.running_mean) / (layer.running_var + layer.eps).sqrt()
    numpy.testing.assert_allclose(layer(torch.ones(1, 2))[0].detach().numpy(), expected.numpy(), rtol=1e-6)
