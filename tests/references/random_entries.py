"""References of random entries: Philox by Python's integers, inverses of distributions by SciPy; else their law."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy
import scipy.integrate
import scipy.special
import scipy.stats
from declare import entry, entry_identity, internal

from twofold.ir.op import REGISTRY

Found = Iterator[tuple[Any, ...]]
WORD = 2**32


@functools.lru_cache(maxsize=1 << 16)
def philox(index: int, key: int, counter: int) -> tuple[int, ...]:
    """The four words of a block of Philox-4x32-10 (Salmon et al. 2011, section 3.3)."""
    block = [index % WORD, index // WORD, counter % WORD, counter // WORD]
    keys = [key % WORD, key // WORD]
    for _ in range(10):
        high0, low0 = divmod(block[0] * 0xD2511F53, WORD)
        high1, low1 = divmod(block[2] * 0xCD9E8D57, WORD)
        block = [high1 ^ block[1] ^ keys[0], low1, high0 ^ block[3] ^ keys[1], low0]
        keys = [(keys[0] + 0x9E3779B9) % WORD, (keys[1] + 0xBB67AE85) % WORD]
    return tuple(block)


def words(key: Any, counter: Any, shape: Any, word: int) -> Any:
    """One word for each element, as Python integers."""
    count = int(numpy.prod(shape, dtype=int))
    found = [philox(k, int(key), int(counter))[word] for k in range(count)]
    return numpy.array(found, object).reshape(shape)


def uniform(key: Any, counter: Any, shape: Any, bits: int, first: int = 0) -> Any:
    """Numbers in [0, 1) that are multiples of ``2**-bits``."""
    if bits == 53:
        whole = words(key, counter, shape, first) * WORD + words(key, counter, shape, first + 1)
        return numpy.asarray(whole // 2**11).astype(float) * 2.0**-53
    return numpy.asarray(words(key, counter, shape, first) // 2 ** (32 - bits)).astype(float) * 2.0**-bits


BITS = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}


def wide_bits(dtype: Any) -> int:
    """How many bits a draw that is computed in float32 or float64 takes."""
    return 53 if dtype.name == "float64" or dtype.kind != "f" else 24


def stored(value: Any, dtype: Any) -> Any:
    """A value in ``dtype``; bfloat16 stays wide."""
    return value if dtype.name == "bfloat16" else numpy.asarray(value).astype(dtype.numpy)


@entry("random_bits")
def _bits(index: Any, key: Any, counter: Any, word: int) -> Any:
    found = [philox(int(k), int(key), int(counter))[word] for k in index.reshape(-1)]
    return numpy.array(found, numpy.uint32).reshape(index.shape)


@entry("random_uniform")
def _uniform(key: Any, counter: Any, low: Any, high: Any, shape: Any, dtype: Any) -> Any:
    return stored(low + (high - low) * uniform(key, counter, shape, BITS[dtype.name]), dtype)


def normal(key: Any, counter: Any, shape: Any, dtype: Any) -> Any:
    """Box and Muller's transform of two uniform numbers."""
    bits = wide_bits(dtype)
    u, v = (uniform(key, counter, shape, bits, first) for first in (0, 2))
    return numpy.sqrt(-2 * numpy.log(1 - u)) * numpy.cos(2 * numpy.pi * v)


@entry("random_normal")
def _normal(key: Any, counter: Any, mean: Any, std: Any, shape: Any, dtype: Any) -> Any:
    return stored(mean + std * normal(key, counter, shape, dtype), dtype)


@entry("random_log_normal")
def _log_normal(key: Any, counter: Any, mean: Any, std: Any, shape: Any, dtype: Any) -> Any:
    return stored(numpy.exp(mean + std * normal(key, counter, shape, dtype)), dtype)


