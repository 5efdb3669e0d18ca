"""Losses with PyTorch's arguments in PyTorch's order, its two older flags included."""

from __future__ import annotations

import functools
import inspect
import math
import warnings
from collections.abc import Callable
from typing import Any

from twofold import _core
from twofold.dtypes import DType, int64, uint8
from twofold.errors import DTypeError, ShapeError
from twofold.frontend.install import PUBLIC
from twofold.nn import reducing
from twofold.ops.base import FUNCTIONS
from twofold.ops.promotion import autocast as _autocast
from twofold.ops.signatures import positional as _positional
from twofold.ops.signatures import shows as _shows
from twofold.runtime.tracing import here as _here
from twofold.runtime.tracing import message as _message

Tensor = _core.Tensor


def _in_order(
    name: str,
    *order: str,
    weighted: bool = False,
    over_weights: bool = True,
    elementwise: bool = False,
    classes: tuple[DType, ...] = (),
) -> Callable[..., Tensor]:
    """The loss of this name, with what follows input and target in PyTorch's order.

    One that is ``weighted`` also takes weights of the single elements; its mean is ``over_weights`` or over all
    elements. One that is
    ``elementwise`` warns of an input and a target that are broadcast. Targets that are numbers of ``classes`` must
    have one of these dtypes.
    """
    function = PUBLIC[name]
    given = inspect.signature(function.__wrapped__).parameters

    @functools.wraps(function)
    def made(input: Tensor, target: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if (
            classes
            and isinstance(target, Tensor)
            and target.dtype.kind in "iub"
            and target.dtype not in classes
        ):
            names = " or ".join(dtype.name for dtype in classes)
            raise DTypeError(
                f"expected target dtype to be {names}, but got {target.dtype.name}",
                "Convert it with .long().",
            )
        if len(args) > len(order):
            raise TypeError(f"{name}() takes at most {len(order) + 2} arguments, got {len(args) + 2}")
        for key, value in zip(order, args, strict=False):
            if key in kwargs:
                raise TypeError(f"{name}() got multiple values for argument {key!r}")
            kwargs[key] = value
        if elementwise and isinstance(input, Tensor) and isinstance(target, Tensor):
            _warn_of_broadcasting(input, target)
        if "size_average" in kwargs or "reduce" in kwargs or "reduction" in kwargs:
            flags = (kwargs.pop("size_average", None), kwargs.pop("reduce", None))
            kwargs["reduction"] = reducing.reduction_of(*flags, kwargs.get("reduction", "mean"))
        weight = kwargs.pop("weight", None) if weighted else None
        return (
            function(input, target, **kwargs) if weight is None else by_weight(input, target, weight, kwargs)
        )

    def by_weight(input: Tensor, target: Tensor, weight: Tensor, kwargs: dict[str, Any]) -> Tensor:
        if weight.shape != input.shape:
            what = f"Weights and input must have the same size, got {tuple(weight.shape)} and {tuple(input.shape)}"
            raise ValueError(_message(what, "Give a weight for each element.", weight=weight, input=input))
        reduction = kwargs.pop("reduction", "mean")
        each = function(input, target, reduction="none", **kwargs) * weight
        if reduction != "mean" or not over_weights:
            return reducing.reduced(each, reduction)
        return each.sum() / weight.expand(tuple(each.shape)).sum()

    shown = [_positional(key, given[key].default if key in given else None) for key in order]
    return _shows(made, function, *shown, without=("out", *order))


def _warn_of_broadcasting(input: Tensor, target: Tensor) -> None:
    if tuple(input.shape) != tuple(target.shape):
        _core.not_by_types()  # each call warns
        warnings.warn(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}), at {_here()}. "
            "This will likely lead to incorrect results due to broadcasting. Please ensure they have the same size.",
            stacklevel=3,
        )


_FLAGS = ("size_average", "reduce", "reduction")

mse_loss = _in_order("mse_loss", *_FLAGS, "weight", weighted=True, elementwise=True)
l1_loss = _in_order("l1_loss", *_FLAGS, "weight", weighted=True, elementwise=True)
huber_loss = _in_order(
    "huber_loss", "reduction", "delta", "weight", weighted=True, over_weights=False, elementwise=True
)
smooth_l1_loss = _in_order("smooth_l1_loss", *_FLAGS, "beta", elementwise=True)
soft_margin_loss = _in_order("soft_margin_loss", *_FLAGS)
binary_cross_entropy = _in_order("binary_cross_entropy", "weight", *_FLAGS)
binary_cross_entropy_with_logits = _in_order(
    "binary_cross_entropy_with_logits", "weight", *_FLAGS, "pos_weight"
)
kl_div = _in_order("kl_div", *_FLAGS, "log_target")
nll_loss = _in_order(
    "nll_loss", "weight", "size_average", "ignore_index", "reduce", "reduction", classes=(int64, uint8)
)
cross_entropy = _in_order(
    "cross_entropy",
    "weight",
    "size_average",
    "ignore_index",
    "reduce",
    "reduction",
    "label_smoothing",
    classes=(int64, uint8),
)
multi_margin_loss = _in_order("multi_margin_loss", "p", "margin", "weight", *_FLAGS, classes=(int64,))
multilabel_margin_loss = _in_order("multilabel_margin_loss", *_FLAGS, classes=(int64,))


