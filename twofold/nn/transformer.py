"""Transformers: layers of attention and of two linear layers, encoder and decoder.

Source: Vaswani et al., Attention Is All You Need, 2017.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

from twofold import _core
from twofold.frontend import attention_backends
from twofold.frontend.creation import CREATION
from twofold.frontend.gradients import is_grad_enabled
from twofold.frontend.options import check_device
from twofold.nn import functional, init
from twofold.nn.activation import GELU, ReLU
from twofold.nn.attention import MultiheadAttention
from twofold.nn.containers import ModuleList
from twofold.nn.layers import Dropout, Linear
from twofold.nn.module import Module
from twofold.nn.normalization import LayerNorm
from twofold.ops.base import FUNCTIONS
from twofold.runtime.tracing import message

Tensor = _core.Tensor
F: Any = functional


def clones(module: Module, count: int) -> ModuleList:
    """As many copies of a module, with parameters of their own."""
    return ModuleList([copy.deepcopy(module) for _ in range(count)])


def _activation(given: Any) -> Any:
    """The function of a name; raises RuntimeError for a name other than relu and gelu."""
    if not isinstance(given, str):
        return given
    if given not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {given}")
    return getattr(F, given)


def _square_mask(size: int, dtype: Any = None) -> Tensor:
    """Zeros up to the diagonal, minus infinity above it."""
    return FUNCTIONS["triu"](CREATION["full"]((size, size), -math.inf, dtype=dtype), 1)


def _is_causal(mask: Tensor | None, given: bool | None) -> bool:
    """Whether a mask is the causal one, where it was not said."""
    if given is not None:
        return given
    if mask is None or mask.ndim != 2 or mask.shape[0] != mask.shape[1] or mask._is_symbolic:
        return False
    return bool((mask == _square_mask(mask.shape[0], mask.dtype)).all()) if mask.dtype.kind == "f" else False


class _Layer(Module):
    """What encoder and decoder layers share: two linear layers, and norms before or behind each part."""

    def _set_up(
        self, d_model: int, width: int, dropout: float, activation: Any, bias: bool, dtype: Any
    ) -> None:
        self.linear1 = Linear(d_model, width, bias=bias, dtype=dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(width, d_model, bias=bias, dtype=dtype)
        self.activation = _activation(activation)

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_Layer):
    """Attention of a sequence to itself, then two linear layers, each added to its input and normalised.

    With ``norm_first`` each part normalises its input instead.

    >>> import twofold as torch
    >>> torch.nn.TransformerEncoderLayer(8, 2, 16)(torch.ones(5, 2, 8)).shape
    twofold.Size([5, 2, 8])
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        check_device(device)
        super().__init__()
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout, bias, batch_first=batch_first, dtype=dtype
        )
        self._set_up(d_model, dim_feedforward, dropout, activation, bias, dtype)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, dtype=dtype)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, dtype=dtype)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)

    def _attend(self, x: Tensor, mask: Tensor | None, padding: Tensor | None, causal: bool) -> Tensor:
        found, _ = self.self_attn(
            x, x, x, key_padding_mask=padding, need_weights=False, attn_mask=mask, is_causal=causal
        )
        return self.dropout1(found)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """The layer's output, of the shape of ``src``."""
        rest = (src_mask, src_key_padding_mask, is_causal)
        if self.norm_first:
            x = src + self._attend(self.norm1(src), *rest)
            return x + self.dropout2(self._ff_block(self.norm2(x)))
        x = self.norm1(src + self._attend(src, *rest))
        return self.norm2(x + self.dropout2(self._ff_block(x)))


class TransformerDecoderLayer(_Layer):
    """As an encoder layer, with attention to the encoder's output between its two parts.

    >>> import twofold as torch
    >>> x, memory = torch.ones(5, 2, 8), torch.ones(7, 2, 8)
    >>> torch.nn.TransformerDecoderLayer(8, 2, 16)(x, memory).shape
    twofold.Size([5, 2, 8])
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        check_device(device)
        super().__init__()
        more = {"batch_first": batch_first, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, **more)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, bias, **more)
        self._set_up(d_model, dim_feedforward, dropout, activation, bias, dtype)
        self.norm_first = norm_first
        for number in (1, 2, 3):
            setattr(self, f"norm{number}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, dtype=dtype))
        for number in (1, 2, 3):
            setattr(self, f"dropout{number}", Dropout(dropout))

    def _attend(self, x: Tensor, mask: Tensor | None, padding: Tensor | None, causal: bool) -> Tensor:
        found, _ = self.self_attn(
            x, x, x, attn_mask=mask, key_padding_mask=padding, is_causal=causal, need_weights=False
        )
        return self.dropout1(found)

    def _attend_memory(
        self, x: Tensor, memory: Tensor, mask: Tensor | None, padding: Tensor | None, causal: bool
    ) -> Tensor:
        found, _ = self.multihead_attn(
            x, memory, memory, attn_mask=mask, key_padding_mask=padding, is_causal=causal, need_weights=False
        )
        return self.dropout2(found)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """The layer's output, of the shape of ``tgt``."""
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        other = (memory, memory_mask, memory_key_padding_mask, memory_is_causal)
        if self.norm_first:
            x = tgt + self._attend(self.norm1(tgt), *own)
            x = x + self._attend_memory(self.norm2(x), *other)
            return x + self.dropout3(self._ff_block(self.norm3(x)))
        x = self.norm1(tgt + self._attend(tgt, *own))
        x = self.norm2(x + self._attend_memory(x, *other))
        return self.norm3(x + self.dropout3(self._ff_block(x)))


