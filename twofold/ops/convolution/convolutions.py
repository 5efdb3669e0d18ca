"""Convolutions and transposed convolutions over one, two or three axes, in PyTorch's layout.

Images are ``(batch, channels, *sizes)`` or, without a batch, ``(channels, *sizes)``. All axes that are missing
have size 1, so one primitive computes them all; ``convolution_primitives`` says in which order.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy

from twofold.dtypes import complex64
from twofold.errors import ArgumentError, DTypeError, ShapeError
from twofold.ir.node import Attributes
from twofold.ir.types import Shape
from twofold.ops.base import apply, composite, ops, public, strong
from twofold.ops.building_blocks import rounded_once
from twofold.ops.convolution.primitives import grouped
from twofold.ops.convolution.window_sizes import Windows, patches
from twofold.ops.docstrings import shown
from twofold.ops.examples import example

_NAMES = {1: "(batch, channels, length)", 2: "(batch, channels, height, width)",
          3: "(batch, channels, depth, height, width)"}  # fmt: skip


def per_axis(name: str, value: Any, count: int, least: int) -> tuple[int, ...]:
    """One integer for each spatial axis, from one for all or one each.

    Raises ArgumentError for another number of them, or for one below ``least``.

    >>> per_axis("stride", 2, 3, 1)
    (2, 2, 2)
    """
    given = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    found = tuple(operator.index(item) for item in given)
    found = found * count if len(found) == 1 else found
    if len(found) != count:
        raise ArgumentError(f"{name} {given} for {count} spatial axes", f"Give one integer, or {count}.")
    if any(item < least for item in found):
        raise ArgumentError(f"{name} {given} below {least}", f"Use integers from {least} on.")
    return found


def _padding(value: Any, count: int, strides: Shape) -> Any:
    """Padding on both sides of each axis, or "same" or "valid"."""
    if not isinstance(value, str):
        return per_axis("padding", value, count, 0)
    if value not in ("same", "valid"):
        raise ArgumentError(f"padding {value!r}", "Use integers, 'same' or 'valid'.")
    if value == "same" and any(stride != 1 for stride in strides):
        raise ArgumentError(
            f"padding='same' with stride {strides}", "Use stride 1, or give the padding as integers."
        )
    return value


def _groups(value: Any) -> int:
    groups = operator.index(value)
    if groups < 1:
        raise ArgumentError(f"groups {groups} below 1", "Use groups=1 for a convolution of all channels.")
    return groups


def sides(padding: Any, kernel: Shape, dilations: Shape) -> list[tuple[int, int]]:
    """Padding before and behind each axis, of which ``padding`` may hold pairs.

    "same" keeps the size, with the odd position behind.

    >>> sides("same", (3, 4), (1, 1))
    [(1, 1), (1, 2)]
    """
    if padding == "valid":
        return [(0, 0)] * len(kernel)
    if padding == "same":
        totals = [step * (size - 1) for step, size in zip(dilations, kernel, strict=True)]
        return [(total // 2, total - total // 2) for total in totals]
    return [size if isinstance(size, tuple) else (size, size) for size in padding]


def result_size(size: int, sides: tuple[int, int], kernel: int, stride: int, dilation: int) -> int:
    """How many windows fit along an axis.

    Raises ShapeError where a window is larger than the padded axis.
    """
    padded, reach = size + sum(sides), dilation * (kernel - 1) + 1
    if padded < reach:
        raise ShapeError(
            f"a kernel that reaches over {reach} positions for {padded} positions (padding included)",
            "Use a smaller kernel or dilation, or more padding.",
        )
    return (padded - reach) // stride + 1


def _checked(x: Any, w: Any, bias: Any, count: int, channels: int, filters: int) -> Any:
    """``x`` with a batch axis, after the checks that all convolutions share."""
    if w.ndim != count + 2:
        raise ShapeError(f"a weight with {w.ndim} axes", f"Use one with {count + 2} axes.")
    if x.ndim not in (count + 1, count + 2):
        raise ShapeError(f"an input with {x.ndim} axes", f"Use {_NAMES[count]}, or leave out the batch.")
    for name, other in (("weight", w), ("bias", bias)):
        if other is not None and other.dtype is not x.dtype:
            raise DTypeError(
                f"an input of {x.dtype.name} and a {name} of {other.dtype.name}",
                "Cast one of them with .to().",
            )
    if x.dtype.kind not in "iufc":
        raise DTypeError(f"takes numbers, not {x.dtype.name}", "Cast with .to() first.")
    if any(size == 0 for size in w.shape[2:]):
        raise ShapeError(f"a kernel of size {tuple(w.shape[2:])}", "Use a kernel with at least one position.")
    found = x.shape[-count - 1]
    if found != channels:
        raise ShapeError(
            f"{found} channels for a weight that takes {channels}",
            f"Give an input with {channels} channels, or another weight or groups.",
        )
    if bias is not None and tuple(bias.shape) != (filters,):
        raise ShapeError(
            f"a bias of shape {tuple(bias.shape)} for {filters} channels", f"Use one of shape ({filters},)."
        )
    return x if x.ndim == count + 2 else ops.unsqueeze(x, 0)


def _lifted(value: Any) -> Any:
    """An array of images or kernels with three spatial axes."""
    return ops.reshape(value, (*value.shape[:2], *(1,) * (5 - value.ndim), *value.shape[2:]))


def _three(numbers: Sequence[int], fill: int) -> tuple[int, ...]:
    return (*(fill,) * (3 - len(numbers)), *numbers)


def _bilinear(name: str, x: Any, w: Any, attrs: Any) -> Any:
    """The primitive called ``name``; of complex numbers it is that of their parts, multiplied out."""
    if x.dtype.kind != "c":
        return apply(name, x, w, attrs=attrs)
    (a, b), (c, d) = ((ops.real(value), ops.imag(value)) for value in (x, w))
    ac, bd, ad, bc = (apply(name, *pair, attrs=attrs) for pair in ((a, c), (b, d), (a, d), (b, c)))
    return ops.complex(ac - bd, ad + bc)


def _convolved(
    name: str, operands: tuple[Any, Any, Any], attrs: Attributes, sizes: Shape, batched: bool
) -> Any:
    """The operation ``name`` of input and weight without the axes that it adds, plus the bias."""
    x, w, bias = operands

    def product(x: Any, w: Any) -> Any:
        y = _bilinear(name, _lifted(x), _lifted(w), attrs)
        return ops.reshape(y, (*y.shape[:2], *sizes) if batched else (y.shape[1], *sizes))

    if bias is None:
        return product(x, w)
    bias = ops.reshape(bias, (bias.shape[0], *(1,) * len(sizes)))
    return rounded_once(lambda x, w, bias: product(x, w) + bias)(x, w, bias)


def _grouped_evenly(count: int, groups: int, what: str) -> None:
    if count % groups:
        raise ShapeError(f"{count} {what} in {groups} groups", f"Make {what} a multiple of groups.")


def _forward(x: Any, w: Any, *rest: Any) -> Any:
    *given, strides, padding, dilations, groups = rest
    x, w, bias = strong(x), strong(w), strong(given[0]) if given else None
    count = len(strides)
    batched = x.ndim == count + 2
    x = _checked(x, w, bias, count, w.shape[1] * groups if w.ndim > 1 else 0, w.shape[0] if w.ndim else 0)
    _grouped_evenly(w.shape[0], groups, "filters")
    edges = sides(padding, w.shape[2:], dilations)
    axes = zip(x.shape[2:], edges, w.shape[2:], strides, dilations, strict=True)
    sizes = tuple(result_size(*numbers) for numbers in axes)
    lows = _three([low for low, _ in edges], 0)
    attrs = (_three(strides, 1), lows, _three(dilations, 1), groups, _three(sizes, 1))
    return _convolved("convolution", (x, w, bias), attrs, sizes, batched)


def _backward(x: Any, w: Any, *rest: Any) -> Any:
    *given, strides, padding, more, groups, dilations = rest
    x, w, bias = strong(x), strong(w), strong(given[0]) if given else None
    count = len(strides)
    batched = x.ndim == count + 2
    x = _checked(x, w, bias, count, w.shape[0] if w.ndim else 0, w.shape[1] * groups if w.ndim > 1 else 0)
    _grouped_evenly(w.shape[0], groups, "channels")
    sizes = []
    for size, kernel, stride, pad, extra, dilation in zip(
        x.shape[2:], w.shape[2:], strides, padding, more, dilations, strict=True
    ):
        if extra >= max(stride, dilation):
            raise ArgumentError(
                f"output_padding {extra} for stride {stride} and dilation {dilation}",
                "Use one smaller than the stride or the dilation.",
            )
        found = (size - 1) * stride - 2 * pad + dilation * (kernel - 1) + extra + 1
        if found < 1:
            raise ShapeError(f"a result of size {found}", "Use less padding or a larger input.")
        sizes.append(found)
    attrs = (_three(strides, 1), _three(padding, 0), _three(dilations, 1), groups, _three(sizes, 1))
    return _convolved("convolution_transposed", (x, w, bias), attrs, tuple(sizes), batched)


def _forward_reference(x: Any, w: Any, *rest: Any) -> Any:
    *bias, strides, padding, dilations, groups = rest
    count = len(strides)
    images = x.reshape((-1, *x.shape[-count - 1 :][:1], *_three(x.shape[-count:], 1)))
    kernels = grouped(w.reshape((*w.shape[:2], *_three(w.shape[2:], 1))), 0, groups)
    edges = sides(padding, w.shape[2:], dilations)
    axes = zip(x.shape[-count:], edges, w.shape[2:], strides, dilations, strict=True)
    sizes = tuple(result_size(*numbers) for numbers in axes)
    lows = _three([low for low, _ in edges], 0)
    moves = Windows(*(_three(strides, 1), lows, _three(dilations, 1)))  # type: ignore[arg-type]
    seen = grouped(patches(images, moves, kernels.shape[-3:], _three(sizes, 1)), 1, groups)
    y = numpy.einsum("ngcijkdhw,gocijk->ngodhw", seen, kernels)
    y = y.reshape((*x.shape[: -count - 1], w.shape[0], *sizes))
    return y + bias[0].reshape((-1, *(1,) * count)) if bias else y


def _forward_samples(count: int) -> list[Any]:
    one, size = (1,) * count, (4,) * count
    strided = ((2,) * count, (1,) * count, one, 1)
    return [
        example((one, (0,) * count, one, 1), (2, 2, *size), (3, 2, *(2,) * count), (3,)),
        example(strided, (2, 2, *size), (3, 2, *(3,) * count)),
        example((one, "same", (2,) * count, 2), (4, *size), (2, 2, *(2,) * count), (2,)),
        example((one, "valid", one, 1), (2, 1, *(17,) * count), (2, 1, *one)),
        example((one, (1,) * count, one, 1), (0, 2, *size), (3, 2, *(2,) * count), (3,)),
        example((one, (1,) * count, one, 1), numpy.arange(2 * 3**count).reshape((1, 2, *(3,) * count)),
                numpy.arange(4 * 2**count).reshape((2, 2, *(2,) * count))),
        example((one, (1,) * count, one, 1), (1, 2, *(3,) * count), (2, 2, *(2,) * count), (2,), dtype=complex64),
    ]  # fmt: skip


def _backward_samples(count: int) -> list[Any]:
    one, none, two, size = (1,) * count, (0,) * count, (2,) * count, (3,) * count
    return [
        example((one, none, none, 1, one), (2, 2, *size), (2, 3, *two), (3,)),
        example((two, one, one, 1, one), (2, 2, *size), (2, 3, *(3,) * count), (3,)),
        example(((3,) * count, none, none, 2, two), (2, *size), (2, 2, *two)),
        example((two, none, none, 1, one), (1, 1, *(9,) * count), (1, 2, *two)),
        example((two, none, none, 1, one), (0, 2, *size), (2, 3, *two), (3,)),
        example((two, none, none, 1, one), (2, *size), (2, 3, *two), (3,), dtype=complex64),
    ]


def _convolution(count: int) -> Any:
    """The entry ``conv1d``, ``conv2d`` or ``conv3d``."""

    class body:
        memory = (3 if count == 3 else 2.5, "windows and weights are packed")
        autograd_name = "ConvolutionBackward0"
        methods = ()
        signature = "input, weight, bias"
        autocast = "lower"

        def call(
            input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
            groups: int = 1,
        ) -> Any:  # fmt: skip
            strides = per_axis("stride", stride, count, 1)
            attrs = (strides, _padding(padding, count, strides), per_axis("dilation", dilation, count, 1))
            given = (input, weight) if bias is None else (input, weight, bias)
            return apply(body.__name__, *given, attrs=(*attrs, _groups(groups)))

        compute, reference = _forward, _forward_reference
        samples = lambda: _forward_samples(count)

    body.__name__ = f"conv{count}d"
    ones = "1, " * count
    body.__doc__ = shown(
        f"Sums of products of ``weight`` with each window of ``input`` {_NAMES[count]}, plus ``bias``.\n\n"
        "``weight`` is ``(filters, channels / groups, *kernel)``; ``padding`` may be 'same' or 'valid'.\n"
        "Raises ShapeError where channels, groups or sizes do not fit.",
        f">>> x = torch.tensor([1.0, 2.0, 3.0, 4.0]).reshape(1, {ones}4)",
        f">>> weight = torch.tensor([1.0, 10.0]).reshape(1, {ones}2)",
        f">>> torch.nn.functional.conv{count}d(x, weight).flatten()",
        "tensor([21., 32., 43.])",
    )
    return composite(body)


def _transposed(count: int) -> Any:
    """The entry ``conv_transpose1d``, ``conv_transpose2d`` or ``conv_transpose3d``."""

    class body:
        memory = (3.5, "windows and weights are packed")
        autograd_name = "ConvolutionBackward0"
        methods = ()
        signature = "input, weight, bias"
        autocast = "lower"

        def call(
            input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
            output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
        ) -> Any:  # fmt: skip
            attrs = (
                per_axis("stride", stride, count, 1),
                per_axis("padding", padding, count, 0),
                per_axis("output_padding", output_padding, count, 0),
                _groups(groups),
                per_axis("dilation", dilation, count, 1),
            )
            given = (input, weight) if bias is None else (input, weight, bias)
            return apply(body.__name__, *given, attrs=attrs)

        compute = _backward
        samples = lambda: _backward_samples(count)

    body.__name__ = f"conv_transpose{count}d"
    ones = "1, " * count
    body.__doc__ = shown(
        f"The gradient of ``conv{count}d`` with respect to its input, as an operation of its own.\n\n"
        f"``input`` is {_NAMES[count]} and ``weight`` ``(channels, filters / groups, *kernel)``;\n"
        "``output_padding`` adds positions behind each axis. Raises ShapeError where sizes do not fit.",
        f">>> x = torch.tensor([1.0, 2.0]).reshape(1, {ones}2)",
        f">>> weight = torch.tensor([1.0, 10.0]).reshape(1, {ones}2)",
        f">>> torch.nn.functional.conv_transpose{count}d(x, weight).flatten()",
        "tensor([ 1., 12., 20.])",
    )
    return composite(body)


conv1d, conv2d, conv3d = (_convolution(count) for count in (1, 2, 3))
conv_transpose1d, conv_transpose2d, conv_transpose3d = (_transposed(count) for count in (1, 2, 3))


@public("conv_tbc")
def conv_tbc(input: Any, weight: Any, bias: Any, pad: int = 0) -> Any:
    """``conv1d`` of ``(time, batch, channels)``, with a weight of ``(kernel, channels, filters)`` and equal padding.

    Raises ShapeError where axes, channels or sizes do not fit.

    >>> import twofold as torch
    >>> x, weight = torch.tensor([1.0, 2.0, 3.0]).reshape(3, 1, 1), torch.tensor([1.0, 10.0]).reshape(2, 1, 1)
    >>> torch.conv_tbc(x, weight, torch.zeros(1)).flatten()
    tensor([21., 32.])
    """
    for name, x, axes in (("input", input, 3), ("weight", weight, 3), ("bias", bias, 1)):
        if len(x.shape) != axes:
            raise ShapeError(f"conv_tbc: {name} with {len(x.shape)} axes", f"Use {axes}.")
    images, kernels = ops.permute(input, (1, 2, 0)), ops.permute(weight, (2, 1, 0))
    return ops.permute(conv1d.call(images, kernels, bias, padding=pad), (2, 0, 1))
