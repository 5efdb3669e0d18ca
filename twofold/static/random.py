"""Random tensors: new in every run, from the seeds of graph and operation and the number of the run.

The streams (Philox, see ``twofold.ops.random.sampling``) are not TensorFlow's, so equal seeds give other numbers there.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

from twofold.dtypes import DType, finfo, float32, float64, int64
from twofold.errors import ShapeError
from twofold.ops.base import apply, broadcast_shapes, ops
from twofold.ops.random import distributions
from twofold.ops.random.gamma_variates import sample_log_gamma
from twofold.static.api.namespaces import look_up
from twofold.static.api.op_functions import (
    Alone,
    Dtype,
    Number,
    as_dtype,
    convert_to_tensor,
    operation,
    sizes,
)
from twofold.static.api.signatures import defaults_of, with_parameters
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import get_default_graph

_MASK = 0x7FFFFFFFFFFFFFFF
_FACTORS = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9
"""Of two seeds that are mixed into one key."""


_GRAPH_SEED = 87654321
"""That of a graph without one, of which an operation has a seed."""


def _lengths(shape: Any) -> tuple[int, ...]:
    """A shape as a tuple; raises ShapeError for a negative size."""
    found = sizes(shape)
    if any(size < 0 for size in found):
        raise ShapeError(f"a size is negative in {found}", "Sizes start at 0.")
    return found


@example(
    "tf.set_random_seed(5)",
    "x = tf.random_uniform([3])",
    "print((session.run(x) != session.run(x)).all())",
    "True",
)
def set_random_seed(seed: int | None) -> None:
    """Set the seed of the default graph, so that each session samples the same numbers; None: others each time."""
    get_default_graph().seed = None if seed is None else int(seed)


@example("tf.set_random_seed(5)", "print(tf.get_seed(3), tf.get_seed(None))", "(5, 3) (5, 0)")
def get_seed(op_seed: int | None) -> tuple[int | None, int | None]:
    """The seeds of the graph and of an operation that is given one; both None where neither is set.

    Without a seed of its own, an operation has the number of operations that the graph has.
    """
    graph = get_default_graph()
    if graph.seed is None and op_seed is None:
        return None, None
    first = _GRAPH_SEED if graph.seed is None else graph.seed
    return first, len(graph.get_operations()) if op_seed is None else op_seed


def is_seeded(seed: int | None) -> bool:
    """Whether an operation with this seed samples the same in every session."""
    return seed is not None or get_default_graph().seed is not None


def next_key(seed: int | None) -> int:
    """The key of one more operation that samples of the default graph."""
    graph = get_default_graph()
    graph.random_op_count += 1
    if not is_seeded(seed):
        return secrets.randbits(62)
    first = _GRAPH_SEED if graph.seed is None else graph.seed
    second = graph.random_op_count if seed is None else int(seed) + (1 << 32)
    return (first * _FACTORS[0] + second * _FACTORS[1] + 1) & _MASK


def _sampler(
    type: str, default: str | None = None, **more: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """An operation that samples: its parameters are its body's, ``seed``, ``name`` and ``more``.

    The body takes, beside its own parameters, the ``key`` of the operation and the ``counter`` of the run.
    """

    def decorate(body: Callable[..., Any]) -> Callable[..., Any]:
        declare = operation(type, is_random=True, default=default or type)(body)
        behind = {"key", "counter", *more}
        own = {name: value for name, value in defaults_of(body).items() if name not in behind}

        def sample(seed: int | None, name: str | None, **given: Any) -> Any:
            return declare(**given, key=next_key(seed), name=name)

        return with_parameters(sample, {**own, "seed": None, "name": None, **more}, body)

    return decorate


@_sampler("random_normal")
@example("print(tf.random_normal([2, 3]).shape)", "(2, 3)")
def random_normal(
    shape: Number,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Dtype = float32,
    key: Number = 0,
    counter: Any = 0,
) -> Any:
    """Numbers from the normal distribution with this mean and standard deviation."""
    return apply("random_normal", key, counter, mean, stddev, attrs=(_lengths(shape), dtype))


def _even(name: str) -> Callable[..., Any]:
    def body(shape: Number, minval: Any, maxval: Any, dtype: Dtype, key: Number = 0, counter: Any = 0) -> Any:
        return apply(name, key, counter, minval, maxval, attrs=(_lengths(shape), dtype))

    return body


_uniform = _sampler("random_uniform")(_even("random_uniform"))
_integers = _sampler("random_uniform_int", "random_uniform")(_even("random_integers"))


@example("x = tf.random_uniform([100], 2.0, 3.0)", "tf.reduce_all((x >= 2.0) & (x < 3.0))", "True")
def random_uniform(
    shape: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """Numbers distributed evenly over [minval, maxval); for an integer dtype ``maxval`` must be given."""
    wanted = as_dtype(dtype)
    limits = _limits("random_uniform", minval, maxval, wanted)
    return (_uniform if wanted.kind == "f" else _integers)(shape, *limits, wanted, seed, name)


def _limits(name: str, minval: Any, maxval: Any, dtype: DType) -> tuple[Any, Any]:
    """Both ends of the range of even numbers."""
    if dtype.kind != "f":
        if maxval is None:
            raise ValueError(f"{name}: an integer dtype needs maxval. Give it.")
        return minval, maxval
    low = float(minval) if isinstance(minval, int) else minval
    return low, 1.0 if maxval is None else float(maxval) if isinstance(maxval, int) else maxval


@_sampler("truncated_normal")
@example("tf.reduce_all(tf.abs(tf.truncated_normal([100])) <= 2.0)", "True")
def truncated_normal(
    shape: Number,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Dtype = float32,
    key: Number = 0,
    counter: Any = 0,
) -> Any:
    """Normal numbers none of which is further than two standard deviations from the mean."""
    return _truncated(shape, mean, stddev, dtype, key, counter)


def _truncated(shape: Any, mean: Any, stddev: Any, dtype: DType, key: Any, counter: Any) -> Any:
    value = distributions.sample("truncated_normal", key, counter, _lengths(shape), dtype, -2.0, 2.0)
    return ops.add(ops.multiply(value, stddev), mean)


@_sampler("RandomShuffle")
@example("tf.sort(tf.random_shuffle([3, 1, 2]))", "[1 2 3]")
def random_shuffle(value: Alone, key: Number = 0, counter: Any = 0) -> Any:
    """``value`` with its first axis in random order."""
    return ops.index_select(value, 0, distributions.sample_permutation(key, counter, int(value.shape[0])))


@_sampler("Multinomial", "multinomial/Multinomial", output_dtype="int64")
@example("print(tf.multinomial([[0.0, 0.0]], 5).shape)", "(1, 5)")
def multinomial(
    logits: Alone, num_samples: Number, output_dtype: Dtype, key: Number = 0, counter: Any = 0
) -> Any:
    """``num_samples`` class numbers, with replacement, for each row of unnormalised log-probabilities."""
    return _classes(logits, num_samples, output_dtype, key, counter)


def _classes(logits: Any, count: Any, dtype: DType, key: Any, counter: Any) -> Any:
    weights = ops.softmax(ops.cast(logits, float64), -1)
    return ops.cast(distributions.sample_choice(weights, key, counter, int(count), True), dtype)


def categorical(
    logits: Any, num_samples: Any, dtype: Any = None, seed: int | None = None, name: str | None = None
) -> Any:
    """``tf.multinomial``, with the dtype of the numbers before the seed.

    >>> import twofold.static as tf
    >>> print(tf.random.categorical(tf.zeros([2, 3]), 4, tf.int32).shape)
    (2, 4)
    """
    return multinomial(logits, num_samples, seed, name, int64 if dtype is None else dtype)


@_sampler("RandomPoissonV2", "random_poisson")
@example("print(session.run(tf.random_poisson([0.0, 5.0], [3])).shape)", "(3, 2)")
def random_poisson(
    lam: Alone, shape: Number, dtype: Dtype = float32, key: Number = 0, counter: Any = 0
) -> Any:
    """Poisson numbers: ``shape`` of them for each rate in ``lam``."""
    rates = ops.broadcast_to(ops.cast(lam, float64), (*_lengths(shape), *lam.shape))
    return ops.cast(distributions.sample_poisson(rates, key, counter), dtype)


@operation("RandomGamma", is_random=True, default="random_gamma")
def _gammas(shape: Number, alpha: Any, beta: Any, dtype: Dtype, key: Number = 0, counter: Any = 0) -> Any:
    shapes = ops.broadcast_to(alpha, (*_lengths(shape), *broadcast_shapes(alpha.shape, beta.shape)))
    samples = ops.cast(ops.exp(sample_log_gamma(shapes, key, counter)), dtype)
    return ops.clamp(ops.divide(samples, beta), finfo(dtype).tiny)


@example("print(session.run(tf.random_gamma([3], [0.5, 2.0])).shape)", "(3, 2)")
def random_gamma(
    shape: Any,
    alpha: Any,
    beta: Any = None,
    dtype: Any = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """Gamma numbers: ``shape`` of them for each shape parameter in ``alpha`` and rate in ``beta`` (default: 1).

    Gradients flow to both. Source: Figurnov, Mohamed and Mnih, Implicit Reparameterization Gradients, 2018.
    """
    wanted = as_dtype(dtype)
    rate = convert_to_tensor(1.0 if beta is None else beta, wanted)
    return _gammas(shape, convert_to_tensor(alpha, wanted), rate, wanted, next_key(seed), name=name)


def _key_of(seed: Any) -> Any:
    """The key of a stream that two integers alone decide."""
    if tuple(seed.shape) != (2,):
        raise ShapeError(f"a seed of shape {tuple(seed.shape)}", "Give two integers.")
    signed = [factor - (1 << 64) for factor in _FACTORS]
    first, second = (ops.multiply(ops.select(ops.cast(seed, int64), 0, k), n) for k, n in enumerate(signed))
    return ops.bitwise_and(ops.add(ops.add(first, second), 1), _MASK)


@operation("StatelessRandomNormal", default="stateless_random_normal")
@example(
    "x = [tf.random.stateless_normal([2], [1, 2]) for _ in range(2)]", "tf.equal(x[0], x[1])", "[ True  True]"
)
def stateless_normal(
    shape: Number, seed: Alone, mean: Any = 0.0, stddev: Any = 1.0, dtype: Dtype = float32
) -> Any:
    """``tf.random_normal`` whose numbers two integers ``seed`` decide: the same in each run, session and graph."""
    return apply("random_normal", _key_of(seed), 0, mean, stddev, attrs=(_lengths(shape), dtype))


@operation("StatelessTruncatedNormal", default="stateless_truncated_normal")
@example("tf.reduce_all(tf.abs(tf.random.stateless_truncated_normal([100], [1, 2])) <= 2.0)", "True")
def stateless_truncated_normal(
    shape: Number, seed: Alone, mean: Any = 0.0, stddev: Any = 1.0, dtype: Dtype = float32
) -> Any:
    """``tf.truncated_normal`` whose numbers two integers ``seed`` decide."""
    return _truncated(shape, mean, stddev, dtype, _key_of(seed), 0)


def _stateless_even(name: str) -> Callable[..., Any]:
    def body(shape: Number, seed: Alone, minval: Any, maxval: Any, dtype: Dtype) -> Any:
        return apply(name, _key_of(seed), 0, minval, maxval, attrs=(_lengths(shape), dtype))

    return body


_STATELESS = "stateless_random_uniform"
_stateless_uniform = operation("StatelessRandomUniform", default=_STATELESS)(
    _stateless_even("random_uniform")
)
_stateless_integers = operation("StatelessRandomUniformInt", default=_STATELESS)(
    _stateless_even("random_integers")
)


@example("tf.reduce_all(tf.random.stateless_uniform([100], [1, 2], 0, 7, tf.int32) < 7)", "True")
def stateless_uniform(
    shape: Any,
    seed: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = float32,
    name: str | None = None,
) -> Any:
    """``tf.random_uniform`` whose numbers two integers ``seed`` decide."""
    wanted = as_dtype(dtype)
    limits = _limits("stateless_uniform", minval, maxval, wanted)
    return (_stateless_uniform if wanted.kind == "f" else _stateless_integers)(
        shape, seed, *limits, wanted, name=name
    )


@operation("StatelessMultinomial", default="stateless_multinomial/StatelessMultinomial")
@example("print(tf.random.stateless_multinomial([[0.0, 0.0]], 5, [1, 2]).shape)", "(1, 5)")
def stateless_multinomial(
    logits: Alone, num_samples: Number, seed: Alone, output_dtype: Dtype = int64
) -> Any:
    """``tf.multinomial`` whose numbers two integers ``seed`` decide."""
    return _classes(logits, num_samples, output_dtype, _key_of(seed), 0)


def stateless_categorical(
    logits: Any, num_samples: Any, seed: Any, dtype: Any = int64, name: str | None = None
) -> Any:
    """``tf.random.stateless_multinomial``.

    >>> import twofold.static as tf
    >>> print(tf.random.stateless_categorical(tf.zeros([2, 3]), 4, [1, 2]).shape)
    (2, 4)
    """
    return stateless_multinomial(logits, num_samples, seed, dtype, name=name)


poisson, gamma = random_poisson, random_gamma
normal, uniform, shuffle = random_normal, random_uniform, random_shuffle
set_seed = set_random_seed

__getattr__, __dir__ = look_up(__name__)
