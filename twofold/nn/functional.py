"""Functions of neural networks: every public operation, some with what PyTorch's signatures add."""

from __future__ import annotations

import functools
import inspect
import math
import operator
import sys
from collections.abc import Callable
from importlib import import_module as _import_module
from typing import Any

from twofold import _core
from twofold.dtypes import int64
from twofold.errors import DTypeError as _DTypeError
from twofold.frontend import batch_norm_statistics
from twofold.frontend.install import PUBLIC
from twofold.frontend.install import guard as _guard
from twofold.frontend.sampling import dropout, stream
from twofold.ir.op import REGISTRY
from twofold.nn import functional_attention, functional_ctc, functional_embedding, functional_losses
from twofold.nn.functional_pooling import *  # noqa: F403
from twofold.ops.base import FUNCTIONS, Operation
from twofold.ops.elementwise import activation
from twofold.ops.promotion import autocast as _autocast
from twofold.ops.random.distributions import sample as _sample
from twofold.ops.random.sampling import sample_uniform
from twofold.ops.signatures import positional as _positional
from twofold.ops.signatures import shows as _shows

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
    return _shows(made, function, _positional("inplace", False, "bool"))


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
            made = _core.operation_callable(op, 1, made, "", False, True)
            made.__name__ = made.__qualname__ = op.functions[0]
            made.__doc__ = op.call.__doc__
        for name in op.functions:
            found[name] = made
            found[name + "_"] = _in_place_form(op.call)
    return found


_OVERRIDES = {
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
}


def __getattr__(name: str) -> Any:
    if name in _OVERRIDES:
        return getattr(_import_module("twofold.overrides"), name)
    if name == "_Reduction":
        return _import_module("twofold.nn._reduction")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


globals().update({name: made for name, made in PUBLIC.items() if name.isidentifier()})
globals().update(_activations())

batch_norm, instance_norm = batch_norm_statistics.batch_norm, batch_norm_statistics.instance_norm


def _function_named(name: str) -> Any:
    """The function of a name, for copies and files of modules that hold one."""
    found = globals().get(name) or PUBLIC.get(name)
    return getattr(sys.modules["twofold"], name) if found is None else found


globals().update(functional_losses.LOSSES)
ctc_loss = functional_ctc.ctc_loss
embedding, embedding_bag = functional_embedding.embedding, functional_embedding.embedding_bag
lookup = functional_embedding.lookup
multi_head_attention_forward = functional_attention.multi_head_attention_forward
scaled_dot_product_attention = functional_attention.scaled_dot_product_attention

# Fixed operands go to the recorder without a detour through the public function.
linear_with_bias = _core.operation_callable(REGISTRY["linear"], 3, FUNCTIONS["linear"])
linear_without_bias = _core.operation_callable(REGISTRY["linear"], 2, FUNCTIONS["linear"])


unfold = PUBLIC["im2col"]
fold = PUBLIC["col2im"]


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input @ weight.T + bias``.

    >>> import twofold as torch
    >>> torch.nn.functional.linear(torch.tensor([1.0, 2.0]), torch.tensor([[1.0, 0.0], [1.0, 1.0]]))
    tensor([1., 3.])
    """
    return linear_without_bias(input, weight) if bias is None else linear_with_bias(input, weight, bias)


@_autocast("own")
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``sum over i, j of input1[i] * weight[o, i, j] * input2[j] + bias[o]``.

    >>> import twofold as torch
    >>> weight = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])
    >>> torch.nn.functional.bilinear(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]), weight)
    tensor([11.])
    """
    found = FUNCTIONS["einsum"]("...i,oij,...j->...o", input1, weight, input2)
    if bias is None:
        return found
    if bias.dtype is not found.dtype:
        raise _DTypeError(
            f"expected bias and input1 to have the same dtype, but got {bias.dtype.name} and {found.dtype.name}",
            f"Convert the bias with .to({found.dtype.name}).",
        )
    return found + bias


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """For each class number a row of zeros with a one there; -1 classes: as many as the largest needs.

    >>> import twofold as torch
    >>> torch.nn.functional.one_hot(torch.tensor([2, 0]))
    tensor([[0, 0, 1],
            [1, 0, 0]])
    """
    if tensor.dtype is not int64:
        raise _DTypeError(
            f"one_hot is only applicable to index tensors of int64, not {tensor.dtype.name}",
            "Convert it with .long().",
        )
    count = operator.index(num_classes)
    return FUNCTIONS["one_hot"](tensor, int(tensor.max().item()) + 1 if count == -1 else count)


