"""Functions of neural networks: every public operation, some with what PyTorch's signatures add."""

from __future__ import annotations

import copyreg
import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

from twofold import _core
from twofold.frontend import running
from twofold.frontend.creation import _stream as stream
from twofold.frontend.creation import dropout
from twofold.frontend.install import PUBLIC
from twofold.ir.op import REGISTRY
from twofold.nn import functional_attention
from twofold.nn.functional_pooling import *  # noqa: F403
from twofold.ops import activation
from twofold.ops.base import FUNCTIONS, Operation, apply

Tensor = _core.Tensor


def _with_inplace(function: Callable[..., Any], parameters: int) -> Callable[..., Any]:
    """``function`` with PyTorch's last argument ``inplace``."""

    @functools.wraps(function)
    def made(input: Tensor, *args: Any, inplace: bool = False, **kwargs: Any) -> Tensor:
        if len(args) >= parameters:
            *args, inplace = args  # type: ignore[assignment]
        result = function(input, *args, **kwargs)
        return input._assign(result) if inplace else result

    made.__module__ = __name__
    return made


def _in_place_form(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def made(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return input._assign(function(input, *args, **kwargs))

    made.__name__ = made.__qualname__ = function.__name__ + "_"
    return made


def _activations() -> dict[str, Callable[..., Any]]:
    """The activations, found by their entries, with ``inplace``; and their forms with an underscore."""
    found: dict[str, Callable[..., Any]] = {}
    for op in vars(activation).values():
        if not isinstance(op, Operation):
            continue
        made = _with_inplace(op.call, len(inspect.signature(op.call).parameters))
        if op.arity == 1:
            made = _core.operation_callable(op, 1, made)
            made.__name__ = made.__qualname__ = op.functions[0]
        for name in op.functions:
            found[name] = made
            found[name + "_"] = _in_place_form(op.call)
    return found


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


globals().update({name: made for name, made in PUBLIC.items() if name.isidentifier()})
globals().update(_activations())

batch_norm, instance_norm = running.batch_norm, running.instance_norm


def _function_named(name: str) -> Any:
    """The function of a name, for copies and files of modules that hold one."""
    return globals()[name]


copyreg.pickle(type(PUBLIC["exp"]), lambda function: (_function_named, (function.__name__,)))

multi_head_attention_forward = functional_attention.multi_head_attention_forward
scaled_dot_product_attention = functional_attention.scaled_dot_product_attention

# Fixed operands go to the recorder without a detour through the public function.
linear_with_bias = _core.operation_callable(REGISTRY["linear"], 3, FUNCTIONS["linear"])
linear_without_bias = _core.operation_callable(REGISTRY["linear"], 2, FUNCTIONS["linear"])
lookup = _core.operation_callable(REGISTRY["embedding"], 2, FUNCTIONS["embedding"])


unfold = PUBLIC["im2col"]
fold = PUBLIC["col2im"]


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input @ weight.T + bias``."""
    return linear_without_bias(input, weight) if bias is None else linear_with_bias(input, weight, bias)


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``sum over i, j of input1[i] * weight[o, i, j] * input2[j] + bias[o]``."""
    found = FUNCTIONS["einsum"]("...i,oij,...j->...o", input1, weight, input2)
    return found if bias is None else found + bias


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

    Raises NotImplementedError for ``max_norm`` and ``scale_grad_by_freq``.
    """
    if max_norm is not None or scale_grad_by_freq:
        raise NotImplementedError(
            "embedding: max_norm and scale_grad_by_freq are not there. Normalise the weight yourself."
        )
    return (
        lookup(input, weight) if padding_idx is None else FUNCTIONS["embedding"](input, weight, padding_idx)
    )


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """For each class number a row of zeros with a one there; -1 classes: as many as the largest needs."""
    return FUNCTIONS["one_hot"](tensor, int(tensor.max().item()) + 1 if num_classes == -1 else num_classes)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """``input`` where positive, else ``weight * input``, with one weight or one per channel (axis 1)."""
    if weight.numel() > 1:
        weight = weight.reshape((-1, *(1,) * max(input.ndim - 2, 0)))
    return FUNCTIONS["where"](input > 0, input, input * weight)


def rrelu(
    input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """``leaky_relu`` with a slope drawn from [lower, upper] for each element in training, else their mean."""
    slope: Any = (lower + upper) / 2
    if training:
        slope = apply(
            "random_uniform",
            *stream(None),
            float(lower),
            float(upper),
            attrs=(tuple(input.shape), input.dtype),
        )
    result = FUNCTIONS["where"](input >= 0, input, input * slope)
    return input._assign(result) if inplace else result


def _dropped_channels(input: Tensor, p: float, training: bool, inplace: bool, kept: int) -> Tensor:
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0:
        return input
    shape = tuple(input.shape)
    ones = FUNCTIONS["ones"]((*shape[:kept], *(1,) * (len(shape) - kept)), dtype=input.dtype)
    result = input * dropout(ones, p, True)
    return input._assign(result) if inplace else result


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels of ``(batch, channels, length)``."""
    return _dropped_channels(input, p, training, inplace, input.ndim - 1)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels of ``(batch, channels, height, width)``."""
    return _dropped_channels(input, p, training, inplace, input.ndim - 2)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels of ``(batch, channels, depth, height, width)``."""
    return _dropped_channels(input, p, training, inplace, input.ndim - 3)


_ALPHA_PRIME = -1.7580993408473766


def _alpha_dropped(input: Tensor, p: float, training: bool, inplace: bool, shape: tuple[int, ...]) -> Tensor:
    """Places of ``shape`` dropped to what ``selu`` tends to, with mean and variance kept.

    Source: Klambauer et al., Self-Normalizing Neural Networks, 2017, section 3.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0:
        return input
    if p == 1:
        return input._assign(input * 0) if inplace else input * 0
    kept = apply("random_uniform", *stream(None), 0.0, 1.0, attrs=(shape, input.dtype)) >= p
    scale = 1 / math.sqrt((1 + p * _ALPHA_PRIME**2) * (1 - p))
    result = FUNCTIONS["where"](kept, input, _ALPHA_PRIME) * scale - scale * p * _ALPHA_PRIME
    return input._assign(result) if inplace else result


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout that keeps mean and variance behind ``selu``."""
    return _alpha_dropped(input, p, training, inplace, tuple(input.shape))


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """``alpha_dropout`` of whole channels of ``(batch, channels, ...)``.

    Raises RuntimeError for fewer than two axes.
    """
    shape = tuple(input.shape)
    if training and len(shape) < 2:
        raise RuntimeError(f"Feature dropout requires at least 2 dimensions in the input, got {len(shape)}")
    return _alpha_dropped(input, p, training, inplace, (*shape[:2], *(1,) * (len(shape) - 2)))


def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """A sample of the Gumbel-Softmax distribution; ``hard``: one-hot, with the gradient of the soft sample.

    Source: Jang, Gu, Poole, Categorical Reparameterization with Gumbel-Softmax, 2017.
    """
    uniform = apply("random_uniform", *stream(None), 0.0, 1.0, attrs=(tuple(logits.shape), logits.dtype))
    gumbel = -(-(uniform.clamp(min=2.0**-24).log())).log()
    soft = ((logits + gumbel) / tau).softmax(dim)
    if not hard:
        return soft
    best = soft.argmax(dim)
    flat = FUNCTIONS["one_hot"](best, soft.shape[dim]).to(soft.dtype).movedim(-1, dim)
    return flat - soft.detach() + soft


# Losses


def _reduced(value: Tensor, reduction: str) -> Tensor:
    if reduction == "none":
        return value
    if reduction == "mean":
        return value.mean()
    if reduction == "sum":
        return value.sum()
    raise ValueError(f"{reduction} is not a valid value for reduction")


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, *, reduction: str = "mean"
) -> Tensor:
    """``max(0, -target * (input1 - input2) + margin)``."""
    return _reduced((-target * (input1 - input2) + margin).clamp(min=0), reduction)


def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, *, reduction: str = "mean"
) -> Tensor:
    """``input`` where the target is 1, ``max(0, margin - input)`` where it is -1."""
    where = FUNCTIONS["where"]
    far = where(target == 1, 0.0, (margin - input).clamp(min=0))
    return _reduced(far + where(target == -1, 0.0, input), reduction)


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, *, reduction: str = "mean"
) -> Tensor:
    """``1 - cos`` where the target is 1, ``max(0, cos - margin)`` where it is -1."""
    cosine = FUNCTIONS["cosine_similarity"](input1, input2, input1.ndim - 1)
    each = FUNCTIONS["where"](target == 1, 1 - cosine, (cosine - margin).clamp(min=0))
    return _reduced(each, reduction)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    *,
    reduction: str = "mean",
) -> Tensor:
    """``max(0, |anchor - positive| - |anchor - negative| + margin)``; ``swap``: to the nearer one."""
    distance = FUNCTIONS["pairwise_distance"]
    near, far = distance(anchor, positive, p, eps), distance(anchor, negative, p, eps)
    if swap:
        far = far.minimum(distance(positive, negative, p, eps))
    return _reduced((near - far + margin).clamp(min=0), reduction)


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    *,
    reduction: str = "mean",
) -> Tensor:
    """Sum over the other classes of ``max(0, margin - input[target] + input[i]) ** p``, over their count."""
    rows = input if input.ndim == 2 else input.unsqueeze(0)
    wanted = target.reshape((-1, 1))
    each = (margin - rows.gather(1, wanted) + rows).clamp(min=0)
    each = each if p == 1 else each * each
    each = each if weight is None else each * weight[target.reshape((-1,))].unsqueeze(1)
    others = 1 - FUNCTIONS["one_hot"](wanted.squeeze(1), rows.shape[1]).to(rows.dtype)
    losses = (each * others).sum(1) / rows.shape[1]
    return _reduced(losses if input.ndim == 2 else losses[0], reduction)


