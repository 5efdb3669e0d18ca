"""Names of gradient functions and methods, gradients at corners, and shapes of single elements."""

from __future__ import annotations

import numpy
import pytest
import scipy.linalg

import twofold as torch
from twofold.ops.linear_algebra import matrices

ALL, SOME = (
    {"sum": "SumBackward0", "mean": "MeanBackward0", "prod": "ProdBackward0"},
    {
        "sum": "SumBackward1",
        "mean": "MeanBackward1",
        "prod": "ProdBackward1",
    },
)


@pytest.mark.parametrize("name", ALL)
def test_reductions_over_all_axes_and_over_some_have_pytorchs_names(name: str) -> None:
    x = torch.ones(2, 3, requires_grad=True)
    assert getattr(x, name)().grad_fn.name() == ALL[name]
    assert getattr(x, name)(dim=1).grad_fn.name() == SOME[name]
    assert x.amax().grad_fn.name() == "AmaxBackward0" or x.amax().grad_fn.name().startswith("Max")


def test_the_gradient_of_hypot_is_zero_at_the_origin() -> None:
    a, b = (torch.zeros(2, requires_grad=True) for _ in range(2))
    torch.hypot(a, b).sum().backward()
    assert a.grad.tolist() == [0, 0] and b.grad.tolist() == [0, 0]
    a, b = torch.tensor([3.0], requires_grad=True), torch.tensor([4.0], requires_grad=True)
    torch.hypot(a, b).sum().backward()
    numpy.testing.assert_allclose([a.grad.item(), b.grad.item()], [0.6, 0.8], rtol=1e-6)


@pytest.mark.parametrize("name", ["median", "nanmedian"])
def test_the_median_is_a_method_too(name: str) -> None:
    x = torch.tensor([[4.0, 1.0, 3.0], [9.0, 7.0, 8.0]])
    assert getattr(x, name)().item() == 4.0
    values, indices = getattr(x, name)(1)
    assert values.tolist() == [3.0, 8.0] and indices.tolist() == [2, 2]


@pytest.mark.parametrize("count", [1, 2, 5])
def test_powers_of_a_vector(count: int) -> None:
    x = numpy.array([2.0, 3.0])
    found = torch.linalg.vander(torch.tensor(x), N=count)
    numpy.testing.assert_array_equal(found.numpy(), numpy.vander(x, count, increasing=True))
    with pytest.raises((RuntimeError, ValueError)):
        torch.linalg.vander(torch.tensor(x), N=0)


