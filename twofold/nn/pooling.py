"""Pooling layers."""

from __future__ import annotations

from typing import Any

from twofold import _core
from twofold.nn import functional
from twofold.nn.module import Module

Tensor = _core.Tensor
F: Any = functional


def _each(value: Any, count: int) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * count


class _MaxPool(Module):
    """What layers of the largest element in a window share."""

    axes: int

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Any:
        """The largest element of each window, with ``return_indices`` also the position of each."""
        pool = getattr(F, f"max_pool{self.axes}d")
        return pool(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            self.ceil_mode,
            self.return_indices,
        )

    def extra_repr(self) -> str:
        """Sizes and settings."""
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """The largest element of each window over ``(batch, channels, length)``.

    >>> import twofold as torch
    >>> torch.nn.MaxPool1d(2)(torch.tensor([[[1.0, 3.0, 4.0, 2.0]]]))
    tensor([[[3., 4.]]])
    """

    axes = 1


class MaxPool2d(_MaxPool):
    """The largest element of each window over ``(batch, channels, height, width)``.

    >>> import twofold as torch
    >>> torch.nn.MaxPool2d(2)(torch.arange(16.0).reshape(1, 4, 4)).tolist()
    [[[5.0, 7.0], [13.0, 15.0]]]
    """

    axes = 2


class MaxPool3d(_MaxPool):
    """The largest element of each window over ``(batch, channels, depth, height, width)``.

    >>> import twofold as torch
    >>> torch.nn.MaxPool3d((1, 2, 2))(torch.tensor([[[[[1.0, 3.0], [4.0, 2.0]]]]]))
    tensor([[[[[4.]]]]])
    """

    axes = 3


class _MaxUnpool(Module):
    """What layers that lay pooled values back share."""

    axes: int

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size = _each(kernel_size, self.axes)
        self.stride = self.kernel_size if stride is None else _each(stride, self.axes)
        self.padding = _each(padding, self.axes)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """Zeros with the values at the positions that the pooling returned."""
        unpool = getattr(F, f"max_unpool{self.axes}d")
        return unpool(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        """Sizes."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """The values of ``MaxPool1d`` laid back to their positions, zeros elsewhere.

    >>> import twofold as torch
    >>> y, positions = torch.nn.MaxPool1d(2, return_indices=True)(torch.tensor([[[1.0, 3.0, 4.0, 2.0]]]))
    >>> torch.nn.MaxUnpool1d(2)(y, positions)
    tensor([[[0., 3., 4., 0.]]])
    """

    axes = 1


class MaxUnpool2d(_MaxUnpool):
    """The values of ``MaxPool2d`` laid back to their positions, zeros elsewhere.

    >>> import twofold as torch
    >>> y, positions = torch.nn.MaxPool2d(2, return_indices=True)(torch.tensor([[[[1.0, 3.0], [4.0, 2.0]]]]))
    >>> torch.nn.MaxUnpool2d(2)(y, positions)
    tensor([[[[0., 0.],
              [4., 0.]]]])
    """

    axes = 2


class MaxUnpool3d(_MaxUnpool):
    """The values of ``MaxPool3d`` laid back to their positions, zeros elsewhere.

    >>> import twofold as torch
    >>> y, positions = torch.nn.MaxPool3d((1, 1, 2), return_indices=True)(torch.tensor([[[[[1.0, 3.0]]]]]))
    >>> torch.nn.MaxUnpool3d((1, 1, 2))(y, positions)
    tensor([[[[[0., 3.]]]]])
    """

    axes = 3


class _AvgPool(Module):
    """What layers of the mean over a window share."""

    axes: int

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        """The mean over each window."""
        pool = getattr(F, f"avg_pool{self.axes}d")
        return pool(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )

    def extra_repr(self) -> str:
        """Sizes."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPool):
    """The mean over each window of ``(batch, channels, length)``.

    >>> import twofold as torch
    >>> torch.nn.AvgPool1d(2)(torch.tensor([[[1.0, 3.0, 4.0, 2.0]]]))
    tensor([[[2., 3.]]])
    """

    axes = 1

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        step = kernel_size if stride is None else stride
        super().__init__(
            _each(kernel_size, 1), _each(step, 1), _each(padding, 1), ceil_mode, count_include_pad
        )


class AvgPool2d(_AvgPool):
    """The mean over each window of ``(batch, channels, height, width)``.

    >>> import twofold as torch
    >>> torch.nn.AvgPool2d(2)(torch.arange(16.0).reshape(1, 4, 4)).tolist()
    [[[2.5, 4.5], [10.5, 12.5]]]
    """

    axes = 2


class AvgPool3d(_AvgPool):
    """The mean over each window of ``(batch, channels, depth, height, width)``.

    >>> import twofold as torch
    >>> torch.nn.AvgPool3d((1, 2, 2))(torch.tensor([[[[[1.0, 3.0], [4.0, 2.0]]]]]))
    tensor([[[[[2.5000]]]]])
    """

    axes = 3


class _FractionalMaxPool(Module):
    """What layers of windows that begin at random positions share."""

    axes: int

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        name, count = type(self).__name__, self.axes
        self.kernel_size = _each(kernel_size, count)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else _each(output_size, count)
        self.output_ratio = None if output_ratio is None else tuple(_each(output_ratio, count))
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor) -> Any:
        """The largest element of each window, with ``return_indices`` also the position of each."""
        pool = getattr(F, f"fractional_max_pool{self.axes}d")
        return pool(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPool):
    """The largest element of windows that begin at random rows and columns.

    >>> import twofold as torch
    >>> torch.nn.FractionalMaxPool2d(2, output_ratio=0.5)(torch.ones(1, 3, 8, 6)).shape
    twofold.Size([1, 3, 4, 3])
    """

    axes = 2


