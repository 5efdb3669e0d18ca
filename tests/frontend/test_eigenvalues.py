"""A few eigenvalues of symmetric matrices."""

import numpy
import pytest

import twofold as torch


def symmetric(size, shift=0.0):
    x = numpy.random.default_rng(size).standard_normal((size, size))
    return torch.tensor(x @ x.T + shift * numpy.eye(size))


@pytest.mark.parametrize("largest", [True, False])
def test_values_come_from_one_end(largest):
    A = symmetric(7)
    values, vectors = torch.lobpcg(A, k=3, largest=largest)
    every = numpy.linalg.eigvalsh(A.numpy())
    numpy.testing.assert_allclose(
        values.numpy(), every[::-1][:3] if largest else every[:3], rtol=1e-9, atol=1e-12
    )
    assert torch.allclose(A @ vectors, vectors * values, atol=1e-9)


def test_the_general_problem():
    A, B = symmetric(6), symmetric(6, 1.0)
    values, vectors = torch.lobpcg(A, B=B, X=torch.zeros(6, 2))
    assert torch.allclose(A @ vectors, B @ vectors * values, atol=1e-8)
    assert torch.allclose(vectors.T @ B @ vectors, torch.eye(2, dtype=torch.float64), atol=1e-9)


def test_gradients_flow_through_values():
    A = symmetric(4).requires_grad_()
    values, vectors = torch.lobpcg(A, k=1)
    values.sum().backward()
    assert torch.allclose(A.grad, (vectors @ vectors.T).detach(), atol=1e-9)


def test_more_values_than_there_are():
    with pytest.raises(ValueError, match="5 eigenvalues of matrices of size 4"):
        torch.lobpcg(symmetric(4), k=5)
