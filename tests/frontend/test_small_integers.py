"""Functions of integers whose intermediate results do not fit their dtype, or must keep it."""

from __future__ import annotations

import twofold as torch


def test_an_integral_does_not_wrap() -> None:
    y, x = torch.tensor([9, 250, 100], dtype=torch.uint8), torch.tensor([5, 2, 9], dtype=torch.uint8)
    assert torch.trapezoid(y).item() == 304.5
    assert torch.trapezoid(y, x).item() == 129.5 * -3 + 175 * 7
    assert torch.cumulative_trapezoid(y).tolist() == [129.5, 304.5]


def test_contracting_an_axis_of_size_one_keeps_the_dtype() -> None:
    a, b = torch.tensor([[[-1]]], dtype=torch.int32), torch.tensor([[[-1, -1]], [[1, 2]]], dtype=torch.int32)
    made = torch.tensordot(a, b, dims=([0], [0]))
    assert made.dtype is torch.int32 and made.flatten().tolist() == [0, -1]


def test_positions_of_positions_are_int64() -> None:
    (row, column) = torch.unravel_index(torch.tensor([1, 5], dtype=torch.int32), (2, 3))
    assert row.dtype is column.dtype is torch.int64
    assert row.tolist() == [0, 1] and column.tolist() == [1, 2]
