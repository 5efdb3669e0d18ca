"""Long short-term memories with other gates beside their formulas in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest

import twofold.static as tf

rnn = tf.contrib.rnn
X = numpy.random.default_rng(1).normal(size=(2, 4, 3)).astype(numpy.float32)
TIMES = numpy.cumsum(numpy.full((2, 4, 1), 0.7, numpy.float32), 1)
sigmoid = lambda x: 1 / (1 + numpy.exp(-x))


def normal(x: Any, v: Any, name: str) -> Any:
    centred = x - x.mean(1, keepdims=True)
    return centred / x.std(1, keepdims=True) * v[f"{name}/gamma"] + v[f"{name}/beta"]


def layer_norm(x: Any, state: Any, v: Any) -> Any:
    memory, hidden = state
    gates = numpy.split(numpy.concatenate([x, hidden], 1) @ v["kernel"], 4, 1)
    names = ("input", "transform", "forget", "output")
    into, new, forget, out = (normal(one, v, name) for one, name in zip(gates, names))
    memory = normal(sigmoid(forget + 1) * memory + sigmoid(into) * numpy.tanh(new), v, "state")
    hidden = sigmoid(out) * numpy.tanh(memory)
    return hidden, (memory, hidden)


def groups(x: Any, state: Any, v: Any) -> Any:
    memory, hidden = state
    made = []
    for k in range(2):
        own = numpy.concatenate([x[:, k : k + 1], hidden[:, 2 * k : 2 * k + 2]], 1)
        made.append(numpy.split(own @ v[f"group{k}/kernel"], 4, 1))
    gates = [numpy.concatenate(one, 1) + v[f"bias_{name}"] for one, name in zip(zip(*made), "ijfo")]
    into, new, forget, out = gates
    memory = sigmoid(forget + 1) * memory + sigmoid(into) * numpy.tanh(new)
    hidden = sigmoid(out) * numpy.tanh(memory)
    return hidden, (memory, hidden)


def coupled(x: Any, state: Any, v: Any) -> Any:
    memory, hidden = state
    new, forget, out = numpy.split(numpy.concatenate([x, hidden], 1) @ v["W_0"] + v["B"], 3, 1)
    kept = sigmoid(forget + 1 + v["W_F_diag"] * memory)
    memory = kept * memory + (1 - kept) * numpy.tanh(new)
    hidden = sigmoid(out + v["W_O_diag"] * memory) * numpy.tanh(memory)
    return hidden, (memory, hidden)


def phased(given: Any, state: Any, v: Any) -> Any:
    time, x = given
    memory, hidden = state
    both = numpy.concatenate([x, hidden], 1)
    into, forget = numpy.split(sigmoid(both @ v["mask_gates/kernel"] + v["mask_gates/bias"]), 2, 1)
    new = memory * forget + into * numpy.tanh(both @ v["new_input/kernel"] + v["new_input/bias"])
    out = numpy.tanh(new) * sigmoid(both @ v["output_gate/kernel"] + v["output_gate/bias"])
    share = ((time - v["phase"]) % v["period"]) / v["period"]
    rise = 2 * share / v["ratio_on"]
    open_ = numpy.where(
        share < v["ratio_on"] / 2, rise, numpy.where(share < v["ratio_on"], 2 - rise, 1e-3 * share)
    )
    hidden = open_ * out + (1 - open_) * hidden
    return hidden, (open_ * new + (1 - open_) * memory, hidden)


def simple(x: Any, state: Any, v: Any) -> Any:
    new, forget, reset, highway = numpy.split(x @ v["kernel"], 4, 1)
    forget, reset = sigmoid(forget + v["bias"][:4]), sigmoid(reset + v["bias"][4:])
    memory = forget * state + (1 - forget) * new
    return reset * numpy.tanh(memory) + (1 - reset) * highway, memory


def independent(x: Any, state: Any, v: Any) -> Any:
    made = numpy.tanh(x @ v["kernel_w"] + state * v["kernel_u"] + v["bias"])
    return made, made


CELLS: list[Any] = [
    (lambda: rnn.LayerNormLSTMCell(4, layer_norm=True), layer_norm, X, 2),
    (lambda: rnn.GLSTMCell(4, number_of_groups=2), groups, X[..., :2], 2),
    (lambda: rnn.CoupledInputForgetGateLSTMCell(4, use_peepholes=True), coupled, X, 2),
    (lambda: rnn.PhasedLSTMCell(4), phased, (TIMES, X), 2),
    (lambda: rnn.SRUCell(4), simple, X, 1),
    (lambda: rnn.IndRNNCell(4), independent, X, 1),
]


@pytest.mark.parametrize("make, step, values, states", CELLS)
def test_cell(make: Callable[[], Any], step: Callable[..., Any], values: Any, states: int) -> None:
    several = isinstance(values, tuple)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(2)
        given = tuple(map(tf.constant, values)) if several else tf.constant(values)
        initial = tf.random_normal_initializer(stddev=0.5)
        with tf.variable_scope("net", initializer=initial):
            outputs, _ = tf.nn.dynamic_rnn(make(), given, dtype=tf.float32)
        session.run(tf.global_variables_initializer())
        v = session.run({one.op.name.split("/", 3)[-1]: one for one in tf.global_variables()})
        found = session.run(outputs)
    zeros = numpy.zeros((2, 4))
    state: Any = (zeros, zeros) if states == 2 else zeros
    for k in range(4):
        now = tuple(one[:, k] for one in values) if several else values[:, k]
        wanted, state = step(now, state, v)
        numpy.testing.assert_allclose(found[:, k], wanted, rtol=2e-4, atol=1e-5)


def test_groups_must_divide_the_units() -> None:
    with pytest.raises(ValueError, match="in 3 groups"):
        rnn.GLSTMCell(4, number_of_groups=3)
