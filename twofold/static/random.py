"""Random tensors: drawn anew in every run, from the seeds of graph and operation and the number of the run.

The streams (Philox, see ``twofold.ops.random.sampling``) are not TensorFlow's, so equal seeds give other numbers there.
"""

from __future__ import annotations

import secrets
from typing import Any

from twofold.dtypes import finfo, float32, float64
from twofold.ops.base import apply, broadcast_shapes, ops
from twofold.ops.random import distributions
from twofold.ops.random.gamma_variates import draw_log_gamma
from twofold.static.define import as_dtype, as_tensor, convert_to_tensor, define, sizes
from twofold.static.docstrings import example
from twofold.static.graph import get_default_graph

_MASK = 0x7FFFFFFFFFFFFFFF


@example(
    "tf.set_random_seed(5)",
    "x = tf.random_uniform([3])",
    "print((session.run(x) != session.run(x)).all())",
    "True",
)
def set_random_seed(seed: int) -> None:
    """Set the seed of the default graph, so that each session draws the same numbers in each program."""
    get_default_graph().seed = int(seed)


def next_key(seed: int | None) -> int:
    """The key of one more drawing operation of the default graph."""
    graph = get_default_graph()
    graph.draw_count += 1
    if seed is None and graph.seed is None:
        return secrets.randbits(62)
    first = 87654321 if graph.seed is None else graph.seed
    second = graph.draw_count if seed is None else int(seed) + (1 << 32)
    return (first * 0x9E3779B97F4A7C15 + second * 0xBF58476D1CE4E5B9 + 1) & _MASK


def _draw(name: str, shape: Any, dtype: Any, low: Any, high: Any, key: int, counter: Any) -> Any:
    return apply(name, key, counter, low, high, attrs=(sizes(shape), dtype))


def _truncated(shape: Any, dtype: Any, mean: Any, stddev: Any, key: int, counter: Any) -> Any:
    value = distributions.draw("truncated_normal", key, counter, sizes(shape), dtype, -2.0, 2.0)
    return ops.add(ops.multiply(value, stddev), mean)


def _random(
    type: str, name: str, shape: Any, dtype: Any, low: Any, high: Any, seed: int | None, label: str | None
) -> Any:
    keywords = {
        "name": name,
        "shape": shape,
        "dtype": as_dtype(dtype),
        "low": as_tensor(low),
        "high": as_tensor(high),
        "key": next_key(seed),
    }
    return define(type, _draw, (), keywords, label or type, frozenset({"shape"}), True).outputs[0]


@example("print(tf.random_normal([2, 3]).shape)", "(2, 3)")
def random_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """Numbers from the normal distribution with this mean and standard deviation."""
    return _random("random_normal", "random_normal", shape, dtype, mean, stddev, seed, name)


