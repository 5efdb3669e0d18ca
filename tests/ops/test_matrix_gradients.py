"""Gradients of matrix functions whose generated tests cannot move one element alone: symmetric arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import twofold as torch
from twofold import _core
from twofold.dtypes import float64
from twofold.frontend.gradients import grad
from twofold.ir.op import REGISTRY
from twofold.ir.types import tensor_type
from twofold.transforms.gradient_check import compare_gradients, numeric_vjp
from twofold.transforms.reverse import closed_graph, vjp_graph


@pytest.fixture(autouse=True)
def unfused() -> Iterator[None]:
    """Operations one by one: what is called again and again here need not be compiled as a whole."""
    _core.set_tier("unfused")
    yield
    _core.set_tier("auto")


def symmetric(x: Any) -> Any:
    return (x + x.transpose(-2, -1)) * 0.5


def positive(x: Any) -> Any:
    return x @ x.transpose(-2, -1) + torch.eye(x.shape[-1], dtype=x.dtype)


def eigenvectors(x: Any, triangle: str) -> Any:
    values, vectors = torch.linalg.eigh(symmetric(x), triangle)
    return (vectors * torch.exp(values).unsqueeze(-2)) @ vectors.transpose(-2, -1)


def rank_one(x: Any) -> Any:
    return x[..., :1] @ x[..., :1].transpose(-2, -1)


def general_function(x: Any) -> Any:
    values, vectors = torch.linalg.eig(x)
    whole = (vectors * torch.exp(values).unsqueeze(-2)) @ torch.linalg.inv(vectors)
    return torch.real(whole) + torch.imag(whole)


def as_complex(x: Any) -> Any:
    return torch.complex(x, x.flip(-1) * 0.5 + x.transpose(-2, -1))


def complex_singular_vectors(x: Any) -> Any:
    u, s, vh = torch.linalg.svd(as_complex(x), full_matrices=False)
    return torch.view_as_real(u[..., :2] @ vh[..., :2, :] * s[..., :1, None])


def complex_eigenvectors(x: Any) -> Any:
    z = as_complex(x)
    values, vectors = torch.linalg.eigh(z + z.mH)
    return torch.view_as_real((vectors * torch.sin(values).unsqueeze(-2)) @ vectors.mH)


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "cholesky": lambda x: torch.linalg.cholesky(positive(x)),
    "upper cholesky": lambda x: torch.linalg.cholesky(positive(x), upper=True),
    "cholesky_inverse": lambda x: torch.cholesky_inverse(torch.linalg.cholesky(positive(x))),
    "cholesky_solve": lambda x: torch.cholesky_solve(x, torch.linalg.cholesky(positive(x), upper=True), True),
    "eigh of the lower triangle": lambda x: eigenvectors(x, "L"),
    "eigh of the upper triangle": lambda x: eigenvectors(x, "U"),
    "eigvalsh": lambda x: torch.linalg.eigvalsh(symmetric(x)),
    "pinv of symmetric matrices": lambda x: torch.linalg.pinv(symmetric(x), hermitian=True),
    "pinv of a rank": lambda x: torch.linalg.pinv(rank_one(x), rtol=1e-6),
    "singular vectors": lambda x: torch.linalg.svd(x).U[..., :1] @ torch.linalg.svd(x).Vh[..., :1, :],
    "determinant of a singular matrix": lambda x: torch.linalg.det(x - x[..., :1]),
    "the LU of a permuted matrix": lambda x: torch.linalg.lu(x.flip(-2)).U,
    "eigenvectors of a general matrix": general_function,
    "lengths of eigenvectors": lambda x: torch.linalg.eig(x).eigenvectors.abs(),
    "complex singular vectors": complex_singular_vectors,
    "eigenvectors of a Hermitian matrix": complex_eigenvectors,
    "complex cholesky": lambda x: torch.view_as_real(
        torch.linalg.cholesky(as_complex(x) @ as_complex(x).mH + torch.eye(3, dtype=x.dtype))
    ),
    "reflections": lambda x: torch.linalg.householder_product(x, x[..., 0]),
}


def value(function: Callable[[Any], Any], array: Any) -> Any:
    return function(torch.tensor(array)).numpy()


@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3)], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_against_differences(name: str, shape: tuple[int, ...]) -> None:
    function = FUNCTIONS[name]
    generator = numpy.random.default_rng(len(shape))
    array = generator.normal(size=shape)
    x = torch.tensor(array, requires_grad=True)
    result = function(x)
    cotangent = generator.normal(size=tuple(result.shape))
    (first,) = grad(result, x, torch.tensor(cotangent), create_graph=True)
    numeric = numeric_vjp(lambda a: value(function, a[0]), [array], cotangent, 0)
    assert compare_gradients(first.numpy(force=True), numeric) is None
    direction = generator.normal(size=shape)
    (second,) = grad(first, x, torch.tensor(direction))

    def slope(a: Any) -> Any:
        y = torch.tensor(a[0], requires_grad=True)
        return grad(function(y), y, torch.tensor(cotangent))[0].numpy()

    numeric = numeric_vjp(slope, [array], direction, 0)
    assert compare_gradients(second.numpy(), numeric, 1e-4) is None


def test_repeated_singular_values_have_a_gradient() -> None:
    x = torch.eye(3, dtype=torch.float64)
    x.requires_grad = True
    u, s, vh = torch.linalg.svd(x)
    ((u * s) @ vh).sum().backward()
    assert torch.isfinite(x.grad).all()
    torch.linalg.svdvals(x.detach()).sum()


def test_factors_are_computed_once() -> None:
    calls = []
    original = numpy.linalg.svd
    try:
        numpy.linalg.svd = lambda *a, **k: calls.append(1) or original(*a, **k)
        u, s, vh = torch.linalg.svd(torch.ones(3, 3))
        (u.sum() + s.sum() + vh.sum()).item()
    finally:
        numpy.linalg.svd = original
    assert len(calls) == 1


def test_low_rank() -> None:
    generator = numpy.random.default_rng(1)
    for shape in ((7, 5), (5, 7), (2, 6, 4)):
        left, right = (
            generator.normal(size=(*shape[:-1], 2)),
            generator.normal(size=(*shape[:-2], 2, shape[-1])),
        )
        a = torch.tensor(left @ right)
        u, s, v = torch.svd_lowrank(a, 2)
        numpy.testing.assert_allclose(((u * s.unsqueeze(-2)) @ v.mH).numpy(), left @ right, atol=1e-10)
        _, s, v = torch.pca_lowrank(a, 2)
        centred = left @ right - (left @ right).mean(-2, keepdims=True)
        numpy.testing.assert_allclose(s.numpy(), numpy.linalg.svd(centred)[1][..., :2], atol=1e-10)
    with pytest.raises(ValueError, match="q=6 for matrices of 2 by 3"):
        torch.svd_lowrank(torch.ones(2, 3))


@pytest.mark.parametrize("mode", ["reduced", "complete"])
def test_the_gradient_of_a_square_qr_is_that_of_a_tall_one(mode: str) -> None:
    """Only wide matrices have columns beside the square part, and take more operations."""

    def count(*shape: int, mode: str = mode) -> int:
        graph = closed_graph(REGISTRY["qr_packed"], (mode,), [tensor_type(float64, shape)])
        found = vjp_graph(graph, 0)
        assert found is not None
        return sum(1 for _ in found[0].nodes())

    assert count(3, 3) == count(4, 3, mode="reduced") < count(3, 4)
    assert count(2, 3, 3) == count(2, 4, 3, mode="reduced") < count(2, 3, 4)


def cofactors(a: Any) -> Any:
    """Signed determinants of what is left without a row and a column: the derivatives of the determinant."""
    found = numpy.empty_like(a)
    for row, column in numpy.ndindex(a.shape):
        rest = numpy.delete(numpy.delete(a, row, 0), column, 1)
        found[row, column] = (-1) ** (row + column) * numpy.linalg.det(rest)
    return found


RANKS = {
    "rank 1 of 2": [[1.0, 2.0], [2.0, 4.0]],
    "rank 0 of 2": [[0.0, 0.0], [0.0, 0.0]],
    "not symmetric": [[0.0, 1.0], [0.0, 0.0]],
    "rank 2 of 3": [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 0.0, 1.0]],
    "rank 1 of 3": [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [-1.0, -2.0, -3.0]],
    "nearly singular": [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0 + 1e-13], [1.0, 0.0, 1.0]],
    "equal singular values": [[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]],
    "small": [[1e-5, 2e-5, 0.0], [2e-5, 4e-5, 0.0], [0.0, 3e-5, 1e-5]],
    "regular": [[2.0, 1.0, 0.0, 1.0], [0.0, 3.0, 1.0, 0.0], [1.0, 0.0, 2.0, 1.0], [0.0, 1.0, 0.0, 1.0]],
}


@pytest.mark.parametrize("name", RANKS)
def test_second_derivatives_of_a_determinant_need_no_inverse(name: str) -> None:
    a = numpy.array(RANKS[name])
    weights = numpy.random.default_rng(5).normal(size=a.shape)
    x = torch.tensor(a, requires_grad=True)
    first = grad(torch.linalg.det(x), [x], create_graph=True)[0]
    numpy.testing.assert_allclose(
        first.detach().numpy(), cofactors(a), rtol=1e-9, atol=1e-9 * abs(a).max() ** 2
    )
    second = grad((first * torch.tensor(weights)).sum(), [x])[0].numpy()
    step = abs(a).max() * 1e-3 + (abs(a).max() == 0)
    wanted = numpy.empty_like(a)
    for position in numpy.ndindex(a.shape):
        moved = numpy.zeros_like(a)
        moved[position] = step
        wanted[position] = ((cofactors(a + moved) - cofactors(a - moved)) * weights).sum() / (2 * step)
    numpy.testing.assert_allclose(second, wanted, rtol=1e-7, atol=1e-8 * abs(wanted).max())


def test_the_order_of_a_norm_may_be_a_number_of_numpy_or_a_tensor():
    x = torch.tensor([3.0, -4.0])
    for order in (numpy.float32(1), numpy.int64(1), torch.tensor(1.0)):
        assert torch.norm(x, order).item() == x.norm(order).item() == 7.0
