"""Losses and layers whose operands do not promote: which mixes of dtypes they take, as in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import twofold as torch
from twofold.nn import functional as F


def ones(*size: int, dtype: str = "float32") -> Any:
    return torch.ones(*size, dtype=getattr(torch, dtype))


NORMS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "layer_norm": lambda x, w, b: F.layer_norm(x, (3,), w, b),
    "batch_norm": lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
    "batch_norm, statistics": lambda x, w, b: F.batch_norm(x, w, w, b, b),
    "batch_norm, training statistics": lambda x, w, b: F.batch_norm(
        x, torch.zeros(3, dtype=w.dtype), torch.ones(3, dtype=w.dtype), b, None, True
    ),
    "group_norm": lambda x, w, b: F.group_norm(x, 1, w, b),
    "instance_norm": lambda x, w, b: F.instance_norm(x[:, :, None].expand(2, 3, 4), weight=w, bias=b),
}


@pytest.mark.parametrize("name", NORMS)
def test_parameters_of_norms(name: str) -> None:
    norm = NORMS[name]
    for x, other in (
        ("float32", "float64"),
        ("float64", "float32"),
        ("float32", "float16"),
        ("float16", "float64"),
    ):
        for weight, bias in ((other, other), (x, other), (other, x)):
            with pytest.raises(RuntimeError, match="mixed dtypes"):
                norm(ones(2, 3, dtype=x), ones(3, dtype=weight), ones(3, dtype=bias))
    for x in ("float16", "bfloat16"):
        found = norm(ones(2, 3, dtype=x), ones(3), ones(3))
        assert found.dtype is getattr(torch, x)
        with pytest.raises(RuntimeError, match="mixed dtypes"):
            norm(ones(2, 3, dtype=x), ones(3, dtype=x), ones(3))
    assert F.rms_norm(ones(2, 3), (3,), ones(3, dtype="float64")).dtype is torch.float32


@pytest.mark.parametrize("other", ["float64", "float16", "int64"])
def test_layers_do_not_promote(other: str) -> None:
    for call in (
        lambda: F.prelu(ones(2, 3), ones(3, dtype=other)),
        lambda: torch.nn.PReLU()(ones(2, 3, dtype=other)),
        lambda: torch.cdist(ones(2, 3), ones(2, 3, dtype=other)),
        lambda: torch.cdist(ones(2, 3, dtype=other), ones(2, 3), p=1.0),
        lambda: F.bilinear(ones(2, 3), ones(2, 3), ones(4, 3, 3, dtype=other)),
        lambda: F.bilinear(ones(2, 3), ones(2, 3, dtype=other), ones(4, 3, 3)),
        lambda: F.bilinear(ones(2, 3), ones(2, 3), ones(4, 3, 3), ones(4, dtype=other)),
    ):
        with pytest.raises(RuntimeError):
            call()


def test_binary_cross_entropy_with_logits() -> None:
    loss = F.binary_cross_entropy_with_logits
    for dtype in ("int64", "uint8", "bool"):
        for pair in ((ones(2), ones(2, dtype=dtype)), (ones(2, dtype=dtype), ones(2))):
            with pytest.raises(RuntimeError, match=f"of dtype {dtype}"):
                loss(*pair)
        with pytest.raises(RuntimeError, match=f"of dtype {dtype}"):
            torch.nn.BCEWithLogitsLoss()(ones(2), ones(2, dtype=dtype))
        assert loss(ones(2), ones(2), weight=ones(2, dtype=dtype)).dtype is torch.float32
    for x, target in (("float32", "float64"), ("float64", "float32"), ("float16", "float32")):
        given = ones(2, dtype=x).requires_grad_()
        found = loss(given, ones(2, dtype=target), weight=ones(2, dtype="float64"))
        assert found.dtype is getattr(torch, target)
        assert found.item() == pytest.approx(0.31326, rel=1e-3)
        found.backward()
        assert given.grad.dtype is given.dtype


@pytest.mark.parametrize("dtype", ["int64", "uint8"])
def test_losses_of_integers(dtype: str) -> None:
    whole, other = ones(2, dtype=dtype), torch.zeros(2, dtype=getattr(torch, dtype))
    for loss in (F.mse_loss, F.smooth_l1_loss, F.huber_loss, F.soft_margin_loss):
        for reduction in ("mean", "sum", "none"):
            with pytest.raises(RuntimeError, match=f"input of dtype {dtype} and target of dtype {dtype}"):
                loss(whole, other, reduction=reduction)
        assert loss(ones(2), whole).dtype is torch.float32
    with pytest.raises(RuntimeError):
        F.l1_loss(whole, other)
    assert F.l1_loss(whole, other, reduction="none").tolist() == [1, 1]
    assert F.l1_loss(whole, other, reduction="sum").item() == 2
    assert F.mse_loss(whole, torch.zeros(2)).item() == 1
    for loss in (F.huber_loss, F.soft_margin_loss):
        with pytest.raises(RuntimeError, match="does not take input"):
            loss(whole, ones(2))
    with pytest.raises(RuntimeError):
        F.mse_loss(ones(2, dtype="complex64"), ones(2))
    assert F.l1_loss(ones(2, dtype="complex64"), ones(2)).item() == 0
