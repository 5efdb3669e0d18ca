"""Attention whose scores and mask are functions of a program: ``torch.nn.attention.flex_attention``."""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from typing import Any

from twofold import _core
from twofold.dtypes import bool_, float32, int32
from twofold.errors import ArgumentError, ShapeError
from twofold.frontend.options import check_device
from twofold.ops.base import ops

Tensor = _core.Tensor
Mask = Callable[..., Any]


def noop_mask(batch: Any, head: Any, token_q: Any, token_kv: Any) -> Any:
    """The mask that lets all positions see all others."""
    return ops.ones_like(batch, dtype=bool_)


def and_masks(*mask_mods: Mask) -> Mask:
    """The mask of positions that all of several masks let through."""
    return _joined(mask_mods, "logical_and", True)


def or_masks(*mask_mods: Mask) -> Mask:
    """The mask of positions that one of several masks lets through."""
    return _joined(mask_mods, "logical_or", False)


def _joined(masks: tuple[Mask, ...], name: str, first: bool) -> Mask:
    if not all(map(callable, masks)):
        raise ArgumentError(
            f"{name}: masks are {masks!r}", "Give functions of batch, head and two positions."
        )

    def joined(b: Any, h: Any, q: Any, kv: Any) -> Any:
        found = ops.full_like(b, first, dtype=bool_)
        for mask in masks:
            found = getattr(ops, name)(found, mask(b, h, q, kv))
        return found

    return joined


def _of_indices(function: Callable[..., Any], sizes: tuple[int, ...], *beside: Any) -> Any:
    """A function of scalars for all indices of four axes, and of the elements of tensors with these axes."""
    vmap = import_module("twofold.func").vmap  # func stands on modules
    for axis in (3, 2, 1, 0):
        dims = tuple(0 if k == axis else None for k in range(4))
        function = vmap(function, in_dims=(*[0] * len(beside), *dims))
    return function(*beside, *[ops.arange(size, dtype=int32) for size in sizes])


def create_mask(
    mod_fn: Mask, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None
) -> Tensor:
    """What a mask says for all positions, bool [B, H, Q_LEN, KV_LEN]; B and H are 1 where they are None.

    Args:
        mod_fn: A function of four integer scalars, batch, head and both positions, that tells whether a position sees
            another.
        B, H: How many batches and heads there are, None if the mask is the same for all.
        Q_LEN, KV_LEN: Lengths of queries, and of keys and values.
        device: Of the result.

    >>> import twofold as torch
    >>> from twofold.nn.attention.flex_attention import create_mask
    >>> create_mask(lambda b, h, q, kv: q >= kv, None, None, 2, 3)[0, 0]
    tensor([[ True, False, False],
            [ True,  True, False]])
    """
    check_device(device)
    return _of_indices(mod_fn, (B or 1, H or 1, Q_LEN, KV_LEN))


