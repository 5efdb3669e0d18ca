"""Attention: weighted sums of values, by how well keys fit a query."""

from __future__ import annotations

import math
from typing import Any

import numpy

from twofold.errors import ArgumentError, ShapeError
from twofold.ir.node import Node
from twofold.ops.base import apply, broadcast_shapes, composite, convert, ops, strong
from twofold.ops.contraction.attention_rows import Blocks, Rows
from twofold.ops.contraction.matrix_products import transposed
from twofold.ops.examples import example
from twofold.ops.promotion import need_constant
from twofold.ops.reduction.softmax import floating
from twofold.ops.shape.movement import sum_to


class _Attention:
    """One call: its operands, checked, and the pieces that value and gradient share.

    ``rest`` is ``(query, key, value, [mask], scale, [key, counter and probability of the dropout])`` and then
    whether there are a mask, a causal order and a dropout.
    """

    def __init__(self, rest: tuple[Any, ...]) -> None:
        *values, masked, causal, dropped = rest
        self.given, self.causal = [strong(x) for x in values[:3]], causal
        self.query, self.key, self.value = (floating(x) for x in values[:3])
        for name, x in (("query", self.query), ("key", self.key), ("value", self.value)):
            if x.ndim < 2:
                raise ShapeError(f"{name} has {x.ndim} axes", "Use (..., length, features).")
        if self.query.shape[-1] != self.key.shape[-1]:
            features = self.query.shape[-1], self.key.shape[-1]
            raise ShapeError(f"query has {features[0]} features, key {features[1]}", "Make them equal.")
        if self.key.shape[-2] != self.value.shape[-2]:
            lengths = self.key.shape[-2], self.value.shape[-2]
            raise ShapeError(f"key has length {lengths[0]}, value {lengths[1]}", "Make them equal.")
        self.mask = values[3] if masked else None
        self.scale = convert(values[3 + masked], self.query.dtype)
        self.stream = tuple(values[4 + masked :]) if dropped else ()

    def _rows(self) -> Rows:
        """All rows at once."""
        operands = self.query, self.key, self.value
        return Rows(*operands, self.mask, self.scale, self.stream, self.causal)

    def _blocks(self) -> Blocks | None:
        """The rows in blocks, where their scores are too large to be stored."""
        query, key, value = self.given
        batch = broadcast_shapes(query.shape[:-2], key.shape[:-2])
        rows = Rows(query, key, value, self.mask, self.scale, self.stream, self.causal)
        same = broadcast_shapes(batch, value.shape[:-2]) == batch
        return Blocks(rows, batch) if same and Blocks.fit(rows, batch) else None

    def result(self) -> Any:
        """The weighted sums."""
        blocks, dtype = self._blocks(), self.given[0].dtype
        return convert(self._rows().result(), dtype) if blocks is None else blocks.result(dtype)

    def gradient(self, ct: Any) -> list[Node | None]:
        """Cotangents of query, key, value and mask."""
        blocks, rows = self._blocks(), self._rows()
        if blocks is None:
            ct = convert(ct, self.query.dtype)
            scored, dropped = rows.scores_gradient(ct)
            shares = [
                ops.matmul(scored, self.key) * self.scale,
                ops.matmul(transposed(scored), self.query) * self.scale,
                ops.matmul(transposed(dropped), ct),
            ]
        else:
            *shares, scored = blocks.gradient(ct)
        found: list[Node | None] = [
            convert(sum_to(share, x.shape), x.dtype) for share, x in zip(shares, self.given, strict=True)
        ]
        if self.mask is not None:
            floats = self.mask.dtype.kind == "f"
            found.append(convert(sum_to(scored, self.mask.shape), self.mask.dtype) if floats else None)
        return found


def _repeated(query: Any, x: Any, name: str) -> Any:
    """``x`` with each of its heads as often as there are heads of the query for it."""
    if len(query.shape) < 3 or len(x.shape) < 3 or not x.shape[-3] or query.shape[-3] % x.shape[-3]:
        raise ArgumentError(
            f"{name} of shape {tuple(x.shape)} for a query of shape {tuple(query.shape)}",
            "Use (..., heads, length, features), and a number of heads that divides the query's.",
        )
    times = query.shape[-3] // x.shape[-3]
    return x if times == 1 else ops.repeat_interleave(x, times, len(x.shape) - 3)


def attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any,
    dropout: tuple[Any, ...],
    is_causal: bool,
    scale: Any,
    enable_gqa: bool,
) -> Any:
    """Bind ``scaled_dot_product_attention``; ``dropout`` is its key, counter and probability, or nothing."""
    if attn_mask is not None and is_causal:
        raise ArgumentError("attn_mask and is_causal together", "Give one of them.")
    need_constant("scaled_dot_product_attention", scale=scale)
    if enable_gqa:
        key, value = _repeated(query, key, "key"), _repeated(query, value, "value")
    factor = 1 / math.sqrt(max(query.shape[-1], 1)) if scale is None else scale
    mask = () if attn_mask is None else (attn_mask,)
    attrs = (attn_mask is not None, bool(is_causal), bool(dropout))
    return apply("scaled_dot_product_attention", query, key, value, *mask, factor, *dropout, attrs=attrs)


@composite
class scaled_dot_product_attention:
    """``softmax(query @ key.mT * scale + mask) @ value``, by default with ``scale = 1 / sqrt(features)``.

    A bool mask says which positions take part; ``is_causal`` lets a position see itself and those before it; with
    ``enable_gqa`` several heads of the query share one of key and value. Raises RuntimeError where sizes do
    not fit. Source: Vaswani et al., Attention Is All You Need, 2017, eq. 1.

    >>> import twofold as torch
    >>> x = torch.ones(2, 5, 8)
    >>> torch.scaled_dot_product_attention(x, x, x, is_causal=True).shape
    twofold.Size([2, 5, 8])
    """

    autograd_name = "ScaledDotProductFlashAttentionForCpuBackward0"
    autocast = "lower"
    memory = (8.5, "all weights of a head lie in memory, and packed with vectors of 256 bits")

    signature = "query, key, value"
    methods = ()

    def call(
        query: Any,
        key: Any,
        value: Any,
        attn_mask: Any = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: Any = None,
        enable_gqa: bool = False,
    ) -> Any:
        if dropout_p:
            raise ArgumentError(
                f"dropout_p {dropout_p} without random numbers", "Use nn.functional's function of this name."
            )
        return attention(query, key, value, attn_mask, (), is_causal, scale, enable_gqa)

    compute = lambda *rest: _Attention(rest).result()

    def vjp(ct: Any, y: Any, *rest: Any) -> Any:
        found = _Attention(rest).gradient(ct)
        return [*found, *[None] * (len(rest) - 3 - len(found))]

    def reference(*rest: Any) -> Any:
        *values, masked, causal, _ = rest
        query, key, value = values[:3]
        scores = query @ numpy.swapaxes(key, -1, -2) * values[3 + masked]
        if causal:
            scores = numpy.where(numpy.tri(*scores.shape[-2:]) > 0, scores, -numpy.inf)
        if masked:
            mask = values[3]
            scores = numpy.where(mask, scores, -numpy.inf) if mask.dtype == bool else scores + mask
        top = numpy.maximum(scores.max(-1, keepdims=True, initial=-numpy.inf), -1e300)
        weights = numpy.exp(scores - top)
        weights /= numpy.maximum(weights.sum(-1, keepdims=True), 1e-300)
        return weights @ value

    @staticmethod
    def samples() -> Any:
        scale, sparse = numpy.array(0.35), numpy.array([[True, False], [True, True], [False, False]])
        return [
            example((False, False, False), (2, 3, 5, 8), (2, 3, 7, 8), (2, 3, 7, 4), scale),
            example((False, True, False), (2, 5, 8), (2, 5, 8), (2, 5, 8), scale),
            example((True, False, False), (2, 5, 8), (2, 7, 8), (2, 7, 8), (5, 7), scale),
            example((True, False, False), (2, 3, 8), (2, 2, 8), (2, 2, 8), sparse, scale),
        ]
