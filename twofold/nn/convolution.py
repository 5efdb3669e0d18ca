"""Convolution layers, and the layers of patches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from twofold import _core
from twofold.frontend.options import check_device
from twofold.nn import functional, init
from twofold.nn.layers import new_parameter
from twofold.nn.module import Module
from twofold.runtime.tracing import message

Tensor = _core.Tensor
F: Any = functional

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


def _each(value: Any, count: int) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * count


_CONVOLUTIONS = {axes: f"conv{axes}d" for axes in (1, 2, 3)}
"""Names of functions by the number of spatial axes, not made anew in each call."""


class _Convolution(Module):
    """What all convolution layers share; ``axes`` is the number of spatial axes."""

    axes: int
    transposed = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        output_padding: Any,
        groups: int,
        bias: bool,
        padding_mode: str,
        dtype: Any,
    ) -> None:
        super().__init__()
        self._check(in_channels, out_channels, groups, padding, stride, padding_mode)
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size = _each(kernel_size, self.axes)
        self.stride = _each(stride, self.axes)
        self.padding = padding if isinstance(padding, str) else _each(padding, self.axes)
        self.dilation = _each(dilation, self.axes)
        self.output_padding = _each(output_padding, self.axes)
        self.padding_mode = padding_mode
        first, second = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        self.weight = new_parameter(first, second // groups, *self.kernel_size, dtype=dtype)
        if bias:
            self.bias = new_parameter(out_channels, dtype=dtype)
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    @staticmethod
    def _check(
        in_channels: int, out_channels: int, groups: int, padding: Any, stride: Any, padding_mode: str
    ) -> None:
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {padding!r}, should be one of 'same', 'valid'")
            if padding == "same" and any(step != 1 for step in _each(stride, 1)):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in _PADDING_MODES:
            raise ValueError(
                f"padding_mode must be one of {_PADDING_MODES}, but got padding_mode={padding_mode!r}"
            )

    def reset_parameters(self) -> None:
        """Sample new parameters evenly from ``[-b, b)`` with ``b = 1 / sqrt(positions of a filter)``."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in = math.prod(self.weight.shape[1:])
            if fan_in:
                init.uniform_(self.bias, -1 / math.sqrt(fan_in), 1 / math.sqrt(fan_in))

    def extra_repr(self) -> str:
        """Sizes and what differs from the defaults."""
        none, one = (0,) * self.axes, (1,) * self.axes
        shown = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        )
        for name, usual in (("padding", none), ("dilation", one), ("output_padding", none), ("groups", 1)):
            value = getattr(self, name)
            shown += "" if value == usual else f", {name}={value}"
        shown += ", bias=False" if self.bias is None else ""
        return shown + ("" if self.padding_mode == "zeros" else f", padding_mode={self.padding_mode}")


class _Conv(_Convolution):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        check_device(device)
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            0,
            groups,
            bias,
            padding_mode,
            dtype,
        )

    def _margins(self) -> list[int]:
        """Positions to add before and behind each axis, the last axis first, as ``pad`` wants them."""
        found: list[int] = []
        for axis in reversed(range(self.axes)):
            if isinstance(self.padding, str):
                total = self.dilation[axis] * (self.kernel_size[axis] - 1) if self.padding == "same" else 0
                found += [total // 2, total - total // 2]
            else:
                found += [self.padding[axis]] * 2
        return found

    @property
    def _reversed_padding_repeated_twice(self) -> list[int]:
        return self._margins()

    def forward(self, input: Tensor) -> Tensor:
        """The input convolved."""
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """The input convolved with another weight and bias, as layers that compute theirs want it."""
        convolve = getattr(F, _CONVOLUTIONS[self.axes])
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self._margins(), mode=self.padding_mode), 0
        return convolve(input, weight, bias, self.stride, padding, self.dilation, self.groups)


class Conv1d(_Conv):
    """Convolution over ``(batch, channels, length)``, see ``conv1d``.

    >>> import twofold as torch
    >>> torch.nn.Conv1d(2, 3, 5, padding=2)(torch.ones(4, 2, 10)).shape
    twofold.Size([4, 3, 10])
    """

    axes = 1


