"""Samples of further distributions: inverses of distribution functions, and what stands on rejection.

The module ``random`` says what key and counter are. All take parameters that broadcast to the shape of the samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from twofold.dtypes import DType, as_dtype, finfo, float32, float64, int64, uint64
from twofold.errors import ArgumentError, DTypeError, ShapeError
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.types import tensor_type
from twofold.ops.base import FUNCTIONS, Host, apply, composite, convert, host, iota, ops
from twofold.ops.building_blocks import no_slope
from twofold.ops.random.sampling import random_samples, uniform_node
from twofold.ops.samples import Sample
from twofold.ops.source import shape_of


def _wide(dtype: DType) -> DType:
    return float64 if dtype is float64 else float32


def _inverse(formula: Callable[..., Any]) -> Callable[..., Any]:
    """Composites' ``compute`` from a formula of ``(u, *parameters)``, in float64 or float32."""

    def compute(key: Any, counter: Any, *rest: Any) -> Any:
        *values, shape, dtype = rest
        # integers come from float64, where each is exact
        wide = _wide(dtype) if dtype.kind == "f" else float64
        u = uniform_node(key, counter, shape, wide)
        return convert(formula(u, *[convert(value, wide) for value in values]), dtype)

    return compute


@composite
class random_exponential:
    """Exponential with this rate: ``-log(1 - u) / rate``, where a u of 0 counts as half the smallest other one."""

    functions = ()
    methods = ()
    differentiable = False
    signature = "key, counter, rate"
    samples = lambda: random_samples(2.5)

    @staticmethod
    def compute(key: Any, counter: Any, rate: Any, shape: Any, dtype: DType) -> Any:
        wide = _wide(dtype)
        u = uniform_node(key, counter, shape, wide)
        wait = -ops.log1p(-ops.maximum(u, 2.0**-54 if wide is float64 else 2.0**-25))
        # half types have no numbers as small as that
        wait = wait if dtype is wide else ops.maximum(wait, finfo(dtype).tiny)
        return convert(wait / convert(rate, wide), dtype)


@composite
class random_cauchy:
    """Cauchy around ``median`` with the scale ``sigma``: ``median + sigma * tan(pi * (u - 1/2))``."""

    functions = ()
    methods = ()
    differentiable = False
    signature = "key, counter, median, sigma"
    samples = lambda: random_samples(0.5, 2.0, dtypes=(float64,))
    compute = _inverse(lambda u, median, sigma: median + sigma * ops.tan(math.pi * (u - 0.5)))


@composite
class random_geometric:
    """How many trials of probability ``p`` the first success takes: ``ceil(log(1 - u) / log(1 - p))``, at least 1."""

    functions = ()
    methods = ()
    differentiable = False
    signature = "key, counter, p"
    samples = lambda: random_samples(0.3, dtypes=(float32, float64, int64))
    compute = _inverse(lambda u, p: ops.maximum(ops.ceil(ops.log1p(-u) / ops.log1p(-p)), 1.0))


@composite
class random_log_normal:
    """The exponential of normal numbers."""

    functions = ()
    methods = ()
    differentiable = False
    signature = "key, counter, mean, std"
    samples = lambda: random_samples(0.5, 0.25)

    @staticmethod
    def compute(key: Any, counter: Any, mean: Any, std: Any, shape: Any, dtype: DType) -> Any:
        normal = apply("random_normal", key, counter, mean, std, attrs=(shape, _wide(dtype)))
        return convert(ops.exp(normal), dtype)


@composite
class random_truncated_normal:
    """Standard normal numbers between ``low`` and ``high``, by the inverse of the distribution function.

    Where both bounds are positive it is taken at the mirrored ones, so that the upper tail keeps its digits.
    """

    functions = ()
    methods = ()
    differentiable = False
    signature = "key, counter, low, high"
    samples = lambda: random_samples(-2.0, 2.0)

    @staticmethod
    def compute(key: Any, counter: Any, low: Any, high: Any, shape: Any, dtype: DType) -> Any:
        low, high = convert(low, float64), convert(high, float64)
        upper = low > 0.0
        ends = [FUNCTIONS["special.ndtr"](ops.where(upper, -end, end)) for end in (low, high)]
        u = uniform_node(key, counter, shape, float64)
        inside = FUNCTIONS["special.ndtri"](ends[0] + u * (ends[1] - ends[0]))
        found = ops.clamp(ops.where(upper, -inside, inside), low, high)
        return convert(found, dtype)


