"""Logarithms of sums of complex exponentials."""

import numpy

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