class Conv2d(_Conv):
    """Convolution over ``(batch, channels, height, width)``, see ``conv2d``.

    >>> import twofold as torch
    >>> torch.nn.Conv2d(3, 8, 3, stride=2)(torch.ones(1, 3, 9, 9)).shape
    twofold.Size([1, 8, 4, 4])
    """

    axes = 2


class Conv3d(_Conv):
    """Convolution over ``(batch, channels, depth, height, width)``, see ``conv3d``.

    >>> import twofold as torch
    >>> torch.nn.Conv3d(2, 8, 3, padding=1)(torch.ones(1, 2, 4, 5, 6)).shape
    twofold.Size([1, 8, 4, 5, 6])
    """

    axes = 3


class _ConvTranspose(_Convolution):
    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        check_device(device)
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, output_padding, groups, bias,
            padding_mode, dtype,
        )  # fmt: skip

    def _extra(self, input: Tensor, output_size: Sequence[int] | None) -> tuple[int, ...]:
        """The ``output_padding`` that gives ``output_size``; ValueError where none does."""
        if output_size is None:
            return self.output_padding
        wanted = tuple(output_size)[-self.axes :]
        if len(output_size) not in (self.axes, self.axes + 1, self.axes + 2) or len(wanted) != self.axes:
            what = f"output_size {tuple(output_size)} for {self.axes} spatial axes"
            raise ValueError(message(what, "Give one size each.", input=input))
        found = []
        for axis, size in enumerate(wanted):
            least = (input.shape[axis - self.axes] - 1) * self.stride[axis] - 2 * self.padding[axis]
            least += self.dilation[axis] * (self.kernel_size[axis] - 1) + 1
            if not least <= size < least + self.stride[axis]:
                what = (
                    f"output_size {wanted}: axis {axis} of an input of {tuple(input.shape)} gives sizes from "
                )
                what += f"{least} to {least + self.stride[axis] - 1}"
                raise ValueError(message(what, "Ask for one of these.", input=input))
            found.append(size - least)
        return tuple(found)

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """The transposed convolution of the input; ``output_size`` chooses among those that strides allow."""
        convolve = getattr(F, f"conv_transpose{self.axes}d")
        extra = self._extra(input, output_size)
        return convolve(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )


class ConvTranspose1d(_ConvTranspose):
    """Transposed convolution over ``(batch, channels, length)``, see ``conv_transpose1d``.

    >>> import twofold as torch
    >>> torch.nn.ConvTranspose1d(2, 8, 4, stride=2, padding=1)(torch.ones(1, 2, 5)).shape
    twofold.Size([1, 8, 10])
    """

    axes = 1


class ConvTranspose2d(_ConvTranspose):
    """Transposed convolution over ``(batch, channels, height, width)``, see ``conv_transpose2d``.

    >>> import twofold as torch
    >>> torch.nn.ConvTranspose2d(8, 3, 4, stride=2, padding=1)(torch.ones(1, 8, 5, 5)).shape
    twofold.Size([1, 3, 10, 10])
    """

    axes = 2


class ConvTranspose3d(_ConvTranspose):
    """Transposed convolution over ``(batch, channels, depth, height, width)``, see ``conv_transpose3d``.

    >>> import twofold as torch
    >>> torch.nn.ConvTranspose3d(2, 8, 2, stride=2)(torch.ones(1, 2, 3, 4, 5)).shape
    twofold.Size([1, 8, 6, 8, 10])
    """

    axes = 3


class Unfold(Module):
    """All windows of an image as columns, see ``functional.unfold``.

    >>> import twofold as torch
    >>> torch.nn.Unfold(2)(torch.ones(1, 3, 4, 4)).shape
    twofold.Size([1, 12, 9])
    """

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        """The columns."""
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        """Sizes."""
        return f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, stride={self.stride}"


class Fold(Module):
    """Columns summed into an image, see ``functional.fold``.

    >>> import twofold as torch
    >>> torch.nn.Fold((4, 4), 2)(torch.ones(1, 12, 9)).shape
    twofold.Size([1, 3, 4, 4])
    """

    def __init__(
        self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        super().__init__()
        self.output_size, self.kernel_size = output_size, kernel_size
        self.dilation, self.padding, self.stride = dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        """The image."""
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        """Sizes."""
        return (
            f"output_size={self.output_size}, kernel_size={self.kernel_size}, dilation={self.dilation}, "
            f"padding={self.padding}, stride={self.stride}"
        )