def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, *, reduction: str = "mean"
) -> Tensor:
    """The mean over the classes of the binary cross entropy of the sigmoid of ``input``."""
    logsigmoid = FUNCTIONS["logsigmoid"]
    each = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    each = each if weight is None else each * weight
    return _reduced(each.mean(-1), reduction)


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    *,
    reduction: str = "mean",
) -> Tensor:
    """``exp(input) - target * input``, or ``input - target * log(input + eps)``; ``full`` adds Stirling."""
    each = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        each = each + FUNCTIONS["where"](target <= 1, 0.0, stirling)
    return _reduced(each, reduction)


def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Any, full: bool = False, eps: float = 1e-6, *, reduction: str = "mean"
) -> Tensor:
    """``(log(var) + (input - target)**2 / var) / 2`` with a variance of at least ``eps``."""
    if not isinstance(var, Tensor):
        var = FUNCTIONS["full"](tuple(input.shape), float(var), dtype=input.dtype)
    if var.ndim == input.ndim - 1:
        var = var.unsqueeze(-1)
    # the limit is a constant for gradients
    safe = var + (var.detach().clamp(min=eps) - var.detach())
    each = 0.5 * (safe.log() + (input - target) ** 2 / safe)
    return _reduced(each + 0.5 * math.log(2 * math.pi) if full else each, reduction)
