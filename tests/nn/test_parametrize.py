"""Parametrised tensors, weights by length and direction, spectral norms, orthogonal weights, fused layers."""

import copy

import numpy
import pytest

import twofold as torch
from twofold import nn
from twofold.nn.utils import parametrizations, parametrize


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).mT


class Doubled(nn.Module):
    def forward(self, x):
        return x * 2

    def right_inverse(self, y):
        return y / 2


def close(a, b, tolerance=1e-5):
    numpy.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=tolerance, atol=tolerance)


def test_a_parametrised_weight_is_computed_at_every_use():
    layer = parametrize.register_parametrization(nn.Linear(3, 3), "weight", Symmetric())
    assert type(layer).__name__ == "ParametrizedLinear" and isinstance(layer, nn.Linear)
    assert parametrize.is_parametrized(layer, "weight") and not parametrize.is_parametrized(layer, "bias")
    names = [name for name, _ in layer.named_parameters()]
    assert names == ["bias", "parametrizations.weight.original"]
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)
    before = layer.weight.detach().clone()
    layer(torch.ones(2, 3)).square().sum().backward()
    optimizer.step()
    assert not torch.equal(layer.weight, before)
    assert torch.equal(layer.weight, layer.weight.mT)


def test_parametrisations_chain_invert_and_go_away():
    layer = nn.Linear(2, 2)
    start = layer.weight.detach().clone()
    parametrize.register_parametrization(layer, "weight", Doubled())
    close(layer.weight, start)
    close(layer.parametrizations.weight.original, start / 2)
    layer.weight = torch.ones(2, 2)
    close(layer.parametrizations.weight.original, torch.full((2, 2), 0.5))
    parametrize.register_parametrization(layer, "weight", Symmetric())
    close(layer.weight, torch.ones(2, 2))
    with parametrize.cached():
        assert layer.weight is layer.weight
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear and isinstance(layer.weight, nn.Parameter)
    close(layer.weight, torch.ones(2, 2))


def test_wrong_parametrisations_are_refused():
    with pytest.raises(ValueError, match="does not have a parameter"):
        parametrize.register_parametrization(nn.Linear(2, 2), "wait", Symmetric())
    with pytest.raises(ValueError, match="unsafe=True"):
        parametrize.register_parametrization(nn.Linear(2, 2), "bias", nn.Unflatten(0, (1, 2)))
    with pytest.raises(ValueError, match="does not have a parametrization"):
        parametrize.remove_parametrizations(nn.Linear(2, 2), "weight")


@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm_keeps_the_weight_and_parts_it(dim):
    layer = nn.Linear(3, 4)
    start, x = layer.weight.detach().clone(), torch.randn(2, 3)
    wanted = layer(x)
    for made in (
        parametrizations.weight_norm(copy.deepcopy(layer), dim=dim),
        nn.utils.weight_norm(copy.deepcopy(layer), dim=dim),
    ):
        close(made.weight, start)
        close(made(x), wanted)
        made(x).sum().backward()
        assert all(p.grad is not None for p in made.parameters())
    nn.utils.remove_weight_norm(made)
    assert [name for name, _ in made.named_parameters()] == ["bias", "weight"]
    close(made(x), wanted)


def test_state_of_the_older_weight_norm():
    layer = nn.utils.weight_norm(nn.Conv1d(2, 3, 2))
    assert list(layer.state_dict()) == ["bias", "weight_g", "weight_v"]
    assert layer.weight_g.shape == (3, 1, 1)
    state = {name: torch.full(tuple(value.shape), 2.0) for name, value in layer.state_dict().items()}
    layer.load_state_dict(state)
    layer(torch.ones(1, 2, 4))
    close(layer.weight, torch.full((3, 2, 2), 1.0))


