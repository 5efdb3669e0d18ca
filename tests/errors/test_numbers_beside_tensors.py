"""A Python number that the dtype of the tensor beside it cannot hold is refused, as in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import twofold as torch
from twofold.nn import functional as F
from twofold.ops.elementwise.checks import fitting

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


WRITTEN_STRICTLY: dict[str, Callable[[Any, Any], Any]] = {
    "full": lambda x, v: torch.full((2,), v, dtype=x.dtype),
    "full_like": lambda x, v: torch.full_like(x, v),
    "new_full": lambda x, v: x.new_full((2,), v),
    "fill": lambda x, v: torch.fill(x, v),
    "fill_": lambda x, v: x.clone().fill_(v),
    "masked_fill": lambda x, v: x.masked_fill(MASK, v),
    "masked_fill_": lambda x, v: x.clone().masked_fill_(MASK, v),
    "index_fill": lambda x, v: x.index_fill(0, INDEX, v),
    "scatter": lambda x, v: x.scatter(0, INDEX, v),
    "pad": lambda x, v: F.pad(x, (1, 1), value=v),
    "clamp, max": lambda x, v: x.clamp(max=v),
    "clamp": lambda x, v: x.clamp(v, 1.0),
    "clamp_min_": lambda x, v: x.clone().clamp_min_(v),
    "add, alpha": lambda x, v: torch.add(x, x, alpha=v),
    "threshold, value": lambda x, v: F.threshold(x, 0.0, v),
}  # fmt: skip
"""Where PyTorch lets no finite number become infinite, in any dtype."""

AS_TENSORS: dict[str, Callable[[Any, Any], Any]] = {
    "where": lambda x, v: torch.where(MASK, v, x),
    "where, method": lambda x, v: x.where(~MASK, v),
    "scalar_tensor": lambda x, v: torch.scalar_tensor(v, dtype=x.dtype)[None],
    "setitem": lambda x, v: _with_first(x.clone(), 0, v),
    "setitem, mask": lambda x, v: _with_first(x.clone(), MASK, v),
}  # fmt: skip
"""Where it makes a tensor of the number first: infinite in the half types only."""

WIDE_FACTORS: dict[str, Callable[[Any, Any], Any]] = {
    "addcmul": lambda x, v: torch.addcmul(x, x, x, value=v),
    "addmm": lambda x, v: torch.addmm(x[:, None], x[:, None], x[None, :1], beta=v),
    "threshold": lambda x, v: F.threshold(x, v, 0.0),
}  # fmt: skip
"""Where it computes the half types in float32."""

SILENT: dict[str, Callable[[Any, Any], Any]] = {
    "tensor": lambda x, v: torch.tensor([v], dtype=x.dtype),
    "as_tensor": lambda x, v: torch.as_tensor([v], dtype=x.dtype),
    "fill_, tensor": lambda x, v: x.clone().fill_(torch.tensor(v, dtype=torch.float64)),
    "setitem, tensor": lambda x, v: _with_first(x.clone(), 0, torch.tensor(v, dtype=torch.float64)),
    "add": lambda x, v: x + v,
    "maximum": lambda x, v: torch.maximum(x, torch.tensor(v, dtype=x.dtype)),
}  # fmt: skip
"""Where it lets them be infinite."""

BEYOND = [(1e40, "float32"), (3.4028235e38 * (1 + 2**-24), "float32"), (1e39, "bfloat16"), (65519.0, "float16"),
          (-1e5, "float16"), (10**6, "float16")]  # fmt: skip


def _with_first(x: Any, key: Any, value: Any) -> Any:
    x[key] = value
    return x


def overflows(call: Callable[[Any, Any], Any], dtype: str, value: Any) -> bool:
    x = torch.tensor([1, 0], dtype=getattr(torch, dtype))
    try:
        call(x, value).tolist()
    except RuntimeError as error:
        assert f"value cannot be converted to type {dtype} without overflow" in str(error)
        return True
    return False


@pytest.mark.parametrize(("value", "dtype"), BEYOND)
def test_finite_numbers_beyond_floating_dtypes(value: Any, dtype: str) -> None:
    half, wide = dtype != "float32", dtype != "float32" and abs(value) < 1e38
    for name, call in WRITTEN_STRICTLY.items():
        assert overflows(call, dtype, value), name
    for name, call in AS_TENSORS.items():
        assert overflows(call, dtype, value) is not half, name
    for call in WIDE_FACTORS.values():
        x = torch.tensor([1, 0], dtype=getattr(torch, dtype))
        if wide:
            call(x, value)
        else:
            with pytest.raises(RuntimeError, match="to type float32 without overflow"):
                call(x, value)
    for name, call in SILENT.items():
        assert not overflows(call, dtype, value), name


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_what_is_not_finite_fits_floating_dtypes(value: float, dtype: str) -> None:
    for name, call in {**WRITTEN_STRICTLY, **AS_TENSORS, **WIDE_FACTORS, **SILENT}.items():
        assert not overflows(call, dtype, value), name


def test_largest_numbers_fit() -> None:
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        most = torch.finfo(dtype).max
        assert torch.full((2,), most, dtype=dtype).tolist() == [most, most]
        assert torch.zeros(2, dtype=dtype).masked_fill(MASK, -most).tolist() == [-most, 0.0]


def test_integers_meet_fractions_in_float32() -> None:
    x = torch.tensor([1, 0])
    for call in (lambda: x.clamp(max=1e40), lambda: torch.where(MASK, x, 1e40), lambda: x.clamp_min(-1e40)):
        with pytest.raises(RuntimeError, match="to type float32 without overflow"):
            call()


INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("fill", [
    lambda x, v: x.masked_fill(MASK, v),
    lambda x, v: x.clone().masked_fill_(MASK, v),
    lambda x, v: x.index_fill(0, INDEX, v),
    lambda x, v: x.clone().index_fill_(0, INDEX, v),
])  # fmt: skip
def test_a_filling_tensor_must_fit(fill: Any, dtype: Any) -> None:
    """PyTorch asks for the number of a tensor without axes, and checks that."""
    x, low, high = torch.tensor([1, 2], dtype=dtype), torch.iinfo(dtype).min, torch.iinfo(dtype).max
    for value in (low, high, 7):
        assert fill(x, torch.tensor(value)).tolist() == [value, 2]
    assert fill(x, torch.tensor(7.9)).tolist() == [7, 2]
    outside = [torch.tensor(value) for value in (float("nan"), float("inf"), -1e30, 1e30)]
    if dtype is not torch.int64:
        outside += [torch.tensor(high + 1), torch.tensor(high + 1.0, dtype=torch.float64)]
    outside.append(torch.tensor(-1.0 if dtype is torch.uint8 else 2.0 * low))
    for value in outside:
        with pytest.raises(RuntimeError, match="value cannot be converted to type .* without overflow"):
            fill(x, value).tolist()
    if dtype is torch.uint8:
        assert fill(x, torch.tensor(-1)).tolist() == [255, 2]


def test_a_filling_tensor_of_floats() -> None:
    for dtype, value in ((torch.float16, 65519.0), (torch.float16, 70000), (torch.float32, 1e40)):
        given = torch.tensor(value, dtype=torch.float64)
        with pytest.raises(RuntimeError, match="without overflow"):
            torch.zeros(2, dtype=dtype).masked_fill(MASK, given).tolist()
    infinite = torch.tensor(float("-inf"), dtype=torch.float64)
    assert torch.zeros(2).masked_fill(MASK, infinite).tolist() == [float("-inf"), 0.0]
    value = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    torch.zeros(2).masked_fill(MASK, value).sum().backward()
    assert value.grad is not None and value.grad.item() == 1.0


def test_a_filling_tensor_is_checked_though_nobody_reads_the_result() -> None:
    torch.tensor([1, 2], dtype=torch.int8).masked_fill(MASK, torch.tensor(300))
    with pytest.raises(RuntimeError, match="test_numbers_beside_tensors.py"):
        (torch.zeros(1) + 1).tolist()


def test_integers_of_lists_are_exact() -> None:
    big = 2**63 + 1
    assert torch.tensor([big, 1], dtype=torch.uint64).tolist() == [big, 1]
    assert torch.tensor([2**64 - 1, 0], dtype=torch.uint64).tolist() == [2**64 - 1, 0]
    assert torch.tensor([2**70, 1.0]).tolist() == [2.0**70, 1.0]
    assert torch.tensor([2**70, 0], dtype=torch.bool).tolist() == [True, False]
    assert torch.tensor(2**64, dtype=torch.float32).item() == 2.0**64
    for data, dtype in ((2**63, None), ([big, 1], None), ([-1, 2**63], None), ([2**63, 1], torch.int64),
                        ([2**64, 1], torch.uint64), (2**70, torch.int32)):  # fmt: skip
        with pytest.raises(RuntimeError, match="without overflow"):
            torch.tensor(data, dtype=dtype)
    for data in ([-1, 2], 1.5, [1.0]):
        with pytest.raises(TypeError, match="uint64 takes integers that are not negative"):
            torch.tensor(data, dtype=torch.uint64)


def test_bools_take_no_numbers_in_place() -> None:
    x = torch.tensor([True, False])
    for call in (lambda: x.clone().add_(300), lambda: x.clone().mul_(2), lambda: x.clone().clamp_(max=3)):
        with pytest.raises(RuntimeError, match="in-place: a result of int64.* cannot be stored in bool"):
            call()
    assert x.clone().logical_or_(torch.tensor([2, 3])).tolist() == [True, True]
    assert torch.add(x, x, alpha=300).tolist() == [True, False]
    assert torch.add(x, x, alpha=True).dtype is torch.bool
    with pytest.raises(RuntimeError, match="Boolean alpha only supported for Boolean results"):
        torch.add(torch.ones(2), torch.ones(2), alpha=True)


def test_thresholds() -> None:
    x = torch.tensor([float("nan"), 1.0])
    assert F.threshold(x, float("nan"), 5.0)[1] == 1.0
    assert F.threshold(x, 2.0, 5.0).isnan().tolist() == [True, False]
    with pytest.raises(RuntimeError, match="not negative"):
        F.hardtanh(torch.tensor([1], dtype=torch.uint8), -1, 5)


@pytest.mark.parametrize("given", [torch.float16, torch.bfloat16], ids=str)
def test_a_filling_tensor_of_half_precision(given: Any) -> None:
    """All its finite numbers fit wide integers, what is not finite fits none; wider floats hold everything."""
    for value in (float("nan"), float("inf"), float("-inf")):
        fill = torch.tensor(value, dtype=given)
        for dtype in (torch.int32, torch.int64):
            with pytest.raises(RuntimeError, match="without overflow"):
                torch.zeros(2, dtype=dtype).masked_fill(MASK, fill).tolist()
        for dtype in (torch.float16, torch.float32, torch.float64):
            filled = torch.zeros(2, dtype=dtype).masked_fill(MASK, fill)
            assert filled.tolist() == pytest.approx([value, 0.0], nan_ok=True)
    assert torch.zeros(2, dtype=torch.int64).masked_fill(MASK, torch.tensor(-96.0, dtype=given)).tolist() == [
        -96,
        0,
    ]


@pytest.mark.parametrize("given", [torch.float16, torch.int8, torch.uint8, torch.int32], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_filling_tensor_whose_dtype_fits_is_not_checked(given: Any, dtype: Any) -> None:
    value = torch.tensor(3, dtype=given)
    assert fitting(value, dtype) is value
    assert torch.zeros(2, dtype=dtype).masked_fill(MASK, value).tolist() == [3.0, 0.0]