def _flagged(loss: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A loss whose last argument is ``reduction``, with the older flags before it."""
    code = loss.__code__
    count = code.co_argcount - 1

    @functools.wraps(loss)
    def made(*args: Any, **kwargs: Any) -> Tensor:
        given, rest = args[:count], dict(zip(_FLAGS, args[count:], strict=False))
        flags = [kwargs.pop(name, rest.get(name)) for name in _FLAGS]
        return loss(*given, **kwargs, reduction=reducing.reduction_of(flags[0], flags[1], flags[2] or "mean"))

    flags = [_positional(name, "mean" if name == "reduction" else None) for name in _FLAGS]
    return _shows(made, loss, *flags, without=("reduction",))


@_autocast("float32")
@_flagged
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """``max(0, -target * (input1 - input2) + margin)``.

    >>> import twofold as torch
    >>> x1, x2 = torch.tensor([1.0, 1.0]), torch.tensor([3.0, 0.0])
    >>> torch.nn.functional.margin_ranking_loss(x1, x2, torch.ones(2))
    tensor(1.)
    """
    if not input1.ndim == input2.ndim == target.ndim:
        sizes = ", ".join(str(tuple(one.shape)) for one in (input1, input2, target))
        raise ShapeError(
            f"margin_ranking_loss: All input tensors should have same dimension but got sizes {sizes}",
            "Reshape them to as many axes.",
        )
    return reducing.reduced((-target * (input1 - input2) + margin).clamp(min=0), reduction)


@_autocast("float32")
@_flagged
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, reduction: str = "mean"
) -> Tensor:
    """``input`` where the target is 1, ``max(0, margin - input)`` where it is -1.

    >>> import twofold as torch
    >>> x, target = torch.tensor([0.25, 0.25]), torch.tensor([1, -1])
    >>> torch.nn.functional.hinge_embedding_loss(x, target, reduction="none")
    tensor([0.2500, 0.7500])
    """
    where = FUNCTIONS["where"]
    far = where(target == 1, 0.0, (margin - input).clamp(min=0))
    return reducing.reduced(far + where(target == -1, 0.0, input), reduction)


@_autocast("float32")
@_flagged
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """``1 - cos`` where the target is 1, ``max(0, cos - margin)`` where it is -1, 0 elsewhere.

    >>> import twofold as torch
    >>> x1, x2 = torch.tensor([[1.0, 0.0]]), torch.tensor([[3.0, 4.0]])
    >>> torch.nn.functional.cosine_embedding_loss(x1, x2, torch.tensor([1]))
    tensor(0.4000)
    """
    if not (input1.is_floating_point() or input2.is_floating_point()):
        input1, input2 = input1.float(), input2.float()
    cosine = FUNCTIONS["cosine_similarity"](input1, input2, input1.ndim - 1)
    other = (cosine - margin).clamp(min=0) * (target == -1)
    each = FUNCTIONS["where"](target == 1, 1 - cosine, other)
    return reducing.reduced(each, reduction)


@_autocast("float32")
@_flagged
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """``max(0, |anchor - positive| - |anchor - negative| + margin)``; ``swap``: to the nearer one.

    Raises ValueError for a margin that is not positive.

    >>> import twofold as torch
    >>> anchor, positive, negative = torch.zeros(1, 2), torch.tensor([[3.0, 4.0]]), torch.tensor([[0.0, 2.0]])
    >>> torch.nn.functional.triplet_margin_loss(anchor, positive, negative)
    tensor(4.0000)
    """

    def distance(a: Tensor, b: Tensor) -> Tensor:
        return FUNCTIONS["pairwise_distance"](a, b, p, eps)

    return triplet_margin_with_distance_loss(
        anchor, positive, negative, distance_function=distance, margin=margin, swap=swap, reduction=reduction
    )


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """``max(0, d(anchor, positive) - d(anchor, negative) + margin)`` for any distance.

    Raises ValueError for a margin that is not positive.

    >>> import twofold as torch
    >>> anchor, positive, negative = torch.zeros(1, 2), torch.tensor([[3.0, 4.0]]), torch.tensor([[0.0, 2.0]])
    >>> torch.nn.functional.triplet_margin_with_distance_loss(anchor, positive, negative)
    tensor(4.0000)
    """
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    distance = FUNCTIONS["pairwise_distance"] if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    return reducing.reduced((near - far + margin).clamp(min=0), reduction)


@_flagged
def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """The mean over the classes of the binary cross entropy of the sigmoid of ``input``.

    >>> import twofold as torch
    >>> x, target = torch.tensor([[0.0, 2.0]]), torch.tensor([[1.0, 0.0]])
    >>> torch.nn.functional.multilabel_soft_margin_loss(x, target)
    tensor(1.4100)
    """
    logsigmoid = FUNCTIONS["logsigmoid"]
    each = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    each = each if weight is None else each * weight
    return reducing.reduced(each.mean(-1), reduction)


@_autocast("float32")
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``exp(input) - target * input``, or ``input - target * log(input + eps)``; ``full`` adds Stirling.

    >>> import twofold as torch
    >>> torch.nn.functional.poisson_nll_loss(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 2.0]))
    tensor(0.8591)
    """
    each = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        each = each + FUNCTIONS["where"](target <= 1, 0.0, stirling)
    return reducing.reduced(each, reducing.reduction_of(size_average, reduce, reduction))


def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """``(log(var) + (input - target)**2 / var) / 2`` with a variance of at least ``eps``.

    Raises ValueError for a variance that does not fit or is negative.

    >>> import twofold as torch
    >>> torch.nn.functional.gaussian_nll_loss(torch.tensor([1.0]), torch.tensor([3.0]), torch.tensor([1.0]))
    tensor(2.)
    """
    if not isinstance(var, Tensor):
        if var < 0:
            fix = "Give variances, such as exp of what a network returns."
            raise ValueError(_message("var has negative entry/entries", fix))
        var = FUNCTIONS["full"](tuple(input.shape), float(var), dtype=input.dtype)
    elif not var._is_symbolic and bool((var < 0).any()):
        fix = "Give variances, such as exp of what a network returns."
        raise ValueError(_message("var has negative entry/entries", fix))
    if tuple(var.shape) != tuple(input.shape):
        if tuple(var.shape) == tuple(input.shape[:-1]):
            var = var.unsqueeze(-1)
        elif var.ndim != input.ndim:
            what = f"var is of incorrect size: {tuple(var.shape)} for input of {tuple(input.shape)}"
            fix = "Give the same shape, or one without the last axis."
            raise ValueError(_message(what, fix, var=var, input=input))
    # the limit is a constant for gradients
    safe = var + (var.detach().clamp(min=eps) - var.detach())
    each = 0.5 * (safe.log() + (input - target) ** 2 / safe)
    return reducing.reduced(each + 0.5 * math.log(2 * math.pi) if full else each, reduction)


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """``cross_entropy(linear(input, linear_weight, linear_bias), target)``.

    A weight ``(classes, d1, ..., features)`` gives scores ``(batch, classes, d1, ...)``. ``options`` change
    nothing. Raises RuntimeError where sizes do not fit.

    >>> import twofold as torch
    >>> scores = torch.nn.functional.linear_cross_entropy
    >>> scores(torch.ones(2, 3), torch.zeros(4, 3), torch.tensor([0, 3]))
    tensor(1.3863)
    """
    if input.ndim not in (1, 2):
        what = f"expected input with dimensionality 1 or 2, got {input.ndim}"
        raise RuntimeError(_message(what, "Give (batch, features), or a row.", input=input))
    if linear_weight.ndim < 2:
        what = f"expected linear_weight with dimensionality at least 2, got {linear_weight.ndim}"
        raise RuntimeError(_message(what, "Give (classes, features).", linear_weight=linear_weight))
    shape = tuple(linear_weight.shape[:-1])
    if input.ndim == 1 and len(shape) > 1:
        what = f"a linear_weight of shape {tuple(linear_weight.shape)} needs input with a batch"
        raise RuntimeError(_message(what, "Use unsqueeze(0).", input=input, linear_weight=linear_weight))
    flat = linear_weight.reshape((math.prod(shape), linear_weight.shape[-1]))
    bias = None if linear_bias is None else linear_bias.reshape((math.prod(shape),))
    scores = PUBLIC["linear"](input, flat, bias).reshape((*input.shape[:-1], *shape))
    if ignore_index is not None and tuple(target.shape) == tuple(scores.shape):
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    return cross_entropy(
        scores,
        target,
        weight,
        ignore_index=-100 if ignore_index is None else ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


LOSSES = {
    name: value for name, value in globals().items() if inspect.isfunction(value) and not name.startswith("_")
}
"""The losses of this module by name."""
