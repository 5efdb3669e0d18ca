"""Normalisation over axes: the mean taken off in a first pass, the variance in a second."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy

from twofold.dtypes import bfloat16, complex64, float16, float32, float64
from twofold.errors import ArgumentError, DTypeError, ShapeError
from twofold.ir.sizes import real
from twofold.ops.base import apply, composite, convert, ops, public, strong
from twofold.ops.docstrings import shown
from twofold.ops.examples import example
from twofold.ops.promotion import need_constant
from twofold.ops.reduction.softmax import floating, total
from twofold.ops.shape import shapes
from twofold.ops.shape.movement import sum_to

Axes = tuple[int, ...]


def average(x: Any, axes: Axes) -> Any:
    """The mean over ``axes``, which stay with size 1."""
    return total(x, *axes) / real(prod(x.shape[axis] for axis in axes))


def standardized(x: Any, axes: Axes, eps: Any, centered: bool = True) -> tuple[Any, Any]:
    """``x`` with mean 0 (if ``centered``) and mean square 1 over ``axes``, and the factor that made it so."""
    d = x - average(x, axes) if centered else x
    factor = ops.rsqrt(average(d * d, axes) + eps)
    return d * factor, factor


def standardized_share(ct: Any, unit: Any, factor: Any, axes: Axes, centered: bool = True) -> Any:
    """The cotangent of ``x`` from that of ``standardized(x)``."""
    inner = ct - unit * average(ct * unit, axes)
    return factor * (inner - average(ct, axes) if centered else inner)


def _affine(unit: Any, weight: Any, bias: Any) -> Any:
    value = unit if weight is None else unit * convert(weight, unit.dtype)
    return value if bias is None else value + convert(bias, unit.dtype)


def _split(rest: tuple[Any, ...]) -> tuple[Any, Any, Any, Any, Any]:
    """Weight, bias, eps, first attribute and number of the two, from inputs and attributes."""
    *values, setting, weighted, biased = rest
    values = list(values)
    weight = values.pop(0) if weighted else None
    bias = values.pop(0) if biased else None
    return weight, bias, values[0], setting, weighted + biased


def _shares(ct: Any, unit: Any, weight: Any, bias: Any) -> tuple[Any, list[Any]]:
    """The cotangent of ``unit``, and those of weight and bias as far as these are."""
    more = []
    if weight is not None:
        more.append(convert(sum_to(ct * unit, weight.shape), weight.dtype))
    if bias is not None:
        more.append(convert(sum_to(ct, bias.shape), bias.dtype))
    return ct if weight is None else ct * convert(weight, ct.dtype), more


def _need_dtypes(input: Any, *parameters: Any) -> None:
    """Raise DTypeError unless the parameters have the input's dtype, or are all float32 for a 16-bit input."""
    given = [value.dtype for value in parameters if value is not None]
    own = input.dtype
    for dtype in given:
        wide = dtype is float32 and own in (float16, bfloat16) and given.count(float32) == len(given)
        if dtype is not own and not wide:
            names = ", ".join(value.name for value in given)
            raise DTypeError(
                f"mixed dtypes: parameters of {names} for input of {own.name}",
                f"Convert the input or the parameters, such as with .to({own.name}).",
            )


_COMPLEX = (numpy.arange(15).reshape(3, 5) - 3 + 0.5j).astype(numpy.complex64)


