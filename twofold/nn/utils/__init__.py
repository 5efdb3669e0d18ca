"""Limits on gradients, parameters as one vector, weights computed from others, fused layers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from twofold import _core
from twofold.frontend.creation import tensor
from twofold.ir.op import REGISTRY
from twofold.lazy import other_files as _other_files
from twofold.nn.utils import parametrizations, parametrize, prune
from twofold.nn.utils.fusion import (
    fuse_conv_bn_eval,
    fuse_conv_bn_weights,
    fuse_linear_bn_eval,
    fuse_linear_bn_weights,
)
from twofold.nn.utils.reweighting import (
    remove_spectral_norm,
    remove_weight_norm,
    spectral_norm,
    weight_norm,
)
from twofold.ops.base import FUNCTIONS

Tensor = _core.Tensor

_rule: Any = REGISTRY["clipped_gradient"]
_clipped = _core.operation_callable(_rule, 2, _rule.call)


def _gradients(parameters: Any) -> list[Tensor]:
    given = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [parameter._dense_grad for parameter in given if parameter._dense_grad is not None]


def get_total_norm(
    tensors: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """The norm of all tensors taken as one vector.

    >>> import twofold as torch
    >>> torch.nn.utils.get_total_norm([torch.tensor([3.0]), torch.tensor([0.0, 4.0])])
    tensor(5.)
    """
    given = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if not given:
        return tensor(0.0)
    norms = [FUNCTIONS["norm"](one, float(norm_type)) for one in given]
    total = FUNCTIONS["norm"](FUNCTIONS["stack"](norms), float(norm_type))
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(
            f"The total norm of order {float(norm_type)} for gradients from `parameters` is "
            f"non-finite, so it cannot be "
            "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


def clip_grads_with_norm_(
    parameters: Any, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale the gradients so that a norm of ``total_norm`` becomes at most ``max_norm``.

    >>> import twofold as torch
    >>> weight = torch.ones(2, requires_grad=True)
    >>> (weight * torch.tensor([3.0, 4.0])).sum().backward()
    >>> torch.nn.utils.clip_grads_with_norm_([weight], 1.0, torch.tensor(10.0))
    >>> weight.grad
    tensor([0.3000, 0.4000])
    """
    with _core.GradientMode(False):
        scale = float(max_norm) / (total_norm + 1e-6)
        for gradient in _gradients(parameters):
            gradient._assign(_clipped(gradient, scale))


def clip_grad_norm_(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale all gradients so that their common norm is at most ``max_norm``; returns the norm they had.

    Raises RuntimeError for a norm that is not finite if ``error_if_nonfinite``.

    >>> import twofold as torch
    >>> weight = torch.ones(2, requires_grad=True)
    >>> (weight * torch.tensor([3.0, 4.0])).sum().backward()
    >>> torch.nn.utils.clip_grad_norm_([weight], max_norm=1.0), weight.grad
    (tensor(5.), tensor([0.6000, 0.8000]))
    """
    given = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    with _core.GradientMode(False):
        total = get_total_norm(_gradients(given), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(given, max_norm, total)
    return total


clip_grad_norm = clip_grad_norm_


def clip_grad_value_(parameters: Any, clip_value: float, foreach: bool | None = None) -> None:
    """Limit every element of every gradient to [-clip_value, clip_value].

    >>> import twofold as torch
    >>> weight = torch.ones(2, requires_grad=True)
    >>> (weight * torch.tensor([3.0, -4.0])).sum().backward()
    >>> torch.nn.utils.clip_grad_value_([weight], 2.0)
    >>> weight.grad
    tensor([ 2., -2.])
    """
    limit = float(clip_value)
    with _core.GradientMode(False):
        for gradient in _gradients(parameters):
            gradient._assign(gradient.clamp(-limit, limit))


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All parameters one after the other as one vector.

    >>> import twofold as torch
    >>> layer = torch.nn.Linear(2, 3)
    >>> torch.nn.utils.parameters_to_vector(layer.parameters()).shape
    twofold.Size([9])
    """
    return FUNCTIONS["cat"]([parameter.reshape((-1,)) for parameter in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Give the parameters the values of a vector that ``parameters_to_vector`` made.

    >>> import twofold as torch
    >>> layer = torch.nn.Linear(2, 1)
    >>> torch.nn.utils.vector_to_parameters(torch.tensor([1.0, 2.0, 3.0]), layer.parameters())
    >>> layer(torch.tensor([1.0, 1.0])).item()
    6.0
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    start = 0
    for parameter in parameters:
        count = parameter.numel()
        parameter.data = vec[start : start + count].reshape(tuple(parameter.shape)).detach()
        start += count


def _check_param_device(param: Tensor, old_param_device: int | None) -> int:
    """The device of parameters that are joined or taken apart, by its number; -1, since all are on the CPU.

    PyTorch's programs that have their own ``vector_to_parameters`` call it for one parameter after the other.
    ``old_param_device`` is what it returned for the parameter before, None for the first. Raises TypeError if
    that was another device.

    >>> import twofold as torch
    >>> torch.nn.utils.convert_parameters._check_param_device(torch.ones(2), None)
    -1
    """
    if old_param_device not in (None, param.get_device()):
        raise TypeError(
            f"parameters on devices {old_param_device} and {param.get_device()}. Move them to one."
        )
    return param.get_device()


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """A module whose parameters are to be set later; they are sampled all the same.

    >>> import twofold as torch
    >>> torch.nn.utils.skip_init(torch.nn.Linear, 2, 3).weight.shape
    twofold.Size([3, 2])
    """
    return module_cls(*args, **kwargs)


_other_files(
    __name__,
    {
        "clip_grad": "clip_grad_norm clip_grad_norm_ clip_grad_value_ clip_grads_with_norm_ get_total_norm",
        "convert_parameters": "_check_param_device parameters_to_vector vector_to_parameters",
        "stateless": "functional_call=twofold.func:functional_call",
        "spectral_norm": "SpectralNorm=twofold.nn.utils.reweighting:SpectralNorm remove_spectral_norm spectral_norm",
        "weight_norm": "WeightNorm=twofold.nn.utils.reweighting:WeightNorm remove_weight_norm weight_norm",
    },
)
