"""Activation functions as modules."""

from __future__ import annotations

from typing import Any

from twofold import _core
from twofold.nn import functional, init
from twofold.nn.layers import new_parameter
from twofold.nn.module import Module

Tensor = _core.Tensor
F: Any = functional


class _Activation(Module):
    """A function of the input and of the settings named in ``settings``, which take ``defaults``."""

    settings: tuple[str, ...] = ()
    defaults: tuple[Any, ...] = ()
    shown: tuple[str, ...] | None = None  # the settings in the repr, if not all
    function: Any = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        if len(args) > len(self.settings):
            raise TypeError(
                f"{type(self).__name__}.__init__() takes {len(self.settings)} arguments, but "
                f"{len(args)} were given"
            )
        values = dict(zip(self.settings, self.defaults)) | dict(zip(self.settings, args))
        for name, value in kwargs.items():
            if name not in values:
                raise TypeError(
                    f"{type(self).__name__}.__init__() got an unexpected keyword argument '{name}'"
                )
            values[name] = value
        self.__dict__.update(values)

    def forward(self, input: Tensor) -> Tensor:
        """The function of ``input``."""
        attributes = self.__dict__
        return type(self).function(input, *[attributes[name] for name in self.settings])

    def extra_repr(self) -> str:
        """The settings."""
        names = [name for name in (self.settings if self.shown is None else self.shown) if name != "inplace"]
        parts = [f"{name}={getattr(self, name)!r}" for name in names]
        return ", ".join(parts + (["inplace=True"] if getattr(self, "inplace", False) else []))


class ReLU(_Activation):
    """``max(x, 0)``."""

    settings, defaults = ("inplace",), (False,)

    def forward(self, input: Tensor) -> Tensor:
        """``max(input, 0)``."""
        return F.relu_(input) if self.inplace else F.relu(input)


class Sigmoid(Module):
    """``1 / (1 + exp(-x))``."""

    def forward(self, input: Tensor) -> Tensor:
        """The sigmoid of ``input``."""
        return F.sigmoid(input)


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, input: Tensor) -> Tensor:
        """The hyperbolic tangent of ``input``."""
        return F.tanh(input)


class LeakyReLU(_Activation):
    """``x`` where positive, else ``negative_slope * x``."""

    settings, defaults = ("negative_slope", "inplace"), (0.01, False)
    function = staticmethod(F.leaky_relu)


class RReLU(_Activation):
    """``LeakyReLU`` with a slope drawn from [lower, upper] in training."""

    settings, defaults = ("lower", "upper", "inplace"), (1 / 8, 1 / 3, False)

    def forward(self, input: Tensor) -> Tensor:
        """The function of ``input``."""
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


