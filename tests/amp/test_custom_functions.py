"""``custom_fwd`` and ``custom_bwd``: the dtypes that PyTorch's decorators give."""

from __future__ import annotations

from typing import Any

import pytest

import twofold as torch
from twofold.amp import custom_bwd, custom_fwd

SEEN: dict[str, Any] = {}


def function(cast_inputs: Any) -> Any:
    """A product with a matrix, which notes the dtypes and regions that it runs in."""

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any, more: Any) -> Any:
            SEEN["forward"] = (x.dtype, torch.is_autocast_enabled("cpu"), more["y"].dtype, more["n"].dtype)
            ctx.save_for_backward(x, w)
            return x @ w

        @staticmethod
        def backward(ctx: Any, cotangent: Any) -> Any:
            x, w = ctx.saved_tensors
            shares = cotangent @ w.mT, x.mT @ cotangent
            SEEN["backward"] = (torch.is_autocast_enabled("cpu"), shares[0].dtype)
            return (*shares, None)

    made: Any = Product
    made.forward = staticmethod(custom_fwd(device_type="cpu", cast_inputs=cast_inputs)(Product.forward))
    made.backward = staticmethod(custom_bwd(device_type="cpu")(Product.backward))
    return Product


def run(product: Any, enabled: bool, dtype: Any = torch.float32) -> Any:
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=dtype).requires_grad_()
    w = torch.tensor([[1.0, 0.0], [1.0, 1.0]], dtype=dtype).requires_grad_()
    more = {"y": torch.ones(1, dtype=dtype), "n": torch.ones(1, dtype=torch.int64)}
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
        result = product.apply(x, w, more)
    result.sum().backward()
    assert x.grad.tolist() == [[1.0, 2.0], [1.0, 2.0]]
    assert w.grad.tolist() == [[4.0, 4.0], [6.0, 6.0]]
    assert x.grad.dtype is dtype
    return result.dtype


def test_inputs_are_cast_inside_a_region_and_it_is_left() -> None:
    assert run(function(torch.float32), True, torch.bfloat16) is torch.float32
    assert SEEN["forward"] == (torch.float32, False, torch.float32, torch.int64)
    assert SEEN["backward"] == (False, torch.float32)


def test_float64_is_not_cast() -> None:
    assert run(function(torch.float32), True, torch.float64) is torch.float64


def test_without_a_cast_the_region_holds_in_both() -> None:
    assert run(function(None), True) is torch.bfloat16
    assert SEEN["forward"] == (torch.float32, True, torch.float32, torch.int64)
    assert SEEN["backward"] == (True, torch.bfloat16)


@pytest.mark.parametrize("cast_inputs", [None, torch.float32])
def test_outside_a_region_nothing_changes(cast_inputs: Any) -> None:
    assert run(function(cast_inputs), False, torch.float32) is torch.float32
    assert SEEN["forward"][:2] == (torch.float32, False)
    assert SEEN["backward"] == (False, torch.float32)


def test_a_backward_without_the_decorator_runs_outside_the_region() -> None:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, cotangent: Any) -> Any:
            SEEN["product"] = (cotangent @ torch.eye(2)).dtype
            return cotangent * 2

    with torch.autocast("cpu"):
        result = Double.apply(torch.ones(2, 2, requires_grad=True))
    result.sum().backward()
    assert SEEN["product"] is torch.float32


def test_of_another_device() -> None:
    @torch.cuda.amp.custom_fwd(cast_inputs=torch.float32)
    def forward(ctx: Any, x: Any) -> Any:
        return x

    class Context:
        pass

    context: Any = Context()
    x = torch.ones(1, dtype=torch.bfloat16)
    with torch.autocast("cpu"):
        assert forward(context, x) is x
        assert torch.cuda.amp.custom_bwd(lambda ctx, ct: ct)(context, x) is x
    assert context._fwd_used_autocast is False and context._dtype is torch.float16
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        custom_fwd(device_type=3)
