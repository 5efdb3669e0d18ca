"""Initializers: functions of a shape (and a dtype) that give the first value of a variable."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy

from twofold.dtypes import DType, float32
from twofold.static.api.namespaces import look_up
from twofold.static.api.op_functions import as_dtype
from twofold.static.api.op_functions import constant as _constant
from twofold.static.api.signatures import with_parameters
from twofold.static.graph.docstrings import described, example
from twofold.static.random import random_normal as _normal
from twofold.static.random import random_uniform as _uniform
from twofold.static.random import truncated_normal as _truncated


def _sizes(shape: Any) -> list[int]:
    return [int(size) for size in ([shape] if isinstance(shape, int) else shape)]


class Initializer:
    """Base of all initializers; call one with a shape.

    ``partition_info`` says what it is a part of; only those whose numbers depend on the whole look at it.
    """

    dtype: Any = float32

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        return self._first(_sizes(shape), as_dtype(dtype or self.dtype))

    def _first(self, sizes: list[int], dtype: DType) -> Any:
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal initializer."""
        names: list[str] = [one.name for one in fields(self)] if is_dataclass(self) else []
        found = {name: getattr(self, name) for name in names if name != "verify_shape"}
        return {**found, "dtype": as_dtype(self.dtype).name}

    @classmethod
    def from_config(cls, config: Any) -> Any:
        """The initializer of these arguments."""
        return cls(**config)


@example("tf.zeros_initializer()([2])", "[0. 0.]")
@dataclass(eq=False, repr=False)
class Zeros(Initializer):
    """Zeros."""

    dtype: Any = float32

    def _first(self, sizes: list[int], dtype: DType) -> Any:
        return _constant(numpy.zeros(sizes), dtype)


@example("tf.ones_initializer()([2])", "[1. 1.]")
class Ones(Zeros):
    """Ones."""

    def _first(self, sizes: list[int], dtype: DType) -> Any:
        return _constant(numpy.ones(sizes), dtype)


@example("tf.constant_initializer(7.0)([2])", "[7. 7.]")
@dataclass(eq=False, repr=False)
class Constant(Initializer):
    """One value everywhere, or the values of a list; ``verify_shape``: TypeError for any other shape than theirs."""

    value: Any = 0
    dtype: Any = float32
    verify_shape: bool = False

    def __call__(
        self, shape: Any, dtype: Any = None, partition_info: Any = None, verify_shape: Any = None
    ) -> Any:
        if verify_shape is not None:
            return Constant(self.value, self.dtype, verify_shape)(shape, dtype)
        return super().__call__(shape, dtype, partition_info)

    def _first(self, sizes: list[int], dtype: DType) -> Any:
        return _constant(self.value, dtype, sizes, verify_shape=self.verify_shape)


@example("print(tf.random_normal_initializer(seed=1)([2, 3]).shape)", "(2, 3)")
@dataclass(eq=False, repr=False)
class RandomNormal(Initializer):
    """Normal numbers."""

    mean: float = 0.0
    stddev: float = 1.0
    seed: int | None = None
    dtype: Any = float32

    def _first(self, sizes: list[int], dtype: DType) -> Any:
        return _normal(sizes, self.mean, self.stddev, dtype, self.seed)


@example("x = tf.truncated_normal_initializer(seed=1)([100])", "tf.reduce_all(tf.abs(x) <= 2.0)", "True")
class TruncatedNormal(RandomNormal):
    """Normal numbers within two standard deviations."""

    def _first(self, sizes: list[int], dtype: DType) -> Any:
        return _truncated(sizes, self.mean, self.stddev, dtype, self.seed)


@example(
    "x = tf.random_uniform_initializer(2.0, 3.0, seed=1)([100])",
    "tf.reduce_all((x >= 2.0) & (x < 3.0))",
    "True",
)
@dataclass(eq=False, repr=False)
class RandomUniform(Initializer):
    """Numbers distributed evenly over [minval, maxval)."""

    minval: float = 0
    maxval: float | None = None
    seed: int | None = None
    dtype: Any = float32

    def _first(self, sizes: list[int], dtype: DType) -> Any:
        return _uniform(sizes, self.minval, self.maxval, dtype, self.seed)


@example("print(tf.variance_scaling_initializer(seed=1)([2, 3]).shape)", "(2, 3)")
@dataclass(eq=False, repr=False)
class VarianceScaling(Initializer):
    """Numbers whose variance is ``scale`` over the number of inputs, outputs, or their mean.

    Source: Glorot, Bengio 2010; He et al. 2015.
    """

    scale: float = 1.0
    mode: str = "fan_in"
    distribution: str = "normal"
    seed: int | None = None
    dtype: Any = float32

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        own = _sizes(shape)
        whole = own if partition_info is None else _sizes(partition_info.full_shape)
        return self._sampled(own, self._variance(whole), as_dtype(dtype or self.dtype))

    def _variance(self, sizes: list[int]) -> float:
        field = math.prod(sizes[:-2])
        fan_in = sizes[0] if len(sizes) == 1 else sizes[-2] * field if sizes else 1
        fan_out = sizes[-1] * field if len(sizes) > 1 else fan_in
        count = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[self.mode]
        return self.scale / max(1.0, count)

    def _sampled(self, sizes: list[int], variance: float, dtype: DType) -> Any:
        if self.distribution == "uniform":
            limit = math.sqrt(3.0 * variance)
            return _uniform(sizes, -limit, limit, dtype, self.seed)
        if self.distribution == "untruncated_normal":
            return _normal(sizes, 0.0, math.sqrt(variance), dtype, self.seed)
        # the standard deviation of a normal distribution cut at two of them
        return _truncated(sizes, 0.0, math.sqrt(variance) / 0.87962566103423978, dtype, self.seed)