@example("x = tf.random_uniform([100], 2.0, 3.0)", "tf.reduce_all((x >= 2.0) & (x < 3.0))", "True")
def random_uniform(
    shape: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """Numbers drawn evenly from [minval, maxval); for an integer dtype ``maxval`` must be given."""
    wanted = as_dtype(dtype)
    if wanted.kind != "f":
        if maxval is None:
            raise ValueError("random_uniform: an integer dtype needs maxval. Give it.")
        return _random(
            "random_uniform_int",
            "random_integers",
            shape,
            wanted,
            minval,
            maxval,
            seed,
            name or "random_uniform",
        )
    low = float(minval) if isinstance(minval, int) else minval
    high = 1.0 if maxval is None else float(maxval) if isinstance(maxval, int) else maxval
    return _random("random_uniform", "random_uniform", shape, wanted, low, high, seed, name)


@example("tf.reduce_all(tf.abs(tf.truncated_normal([100])) <= 2.0)", "True")
def truncated_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """Normal numbers none of which is further than two standard deviations from the mean."""
    keywords = {
        "shape": shape,
        "dtype": as_dtype(dtype),
        "mean": as_tensor(mean),
        "stddev": as_tensor(stddev),
        "key": next_key(seed),
    }
    label, known = name or "truncated_normal", frozenset({"shape"})
    return define("truncated_normal", _truncated, (), keywords, label, known, True).outputs[0]


def _shuffled(value: Any, key: int, counter: Any) -> Any:
    return ops.index_select(value, 0, distributions.draw_permutation(key, counter, int(value.shape[0])))


@example("tf.sort(tf.random_shuffle([3, 1, 2]))", "[1 2 3]")
def random_shuffle(value: Any, seed: int | None = None, name: str | None = None) -> Any:
    """``value`` with its first axis in random order."""
    return define(
        "RandomShuffle",
        _shuffled,
        (),
        {"value": convert_to_tensor(value), "key": next_key(seed)},
        name,
        draws=True,
    ).outputs[0]


def _chosen(logits: Any, count: Any, dtype: Any, key: int, counter: Any) -> Any:
    weights = ops.softmax(ops.cast(logits, float64), -1)
    return ops.cast(distributions.draw_choice(weights, key, counter, int(count), True), dtype)


@example("print(tf.multinomial([[0.0, 0.0]], 5).shape)", "(1, 5)")
def multinomial(
    logits: Any,
    num_samples: Any,
    seed: int | None = None,
    name: str | None = None,
    output_dtype: Any = "int64",
) -> Any:
    """``num_samples`` class numbers, with replacement, for each row of unnormalised log-probabilities."""
    keywords = {
        "logits": convert_to_tensor(logits),
        "count": num_samples,
        "dtype": as_dtype(output_dtype),
        "key": next_key(seed),
    }
    return define(
        "Multinomial", _chosen, (), keywords, name or "multinomial/Multinomial", frozenset({"count"}), True
    ).outputs[0]


def _rates(lam: Any, shape: Any, dtype: Any, key: int, counter: Any) -> Any:
    rates = ops.broadcast_to(ops.cast(lam, float64), (*sizes(shape), *lam.shape))
    return ops.cast(distributions.draw_poisson(rates, key, counter), dtype)


def random_poisson(
    lam: Any, shape: Any, dtype: Any = float32, seed: int | None = None, name: str | None = None
) -> Any:
    """Poisson numbers: ``shape`` of them for each rate in ``lam``.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     session.run(tf.random_poisson([0.0, 5.0], [3])).shape
    (3, 2)
    """
    keywords = {
        "lam": convert_to_tensor(lam),
        "shape": shape,
        "dtype": as_dtype(dtype),
        "key": next_key(seed),
    }
    return define(
        "RandomPoissonV2", _rates, (), keywords, name or "random_poisson", frozenset({"shape"}), True
    ).outputs[0]


def _gammas(shape: Any, alpha: Any, beta: Any, dtype: Any, key: int, counter: Any) -> Any:
    alpha, beta = (ops.cast(value, dtype) for value in (alpha, beta))
    spread = ops.broadcast_to(alpha, (*sizes(shape), *broadcast_shapes(alpha.shape, beta.shape)))
    drawn = ops.cast(ops.exp(draw_log_gamma(spread, key, counter)), dtype)
    return ops.clamp(ops.divide(drawn, beta), finfo(dtype).tiny)


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

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     session.run(tf.random_gamma([3], [0.5, 2.0])).shape
    (3, 2)
    """
    wanted = as_dtype(dtype)
    keywords = {
        "shape": shape,
        "alpha": convert_to_tensor(alpha, wanted),
        "beta": convert_to_tensor(1.0 if beta is None else beta, wanted),
        "dtype": wanted,
        "key": next_key(seed),
    }
    label, known = name or "random_gamma", frozenset({"shape"})
    return define("RandomGamma", _gammas, (), keywords, label, known, True).outputs[0]


poisson, gamma = random_poisson, random_gamma
normal, uniform, categorical, shuffle = random_normal, random_uniform, multinomial, random_shuffle
set_seed = set_random_seed