def values_samples(*values: Any) -> Sequence[Sample]:
    """Parameters, key and counter."""
    scalars = (numpy.array(11, "uint64"), numpy.array(2, "uint64"))
    return [
        Sample((), (*[numpy.resize(numpy.array(value), shape).astype(dtype.numpy) for value in values], *scalars),
               (*[dtype] * len(values), uint64, uint64), smooth=False)
        for shape in ((33,), (), (0, 2)) for dtype in (float32, float64)
    ]  # fmt: skip


@composite
class random_poisson:
    """Poisson with the rate of each position, in its dtype; NaN for a negative one."""

    memory = (4, "values in between are stored")

    functions = ()
    methods = ()
    signature = "rate, key, counter"
    samples = lambda: values_samples((0.0, 0.4, 9.0, 12.0, 400.0))
    vjp = no_slope

    @staticmethod
    def compute(rate: Any, key: Any, counter: Any) -> Any:
        wide = convert(rate, float64)
        large = wide >= 10.0
        few = apply("random_poisson_small", ops.where(large, 0.0, wide), key, counter)
        many = apply("random_poisson_large", ops.where(large, wide, -1.0), key, counter)
        return convert(ops.where(large, many, few), rate.dtype)


@composite
class random_binomial:
    """How many of ``count`` trials of probability ``p`` succeed, in the dtype of ``count``; NaN outside the range."""

    memory = (4.5, "values in between are stored")

    functions = ()
    methods = ()
    signature = "count, p, key, counter"
    samples = lambda: values_samples((0.0, 3.0, 40.0, 40.0, 1000.0), (0.5, 0.9, 0.1, 0.6, 1.0))
    vjp = no_slope

    @staticmethod
    def compute(count: Any, p: Any, key: Any, counter: Any) -> Any:
        trials, chance = convert(count, float64), convert(p, float64)
        flipped = chance > 0.5
        chance = ops.where(flipped, 1.0 - chance, chance)
        large = trials * chance >= 10.0
        few = apply("random_binomial_small", ops.where(large, 0.0, trials), chance, key, counter)
        many = apply("random_binomial_large", trials, ops.where(large, chance, 0.0), key, counter)
        found = ops.where(large, many, few)
        return convert(ops.where(flipped, trials - found, found), count.dtype)


@host
class checked_weights(Host):
    """Rows of weights as float64, after checks: none negative or infinite, and ``needed`` above 0 in each row."""

    functions = ()
    title = "multinomial"
    differentiable = False

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        value = convert(inputs[0], float64)
        return make_node(self, attrs, (value,), value.type)

    def host(self, attrs: Attributes, *arrays: Any) -> Any:
        (weights,) = arrays
        if not (numpy.isfinite(weights) & (weights >= 0)).all():
            raise ArgumentError("a weight is negative, infinite or NaN", "Give weights from 0 on.")
        found = (weights > 0).sum(-1)
        if found.size and found.min() < attrs[0]:
            raise ArgumentError(
                f"{attrs[0]} draws from {found.min()} weights above 0",
                "Give more weights above 0, or draw with replacement=True.",
            )
        return weights

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        return self.host(attrs, *arrays)

    def samples(self) -> Sequence[Any]:
        return [Sample((2,), (numpy.array([[1.0, 0.5, 2.0], [3.0, 1.0, 1.0]]),), (float64,))]


def _with_replacement(weights: Any, key: Any, counter: Any, count: int) -> Any:
    """The first position whose running sum exceeds u times the sum."""
    sums = ops.cumsum(weights, -1)
    u = uniform_node(key, counter, (*weights.shape[:-1], count), float64)
    total = ops.narrow(sums, -1, weights.shape[-1] - 1, 1)
    return ops.searchsorted(sums, u * total, right=True)


def _without_replacement(weights: Any, key: Any, counter: Any, count: int) -> Any:
    """The smallest of exponential numbers over the weights: Efraimidis and Spirakis, 2006."""
    waits = -ops.log1p(-uniform_node(key, counter, weights.shape, float64)) / weights
    return ops.narrow(ops.argsort(waits, -1), -1, 0, count)


