"""Functions decorated with gradient modes, with and without brackets, generators among them."""

from __future__ import annotations

import pytest

import twofold as torch

MODES = [
    (torch.no_grad, False),
    (torch.no_grad(), False),
    (torch.enable_grad, True),
    (torch.enable_grad(), True),
    (torch.inference_mode, False),
    (torch.inference_mode(), False),
    (torch.inference_mode(False), True),
]


@pytest.mark.parametrize(("mode", "expected"), MODES)
def test_a_decorated_function_runs_inside(mode, expected):
    assert mode(torch.is_grad_enabled)() is expected and torch.is_grad_enabled()


@pytest.mark.parametrize(("mode", "expected"), MODES)
def test_the_body_of_a_generator_runs_inside_and_what_takes_its_values_does_not(mode, expected):
    closed = []

    @mode
    def generate(first):
        try:
            sent = yield first, torch.is_grad_enabled()
            try:
                yield sent, torch.is_grad_enabled()
            except KeyError:
                yield "caught", torch.is_grad_enabled()
        finally:
            closed.append(torch.is_grad_enabled())

    made = generate(1)
    assert next(made) == (1, expected) and torch.is_grad_enabled()
    assert made.send(2) == (2, expected) and torch.is_grad_enabled()
    assert made.throw(KeyError) == ("caught", expected)
    made.close()
    assert closed == [expected] and torch.is_grad_enabled()


def test_a_generator_without_gradients_returns_a_value():
    @torch.no_grad()
    def generate():
        yield 1
        return 5

    def outer(found):
        found.append((yield from generate()))

    found = []
    assert list(outer(found)) == [1] and found == [5]


def test_set_grad_enabled_as_a_decorator_changes_nothing_outside():
    function = torch.set_grad_enabled(False)(torch.is_grad_enabled)
    assert torch.is_grad_enabled() and not function()


def test_leaving_inference_mode_inside_of_it_records_gradients():
    x = torch.tensor(2.0, requires_grad=True)
    for outer in (torch.inference_mode(), torch.no_grad()):
        with outer:
            with torch.inference_mode(False):
                y = x * x
            assert y.requires_grad and not torch.is_grad_enabled()
        assert torch.autograd.grad(y, x)[0].item() == 4.0
