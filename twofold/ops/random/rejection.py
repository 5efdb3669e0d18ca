"""Distributions sampled by rejection: each element repeats its own iterations, so neither lanes nor threads matter.

Round ``r`` of element ``i`` reads the Philox block of element number ``i + r * 2**48`` under the key and counter of
the sample. Everything is computed in float64. Parameters outside their range give NaN.

The proposals and steps are written against the loop builder; ``_Arrays`` gives them NumPy's arrays for reference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from twofold.dtypes import float64, int64, uint64
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.types import TensorType, tensor_type
from twofold.ops import kernels
from twofold.ops.base import Custom, custom
from twofold.ops.random import reference_builder
from twofold.ops.random.sampling import philox_reference, philox_words
from twofold.ops.samples import Sample

_ROUND_SHIFT = 48
_ROUNDS = 128
"""Each proposal is taken with probability 0.6 or more, so 128 are refused in a row once in 10**50 samples."""
_STEPS = 160
_NEGLIGIBLE = 1e-18


def unit(b: Any, word: Any) -> Any:
    """A word of 32 bits as a number in the middle of one of 2**32 parts of (0, 1)."""
    return b.mul(b.add(b.cast(word, float64), 0.5), 2.0**-32)


def wide_unit(b: Any, high: Any, low: Any) -> Any:
    """Two words as a number in the middle of one of 2**52 parts of (0, 1)."""
    bits = b.add(b.shl(b.cast(high, uint64), 20), b.shr(b.cast(low, uint64), 12))
    return b.mul(b.add(b.cast(bits, float64), 0.5), 2.0**-52)


class Sampler(Custom):
    """Samples of the shape of the parameters: inputs float64 ``(*parameters, key, counter)``, result float64."""

    functions = ()
    differentiable = False
    kinds = "f"
    half_types = False
    domain_samples: tuple[tuple[float, ...], ...]
    valid: Callable[..., Any]
    sampled: Callable[..., Any]
    sampled_by_arrays: Callable[..., Any]

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        return make_node(self, attrs, tuple(inputs), tensor_type(float64, inputs[0].shape))

    def work(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> tuple[int, int]:
        return output.size, 1 << 12

    def samples(self) -> Sequence[Any]:
        scalars = (numpy.array(2**63 + 5, "uint64"), numpy.array(7, "uint64"))
        found = []
        for shape in ((41,), (), (0, 2)):
            values = [numpy.resize(numpy.array(value), shape) for value in self.domain_samples]
            types = (*[float64] * len(values), uint64, uint64)
            found.append(Sample((), (*values, *scalars), types, smooth=False))
        return found

    def emit(self, builder: Any, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> None:
        b, count = builder, len(inputs) - 2
        key, counter = (b.splat(b.load(b.input(count + k), 0, uint64)) for k in range(2))

        def body(j: Any, lanes: int, mask: Any) -> None:
            at = b.add(b.begin, j)
            index = b.cast(b.iota(at), uint64)
            values = [b.load(b.input(k), at, float64, lanes, mask=mask) for k in range(count)]
            waiting = self.valid(b, *values)
            waiting = waiting if mask is None else b.and_(waiting, mask)
            block = lambda round: philox_words(b, self._position(b, index, round), key, counter)
            b.store(b.buffer(count + 2), at, self.sampled(b, block, waiting, values), mask=mask)

        kernels.run(b, b.sub(b.end, b.begin), body)

    @staticmethod
    def _position(b: Any, index: Any, round: Any) -> Any:
        return b.add(index, b.splat(b.shl(b.cast(round, uint64), _ROUND_SHIFT)))

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        *values, key, counter = arrays
        index = numpy.arange(values[0].size, dtype=numpy.uint64).reshape(values[0].shape)
        b = reference_builder.Arrays()

        def block(round: int) -> Any:
            position = index + numpy.uint64(round << _ROUND_SHIFT)
            return [philox_reference(position, key, counter, word) for word in range(4)]

        with numpy.errstate(all="ignore"):
            return self.sampled_by_arrays(b, block, self.valid(b, *values), values)


class Rejection(Sampler):
    """Rounds of proposals until one is accepted: ``propose(b, words, *values)`` gives (accepted, value)."""

    propose: Callable[..., Any]

    def sampled(self, b: Any, block: Any, waiting: Any, values: Sequence[Any]) -> Any:
        loop = b.loop(0, _ROUNDS, carry=[b.const(math.nan, float64, kernels.LANES), waiting])
        with loop as (round, (result, waiting)):
            branch = b.if_(b.any_lane(waiting))
            with branch:
                accepted, value = self.propose(b, block(round), *values)
                chosen = b.select(b.and_(waiting, accepted), value, result)
                branch.give([chosen, b.and_(waiting, b.not_(accepted))])
            with branch.else_():
                branch.give([result, waiting])
            b.loop_next(branch.results)
        return loop.results[0]

    def sampled_by_arrays(self, b: Any, block: Any, waiting: Any, values: Sequence[Any]) -> Any:
        result = numpy.full(waiting.shape, numpy.nan)
        for round in range(_ROUNDS):
            if not waiting.any():
                break
            accepted, value = self.propose(b, block(round), *values)
            result = numpy.where(waiting & accepted, value, result)
            waiting = waiting & ~accepted
        return result


class Inversion(Sampler):
    """The first k whose distribution function reaches a uniform number, found by adding up from k = 0.

    ``first(b, *values)`` is the probability of 0 and ``ratio(b, k, *values)`` that of k over that of k - 1.
    """

    first: Callable[..., Any]
    ratio: Callable[..., Any]

    def sampled(self, b: Any, block: Any, waiting: Any, values: Sequence[Any]) -> Any:
        words = block(b.const(0, int64))
        u, start = wide_unit(b, words[0], words[1]), self.first(b, *values)
        result = b.select(waiting, 0.0, b.const(math.nan, float64, kernels.LANES))
        loop = b.loop(0, _STEPS, carry=[result, start, start, b.and_(waiting, b.cmp("gt", u, start))])
        with loop as (_, carried):
            branch = b.if_(b.any_lane(carried[-1]))
            with branch:
                branch.give(self._step(b, u, carried, values))
            with branch.else_():
                branch.give(carried)
            b.loop_next(branch.results)
        return loop.results[0]

    def _step(self, b: Any, u: Any, carried: Sequence[Any], values: Sequence[Any]) -> list[Any]:
        k, term, total, waiting = carried
        after = b.add(k, 1.0)
        term = b.mul(term, self.ratio(b, after, *values))
        total = b.add(total, term)
        more = b.and_(b.cmp("gt", u, total), b.cmp("gt", term, _NEGLIGIBLE))
        return [b.select(waiting, after, k), term, total, b.and_(waiting, more)]

    def sampled_by_arrays(self, b: Any, block: Any, waiting: Any, values: Sequence[Any]) -> Any:
        words = block(0)
        u, start = wide_unit(b, words[0], words[1]), self.first(b, *values)
        carried = [numpy.where(waiting, 0.0, numpy.nan), start, start, waiting & (u > start)]
        for _ in range(_STEPS):
            carried = self._step(b, u, carried, values)
        return carried[0]


@custom
class random_log_gamma(Rejection):
    """Logarithms of numbers with the gamma distribution of shape alpha and rate 1.

    Source: Marsaglia and Tsang, A Simple Method for Generating Gamma Variables, 2000; alpha below 1 by their note
    in section 6: a sample for alpha + 1 times a uniform number to the power 1 / alpha.
    """

    domain_samples = ((0.01, 0.4, 1.0, 1.5, 7.0, 300.0, -1.0, math.nan),)

    @staticmethod
    def valid(b: Any, alpha: Any) -> Any:
        return b.and_(b.cmp("gt", alpha, 0.0), b.cmp("lt", alpha, math.inf))

    @staticmethod
    def propose(b: Any, words: Sequence[Any], alpha: Any) -> tuple[Any, Any]:
        small = b.cmp("lt", alpha, 1.0)
        d = b.sub(b.select(small, b.add(alpha, 1.0), alpha), 1.0 / 3.0)
        radius = b.sqrt(b.mul(b.math("log", unit(b, words[0])), -2.0))
        x = b.mul(radius, b.math("cos", b.mul(unit(b, words[1]), 2 * math.pi)))
        base = b.add(b.div(x, b.sqrt(b.mul(d, 9.0))), 1.0)
        log_v = b.mul(b.math("log", b.select(b.cmp("gt", base, 0.0), base, 1.0)), 3.0)
        v = b.mul(base, b.mul(base, base))
        bound = b.add(b.mul(b.mul(x, x), 0.5), b.mul(d, b.add(b.sub(1.0, v), log_v)))
        accepted = b.and_(b.cmp("gt", base, 0.0), b.cmp("lt", b.math("log", unit(b, words[2])), bound))
        lowered = b.div(b.math("log", unit(b, words[3])), alpha)
        value = b.add(b.math("log", d), log_v)
        return accepted, b.select(small, b.add(value, lowered), value)


@custom
class random_poisson_small(Inversion):
    """Numbers with the Poisson distribution of a rate below 10, else NaN."""

    domain_samples = ((0.0, 0.3, 1.0, 9.5, -1.0, 20.0),)
    valid = staticmethod(lambda b, rate: b.and_(b.cmp("ge", rate, 0.0), b.cmp("lt", rate, 10.0)))
    first = staticmethod(lambda b, rate: b.math("exp", b.neg(rate)))
    ratio = staticmethod(lambda b, k, rate: b.div(rate, k))


def _accept_ratio(b: Any, words: Sequence[Any]) -> tuple[Any, Any, Any]:
    """Hörmann's uniform numbers: u in (-1/2, 1/2), its distance from the ends, and v in (0, 1)."""
    u = b.sub(wide_unit(b, words[0], words[1]), 0.5)
    return u, b.sub(0.5, b.abs(u)), wide_unit(b, words[2], words[3])