@pytest.mark.parametrize("module", [nn.Linear(5, 4), nn.Conv2d(2, 3, 3), nn.ConvTranspose2d(2, 3, 3)])
@pytest.mark.parametrize("norm", [parametrizations.spectral_norm, nn.utils.spectral_norm])
def test_spectral_norm_makes_the_largest_singular_value_one(module, norm):
    made = norm(copy.deepcopy(module), n_power_iterations=20)
    x = torch.randn(2, *((5,) if isinstance(module, nn.Linear) else (2, 6, 6)))
    for _ in range(5):
        made(x)
    weight = made.weight.detach()
    weight = weight.transpose(0, 1) if isinstance(module, nn.ConvTranspose2d) else weight
    largest = numpy.linalg.svd(weight.numpy().reshape(weight.shape[0], -1), compute_uv=False)[0]
    assert abs(largest - 1) < 1e-3
    made(x).sum().backward()
    made.eval()
    assert torch.equal(made(x), made(x))


@pytest.mark.parametrize("how", ["matrix_exp", "cayley", "householder", None])
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)])
def test_orthogonal_weights(how, shape):
    layer = parametrizations.orthogonal(nn.Linear(shape[1], shape[0]), orthogonal_map=how)
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)
    for _ in range(2):
        w = layer.weight
        w = w if shape[0] >= shape[1] else w.mT
        close(w.mT @ w, torch.eye(min(shape)))
        layer(torch.randn(2, shape[1])).square().sum().backward()
        optimizer.step()


@pytest.mark.parametrize("how", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)])
def test_orthogonal_weights_start_from_the_weight(how, shape):
    layer = nn.Linear(shape[1], shape[0])
    plain = layer.weight.detach().numpy().astype(numpy.float64)
    tall = plain if shape[0] >= shape[1] else plain.T
    q, r = numpy.linalg.qr(tall)
    q = q * numpy.sign(numpy.diagonal(r))
    start = torch.tensor(q if shape[0] >= shape[1] else q.T, dtype=torch.float32)
    made = parametrizations.orthogonal(copy.deepcopy(layer), orthogonal_map=how)
    close(made.weight, start, 1e-5)
    layer.weight.data.copy_(start)
    close(
        parametrizations.orthogonal(layer, orthogonal_map=how).weight, start, 1e-5
    )  # it is orthogonal: as it is
    made.weight = -start
    close(made.weight, -start, 1e-5)
    assert "parametrizations.weight.0.base" in made.state_dict()


def test_orthogonal_weights_without_a_base():
    layer = parametrizations.orthogonal(
        nn.Linear(4, 4), orthogonal_map="householder", use_trivialization=False
    )
    (turn, _) = numpy.linalg.qr(numpy.arange(16.0).reshape(4, 4) ** 0.5)
    layer.weight = torch.tensor(turn, dtype=torch.float32)
    close(layer.weight, torch.tensor(turn, dtype=torch.float32), 1e-5)
    for how in ("matrix_exp", "cayley"):
        plain = parametrizations.orthogonal(nn.Linear(4, 4), orthogonal_map=how, use_trivialization=False)
        with pytest.raises(NotImplementedError, match="use_trivialization=False"):
            plain.weight = torch.eye(4)
        assert "parametrizations.weight.0.base" not in plain.state_dict()


@pytest.mark.parametrize("transpose", [False, True])
def test_fused_convolution_and_normalisation(transpose):
    conv = (nn.ConvTranspose2d if transpose else nn.Conv2d)(2, 3, 3)
    norm = nn.BatchNorm2d(3)
    for _ in range(3):
        norm(conv(torch.randn(4, 2, 8, 8)))
    x = torch.randn(2, 2, 8, 8)
    fused = nn.utils.fuse_conv_bn_eval(conv.eval(), norm.eval(), transpose)
    close(fused(x), norm(conv(x)), 1e-4)
    with pytest.raises(ValueError, match="eval"):
        nn.utils.fuse_conv_bn_eval(conv.train(), norm)


def test_fused_linear_and_normalisation():
    linear, norm = nn.Linear(3, 2), nn.BatchNorm1d(2)
    norm(linear(torch.randn(8, 3)))
    x = torch.randn(4, 3)
    close(nn.utils.fuse_linear_bn_eval(linear.eval(), norm.eval())(x), norm(linear(x)), 1e-4)
