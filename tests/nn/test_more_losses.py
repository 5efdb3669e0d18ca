"""Losses with PyTorch's arguments in PyTorch's order, and those that are layers, too."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
import scipy.stats

import twofold as torch
from twofold import nn
from twofold.errors import DTypeError

F: Any = nn.functional
G = numpy.random.default_rng(17)


def near(found: Any, wanted: Any, tolerance: float = 1e-6) -> None:
    numpy.testing.assert_allclose(found.detach().numpy(), wanted, rtol=tolerance, atol=tolerance)


def test_older_flags() -> None:
    x, t = torch.randn(3, 4), torch.randn(3, 4)
    assert F.mse_loss(x, t, False).item() == F.mse_loss(x, t, reduction="sum").item()
    assert F.mse_loss(x, t, None, False).shape == (3, 4)
    assert F.l1_loss(x, t, None, None, "none").shape == (3, 4)
    classes = torch.tensor([1, -1, 0])
    wanted = F.cross_entropy(x, classes, ignore_index=-1, reduction="sum")
    assert F.cross_entropy(x, classes, None, False, -1).item() == wanted.item()
    assert F.margin_ranking_loss(x, t, t.sign(), 0.5, size_average=False).item() > 0
    with pytest.raises(TypeError, match="takes at most 6 arguments, got 7"):
        F.mse_loss(x, t, None, None, "mean", None, 1)


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss"])
def test_weighted_elements(name: str) -> None:
    x, t, weight = torch.randn(3, 4), torch.randn(3, 4), torch.rand(3, 4)
    loss = getattr(F, name)
    each = loss(x, t, reduction="none").numpy() * weight.numpy()
    near(loss(x, t, weight=weight, reduction="none"), each)
    near(loss(x, t, weight=weight, reduction="sum"), each.sum(), 1e-5)
    near(loss(x, t, weight=weight), each.sum() / weight.numpy().sum(), 1e-5)


def test_triplets_with_any_distance() -> None:
    a, p, n = (torch.randn(5, 3) for _ in range(3))
    plain = nn.TripletMarginLoss(0.5, swap=True)(a, p, n)
    layer = nn.TripletMarginWithDistanceLoss(margin=0.5, swap=True, distance_function=nn.PairwiseDistance())
    assert layer(a, p, n).item() == plain.item()
    layer = nn.TripletMarginWithDistanceLoss(distance_function=lambda x, y: (x - y).abs().max(-1).values)
    assert layer(a, p, n).shape == ()


def test_linear_layer_and_cross_entropy() -> None:
    layer = nn.LinearCrossEntropyLoss(3, 5, bias=True)
    x, target = torch.randn(4, 3), torch.tensor([0, 4, 2, 1])
    scores = F.linear(x, layer.linear.weight, layer.linear.bias)
    assert layer(x, target).item() == F.cross_entropy(scores, target).item()
    assert sorted(layer.state_dict()) == ["linear.bias", "linear.weight"]
    many = F.linear_cross_entropy(x, torch.randn(5, 2, 3), torch.zeros(4, 2, dtype=torch.int64))
    assert many.shape == ()


def test_multilabel_margin_layer() -> None:
    x = torch.tensor([[0.1, 0.2, 0.4, 0.8]])
    target = torch.tensor([[3, 0, -1, 1]])
    # the example of PyTorch's documentation: 0.25 * (1 - 0.6 + 1 - 0.4 + 1 - -0.1 + 1 - -0.3)
    near(nn.MultiLabelMarginLoss()(x, target), 0.85)


def test_distances_of_equal_points_have_a_gradient_of_zero() -> None:
    for p in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, float("inf")):
        x = torch.ones(3 if p != 2 else 27, 2, requires_grad=True)
        torch.cdist(x, x, p).sum().backward()
        assert x.grad is None or not x.grad.numpy().any(), p


def test_the_mode_of_cdist_says_how_distances_are_computed() -> None:
    x = 100 + numpy.random.default_rng(0).random((26, 3), numpy.float32)
    y = x[:4] + numpy.float32(0.25)
    exact = numpy.sqrt(((x[:, None].astype(float) - y) ** 2).sum(-1))
    a, b = torch.tensor(x), torch.tensor(y)

    def error(x: torch.Tensor, mode: str, expected: numpy.ndarray) -> float:
        return float(abs(torch.cdist(x, b, compute_mode=mode).numpy() - expected).max())

    by_product, by_differences, default = (
        "use_mm_for_euclid_dist",
        "donot_use_mm_for_euclid_dist",
        "use_mm_for_euclid_dist_if_necessary",
    )
    assert error(a, by_differences, exact) < 1e-6 < 1e-4 < error(a, by_product, exact) < 0.1
    assert error(a, default, exact) == error(a, by_product, exact)  # more than 25 points
    assert error(a[:25], default, exact[:25]) < 1e-6
    assert torch.equal(torch.cdist(a, b), torch.cdist(a, b, compute_mode=by_product))
    equal = torch.cdist(a, a.clone(), compute_mode=by_product)
    assert not equal.diagonal().numpy().any()
    assert float(F.pdist(a)[0]) == float(torch.cdist(a[:2], a[:2])[0, 1])


def test_distances_by_a_product_have_the_gradients_of_those_by_differences() -> None:
    generator = numpy.random.default_rng(1)
    x, y = (torch.tensor(generator.random(shape)) for shape in ((2, 1, 3, 4), (3, 5, 4)))
    gradients = []
    for mode in ("use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"):
        a, b = x.clone().requires_grad_(), y.clone().requires_grad_()
        (torch.cdist(a, b, compute_mode=mode) ** 3).sum().backward()
        gradients.append((a.grad.numpy(), b.grad.numpy()))
    for product, difference in zip(*gradients, strict=True):
        numpy.testing.assert_allclose(product, difference, rtol=1e-12)


MISTAKES: dict[str, tuple[type[Exception], Any, str]] = {
    "features": (
        RuntimeError,
        lambda: torch.cdist(torch.ones(2, 3), torch.ones(2, 4)),
        "x1 has 3 columns, x2 4",
    ),
    "negative": (RuntimeError, lambda: torch.cdist(torch.ones(2, 3), torch.ones(2, 3), -1.0), "p is -1.0"),
    "a matrix": (RuntimeError, lambda: F.pdist(torch.ones(2, 3, 4)), "input has 3 axes, not 2"),
    "class": (
        IndexError,
        lambda: F.multi_margin_loss(torch.ones(2, 3), torch.tensor([0, 3])).item(),
        "class 3 does not exist, there are 3 classes",
    ),
    "power": (
        RuntimeError,
        lambda: F.multi_margin_loss(torch.ones(2, 3), torch.tensor([0, 2]), 3),
        "p is 3",
    ),
    "shape": (
        RuntimeError,
        lambda: F.multilabel_margin_loss(torch.ones(2, 3), torch.tensor([[0, 2]])),
        r"targets of shape \(1, 2\) for input of shape \(2, 3\)",
    ),
    "margin": (
        ValueError,
        lambda: F.triplet_margin_loss(*[torch.ones(2, 3)] * 3, margin=0.0),
        "margin must be greater than 0, got 0.0",
    ),
    "variance": (
        ValueError,
        lambda: F.gaussian_nll_loss(torch.ones(2), torch.ones(2), torch.tensor([1.0, -1.0])),
        "var has negative entry/entries",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(name: str) -> None:
    error, action, text = MISTAKES[name]
    with pytest.raises(error, match=text):
        action()


def test_no_row_counts_in_the_mean():
    x = torch.ones(2, 3, requires_grad=True)
    loss = nn.functional.cross_entropy(x, torch.tensor([-100, -100]))
    loss.backward()
    assert numpy.isnan(loss.item()) and not x.grad.any()


def test_linear_cross_entropy_layer_holds_a_linear_layer():
    layer = nn.LinearCrossEntropyLoss(3, 4, out_features=(2,), bias=True)
    assert {name: tuple(p.shape) for name, p in layer.named_parameters()} == {
        "linear.weight": (8, 3),
        "linear.bias": (8,),
    }
    assert layer(torch.ones(5, 3), torch.zeros(5, 2, dtype=torch.int64)).shape == ()
    with pytest.raises(RuntimeError, match="weight shape"):
        nn.LinearCrossEntropyLoss(3, 4, weight=torch.ones(3))


@pytest.mark.parametrize("log_input", [True, False])
def test_the_poisson_loss_with_the_term_of_stirling(log_input: bool) -> None:
    rates, counts = G.uniform(0.5, 40, 30), numpy.concatenate([[0.0, 0.5, 1.0], numpy.arange(2.0, 29.0)])
    x, t = torch.from_numpy(numpy.log(rates) if log_input else rates), torch.from_numpy(counts)
    found = F.poisson_nll_loss(x, t, log_input, full=True, eps=0.0, reduction="none").numpy()
    plain = F.poisson_nll_loss(x, t, log_input, eps=0.0, reduction="none").numpy()
    large = counts > 1
    assert (found[~large] == plain[~large]).all()
    # what Stirling's approximation leaves out of the logarithm of a factorial is less than 1 / (12 n)
    short = -scipy.stats.poisson.logpmf(counts[large], rates[large]) - found[large]
    assert ((short > 0) & (short < 1 / (12 * counts[large]))).all()
    near(F.poisson_nll_loss(x, t, log_input, True, eps=0.0), found.mean())
    near(nn.PoissonNLLLoss(log_input, full=True, eps=0.0, reduction="sum")(x, t), found.sum())


def test_the_mean_of_a_weighted_huber_loss_is_over_all_elements() -> None:
    x, t, weight = (torch.tensor(G.normal(size=(3, 4))) for _ in range(3))
    each = F.huber_loss(x, t, reduction="none", delta=0.3) * weight
    near(F.huber_loss(x, t, delta=0.3, weight=weight), each.mean().numpy())
    near(F.huber_loss(x, t, delta=0.3, weight=weight, reduction="sum"), each.sum().numpy())


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "huber_loss"])
def test_weights_of_elements_have_the_size_of_the_input(name: str) -> None:
    with pytest.raises(ValueError, match=r"same size, got \(4,\) and \(3, 4\)"):
        getattr(F, name)(torch.ones(3, 4), torch.zeros(3, 4), weight=torch.ones(4))


@pytest.mark.parametrize("name", ["binary_cross_entropy", "binary_cross_entropy_with_logits"])
@pytest.mark.parametrize("option", ["weight", "pos_weight"])
@pytest.mark.parametrize(("shape", "weights"), [((3,), (3, 1)), ((3, 1), (3, 4)), ((), (3,)), ((2,), (2, 2))])
def test_weights_do_not_repeat_the_input(
    name: str, option: str, shape: tuple[int, ...], weights: tuple[int, ...]
) -> None:
    if option == "pos_weight" and name == "binary_cross_entropy":
        return
    x = torch.full(shape, 0.3)
    with pytest.raises(RuntimeError, match=f"{option} of shape"):
        getattr(F, name)(x, x, **{option: torch.ones(weights)})


def test_class_weights_of_target_probabilities_have_a_gradient() -> None:
    x, target = torch.tensor(G.normal(size=(5, 4))), torch.tensor(G.dirichlet(numpy.ones(4), 5))
    weight = torch.tensor([0.5, 2.0, 1.0, 3.0], dtype=torch.float64, requires_grad=True)
    for smoothing in (0.0, 0.3):
        for reduction in ("mean", "none"):
            options = {"label_smoothing": smoothing, "reduction": reduction}
            assert torch.autograd.gradcheck(lambda w, o=options: F.cross_entropy(x, target, w, **o), [weight])


def test_class_numbers_give_their_weights_no_gradient() -> None:
    weight = torch.ones(4, requires_grad=True)
    with pytest.raises(RuntimeError, match="no gradient with respect to weight"):
        F.cross_entropy(torch.randn(5, 4), torch.tensor([0, 1, 2, 3, 0]), weight)


def test_probabilities_have_no_class_to_ignore() -> None:
    with pytest.raises(RuntimeError, match="ignore_index 1 for target probabilities"):
        F.cross_entropy(torch.randn(5, 4), torch.full((5, 4), 0.25), ignore_index=1)


def test_cosine_of_floats_and_whole_numbers():
    x, classes = torch.tensor([[3.0, 4.0]]), torch.tensor([[1, 0]])
    assert torch.nn.functional.cosine_similarity(x, classes).item() == pytest.approx(0.6)
    found = torch.nn.functional.cosine_embedding_loss(x, classes, torch.tensor([1]))
    assert found.item() == pytest.approx(0.4)
    with pytest.raises(DTypeError, match="floating"):
        torch.nn.functional.cosine_similarity(classes, classes)


def test_the_older_name_of_the_mean():
    x, zeros = torch.tensor([1.0, 2.0]), torch.zeros(2)
    with pytest.warns(UserWarning, match="Use reduction='mean'"):
        assert torch.nn.functional.mse_loss(x, zeros, reduction="elementwise_mean").item() == 2.5
    with pytest.warns(UserWarning, match="elementwise_mean"):
        assert nn.L1Loss(reduction="elementwise_mean")(x, zeros).item() == 1.5
    with pytest.warns(UserWarning, match="elementwise_mean"):
        found = torch.nn.functional.margin_ranking_loss(
            x, zeros, -torch.ones(2), reduction="elementwise_mean"
        )
    assert found.item() == 1.5


def test_batchmean_divides_by_the_first_size_of_the_input() -> None:
    target = torch.tensor([[0.1, 0.4, 0.5], [0.3, 0.3, 0.4]])
    for input in (
        torch.full((1, 3), -1.0),
        torch.full((3,), -1.0),
        torch.full((2, 3), -1.0),
        torch.tensor(-1.0),
    ):
        total = F.kl_div(input, target, reduction="sum").item()
        found = F.kl_div(input, target, reduction="batchmean").item()
        assert found == pytest.approx(total / (input.shape[0] if input.ndim else 1))
