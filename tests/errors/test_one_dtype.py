"""Products do not promote: each operand alone in another floating dtype is refused, as in PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

import twofold as torch
import twofold.nn.functional as F

CALLS: dict[str, tuple[Any, list[tuple[int, ...]]]] = {
    "matmul": (torch.matmul, [(2, 3), (3, 4)]),
    "mm": (torch.mm, [(2, 3), (3, 4)]),
    "bmm": (torch.bmm, [(2, 2, 3), (2, 3, 4)]),
    "mv": (torch.mv, [(2, 3), (3,)]),
    "addmm": (torch.addmm, [(2, 4), (2, 3), (3, 4)]),
    "addmv": (torch.addmv, [(2,), (2, 3), (3,)]),
    "addbmm": (torch.addbmm, [(2, 4), (2, 2, 3), (2, 3, 4)]),
    "baddbmm": (torch.baddbmm, [(2, 2, 4), (2, 2, 3), (2, 3, 4)]),
    "linear": (F.linear, [(2, 3), (4, 3), (4,)]),
    "conv2d": (F.conv2d, [(1, 2, 4, 4), (3, 2, 3, 3), (3,)]),
    "cdist": (torch.cdist, [(2, 3), (4, 3)]),
    "bilinear": (F.bilinear, [(2, 3), (2, 4), (5, 3, 4), (5,)]),
}


@pytest.mark.parametrize(
    ("name", "position"), [(name, k) for name, (_, shapes) in CALLS.items() for k in range(len(shapes))]
)
def test_an_operand_of_another_dtype_is_refused(name: str, position: int) -> None:
    call, shapes = CALLS[name]
    operands = [torch.ones(*shape) for shape in shapes]
    call(*operands)
    operands[position] = operands[position].double()
    with pytest.raises(RuntimeError, match="dtype"):
        call(*operands).sum().item()


NAMES = {
    "matmul": ("input", "other"),
    "addmm": ("input", "mat1", "mat2"),
    "addmv": ("input", "mat", "vec"),
    "addbmm": ("input", "batch1", "batch2"),
    "baddbmm": ("input", "batch1", "batch2"),
    "linear": ("input", "weight", "bias"),
    "cdist": ("x1", "x2"),
}


@pytest.mark.parametrize(("name", "position"), [(name, k) for name in NAMES for k in range(len(NAMES[name]))])
def test_the_operand_of_another_dtype_is_named(name: str, position: int) -> None:
    call, shapes = CALLS[name]
    operands = [torch.ones(*shape) for shape in shapes]
    operands[position] = operands[position].double()
    first, other = NAMES[name][0], NAMES[name][max(position, 1)]
    with pytest.raises(RuntimeError, match=f"^{name}: expected {first} and {other} to have the same dtype"):
        call(*operands)


@pytest.mark.parametrize("norm", [torch.linalg.vector_norm, torch.linalg.norm, torch.linalg.matrix_norm])
def test_the_dtype_of_a_norm(norm: Any) -> None:
    real, complex_ = torch.ones(2, 2), torch.ones(2, 2, dtype=torch.complex64)
    assert norm(real, dtype=torch.float64).dtype is torch.float64
    assert norm(complex_, dtype=torch.complex128).dtype is torch.float64
    for x, dtype in ((complex_, torch.float64), (real, torch.int64)):
        with pytest.raises(RuntimeError, match="Name a wider floating dtype"):
            norm(x, dtype=dtype)