def _last(name: str, centered: bool, doc: str) -> Any:
    """An entry that normalises over the last axes: attributes ``(axes, has_weight, has_bias)``."""

    class body:
        def compute(x: Any, *rest: Any) -> Any:
            weight, bias, eps, axes, _ = _split(rest)
            unit, _ = standardized(floating(x), axes, eps, centered)
            return convert(_affine(unit, weight, bias), strong(x).dtype)

        def vjp(ct: Any, y: Any, x: Any, *rest: Any) -> Any:
            weight, bias, eps, axes, _ = _split(rest)
            unit, factor = standardized(floating(x), axes, eps, centered)
            inner, more = _shares(convert(ct, unit.dtype), unit, weight, bias)
            return (
                convert(standardized_share(inner, unit, factor, axes, centered), strong(x).dtype),
                *more,
                None,
            )

        def reference(x: Any, *rest: Any) -> Any:
            weight, bias, eps, axes, _ = _split(rest)
            d = x - x.mean(axes, keepdims=True) if centered else x
            unit = d / numpy.sqrt((d * d).mean(axes, keepdims=True) + eps)
            unit = unit if weight is None else unit * weight
            return unit if bias is None else unit + bias

        samples = lambda: [
            example(((1,), False, False), (3, 17), numpy.array(1e-5)),
            example(((1,), True, False), (3, 33), (33,), numpy.array(1e-5)),
            *(
                [example(((1, 2), True, True), (3, 2, 5), (2, 5), (2, 5), numpy.array(1e-5))]
                if centered
                else [example(((1,), True, False), _COMPLEX, (5,), numpy.array(1e-5), dtype=complex64)]
            ),
        ]

    if centered:
        body.autograd_name = "NativeLayerNormBackward0"  # type: ignore[attr-defined]
        body.call = staticmethod(_layer_norm)  # type: ignore[attr-defined]
    else:
        body.call = staticmethod(_rms_norm)  # type: ignore[attr-defined]
        body.on_complex = staticmethod(_complex_rms_norm)  # type: ignore[attr-defined]
    body.__name__, body.__doc__ = name, doc
    return composite(body)


def _last_axes(input: Any, normalized_shape: Any, **parameters: Any) -> Axes:
    """The axes that ``normalized_shape`` names; raises ShapeError where it or a parameter does not fit."""
    sizes = shapes.integers((normalized_shape,))
    ndim = len(input.shape)
    if not sizes or tuple(input.shape)[ndim - len(sizes) :] != sizes:
        raise ShapeError(
            f"normalized_shape {sizes} for input of shape {tuple(input.shape)}",
            "Make it the last sizes of the input.",
        )
    for name, value in parameters.items():
        if value is not None and tuple(value.shape) != sizes:
            raise ShapeError(
                f"{name} of shape {tuple(value.shape)} for normalized_shape {sizes}", "Make them equal."
            )
    return tuple(range(ndim - len(sizes), ndim))