class BlockMask:
    """A mask as a function, with the lengths that it was made for; ``create_block_mask`` makes it.

    Attributes:
        mask_mod: The function.
        seq_lengths: Lengths of queries, and of keys and values.
        BLOCK_SIZE: Of the blocks that ``to_dense`` and ``sparsity`` tell about.
    """

    def __init__(self, mask_mod: Mask, dense: Tensor, block_size: tuple[int, int]) -> None:
        self.mask_mod, self.BLOCK_SIZE = mask_mod, block_size
        self.shape = tuple(dense.shape)
        self.seq_lengths = self.shape[-2:]
        rows, columns = (-(-size // block) for size, block in zip(self.seq_lengths, block_size))
        pads = [
            count * block - size for count, block, size in zip((rows, columns), block_size, self.seq_lengths)
        ]
        padded = ops.constant_pad_nd(dense.to(int32), (0, pads[1], 0, pads[0]))
        blocks = padded.reshape(*self.shape[:2], rows, block_size[0], columns, block_size[1])
        self._blocks = blocks.amax((3, 5))

    def to_dense(self) -> Tensor:
        """Which blocks are not empty, int32 [B, H, blocks of queries, blocks of keys]."""
        return self._blocks

    def sparsity(self) -> float:
        """The percentage of blocks that are empty."""
        return 100.0 * (1.0 - float(self._blocks.float().mean()))

    def numel(self) -> int:
        """How many elements the whole mask has."""
        return math.prod(self.shape)


def create_block_mask(
    mask_mod: Mask,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: Any = 128,
    _compile: bool = False,
) -> BlockMask:
    """A mask for ``flex_attention``; the arguments are those of ``create_mask``.

    Args:
        mask_mod, B, H, Q_LEN, KV_LEN, device: As ``create_mask`` takes them.
        BLOCK_SIZE: A size of blocks for both lengths, or a pair.
        _compile: Changes nothing: everything is compiled.

    >>> import twofold as torch
    >>> from twofold.nn.attention.flex_attention import create_block_mask
    >>> create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 8, 8, BLOCK_SIZE=4).to_dense().tolist()
    [[[[1, 0], [1, 1]]]]
    """
    pair = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
    return BlockMask(mask_mod, create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device), pair)


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Callable[..., Any] | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: dict[str, Any] | None = None,
) -> Any:
    """Attention with scores and a mask that functions of positions tell (Dong et al. 2024).

    All scores are computed, those that the mask hides, too.

    Args:
        query: [batch, heads, length, size].
        key, value: [batch, heads, other length, size]; one batch may stand for all.
        score_mod: A function of a score and four integer scalars, batch, head and both positions, that gives the score
            that counts.
        block_mask: Which positions see which, as ``create_block_mask`` makes it; a row that sees none is zero.
        scale: Of the products of queries and keys; one over the root of the size unless given.
        enable_gqa: Whether several heads of queries share one of keys and values.
        return_lse: Whether the logarithms of the sums of exponentials of scores are returned, too.
        kernel_options: Of PyTorch's kernels; they change nothing.

    Raises:
        ShapeError: Where sizes do not fit.

    >>> import twofold as torch
    >>> from twofold.nn.attention.flex_attention import flex_attention
    >>> x = torch.tensor([[[[1.0], [2.0]]]])
    >>> flex_attention(x, x, x, lambda score, b, h, q, kv: score - 100.0 * (kv > q))
    tensor([[[[1.0000],
              [1.8808]]]])
    """
    _check(query, key, value, enable_gqa)
    heads, sizes = query.shape[1] // key.shape[1], (*query.shape[:3], key.shape[2])
    if heads != 1:
        key, value = (one.repeat_interleave(heads, 1) for one in (key, value))
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    precise = query.dtype if query.dtype.itemsize > 4 else float32
    scores = ops.expand(ops.matmul(query, key.transpose(-2, -1)).to(precise) * factor, sizes)
    if score_mod is not None:
        scores = _of_indices(score_mod, sizes, scores)
    if block_mask is not None:
        if tuple(block_mask.seq_lengths) != sizes[2:]:
            what = f"flex_attention: a mask for lengths {block_mask.seq_lengths}, scores of {sizes[2:]}"
            raise ShapeError(what, "Make the mask for the lengths of query and key.")
        batch, head = (
            one if made > 1 else 1 for one, made in zip(sizes[:2], block_mask.shape[:2], strict=True)
        )
        scores = ops.where(_of_indices(block_mask.mask_mod, (batch, head, *sizes[2:])), scores, -math.inf)
    hidden = ops.eq(scores, -math.inf).all(-1, keepdim=True)
    weights = ops.where(hidden, 0.0, ops.softmax(ops.where(hidden, 0.0, scores), -1))
    found = ops.matmul(weights.to(query.dtype), value)
    if not return_lse:
        return found
    sums = ops.logsumexp(ops.where(hidden, 0.0, scores), -1)
    return found, ops.where(hidden.squeeze(-1), -math.inf, sums)


def _check(query: Tensor, key: Tensor, value: Tensor, shared: bool) -> None:
    shapes = [tuple(one.shape) for one in (query, key, value)]
    if any(len(shape) != 4 for shape in shapes):
        raise ShapeError(f"flex_attention: shapes {shapes}", "Give four axes: batch, heads, length, size.")
    q, k, v = shapes
    fits = k[:3] == v[:3] and q[3] == k[3] and k[0] in (1, q[0])
    if not fits or (q[1] != k[1] and not (shared and q[1] % k[1] == 0)):
        fix = "Make batches, heads and sizes equal; enable_gqa lets heads of queries share those of keys."
        raise ShapeError(f"flex_attention: query {q}, key {k}, value {v}", fix)