@entry("random_integers")
def _integers(key: Any, counter: Any, low: Any, high: Any, shape: Any, dtype: Any) -> Any:
    whole = words(key, counter, shape, 0) * WORD + words(key, counter, shape, 1)
    return numpy.asarray(whole * (int(high) - int(low)) // 2**64 + int(low)).astype(dtype.numpy)


@entry("random_bernoulli")
def _bernoulli(key: Any, counter: Any, p: Any, shape: Any, dtype: Any) -> Any:
    return stored(uniform(key, counter, shape, 53) < p, dtype)


@entry("random_dropout")
def _dropout(x: Any, key: Any, counter: Any, p: Any) -> Any:
    kept = uniform(key, counter, x.shape, 24) >= p
    return x * kept / (1 - p)


def inverse(name: str, quantile: Any) -> None:
    """A reference by the quantile function of ``(u, *parameters)``."""

    def reference(key: Any, counter: Any, *rest: Any) -> Any:
        *values, shape, dtype = rest
        return stored(quantile(uniform(key, counter, shape, wide_bits(dtype)), *values), dtype)

    entry(name)(reference)


inverse("random_exponential", lambda u, rate: scipy.stats.expon.ppf(numpy.maximum(u, 2.0**-25)) / rate)
inverse("random_cauchy", lambda u, median, sigma: scipy.stats.cauchy.ppf(u, median, sigma))
inverse("random_geometric", lambda u, p: numpy.maximum(scipy.stats.geom.ppf(u, p), 1))


@entry("random_truncated_normal")
def _truncated(key: Any, counter: Any, low: Any, high: Any, shape: Any, dtype: Any) -> Any:
    return stored(scipy.stats.truncnorm.ppf(uniform(key, counter, shape, 53), low, high), dtype)


@entry("random_choice")
def _choice(weights: Any, key: Any, counter: Any, count: int, replacement: bool) -> Any:
    if replacement:
        u = uniform(key, counter, (len(weights), count), 53)
        chances = numpy.cumsum(weights / weights.sum(-1, keepdims=True), -1)
        return (u[..., None] >= chances[:, None]).sum(-1)
    u = uniform(key, counter, weights.shape, 53)
    waits = scipy.stats.expon.ppf(u) / weights
    return numpy.array([sorted(range(len(row)), key=row.__getitem__)[:count] for row in waits])


@entry("random_permutation")
def _permutation(key: Any, counter: Any, count: int) -> Any:
    bits = max(count - 1, 0).bit_length()
    keys = words(key, counter, (count,), 0) * WORD + words(key, counter, (count,), 1)
    return numpy.array(sorted(range(count), key=lambda k: (keys[k] >> bits, k)), numpy.int64)


@entry_identity("log_gamma_slope")
def _log_gamma_slope(found: Any, alpha: Any, logarithm: Any, points: int) -> Found:
    def slope(a: float, at: float) -> float:
        # -(dF / da) / (x f(x)), with F by SciPy and the derivative by differences
        step = 1e-5 * max(a, 1e-3)
        x = numpy.exp(at)
        tail = scipy.special.gammaincc if x > a else scipy.special.gammainc
        sign = 1.0 if x > a else -1.0
        change = (tail(a + step, x) - tail(a - step, x)) / (2 * step)
        return float(sign * change / numpy.exp(a * at - x - scipy.special.gammaln(a)))

    yield found, numpy.array([slope(a, at) for a, at in zip(alpha, logarithm)]), 2e-5


# What stands on rejection: the law of many draws


def draws(name: str, *values: float, count: int = 10_000) -> Any:
    """Many draws of an entry by its own rule; ``test_compiled`` says that kernels agree with it."""
    op: Any = REGISTRY[name]
    scalars = (numpy.array(5, "uint64"), numpy.array(1, "uint64"))
    return op.reference((), *[numpy.full(count, value) for value in values], *scalars)


def follows(found: Any, law: Any, discrete: bool) -> tuple[Any, Any]:
    """That the empirical distribution is within what one sample in ten thousand exceeds."""
    found = numpy.sort(found)
    bound = 2.23 / len(found) ** 0.5
    positions = numpy.unique(found)
    upper = numpy.searchsorted(found, positions, "right") / len(found)
    apart = abs(upper - law.cdf(positions)).max()
    if not discrete:
        lower = numpy.searchsorted(found, positions, "left") / len(found)
        apart = max(apart, abs(lower - law.cdf(positions)).max())
    return numpy.array(apart < bound), numpy.array(True)


@internal("random_log_gamma", "random_log_gamma_variate")
def _log_gamma_law() -> Found:
    for alpha in (0.02, 0.4, 1.0, 3.0, 90.0):
        yield follows(draws("random_log_gamma", alpha), scipy.stats.loggamma(alpha), False)


@internal("random_poisson_small", "random_poisson_large", "random_poisson")
def _poisson_law() -> Found:
    for rate in (0.3, 4.0, 9.9):
        yield follows(draws("random_poisson_small", rate), scipy.stats.poisson(rate), True)
    for rate in (10.0, 33.0, 2e4):
        yield follows(draws("random_poisson_large", rate), scipy.stats.poisson(rate), True)


@internal("random_binomial_small", "random_binomial_large", "random_binomial")
def _binomial_law() -> Found:
    for count, p in ((1, 0.5), (12, 0.3), (1000, 0.004)):
        yield follows(draws("random_binomial_small", count, p), scipy.stats.binom(count, p), True)
    for count, p in ((20, 0.5), (100, 0.3), (10**6, 0.5)):
        yield follows(draws("random_binomial_large", count, p), scipy.stats.binom(count, p), True)


@internal("random_von_mises")
def _von_mises_law() -> Found:
    for kappa in (0.3, 2.0, 80.0):
        yield follows(draws("random_von_mises", kappa), scipy.stats.vonmises(kappa), False)
