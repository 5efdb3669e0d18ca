"""Initializers: functions of a shape (and a dtype) that give the first value of a variable."""

from __future__ import annotations

import math
from typing import Any

import numpy

from twofold.dtypes import float32
from twofold.static.define import as_dtype, constant
from twofold.static.docstrings import example
from twofold.static.random import random_normal, random_uniform, truncated_normal


class Initializer:
    """Base of all initializers; call one with a shape.

    ``partition_info`` changes nothing: variables are not divided.
    """

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        raise NotImplementedError


def _sizes(shape: Any) -> list[int]:
    return [int(size) for size in ([shape] if isinstance(shape, int) else shape)]


@example("tf.zeros_initializer()([2])", "[0. 0.]")
class Zeros(Initializer):
    """Zeros."""

    def __init__(self, dtype: Any = float32) -> None:
        self.dtype = dtype

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        return constant(numpy.zeros(_sizes(shape), as_dtype(dtype or self.dtype).numpy))


@example("tf.ones_initializer()([2])", "[1. 1.]")
class Ones(Zeros):
    """Ones."""

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        return constant(numpy.ones(_sizes(shape), as_dtype(dtype or self.dtype).numpy))


@example("tf.constant_initializer(7.0)([2])", "[7. 7.]")
class Constant(Initializer):
    """One value everywhere, or the values of a list; ``verify_shape``: TypeError for any other shape than theirs."""

    def __init__(self, value: Any = 0, dtype: Any = float32, verify_shape: bool = False) -> None:
        self.value, self.dtype, self._verify_shape = value, dtype, verify_shape

    def __call__(
        self, shape: Any, dtype: Any = None, partition_info: Any = None, verify_shape: Any = None
    ) -> Any:
        checked = self._verify_shape if verify_shape is None else verify_shape
        return constant(self.value, dtype or self.dtype, _sizes(shape), verify_shape=checked)


@example("print(tf.random_normal_initializer(seed=1)([2, 3]).shape)", "(2, 3)")
class RandomNormal(Initializer):
    """Normal numbers."""

    draw = staticmethod(random_normal)

    def __init__(
        self, mean: float = 0.0, stddev: float = 1.0, seed: int | None = None, dtype: Any = float32
    ) -> None:
        self.mean, self.stddev, self.seed, self.dtype = mean, stddev, seed, dtype

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        return type(self).draw(_sizes(shape), self.mean, self.stddev, dtype or self.dtype, self.seed)


@example("x = tf.truncated_normal_initializer(seed=1)([100])", "tf.reduce_all(tf.abs(x) <= 2.0)", "True")
class TruncatedNormal(RandomNormal):
    """Normal numbers within two standard deviations."""

    draw = staticmethod(truncated_normal)


@example(
    "x = tf.random_uniform_initializer(2.0, 3.0, seed=1)([100])",
    "tf.reduce_all((x >= 2.0) & (x < 3.0))",
    "True",
)
class RandomUniform(Initializer):
    """Numbers drawn evenly from [minval, maxval)."""

    def __init__(
        self, minval: float = 0, maxval: float | None = None, seed: int | None = None, dtype: Any = float32
    ) -> None:
        self.minval, self.maxval, self.seed, self.dtype = minval, maxval, seed, dtype

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        return random_uniform(_sizes(shape), self.minval, self.maxval, dtype or self.dtype, self.seed)


