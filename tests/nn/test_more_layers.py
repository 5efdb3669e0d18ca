"""Adaptive softmax, layers over several devices, and the names of PyTorch's files."""

import importlib

import numpy
import pytest

import twofold as torch
from twofold import nn


def test_adaptive_softmax_is_a_distribution_and_learns():
    torch.manual_seed(0)
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 6], div_value=2.0, head_bias=True)
    x, target = torch.randn(7, 8), torch.tensor([0, 11, 5, 3, 2, 6, 9])
    found = layer.log_prob(x)
    numpy.testing.assert_allclose(found.detach().exp().sum(1).numpy(), 1, rtol=1e-5)
    made = layer(x, target)
    numpy.testing.assert_allclose(
        made.output.detach().numpy(), found.detach().numpy()[range(7), target.numpy()], rtol=1e-5
    )
    assert made.loss.item() == pytest.approx(-made.output.detach().mean().item())
    assert torch.equal(layer.predict(x), found.argmax(1))
    one = layer(x[0], target[0])
    assert one.output.ndim == 0 and one.output.item() == pytest.approx(made.output[0].item(), rel=1e-5)
    optimizer = torch.optim.SGD(layer.parameters(), 0.5)
    for _ in range(20):
        optimizer.zero_grad()
        loss = layer(x, target).loss
        loss.backward()
        optimizer.step()
    assert loss.item() < made.loss.item() / 2


def test_adaptive_softmax_refuses_what_does_not_fit():
    for cutoffs in ([], [3, 3], [5, 2], [12], [0, 3]):
        with pytest.raises(ValueError, match="cutoffs"):
            nn.AdaptiveLogSoftmaxWithLoss(8, 12, cutoffs)
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3])
    with pytest.raises(RuntimeError, match="Target values"):
        layer(torch.randn(2, 8), torch.tensor([0, 12]))
    with pytest.raises(RuntimeError, match="batch dimension"):
        layer(torch.randn(2, 8), torch.tensor([0, 1, 2]))


def test_one_device():
    layer, x = nn.Linear(2, 1), torch.ones(3, 2)
    assert torch.equal(nn.DataParallel(layer)(x), layer(x))
    assert torch.equal(nn.parallel.data_parallel(layer, x), layer(x))
    norm = nn.SyncBatchNorm(2)
    assert norm(x).shape == (3, 2) and nn.SyncBatchNorm.convert_sync_batchnorm(layer) is layer


def test_the_names_of_files():
    assert nn.modules.linear.Linear is nn.Linear and nn.modules.Conv2d is nn.Conv2d
    for name in ("container", "activation", "rnn", "sparse", "transformer", "normalization"):
        assert importlib.import_module(f"twofold.nn.modules.{name}").__name__.endswith(name)
    assert nn.modules.activation.MultiheadAttention is nn.MultiheadAttention
    assert nn.modules.sparse.Embedding is nn.Embedding


def test_a_submodule_is_replaced():
    net = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU()))
    net.set_submodule("1.0", nn.Tanh())
    assert isinstance(net[1][0], nn.Tanh)
    with pytest.raises(AttributeError):
        net.set_submodule("1.5", nn.Tanh(), strict=True)
    assert net.to_empty(device="cpu") is net and not net[0].weight.any()


def test_to_empty_may_leave_the_layers_below():
    net = torch.nn.Sequential(torch.nn.Linear(2, 2))
    net.register_buffer("mine", torch.ones(2))
    net.to_empty(device="cpu", recurse=False)
    assert not net.mine.any() and net[0].weight.any()


def test_sequences_are_joined_repeated_and_shortened():
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    net += nn.Sequential(nn.Tanh())
    assert len(net) == 3 and isinstance(net.pop(-1), nn.Tanh) and len(net) == 2
    twice = 2 * net
    assert len(twice) == 4 and twice[2] is net[0] and len(list(twice.parameters())) == 2
    with pytest.raises(ValueError, match="positive integer"):
        net * 0