class PReLU(Module):
    """``x`` where positive, else ``weight * x`` with trained weights: one, or one per channel."""

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = new_parameter(num_parameters, dtype=dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weights back."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        """The function of ``input``."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """The number of weights."""
        return f"num_parameters={self.num_parameters}"


class ReLU6(_Activation):
    """``min(max(x, 0), 6)``."""

    settings, defaults = ("inplace",), (False,)
    function = staticmethod(F.relu6)


class ELU(_Activation):
    """``x`` where positive, else ``alpha * (exp(x) - 1)``."""

    settings, defaults = ("alpha", "inplace"), (1.0, False)
    function = staticmethod(F.elu)


class CELU(_Activation):
    """``x`` where positive, else ``alpha * (exp(x / alpha) - 1)``."""

    settings, defaults = ("alpha", "inplace"), (1.0, False)
    function = staticmethod(F.celu)


class SELU(_Activation):
    """ELU scaled so that mean 0 and variance 1 stay."""

    settings, defaults = ("inplace",), (False,)
    function = staticmethod(F.selu)


class GELU(_Activation):
    """``x`` times the normal distribution function of ``x``."""

    settings, defaults = ("approximate",), ("none",)
    function = staticmethod(F.gelu)


class SiLU(_Activation):
    """``x * sigmoid(x)``."""

    settings, defaults = ("inplace",), (False,)
    function = staticmethod(F.silu)


class Mish(_Activation):
    """``x * tanh(softplus(x))``."""

    settings, defaults = ("inplace",), (False,)
    function = staticmethod(F.mish)


class Softplus(_Activation):
    """``log(1 + exp(beta * x)) / beta``."""

    settings, defaults = ("beta", "threshold"), (1.0, 20.0)
    function = staticmethod(F.softplus)


class Softsign(Module):
    """``x / (1 + |x|)``."""

    def forward(self, input: Tensor) -> Tensor:
        """The function of ``input``."""
        return F.softsign(input)


class Tanhshrink(Module):
    """``x - tanh(x)``."""

    def forward(self, input: Tensor) -> Tensor:
        """The function of ``input``."""
        return F.tanhshrink(input)


class LogSigmoid(Module):
    """``log(sigmoid(x))``."""

    def forward(self, input: Tensor) -> Tensor:
        """The function of ``input``."""
        return F.logsigmoid(input)


class Softshrink(_Activation):
    """``x`` moved towards 0 by ``lambd``."""

    settings, defaults = ("lambd",), (0.5,)
    function = staticmethod(F.softshrink)

    def extra_repr(self) -> str:
        """The width."""
        return str(self.lambd)


class Hardshrink(Softshrink):
    """``x`` where further than ``lambd`` from 0, else 0."""

    function = staticmethod(F.hardshrink)


class Hardtanh(_Activation):
    """``x`` limited to [min_val, max_val]; raises AssertionError for an empty range."""

    settings, defaults = ("min_val", "max_val", "inplace"), (-1.0, 1.0, False)
    function = staticmethod(F.hardtanh)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.max_val <= self.min_val:
            raise AssertionError("max_val must be larger than min_val")


class Hardsigmoid(_Activation):
    """``x / 6 + 1 / 2``, limited to [0, 1]."""

    settings, defaults, shown = ("inplace",), (False,), ()
    function = staticmethod(F.hardsigmoid)

    def extra_repr(self) -> str:
        """Nothing."""
        return ""


class Hardswish(Hardsigmoid):
    """``x * hardsigmoid(x)``."""

    function = staticmethod(F.hardswish)


class Threshold(_Activation):
    """``x`` where above ``threshold``, else ``value``."""

    settings, defaults = ("threshold", "value", "inplace"), (None, None, False)
    function = staticmethod(F.threshold)

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__(threshold, value, inplace)


class GLU(_Activation):
    """The first half along ``dim`` times the sigmoid of the second half."""

    settings, defaults = ("dim",), (-1,)
    function = staticmethod(F.glu)


class Softmax(_Activation):
    """``exp(x) / sum(exp(x))`` along ``dim``."""

    settings, defaults = ("dim",), (None,)

    def forward(self, input: Tensor) -> Tensor:
        """The softmax of ``input``; without ``dim``, of axis 0 for 0, 1 and 3 axes, else of axis 1."""
        dim = self.dim
        return F.softmax(input, (0 if input.ndim in (0, 1, 3) else 1) if dim is None else dim)


class Softmin(Softmax):
    """``softmax(-x)`` along ``dim``."""

    def forward(self, input: Tensor) -> Tensor:
        """The softmin of ``input``."""
        return super().forward(-input)


class LogSoftmax(Softmax):
    """The logarithm of the softmax along ``dim``."""

    def forward(self, input: Tensor) -> Tensor:
        """The logarithm of the softmax of ``input``."""
        dim = self.dim
        return F.log_softmax(input, (0 if input.ndim in (0, 1, 3) else 1) if dim is None else dim)


class Softmax2d(Module):
    """The softmax over the channels of ``(batch, channels, height, width)``."""

    def forward(self, input: Tensor) -> Tensor:
        """The softmax of ``input``; raises ValueError unless it has 3 or 4 axes."""
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.ndim}D instead")
        return F.softmax(input, -3)
