"""Functions without a formula for some gradient: only the backward pass that asks for it fails."""

import numpy as np
import pytest

import twofold as torch


def recorded():
    x = torch.tensor([0.25, 0.5], dtype=torch.float64, requires_grad=True)
    return x, torch.special.shifted_chebyshev_polynomial_t(x, torch.tensor(2))


def test_the_value_is_computed():
    _, y = recorded()
    np.testing.assert_allclose(y.detach().numpy(), 2 * (2 * np.array([0.25, 0.5]) - 1) ** 2 - 1)


def test_backward_tells_it_and_what_follows_is_computed():
    x, y = recorded()
    with pytest.raises(NotImplementedError, match="has no gradient with respect to input"):
        y.sum().backward()
    assert (x + 1).tolist() == [1.25, 1.5]
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_a_value_that_no_gradient_was_found_for_does_not_stop_others():
    kept = []

    def function(x):
        kept.append(torch.special.shifted_chebyshev_polynomial_t(x, torch.tensor(2)))
        return kept[-1]

    x = torch.tensor([0.25, 0.5], dtype=torch.float64)
    with pytest.raises(NotImplementedError):
        torch.func.jvp(function, (x,), (x,))
    assert (x + 1).tolist() == [1.25, 1.5]
    assert kept[0].tolist() == [-0.5, -1.0]
