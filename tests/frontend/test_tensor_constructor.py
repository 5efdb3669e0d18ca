"""Calling the tensor type: data or sizes in the default dtype, as PyTorch's oldest constructor."""

from __future__ import annotations

import numpy
import pytest

import twofold as torch


def test_from_data() -> None:
    for data in ([1, 2], (1, 2), range(1, 3), numpy.array([1, 2]), torch.tensor([1.0, 2.0])):
        made = torch.Tensor(data)
        assert made.dtype is torch.float32 and made.tolist() == [1.0, 2.0]
    assert torch.Tensor([[1, 2], [3, 4]]).shape == (2, 2) and torch.Tensor([]).shape == (0,)
    assert torch.Tensor([torch.tensor(1), torch.tensor(2)]).tolist() == [1.0, 2.0]


def test_from_sizes() -> None:
    assert torch.Tensor().shape == (0,) and torch.Tensor(3).shape == (3,)
    assert torch.Tensor(2, 3).shape == torch.Tensor(torch.ones(2, 3).shape).shape == (2, 3)
    assert torch.Tensor(2, 3, device="cpu").dtype is torch.float32


def test_the_default_dtype() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.Tensor([1]).dtype is torch.Tensor(2).dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_subclasses() -> None:
    class Named(torch.Tensor):
        pass

    assert type(Named([1, 2])) is type(Named(2, 3)) is Named and Named([1, 2]).tolist() == [1.0, 2.0]


def test_a_tensor_as_one_of_a_subclass_shares_its_memory_and_its_gradient() -> None:
    class Named(torch.Tensor):
        name = "x"

    leaf = torch.ones(2, requires_grad=True)
    base = leaf * 2
    named = base.as_subclass(Named)
    assert type(named) is Named and named.name == "x" and not named.is_leaf and type(named + 1) is Named
    base.add_(1)
    named.mul_(5)
    assert base.tolist() == named.tolist() == [15.0, 15.0]
    named.sum().backward()
    assert leaf.grad.tolist() == [10.0, 10.0]
    turned = torch.arange(6).reshape(2, 3).t().as_subclass(Named)
    assert turned.stride() == (1, 3) and turned.tolist() == [[0, 3], [1, 4], [2, 5]]
    for wrong in (int, named):
        with pytest.raises(TypeError, match="is no class of tensors"):
            leaf.as_subclass(wrong)


def test_what_is_neither() -> None:
    for wrong in (2.5, "text", None):
        with pytest.raises(TypeError):
            torch.Tensor(wrong)
    with pytest.raises(TypeError, match="not all whole numbers"):
        torch.Tensor(2, 2.5)
    with pytest.raises(RuntimeError, match="device 'cuda'"):
        torch.Tensor([1], device="cuda")
