"""What parameters begin with."""

from __future__ import annotations

import math
from typing import Any

import numpy

from twofold.frontend.creation import CREATION, from_numpy
from twofold.frontend.sampling import RANDOM_FUNCTIONS

Dims = tuple[int, ...]


class PyInitializer:
    """Base of all initialisers: ``values`` gives a stored tensor, whose shape is the dimensions in reverse."""

    def values(self, shape: Dims) -> Any:
        """The first values of a parameter, or of a table, whose rows are the first axis."""
        raise NotImplementedError(f"{type(self).__name__} must define values(shape)")


class NormalInitializer(PyInitializer):
    """Normally distributed values with variance ``var``."""

    def __init__(self, mean: float = 0, var: float = 1) -> None:
        self.mean, self.var = mean, var

    def values(self, shape: Dims) -> Any:
        """Random values."""
        return RANDOM_FUNCTIONS["randn"](*shape) * math.sqrt(self.var) + self.mean


class UniformInitializer(PyInitializer):
    """Values evenly distributed from ``-scale`` to ``scale``."""

    def __init__(self, scale: float) -> None:
        self.scale = scale

    def values(self, shape: Dims) -> Any:
        """Random values."""
        return RANDOM_FUNCTIONS["rand"](*shape) * (2 * self.scale) - self.scale


class ConstInitializer(PyInitializer):
    """The same value everywhere."""

    def __init__(self, c: float) -> None:
        self.c = c

    def values(self, shape: Dims) -> Any:
        """The constant."""
        return CREATION["full"](shape, float(self.c))


class IdentityInitializer(PyInitializer):
    """The identity matrix."""

    def values(self, shape: Dims) -> Any:
        """The matrix."""
        if len(shape) != 2 or shape[0] != shape[1]:
            raise ValueError(f"IdentityInitializer: the parameter is no square matrix but {shape[::-1]}")
        return CREATION["eye"](shape[0])


class GlorotInitializer(PyInitializer):
    """Values evenly distributed up to ``gain * sqrt(3 * n / sum of the n dimensions)``.

    Of a table the number of rows is a dimension too, unless ``is_lookup``; of filters the channels count, times the
    size of the window.
    Source: Glorot, Bengio, Understanding the Difficulty of Training Deep Feedforward Neural Networks, 2010.
    """

    def __init__(self, is_lookup: bool = False, gain: float = 1.0) -> None:
        self.is_lookup, self.gain = is_lookup, gain

    def values(self, shape: Dims) -> Any:
        """Random values."""
        dims = shape[::-1]
        if self.is_lookup:
            dims = dims[:-1]
        if 0 in shape:  # a layer of no units, as parsers declare one that an option leaves out
            return CREATION["zeros"](shape)
        if len(dims) == 4:
            scale = math.sqrt(6 / (dims[0] * dims[1] * (dims[2] + dims[3])))
        else:
            scale = math.sqrt(3 * len(dims) / sum(dims))
        return UniformInitializer(self.gain * scale).values(shape)


class SaxeInitializer(PyInitializer):
    """A random orthogonal matrix times ``scale``.

    Source: Saxe, McClelland, Ganguli, Exact Solutions to the Nonlinear Dynamics of Learning, 2014.
    """

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def values(self, shape: Dims) -> Any:
        """A random matrix."""
        if len(shape) != 2:
            raise ValueError(f"SaxeInitializer: the parameter is no matrix but {shape[::-1]}")
        samples = RANDOM_FUNCTIONS["randn"](*shape).numpy().astype(numpy.float64)
        left, _, right = numpy.linalg.svd(samples, full_matrices=False)
        return from_numpy((left @ right * self.scale).astype(numpy.float32))


class FromFileInitializer(PyInitializer):
    """Numbers of a text file, column by column."""

    def __init__(self, fname: str) -> None:
        self.fname = fname

    def values(self, shape: Dims) -> Any:
        """The numbers."""
        with open(self.fname, encoding="utf-8") as file:
            numbers = numpy.array(file.read().split(), numpy.float32)
        if numbers.size != numpy.prod(shape):
            raise ValueError(
                f"{self.fname} has {numbers.size} numbers, the parameter {int(numpy.prod(shape))}"
            )
        return from_numpy(numbers.reshape(shape))


class NumpyInitializer(PyInitializer):
    """The values of an array."""

    def __init__(self, array: Any) -> None:
        self.array = numpy.asarray(array)

    def values(self, shape: Dims) -> Any:
        """The values."""
        given = self.array.T
        if given.shape != shape:
            raise ValueError(f"an array of shape {self.array.shape} does not fit dimensions {shape[::-1]}")
        return from_numpy(numpy.array(given, numpy.float32, order="C"))


def chosen(init: Any, dims: Dims, scale: float, mean: float, std: float) -> PyInitializer:
    """The initialiser that an argument ``init`` means; raises ValueError for one that means none."""
    if init is None or init == "glorot":
        return GlorotInitializer()
    if isinstance(init, PyInitializer):
        return init
    if isinstance(init, (int, float)):
        return ConstInitializer(init)
    named = {
        "identity": IdentityInitializer(),
        "saxe": SaxeInitializer(),
        "he": NormalInitializer(0, 1 / (2 * dims[-1])),
        "uniform": UniformInitializer(scale),
        "normal": NormalInitializer(mean, std * std),
    }
    if not isinstance(init, str) or init not in named:
        names = ", ".join(["glorot", *named])
        raise ValueError(f"init is {init!r}; use a number, an array, an initialiser or one of {names}.")
    return named[init]
