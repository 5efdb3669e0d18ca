"""Embeddings with PyTorch's arguments."""

from __future__ import annotations

from typing import Any

from twofold import _core
from twofold.frontend.install import PUBLIC, guarded
from twofold.ir.op import REGISTRY
from twofold.ops.base import FUNCTIONS, apply
from twofold.runtime.tracing import message as _message

Tensor = _core.Tensor

lookup = _core.operation_callable(REGISTRY["embedding"], 2, FUNCTIONS["embedding"])
"""Rows of a table, without any option; fixed operands go to the recorder without a detour."""

_padded = PUBLIC["embedding"]


def _position(padding_idx: int | None, rows: int) -> int | None:
    """The padding counted from the front; raises AssertionError for one outside."""
    if padding_idx is None:
        return None
    if not -rows <= padding_idx < rows:
        raise AssertionError("padding_idx must be within num_embeddings")
    return padding_idx % rows


def _shrink(weight: Tensor, input: Tensor, max_norm: float, norm_type: float) -> None:
    """Shrink the rows that are looked up, in place."""
    with _core.GradientMode(False):
        rows = apply("embedding_renorm", weight, input, float(max_norm), attrs=(float(norm_type),))
        weight._assign(rows)


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of ``weight`` at ``input``; the row ``padding_idx`` receives no gradient.

    ``max_norm`` first shrinks the rows that are looked up, in place; ``scale_grad_by_freq`` divides gradients
    by how often each index occurs. ``sparse`` makes ``.grad`` of the table a sparse tensor, and
    lets ``SparseAdam`` take it. Raises IndexError for an index outside the table.

    >>> import twofold as torch
    >>> weight = torch.tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    >>> torch.nn.functional.embedding(torch.tensor([2, 0]), weight)
    tensor([[4., 5.],
            [0., 1.]])
    """
    padding = _position(padding_idx, weight.shape[0])
    if max_norm is not None:
        _shrink(weight, input, max_norm, norm_type)
    if sparse:
        rows = apply("embedding", input, weight, *(() if padding is None else (padding,)), attrs=(True,))
    else:
        rows = lookup(input, weight) if padding is None else _padded(input, weight, padding)
    if scale_grad_by_freq:
        rows = apply("frequency_scaled", rows, input, attrs=(weight.shape[0],))
    return rows


_embedding = embedding  # the function itself, which the name has no more where a boundary stands before it


def _embedding_of_torch(
    weight: Tensor,
    indices: Tensor,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """``nn.functional.embedding`` with the table first; a negative ``padding_idx`` is none.

    >>> import twofold as torch
    >>> torch.embedding(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1, 0]))
    tensor([[3., 4.],
            [1., 2.]])
    """
    padding = None if padding_idx < 0 else padding_idx
    return _embedding(indices, weight, padding, None, 2.0, scale_grad_by_freq, sparse)


embedding_of_torch = guarded("embedding", _embedding_of_torch)


def _check_bags(input: Tensor, offsets: Tensor | None, weights: Tensor | None, mode: str) -> None:
    """Raise where the arguments of a bag do not fit, with PyTorch's message."""
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if weights is not None and tuple(weights.shape) != tuple(input.shape):
        what = f"embedding_bag: If per_sample_weights ({tuple(weights.shape)}) is not None, then it must have the "
        what += f"same shape as the input ({tuple(input.shape)})"
        fix = "Give a weight for each index."
        raise ValueError(_message(what, fix, input=input, per_sample_weights=weights))
    if weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for "
            f"mode='sum' (got mode='{mode}')."
        )
    if input.ndim == 2:
        if offsets is not None:
            what = (
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed "
            )
            what += f"length sequences. However, found offsets of type {type(offsets)}"
            raise ValueError(_message(what, "Leave offsets out.", input=input, offsets=offsets))
        return
    if input.ndim != 1:
        what = f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.ndim}"
        raise ValueError(_message(what, "Reshape it.", input=input))
    if offsets is None or offsets.ndim != 1:
        what = f"offsets has to be a 1D Tensor but got {offsets if offsets is None else offsets.ndim}"
        fix = "Give where each bag begins, or indices with a row for each bag."
        raise ValueError(_message(what, fix, input=input, offsets=offsets))


def _check_offsets(offsets: Tensor, count: int, last: bool) -> None:
    """Raise for offsets that do not begin at 0, or end behind the input."""
    if last and not offsets.shape[0]:
        what = "include_last_offset: number of offset should be at least 1"
        raise RuntimeError(_message(what, "Give the end of the last bag.", offsets=offsets))
    if offsets._is_symbolic or not offsets.shape[0]:
        return
    ends = offsets._read()[[0, -1]]
    if ends[0] != 0:
        what = "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
        what += f"However, got {ends[0]}"
        raise RuntimeError(_message(what, "Begin with 0.", offsets=offsets))
    if ends[1] > count:
        what = f"offsets[-1] can not be greater than input's length {count} but got offsets[-1] of {ends[1]}"
        raise RuntimeError(_message(what, f"Use offsets of at most {count}.", offsets=offsets))


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The sum, mean or maximum of the rows of ``weight`` of each bag of indices.

    A matrix holds a bag in each row; of a vector, ``offsets`` says where bags begin (and, with
    ``include_last_offset``, where the last one ends). Rows are added in the order of the index. Empty bags give
    zeros; ``padding_idx`` is in no bag.
    ``sparse`` makes ``.grad`` of the table a sparse tensor, and lets ``SparseAdam`` take it. Raises IndexError for an
    index outside the table.

    >>> import twofold as torch
    >>> table = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> bag = torch.nn.functional.embedding_bag
    >>> bag(torch.tensor([0, 1, 2]), table, torch.tensor([0, 2]), mode="sum")
    tensor([[4., 6.],
            [5., 6.]])
    """
    if input.dtype.kind == "f" and weight.dtype.kind in "iu":  # the older order of arguments
        input, weight = weight, input
    _check_bags(input, offsets, per_sample_weights, mode)
    if offsets is not None:
        _check_offsets(offsets, input.shape[0], include_last_offset)
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    padding = _position(padding_idx, weight.shape[0])
    if max_norm is not None:
        _shrink(weight, input, max_norm, norm_type)
    more = tuple(value for value in (offsets, per_sample_weights) if value is not None)
    flags = (offsets is not None, per_sample_weights is not None, bool(include_last_offset))
    attrs: Any = (mode, *flags, padding, bool(scale_grad_by_freq), bool(sparse))
    return apply("embedding_bags", input, weight, *more, attrs=attrs)
