"""The older spectral norm iterates as PyTorch's: v, then u, from the forward pass on."""

import numpy
import pytest

import twofold as torch
from twofold.nn.utils import parametrizations, remove_spectral_norm, spectral_norm


def unit(vector):
    return vector / max(numpy.linalg.norm(vector), 1e-12)


@pytest.mark.parametrize("rounds", [1, 3])
def test_the_older_one_iterates_v_and_then_u(rounds):
    torch.manual_seed(0)
    layer = torch.nn.Linear(3, 4)
    weight = layer.weight.detach().clone()
    spectral_norm(layer, n_power_iterations=rounds)
    assert layer.weight.tolist() == weight.tolist()
    w, u, v = (x.detach().numpy().copy() for x in (layer.weight_orig, layer.weight_u, layer.weight_v))
    for _ in range(2):
        layer(torch.ones(1, 3))
        for _ in range(rounds):
            v = unit(w.T @ u)
            u = unit(w @ v)
        assert numpy.allclose(layer.weight_u.numpy(), u, atol=1e-6)
        assert numpy.allclose(layer.weight_v.numpy(), v, atol=1e-6)
        assert numpy.allclose(layer.weight.detach().numpy(), w / (u @ w @ v), atol=1e-6)
    layer.eval()
    layer(torch.ones(1, 3))
    assert numpy.allclose(layer.weight_u.numpy(), u, atol=1e-6)
    layer.train()
    remove_spectral_norm(layer)
    assert numpy.allclose(layer.weight.detach().numpy(), w / (u @ w @ v), atol=1e-6)


def test_the_newer_one_iterates_u_and_then_v():
    layer = parametrizations.spectral_norm(torch.nn.Linear(3, 4))
    norm = layer.parametrizations.weight[0]
    w = layer.parametrizations.weight.original.detach().numpy()
    v = norm._v.numpy().copy()
    found = layer.weight.detach().numpy()
    u = unit(w @ v)
    v = unit(w.T @ u)
    assert numpy.allclose(norm._u.numpy(), u, atol=1e-6) and numpy.allclose(norm._v.numpy(), v, atol=1e-6)
    assert numpy.allclose(found, w / (u @ w @ v), atol=1e-6)


def test_two_forward_passes_and_one_backward_pass():
    layer = spectral_norm(torch.nn.Linear(3, 1))
    total = layer(torch.ones(1, 3)) - layer(torch.zeros(1, 3))
    total.sum().backward()
    assert layer.weight_orig.grad is not None


def test_a_vector_of_weights_is_a_matrix_of_one_column():
    layer = spectral_norm(torch.nn.LayerNorm(4))
    layer(torch.ones(1, 4))
    assert layer.weight_v.shape == (1,)
    assert layer.weight.tolist() == pytest.approx([0.5] * 4)
