"""Activation functions as modules."""

from __future__ import annotations

from inspect import Signature
from operator import attrgetter
from typing import Any

from twofold import _core
from twofold.frontend.options import check_device
from twofold.nn import functional, init
from twofold.nn.layers import new_parameter
from twofold.nn.module import Module
from twofold.ops.signatures import positional
from twofold.runtime.tracing import message

Tensor = _core.Tensor
F: Any = functional


class _Activation(Module):
    """A function of the input and of the settings named in ``settings``, which take ``defaults``."""

    settings: tuple[str, ...] = ()
    defaults: tuple[Any, ...] = ()
    shown: tuple[str, ...] | None = None  # the settings in the repr, if not all
    function: Any = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "settings" in vars(cls) and "__init__" not in vars(cls):
            cls.__init__ = _named_settings(cls)  # type: ignore[method-assign]
        if "function" in vars(cls):
            cls.forward = _called_with_settings(cls)

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

    def extra_repr(self) -> str:
        """The settings."""
        names = [name for name in (self.settings if self.shown is None else self.shown) if name != "inplace"]
        parts = [f"{name}={getattr(self, name)!r}" for name in names]
        return ", ".join(parts + (["inplace=True"] if getattr(self, "inplace", False) else []))


def _called_with_settings(cls: type[_Activation]) -> Any:
    """The ``forward`` of one activation: what its function gives for the input and the settings."""
    function, values = cls.function, attrgetter(*cls.settings)

    def forward_of_one(self: Any, input: Tensor) -> Tensor:
        return function(input, values(self))

    def forward(self: Any, input: Tensor) -> Tensor:
        return function(input, *values(self))

    made = forward_of_one if len(cls.settings) == 1 else forward  # an attrgetter of one name gives no tuple
    made.__name__, made.__qualname__ = "forward", f"{cls.__qualname__}.forward"
    made.__doc__ = """The function of ``input``."""
    return made