def rrelu(
    input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """``leaky_relu`` with a slope sampled from [lower, upper] for each element in training, else their mean.

    >>> import twofold as torch
    >>> torch.nn.functional.rrelu(torch.tensor([-1.0, 2.0]), 0.1, 0.3)
    tensor([-0.2000,  2.0000])
    """
    if lower > upper:
        raise RuntimeError(
            f"rrelu: Lower bound should be less than or equal to the upper bound, got {lower} and {upper}. Swap them."
        )
    slope: Any = (lower + upper) / 2
    if training:
        slope = sample_uniform(*stream(None), tuple(input.shape), input.dtype, float(lower), float(upper))
    result = FUNCTIONS["leaky_relu"](input, slope)
    return input._assign(result) if inplace else result


def rrelu_(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> Tensor:
    """In-place ``rrelu``.

    >>> import twofold as torch
    >>> torch.nn.functional.rrelu_(torch.tensor([-1.0, 2.0]), 0.1, 0.3)
    tensor([-0.2000,  2.0000])
    """
    return rrelu(input, lower, upper, training, inplace=True)


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
    """Zero whole channels of ``(batch, channels, length)``.

    >>> import twofold as torch
    >>> channels = torch.nn.functional.dropout1d(torch.ones(1, 50, 3))[0]
    >>> (channels == channels[:, :1]).all()
    tensor(True)
    """
    return _dropped_channels(input, p, training, inplace, input.ndim - 1)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels of ``(batch, channels, height, width)``.

    >>> import twofold as torch
    >>> channels = torch.nn.functional.dropout2d(torch.ones(1, 50, 2, 2)).reshape(50, 4)
    >>> (channels == channels[:, :1]).all()
    tensor(True)
    """
    return _dropped_channels(input, p, training, inplace, input.ndim - 2)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels of ``(batch, channels, depth, height, width)``.

    >>> import twofold as torch
    >>> channels = torch.nn.functional.dropout3d(torch.ones(1, 50, 2, 2, 2)).reshape(50, 8)
    >>> (channels == channels[:, :1]).all()
    tensor(True)
    """
    return _dropped_channels(input, p, training, inplace, input.ndim - 3)


_ALPHA_PRIME = -1.7580993408473766


def _alpha_dropped(input: Tensor, p: float, training: bool, inplace: bool, shape: tuple[int, ...]) -> Tensor:
    """Positions of ``shape`` dropped to what ``selu`` tends to, with mean and variance kept.

    Source: Klambauer et al., Self-Normalizing Neural Networks, 2017, section 3.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0:
        return input
    if p == 1:
        return input._assign(input * 0) if inplace else input * 0
    kept = sample_uniform(*stream(None), shape, input.dtype) >= p
    scale = 1 / math.sqrt((1 + p * _ALPHA_PRIME**2) * (1 - p))
    result = FUNCTIONS["where"](kept, input, _ALPHA_PRIME) * scale - scale * p * _ALPHA_PRIME
    return input._assign(result) if inplace else result


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout that keeps mean and variance behind ``selu``.

    >>> import twofold as torch
    >>> torch.nn.functional.alpha_dropout(torch.tensor([1.0, 2.0]), training=False)
    tensor([1., 2.])
    """
    return _alpha_dropped(input, p, training, inplace, tuple(input.shape))


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """``alpha_dropout`` of whole channels of ``(batch, channels, ...)``.

    Raises RuntimeError for fewer than two axes.

    >>> import twofold as torch
    >>> channels = torch.nn.functional.feature_alpha_dropout(torch.ones(1, 50, 3), training=True)[0]
    >>> (channels == channels[:, :1]).all()
    tensor(True)
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

    >>> import twofold as torch
    >>> sample = torch.nn.functional.gumbel_softmax(torch.zeros(3), hard=True)
    >>> sorted(sample.tolist())
    [0.0, 0.0, 1.0]
    """
    if not logits.dtype.is_floating_point:
        raise _DTypeError(f"logits of {logits.dtype.name}", "Convert them with .float().")
    gumbel = -_sample("exponential", *stream(None), tuple(logits.shape), logits.dtype, 1.0).log()
    soft = ((logits + gumbel) / tau).softmax(dim)
    if not hard:
        return soft
    best = soft.argmax(dim)
    flat = FUNCTIONS["one_hot"](best, soft.shape[dim]).to(soft.dtype).movedim(-1, dim)
    return flat - soft.detach() + soft


_guard(globals(), by_types=True)
for _fast, _known in ((linear_with_bias, linear), (linear_without_bias, linear), (lookup, embedding)):
    setattr(_fast, "public", _known)  # noqa: B010 (what `__torch_function__` is given)
