"""The hooks behind ``weight_norm`` and ``spectral_norm``, which programs apply by their classes."""

from __future__ import annotations

import numpy
from twofold.nn.utils.spectral_norm import SpectralNorm
from twofold.nn.utils.weight_norm import WeightNorm

import twofold as torch


def test_weight_norm_by_its_class():
    layer = torch.nn.Linear(3, 2)
    weight = layer.weight.detach().clone()
    hook = WeightNorm.apply(layer, "weight", dim=0)
    assert list(layer.state_dict()) == ["bias", "weight_g", "weight_v"] and hook.dim == 0
    layer.weight_g.data.mul_(2)
    assert torch.allclose(hook.compute_weight(layer), 2 * weight)
    hook.remove(layer)
    assert torch.allclose(layer.weight, 2 * weight) and isinstance(layer.weight, torch.nn.Parameter)


def test_spectral_norm_by_its_class():
    layer = torch.nn.Linear(3, 2)
    largest = numpy.linalg.svd(layer.weight.detach().numpy())[1][0]
    weight = layer.weight.detach().numpy().copy()
    hook = SpectralNorm.apply(layer, "weight", 50, 0, 1e-12)
    numpy.testing.assert_allclose(
        hook.compute_weight(layer, True).detach().numpy(), weight / largest, rtol=1e-5
    )


def test_norms_of_slices():
    v = torch.randn(2, 3, 4)
    values = v.numpy().astype(numpy.float64)
    for dim, axes in ((-1, None), (0, (1, 2)), (1, (0, 2)), (2, (0, 1))):
        expected = numpy.sqrt((values**2).sum(axes, keepdims=dim != -1))
        numpy.testing.assert_allclose(torch.norm_except_dim(v, 2, dim).numpy(), expected, rtol=1e-6)
        lengths = torch.full(expected.shape, 2.0)
        found = torch._weight_norm(v, lengths, dim).numpy()
        numpy.testing.assert_allclose(found, 2 * values / expected, rtol=1e-5)
