"""A helper that reads outputs instead of given inputs, beside the recurrence in NumPy."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import twofold.static as tf

X = numpy.random.default_rng(3).normal(size=(2, 4, 3)).astype(numpy.float32)
MORE = numpy.random.default_rng(4).normal(size=(2, 4, 2)).astype(numpy.float32)


@pytest.mark.parametrize("probability", [0.0, 1.0])
@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("changed", [False, True])
def test_scheduled_outputs(probability: float, joined: bool, changed: bool) -> None:
    seq2seq = tf.contrib.seq2seq
    with tf.Graph().as_default(), tf.Session() as session:
        helper = seq2seq.ScheduledOutputTrainingHelper(
            X,
            [4, 4],
            probability,
            next_inputs_fn=(lambda outputs: outputs * 2) if changed else None,
            auxiliary_inputs=MORE if joined else None,
        )
        decoder = seq2seq.BasicDecoder(tf.nn.rnn_cell.BasicRNNCell(3), helper, tf.zeros([2, 3]))
        outputs, _, _ = seq2seq.dynamic_decode(decoder)
        session.run(tf.global_variables_initializer())
        kernel, bias = session.run(tf.global_variables())
        found = session.run(outputs.rnn_output)
    state = own = numpy.zeros((2, 3))
    for k in range(4):
        given: Any = X[:, k] if probability == 0 or k == 0 else own * (2 if changed else 1)
        given = numpy.concatenate([given, MORE[:, k]], 1) if joined else given
        state = own = numpy.tanh(numpy.concatenate([given, state], 1) @ kernel + bias)
        numpy.testing.assert_allclose(found[:, k], own, rtol=1e-4, atol=1e-5)