@composite
class random_choice:
    """Class numbers sampled from rows of weights; attributes ``(count, with replacement)``."""

    memory = (2.5, "values in between are stored")

    functions = ()
    title = "multinomial"
    methods = ()
    differentiable = False
    signature = "weights, key, counter"

    @staticmethod
    def samples() -> Sequence[Any]:
        weights = numpy.array([[1.0, 0.0, 2.0, 1.0], [3.0, 1.0, 1.0, 0.5]], "float32")
        arrays = (weights, numpy.array(11, "uint64"), numpy.array(2, "uint64"))
        types = (float32, uint64, uint64)
        return [Sample((3, replacement), arrays, types, smooth=False) for replacement in (False, True)]

    @staticmethod
    def compute(weights: Any, key: Any, counter: Any, count: int, replacement: bool) -> Any:
        checked = apply("checked_weights", weights, attrs=(1 if replacement else count,))
        sampled = _with_replacement if replacement else _without_replacement
        return sampled(checked, key, counter, count)


@host
class order_of_keys(Host):
    """The numbers 0, 1, ... of uint64 keys in the order of the keys, of which the lowest bits give way to the numbers.

    So no two are equal, and the order does not depend on how they are sorted.
    """

    functions = ()
    differentiable = False

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        return make_node(self, attrs, tuple(inputs), tensor_type(int64, inputs[0].shape))

    def host(self, attrs: Attributes, *arrays: Any) -> Any:
        (keys,) = arrays
        low = numpy.uint64((1 << max(len(keys) - 1, 0).bit_length()) - 1)
        packed = keys & ~low
        packed |= numpy.arange(len(keys), dtype=numpy.uint64)
        packed.sort()
        packed &= low
        return packed.view(numpy.int64)

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        return self.host(attrs, *arrays)

    def samples(self) -> Sequence[Any]:
        keys = numpy.random.default_rng(5).integers(0, 2**63, 19).astype("uint64")
        return [Sample((), (keys[:count],), (uint64,), smooth=False) for count in (0, 1, 19)]


def _shuffled(key: Any, counter: Any, count: int) -> Any:
    high, low = (
        convert(apply("random_bits", iota((count,)), key, counter, attrs=(word,)), uint64) for word in (0, 1)
    )
    return apply("order_of_keys", high * 2**32 + low)


@composite
class random_permutation:
    """The integers from 0 in the order of random keys; attributes ``(count,)``."""

    functions = ()
    methods = ()
    differentiable = False
    signature = "key, counter"
    samples = lambda: [
        Sample((n,), (numpy.array(3, "uint64"), numpy.array(0, "uint64")), (uint64,) * 2) for n in (0, 1, 40)
    ]
    compute = _shuffled


def sample(name: str, key: Any, counter: Any, shape: Any, dtype: Any, *parameters: Any) -> Any:
    """Bind ``random_<name>`` for a shape and dtype: exponential, cauchy, geometric, log_normal, truncated_normal."""
    attrs = (shape_of((shape,)), as_dtype(dtype))
    return apply(f"random_{name}", key, counter, *parameters, attrs=attrs)


def sample_poisson(rate: Any, key: Any, counter: Any) -> Any:
    """Bind ``random_poisson``."""
    return apply("random_poisson", rate, key, counter)


def sample_binomial(count: Any, p: Any, key: Any, counter: Any) -> Any:
    """Bind ``random_binomial``; ``count`` and ``p`` have one shape."""
    return apply("random_binomial", count, p, key, counter)


def sample_choice(weights: Any, key: Any, counter: Any, count: int, replacement: bool) -> Any:
    """Bind ``random_choice``; raises for anything but rows of floating weights, and for too many samples."""
    shape = tuple(weights.shape)
    if len(shape) not in (1, 2) or not shape[-1]:
        raise ShapeError(f"weights of shape {shape}", "Use a vector or a matrix with at least one column.")
    if weights.dtype.kind != "f":
        raise DTypeError(f"weights of {weights.dtype.name}", "Cast them with .float().")
    if count < 1:
        raise ArgumentError(f"num_samples is {count}", "Draw at least one.")
    if not replacement and count > shape[-1]:
        raise ArgumentError(
            f"{count} draws without replacement from {shape[-1]} classes",
            "Draw fewer, or with replacement=True.",
        )
    return apply("random_choice", weights, key, counter, attrs=(count, bool(replacement)))


def sample_permutation(key: Any, counter: Any, count: int) -> Any:
    """Bind ``random_permutation``; raises ArgumentError for a negative count."""
    if count < 0:
        raise ArgumentError(f"a permutation of {count} numbers", "Use 0 or more.")
    return apply("random_permutation", key, counter, attrs=(count,))