@example("print(tf.variance_scaling_initializer(seed=1)([2, 3]).shape)", "(2, 3)")
class VarianceScaling(Initializer):
    """Numbers whose variance is ``scale`` over the number of inputs, outputs, or their mean.

    Source: Glorot, Bengio 2010; He et al. 2015.
    """

    def __init__(
        self,
        scale: float = 1.0,
        mode: str = "fan_in",
        distribution: str = "normal",
        seed: int | None = None,
        dtype: Any = float32,
    ) -> None:
        self.scale, self.mode, self.distribution, self.seed, self.dtype = (
            scale,
            mode,
            distribution,
            seed,
            dtype,
        )

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        sizes = _sizes(shape)
        field = math.prod(sizes[:-2])
        fan_in = sizes[0] if len(sizes) == 1 else sizes[-2] * field if sizes else 1
        fan_out = sizes[-1] * field if len(sizes) > 1 else fan_in
        count = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[self.mode]
        variance = self.scale / max(1.0, count)
        wanted = dtype or self.dtype
        if self.distribution == "uniform":
            limit = math.sqrt(3.0 * variance)
            return random_uniform(sizes, -limit, limit, wanted, self.seed)
        if self.distribution == "untruncated_normal":
            return random_normal(sizes, 0.0, math.sqrt(variance), wanted, self.seed)
        # the standard deviation of a normal distribution cut at two of them
        return truncated_normal(sizes, 0.0, math.sqrt(variance) / 0.87962566103423978, wanted, self.seed)


@example(
    "w = tf.orthogonal_initializer(seed=1)([2, 2])",
    "tf.round(tf.abs(tf.matmul(w, w, transpose_b=True)))",
    "[[1. 0.]\n [0. 1.]]",
)
class Orthogonal(Initializer):
    """A matrix with orthonormal rows or columns (Saxe et al. 2013), drawn once, when declared."""

    def __init__(self, gain: float = 1.0, seed: int | None = None, dtype: Any = float32) -> None:
        self.gain, self.seed, self.dtype = gain, seed, dtype

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        sizes = _sizes(shape)
        rows, columns = math.prod(sizes[:-1]), sizes[-1]
        drawn = numpy.random.default_rng(self.seed).standard_normal((max(rows, columns), min(rows, columns)))
        q, r = numpy.linalg.qr(drawn)
        q = q * numpy.sign(numpy.diag(r))
        return constant(self.gain * (q if rows >= columns else q.T).reshape(sizes), dtype or self.dtype)


@example("tf.identity_initializer()([2, 2])", "[[1. 0.]\n [0. 1.]]")
class Identity(Initializer):
    """The identity matrix times ``gain``."""

    def __init__(self, gain: float = 1.0, dtype: Any = float32) -> None:
        self.gain, self.dtype = gain, dtype

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        rows, columns = _sizes(shape)
        return constant(self.gain * numpy.eye(rows, columns), dtype or self.dtype)


@example("print(tf.glorot_uniform_initializer(seed=1)([2, 3]).shape)", "(2, 3)")
def glorot_uniform_initializer(seed: int | None = None, dtype: Any = float32) -> VarianceScaling:
    """Even numbers of variance 2 / (inputs + outputs)."""
    return VarianceScaling(1.0, "fan_avg", "uniform", seed, dtype)


@example("print(tf.glorot_normal_initializer(seed=1)([2, 3]).shape)", "(2, 3)")
def glorot_normal_initializer(seed: int | None = None, dtype: Any = float32) -> VarianceScaling:
    """Normal numbers of variance 2 / (inputs + outputs)."""
    return VarianceScaling(1.0, "fan_avg", "normal", seed, dtype)


@example("print(tf.initializers.he_normal(seed=1)([2, 3]).shape)", "(2, 3)")
def he_normal(seed: int | None = None) -> VarianceScaling:
    """Normal numbers of variance 2 / inputs."""
    return VarianceScaling(2.0, "fan_in", "normal", seed)


@example("print(tf.initializers.he_uniform(seed=1)([2, 3]).shape)", "(2, 3)")
def he_uniform(seed: int | None = None) -> VarianceScaling:
    """Even numbers of variance 2 / inputs."""
    return VarianceScaling(2.0, "fan_in", "uniform", seed)


zeros_initializer = zeros = Zeros
ones_initializer = ones = Ones
constant_initializer = Constant
random_normal_initializer = random_normal_ = RandomNormal
truncated_normal_initializer = TruncatedNormal
random_uniform_initializer = RandomUniform
uniform_unit_scaling_initializer = variance_scaling_initializer = variance_scaling = VarianceScaling
orthogonal_initializer = orthogonal = Orthogonal
identity_initializer = identity = Identity
glorot_uniform = glorot_uniform_initializer
glorot_normal = glorot_normal_initializer
