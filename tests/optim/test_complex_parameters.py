"""Complex parameters are moved as their real and imaginary parts are, each a parameter of its own."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import twofold as torch

G = numpy.random.default_rng(5)
FIRST = G.normal(size=(3, 2)) + 1j * G.normal(size=(3, 2))
TARGET = G.normal(size=(3, 2)) + 1j * G.normal(size=(3, 2))

SETTINGS: dict[str, list[dict[str, Any]]] = {
    "SGD": [{"lr": 0.1}, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}],
    "Adam": [{}, {"amsgrad": True, "weight_decay": 0.1}, {"maximize": True}],
    "AdamW": [{"weight_decay": 0.1}],
    "Adamax": [{"weight_decay": 0.1}],
    "NAdam": [{"weight_decay": 0.1}],
    "RAdam": [{"weight_decay": 0.1}],
    "Adagrad": [{"lr_decay": 0.1, "initial_accumulator_value": 0.5}],
    "Adadelta": [{"weight_decay": 0.1}],
    "RMSprop": [{}, {"centered": True, "momentum": 0.5}],
    "Rprop": [{}],
    "ASGD": [{"t0": 2, "weight_decay": 0.1}],
    "LBFGS": [{"max_iter": 3}, {"max_iter": 3, "line_search_fn": "strong_wolfe"}],
}


def _trained(name: str, settings: dict[str, Any], by_parts: bool) -> numpy.ndarray:
    w = torch.tensor(FIRST)
    w = (torch.view_as_real(w).clone() if by_parts else w).requires_grad_()
    optimizer = getattr(torch.optim, name)([w], **settings)
    target = torch.tensor(TARGET)

    def closure() -> Any:
        optimizer.zero_grad()
        z = torch.view_as_complex(w) if by_parts else w
        loss = ((z * z - target).abs() ** 2).sum()
        loss.backward()
        return loss

    for _ in range(7):
        optimizer.step(closure)
    found = torch.view_as_complex(w.detach()) if by_parts else w.detach()
    assert not numpy.array_equal(found.numpy(), FIRST)
    return found.numpy()


@pytest.mark.parametrize(
    ("name", "settings"), [(name, settings) for name, given in SETTINGS.items() for settings in given]
)
def test_complex_parameters_move_by_their_parts(name: str, settings: dict[str, Any]) -> None:
    found, expected = _trained(name, settings, False), _trained(name, settings, True)
    numpy.testing.assert_allclose(found, expected, rtol=1e-12)


def test_lists_of_complex_parameters() -> None:
    w, gradient = torch.tensor(FIRST), torch.tensor(TARGET)
    mean, square, step = torch.zeros_like(w), torch.zeros_like(w), torch.zeros(())
    settings = {"beta1": 0.9, "beta2": 0.99, "lr": 0.1, "weight_decay": 0.0, "eps": 1e-8}
    torch.optim.adam.adam(
        [w], [gradient], [mean], [square], [], [step], amsgrad=False, maximize=False, **settings
    )
    expected = FIRST - 0.1 * (numpy.sign(TARGET.real) + 1j * numpy.sign(TARGET.imag))
    numpy.testing.assert_allclose(w.numpy(), expected, rtol=1e-6)
    squares = 0.01 * (TARGET.real**2 + 1j * TARGET.imag**2)
    numpy.testing.assert_allclose(square.numpy(), squares, rtol=1e-6)


def test_states_of_complex_parameters_are_complex() -> None:
    w = torch.ones(2, dtype=torch.complex64, requires_grad=True)
    optimizer = torch.optim.Rprop([w], lr=0.25)
    w.grad = torch.tensor([1 - 1j, -1 + 0j])
    optimizer.step()
    assert w.tolist() == [0.75 + 0.25j, 1.25 + 0j]
    assert optimizer.state[w]["step_size"].tolist() == [0.25 + 0.25j] * 2