def _named_settings(cls: type[_Activation]) -> Any:
    """The constructor of one activation, whose signature names its settings."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        _Activation.__init__(self, *args, **kwargs)

    settings = zip(cls.settings, cls.defaults, strict=True)
    __init__.__signature__ = Signature([positional("self"), *(positional(*one) for one in settings)])  # type: ignore[attr-defined]
    return __init__


class ReLU(_Activation):
    """``max(x, 0)``.

    >>> import twofold as torch
    >>> torch.nn.ReLU()(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    settings, defaults = ("inplace",), (False,)

    def forward(self, input: Tensor) -> Tensor:
        """``max(input, 0)``."""
        return F.relu_(input) if self.inplace else F.relu(input)


class Sigmoid(Module):
    """``1 / (1 + exp(-x))``.

    >>> import twofold as torch
    >>> torch.nn.Sigmoid()(torch.tensor([0.0, 2.0]))
    tensor([0.5000, 0.8808])
    """

    def forward(self, input: Tensor) -> Tensor:
        """The sigmoid of ``input``."""
        return F.sigmoid(input)


class Tanh(Module):
    """The hyperbolic tangent.

    >>> import twofold as torch
    >>> torch.nn.Tanh()(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7616])
    """

    def forward(self, input: Tensor) -> Tensor:
        """The hyperbolic tangent of ``input``."""
        return F.tanh(input)


class LeakyReLU(_Activation):
    """``x`` where positive, else ``negative_slope * x``.

    >>> import twofold as torch
    >>> torch.nn.LeakyReLU(0.1)(torch.tensor([-1.0, 2.0]))
    tensor([-0.1000,  2.0000])
    """

    settings, defaults = ("negative_slope", "inplace"), (0.01, False)
    function = staticmethod(F.leaky_relu)


class RReLU(_Activation):
    """``LeakyReLU`` with a slope sampled from [lower, upper] in training.

    >>> import twofold as torch
    >>> torch.nn.RReLU(0.1, 0.3).eval()(torch.tensor([-1.0, 2.0]))
    tensor([-0.2000,  2.0000])
    """

    settings, defaults = ("lower", "upper", "inplace"), (1 / 8, 1 / 3, False)

    def forward(self, input: Tensor) -> Tensor:
        """The function of ``input``."""
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


class PReLU(Module):
    """``x`` where positive, else ``weight * x`` with trained weights: one, or one per channel.

    >>> import twofold as torch
    >>> torch.nn.PReLU()(torch.tensor([-1.0, 2.0])).tolist()
    [-0.25, 2.0]
    """

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        check_device(device)
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


class ELU(_Activation):
    """``x`` where positive, else ``alpha * (exp(x) - 1)``.

    >>> import twofold as torch
    >>> torch.nn.ELU()(torch.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """

    settings, defaults = ("alpha", "inplace"), (1.0, False)
    function = staticmethod(F.elu)


class CELU(_Activation):
    """``x`` where positive, else ``alpha * (exp(x / alpha) - 1)``.

    >>> import twofold as torch
    >>> torch.nn.CELU(alpha=2.0)(torch.tensor([-1.0, 2.0]))
    tensor([-0.7869,  2.0000])
    """

    settings, defaults = ("alpha", "inplace"), (1.0, False)
    function = staticmethod(F.celu)


class SELU(_Activation):
    """ELU scaled so that mean 0 and variance 1 stay.

    >>> import twofold as torch
    >>> torch.nn.SELU()(torch.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """

    settings, defaults = ("inplace",), (False,)
    function = staticmethod(F.selu)


class GELU(_Activation):
    """``x`` times the normal distribution function of ``x``.

    >>> import twofold as torch
    >>> torch.nn.GELU()(torch.tensor([-1.0, 2.0]))
    tensor([-0.1587,  1.9545])
    """

    settings, defaults = ("approximate",), ("none",)
    function = staticmethod(F.gelu)


class SiLU(_Activation):
    """``x * sigmoid(x)``.

    >>> import twofold as torch
    >>> torch.nn.SiLU()(torch.tensor([-1.0, 2.0]))
    tensor([-0.2689,  1.7616])
    """

    settings, defaults = ("inplace",), (False,)
    function = staticmethod(F.silu)


class Mish(_Activation):
    """``x * tanh(softplus(x))``.

    >>> import twofold as torch
    >>> torch.nn.Mish()(torch.tensor([-1.0, 2.0]))
    tensor([-0.3034,  1.9440])
    """

    settings, defaults = ("inplace",), (False,)
    function = staticmethod(F.mish)


class Softplus(_Activation):
    """``log(1 + exp(beta * x)) / beta``.

    >>> import twofold as torch
    >>> torch.nn.Softplus()(torch.tensor([0.0, 100.0]))
    tensor([  0.6931, 100.0000])
    """

    settings, defaults = ("beta", "threshold"), (1.0, 20.0)
    function = staticmethod(F.softplus)


class Softsign(Module):
    """``x / (1 + |x|)``.

    >>> import twofold as torch
    >>> torch.nn.Softsign()(torch.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """

    def forward(self, input: Tensor) -> Tensor:
        """The function of ``input``."""
        return F.softsign(input)


class Tanhshrink(Module):
    """``x - tanh(x)``.

    >>> import twofold as torch
    >>> torch.nn.Tanhshrink()(torch.tensor([0.0, 2.0]))
    tensor([0.0000, 1.0360])
    """

    def forward(self, input: Tensor) -> Tensor:
        """The function of ``input``."""
        return F.tanhshrink(input)


class LogSigmoid(Module):
    """``log(sigmoid(x))``.

    >>> import twofold as torch
    >>> torch.nn.LogSigmoid()(torch.tensor([0.0, -100.0]))
    tensor([  -0.6931, -100.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        """The function of ``input``."""
        return F.logsigmoid(input)


class _Shrink(_Activation):
    settings, defaults = ("lambd",), (0.5,)

    def extra_repr(self) -> str:
        """The width."""
        return str(self.lambd)


class Softshrink(_Shrink):
    """``x`` moved towards 0 by ``lambd``.

    >>> import twofold as torch
    >>> torch.nn.Softshrink()(torch.tensor([-2.0, 0.25, 2.0]))
    tensor([-1.5000,  0.0000,  1.5000])
    """

    function = staticmethod(F.softshrink)


class Hardshrink(_Shrink):
    """``x`` where further than ``lambd`` from 0, else 0.

    >>> import twofold as torch
    >>> torch.nn.Hardshrink()(torch.tensor([-2.0, 0.25, 2.0]))
    tensor([-2.,  0.,  2.])
    """

    function = staticmethod(F.hardshrink)


class Hardtanh(_Activation):
    """``x`` limited to [min_val, max_val], in old programs ``min_value`` and ``max_value``.

    Raises AssertionError for an empty range.

    >>> import twofold as torch
    >>> torch.nn.Hardtanh(-2.0, 2.0)(torch.tensor([-3.0, 0.5, 3.0]))
    tensor([-2.0000,  0.5000,  2.0000])
    """

    settings, defaults = ("min_val", "max_val", "inplace"), (-1.0, 1.0, False)
    function = staticmethod(F.hardtanh)

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        low, high = (
            (min_val if min_value is None else min_value),
            (max_val if max_value is None else max_value),
        )
        super().__init__(low, high, inplace)
        if self.max_val <= self.min_val:
            raise AssertionError("max_val must be larger than min_val")


class ReLU6(Hardtanh):
    """``min(max(x, 0), 6)``.

    >>> import twofold as torch
    >>> torch.nn.ReLU6()(torch.tensor([-1.0, 2.0, 9.0]))
    tensor([0., 2., 6.])
    """

    shown = ("inplace",)

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)


class _HardCurve(_Activation):
    settings, defaults, shown = ("inplace",), (False,), ()

    def extra_repr(self) -> str:
        """Nothing."""
        return ""


class Hardsigmoid(_HardCurve):
    """``x / 6 + 1 / 2``, limited to [0, 1].

    >>> import twofold as torch
    >>> torch.nn.Hardsigmoid()(torch.tensor([-4.0, 0.0, 1.5]))
    tensor([0.0000, 0.5000, 0.7500])
    """

    function = staticmethod(F.hardsigmoid)


class Hardswish(_HardCurve):
    """``x * hardsigmoid(x)``.

    >>> import twofold as torch
    >>> torch.nn.Hardswish()(torch.tensor([1.5, 4.0]))
    tensor([1.1250, 4.0000])
    """

    function = staticmethod(F.hardswish)


class Threshold(_Activation):
    """``x`` where above ``threshold``, else ``value``.

    >>> import twofold as torch
    >>> torch.nn.Threshold(1.0, -9.0)(torch.tensor([0.5, 2.0]))
    tensor([-9.,  2.])
    """

    settings, defaults = ("threshold", "value", "inplace"), (None, None, False)
    function = staticmethod(F.threshold)

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__(threshold, value, inplace)


class GLU(_Activation):
    """The first half along ``dim`` times the sigmoid of the second half.

    >>> import twofold as torch
    >>> torch.nn.GLU()(torch.tensor([3.0, 5.0, 0.0, 100.0]))
    tensor([1.5000, 5.0000])
    """

    settings, defaults = ("dim",), (-1,)
    function = staticmethod(F.glu)


class Softmax(_Activation):
    """``exp(x) / sum(exp(x))`` along ``dim``.

    >>> import twofold as torch
    >>> torch.nn.Softmax(dim=1)(torch.tensor([[0.0, 1.0], [5.0, 5.0]]))
    tensor([[0.2689, 0.7311],
            [0.5000, 0.5000]])
    """

    settings, defaults = ("dim",), (None,)
    function = staticmethod(F.softmax)


class Softmin(_Activation):
    """``softmax(-x)`` along ``dim``.

    >>> import twofold as torch
    >>> torch.nn.Softmin(dim=0)(torch.tensor([0.0, 1.0]))
    tensor([0.7311, 0.2689])
    """

    settings, defaults = ("dim",), (None,)
    function = staticmethod(F.softmin)


class LogSoftmax(_Activation):
    """The logarithm of the softmax along ``dim``.

    >>> import twofold as torch
    >>> torch.nn.LogSoftmax(dim=0)(torch.tensor([0.0, 1.0]))
    tensor([-1.3133, -0.3133])
    """

    settings, defaults = ("dim",), (None,)
    function = staticmethod(F.log_softmax)


class Softmax2d(Module):
    """The softmax over the channels of ``(batch, channels, height, width)``.

    >>> import twofold as torch
    >>> torch.nn.Softmax2d()(torch.zeros(1, 2, 1, 1)).flatten()
    tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        """The softmax of ``input``; raises ValueError unless it has 3 or 4 axes."""
        if input.ndim not in (3, 4):
            what = f"Softmax2d: expected input to be 3D or 4D, got {input.ndim}D instead"
            raise ValueError(message(what, "Give (batch, channels, height, width).", input=input))
        return F.softmax(input, -3)