def _layer_norm(
    input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    axes = _last_axes(input, normalized_shape, weight=weight, bias=bias)
    need_constant("layer_norm", eps=eps)
    _need_dtypes(input, weight, bias)
    given = [value for value in (weight, bias) if value is not None]
    return apply("layer_norm", input, *given, eps, attrs=(axes, weight is not None, bias is not None))


def _rms_norm(input: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Any:
    axes = _last_axes(input, normalized_shape, weight=weight)
    need_constant("rms_norm", eps=eps)
    given = [] if weight is None else [weight]
    small = (2.0**-52 if input.dtype.real is float64 else 2.0**-23) if eps is None else eps
    return apply("rms_norm", input, *given, small, attrs=(axes, weight is not None, False))


def _complex_rms_norm(x: Any, *rest: Any) -> Any:
    """The square is not that of the absolute value, so the factor is complex, too."""
    weight, bias, eps, axes, _ = _split(rest)
    return _affine(x * ops.rsqrt(average(x * x, axes) + eps), weight, bias)


layer_norm = _last(
    "layer_norm",
    True,
    shown(
        "``(x - mean) / sqrt(variance + eps) * weight + bias`` over the last axes, ``normalized_shape``.\n\n"
        "Raises ShapeError where these, the weight or the bias do not fit.\n"
        "Source: Ba, Kiros, Hinton, Layer Normalization, 2016.",
        ">>> torch.nn.functional.layer_norm(torch.tensor([[1.0, 3.0], [5.0, 9.0]]), (2,))",
        "tensor([[-1.0000,  1.0000],",
        "        [-1.0000,  1.0000]])",
    ),
)
rms_norm = _last(
    "rms_norm",
    False,
    shown(
        "``x / sqrt(mean(x**2) + eps) * weight`` over the last axes, ``normalized_shape``.\n\n"
        "Raises ShapeError where these or the weight do not fit.\n"
        "Source: Zhang, Sennrich, Root Mean Square Layer Normalization, 2019.",
        ">>> torch.nn.functional.rms_norm(torch.tensor([1.0, 7.0]), (2,))",
        "tensor([0.2000, 1.4000])",
    ),
)


def _channels(value: Any, ndim: int) -> Any:
    """A value per channel with axes that broadcast against ``ndim`` axes, of which 1 is the channel."""
    return ops.reshape(value, (value.shape[0], *(1,) * (ndim - 2)))


def _batch_axes(x: Any) -> Axes:
    return (0, *range(2, x.ndim))


@composite
class batch_norm_train:
    """Batch normalisation with the statistics of the batch; attributes ``(None, has_weight, has_bias)``."""

    autograd_name = "NativeBatchNormBackward0"
    functions = ()

    def compute(x: Any, *rest: Any) -> Any:
        weight, bias, eps, _, _ = _split(rest)
        unit, _ = standardized(floating(x), _batch_axes(x), eps)
        weight, bias = (None if value is None else _channels(value, x.ndim) for value in (weight, bias))
        return convert(_affine(unit, weight, bias), strong(x).dtype)

    def vjp(ct: Any, y: Any, x: Any, *rest: Any) -> Any:
        weight, bias, eps, _, _ = _split(rest)
        axes = _batch_axes(x)
        unit, factor = standardized(floating(x), axes, eps)
        wide = convert(ct, unit.dtype)
        more = [
            apply("sum", value, attrs=(axes, False))
            for value, given in ((wide * unit, weight), (wide, bias))
            if given is not None
        ]
        inner = wide if weight is None else wide * _channels(convert(weight, wide.dtype), x.ndim)
        return (convert(standardized_share(inner, unit, factor, axes), strong(x).dtype), *more, None)

    def reference(x: Any, *rest: Any) -> Any:
        weight, bias, eps, _, _ = _split(rest)
        axes, tail = (0, *range(2, x.ndim)), (-1, *(1,) * (x.ndim - 2))
        unit = (x - x.mean(axes, keepdims=True)) / numpy.sqrt(x.var(axes, keepdims=True) + eps)
        unit = unit if weight is None else unit * weight.reshape(tail)
        return unit if bias is None else unit + bias.reshape(tail)

    samples = lambda: [
        example((None, True, True), (4, 3, 2, 5), (3,), (3,), numpy.array(1e-5)),
        example((None, False, False), (6, 17), numpy.array(1e-5)),
    ]


_VARIANCE = numpy.array([0.5, 1.0, 2.0], numpy.float32)


@composite
class batch_norm_eval:
    """Batch normalisation with given statistics.

    Inputs ``(x, mean, variance, *weight, *bias, eps)``, attributes ``(None, has_weight, has_bias)``.
    """

    autograd_name = "NativeBatchNormBackward0"
    functions = ()

    def compute(x: Any, mean: Any, variance: Any, *rest: Any) -> Any:
        weight, bias, eps, _, _ = _split(rest)
        wide = floating(x)
        mean, variance = convert(mean, wide.dtype), convert(variance, wide.dtype)
        factor = ops.rsqrt(variance + eps)
        factor = factor if weight is None else factor * convert(weight, wide.dtype)
        offset = -mean * factor
        offset = offset if bias is None else offset + convert(bias, wide.dtype)
        return convert(wide * _channels(factor, x.ndim) + _channels(offset, x.ndim), strong(x).dtype)

    def reference(x: Any, mean: Any, variance: Any, *rest: Any) -> Any:
        weight, bias, eps, _, _ = _split(rest)
        tail = (-1, *(1,) * (x.ndim - 2))
        unit = (x - mean.reshape(tail)) / numpy.sqrt(variance.reshape(tail) + eps)
        unit = unit if weight is None else unit * weight.reshape(tail)
        return unit if bias is None else unit + bias.reshape(tail)

    samples = lambda: [
        example((None, True, True), (4, 3, 2, 5), (3,), _VARIANCE, (3,), (3,), numpy.array(1e-5)),
        example((None, False, False), (6, 3), (3,), _VARIANCE, numpy.array(1e-5)),
    ]


@public()
def batch_norm(
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    """``(x - mean) / sqrt(variance + eps) * weight + bias`` per channel (axis 1).

    Statistics are those of the batch if ``training``, else the running ones, which stay as they are.
    Source: Ioffe, Szegedy, Batch Normalization, 2015.

    >>> import twofold as torch
    >>> x, zero, one = torch.tensor([[1.0], [3.0]]), torch.zeros(1), torch.ones(1)
    >>> torch.nn.functional.batch_norm(x, zero, one, eps=0.0)
    tensor([[1.],
            [3.]])
    >>> torch.nn.functional.batch_norm(x, zero, one, training=True)
    tensor([[-1.0000],
            [ 1.0000]])
    """
    need_constant("batch_norm", eps=eps)
    shape = tuple(input.shape)
    if len(shape) == 1 and not shape[0]:
        return ops.copied(input)
    if len(shape) < 2:
        raise ShapeError(f"an input with {len(shape)} axes", "Use (batch, channels, ...).")
    _need_channels(shape[1], weight=weight, bias=bias, running_mean=running_mean, running_var=running_var)
    _need_dtypes(input, weight, bias, running_mean, running_var)
    given = [value for value in (weight, bias) if value is not None]
    attrs = (None, weight is not None, bias is not None)
    if not training and running_mean is not None:
        return apply("batch_norm_eval", input, running_mean, running_var, *given, eps, attrs=attrs)
    if prod(shape) == shape[1]:
        raise ShapeError("one value per channel has no variance", "Use a larger batch, or training=False.")
    return apply("batch_norm_train", input, *given, eps, attrs=attrs)


def _need_channels(channels: int, **vectors: Any) -> None:
    """Raise ShapeError for what has not one element for each channel."""
    for name, value in vectors.items():
        if value is not None and tuple(value.shape) != (channels,):
            raise ShapeError(
                f"{name} of shape {tuple(value.shape)} for {channels} channels",
                f"Give it the shape ({channels},).",
            )


@composite
class group_norm:
    """``(x - mean) / sqrt(variance + eps) * weight + bias`` over each of ``num_groups`` groups of channels.

    Source: Wu, He, Group Normalization, 2018.

    >>> import twofold as torch
    >>> torch.nn.functional.group_norm(torch.tensor([[1.0, 3.0, 5.0, 9.0]]), 2)
    tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """

    autograd_name = "NativeGroupNormBackward0"

    def call(input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
        if len(input.shape) < 2 or input.shape[1] % num_groups:
            raise ArgumentError(
                f"{num_groups} groups for input of shape {tuple(input.shape)}",
                "Use a number that divides the size of axis 1.",
            )
        _need_channels(input.shape[1], weight=weight, bias=bias)
        _need_dtypes(input, weight, bias)
        given = [value for value in (weight, bias) if value is not None]
        return apply(
            "group_norm", input, *given, eps, attrs=(num_groups, weight is not None, bias is not None)
        )

    def compute(x: Any, *rest: Any) -> Any:
        weight, bias, eps, groups, _ = _split(rest)
        flat = ops.reshape(floating(x), (x.shape[0], groups, prod(x.shape[1:]) // groups))
        unit = ops.reshape(standardized(flat, (2,), eps)[0], x.shape)
        weight, bias = (None if value is None else _channels(value, x.ndim) for value in (weight, bias))
        return convert(_affine(unit, weight, bias), strong(x).dtype)

    def reference(x: Any, *rest: Any) -> Any:
        weight, bias, eps, groups, _ = _split(rest)
        flat, tail = x.reshape(x.shape[0], groups, -1), (-1, *(1,) * (x.ndim - 2))
        unit = (flat - flat.mean(2, keepdims=True)) / numpy.sqrt(flat.var(2, keepdims=True) + eps)
        unit = unit.reshape(x.shape)
        unit = unit if weight is None else unit * weight.reshape(tail)
        return unit if bias is None else unit + bias.reshape(tail)

    samples = lambda: [
        example((2, True, True), (3, 4, 5), (4,), (4,), numpy.array(1e-5)),
        example((1, False, False), (2, 3, 2, 3), numpy.array(1e-5)),
    ]


@public()
def instance_norm(input: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    """Normalisation of every channel of every sample by its own statistics.

    >>> import twofold as torch
    >>> torch.nn.functional.instance_norm(torch.tensor([[[1.0, 3.0], [5.0, 9.0]]]))
    tensor([[[-1.0000,  1.0000],
             [-1.0000,  1.0000]]])
    """
    return ops.group_norm(input, input.shape[1], weight, bias, eps)
