"""Older constructors, and gradients under their module name."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import twofold as torch


def test_older_constructors() -> None:
    assert torch.FloatTensor([1, 2]).dtype is torch.float32
    assert torch.LongTensor(2, 3).shape == (2, 3)
    assert isinstance(torch.ones(1), torch.FloatTensor) and not isinstance(torch.ones(1), torch.LongTensor)
    assert torch.ByteTensor([1]).type() == "twofold.ByteTensor"


def test_comparisons_of_whole_tensors() -> None:
    a = torch.tensor([1.0, float("nan"), float("inf")])
    assert not torch.equal(a, a) and torch.equal(a[:1], a[:1]) and not torch.equal(a, a[:1])
    assert not torch.allclose(a, a) and torch.allclose(a, a, equal_nan=True)
    assert torch.isclose(torch.tensor([1.0, 2.0]), torch.tensor([1.000001, 2.1])).tolist() == [True, False]
    assert torch.is_floating_point(a) and torch.numel(a) == 3 and not torch.cuda.is_available()


def test_autograd_functions() -> None:
    x = torch.autograd.Variable(torch.tensor([1.0, 2.0]), requires_grad=True)
    assert isinstance(x, torch.autograd.Variable) and x.requires_grad
    torch.autograd.backward([x.sum(), (x * x).sum()], retain_graph=False)
    assert x.grad.tolist() == [3.0, 5.0]
    (found,) = torch.autograd.grad((x**3).sum(), x)
    assert found.tolist() == [3.0, 12.0]


def test_gradcheck() -> None:
    random = numpy.random.default_rng(0)
    x, w = (torch.tensor(random.normal(size=shape), requires_grad=True) for shape in ((2, 3), (3, 2)))
    assert torch.autograd.gradcheck(lambda x, w: torch.tanh(x @ w), (x, w))

    def wrong(x: Any) -> Any:
        return x * x.detach()

    assert not torch.autograd.gradcheck(wrong, (x,), raise_exception=False)
    with pytest.raises(
        torch.autograd.GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"
    ):
        torch.autograd.gradcheck(wrong, (x,))


def test_types_of_arguments_and_conditions() -> None:
    from typing import get_args

    from twofold.nn.common_types import _ratio_any_t, _size_2_t, _size_any_t

    assert get_args(_size_2_t) == (int, tuple[int, int])
    assert get_args(_size_any_t) == (int, tuple[int, ...]) and get_args(_ratio_any_t)[0] is float
    torch._assert(torch.tensor(True), "never")
    with pytest.raises(AssertionError, match="sizes differ"):
        torch._assert(torch.tensor([1]) == 2, "sizes differ")
