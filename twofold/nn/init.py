"""Initial values of parameters, in place; formulas and bounds as PyTorch's."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy

from twofold import _core
from twofold.errors import described as _described
from twofold.frontend.sampling import Generator, randn, stream
from twofold.ops.random.distributions import sample as _sample

Tensor = _core.Tensor


def calculate_gain(nonlinearity: str, param: Any = None) -> float:
    """The factor that keeps the variance behind a nonlinearity; raises ValueError for an unknown one.

    >>> import twofold as torch
    >>> torch.nn.init.calculate_gain("tanh")
    1.6666666666666667
    """
    if nonlinearity in ("linear", "sigmoid") or nonlinearity.startswith("conv"):
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        if param is not None and (isinstance(param, bool) or not isinstance(param, (int, float))):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def _fans(tensor: Tensor) -> tuple[int, int]:
    """How many inputs each output has, and how many outputs each input."""
    if tensor.ndim < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions, such as "
            f"{_described(tensor)}. Use normal_ or uniform_ with bounds of your own."
        )
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


_calculate_fan_in_and_fan_out = _fans


def _fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _fans(tensor)[mode == "fan_out"]


_calculate_correct_fan = _fan


def _silently(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """``function`` without recording gradients."""

    @functools.wraps(function)
    def made(*args: Any, **kwargs: Any) -> Tensor:
        with _core.GradientMode(False):
            return function(*args, **kwargs)

    return made


def _from_array(tensor: Tensor, array: numpy.ndarray) -> Tensor:
    return tensor.copy_(_core.from_array(numpy.ascontiguousarray(array), False))


@_silently
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Sample evenly from [a, b).

    >>> import twofold as torch
    >>> weight = torch.nn.init.uniform_(torch.empty(100), 2.0, 3.0)
    >>> bool(((weight >= 2) & (weight < 3)).all())
    True
    """
    return tensor.uniform_(a, b, generator=generator)


@_silently
def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Sample from a normal distribution.

    >>> import twofold as torch
    >>> weight = torch.nn.init.normal_(torch.empty(10000), mean=5.0)
    >>> bool((weight.mean() - 5).abs() < 0.1)
    True
    """
    return tensor.normal_(mean, std, generator=generator)


@_silently
def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Sample from a normal distribution limited to [a, b].

    >>> import twofold as torch
    >>> weight = torch.nn.init.trunc_normal_(torch.empty(100), a=-1.0, b=1.0)
    >>> bool(weight.abs().max() <= 1)
    True
    """
    bounds = ((a - mean) / std, (b - mean) / std)
    samples = _sample("truncated_normal", *stream(generator), tuple(tensor.shape), tensor.dtype, *bounds)
    return tensor.copy_((samples * std + mean).clamp(a, b))


@_silently
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Make every element ``val``.

    >>> import twofold as torch
    >>> torch.nn.init.constant_(torch.empty(2), 3.0)
    tensor([3., 3.])
    """
    return tensor.fill_(val)


@_silently
def ones_(tensor: Tensor) -> Tensor:
    """Make every element 1.

    >>> import twofold as torch
    >>> torch.nn.init.ones_(torch.empty(2))
    tensor([1., 1.])
    """
    return tensor.fill_(1.0)


@_silently
def zeros_(tensor: Tensor) -> Tensor:
    """Make every element 0.

    >>> import twofold as torch
    >>> torch.nn.init.zeros_(torch.ones(2))
    tensor([0., 0.])
    """
    return tensor.zero_()


@_silently
def eye_(tensor: Tensor) -> Tensor:
    """The identity matrix; raises ValueError unless there are 2 axes.

    >>> import twofold as torch
    >>> torch.nn.init.eye_(torch.empty(2, 3))
    tensor([[1., 0., 0.],
            [0., 1., 0.]])
    """
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    return _from_array(tensor, numpy.eye(*tensor.shape))


@_silently
def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Sample from [-a, a) with ``a = gain * sqrt(6 / (fan_in + fan_out))``.

    Source: Glorot, Bengio, Understanding the Difficulty of Training Deep Feedforward Neural Networks, 2010.

    >>> import twofold as torch
    >>> weight = torch.nn.init.xavier_uniform_(torch.empty(2, 4))
    >>> bool(weight.abs().max() <= 1)
    True
    """
    std = gain * math.sqrt(2.0 / float(sum(_fans(tensor))))
    bound = math.sqrt(3.0) * std
    return tensor.uniform_(-bound, bound, generator=generator)


