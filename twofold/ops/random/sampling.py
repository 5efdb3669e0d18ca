"""Random numbers: pure functions of key, counter and element number, so that execution order cannot matter.

``random_bits`` is Philox-4x32-10 (Salmon et al. 2011, Parallel Random Numbers: As Easy as 1, 2, 3). A sample
has the key (64 bits: the seed of its generator) and the counter (64 bits: the number of samples before it in
order of declaration). Element ``i`` of a sample is the block with counter words

    (low half of i, high half of i, low half of counter, high half of counter)

under the key words (low half of key, high half of key); each block gives four words of 32 bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy

from twofold.dtypes import (
    DType,
    as_dtype,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int16,
    int32,
    int64,
    uint32,
    uint64,
)
from twofold.errors import ArgumentError
from twofold.ir.interpret import narrow
from twofold.ir.node import Node
from twofold.ops.base import apply, composite, convert, elementwise, iota, ops
from twofold.ops.samples import Sample
from twofold.ops.source import shape_of

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10


def _halves(b: Any, x: Any) -> tuple[Any, Any]:
    return b.cast(x, uint32), b.cast(b.shr(x, 32), uint32)


def philox_words(b: Any, index: Any, key: Any, counter: Any) -> list[Any]:
    """Emit the four words of the blocks of elements ``index``; all operands are uint64."""
    x = [*_halves(b, index), *_halves(b, counter)]
    k0, k1 = _halves(b, key)
    for step in range(_ROUNDS):
        if step:
            k0, k1 = b.add(k0, _WEYL[0]), b.add(k1, _WEYL[1])
        high0, low0 = b.mulhi_u32(x[0], _MULTIPLIERS[0]), b.mul(x[0], _MULTIPLIERS[0])
        high1, low1 = b.mulhi_u32(x[2], _MULTIPLIERS[1]), b.mul(x[2], _MULTIPLIERS[1])
        x = [b.xor(b.xor(high1, x[1]), k0), low1, b.xor(b.xor(high0, x[3]), k1), low0]
    return x


def philox_reference(index: Any, key: Any, counter: Any, word: int) -> Any:
    """Word ``word`` of the blocks of elements ``index``, by NumPy."""
    low = numpy.uint64(0xFFFFFFFF)
    half = numpy.uint64(32)
    index, key, counter = (numpy.asarray(value).astype(numpy.uint64) for value in (index, key, counter))
    x = [index & low, index >> half, counter & low, counter >> half]
    keys = [key & low, key >> half]
    for step in range(_ROUNDS):
        if step:
            keys = [(k + numpy.uint64(w)) & low for k, w in zip(keys, _WEYL)]
        first, second = x[0] * numpy.uint64(_MULTIPLIERS[0]), x[2] * numpy.uint64(_MULTIPLIERS[1])
        x = [(second >> half) ^ x[1] ^ keys[0], second & low, (first >> half) ^ x[3] ^ keys[1], first & low]
    return x[word].astype(numpy.uint32)


def _bits_samples() -> Sequence[Sample]:
    generator = numpy.random.default_rng(3)
    samples = []
    for shape in ((), (19,), (2, 3), (0,)):
        arrays = tuple(generator.integers(0, 2**63, s).astype("uint64") for s in (shape, (), ()))
        samples += [Sample((word,), arrays, (uint64,) * 3, smooth=False) for word in range(4)]
    return samples


@elementwise
class random_bits:
    """Word ``word`` (0 to 3, uint32) of the Philox block of element ``index``."""

    functions = ()
    methods = ()
    inplace = False
    signature = "index, key, counter"
    operand_dtypes = (uint64, uint64, uint64)
    result_dtype = lambda common: (uint64, uint32)
    differentiable = False
    lower = lambda b, index, key, counter, word: philox_words(b, index, key, counter)[word]
    reference = philox_reference
    samples = _bits_samples


_FLOATS = (float32, float64, float16, bfloat16)


def random_samples(*values: float, dtypes: Sequence[DType] = _FLOATS) -> Sequence[Sample]:
    """Key, counter and scalar parameters; as attributes the shape and the dtype of the sample."""
    scalars = [numpy.array(value, "float64" if isinstance(value, float) else "int64") for value in values]
    arrays = (numpy.array(2**63 + 5, "uint64"), numpy.array(7, "uint64"), *scalars)
    types = (uint64, uint64, *[float64 if isinstance(value, float) else int64 for value in values])
    shapes = ((), (19,), (0, 2), (3, 40))
    return [Sample((shape, dtype), arrays, types, smooth=False) for shape in shapes for dtype in dtypes]


def _dropout_samples() -> Sequence[Sample]:
    scalars = (numpy.array(5, "uint64"), numpy.array(7, "uint64"), numpy.array(0.25, "float32"))
    generator = numpy.random.default_rng(1)
    return [
        Sample((), (narrow(generator.normal(size=shape), dtype), *scalars), (dtype, uint64, uint64, float32))
        for shape, dtype in (
            ((33,), float32),
            ((), float32),
            ((2, 3), float64),
            ((2, 9), bfloat16),
            ((0,), float32),
        )
    ]


def _words(key: Node, counter: Node, shape: tuple[int, ...], *words: int, element: Any = None) -> list[Any]:
    index = iota(shape) if element is None else iota(shape) + element
    return [apply("random_bits", index, key, counter, attrs=(word,)) for word in words]


def uniform_node(
    key: Node, counter: Node, shape: tuple[int, ...], dtype: DType, first: int = 0, element: Any = None
) -> Any:
    """Uniform in [0, 1): the highest 24 bits of one word; for float64 the highest 53 of two.

    ``element`` is the number of the first element, where it is a block of a larger sample.

    Every value is a multiple of the spacing, so each is exact in the dtype (half types take as many bits as
    they hold).
    """
    if dtype is float64:
        high, low = _words(key, counter, shape, first, first + 1, element=element)
        wide = convert(high, uint64) * 2**21 + ops.bitwise_right_shift(convert(low, uint64), 11)
        return convert(wide, float64) * 2.0**-53
    bits = {float32: 24}.get(dtype, 8 if dtype is bfloat16 else 11)
    (word,) = _words(key, counter, shape, first, element=element)
    return convert(convert(ops.bitwise_right_shift(word, 32 - bits), float32) * 2.0**-bits, dtype)


def _uniform(key: Any, counter: Any, low: Any, high: Any, shape: tuple[int, ...], dtype: DType) -> Any:
    unit = uniform_node(key, counter, shape, dtype)
    start, end = convert(low, dtype), convert(high, dtype)
    value = start + unit * (end - start)
    # rounding may reach the excluded end
    return ops.where(ops.logical_and(value >= end, start < end), start, value)


@composite
class random_uniform:
    """Uniform in [low, high), of shape and dtype by the attributes."""

    functions = ()
    methods = ()
    signature = "key, counter, low, high"
    samples = lambda: random_samples(-1.5, 2.0)
    compute = _uniform


def _normal(key: Any, counter: Any, mean: Any, scale: Any, shape: tuple[int, ...], dtype: DType) -> Any:
    """Box and Muller's transform of two words of one block; 1 - u is never 0, so its logarithm is finite."""
    wide = float64 if dtype is float64 else float32
    radius = ops.sqrt(-2.0 * ops.log(1.0 - uniform_node(key, counter, shape, wide, 0)))
    angle = uniform_node(key, counter, shape, wide, 2) * (2 * math.pi)
    return convert(convert(mean, wide) + convert(scale, wide) * (radius * ops.cos(angle)), dtype)


