"""Functional programs for JAX, every one under ``jax.jit``.

JAX computes in the background; arrays are waited for at the end of a chunk of calls only, which favours it.
"""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy

from timing import Case
from workloads import inputs

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


def two_scalars() -> Case:
    """A compiled function of two Python numbers."""
    function = jax.jit(lambda a, b: a * b + a)

    def call() -> float:
        return float(function(3.0, 4.0))

    return Case(call, check=lambda: [call()])


def never_seen() -> Case:
    """A chain of 100 operations in an order not met before: traced, compiled, run."""
    x, w, b = (jnp.asarray(array) for array in inputs.tiny())
    endless = inputs.recipes()
    starts = itertools.count(0, inputs.SHIFT)

    def call() -> Any:
        start = next(starts)
        recipe = endless[start : start + inputs.CHAIN]

        def run(c: Any, w: Any, b: Any) -> Any:
            for kind in recipe:
                c = c * w if kind == 0 else c + b if kind == 1 else jnp.tanh(c) if kind == 2 else c - b
            return c

        return jax.jit(run)(x, w, b).block_until_ready()

    return Case(call, inputs.CHAIN, check=lambda: [float(call().sum())])


def chain() -> Case:
    """100 element-wise operations on ten numbers, and their gradient."""
    arrays = [jnp.asarray(array) for array in inputs.tiny()]

    def loss(x: Any, w: Any, b: Any) -> Any:
        for _ in range(inputs.CHAIN // 4):
            x = jnp.tanh(x * w + b) - b
        return x.sum()

    function = jax.jit(jax.value_and_grad(loss, (0, 1, 2)))

    def call() -> list[Any]:
        value, gradients = function(*arrays)
        return [float(value), *gradients]

    return Case(
        call,
        finish=jax.block_until_ready,
        check=lambda: [float(numpy.sum(result)) for result in call()],
    )


def call_six() -> Case:
    """A call of a compiled function of six small arrays."""
    arrays = [jnp.asarray(array) for array in inputs.six()]
    function = jax.jit(lambda x, w1, b1, w2, b2, r: jax.nn.relu(x @ w1 + b1) @ w2 + b2 + r)
    return Case(
        lambda: function(*arrays),
        finish=jax.block_until_ready,
        check=lambda: [float(function(*arrays).sum())],
    )


def _step(state: Any, x: Any, y: Any) -> Any:
    """One step of Adam (D. Kingma, J. Ba, 2015) with bias correction."""
    weights, first, second, count = state

    def loss_of(weights: Any) -> Any:
        hidden = x
        for index in range(0, len(weights), 2):
            hidden = hidden @ weights[index].T + weights[index + 1]
            if index + 2 < len(weights):
                hidden = jax.nn.relu(hidden)
        rows = jax.nn.log_softmax(hidden)
        return -jnp.take_along_axis(rows, y[:, None], 1).mean()

    loss, gradients = jax.value_and_grad(loss_of)(weights)
    count = count + 1
    first = [BETA1 * m + (1 - BETA1) * g for m, g in zip(first, gradients)]
    second = [BETA2 * v + (1 - BETA2) * g * g for v, g in zip(second, gradients)]
    rate = inputs.LEARNING_RATE * jnp.sqrt(1 - BETA2**count) / (1 - BETA1**count)
    moved = [w - rate * m / (jnp.sqrt(v) + EPSILON) for w, m, v in zip(weights, first, second)]
    return (moved, first, second, count), loss


def train(kind: str, size: int) -> Case:
    """One step of training with Adam; the loss is read."""
    weights = [jnp.asarray(array) for array in inputs.network(kind)]
    zeros = [jnp.zeros_like(weight) for weight in weights]
    state = [(weights, zeros, [jnp.zeros_like(weight) for weight in weights], jnp.float32(0))]
    steps = itertools.cycle([(jnp.asarray(x), jnp.asarray(y)) for x, y in inputs.batches(kind, size)])
    step = jax.jit(_step, donate_argnums=0)

    def call() -> float:
        state[0], loss = step(state[0], *next(steps))
        return float(loss)

    return Case(call, check=lambda: [call() for _ in range(5)])


def case(workload: str) -> Case | None:
    """The named workload, or None where it has no meaning."""
    simple = {"two_scalars": two_scalars, "never_seen": never_seen, "chain": chain, "call_six": call_six}
    if workload in simple:
        return simple[workload]()
    if workload.startswith("train"):
        _, kind, size = workload.split("_")
        return train(kind, int(size))
    return None
