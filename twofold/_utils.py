"""Tensors joined in one vector and taken apart again, as programs with parameters in two precisions need them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold import _core
from twofold.ops.base import ops

Tensor = _core.Tensor


def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Any:
    """All elements of tensors of one dtype as a vector.

    >>> import twofold as torch
    >>> torch._utils._flatten_dense_tensors([torch.ones(2, 1), torch.zeros(1)])
    tensor([1., 1., 0.])
    """
    return ops.concatenate([ops.reshape(tensor, (-1,)) for tensor in tensors], 0)


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Any, ...]:
    """Views of parts of a vector that have the shapes of ``tensors``.

    >>> import twofold as torch
    >>> torch._utils._unflatten_dense_tensors(torch.arange(3), [torch.ones(2, 1), torch.zeros(1)])
    (tensor([[0],
            [1]]), tensor([2]))
    """
    parts, start = [], 0
    for tensor in tensors:
        parts.append(flat[start : start + tensor.type_.size].reshape(tensor.shape))
        start += tensor.type_.size
    return tuple(parts)
