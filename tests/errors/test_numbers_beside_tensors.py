"""A Python number that the dtype of the tensor beside it cannot hold is refused, as in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import twofold as torch
from twofold.nn import functional as F

MASK, INDEX = torch.tensor([True, False]), torch.tensor([0])

WRITTEN: dict[str, Callable[[Any, Any], Any]] = {
    "masked_fill": lambda x, v: x.masked_fill(MASK, v),
    "masked_fill_": lambda x, v: x.masked_fill_(MASK, v),
    "scatter": lambda x, v: x.scatter(0, INDEX, v),
    "scatter value": lambda x, v: x.scatter(0, INDEX, value=v),
    "scatter_": lambda x, v: x.scatter_(0, INDEX, value=v),
    "index_fill": lambda x, v: x.index_fill(0, INDEX, v),
    "index_fill_": lambda x, v: x.index_fill_(0, INDEX, v),
    "pad": lambda x, v: F.pad(x, (1, 1), value=v),
    "constant_pad_nd": lambda x, v: torch.constant_pad_nd(x, (1, 1), v),
    "fill_diagonal_": lambda x, v: x.reshape(1, 2).clone().fill_diagonal_(v),
    "addmm, beta": lambda x, v: torch.addmm(x[:, None], x[:, None], x[None, :1], beta=v),
    "addmm, alpha": lambda x, v: torch.addmm(x[:, None], x[:, None], x[None, :1], alpha=v),
    "addmv": lambda x, v: torch.addmv(x, torch.stack([x, x]), x, alpha=v),
    "addcmul": lambda x, v: torch.addcmul(x, x, x, value=v),
    "index_add": lambda x, v: torch.index_add(x, 0, INDEX, x[:1], alpha=v),
    "threshold": lambda x, v: F.threshold(x, v, 0),
    "threshold, value": lambda x, v: F.threshold(x, 0, v),
}  # fmt: skip
"""The number is written in the tensor's dtype."""

MET: dict[str, Callable[[Any, Any], Any]] = {
    "clamp, max": lambda x, v: x.clamp(max=v),
    "clamp, min": lambda x, v: x.clamp(min=v),
    "clamp": lambda x, v: x.clamp(0, v),
    "clamp_": lambda x, v: x.clamp_(0, v),
    "clip": lambda x, v: torch.clip(x, v, v),
    "clamp_max": lambda x, v: torch.clamp_max(x, v),
    "clamp_min": lambda x, v: torch.clamp_min(x, v),
    "where, other": lambda x, v: torch.where(MASK, x, v),
    "where, input": lambda x, v: torch.where(MASK, v, x),
    "where, method": lambda x, v: x.where(MASK, v),
    "pow": lambda x, v: x**v,
    "add, alpha": lambda x, v: torch.add(x, x, alpha=v),
    "sub, alpha": lambda x, v: torch.sub(x, x, alpha=v),
}
"""An integer is taken in the tensor's dtype; a float promotes (``alpha`` refuses it)."""

OVERFLOWS = [(300, "uint8"), (200, "int8"), (-200, "int8"), (40000, "int16"), (2**40, "int32")]


@pytest.mark.parametrize(("value", "dtype"), OVERFLOWS)
@pytest.mark.parametrize("name", [*WRITTEN, *MET])
def test_integers_that_do_not_fit(name: str, value: int, dtype: str) -> None:
    if name == "pow" and value < 0:
        pytest.skip("negative powers of integers are refused as such")
    x = torch.tensor([1, 0], dtype=getattr(torch, dtype))
    with pytest.raises(RuntimeError, match=f"value cannot be converted to type {dtype} without overflow"):
        {**WRITTEN, **MET}[name](x, value)


@pytest.mark.parametrize("value", [float("inf"), float("nan"), 1e10])
@pytest.mark.parametrize("name", WRITTEN)
def test_floats_that_do_not_fit(name: str, value: float) -> None:
    x = torch.tensor([1, 0], dtype=torch.int8)
    with pytest.raises(RuntimeError, match="value cannot be converted to type int8 without overflow"):
        WRITTEN[name](x, value)


def test_numbers_that_fit_or_promote() -> None:
    x, byte = torch.tensor([1, 0], dtype=torch.int8), torch.tensor([1, 0], dtype=torch.uint8)
    assert x.clamp(max=float("inf")).tolist() == [1.0, 0.0]
    assert torch.where(MASK, x, 1.5).tolist() == [1.0, 1.5]
    assert torch.where(MASK, 300, 1).tolist() == [300, 1]
    assert byte.masked_fill(MASK, -1).tolist() == [255, 0]
    assert byte.clamp(max=-1).tolist() == [1, 0]
    assert torch.constant_pad_nd(byte, (1, 0), -1).tolist() == [255, 1, 0]
    with pytest.raises(RuntimeError, match="without overflow"):  # as in PyTorch, which pads with a float
        F.pad(byte, (1, 0), value=-1)
    for call in (
        lambda: x.masked_fill(MASK, 1.9),
        lambda: x.scatter(0, INDEX, 1.9),
        lambda: x.index_fill(0, INDEX, 1.9),
        lambda: torch.addcmul(x, x, x, value=1.9) - x,
    ):
        assert (call().dtype, call().tolist()) == (torch.int8, [1, 0])
    found = F.threshold(x, 0.9, 2.5)
    assert (found.dtype, found.tolist()) == (torch.int8, [1, 2])
    assert torch.tensor([True, False]).clamp(max=2).tolist() == [1, 0]
    assert (x == 300).tolist() == [False, False]
    assert (x < 300).tolist() == [True, True]
    assert torch.ones(2).masked_fill(MASK, float("-inf")).tolist() == [float("-inf"), 1.0]


def test_a_fraction_of_integers() -> None:
    x = torch.tensor([1, 2])
    for call in (torch.add, torch.sub):
        with pytest.raises(RuntimeError, match="alpha must not be a floating point number"):
            call(x, x, alpha=0.5)
        assert call(x.float(), x, alpha=0.5).dtype is torch.float32
    with pytest.raises(RuntimeError, match="alpha must not be a floating point number"):
        x.clone().add_(x, alpha=0.5)
