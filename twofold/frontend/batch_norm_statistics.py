"""Normalisation whose running statistics follow the batches, in PyTorch's two orders of arguments."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from twofold import _core
from twofold.dtypes import uint8
from twofold.frontend.install import PUBLIC
from twofold.runtime.tracing import message

Tensor = _core.Tensor


def _follow(running: Tensor | None, value: Tensor, momentum: float) -> None:
    """Move a running statistic towards that of a batch, in place."""
    if running is not None:
        running._assign((running * (1 - momentum) + value * momentum).to(running.dtype))


def _without_gradient(update: Callable[[], None]) -> None:
    with _core.GradientMode(False):
        update()


def _batch_axes(input: Tensor) -> tuple[int, ...]:
    return (0, *range(2, input.ndim))


def _need_both(running_mean: Tensor | None, running_var: Tensor | None) -> None:
    if (running_mean is None) != (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Batch normalisation; in training the running statistics (with unbiased variance) follow the batch.

    Raises ShapeError (a ValueError) for one value per channel in training.

    >>> import twofold as torch
    >>> x, mean, variance = torch.tensor([[1.0], [3.0]]), torch.zeros(1), torch.ones(1)
    >>> torch.nn.functional.batch_norm(x, mean, variance, training=True)
    tensor([[-1.0000],
            [ 1.0000]])
    >>> mean
    tensor([0.2000])
    """
    _need_both(running_mean, running_var)
    result = PUBLIC["batch_norm"](input, running_mean, running_var, weight, bias, training, momentum, eps)
    if training and running_mean is not None and input.ndim > 1 and 0 not in tuple(input.shape):

        def update() -> None:
            axes = _batch_axes(input)
            _follow(running_mean, input.mean(axes), momentum)
            _follow(running_var, input.var(axes, correction=1), momentum)

        _without_gradient(update)
    return result


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Every channel of every sample normalised by its own statistics, or by the running ones.

    With ``use_input_stats`` the running statistics follow the mean over the samples of theirs. Raises ValueError
    for one value per channel then.

    >>> import twofold as torch
    >>> torch.nn.functional.instance_norm(torch.tensor([[[1.0, 3.0], [5.0, 9.0]]]))
    tensor([[[-1.0000,  1.0000],
             [-1.0000,  1.0000]]])
    """
    _need_both(running_mean, running_var)
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise ValueError("Expected running_mean and running_var to be defined when use_input_stats=False")
        return PUBLIC["batch_norm"](input, running_mean, running_var, weight, bias, False, momentum, eps)
    shape = tuple(input.shape)
    if prod(shape[2:]) == 1:
        what = f"Expected more than 1 spatial element when training, got input size {shape}"
        raise ValueError(message(what, "Use a larger input, or training=False.", input=input))
    result = PUBLIC["instance_norm"](input, weight, bias, eps)
    if running_mean is not None and 0 not in shape[2:]:

        def update() -> None:
            axes = tuple(range(2, input.ndim))
            _follow(running_mean, input.mean(axes).mean(0), momentum)
            _follow(running_var, input.var(axes, correction=1).mean(0), momentum)

        _without_gradient(update)
    return result


def _statistics(input: Tensor, axes: Any, eps: float, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The mean, and one over the standard deviation."""
    variance = input.var(axes, correction=0, keepdim=keepdim)
    return input.mean(axes, keepdim=keepdim), (variance + eps).rsqrt()


def _nothing(input: Tensor) -> Tensor:
    return input.detach().reshape((-1,))[:0]


def native_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """``batch_norm``, the mean of the batch, and one over its standard deviation (both empty in evaluation).

    >>> import twofold as torch
    >>> x = torch.tensor([[1.0], [3.0]])
    >>> torch.native_batch_norm(x, None, None, None, None, True, 0.1, 0.0)[1]
    tensor([2.])
    """
    result = batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
    if not training:
        return result, _nothing(input), _nothing(input)
    return result, *_statistics(input.detach(), _batch_axes(input), eps)


def _native_batch_norm_legit(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, *rest: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """``native_batch_norm``; the running statistics before ``training, momentum, eps`` may be left out."""
    mean, variance = rest[:-3] or (None, None)
    training, momentum, eps = rest[-3:]
    return native_batch_norm(input, weight, bias, mean, variance, training, momentum, eps)


def _batch_norm_with_update(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """``native_batch_norm`` in training, and an empty tensor of bytes in place of what a device would reserve."""
    found = native_batch_norm(input, weight, bias, running_mean, running_var, True, momentum, eps)
    return *found, _nothing(input).to(uint8)


def native_layer_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """``layer_norm``, the mean, and one over the standard deviation of each row.

    >>> import twofold as torch
    >>> torch.native_layer_norm(torch.tensor([[1.0, 3.0], [5.0, 9.0]]), (2,), None, None, 0.0)[1].flatten()
    tensor([2., 7.])
    """
    result = PUBLIC["layer_norm"](input, normalized_shape, weight, bias, eps)
    axes = tuple(range(input.ndim - len(tuple(normalized_shape)), input.ndim))
    return result, *_statistics(input, axes, eps, keepdim=True)


def native_group_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """``group_norm``, the mean, and one over the standard deviation of each group of channels.

    >>> import twofold as torch
    >>> x = torch.tensor([[1.0, 3.0, 5.0, 9.0]])
    >>> torch.native_group_norm(x, None, None, 1, 4, 1, 2, 0.0)[1]
    tensor([[2., 7.]])
    """
    result = PUBLIC["group_norm"](input, group, weight, bias, eps)
    return result, *_statistics(input.reshape((N, group, C // group * HxW)), 2, eps)


def _batch_norm_of_torch(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = False,
) -> Tensor:
    """``nn.functional.batch_norm`` with the order of arguments of ``torch.batch_norm``.

    >>> import twofold as torch
    >>> x, mean, variance = torch.tensor([[1.0], [3.0]]), torch.zeros(1), torch.ones(1)
    >>> torch.batch_norm(x, None, None, mean, variance, False, 0.1, 0.0)
    tensor([[1.],
            [3.]])
    """
    return batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def _instance_norm_of_torch(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = False,
) -> Tensor:
    """``nn.functional.instance_norm`` with the order of arguments of ``torch.instance_norm``.

    >>> import twofold as torch
    >>> x = torch.tensor([[[1.0, 3.0], [5.0, 9.0]]])
    >>> torch.instance_norm(x, None, None, None, None, True, 0.1, 1e-5)
    tensor([[[-1.0000,  1.0000],
             [-1.0000,  1.0000]]])
    """
    return instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)
