"""Attention in many heads as a layer."""

from __future__ import annotations

from contextlib import AbstractContextManager
from enum import IntEnum
from typing import Any

from twofold import _core
from twofold.errors import ArgumentError
from twofold.frontend.attention_backends import only
from twofold.frontend.options import check_device
from twofold.nn import functional, init
from twofold.nn.layers import NonDynamicallyQuantizableLinear, new_parameter
from twofold.nn.module import Module

Tensor = _core.Tensor
F: Any = functional


class SDPBackend(IntEnum):
    """Ways to compute attention that programs choose among; all are one here.

    >>> import twofold as torch
    >>> torch.nn.attention.SDPBackend.MATH.name
    'MATH'
    """

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


_NAMES = {
    "MATH": "math",
    "FLASH_ATTENTION": "flash",
    "EFFICIENT_ATTENTION": "mem_efficient",
    "CUDNN_ATTENTION": "cudnn",
}


def sdpa_kernel(backends: Any, set_priority: bool = False) -> AbstractContextManager[None]:
    """Inside, attention may be computed with the backends given; results do not depend on them, nor on their order.

    As in PyTorch on a CPU, attention raises RuntimeError where neither MATH nor FLASH_ATTENTION is among them.

    >>> import twofold as torch
    >>> x = torch.ones(1, 2, 4)
    >>> with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
    ...     torch.nn.functional.scaled_dot_product_attention(x, x, x).shape
    twofold.Size([1, 2, 4])
    """
    given = list(backends) if isinstance(backends, (list, tuple, set)) else [backends]
    if not all(isinstance(one, SDPBackend) for one in given):
        raise ArgumentError(f"sdpa_kernel: backends are {backends!r}", "Give members of SDPBackend.")
    names = {one.name for one in given}
    return only({name: backend in names for backend, name in _NAMES.items()})


class MultiheadAttention(Module):
    """Attention in ``num_heads`` heads, each on its part of ``embed_dim`` features.

    Takes query, key and value ``(length, batch, features)``, with ``batch_first`` ``(batch, length,
    features)``, and returns the result and the weights (the mean over the heads, or of all heads). In a bool
    mask True leaves a position out. Source: Vaswani et al., Attention Is All You Need, 2017, section 3.2.2.

    >>> import twofold as torch
    >>> x = torch.ones(5, 2, 8)
    >>> output, weights = torch.nn.MultiheadAttention(8, 2)(x, x, x)
    >>> output.shape, weights.shape
    (twofold.Size([5, 2, 8]), twofold.Size([2, 5, 5]))
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        check_device(device)
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and "
                f"num_heads={num_heads} instead"
            )
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError(
                f"embed_dim must be divisible by num_heads: {embed_dim} and {num_heads}. Change one of them."
            )
        widths = (embed_dim, self.kdim, self.vdim)
        for name, width in zip(("q_proj_weight", "k_proj_weight", "v_proj_weight"), widths, strict=True):
            made = None if self._qkv_same_embed_dim else new_parameter(embed_dim, width, dtype=dtype)
            self.register_parameter(name, made)
        whole = new_parameter(3 * embed_dim, embed_dim, dtype=dtype) if self._qkv_same_embed_dim else None
        self.register_parameter("in_proj_weight", whole)
        self.register_parameter("in_proj_bias", new_parameter(3 * embed_dim, dtype=dtype) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, dtype=dtype)
        for name in ("bias_k", "bias_v"):
            made = new_parameter(1, 1, embed_dim, dtype=dtype) if add_bias_kv else None
            self.register_parameter(name, made)
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        """Sample new parameters."""
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The result and, if ``need_weights``, the weights."""
        transposed = self.batch_first and query.ndim == 3
        if transposed:
            same = (query is key, key is value)
            query = query.transpose(0, 1)
            key = query if same[0] else key.transpose(0, 1)
            value = key if same[1] else value.transpose(0, 1)
        output, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return (output.transpose(0, 1) if transposed else output), weights