@_silently
def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Sample from a normal distribution with deviation ``gain * sqrt(2 / (fan_in + fan_out))``.

    >>> import twofold as torch
    >>> weight = torch.nn.init.xavier_normal_(torch.empty(100, 100))
    >>> bool((weight.std() - 0.1).abs() < 0.01)
    True
    """
    return tensor.normal_(0.0, gain * math.sqrt(2.0 / float(sum(_fans(tensor)))), generator=generator)


@_silently
def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Sample from [-b, b) with ``b = gain * sqrt(3 / fan)``.

    Source: He et al., Delving Deep into Rectifiers, 2015.

    >>> import twofold as torch
    >>> weight = torch.nn.init.kaiming_uniform_(torch.empty(100, 6))
    >>> bool(weight.abs().max() <= 1)
    True
    """
    if 0 in tensor.shape:
        return tensor
    bound = math.sqrt(3.0) * (calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode)))
    return tensor.uniform_(-bound, bound, generator=generator)


@_silently
def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Sample from a normal distribution with deviation ``gain / sqrt(fan)``.

    >>> import twofold as torch
    >>> weight = torch.nn.init.kaiming_normal_(torch.empty(100, 200))
    >>> bool((weight.std() - 0.1).abs() < 0.01)
    True
    """
    if 0 in tensor.shape:
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode))
    return tensor.normal_(0.0, std, generator=generator)


@_silently
def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """A random (semi-)orthogonal matrix; further axes count as columns.

    Source: Saxe, McClelland, Ganguli, Exact Solutions to the Nonlinear Dynamics of Learning, 2014.

    >>> import twofold as torch
    >>> weight = torch.nn.init.orthogonal_(torch.empty(2, 3))
    >>> torch.allclose(weight @ weight.T, torch.eye(2), atol=1e-5)
    True
    """
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows, columns = tensor.shape[0], tensor.numel() // tensor.shape[0]
    samples = randn(rows, columns, generator=generator, dtype="float64").numpy()
    q, r = numpy.linalg.qr(samples.T if rows < columns else samples)
    q = q * numpy.sign(numpy.diag(r))
    q = q.T if rows < columns else q
    return _from_array(tensor, (q * gain).reshape(tuple(tensor.shape)))


@_silently
def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Normal values, of which in each column the fraction ``sparsity`` is 0.

    >>> import twofold as torch
    >>> weight = torch.nn.init.sparse_(torch.empty(10, 3), sparsity=0.2)
    >>> (weight == 0).sum(0)
    tensor([2, 2, 2])
    """
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    values = randn(rows, columns, generator=generator, dtype="float64").numpy() * std
    order = numpy.argsort(randn(rows, columns, generator=generator, dtype="float64").numpy(), axis=0)
    numpy.put_along_axis(values, order[: math.ceil(sparsity * rows)], 0.0, axis=0)
    return _from_array(tensor, values)


@_silently
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Filters of a convolution that pass the channels on unchanged.

    >>> import twofold as torch
    >>> torch.nn.init.dirac_(torch.empty(2, 2, 3)).tolist()
    [[[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]
    """
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.shape[0] % groups:
        raise ValueError("dim 0 must be divisible by groups")
    values = numpy.zeros(tuple(tensor.shape))
    count = tensor.shape[0] // groups
    middle = tuple(size // 2 for size in tensor.shape[2:])
    for group in range(groups):
        for channel in range(min(count, tensor.shape[1])):
            values[(group * count + channel, channel, *middle)] = 1
    return _from_array(tensor, values)


uniform, normal, constant, eye, orthogonal = uniform_, normal_, constant_, eye_, orthogonal_
xavier_uniform, xavier_normal = xavier_uniform_, xavier_normal_
kaiming_uniform, kaiming_normal, dirac, sparse = kaiming_uniform_, kaiming_normal_, dirac_, sparse_
