"""Layers that add elements around their input."""

from __future__ import annotations

from typing import Any

from twofold import _core
from twofold.nn import functional
from twofold.nn.module import Module
from twofold.runtime.tracing import message

Tensor = _core.Tensor
F: Any = functional


class _Pad(Module):
    """What padding layers share: widths ``(low, high)`` from the last of the padded axes on."""

    axes: int
    mode: str
    value: float | None = None

    def __init__(self, padding: Any) -> None:
        super().__init__()
        given = tuple(padding) if isinstance(padding, (tuple, list)) else (padding,) * (2 * self.axes)
        self.padding = given

    def forward(self, input: Tensor) -> Tensor:
        """The input with elements around it."""
        if self.mode == "circular" and input.ndim not in (self.axes + 1, self.axes + 2):
            what = f"expected {self.axes + 1}D or {self.axes + 2}D input (got {input.ndim}D input)"
            raise ValueError(message(what, f"Reshape it for {type(self).__name__}.", input=input))
        return F.pad(input, self.padding, self.mode, self.value)

    def extra_repr(self) -> str:
        """The widths."""
        return f"{self.padding}"


class _ConstantPad(_Pad):
    mode = "constant"

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def extra_repr(self) -> str:
        """The widths and the value."""
        return f"padding={self.padding}, value={self.value}"


class _ReflectionPad(_Pad):
    mode = "reflect"


class _ReplicationPad(_Pad):
    mode = "replicate"


class _CircularPad(_Pad):
    mode = "circular"


class ConstantPad1d(_ConstantPad):
    """``value`` around the last axis.

    >>> import twofold as torch
    >>> torch.nn.ConstantPad1d(1, 9)(torch.tensor([[1, 2, 3]]))
    tensor([[9, 1, 2, 3, 9]])
    """

    axes = 1


class ConstantPad2d(_ConstantPad):
    """``value`` around the last two axes.

    >>> import twofold as torch
    >>> torch.nn.ConstantPad2d((1, 0, 0, 1), 9)(torch.tensor([[1, 2, 3]]))
    tensor([[9, 1, 2, 3],
            [9, 9, 9, 9]])
    """

    axes = 2


class ConstantPad3d(_ConstantPad):
    """``value`` around the last three axes.

    >>> import twofold as torch
    >>> torch.nn.ConstantPad3d((1, 0, 0, 0, 0, 0), 9)(torch.tensor([[[1, 2, 3]]]))
    tensor([[[9, 1, 2, 3]]])
    """

    axes = 3


class ZeroPad1d(ConstantPad1d):
    """Zeros around the last axis.

    >>> import twofold as torch
    >>> torch.nn.ZeroPad1d((1, 2))(torch.tensor([[1, 2, 3]]))
    tensor([[0, 1, 2, 3, 0, 0]])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        """The widths."""
        return f"{self.padding}"


class ZeroPad2d(ConstantPad2d):
    """Zeros around the last two axes.

    >>> import twofold as torch
    >>> torch.nn.ZeroPad2d((1, 0, 0, 1))(torch.tensor([[1, 2, 3]]))
    tensor([[0, 1, 2, 3],
            [0, 0, 0, 0]])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        """The widths."""
        return f"{self.padding}"


class ZeroPad3d(ConstantPad3d):
    """Zeros around the last three axes.

    >>> import twofold as torch
    >>> torch.nn.ZeroPad3d((1, 0, 0, 0, 0, 0))(torch.tensor([[[1, 2, 3]]]))
    tensor([[[0, 1, 2, 3]]])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        """The widths."""
        return f"{self.padding}"


class ReflectionPad1d(_ReflectionPad):
    """The reflection of rows at their ends around them.

    >>> import twofold as torch
    >>> torch.nn.ReflectionPad1d(1)(torch.tensor([[[1, 2, 3]]]))
    tensor([[[2, 1, 2, 3, 2]]])
    """

    axes = 1


class ReflectionPad2d(_ReflectionPad):
    """The reflection of images at their ends around them.

    >>> import twofold as torch
    >>> torch.nn.ReflectionPad2d((1, 1, 0, 0))(torch.tensor([[[[1, 2, 3]]]]))
    tensor([[[[2, 1, 2, 3, 2]]]])
    """

    axes = 2


class ReflectionPad3d(_ReflectionPad):
    """The reflection of volumes at their ends around them.

    >>> import twofold as torch
    >>> torch.nn.ReflectionPad3d((1, 1, 0, 0, 0, 0))(torch.tensor([[[[[1, 2, 3]]]]]))
    tensor([[[[[2, 1, 2, 3, 2]]]]])
    """

    axes = 3


class ReplicationPad1d(_ReplicationPad):
    """The outermost elements of rows repeated around them.

    >>> import twofold as torch
    >>> torch.nn.ReplicationPad1d(1)(torch.tensor([[[1, 2, 3]]]))
    tensor([[[1, 1, 2, 3, 3]]])
    """

    axes = 1


class ReplicationPad2d(_ReplicationPad):
    """The outermost elements of images repeated around them.

    >>> import twofold as torch
    >>> torch.nn.ReplicationPad2d((1, 1, 0, 0))(torch.tensor([[[[1, 2, 3]]]]))
    tensor([[[[1, 1, 2, 3, 3]]]])
    """

    axes = 2


class ReplicationPad3d(_ReplicationPad):
    """The outermost elements of volumes repeated around them.

    >>> import twofold as torch
    >>> torch.nn.ReplicationPad3d((1, 1, 0, 0, 0, 0))(torch.tensor([[[[[1, 2, 3]]]]]))
    tensor([[[[[1, 1, 2, 3, 3]]]]])
    """

    axes = 3


class CircularPad1d(_CircularPad):
    """The other end of rows on each side.

    >>> import twofold as torch
    >>> torch.nn.CircularPad1d(1)(torch.tensor([[[1, 2, 3]]]))
    tensor([[[3, 1, 2, 3, 1]]])
    """

    axes = 1


class CircularPad2d(_CircularPad):
    """The other end of images on each side.

    >>> import twofold as torch
    >>> torch.nn.CircularPad2d((1, 1, 0, 0))(torch.tensor([[[[1, 2, 3]]]]))
    tensor([[[[3, 1, 2, 3, 1]]]])
    """

    axes = 2


class CircularPad3d(_CircularPad):
    """The other end of volumes on each side.

    >>> import twofold as torch
    >>> torch.nn.CircularPad3d((1, 1, 0, 0, 0, 0))(torch.tensor([[[[[1, 2, 3]]]]]))
    tensor([[[[[3, 1, 2, 3, 1]]]]])
    """

    axes = 3
