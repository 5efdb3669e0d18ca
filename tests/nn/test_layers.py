"""Layers and activations against formulas written with NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest
from scipy import special

import twofold as torch
from twofold import nn

G = numpy.random.default_rng(7)
X = G.normal(size=(6, 8)).astype(numpy.float32)


def near(found: Any, expected: Any, tolerance: float = 2e-5) -> None:
    array = found.detach().numpy() if isinstance(found, torch.Tensor) else found
    numpy.testing.assert_allclose(array, expected, rtol=tolerance, atol=tolerance)


ACTIVATIONS: list[tuple[str, Any, Any]] = [
    ("ReLU()", nn.ReLU(), lambda x: numpy.maximum(x, 0)),
    ("LeakyReLU(negative_slope=0.2)", nn.LeakyReLU(0.2), lambda x: numpy.where(x > 0, x, 0.2 * x)),
    ("ELU(alpha=0.7)", nn.ELU(0.7), lambda x: numpy.where(x > 0, x, 0.7 * numpy.expm1(x))),
    ("CELU(alpha=2)", nn.CELU(2), lambda x: numpy.where(x > 0, x, 2 * numpy.expm1(x / 2))),
    ("GELU(approximate='none')", nn.GELU(), lambda x: x * special.ndtr(x)),
    (
        "GELU(approximate='tanh')",
        nn.GELU("tanh"),
        lambda x: x / 2 * (1 + numpy.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    ),
    ("SiLU()", nn.SiLU(), lambda x: x * special.expit(x)),
    ("Mish()", nn.Mish(), lambda x: x * numpy.tanh(numpy.logaddexp(x, 0))),
    ("Sigmoid()", nn.Sigmoid(), special.expit),
    ("Tanh()", nn.Tanh(), numpy.tanh),
    ("Softplus(beta=2, threshold=20.0)", nn.Softplus(2), lambda x: numpy.logaddexp(2 * x, 0) / 2),
    ("Hardtanh(min_val=-0.5, max_val=0.7)", nn.Hardtanh(-0.5, 0.7), lambda x: numpy.clip(x, -0.5, 0.7)),
    ("Threshold(threshold=0.1, value=20)", nn.Threshold(0.1, 20), lambda x: numpy.where(x > 0.1, x, 20)),
    ("Softshrink(0.3)", nn.Softshrink(0.3), lambda x: numpy.sign(x) * numpy.maximum(abs(x) - 0.3, 0)),
    ("Hardshrink(0.3)", nn.Hardshrink(0.3), lambda x: numpy.where(abs(x) > 0.3, x, 0)),
    ("Softmax(dim=1)", nn.Softmax(1), lambda x: special.softmax(x, 1)),
    ("Softmin(dim=0)", nn.Softmin(0), lambda x: special.softmax(-x, 0)),
    ("LogSoftmax(dim=-1)", nn.LogSoftmax(-1), lambda x: special.log_softmax(x, -1)),
    ("GLU(dim=-1)", nn.GLU(), lambda x: x[:, :4] * special.expit(x[:, 4:])),
    ("PReLU(num_parameters=1)", nn.PReLU(), lambda x: numpy.where(x > 0, x, 0.25 * x)),
    ("Identity()", nn.Identity(3, x=4), lambda x: x),
    ("Flatten(start_dim=0, end_dim=-1)", nn.Flatten(0), lambda x: x.ravel()),
    ("Unflatten(dim=1, unflattened_size=(2, 4))", nn.Unflatten(1, (2, 4)), lambda x: x.reshape(6, 2, 4)),
]


@pytest.mark.parametrize("shown, module, exact", ACTIVATIONS, ids=[shown for shown, *_ in ACTIVATIONS])
def test_values_and_repr(shown: str, module: Any, exact: Any) -> None:
    near(module(torch.tensor(X)), exact(X.astype(numpy.float64)))
    assert repr(module) == shown


def test_in_place() -> None:
    for module in (nn.ReLU(inplace=True), nn.LeakyReLU(inplace=True)):
        x = torch.tensor([-1.0, 2.0])
        assert module(x) is x and x[0].item() in (0.0, pytest.approx(-0.01))
        assert repr(module).endswith("inplace=True)")
    x = torch.tensor([-1.0])
    assert nn.functional.relu(x, True) is x and x.item() == 0
    y = torch.tensor([-1.0])
    assert nn.functional.relu_(y) is y and y.item() == 0


def test_linear() -> None:
    layer = nn.Linear(8, 3)
    weight, bias = (parameter.detach().numpy() for parameter in (layer.weight, layer.bias))
    near(layer(torch.tensor(X)), X @ weight.T + bias)
    near(nn.Linear(8, 3, bias=False).double()(torch.tensor(X).double()).shape, (6, 3))
    bilinear = nn.Bilinear(8, 8, 2)
    w, b = bilinear.weight.detach().numpy(), bilinear.bias.detach().numpy()
    near(bilinear(torch.tensor(X), torch.tensor(X)), numpy.einsum("ni,oij,nj->no", X, w, X) + b)


def test_initial_bounds() -> None:
    layer = nn.Linear(400, 300)
    for parameter in (layer.weight, layer.bias):
        values = abs(parameter.detach().numpy())
        assert values.max() <= 1 / math.sqrt(400) and values.max() > 0.98 / math.sqrt(400)


def test_embedding() -> None:
    layer = nn.Embedding(5, 3, padding_idx=-1)
    weight = layer.weight.detach().numpy().copy()
    assert not weight[4].any()
    index = torch.tensor([[0, 4], [0, 2]])
    near(layer(index), weight[index.numpy()])
    (layer(index) * 2).sum().backward()
    near(layer.weight.grad, numpy.array([[4] * 3, [0] * 3, [2] * 3, [0] * 3, [0] * 3]))
    assert repr(layer) == "Embedding(5, 3, padding_idx=4)"
    assert not nn.Embedding.from_pretrained(torch.ones(2, 2)).weight.requires_grad


def test_dropout() -> None:
    torch.manual_seed(3)
    layer = nn.Dropout(0.25)
    found = layer(torch.ones(4000)).numpy()
    assert set(numpy.unique(found)) == {numpy.float32(0), numpy.float32(1 / 0.75)}
    assert abs((found == 0).mean() - 0.25) < 0.03
    x = torch.ones(3)
    assert layer.eval()(x) is x
    channels = nn.Dropout2d(0.5)(torch.ones(20, 10, 3, 3)).numpy().reshape(200, 9)
    assert set(numpy.unique(channels.std(1))) == {0} and set(numpy.unique(channels)) == {0, 2}
    with pytest.raises(ValueError, match="dropout probability has to be between 0 and 1, but got 2"):
        nn.Dropout(2)


def test_layer_norm() -> None:
    layer = nn.LayerNorm(8)
    with torch.no_grad():
        layer.weight.copy_(torch.arange(8).float())
        layer.bias.fill_(0.5)
    unit = (X - X.mean(1, keepdims=True)) / numpy.sqrt(X.var(1, keepdims=True) + 1e-5)
    near(layer(torch.tensor(X)), unit * numpy.arange(8) + 0.5)
    near(layer(torch.tensor(X).reshape(2, 3, 8)), (unit * numpy.arange(8) + 0.5).reshape(2, 3, 8))
    near(
        nn.LayerNorm((6, 8), elementwise_affine=False)(torch.tensor(X)),
        (X - X.mean()) / math.sqrt(X.var() + 1e-5),
    )
    near(nn.RMSNorm(8, 1e-5)(torch.tensor(X)), X / numpy.sqrt((X**2).mean(1, keepdims=True) + 1e-5))
    with pytest.raises(RuntimeError, match="normalized_shape"):
        layer(torch.ones(2, 7))
    assert repr(layer) == "LayerNorm((8,), eps=1e-05, elementwise_affine=True, bias=True)"


def test_batch_norm() -> None:
    layer = nn.BatchNorm1d(8, momentum=0.2)
    unit = (X - X.mean(0)) / numpy.sqrt(X.var(0) + 1e-5)
    near(layer(torch.tensor(X)), unit)
    mean, variance = 0.2 * X.mean(0), 0.8 + 0.2 * X.var(0, ddof=1)
    near(layer.running_mean, mean)
    near(layer.running_var, variance)
    assert layer.num_batches_tracked.item() == 1
    near(layer.eval()(torch.tensor(X)), (X - mean) / numpy.sqrt(variance + 1e-5))
    assert list(layer.state_dict()) == [
        "weight",
        "bias",
        "running_mean",
        "running_var",
        "num_batches_tracked",
    ]
    with pytest.raises(ValueError, match=r"expected 2D or 3D input \(got 4D input\)"):
        layer(torch.ones(1, 8, 2, 2))


def test_group_norm() -> None:
    flat = X.reshape(6, 2, 4)
    unit = (flat - flat.mean(2, keepdims=True)) / numpy.sqrt(flat.var(2, keepdims=True) + 1e-5)
    near(nn.GroupNorm(2, 8)(torch.tensor(X)), unit.reshape(6, 8))


def test_fans_and_gains() -> None:
    torch.manual_seed(0)
    w = torch.zeros(60, 30, 2)
    fan_in, fan_out = 60, 120
    for fill, deviation in (
        (nn.init.xavier_uniform_, math.sqrt(2 / (fan_in + fan_out))),
        (nn.init.xavier_normal_, math.sqrt(2 / (fan_in + fan_out))),
        (lambda t: nn.init.kaiming_uniform_(t, nonlinearity="relu"), math.sqrt(2 / fan_in)),
        (lambda t: nn.init.kaiming_normal_(t, mode="fan_out", nonlinearity="relu"), math.sqrt(2 / fan_out)),
    ):
        assert fill(w) is w
        assert w.numpy().std() == pytest.approx(deviation, rel=0.05)
    assert nn.init.calculate_gain("leaky_relu", 1) == 1 and nn.init.calculate_gain("tanh") == 5 / 3
    with pytest.raises(ValueError, match="fewer than 2 dimensions"):
        nn.init.xavier_uniform_(torch.zeros(3))
    with pytest.raises(ValueError, match="Unsupported nonlinearity foo"):
        nn.init.calculate_gain("foo")


def test_special_initial_values() -> None:
    q = nn.init.orthogonal_(torch.zeros(5, 3)).numpy()
    near(q.T @ q, numpy.eye(3))
    near(nn.init.eye_(torch.ones(2, 3)), numpy.eye(2, 3))
    values = nn.init.trunc_normal_(torch.zeros(1000), 1.0, 2.0, -1.0, 2.0).numpy()
    assert values.min() >= -1 and values.max() <= 2
    assert ((nn.init.sparse_(torch.ones(10, 4), 0.3).numpy() == 0).sum(0) == 3).all()
    filters = nn.init.dirac_(torch.ones(2, 2, 3)).numpy()
    near(filters, [[[0, 1, 0], [0, 0, 0]], [[0, 0, 0], [0, 1, 0]]])
