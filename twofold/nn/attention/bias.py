"""Causal masks of attention between sequences of two lengths: ``torch.nn.attention.bias``."""

from __future__ import annotations

from enum import IntEnum

from twofold import _core
from twofold.dtypes import bool_
from twofold.errors import ArgumentError
from twofold.frontend.creation import CREATION
from twofold.ops.base import ops

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(IntEnum):
    """The corner of a mask from which its diagonal starts, or in which it ends.

    >>> import twofold as torch
    >>> list(torch.nn.attention.bias.CausalVariant.__members__)
    ['UPPER_LEFT', 'LOWER_RIGHT']
    """

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(_core.Tensor):
    """A mask for ``scaled_dot_product_attention``: True on and below a diagonal.

    Args:
        variant: Which diagonal.
        seq_len_q: How many queries.
        seq_len_kv: How many keys. Where ``LOWER_RIGHT`` has fewer keys than queries, the first queries see none.

    >>> import twofold as torch
    >>> torch.nn.attention.bias.CausalBias(torch.nn.attention.bias.CausalVariant.UPPER_LEFT, 2, 3).tolist()
    [[True, False, False], [True, True, False]]
    """

    __torch_function__ = _core.disabled_torch_function  # what is computed of masks are tensors

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> CausalBias:
        offset = seq_len_kv - seq_len_q if variant == CausalVariant.LOWER_RIGHT else 0
        mask = ops.tril(CREATION["ones"](seq_len_q, seq_len_kv, dtype=bool_), offset)
        made: CausalBias = mask.as_subclass(cls)
        return made

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        self.variant, self.seq_len_q, self.seq_len_kv = variant, seq_len_q, seq_len_kv


def _of_size(variant: CausalVariant, size: tuple[int, ...]) -> CausalBias:
    if len(size) != 2:
        raise ArgumentError(f"a mask of {len(size)} sizes", "Give the numbers of queries and of keys.")
    return CausalBias(variant, *size)


def causal_upper_left(*size: int) -> CausalBias:
    """The mask of ``is_causal=True``: a query sees as many keys as its position.

    Args:
        *size: The numbers of queries and of keys.

    >>> import twofold as torch
    >>> torch.nn.attention.bias.causal_upper_left(2, 3).tolist()
    [[True, False, False], [True, True, False]]
    """
    return _of_size(CausalVariant.UPPER_LEFT, size)


def causal_lower_right(*size: int) -> CausalBias:
    """The mask of the last queries of a sequence whose keys are all known: the last query sees all keys.

    Args:
        *size: The numbers of queries and of keys.

    >>> import twofold as torch
    >>> torch.nn.attention.bias.causal_lower_right(2, 3).tolist()
    [[True, True, False], [True, True, True]]
    """
    return _of_size(CausalVariant.LOWER_RIGHT, size)
