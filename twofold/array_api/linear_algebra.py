"""Products of matrices and vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold import _core
from twofold.array_api.data_types import result_type
from twofold.array_api.functions import functions

Tensor = _core.Tensor


def _promoted(x1: Tensor, x2: Tensor) -> tuple[Tensor, Tensor]:
    """Both in the dtype that they meet in: the standard's products promote."""
    dtype = result_type(x1, x2)
    return x1.to(dtype), x2.to(dtype)


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The matrix product of the last two axes."""
    return functions.matmul(*_promoted(x1, x2))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """The last two axes exchanged."""
    return functions.transpose(x, -2, -1)


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Tensor:
    """The product summed over pairs of axes."""
    return functions.tensordot(*_promoted(x1, x2), axes)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The sum of ``conj(x1) * x2`` along ``axis``, counted from the back; the other axes broadcast."""
    product: Any = functions.conj(x1) * x2
    return functions.sum(product, axis).to(product.dtype)
