"""Attention as functions: with dropout, and with projections in many heads."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

from twofold import _core
from twofold.dtypes import bool_
from twofold.frontend.attention_backends import need_backend
from twofold.frontend.sampling import dropout, stream
from twofold.ops.base import FUNCTIONS
from twofold.ops.contraction.attention import attention
from twofold.runtime.tracing import message as _message

Tensor = _core.Tensor

__all__ = ["multi_head_attention_forward", "scaled_dot_product_attention"]


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """``dropout(softmax(query @ key.mT * scale + mask)) @ value``; see the operation of this name.

    Raises ValueError for a ``dropout_p`` outside [0, 1], and RuntimeError where the program has switched off all
    backends that PyTorch would compute it with (see ``torch.nn.attention.sdpa_kernel``).

    >>> import twofold as torch
    >>> x = torch.ones(2, 5, 8)
    >>> torch.nn.functional.scaled_dot_product_attention(x, x, x, dropout_p=0.1).shape
    twofold.Size([2, 5, 8])
    """
    if not 0 <= dropout_p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {dropout_p}")
    need_backend(query, key, value, attn_mask, dropout_p, enable_gqa)
    sample = (*stream(None), float(dropout_p)) if dropout_p else ()
    return attention(query, key, value, attn_mask, sample, is_causal, scale, enable_gqa)


scaled_dot_product_attention.autocast = "lower"  # type: ignore[attr-defined]


def _need(fits: bool, what: str, fix: str, **operands: Any) -> None:
    if not fits:
        raise RuntimeError(_message(f"multi_head_attention: {what}", fix, **operands))


def _check(
    query: Tensor, key: Tensor, value: Tensor, padding: Tensor | None, mask: Tensor | None, heads: int
) -> None:
    """Raise where the numbers of axes do not fit."""
    _need(
        query.ndim in (2, 3),
        f"query of {query.ndim} axes",
        "Give (length, features) or (length, batch, features).",
        query=query,
    )
    batched = query.ndim == 3
    _need(
        key.ndim == query.ndim and value.ndim == query.ndim,
        f"query of {query.ndim} axes, key of {key.ndim}, value of {value.ndim}",
        "Give all the same number.",
        query=query,
        key=key,
        value=value,
    )
    if batched:
        what = f"a batch of {query.shape[1]} queries and one of {key.shape[1]} keys"
        _need(query.shape[1] == key.shape[1], what, "Give as many of both.", query=query, key=key)
    wanted = 2 if batched else 1
    _need(
        padding is None or padding.ndim == wanted,
        f"key_padding_mask of shape {getattr(padding, 'shape', ())}",
        f"Give {wanted} axes.",
        key_padding_mask=padding,
        key=key,
    )
    if mask is not None:
        _need(mask.ndim in (2, 3), f"attn_mask of {mask.ndim} axes", "Give 2 or 3.", attn_mask=mask)
        rows = heads * (query.shape[1] if batched else 1)
        full = (query.shape[0], key.shape[0])
        _need(
            tuple(mask.shape) in (full, (rows, *full)),
            f"The shape of the attn_mask is {tuple(mask.shape)}, but should be {full} or {(rows, *full)}",
            "Give it one row for each query, one column for each key.",
            query=query,
            key=key,
            attn_mask=mask,
        )


def _check_padding(padding: Tensor | None, key: Tensor | None) -> None:
    """Raise where the mask has not one element for each key."""
    if padding is not None and key is not None:
        shape, wanted = tuple(padding.shape), (*key.shape[1:-1], key.shape[0])
        what, fix = f"key_padding_mask of shape {shape}", f"Make it {wanted}, one element for each key."
        _need(shape == wanted, what, fix, key_padding_mask=padding, key=key)


def _check_sizes(query: Tensor, key: Tensor, value: Tensor, embed: int, heads: int) -> None:
    """Raise where features, lengths or batches do not fit."""
    what = f"query has {query.shape[-1]} features, expected {embed}"
    _need(query.shape[-1] == embed, what, f"Make its last axis {embed}.", query=query)
    what = f"embed_dim {embed} not divisible by num_heads {heads}"
    _need(embed % heads == 0, what, "Use a number of heads that divides it.")
    what = (
        f"key of shape {tuple(key.shape)} and value of shape {tuple(value.shape)} differ in length or batch"
    )
    _need(
        key.shape[:-1] == value.shape[:-1],
        what,
        "Make them equal but for the features.",
        key=key,
        value=value,
    )


def _float_mask(mask: Tensor | None, like: Tensor) -> Tensor | None:
    """A mask to be added: a bool one says which positions are left out."""
    if mask is None or mask.dtype is not bool_:
        return mask
    zeros = FUNCTIONS["zeros"](tuple(mask.shape), dtype=like.dtype)
    return FUNCTIONS["where"](mask, -math.inf, zeros)


def _heads(x: Tensor, heads: int) -> Tensor:
    """``[length, batch, features]`` as ``[batch, heads, length, features of a head]``."""
    length, batch, features = x.shape
    return x.reshape((length, batch, heads, features // heads)).permute(1, 2, 0, 3)


def _projections(
    values: tuple[Tensor, Tensor, Tensor], weights: tuple[Any, ...], bias: Tensor | None
) -> list[Tensor]:
    """Query, key and value times their weights: one product where all three are one tensor."""
    query, key, value = values
    linear = FUNCTIONS["linear"]
    biases = [None] * 3 if bias is None else list(bias.chunk(3))
    if len(weights) == 3:
        return [linear(x, w, b) for x, w, b in zip(values, weights, biases, strict=True)]
    if query is key and key is value:
        return list(linear(query, weights[0], bias).chunk(3, -1))
    return [linear(x, w, b) for x, w, b in zip(values, weights[0].chunk(3), biases, strict=True)]


class _Operands:
    """Key and value ``[length, batch, features]``, and the masks to be added to the scores."""

    def __init__(self, key: Tensor, value: Tensor, masks: tuple[Tensor | None, Tensor | None]) -> None:
        self.key, self.value = key, value
        self.mask, self.padding = masks
        self.longer = False

    def append(self, key: Tensor | None, value: Tensor | None) -> None:
        """One more key and value for every element of the batch, which every query may see; None: zeros."""
        pad, batch = FUNCTIONS["pad"], self.key.shape[1]
        self.key, self.value = (
            pad(x, (0, 0, 0, 0, 0, 1)) if more is None else FUNCTIONS["cat"]([x, more.expand(1, batch, -1)])
            for x, more in ((self.key, key), (self.value, value))
        )
        self.mask = None if self.mask is None else pad(self.mask, (0, 1))
        self.padding = None if self.padding is None else pad(self.padding, (0, 1))
        self.longer = True

    def merged(self, heads: int, batch: int) -> Tensor | None:
        """Both masks as one of ``[batch or 1, heads or 1, length or 1, keys]``."""
        mask, padding = self.mask, self.padding
        if mask is not None and mask.ndim == 3:
            mask = mask.reshape((batch, heads, *mask.shape[1:]))
        if padding is not None:
            padding = padding.reshape((batch, 1, 1, padding.shape[-1]))
        if mask is None or padding is None:
            return padding if mask is None else mask
        return mask + padding


def _attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, rate: float) -> tuple[Tensor, Tensor]:
    """The weighted sums of each head, and the weights."""
    scores = (q * math.sqrt(1.0 / float(q.shape[-1]))) @ k.transpose(-2, -1)
    weights = (scores if mask is None else scores + mask).softmax(-1)
    weights = dropout(weights, rate) if rate else weights
    return weights @ v, weights


def _unbatched(call: Any, query: Tensor, key: Tensor, value: Tensor, padding: Tensor | None) -> Any:
    """The call with a batch of one, and its results without."""
    rows = query.unsqueeze(1)
    keys = rows if key is query else key.unsqueeze(1)
    values = keys if value is key else value.unsqueeze(1)
    result, weights = call(rows, keys, values, None if padding is None else padding.unsqueeze(0))
    return result.squeeze(1), None if weights is None else weights.squeeze(0)


@dataclass
class _Heads:
    """Everything of one call but its sequences."""

    count: int
    weights: tuple[Any, ...]
    bias: Tensor | None
    more: tuple[Tensor | None, Tensor | None]
    zero: bool
    fixed: tuple[Tensor | None, Tensor | None]
    rate: float
    out: tuple[Tensor, Tensor | None]
    mask: Tensor | None
    causal: bool
    shown: bool
    averaged: bool

    def run(
        self, query: Tensor, key: Tensor, value: Tensor, padding: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """The result and the weights of a batch."""
        length, batch, embed = query.shape
        q, k, v = _projections((query, key, value), self.weights, self.bias)
        operands = _Operands(k, v, (_float_mask(self.mask, q), _float_mask(padding, q)))
        if self.more[0] is not None and self.more[1] is not None:
            operands.append(*self.more)
        if self.zero:
            operands.append(None, None)
        q, k, v = (_heads(x, self.count) for x in (q, operands.key, operands.value))
        k, v = (
            x if static is None else static.reshape((batch, self.count, *static.shape[1:]))
            for x, static in zip((k, v), self.fixed, strict=True)
        )
        mask, weights = operands.merged(self.count, batch), None
        if self.shown:
            joined, weights = _attend(q, k, v, mask, self.rate)
        else:
            causal = self.causal and padding is None and not operands.longer
            joined = scaled_dot_product_attention(q, k, v, None if causal else mask, self.rate, causal)
        flat = joined.permute(2, 0, 1, 3).reshape((length * batch, embed))
        result = FUNCTIONS["linear"](flat, *self.out)
        if weights is not None and self.averaged:
            weights = weights.mean(1)
        return result.reshape((length, batch, result.shape[1])), weights


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Attention in many heads: project, attend in each head, join the heads and project again.

    Inputs are ``(length, batch, features)`` or without the batch. In a bool mask True leaves a position out.
    Returns the result and, if ``need_weights``, the weights. Raises RuntimeError where sizes do not fit.
    Source: Vaswani et al., Attention Is All You Need, 2017, section 3.2.2.

    >>> import twofold as torch
    >>> x, ones = torch.ones(5, 2, 8), torch.ones(24, 8)
    >>> attend = torch.nn.functional.multi_head_attention_forward
    >>> output, weights = attend(x, x, x, 8, 2, ones, None, None, None, False, 0.0, ones[:8], None)
    >>> output.shape, weights.shape
    (twofold.Size([5, 2, 8]), twofold.Size([2, 5, 5]))
    """
    _check(query, key, value, key_padding_mask, attn_mask, num_heads)
    _check_sizes(query, key, value, embed_dim_to_check, num_heads)
    _check_padding(key_padding_mask, key if static_k is None else None)
    _need(attn_mask is not None or not is_causal, "is_causal without attn_mask", "Give the mask, too.")
    heads = _Heads(
        num_heads,
        (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else (in_proj_weight,),
        in_proj_bias,
        (bias_k, bias_v),
        add_zero_attn,
        (static_k, static_v),
        dropout_p if training else 0.0,
        (out_proj_weight, out_proj_bias),
        attn_mask,
        is_causal,
        need_weights,
        average_attn_weights,
    )
    run = heads.run if query.ndim == 3 else partial(_unbatched, heads.run)
    return run(query, key, value, key_padding_mask)
