"""A gradient whose rule fails is an error of the backward pass alone."""

import pytest

import twofold as torch
from twofold.ir.op import REGISTRY


def broken(*operands):
    raise ValueError("a broken rule")


def test_values_are_there_and_others_go_on(monkeypatch):
    monkeypatch.setattr(REGISTRY["exp2"], "rule_vjp", broken)
    x = torch.full((7, 3, 1, 5), 2.0, requires_grad=True)  # a type that no other test has planned
    y = torch.exp2(x)
    other = torch.ones(3) * 2
    assert other.sum().item() == 6
    assert y.sum().item() == 4 * 105
    for _ in range(2):
        with pytest.raises(ValueError, match="a broken rule"):
            torch.exp2(x).sum().backward()
        assert (other + 1).tolist() == [3, 3, 3]
    assert x.grad is None