def _leaves_padding_out(layer: Module) -> bool:
    """Whether PyTorch computes such layers without padding, where nothing is differentiated."""
    if not isinstance(layer, TransformerEncoderLayer) or layer.norm_first:
        return False
    attention, activation = layer.self_attn, layer.activation
    if not attention.batch_first or attention.in_proj_bias is None or attention.num_heads % 2:
        return False
    known = activation in (F.relu, F.gelu) or isinstance(activation, (ReLU, GELU))
    return bool(known and layer.norm1.eps == layer.norm2.eps)


class TransformerEncoder(Module):
    """``num_layers`` copies of a layer one after the other, and a norm behind them.

    In evaluation without gradients, what ``src_key_padding_mask`` masks at the ends of sequences is zeros behind the
    last layer, as in PyTorch: for layers with ``batch_first``, an even number of heads, biases, relu or gelu, and
    norms behind their parts.

    Args:
        encoder_layer: The layer.
        num_layers: How many copies.
        norm: The norm.
        enable_nested_tensor: False leaves masked elements as the layers compute them.
        mask_check: Whether it is asked that the mask is of ends alone.

    >>> import twofold as torch
    >>> layer = torch.nn.TransformerEncoderLayer(8, 2, 16)
    >>> torch.nn.TransformerEncoder(layer, 2)(torch.ones(5, 2, 8)).shape
    twofold.Size([5, 2, 8])
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.use_nested_tensor = enable_nested_tensor and _leaves_padding_out(encoder_layer)
        self.mask_check = mask_check

    def _drops_padding(self, src: Tensor, mask: Tensor | None, padding: Tensor | None) -> bool:
        if padding is None or mask is not None or not self.use_nested_tensor or src.ndim != 3:
            return False
        first: Any = self.layers[0]
        if first.training or not attention_backends.fused_encoders:
            return False
        return not (is_grad_enabled() and any(given.requires_grad for given in (src, *first.parameters())))

    def _without_padding(self, x: Tensor, padding: Tensor) -> Tensor:
        padded = padding if padding.dtype.kind == "b" else padding != 0
        masked = padded.unsqueeze(-1)
        if self.mask_check:
            masked = masked & (padded[:, 1:] | ~padded[:, :-1]).all()
        return x.masked_fill(masked, 0)

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """The output of the last layer."""
        causal = _is_causal(mask, is_causal)
        drops = self._drops_padding(src, mask, src_key_padding_mask)
        for layer in self.layers:
            src = layer(src, src_mask=mask, src_key_padding_mask=src_key_padding_mask, is_causal=causal)
        if drops and src_key_padding_mask is not None:
            src = self._without_padding(src, src_key_padding_mask)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """``num_layers`` copies of a layer one after the other, and a norm behind them.

    >>> import twofold as torch
    >>> layer = torch.nn.TransformerDecoderLayer(d_model=8, nhead=2, dim_feedforward=16)
    >>> torch.nn.TransformerDecoder(layer, num_layers=2)(torch.ones(5, 3, 8), torch.ones(7, 3, 8)).shape
    twofold.Size([5, 3, 8])
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """The output of the last layer."""
        causal = _is_causal(tgt_mask, tgt_is_causal)
        for layer in self.layers:
            tgt = layer(
                tgt,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder of one sequence and a decoder of another that attends to it.

    >>> import twofold as torch
    >>> model = torch.nn.Transformer(8, 2, 1, 1, 16)
    >>> model(torch.ones(7, 2, 8), torch.ones(5, 2, 8)).shape
    twofold.Size([5, 2, 8])
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        check_device(device)
        super().__init__()
        sizes = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps)
        more = {"batch_first": batch_first, "norm_first": norm_first, "bias": bias, "dtype": dtype}
        kinds = (TransformerEncoderLayer, num_encoder_layers), (TransformerDecoderLayer, num_decoder_layers)
        stacks: list[Any] = [custom_encoder, custom_decoder]
        for k, (kind, count) in enumerate(kinds):
            if stacks[k] is None:
                norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, dtype=dtype)
                stack: Any = (TransformerEncoder, TransformerDecoder)[k]
                stacks[k] = stack(kind(*sizes, **more), count, norm)
        self.encoder, self.decoder = stacks
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """The decoder's output; raises RuntimeError where batches or features do not fit."""
        axis = 0 if self.batch_first else 1
        if src.ndim == 3 and src.shape[axis] != tgt.shape[axis]:
            what = "the batch number of src and tgt must be equal"
            raise RuntimeError(message(what, f"Make axis {axis} of both the same.", src=src, tgt=tgt))
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            what = "the feature number of src and tgt must be equal to d_model"
            raise RuntimeError(message(what, f"Make the last axis of both {self.d_model}.", src=src, tgt=tgt))
        memory = self.encoder(
            src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal
        )
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """The mask with which each position sees itself and those before it."""
        check_device(device)
        return _square_mask(sz, dtype)

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)