@example(
    "w = tf.orthogonal_initializer(seed=1)([2, 2])",
    "tf.round(tf.abs(tf.matmul(w, w, transpose_b=True)))",
    "[[1. 0.]\n [0. 1.]]",
)
@dataclass(eq=False, repr=False)
class Orthogonal(Initializer):
    """A matrix with orthonormal rows or columns (Saxe et al. 2013), sampled once, when declared."""

    gain: float = 1.0
    seed: int | None = None
    dtype: Any = float32

    def _first(self, sizes: list[int], dtype: DType) -> Any:
        rows, columns = math.prod(sizes[:-1]), sizes[-1]
        values = numpy.random.default_rng(self.seed).standard_normal((max(rows, columns), min(rows, columns)))
        q, r = numpy.linalg.qr(values)
        q = q * numpy.sign(numpy.diag(r))
        return _constant(self.gain * (q if rows >= columns else q.T).reshape(sizes), dtype)


@example("tf.identity_initializer()([2, 2])", "[[1. 0.]\n [0. 1.]]")
@dataclass(eq=False, repr=False)
class Identity(Initializer):
    """The identity matrix times ``gain``."""

    gain: float = 1.0
    dtype: Any = float32

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        sizes = _sizes(shape)
        (rows, columns), (row, column) = partition_info or (sizes, (0, 0))
        whole = self.gain * numpy.eye(rows, columns)
        return _constant(whole[row:, column:][: sizes[0], : sizes[1]], as_dtype(dtype or self.dtype))


@example("print(tf.uniform_unit_scaling_initializer(seed=1)([2, 3]).shape)", "(2, 3)")
@dataclass(eq=False, repr=False)
class UniformUnitScaling(Initializer):
    """Even numbers of variance ``factor`` squared over the number of inputs: the product of all sizes but the last.

    Source: Sussillo, Abbott 2014.
    """

    factor: float = 1.0
    seed: int | None = None
    dtype: Any = float32

    def _first(self, sizes: list[int], dtype: DType) -> Any:
        limit = math.sqrt(3.0 / max(1, math.prod(sizes[:-1]))) * self.factor
        return _uniform(sizes, -limit, limit, dtype, self.seed)


def _scaled(own: str, scale: float, mode: str, distribution: str, text: str, **parameters: Any) -> Any:
    """A function of ``parameters`` that makes a ``VarianceScaling``."""

    def made(**given: Any) -> VarianceScaling:
        return VarianceScaling(scale, mode, distribution, **given)

    shown = f"print(tf.initializers.{own.removesuffix('_initializer')}(seed=1)([2, 3]).shape)"
    return described(with_parameters(made, {"seed": None, **parameters}), own, text, shown, "(2, 3)")


glorot_uniform_initializer = glorot_uniform = _scaled(
    "glorot_uniform_initializer",
    1.0,
    "fan_avg",
    "uniform",
    "Even numbers of variance 2 / (inputs + outputs).",
    dtype=float32,
)
glorot_normal_initializer = glorot_normal = _scaled(
    "glorot_normal_initializer",
    1.0,
    "fan_avg",
    "normal",
    "Normal numbers of variance 2 / (inputs + outputs).",
    dtype=float32,
)
he_normal = _scaled("he_normal", 2.0, "fan_in", "normal", "Normal numbers of variance 2 / inputs.")
he_uniform = _scaled("he_uniform", 2.0, "fan_in", "uniform", "Even numbers of variance 2 / inputs.")
lecun_normal = _scaled("lecun_normal", 1.0, "fan_in", "normal", "Normal numbers of variance 1 / inputs.")
lecun_uniform = _scaled("lecun_uniform", 1.0, "fan_in", "uniform", "Even numbers of variance 1 / inputs.")

zeros_initializer = zeros = Zeros
ones_initializer = ones = Ones
constant_initializer = constant = Constant
random_normal_initializer = random_normal = RandomNormal
truncated_normal_initializer = truncated_normal = TruncatedNormal
random_uniform_initializer = random_uniform = RandomUniform
variance_scaling_initializer = variance_scaling = VarianceScaling
uniform_unit_scaling_initializer = uniform_unit_scaling = UniformUnitScaling
orthogonal_initializer = orthogonal = Orthogonal
identity_initializer = identity = Identity

__getattr__, __dir__ = look_up(__name__)
