"""Layers that add elements around their input."""

from __future__ import annotations

from typing import Any

from twofold import _core
from twofold.nn import functional
from twofold.nn.module import Module

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
            raise ValueError(f"expected {self.axes + 1}D or {self.axes + 2}D input (got {input.ndim}D input)")
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


class _ZeroPad(_Pad):
    mode = "constant"
    value = 0.0


class _ReflectionPad(_Pad):
    mode = "reflect"


class _ReplicationPad(_Pad):
    mode = "replicate"


class _CircularPad(_Pad):
    mode = "circular"


class ConstantPad1d(_ConstantPad):
    """``value`` around the last axis."""

    axes = 1


class ConstantPad2d(_ConstantPad):
    """``value`` around the last two axes."""

    axes = 2


class ConstantPad3d(_ConstantPad):
    """``value`` around the last three axes."""

    axes = 3


class ZeroPad1d(_ZeroPad):
    """Zeros around the last axis."""

    axes = 1


class ZeroPad2d(_ZeroPad):
    """Zeros around the last two axes."""

    axes = 2


class ZeroPad3d(_ZeroPad):
    """Zeros around the last three axes."""

    axes = 3


class ReflectionPad1d(_ReflectionPad):
    """The reflection of rows at their ends around them."""

    axes = 1


class ReflectionPad2d(_ReflectionPad):
    """The reflection of images at their ends around them."""

    axes = 2


class ReflectionPad3d(_ReflectionPad):
    """The reflection of volumes at their ends around them."""

    axes = 3


class ReplicationPad1d(_ReplicationPad):
    """The outermost elements of rows repeated around them."""

    axes = 1


class ReplicationPad2d(_ReplicationPad):
    """The outermost elements of images repeated around them."""

    axes = 2


class ReplicationPad3d(_ReplicationPad):
    """The outermost elements of volumes repeated around them."""

    axes = 3


class CircularPad1d(_CircularPad):
    """The other end of rows on each side."""

    axes = 1


class CircularPad2d(_CircularPad):
    """The other end of images on each side."""

    axes = 2


class CircularPad3d(_CircularPad):
    """The other end of volumes on each side."""

    axes = 3
