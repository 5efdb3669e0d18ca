"""Dual numbers: tangents by hand, through modules and in-place writes, gradients of tangents, and misuse."""

from __future__ import annotations

import pytest

import twofold as torch
from twofold.autograd import forward_ad


@pytest.fixture
def level():
    with forward_ad.dual_level() as number:
        yield number


def dual(values, tangents):
    return forward_ad.make_dual(torch.tensor(values), torch.tensor(tangents))


def tangent(value):
    found = forward_ad.unpack_dual(value).tangent
    return None if found is None else found.tolist()


def test_tangents_follow_the_rules_of_derivatives(level):
    x = dual([1.0, 2.0], [1.0, 0.5])
    assert level == 0 and tangent(x) == [1.0, 0.5]
    assert tangent(x**3) == [3.0, 6.0]
    assert tangent((x * x).sum()) == 4.0
    assert tangent(x * dual([3.0, 4.0], [0.0, 1.0])) == [3.0, 2.0 + 2.0]
    assert tangent(x.max()) == 0.5 and tangent(x.sort(descending=True)[0]) == [0.5, 1.0]
    found = forward_ad.unpack_dual(x + 1)
    assert found.primal.tolist() == [2.0, 3.0] and not found.primal.requires_grad
    assert not found.tangent.requires_grad


def test_what_does_not_depend_on_a_dual_tensor_has_no_tangent(level):
    x = dual([1.0, 2.0], [1.0, 0.5])
    for other in (torch.ones(2), x.detach(), x > 1, torch.ones(2, requires_grad=True) * 2):
        assert forward_ad.unpack_dual(other) == (other, None)


def test_tangents_pass_through_writes_views_and_modules(level):
    x = dual([1.0, 2.0], [1.0, 0.5])
    written = torch.zeros(3)
    written[1:] = x * 2
    written.mul_(3)
    assert tangent(written) == [0.0, 6.0, 3.0] and tangent(x[None].expand(2, 2)) == [[1.0, 0.5]] * 2
    layer = torch.nn.Linear(2, 1)
    del layer._parameters["weight"]
    layer.weight = dual([[1.0, 1.0]], [[1.0, 2.0]])
    assert tangent(layer(torch.tensor([3.0, 4.0]))) == [3.0 + 8.0]


def test_gradients_flow_through_values_and_tangents(level):
    w = torch.tensor([2.0, 3.0], requires_grad=True)
    v = torch.tensor([1.0, 0.5], requires_grad=True)
    value, found = forward_ad.unpack_dual((forward_ad.make_dual(w, v) ** 3).sum())
    found.backward(retain_graph=True)
    assert w.grad.tolist() == [12.0, 9.0] and v.grad.tolist() == [12.0, 27.0]
    w.grad = None
    value.backward()
    assert w.grad.tolist() == [12.0, 27.0]


def test_complex_numbers(level):
    z = dual([1 + 2j], [1j])
    assert tangent(z * z) == [2 * (1 + 2j) * 1j] and tangent(z.conj()) == [-1j]


def test_levels_begin_and_end():
    number = forward_ad.enter_dual_level()
    x = dual([1.0], [1.0])
    with pytest.raises(RuntimeError, match="Nested"):
        forward_ad.enter_dual_level()
    with pytest.raises(RuntimeError, match="not the last one"):
        forward_ad.exit_dual_level(level=number + 1)
    forward_ad.exit_dual_level(level=number)
    assert tangent(x * 2) is None
    with pytest.raises(RuntimeError, match="no level exists"):
        dual([1.0], [1.0])
    with pytest.raises(RuntimeError, match="not the last one"):
        forward_ad.exit_dual_level()


def test_wrong_tangents_are_refused(level):
    x = dual([1.0, 2.0], [1.0, 0.5])
    with pytest.raises(RuntimeError, match="depends on a dual tensor"):
        forward_ad.make_dual(x * 2, torch.ones(2))
    with pytest.raises(RuntimeError, match=r"float32\[2\].*float32\[3\]"):
        dual([1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="Expected primal to be floating"):
        dual([1], [1])
    with pytest.raises(TypeError, match="float"):
        forward_ad.make_dual(torch.ones(()), 1.0)
    with torch.no_grad(), pytest.raises(RuntimeError, match="recording is off"):
        forward_ad.unpack_dual(x)