class FractionalMaxPool3d(_FractionalMaxPool):
    """The largest element of windows that begin at random planes, rows and columns.

    >>> import twofold as torch
    >>> torch.nn.FractionalMaxPool3d(2, output_size=(2, 3, 4))(torch.ones(1, 3, 6, 6, 8)).shape
    twofold.Size([1, 3, 2, 3, 4])
    """

    axes = 3


class _LPPool(Module):
    """What layers of the ``p``-norm over a window share."""

    axes: int

    def __init__(
        self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        """``sum(x**p)**(1/p)`` over each window."""
        pool = getattr(F, f"lp_pool{self.axes}d")
        return pool(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        """Norm, sizes and settings."""
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPool):
    """The ``p``-norm over each window of ``(batch, channels, length)``.

    >>> import twofold as torch
    >>> torch.nn.LPPool1d(2, 2)(torch.tensor([[[3.0, 4.0, 5.0, 12.0]]]))
    tensor([[[ 5., 13.]]])
    """

    axes = 1


class LPPool2d(_LPPool):
    """The ``p``-norm over each window of ``(batch, channels, height, width)``.

    >>> import twofold as torch
    >>> torch.nn.LPPool2d(2, (1, 2))(torch.tensor([[[[3.0, 4.0, 5.0, 12.0]]]]))
    tensor([[[[ 5., 13.]]]])
    """

    axes = 2


class LPPool3d(_LPPool):
    """The ``p``-norm over each window of ``(batch, channels, depth, height, width)``.

    >>> import twofold as torch
    >>> torch.nn.LPPool3d(2, (1, 1, 2))(torch.tensor([[[[[3.0, 4.0, 5.0, 12.0]]]]]))
    tensor([[[[[ 5., 13.]]]]])
    """

    axes = 3


class _AdaptiveAvgPool(Module):
    """What layers of means with an output of fixed size share."""

    axes: int

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        """The mean over windows that cover the input."""
        return getattr(F, f"adaptive_avg_pool{self.axes}d")(input, self.output_size)

    def extra_repr(self) -> str:
        """The size of the output."""
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """The mean over windows that cover the length in ``output_size`` steps.

    >>> import twofold as torch
    >>> torch.nn.AdaptiveAvgPool1d(2)(torch.tensor([[[1.0, 3.0, 4.0, 2.0]]]))
    tensor([[[2., 3.]]])
    """

    axes = 1


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """The mean over windows that cover height and width in ``output_size`` steps.

    >>> import twofold as torch
    >>> torch.nn.AdaptiveAvgPool2d((1, 2))(torch.arange(8.0).reshape(1, 2, 4)).tolist()
    [[[2.5, 4.5]]]
    """

    axes = 2


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """The mean over windows that cover depth, height and width in ``output_size`` steps.

    >>> import twofold as torch
    >>> torch.nn.AdaptiveAvgPool3d((1, 2, None))(torch.ones(1, 8, 4, 4, 5)).shape
    twofold.Size([1, 8, 1, 2, 5])
    """

    axes = 3


class _AdaptiveMaxPool(Module):
    """What layers of largest elements with an output of fixed size share."""

    axes: int

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        """The largest element of windows that cover the input, with ``return_indices`` also its position."""
        return getattr(F, f"adaptive_max_pool{self.axes}d")(input, self.output_size, self.return_indices)

    def extra_repr(self) -> str:
        """The size of the output."""
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """The largest element of windows that cover the length in ``output_size`` steps.

    >>> import twofold as torch
    >>> torch.nn.AdaptiveMaxPool1d(2)(torch.tensor([[[1.0, 3.0, 4.0, 2.0]]]))
    tensor([[[3., 4.]]])
    """

    axes = 1


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """The largest element of windows that cover height and width in ``output_size`` steps.

    >>> import twofold as torch
    >>> torch.nn.AdaptiveMaxPool2d(1)(torch.tensor([[[[1.0, 3.0], [4.0, 2.0]]]]))
    tensor([[[[4.]]]])
    """

    axes = 2


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """The largest element of windows that cover depth, height and width in ``output_size`` steps.

    >>> import twofold as torch
    >>> torch.nn.AdaptiveMaxPool3d(1)(torch.tensor([[[[[1.0, 3.0], [4.0, 2.0]]]]]))
    tensor([[[[[4.]]]]])
    """

    axes = 3