@pytest.mark.parametrize("size", [1, 2, 3, 40, 70, 130])
@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_triangular_systems_of_every_block(size: int, upper: bool, unit: bool) -> None:
    generator = numpy.random.default_rng(size)
    a = generator.normal(size=(2, size, size)) / size + 2 * numpy.eye(size)
    b = generator.normal(size=(2, size, 3))
    wanted = [scipy.linalg.solve_triangular(m, r, lower=not upper, unit_diagonal=unit) for m, r in zip(a, b)]
    found = torch.linalg.solve_triangular(torch.tensor(a), torch.tensor(b), upper=upper, unitriangular=unit)
    numpy.testing.assert_allclose(found.numpy(), wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("size", [1, 3, 17, 37, 90])
@pytest.mark.parametrize("upper", [True, False])
def test_cholesky_factors_of_every_block(size: int, upper: bool) -> None:
    x = numpy.random.default_rng(size).normal(size=(2, size, size))
    a = x @ x.swapaxes(1, 2) + numpy.eye(size)
    read = numpy.triu(a) if upper else numpy.tril(a)  # the other triangle is not read
    found = torch.linalg.cholesky(torch.tensor(read), upper=upper)
    lower = numpy.linalg.cholesky(a)
    wanted = lower.swapaxes(1, 2) if upper else lower
    numpy.testing.assert_allclose(found.numpy(), wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("upper", [True, False])
def test_cholesky_factors_up_to_the_minor_that_fails(upper: bool) -> None:
    x = numpy.random.default_rng(0).normal(size=(3, 9, 9))
    a = x @ x.swapaxes(1, 2) + numpy.eye(9)
    whole = numpy.linalg.cholesky(a)
    a[1, 5, 5], a[2, 0, 0] = -1.0, numpy.nan
    factor, info = torch.linalg.cholesky_ex(torch.tensor(a), upper=upper)
    assert info.tolist() == [0, 6, 1]
    lower = factor.numpy().swapaxes(1, 2) if upper else factor.numpy()
    numpy.testing.assert_allclose(lower[0], whole[0], rtol=1e-10, atol=1e-12)
    numpy.testing.assert_allclose(lower[1, :5, :5], whole[1, :5, :5], rtol=1e-10, atol=1e-12)
    numpy.testing.assert_array_equal(lower[1, :, 5:], numpy.tril(a[1])[:, 5:])
    for given, which in ((a, "batch element 1"), (a[1], "the matrix"), (a[None], r"batch element \(0, 1\)")):
        with pytest.raises(torch.linalg.LinAlgError, match=f"{which} is not positive definite.* order 6 "):
            torch.linalg.cholesky(torch.tensor(given), upper=upper)


@pytest.mark.parametrize("size", [1, 2, 5, 18, 67])
def test_systems_and_inverses_of_every_block(size: int) -> None:
    generator = numpy.random.default_rng(size)
    a = generator.normal(size=(2, size, size))
    a[1, 0, 0] = 0.0 if size > 1 else 1.0  # rows must be exchanged
    for columns in (1, 3, 70):
        b = generator.normal(size=(2, size, columns))
        found = torch.linalg.solve(torch.tensor(a), torch.tensor(b)).numpy()
        numpy.testing.assert_allclose(found, numpy.linalg.solve(a, b), rtol=1e-8, atol=1e-10)
    found = torch.linalg.inv(torch.tensor(a)).numpy()
    numpy.testing.assert_allclose(found, numpy.linalg.inv(a), rtol=1e-8, atol=1e-10)


def test_singular_systems_name_the_pivot_or_give_nan() -> None:
    a = numpy.random.default_rng(0).normal(size=(3, 9, 9))
    a[1, :, 4] = 0
    inverse, info = torch.linalg.inv_ex(torch.tensor(a))
    assert info.tolist() == [0, 5, 0]
    assert numpy.isnan(inverse.numpy()).all((1, 2)).tolist() == [False, True, False]
    numpy.testing.assert_allclose(inverse.numpy()[2], numpy.linalg.inv(a[2]), rtol=1e-8, atol=1e-10)
    for call in (torch.linalg.inv, lambda x: torch.linalg.solve(x, x)):
        with pytest.raises(torch.linalg.LinAlgError, match="batch element 1 is singular: pivot 5 "):
            call(torch.tensor(a))


def test_large_matrices_are_factored_by_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.tensor(numpy.random.default_rng(0).normal(size=(6, 6)) + 9 * numpy.eye(6))
    calls = (
        torch.linalg.inv,
        lambda x: torch.linalg.solve(x, x[:, :2]),
        lambda x: torch.linalg.cholesky(x @ x.mT),
        lambda x: torch.linalg.solve_triangular(x, x, upper=True),
    )
    kernels = [call(x).numpy() for call in calls]
    monkeypatch.setattr(matrices, "_LARGEST", 5)
    for call, expected in zip(calls[:1] + calls[2:], kernels[:1] + kernels[2:], strict=True):
        numpy.testing.assert_allclose(call(x[None]).numpy()[0], expected, rtol=1e-10, atol=1e-12)
    found = torch.linalg.solve(x[None], x[None, :, :2]).numpy()[0]
    numpy.testing.assert_allclose(found, kernels[1], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("shape", [(3, 5, 2), (4, 2, 3), (3, 2, 2)])
def test_the_gradient_of_batched_singular_values(shape: tuple[int, ...]) -> None:
    generator = numpy.random.default_rng(1)
    x = torch.tensor(generator.normal(size=shape), requires_grad=True)

    def reconstructed(x: torch.Tensor) -> torch.Tensor:
        u, s, vh = torch.linalg.svd(x, full_matrices=False)
        return (u * (s.unsqueeze(-2) ** 2)) @ vh

    assert torch.autograd.gradcheck(reconstructed, (x,))
    z = torch.tensor(generator.normal(size=shape) + 1j * generator.normal(size=shape), requires_grad=True)
    assert torch.autograd.gradcheck(reconstructed, (z,))


def test_hardshrink_shows_nan() -> None:
    x = torch.tensor([float("nan"), 0.5, -0.5, 0.75, -numpy.inf], requires_grad=True)
    found = torch.nn.functional.hardshrink(x)
    numpy.testing.assert_array_equal(found.detach().numpy(), [numpy.nan, 0, 0, 0.75, -numpy.inf])
    found.sum().backward()
    assert x.grad.tolist() == [1, 0, 0, 1, 1]


def test_nan_to_num_replaces_parts_of_complex_numbers() -> None:
    values = numpy.array([complex(numpy.nan, numpy.inf), complex(-numpy.inf, 1), 2 + 1j])
    for arguments in ({}, {"nan": 2.0, "posinf": 7.0}, {"neginf": -5.0}):
        found = torch.nan_to_num(torch.tensor(values), **arguments).numpy()
        numpy.testing.assert_array_equal(found, numpy.nan_to_num(values, **arguments))


def test_complex_powers_of_zero() -> None:
    exponents = torch.tensor([2 + 1j, 0j, -1 + 0j, -2 + 1j, 1j])
    found = (torch.zeros(5, dtype=torch.complex64) ** exponents).numpy()
    assert found[:2].tolist() == [0, 1] and numpy.isinf(found[2:4]).all() and numpy.isnan(found[4])
    assert numpy.isinf((torch.tensor(0j) ** -1).numpy()) and (torch.tensor(0j) ** 3).item() == 0


@pytest.mark.parametrize("function", [torch.complex, torch.polar])
def test_parts_of_complex_numbers_have_one_dtype(function):
    single, double = torch.ones(2), torch.ones(2, dtype=torch.float64)
    for parts in ((single, double), (double[0], single), (single, torch.ones(2, dtype=torch.float16))):
        with pytest.raises(RuntimeError, match="to have the same dtype"):
            function(*parts)
    assert (
        function(double, double).dtype is torch.complex128 and function(single, 0.0).dtype is torch.complex64
    )


@pytest.mark.parametrize("dtype", [torch.int64, torch.int8, torch.uint8])
def test_index_add_cuts_the_fraction_of_alpha_off_beside_integers(dtype: torch.dtype) -> None:
    source = torch.tensor([5, 4, 3], dtype=dtype)
    found = torch.tensor([1, 0, 3], dtype=dtype).index_add(0, torch.tensor([0, 0, 1]), source, alpha=2.5)
    assert found.dtype is dtype and found.tolist() == [19, 6, 3]  # PyTorch 2.13's


def test_central_differences_skip_what_is_not_finite_between_them() -> None:
    x = numpy.array([[1.0, -numpy.inf, 2.0, 5.0], [1.0, numpy.nan, 4.0, 9.0]])
    for spacing in (1, 0.5):
        (found,) = torch.gradient(torch.tensor(x), spacing=spacing, dim=1)
        numpy.testing.assert_array_equal(found.numpy(), numpy.gradient(x, spacing, axis=1))


def test_dtypes_of_results_without_elements() -> None:
    none = torch.zeros(0, dtype=torch.int64)
    assert torch.bincount(none, weights=none.double(), minlength=2).tolist() == [0, 0]
    assert torch.bincount(none, weights=none.double()).dtype is torch.int64  # as in PyTorch
    assert torch.cumulative_trapezoid(none).dtype is torch.trapezoid(none).dtype is torch.float32


def test_functions_that_have_nothing_to_do_return_their_input() -> None:
    """As in PyTorch: a leaf stays a leaf, and what is asked of the result is asked of the input."""
    x, m = torch.ones(3, requires_grad=True), torch.ones(2, 2)
    for _ in range(3):
        assert x.flatten() is torch.nn.Flatten(0)(x) is torch.atleast_1d(x) is x
        assert torch.flatten(m, 1, 1) is torch.atleast_2d(m) is torch.asarray(m) is m
        assert torch.asarray(x) is not x and not torch.asarray(x).requires_grad
        assert torch.atleast_2d(x).shape == (1, 3) and m.flatten().shape == (4,)