def _decided(b: Any, v: Any, bound: Any, inside: Any, quickly: Any, k: Any) -> tuple[Any, Any]:
    accepted = b.or_(quickly, b.cmp("le", b.math("log", v), bound))
    return b.and_(inside, accepted), k


@custom
class random_poisson_large(Rejection):
    """Numbers with the Poisson distribution of a rate from 10, else NaN.

    Source: Hörmann, The Transformed Rejection Method for Generating Poisson Random Variables, 1993 (PTRS).
    """

    domain_samples = ((10.0, 33.3, 1e5, 1e12, 3.0, -1.0),)
    valid = staticmethod(lambda b, rate: b.and_(b.cmp("ge", rate, 10.0), b.cmp("lt", rate, math.inf)))

    @staticmethod
    def propose(b: Any, words: Sequence[Any], rate: Any) -> tuple[Any, Any]:
        u, us, v = _accept_ratio(b, words)
        width = b.add(b.mul(b.sqrt(rate), 2.53), 0.931)
        a = b.add(b.mul(width, 0.02483), -0.059)
        inverse_alpha = b.add(b.div(1.1328, b.sub(width, 3.4)), 1.1239)
        reach = b.sub(0.9277, b.div(3.6224, b.sub(width, 2.0)))
        k = b.floor(b.add(b.mul(b.add(b.div(b.mul(a, 2.0), us), width), u), b.add(rate, 0.43)))
        inside = b.cmp("ge", k, 0.0)
        held = b.select(inside, k, 0.0)
        squeeze = b.add(b.div(a, b.mul(us, us)), width)
        bound = b.sub(b.mul(held, b.math("log", rate)), b.add(rate, b.math("lgamma", b.add(held, 1.0))))
        bound = b.sub(bound, b.math("log", b.div(inverse_alpha, squeeze)))
        quickly = b.and_(b.cmp("ge", us, 0.07), b.cmp("le", v, reach))
        return _decided(b, v, bound, inside, quickly, k)


