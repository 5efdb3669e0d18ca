"""Functions that exporters see in the graph, as ordinary operations: ``torch.onnx.operators``."""

from __future__ import annotations

from typing import Any

from twofold.dtypes import int64
from twofold.frontend.creation import tensor


def shape_as_tensor(x: Any) -> Any:
    """Return the sizes of a tensor as a tensor of int64.

    Args:
        x: A tensor.

    >>> import twofold as torch
    >>> torch.onnx.operators.shape_as_tensor(torch.ones(2, 3))
    tensor([2, 3])
    """
    return tensor(list(x.shape), dtype=int64)


def reshape_from_tensor_shape(x: Any, shape: Any) -> Any:
    """Return a tensor with the sizes that a tensor of integers holds.

    Args:
        x: A tensor.
        shape: A tensor of integers with one axis; -1 stands for the size that is left.

    >>> import twofold as torch
    >>> torch.onnx.operators.reshape_from_tensor_shape(torch.arange(4), torch.tensor([2, -1]))
    tensor([[0, 1],
            [2, 3]])
    """
    return x.reshape(shape.tolist())
