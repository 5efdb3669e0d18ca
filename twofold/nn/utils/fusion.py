"""Batch normalisation of a trained network computed by the layer before it."""

from __future__ import annotations

import copy
from typing import Any

from twofold import _core
from twofold.nn.module import Module
from twofold.nn.parameter import Parameter

Tensor = _core.Tensor


def _scales(mean: Tensor, variance: Tensor, eps: float, weight: Any, bias: Any) -> tuple[Tensor, Tensor]:
    """What a normalised channel is multiplied by, and what is added."""
    factor = (variance + eps).rsqrt()
    factor = factor if weight is None else factor * weight
    offset = -mean * factor
    return factor, offset if bias is None else offset + bias


def _fused(
    weight: Tensor, bias: Any, factor: Tensor, offset: Tensor, axis: int
) -> tuple[Parameter, Parameter]:
    shape = [-1 if position == axis else 1 for position in range(weight.ndim)]
    made = offset if bias is None else bias * factor + offset
    return (
        Parameter((weight * factor.reshape(shape)).detach(), weight.requires_grad),
        Parameter(made.detach(), weight.requires_grad if bias is None else bias.requires_grad),
    )


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of the convolution that also does what the normalisation behind it does.

    >>> import twofold as torch
    >>> conv, norm = torch.nn.Conv2d(3, 8, 3).eval(), torch.nn.BatchNorm2d(8).eval()
    >>> weight, bias = torch.nn.utils.fuse_conv_bn_weights(
    ...     conv.weight, conv.bias, norm.running_mean, norm.running_var, norm.eps, norm.weight, norm.bias
    ... )
    >>> x = torch.ones(1, 3, 5, 5)
    >>> torch.allclose(torch.nn.functional.conv2d(x, weight, bias), norm(conv(x)), atol=1e-5)
    True
    """
    factor, offset = _scales(bn_rm, bn_rv, bn_eps, bn_w, bn_b)
    return _fused(conv_w, conv_b, factor, offset, int(transpose))


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of the linear layer that also does what the normalisation behind it does.

    >>> import twofold as torch
    >>> linear, norm = torch.nn.Linear(2, 3).eval(), torch.nn.BatchNorm1d(3).eval()
    >>> weight, bias = torch.nn.utils.fuse_linear_bn_weights(
    ...     linear.weight, linear.bias, norm.running_mean, norm.running_var, norm.eps, norm.weight, norm.bias
    ... )
    >>> x = torch.ones(4, 2)
    >>> torch.allclose(torch.nn.functional.linear(x, weight, bias), norm(linear(x)), atol=1e-5)
    True
    """
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def _fuse(layer: Any, bn: Any, transpose: bool) -> Any:
    if layer.training or bn.training:
        raise ValueError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise ValueError("fusion needs a normalisation that tracks running statistics")
    made = copy.deepcopy(layer)
    made.weight, made.bias = fuse_conv_bn_weights(
        made.weight, made.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return made


def fuse_conv_bn_eval(conv: Module, bn: Module, transpose: bool = False) -> Any:
    """One convolution in place of a convolution and a batch normalisation, both in evaluation mode.

    Raises ValueError in training mode.

    >>> import twofold as torch
    >>> conv, norm = torch.nn.Conv2d(2, 3, 1).eval(), torch.nn.BatchNorm2d(3).eval()
    >>> fused, x = torch.nn.utils.fuse_conv_bn_eval(conv, norm), torch.ones(1, 2, 4, 4)
    >>> torch.allclose(fused(x), norm(conv(x)), atol=1e-6)
    True
    """
    return _fuse(conv, bn, transpose)


def fuse_linear_bn_eval(linear: Module, bn: Module) -> Any:
    """One linear layer in place of a linear layer and a batch normalisation, both in evaluation mode.

    >>> import twofold as torch
    >>> linear, norm = torch.nn.Linear(2, 3).eval(), torch.nn.BatchNorm1d(3).eval()
    >>> x = torch.ones(4, 2)
    >>> torch.allclose(torch.nn.utils.fuse_linear_bn_eval(linear, norm)(x), norm(linear(x)), atol=1e-5)
    True
    """
    given_linear: Any = linear
    given: Any = bn
    if given_linear.out_features != given.num_features and given.num_features != 1:
        raise ValueError("To fuse, linear.out_features == bn.num_features or bn.num_features == 1")
    return _fuse(linear, bn, False)
