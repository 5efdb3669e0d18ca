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


def test_what_is_neither() -> None:
    for wrong in (2.5, "text", None):
        with pytest.raises(TypeError):
            torch.Tensor(wrong)
    with pytest.raises(TypeError, match="not all whole numbers"):
        torch.Tensor(2, 2.5)
    with pytest.raises(RuntimeError, match="device 'cuda'"):
        torch.Tensor([1], device="cuda")