@composite
class random_normal:
    """Normal with this mean and standard deviation, of shape and dtype by the attributes."""

    functions = ()
    methods = ()
    signature = "key, counter, mean, std"
    samples = lambda: random_samples(-1.5, 2.0)
    compute = _normal


def _randint(key: Any, counter: Any, low: Any, high: Any, shape: tuple[int, ...], dtype: DType) -> Any:
    """The high half of (range times 64 random bits); the bias is under range / 2**64. A range of 0 means 2**64.

    Source: Lemire 2019, Fast Random Integer Generation in an Interval, without the rejection.
    """
    start = convert(low, int64)
    span = convert(convert(high, int64) - start, uint64)
    first, second = (convert(word, uint64) for word in _words(key, counter, shape, 0, 1))
    half = lambda value: ops.bitwise_right_shift(value, 32)
    upper, lower = half(span), ops.bitwise_and(span, 0xFFFFFFFF)
    middle = first * lower + half(second * lower)
    carried = second * upper + ops.bitwise_and(middle, 0xFFFFFFFF)
    found = first * upper + half(middle) + half(carried)
    found = ops.where(ops.equal(span, 0), first * 2**32 + second, found)
    return convert(start + convert(found, int64), dtype)


@composite
class random_integers:
    """Integers in [low, high), of shape and dtype by the attributes."""

    functions = ()
    methods = ()
    signature = "key, counter, low, high"
    samples = lambda: random_samples(-3, 200, dtypes=(int64, int32, int16))
    compute = _randint


