"""Cells that only ``tf.contrib.rnn`` has, beside their formulas in NumPy, and masks that all steps share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest

import twofold.static as tf

rnn = tf.contrib.rnn
X = numpy.random.default_rng(1).normal(size=(2, 4, 3)).astype(numpy.float32)
sigmoid = lambda x: 1 / (1 + numpy.exp(-x))


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        tf.set_random_seed(2)
        yield


def run(cell: Any, values: Any = X) -> tuple[Any, dict[str, Any]]:
    """Outputs of all steps, and the variables by the ends of their names."""
    initial = tf.random_normal_initializer(stddev=0.5)
    with tf.variable_scope("", initializer=initial):
        outputs, _ = tf.nn.dynamic_rnn(cell, tf.constant(values), dtype=tf.float32)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = session.run({v.op.name.split("/", 2)[-1]: v for v in tf.global_variables()})
        return session.run(outputs), found


def steps(function: Callable[[Any, Any], tuple[Any, Any]], state: Any) -> Any:
    found = []
    for k in range(X.shape[1]):
        output, state = function(X[:, k], state)
        found.append(output)
    return numpy.stack(found, 1)


@pytest.mark.parametrize("projected", [None, 2])
def test_nas_cell(projected: int | None) -> None:
    outputs, v = run(rnn.NASCell(4, num_proj=projected, use_bias=True))

    def step(x: Any, state: Any) -> Any:
        memory, hidden = state
        a = numpy.split(x @ v["kernel"], 8, 1)
        b = numpy.split(hidden @ v["recurrent_kernel"] + v["bias"], 8, 1)
        first = numpy.tanh(sigmoid(a[0] + b[0]) * numpy.maximum(a[1] + b[1], 0))
        second = numpy.tanh(sigmoid(a[2] + b[2]) + numpy.maximum(a[3] * b[3], 0))
        third = numpy.tanh(numpy.tanh(a[4] + b[4]) * sigmoid(a[5] + b[5]))
        fourth = sigmoid(numpy.tanh(a[6] + b[6]) + sigmoid(a[7] + b[7]))
        memory = numpy.tanh(first + memory) * second
        hidden = numpy.tanh(memory * numpy.tanh(third + fourth))
        hidden = hidden @ v["projection_weights"] if projected else hidden
        return hidden, (memory, hidden)

    wanted = steps(step, (numpy.zeros((2, 4)), numpy.zeros((2, projected or 4))))
    numpy.testing.assert_allclose(outputs, wanted, rtol=1e-5, atol=1e-6)


def test_update_gate_cell() -> None:
    outputs, v = run(rnn.UGRNNCell(4, forget_bias=0.5))

    def step(x: Any, state: Any) -> Any:
        gate, new = numpy.split(numpy.concatenate([x, state], 1) @ v["kernel"] + v["bias"], 2, 1)
        gate = sigmoid(gate + 0.5)
        state = gate * state + (1 - gate) * numpy.tanh(new)
        return state, state

    numpy.testing.assert_allclose(outputs, steps(step, numpy.zeros((2, 4))), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "block, plain",
    [
        (
            lambda: rnn.LSTMBlockCell(4, forget_bias=0.3, cell_clip=0.2),
            lambda: rnn.LSTMCell(4, False, 0.2, forget_bias=0.3),
        ),
        (lambda: rnn.LSTMBlockCell(4, use_peephole=True), lambda: rnn.LSTMCell(4, True)),
        (lambda: rnn.GRUBlockCell(4), lambda: rnn.GRUCell(4)),
        (lambda: rnn.GRUBlockCellV2(cell_size=4), lambda: rnn.GRUCell(4)),
    ],
)  # fmt: skip
def test_cells_of_one_kernel_are_the_plain_ones(block: Any, plain: Any) -> None:
    outputs, v = run(block())
    with tf.Graph().as_default(), tf.Session() as session:
        found, _ = tf.nn.dynamic_rnn(plain(), tf.constant(X), dtype=tf.float32)
        for variable, value in zip(tf.global_variables(), v.values(), strict=True):
            variable.load(value, session)
        numpy.testing.assert_array_equal(session.run(found), outputs)


def test_whole_sequences_at_once() -> None:
    cell = rnn.LSTMBlockFusedCell(4)
    outputs, state = cell(tf.constant(X.swapaxes(0, 1)), dtype=tf.float32, sequence_length=[4, 2])
    again, _ = cell(tf.constant(X.swapaxes(0, 1)), initial_state=state)
    assert [v.op.name for v in tf.global_variables()] == ["lstm_fused_cell/kernel", "lstm_fused_cell/bias"]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found, last, other = session.run([outputs, state, again])
    assert not found[2:, 1].any() and found[:2, 1].all()
    numpy.testing.assert_array_equal(last.h, [found[3, 0], found[1, 1]])
    assert (other[0] != found[0]).all()


def test_convolutions_as_products() -> None:
    """Where all of an image but one pixel is zero, the middle of the kernel decides."""
    image = numpy.zeros((1, 2, 5, 5, 2), numpy.float32)
    image[0, :, 2, 2] = X[0, :2, :2]
    outputs, v = run(rnn.Conv2DLSTMCell([5, 5, 2], 3, [1, 1], skip_connection=True), image)
    memory, hidden = numpy.zeros(3), numpy.zeros(3)
    for k in range(2):
        gates = numpy.concatenate([image[0, k, 2, 2], hidden]) @ v["kernel"][0, 0] + v["biases"]
        into, new, forget, out = numpy.split(gates, 4)
        memory = sigmoid(forget + 1) * memory + sigmoid(into) * numpy.tanh(new)
        hidden = numpy.tanh(memory) * sigmoid(out)
        numpy.testing.assert_allclose(outputs[0, k, 2, 2, :3], hidden, rtol=1e-5)
        numpy.testing.assert_array_equal(outputs[0, k, ..., 3:], image[0, k])


def test_attention_to_the_latest_states() -> None:
    outputs, v = run(rnn.AttentionCellWrapper(rnn.BasicRNNCell(4), 2, state_is_tuple=False))
    own = v["basic_rnn_cell/kernel"], v["basic_rnn_cell/bias"]

    def step(x: Any, state: Any) -> Any:
        hidden, attention, kept = state
        joined = numpy.concatenate([x, attention], 1) @ v["kernel"] + v["bias"]
        hidden = numpy.tanh(numpy.concatenate([joined, hidden], 1) @ own[0] + own[1])
        asked = hidden @ v["attention/kernel"] + v["attention/bias"]
        score = (v["attention/attn_v"] * numpy.tanh(kept @ v["attention/attn_w"][0, 0] + asked[:, None])).sum(
            2
        )
        weights = numpy.exp(score) / numpy.exp(score).sum(1, keepdims=True)
        attention = (weights[..., None] * kept).sum(1)
        made = numpy.concatenate([hidden, attention], 1) @ v["attn_output_projection/kernel"]
        made = made + v["attn_output_projection/bias"]
        return made, (hidden, attention, numpy.concatenate([kept[:, 1:], made[:, None]], 1))

    wanted = steps(step, (numpy.zeros((2, 4)), numpy.zeros((2, 4)), numpy.zeros((2, 2, 4))))
    numpy.testing.assert_allclose(outputs, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("coupled", [True, False])
def test_highway(coupled: bool) -> None:
    cell = rnn.HighwayWrapper(rnn.GRUCell(3), coupled, 0.7)
    outputs, _ = tf.nn.dynamic_rnn(cell, tf.constant(X), dtype=tf.float32)
    names = {v.op.name.split("/")[-1]: v for v in tf.global_variables()}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for name in ("carry_w", "transform_w") if not coupled else ("carry_w",):
            session.run(names[name].assign(tf.zeros([3, 3])))
        carry, found = sigmoid(numpy.float32(0.7)), session.run(outputs)
        inner, _ = tf.nn.dynamic_rnn(cell._cell, tf.constant(X), dtype=tf.float32)
        plain = session.run(inner)
    transform = 1 - carry if coupled else sigmoid(-numpy.float32(0.7))
    numpy.testing.assert_allclose(found, X * carry + plain * transform, rtol=1e-5)


def test_one_mask_for_all_steps() -> None:
    cell = rnn.DropoutWrapper(
        rnn.BasicRNNCell(50), output_keep_prob=0.5, variational_recurrent=True, dtype=tf.float32
    )
    outputs, _ = tf.nn.dynamic_rnn(cell, tf.ones([2, 6, 3]), dtype=tf.float32)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        first, second = session.run(outputs), session.run(outputs)
    for found in (first, second):
        dropped = found == 0
        assert 0 < dropped.mean() < 1 and (dropped == dropped[:1, :1]).all()
    assert ((first == 0) != (second == 0)).any()
    with pytest.raises(ValueError, match="without dtype"):
        rnn.DropoutWrapper(rnn.GRUCell(2), 0.5, variational_recurrent=True, dtype=tf.float32)


@pytest.mark.parametrize("lengths", [None, [2, 4]])
def test_sequences_that_are_gone_through_from_their_ends(lengths):
    x = numpy.random.default_rng(0).standard_normal((4, 2, 3)).astype("f")
    with tf.Graph().as_default(), tf.Session() as session:
        fused = tf.contrib.rnn.LSTMBlockFusedCell(5, name="c")
        back = tf.contrib.rnn.TimeReversedFusedRNN(fused)(x, dtype=tf.float32, sequence_length=lengths)
        turned = x[::-1].copy()
        if lengths:
            turned = numpy.stack(
                [numpy.concatenate([x[:n, k][::-1], x[n:, k]]) for k, n in enumerate(lengths)], 1
            )
        ahead = fused(turned, dtype=tf.float32, sequence_length=lengths)
        session.run(tf.global_variables_initializer())
        (found, last), (wanted, end) = session.run([back, ahead])
    for k, n in enumerate(lengths or [4, 4]):
        numpy.testing.assert_allclose(found[:n, k], wanted[:n, k][::-1], rtol=1e-5)
        assert (found[n:, k] == 0).all()
    numpy.testing.assert_allclose(last.h, end.h, rtol=1e-5)
