"""Values and dtypes that PyTorch refuses are refused: at the call, or when the value is computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import twofold as torch
from twofold.nn import functional as F

INTEGERS = ("int8", "int16", "int32", "int64", "uint8")


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod"])
def test_integers_divided_by_zero(name: str, dtype: str) -> None:
    function, kind = getattr(torch, name), getattr(torch, dtype)
    x = torch.arange(40).to(kind)
    for divisor in (0, torch.tensor(0, dtype=kind), torch.where(x == 33, 0, 3).to(kind)):
        for _ in range(4):  # op by op, then fused
            with pytest.raises(RuntimeError, match="ZeroDivisionError"):
                (function(x, divisor) + 1).tolist()
            with pytest.raises(ZeroDivisionError):
                (function(x * 2, divisor) * 3).sum().item()
            torch.wait_for_compiler()
    assert function(x, torch.full((40,), 3, dtype=kind)).tolist() == function(x, 3).tolist()
    assert function(x[:0], 0).shape == (0,)


def test_other_ways_to_divide_by_zero() -> None:
    x = torch.tensor([1])
    for call in (
        lambda: x // 0,
        lambda: x % 0,
        lambda: 1 // torch.tensor([0]),
        lambda: 1 % torch.tensor([0]),
        lambda: torch.div(x, 0, rounding_mode="trunc"),
        lambda: torch.div(x, torch.tensor([0]), rounding_mode="floor"),
        lambda: x.clone().floor_divide_(0),
        lambda: torch.func.vmap(lambda a, b: a // b)(
            torch.ones(3, dtype=torch.int64), torch.tensor([1, 0, 2])
        ),
    ):
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            call().tolist()
    assert (x / 0).tolist() == [float("inf")]
    assert (torch.tensor([1.0]) // 0).tolist() == [float("inf")]
    assert torch.func.vmap(lambda a, b: a // b)(torch.tensor([7, 8]), torch.tensor([2, 3])).tolist() == [3, 2]


def test_integers_to_negative_powers() -> None:
    for base in (torch.tensor([2]), torch.tensor([2], dtype=torch.uint8), torch.tensor([True])):
        for call in (lambda base: base**-1, lambda base: torch.pow(base, -2), lambda base: base.pow(-1)):
            with pytest.raises(RuntimeError, match="Integers to negative integer powers are not allowed"):
                call(base)
    assert (torch.tensor([2, 1, -1]) ** torch.tensor([-1, -2, -3])).tolist() == [0, 1, -1]
    assert (torch.tensor([2]) ** -1.0).tolist() == [0.5]
    assert (2 ** torch.tensor([-1])).tolist() == [0]


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(300, "uint8"), (-256, "uint8"), (255.5, "uint8"), (-1.5, "uint8"), (128, "int8"), (-129, "int8"),
     (40000, "int16"), (2**31, "int32"), (1e10, "int32"), (float("nan"), "int64"), (float("inf"), "int32")],
)  # fmt: skip
def test_numbers_that_do_not_fit(value: float, dtype: str) -> None:
    kind = getattr(torch, dtype)
    for call in (
        lambda: torch.tensor(value, dtype=kind),
        lambda: torch.tensor([[0, value]], dtype=kind),
        lambda: torch.as_tensor([value], dtype=kind),
        lambda: torch.asarray([value], dtype=kind),
        lambda: torch.zeros(1).new_tensor([value], dtype=kind),
        lambda: torch.full((2,), value, dtype=kind),
        lambda: torch.full_like(torch.zeros(2, dtype=kind), value),
        lambda: torch.zeros(2, dtype=kind).new_full((2,), value),
        lambda: torch.zeros(2, dtype=kind).fill_(value),
        lambda: torch.zeros(2, dtype=kind).__setitem__(0, value),
    ):
        with pytest.raises(RuntimeError, match=f"value cannot be converted to type {dtype} without overflow"):
            call()


def test_numbers_that_fit() -> None:
    assert torch.tensor([255, -1, -255], dtype=torch.uint8).tolist() == [255, 255, 1]
    assert torch.tensor([127, -128], dtype=torch.int8).tolist() == [127, -128]
    assert torch.tensor([1.9, -1.9], dtype=torch.int32).tolist() == [1, -1]
    assert torch.tensor(torch.tensor([300]), dtype=torch.uint8).tolist() == [44]
    assert torch.tensor([70000], dtype=torch.float16).tolist() == [float("inf")]
    with pytest.raises(TypeError, match="complex"):
        torch.tensor([1j], dtype=torch.float32)
    with pytest.raises(RuntimeError):
        torch.full((2,), 1j, dtype=torch.float32)


def ones(*size: int, dtype: str = "float32") -> Any:
    return torch.ones(*size, dtype=getattr(torch, dtype))


MIXED: dict[str, Callable[[str], Any]] = {
    "linear": lambda other: F.linear(ones(3, 2, dtype=other), ones(2, 2)),
    "linear, bias": lambda other: F.linear(ones(3, 2), ones(2, 2), ones(2, dtype=other)),
    "Linear": lambda other: torch.nn.Linear(2, 2)(ones(3, 2, dtype=other)),
    "matmul": lambda other: ones(2, 2) @ ones(2, 2, dtype=other),
    "matmul of batches": lambda other: ones(3, 2, 2) @ ones(3, 2, 2, dtype=other),
    "mm": lambda other: torch.mm(ones(2, 2), ones(2, 2, dtype=other)),
    "mv": lambda other: torch.mv(ones(2, 2), ones(2, dtype=other)),
    "bmm": lambda other: torch.bmm(ones(1, 2, 2), ones(1, 2, 2, dtype=other)),
    "dot": lambda other: torch.dot(ones(2), ones(2, dtype=other)),
    "vdot": lambda other: torch.vdot(ones(2), ones(2, dtype=other)),
    "inner": lambda other: torch.inner(ones(2, 2), ones(2, 2, dtype=other)),
    "tensordot": lambda other: torch.tensordot(ones(2, 2), ones(2, 2, dtype=other), 1),
    "einsum": lambda other: torch.einsum("ij,jk->ik", ones(2, 2), ones(2, 2, dtype=other)),
    "addmm": lambda other: torch.addmm(ones(2, 2, dtype=other), ones(2, 2), ones(2, 2)),
    "addmv": lambda other: torch.addmv(ones(2, dtype=other), ones(2, 2), ones(2)),
    "baddbmm": lambda other: torch.baddbmm(ones(1, 2, 2, dtype=other), ones(1, 2, 2), ones(1, 2, 2)),
    "conv1d": lambda other: F.conv1d(ones(1, 1, 3, dtype=other), ones(1, 1, 2)),
    "conv2d": lambda other: F.conv2d(ones(1, 1, 3, 3), ones(1, 1, 2, 2), ones(1, dtype=other)),
    "conv_transpose2d": lambda other: F.conv_transpose2d(ones(1, 1, 3, 3, dtype=other), ones(1, 1, 2, 2)),
    "LSTM": lambda other: torch.nn.LSTM(2, 2)(ones(3, 1, 2, dtype=other))[0],
    "GRU": lambda other: torch.nn.GRU(2, 2)(ones(3, 1, 2, dtype=other))[0],
    "RNN": lambda other: torch.nn.RNN(2, 2)(ones(3, 1, 2, dtype=other))[0],
    "RNN, state": lambda other: torch.nn.RNN(2, 2)(ones(3, 1, 2), ones(1, 1, 2, dtype=other))[0],
    "LSTMCell": lambda other: torch.nn.LSTMCell(2, 2)(ones(1, 2, dtype=other))[0],
    "MultiheadAttention": lambda other: torch.nn.MultiheadAttention(2, 1)(*[ones(1, 1, 2, dtype=other)] * 3)[0],
    "binary_cross_entropy": lambda other: F.binary_cross_entropy(ones(2), ones(2, dtype=other)),
}  # fmt: skip


@pytest.mark.parametrize("other", ["float64", "int64", "float16"])
@pytest.mark.parametrize("name", MIXED)
def test_products_do_not_promote(name: str, other: str) -> None:
    with pytest.raises((RuntimeError, ValueError)):
        MIXED[name](other)


def test_dtypes_of_targets_and_indices() -> None:
    scores, table = ones(2, 3), ones(3, 2)
    for dtype in (torch.int32, torch.int16, torch.int8, torch.bool):
        target = torch.tensor([0, 1]).to(dtype)
        for loss in (F.cross_entropy, F.nll_loss, F.multi_margin_loss):
            with pytest.raises(RuntimeError, match="expected target dtype"):
                loss(scores, target)
        with pytest.raises(RuntimeError, match="int64"):
            F.one_hot(target)
    with pytest.raises(RuntimeError, match="expected target dtype"):
        torch.nn.CrossEntropyLoss()(scores, torch.tensor([0, 1], dtype=torch.int32))
    byte = torch.tensor([0, 1], dtype=torch.uint8)
    assert F.cross_entropy(scores, byte).item() == F.cross_entropy(scores, byte.long()).item()
    assert F.nll_loss(scores, byte).item() == -1
    for dtype in (torch.int16, torch.uint8, torch.bool, torch.float32):
        with pytest.raises(RuntimeError):
            F.embedding(torch.tensor([0, 1]).to(dtype), table)
    assert F.embedding(torch.tensor([0, 1], dtype=torch.int32), table).shape == (2, 2)


def test_probabilities_outside_their_range() -> None:
    good = torch.full((40,), 0.5)
    for bad in (torch.full((40,), 1.5), torch.where(torch.arange(40) == 37, -0.1, 0.5), good * float("nan")):
        for _ in range(4):
            for pair, name in (((bad, good), "input"), ((good, bad), "target")):
                with pytest.raises(RuntimeError, match=f"of {name} is outside its range.* 0 to 1"):
                    (F.binary_cross_entropy(*pair) * 2).item()
            torch.wait_for_compiler()
    with pytest.raises(RuntimeError):
        torch.nn.BCELoss()(torch.tensor([2.0]), torch.tensor([1.0])).item()
    assert F.binary_cross_entropy(torch.tensor([0.0, 1.0]), torch.tensor([0.0, 1.0])).item() == 0
