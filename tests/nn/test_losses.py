"""Loss modules against formulas written with NumPy, clipping, and a training run."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from scipy import special

import twofold as torch
from twofold import nn

G = numpy.random.default_rng(8)
A, B = G.normal(size=(5, 7)), G.normal(size=(5, 7))
C = numpy.array([1, 2, 6, 0, 3])
P, Q = special.expit(G.normal(size=(5, 7))), special.softmax(G.normal(size=(5, 7)), 1)
S = numpy.sign(G.normal(size=(5, 7)))
LOG = special.log_softmax(A, 1)
D = abs(A - B)
ROWS = numpy.arange(5)

CASES: list[tuple[Any, tuple[Any, ...], Any]] = [
    (nn.L1Loss, (A, B), D),
    (nn.MSELoss, (A, B), D**2),
    (nn.SmoothL1Loss, (A, B), numpy.where(D < 1, D**2 / 2, D - 0.5)),
    (lambda **k: nn.HuberLoss(delta=0.5, **k), (A, B), numpy.where(D <= 0.5, D**2 / 2, 0.5 * (D - 0.25))),
    (nn.CrossEntropyLoss, (A, C), -LOG[ROWS, C]),
    (nn.CrossEntropyLoss, (A, Q), -(Q * LOG).sum(1)),
    (
        lambda **k: nn.CrossEntropyLoss(label_smoothing=0.1, **k),
        (A, C),
        -0.9 * LOG[ROWS, C] - 0.1 * LOG.mean(1),
    ),
    (nn.NLLLoss, (LOG, C), -LOG[ROWS, C]),
    (nn.BCELoss, (P, Q), -(Q * numpy.log(P) + (1 - Q) * numpy.log(1 - P))),
    (nn.BCEWithLogitsLoss, (A, Q), numpy.logaddexp(A, 0) - Q * A),
    (nn.KLDivLoss, (LOG, Q), Q * (numpy.log(Q) - LOG)),
    (nn.SoftMarginLoss, (A, S), numpy.log1p(numpy.exp(-S * A))),
    (nn.HingeEmbeddingLoss, (A, S), numpy.where(S == 1, A, numpy.maximum(1 - A, 0))),
    (nn.PoissonNLLLoss, (A, abs(B)), numpy.exp(A) - abs(B) * A),
    (nn.GaussianNLLLoss, (A, B, P), (numpy.log(P) + (A - B) ** 2 / P) / 2),
    (lambda **k: nn.MarginRankingLoss(0.3, **k), (A, B, S), numpy.maximum(-S * (A - B) + 0.3, 0)),
    (
        nn.MultiMarginLoss,
        (A, C),
        (numpy.maximum(1 - A[ROWS, C][:, None] + A, 0) * (numpy.arange(7) != C[:, None])).sum(1) / 7,
    ),
    (
        nn.MultiLabelSoftMarginLoss,
        (A, (S + 1) / 2),
        (numpy.logaddexp(A, 0) - (S + 1) / 2 * A).mean(1),
    ),
    (
        nn.TripletMarginLoss,
        (A, B, P),
        numpy.maximum(
            numpy.linalg.norm(A - B + 1e-6, axis=1) - numpy.linalg.norm(A - P + 1e-6, axis=1) + 1, 0
        ),
    ),
    (
        lambda **k: nn.CosineEmbeddingLoss(0.1, **k),
        (A, B, S[:, 0]),
        numpy.where(
            S[:, 0] == 1,
            1 - (A * B).sum(1) / numpy.linalg.norm(A, axis=1) / numpy.linalg.norm(B, axis=1),
            numpy.maximum(
                (A * B).sum(1) / numpy.linalg.norm(A, axis=1) / numpy.linalg.norm(B, axis=1) - 0.1, 0
            ),
        ),
    ),
]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("position", range(len(CASES)))
def test_loss(position: int, reduction: str) -> None:
    make, operands, each = CASES[position]
    given = [torch.tensor(numpy.asarray(value)) for value in operands]
    given[0].requires_grad_()
    found = make(reduction=reduction)(*given)
    expected = {"mean": numpy.mean, "sum": numpy.sum, "none": lambda value: value}[reduction](each)
    numpy.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-9, atol=1e-12)
    found.sum().backward()
    assert numpy.isfinite(given[0].grad.numpy()).all()


def test_older_flags_of_reduction() -> None:
    assert nn.MSELoss(size_average=False).reduction == "sum" and nn.MSELoss(reduce=False).reduction == "none"


def test_weights_are_state() -> None:
    loss = nn.CrossEntropyLoss(weight=torch.arange(7).float() + 1, ignore_index=6)
    assert list(loss.state_dict()) == ["weight"]
    weights = numpy.where(C == 6, 0, C + 1.0)
    expected = -(LOG[ROWS, C] * weights).sum() / weights.sum()
    assert loss(torch.tensor(A), torch.tensor(C)).item() == pytest.approx(expected)


def test_clipping() -> None:
    parameters = [nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(2, 2)), nn.Parameter(torch.ones(1))]
    gradients = [numpy.array([3.0, -4.0, 0.0]), numpy.full((2, 2), 6.0)]
    for parameter, gradient in zip(parameters, gradients):
        parameter.grad = torch.tensor(gradient, dtype=torch.float32)
    total = nn.utils.clip_grad_norm_(parameters, 2.0)
    assert total.item() == pytest.approx(13.0)
    scale = 2.0 / (13.0 + 1e-6)
    for parameter, gradient in zip(parameters, gradients):
        numpy.testing.assert_allclose(parameter.grad.numpy(), gradient * scale, rtol=1e-6)
    assert nn.utils.clip_grad_norm_(parameters, 5.0).item() == pytest.approx(2.0, rel=1e-5)
    nn.utils.clip_grad_value_(parameters, 0.25)
    assert max(abs(p.grad.numpy()).max() for p in parameters[:2]) == 0.25
    parameters[0].grad = torch.tensor([float("inf"), 0.0, 0.0])
    with pytest.raises(
        RuntimeError, match="total norm of order 2.0 for gradients from `parameters` is non-finite"
    ):
        nn.utils.clip_grad_norm_(parameters, 1.0, error_if_nonfinite=True)


def test_parameters_as_a_vector() -> None:
    layer = nn.Linear(3, 2)
    vector = nn.utils.parameters_to_vector(layer.parameters())
    assert vector.shape == (8,)
    nn.utils.vector_to_parameters(torch.arange(8).float(), layer.parameters())
    assert layer.bias.tolist() == [6.0, 7.0] and layer.bias.requires_grad


def test_a_classifier_learns() -> None:
    torch.manual_seed(1)
    points = torch.randn(200, 2)
    classes = ((points[:, 0] * points[:, 1]) > 0).long()
    model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 2))
    loss_function = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    for _ in range(150):
        optimizer.zero_grad()
        loss = loss_function(model(points), classes)
        loss.backward()
        optimizer.step()
    right = (model(points).argmax(1) == classes).float().mean().item()
    assert loss.item() < 0.15 and right > 0.95


def test_losses_of_the_package_take_the_reduction_as_a_number():
    x, target = torch.tensor([[0.5, -1.0], [2.0, 0.0]]), torch.tensor([[0.25, 0.75], [0.5, 0.5]])
    weight = torch.tensor([1.0, 3.0])
    losses = {
        torch.kl_div: (nn.functional.kl_div, {"log_target": True}),
        torch.binary_cross_entropy_with_logits: (
            nn.functional.binary_cross_entropy_with_logits,
            {"weight": weight, "pos_weight": weight * 2},
        ),
    }
    for loss, (named, options) in losses.items():
        for given in ({}, options):
            each = named(x, target, reduction="none", **given)
            assert loss(x, target, **given).tolist() == each.tolist()
            for number, name in enumerate(("none", "mean", "sum")):
                found = loss(x, target, reduction=number, **given)
                assert found.tolist() == named(x, target, reduction=name, **given).tolist()
        with pytest.raises(TypeError, match="0 for none"):
            loss(x, target, reduction="mean")
        with pytest.raises(ValueError, match="0 for none"):
            loss(x, target, reduction=3)
