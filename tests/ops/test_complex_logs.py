"""Logarithms of sums of complex exponentials."""

import numpy
import pytest

import twofold as torch


def numbers(*shape):
    drawn = numpy.random.default_rng(1).standard_normal((2, *shape)) * 3
    return drawn[0] + 1j * drawn[1]


def test_running_log_sums_are_logarithms_of_running_sums():
    z = numbers(2, 7, 3)
    found = torch.logcumsumexp(torch.tensor(z), 1)
    numpy.testing.assert_allclose(numpy.exp(found.numpy()), numpy.cumsum(numpy.exp(z), 1), rtol=1e-10)


def test_large_real_parts_do_not_overflow():
    z = torch.tensor(numbers(5) + 1000)
    shifted = torch.logsumexp(z - 1000, 0) + 1000
    assert abs((torch.logsumexp(z, 0) - shifted).item()) < 1e-9
    pair = torch.logaddexp(z[:1], z[1:2])
    assert torch.isfinite(pair).all() and abs((pair - torch.logsumexp(z[:2], 0)).item()) < 1e-9


def test_nothing_is_added_to_minus_infinity():
    nothing = torch.full((2,), -torch.inf, dtype=torch.complex128)
    z = torch.tensor(numbers(2))
    assert torch.logaddexp(nothing, nothing).real.tolist() == [-torch.inf] * 2
    assert torch.allclose(torch.logaddexp(nothing, z), z)


def test_gradients_are_shares():
    z = torch.tensor(numbers(6), requires_grad=True)
    torch.logsumexp(z, 0).real.backward()
    expected = numpy.exp(z.detach().numpy())
    numpy.testing.assert_allclose(z.grad.numpy(), (expected / expected.sum()).conj(), rtol=1e-10)
    last, z.grad = z.grad, None
    torch.logcumsumexp(z, 0)[-1].real.backward()
    numpy.testing.assert_allclose(z.grad.numpy(), last.numpy(), rtol=1e-9)


def test_division_by_zero_divides_each_part():
    dividends = torch.tensor([1 + 2j, 0j, -1j, 3 - 4j])
    with numpy.errstate(all="ignore"):
        expected = dividends.numpy() / numpy.complex64(0)
    for divisor in (0, torch.tensor(0.0), torch.tensor(0j), torch.zeros(4, dtype=torch.complex64)):
        numpy.testing.assert_array_equal((dividends / divisor).numpy(), expected)
    assert str(torch.tensor([0j]).reciprocal()) == "tensor([inf+nanj])"


def test_parts_that_start_at_an_odd_element_are_no_complex_numbers():
    numbers = torch.arange(9.0)
    assert torch.view_as_complex(numbers[2:8].reshape(3, 2)).tolist() == [2 + 3j, 4 + 5j, 6 + 7j]
    for parts in (numbers[1:].reshape(4, 2), numbers.reshape(3, 3)[:, :2], numbers[:8].reshape(2, 4)[:, ::2]):
        with pytest.raises(RuntimeError, match="side by side"):
            torch.view_as_complex(parts)