@composite
class random_bernoulli:
    """True with the probability ``p`` of its position, as ``dtype``."""

    functions = ()
    methods = ()
    signature = "key, counter, p"
    samples = lambda: random_samples(0.3, dtypes=(bool_, float32))
    compute = lambda key, counter, p, shape, dtype: convert(
        uniform_node(key, counter, shape, p.dtype if p.dtype is float64 and not p.type.weak else float32) < p,
        dtype,
    )


def _dropout(x: Any, key: Any, counter: Any, p: Any, element: Any = None) -> Any:
    """Survivors are divided by the chance to survive, in the dtype of ``x``."""
    keep = uniform_node(key, counter, x.shape, float32, element=element) >= convert(p, float32)
    return ops.where(keep, x / (1.0 - p), 0)


def _dropout_gradient(ct: Any, y: Any, x: Any, *stream: Any) -> tuple[Any, ...]:
    """The same sample again, which costs less than keeping the mask."""
    return (_dropout(ct, *stream), *[None] * len(stream))


@composite
class random_dropout:
    """``input`` with each element zeroed with probability ``p``, the others divided by ``1 - p``.

    A fifth input is the number of the first element, where the input is a block of a larger one.
    """

    autograd_name = "MulBackward0"
    functions = ()
    methods = ()
    signature = "input, key, counter, p"
    kinds = "biuf"
    samples = _dropout_samples
    compute = _dropout
    vjp = _dropout_gradient


def sample_uniform(
    key: Any, counter: Any, shape: Any, dtype: Any = float32, low: Any = 0.0, high: Any = 1.0
) -> Any:
    """Bind ``random_uniform``; key and counter are uint64 scalars. Of complex numbers both parts are sampled so."""
    if as_dtype(dtype).kind == "c":
        parts = (*shape_of((shape,)), 2)
        return ops.view_as_complex(sample_uniform(key, counter, parts, as_dtype(dtype).real, low, high))
    return apply("random_uniform", key, counter, low, high, attrs=(shape_of((shape,)), as_dtype(dtype)))


def sample_normal(
    key: Any, counter: Any, shape: Any, dtype: Any = float32, mean: Any = 0.0, std: Any = 1.0
) -> Any:
    """Bind ``random_normal``; key and counter are uint64 scalars.

    Of complex numbers both parts have half the variance; one number as the mean is that of both, as in PyTorch.
    """
    if as_dtype(dtype).kind == "c":
        parts, real = (*shape_of((shape,)), 2), as_dtype(dtype).real
        if hasattr(mean, "dtype") or hasattr(std, "dtype"):
            unit = sample_normal(key, counter, parts, real, 0.0, math.sqrt(0.5))
            return mean + std * ops.view_as_complex(unit)
        return ops.view_as_complex(sample_normal(key, counter, parts, real, mean, std * math.sqrt(0.5)))
    return apply("random_normal", key, counter, mean, std, attrs=(shape_of((shape,)), as_dtype(dtype)))


def sample_integers(key: Any, counter: Any, low: int, high: int, shape: Any, dtype: Any = int64) -> Any:
    """Bind ``random_integers``; raises ArgumentError for an empty range, or one beyond int64."""
    if not -(2**63) <= low < high <= 2**63:
        raise ArgumentError(f"random integers from {low} to {high - 1}", "Give low < high within int64.")
    # 2**63 has the bits of -(2**63), which make the same range
    signed = high - 2**64 if high == 2**63 else high
    return apply("random_integers", key, counter, low, signed, attrs=(shape_of((shape,)), as_dtype(dtype)))


def sample_bernoulli(key: Any, counter: Any, p: Any, shape: Any, dtype: Any = bool_) -> Any:
    """Bind ``random_bernoulli``; ``p`` is a number or a tensor that broadcasts to ``shape``."""
    return apply("random_bernoulli", key, counter, p, attrs=(shape_of((shape,)), as_dtype(dtype)))


def sample_dropout(input: Any, key: Any, counter: Any, p: Any) -> Any:
    """Bind ``random_dropout``; raises ArgumentError unless ``p`` is in [0, 1]."""
    if not 0 <= p <= 1:
        raise ArgumentError(f"p is {p}", "Use a probability from 0 to 1.")
    return apply("random_dropout", input, key, counter, p)