@custom
class random_binomial_small(Inversion):
    """Numbers with the binomial distribution of ``(count, p)`` with p <= 1/2 and count * p below 10, else NaN."""

    domain_samples = ((0.0, 1.0, 10.0, 15.0, 1e6, 5.0, -1.0), (0.5, 0.5, 0.3, 0.5, 1e-6, 0.0, 0.3))
    ratio = staticmethod(
        lambda b, k, count, p: b.div(b.mul(b.add(b.sub(count, k), 1.0), p), b.mul(k, b.sub(1.0, p)))
    )

    @staticmethod
    def valid(b: Any, count: Any, p: Any) -> Any:
        inside = b.and_(b.cmp("ge", count, 0.0), b.and_(b.cmp("ge", p, 0.0), b.cmp("le", p, 0.5)))
        return b.and_(inside, b.cmp("lt", b.mul(count, p), 10.0))

    @staticmethod
    def first(b: Any, count: Any, p: Any) -> Any:
        return b.math("exp", b.mul(count, b.math("log1p", b.neg(p))))


@custom
class random_binomial_large(Rejection):
    """Numbers with the binomial distribution of ``(count, p)`` with p <= 1/2 and count * p from 10, else NaN.

    Source: Hörmann, The Generation of Binomial Random Variates, 1993 (BTRS).
    """

    domain_samples = ((20.0, 100.0, 1e6, 1e9, 5.0), (0.5, 0.3, 0.5, 1e-3, 0.5))

    @staticmethod
    def valid(b: Any, count: Any, p: Any) -> Any:
        inside = b.and_(b.cmp("lt", count, math.inf), b.cmp("le", p, 0.5))
        return b.and_(inside, b.cmp("ge", b.mul(count, p), 10.0))

    @staticmethod
    def propose(b: Any, words: Sequence[Any], count: Any, p: Any) -> tuple[Any, Any]:
        u, us, v = _accept_ratio(b, words)
        deviation = b.sqrt(b.mul(b.mul(count, p), b.sub(1.0, p)))
        width = b.add(b.mul(deviation, 2.53), 1.15)
        a = b.add(b.add(b.mul(width, 0.0248), b.mul(p, 0.01)), -0.0873)
        alpha = b.mul(b.add(b.div(5.1, width), 2.83), deviation)
        reach = b.sub(0.92, b.div(4.2, width))
        centre = b.add(b.mul(count, p), 0.5)
        k = b.floor(b.add(b.mul(b.add(b.div(b.mul(a, 2.0), us), width), u), centre))
        inside = b.and_(b.cmp("ge", k, 0.0), b.cmp("le", k, count))
        held = b.select(inside, k, 0.0)
        mode = b.floor(b.mul(b.add(count, 1.0), p))
        squeeze = b.add(b.div(a, b.mul(us, us)), width)

        def ways(k: Any) -> Any:
            return b.add(b.math("lgamma", b.add(k, 1.0)), b.math("lgamma", b.add(b.sub(count, k), 1.0)))

        odds = b.math("log", b.div(p, b.sub(1.0, p)))
        bound = b.add(b.sub(ways(mode), ways(held)), b.mul(b.sub(held, mode), odds))
        bound = b.sub(bound, b.math("log", b.div(alpha, squeeze)))
        quickly = b.and_(b.cmp("ge", us, 0.07), b.cmp("le", v, reach))
        return _decided(b, v, bound, inside, quickly, k)


@custom
class random_von_mises(Rejection):
    """Angles in [-pi, pi] with the von Mises distribution around 0.

    Source: Best and Fisher, Efficient Simulation of the von Mises Distribution, 1979.
    """

    domain_samples = ((0.0, 1e-7, 0.3, 2.0, 80.0, 1e6, -1.0),)
    valid = staticmethod(lambda b, kappa: b.and_(b.cmp("ge", kappa, 0.0), b.cmp("lt", kappa, math.inf)))

    @staticmethod
    def propose(b: Any, words: Sequence[Any], kappa: Any) -> tuple[Any, Any]:
        z = b.math("cos", b.mul(unit(b, words[0]), math.pi))
        tau = b.add(b.sqrt(b.add(b.mul(b.mul(kappa, kappa), 4.0), 1.0)), 1.0)
        rho = b.div(b.sub(tau, b.sqrt(b.mul(tau, 2.0))), b.mul(kappa, 2.0))
        # below 1e-4 rho loses its digits; there r is 1 / kappa + kappa
        r = b.div(b.add(b.mul(rho, rho), 1.0), b.mul(rho, 2.0))
        r = b.select(b.cmp("lt", kappa, 1e-4), b.add(b.div(1.0, kappa), kappa), r)
        flat = b.cmp("lt", kappa, 1e-12)
        r = b.select(flat, 1e12, r)
        f = b.div(b.add(b.mul(r, z), 1.0), b.add(r, z))
        c = b.mul(b.select(flat, 1e-12, kappa), b.sub(r, f))
        bound = b.sub(b.add(b.math("log", c), 1.0), c)
        accepted = b.cmp("le", b.math("log", unit(b, words[1])), bound)
        angle = b.math("acos", b.minimum(b.maximum(f, -1.0), 1.0))
        return accepted, b.copysign(angle, b.sub(unit(b, words[2]), 0.5))
