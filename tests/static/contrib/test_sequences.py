"""Decoders, attention, losses of sequences and chains of tags."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import twofold.static as tf
from twofold.errors import ArgumentError

seq2seq, legacy, crf = tf.contrib.seq2seq, tf.contrib.legacy_seq2seq, tf.contrib.crf
RNG = numpy.random.default_rng(1)


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def run(value: Any, feeds: Any = None) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(value, feeds)


LOGITS = RNG.normal(size=(2, 3, 4)).astype(numpy.float32)
TARGETS = numpy.array([[0, 1, 2], [3, 2, 1]])
WEIGHTS = numpy.array([[1.0, 0.5, 0.0], [2.0, 1.0, 1.0]], numpy.float32)


def entropy() -> Any:
    exp = numpy.exp(LOGITS - LOGITS.max(2, keepdims=True))
    chosen = numpy.take_along_axis(exp / exp.sum(2, keepdims=True), TARGETS[:, :, None], 2)
    return -numpy.log(chosen[:, :, 0]) * WEIGHTS


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, lambda e: e.sum() / WEIGHTS.sum()),
        ({"average_across_batch": False}, lambda e: e.sum(1) / WEIGHTS.sum(1)),
        ({"average_across_timesteps": False}, lambda e: e.sum(0) / WEIGHTS.sum(0)),
        ({"average_across_timesteps": False, "average_across_batch": False}, lambda e: e),
        (
            {
                "average_across_timesteps": False,
                "average_across_batch": False,
                "sum_over_timesteps": True,
                "sum_over_batch": True,
            },
            lambda e: e.sum() / 5,
        ),
    ],
)
def test_losses_of_sequences(options: dict[str, bool], wanted: Any) -> None:
    found = run(seq2seq.sequence_loss(LOGITS, TARGETS, WEIGHTS, **options))
    numpy.testing.assert_allclose(found, wanted(entropy()), rtol=1e-5)


def test_losses_of_lists() -> None:
    lists = [list(numpy.moveaxis(one, 1, 0)) for one in (LOGITS, TARGETS, WEIGHTS)]
    each, mean = run([legacy.sequence_loss_by_example(*lists), legacy.sequence_loss(*lists)])
    numpy.testing.assert_allclose(each, entropy().sum(1) / WEIGHTS.sum(1), rtol=1e-5)
    assert mean == pytest.approx(each.mean(), rel=1e-6)
    with pytest.raises(ArgumentError, match="targets"):
        legacy.sequence_loss_by_example(lists[0], lists[1][:2], lists[2])


def test_decoding_given_inputs_is_the_recurrent_network() -> None:
    inputs = RNG.normal(size=(2, 4, 3)).astype(numpy.float32)
    cell = tf.nn.rnn_cell.LSTMCell(5)
    lengths = tf.placeholder(tf.int32, [None])
    helper = seq2seq.TrainingHelper(inputs, lengths)
    decoder = seq2seq.BasicDecoder(cell, helper, cell.zero_state(2, tf.float32))
    outputs, state, found = seq2seq.dynamic_decode(decoder, impute_finished=True)
    plain, last = tf.nn.dynamic_rnn(cell, inputs, lengths, dtype=tf.float32)
    for given in ([4, 2], [3, 3]):
        one, own, n, two, other = run([outputs.rnn_output, state, found, plain, last], {lengths: given})
        assert n.tolist() == given and one.shape == (2, max(given), 5)
        numpy.testing.assert_array_equal(one, two[:, : max(given)])
        numpy.testing.assert_array_equal(own, other)


def test_greedy_decoding_reads_what_it_found() -> None:
    table = RNG.normal(size=(6, 3)).astype(numpy.float32)
    cell, layer = tf.nn.rnn_cell.GRUCell(4), tf.layers.Dense(6)
    helper = seq2seq.GreedyEmbeddingHelper(table, [1, 2], 5)
    decoder = seq2seq.BasicDecoder(cell, helper, cell.zero_state(2, tf.float32), layer)
    outputs, _, lengths = seq2seq.dynamic_decode(decoder, maximum_iterations=4)
    state, ids, steps = cell.zero_state(2, tf.float32), tf.constant([1, 2]), []
    for _ in range(4):
        given, state = cell(tf.gather(table, ids), state)
        ids = tf.argmax(layer(given), 1, output_type=tf.int32)
        steps.append(ids)
    found, n, wanted = run([outputs.sample_id, lengths, tf.stack(steps, 1)])
    for row, length, own in zip(found, n, wanted, strict=True):
        ends = [k for k, symbol in enumerate(own) if symbol == 5]
        assert length == (ends[0] + 1 if ends else 4)
        assert row[:length].tolist() == own[:length].tolist()


@pytest.mark.parametrize("kind", ["BahdanauAttention", "LuongAttention"])
def test_attention_looks_at_what_is_there(kind: str) -> None:
    memory = RNG.normal(size=(2, 5, 4)).astype(numpy.float32)
    mechanism = getattr(seq2seq, kind)(4, memory, memory_sequence_length=[5, 2])
    cell = seq2seq.AttentionWrapper(tf.nn.rnn_cell.GRUCell(4), mechanism, None, alignment_history=True)
    helper = seq2seq.TrainingHelper(tf.ones([2, 3, 2]), [3, 3])
    decoder = seq2seq.BasicDecoder(cell, helper, cell.zero_state(2, tf.float32))
    outputs, state, _ = seq2seq.dynamic_decode(decoder)
    loss = tf.reduce_sum(tf.square(outputs.rnn_output))
    gradients = tf.gradients(loss, tf.trainable_variables())
    assert all(gradient is not None for gradient in gradients)
    weights, found = run([state.alignment_history.stack(), outputs.rnn_output])
    assert weights.shape == (3, 2, 5) and not weights[:, 1, 2:].any()
    numpy.testing.assert_allclose(weights.sum(2), 1, rtol=1e-5)
    masked = memory * (numpy.arange(5)[:, None] < numpy.array([5, 2])[:, None, None])
    numpy.testing.assert_allclose(found, numpy.einsum("tbs,bsd->btd", weights, masked), rtol=1e-4, atol=1e-5)


def test_cells_with_attention_go_along_sequences_and_keep_alignments() -> None:
    memory = RNG.normal(size=(2, 5, 4)).astype(numpy.float32)
    with tf.variable_scope("first"):
        mechanism = seq2seq.BahdanauAttention(4, memory)
        cell = seq2seq.AttentionWrapper(tf.nn.rnn_cell.GRUCell(4), mechanism, 3, alignment_history=True)
        given = tf.constant(RNG.normal(size=(2, 3, 2)), tf.float32)
        outputs, state = tf.nn.dynamic_rnn(cell, given, [3, 2], dtype=tf.float32)
    assert outputs.shape.as_list() == [2, None, 3] or outputs.shape.as_list() == [2, 3, 3]
    names = [one.name for one in tf.trainable_variables()]
    assert names[0] == "first/memory_layer/kernel:0"
    assert "first/rnn/attention_wrapper/bahdanau_attention/query_layer/kernel:0" in names
    assert "first/rnn/attention_wrapper/attention_layer/kernel:0" in names and len(names) == 8
    assert all(one is not None for one in tf.gradients(outputs, tf.trainable_variables()))
    weights, aligned, found = run([state.alignment_history.stack(), state.alignments, outputs])
    assert weights.shape == (3, 2, 5) and not found[1, 2].any()
    numpy.testing.assert_array_equal(aligned, [weights[2, 0], weights[1, 1]])


def test_two_mechanisms_have_layers_of_their_own() -> None:
    memory = tf.constant(RNG.normal(size=(2, 5, 4)), tf.float32)
    both = [seq2seq.BahdanauAttention(4, memory), seq2seq.LuongAttention(4, memory)]
    cell = seq2seq.AttentionWrapper(tf.nn.rnn_cell.GRUCell(4), both, [3, 2])
    output, state = cell(tf.ones([2, 2]), cell.zero_state(2, tf.float32))
    assert output.shape.as_list() == [2, 5] and len(state.alignments) == 2
    names = [one.name for one in tf.trainable_variables()]
    assert {"memory_layer/kernel:0", "memory_layer_1/kernel:0"} < set(names)


def test_a_mechanism_of_a_program_has_a_state() -> None:
    class Located(seq2seq.BahdanauAttention):  # as in Tacotron 2: alignments so far go through a convolution
        def __init__(self, units: int, memory: object) -> None:
            super().__init__(units, memory, name="Located")
            self.location = tf.layers.Conv1D(2, 3, padding="same", name="location")

        def __call__(self, query: object, state: object) -> tuple[object, object]:
            with tf.variable_scope(None, "located", [query]):
                spread = tf.reduce_sum(self.location(tf.expand_dims(state, 2)), 2)
                score = tf.reduce_sum(tf.tanh(tf.expand_dims(self.query_layer(query), 1) + self.keys), 2)
                alignments = self._probability_fn(score + spread, state)
            return alignments, alignments + state

    memory = tf.constant(RNG.normal(size=(2, 5, 4)), tf.float32)
    cell = seq2seq.AttentionWrapper(tf.nn.rnn_cell.GRUCell(4), Located(4, memory), 3)
    state = cell.zero_state(2, tf.float32)
    for _ in range(2):
        _, state = cell(tf.ones([2, 2]), state)
    total, last = run([state.attention_state, state.alignments])
    numpy.testing.assert_allclose(total.sum(1), 2, rtol=1e-5)
    numpy.testing.assert_allclose(last.sum(1), 1, rtol=1e-5)


@pytest.mark.parametrize("kind", ["BahdanauMonotonicAttention", "LuongMonotonicAttention"])
def test_monotonic_attention_goes_on_from_the_alignments_before(kind: str) -> None:
    memory = tf.constant(RNG.normal(size=(2, 5, 4)), tf.float32)
    mechanism = getattr(seq2seq, kind)(4, memory, [5, 3], score_bias_init=0.5)
    first = mechanism.initial_state(2, tf.float32)
    alignments, state = mechanism(tf.constant(RNG.normal(size=(2, 4)), tf.float32), first)
    before, after = run([first, alignments])
    assert before.tolist() == [[1, 0, 0, 0, 0]] * 2 and not after[1, 3:].any() and state is alignments
    chosen = RNG.uniform(0.1, 0.9, (2, 5)).astype("f")
    wanted = numpy.zeros((2, 5))
    for row in range(2):  # the definition, equation 8 of the paper
        for j in range(5):
            wanted[row, j] = chosen[row, j] * sum(
                after[row, k] * numpy.prod(1 - chosen[row, k:j].astype(float)) for k in range(j + 1)
            )
    for mode in ("recursive", "parallel"):
        found = run(seq2seq.monotonic_attention(chosen, after, mode))
        numpy.testing.assert_allclose(found, wanted, rtol=1e-4)
    hard = run(seq2seq.monotonic_attention([[0.0, 1.0, 0.0, 1.0]], [[0.0, 0.0, 1.0, 0.0]], "hard"))
    assert hard.tolist() == [[0, 0, 0, 1]]
    with pytest.raises(ValueError, match="Use 'recursive'"):
        seq2seq.monotonic_attention(chosen, after, "soft")


def test_a_translator_of_lists_learns_to_copy() -> None:
    source = [tf.placeholder(tf.int32, [None]) for _ in range(3)]
    start = [tf.zeros_like(source[0]), *source[:2]]
    for feed in (False, True):
        with tf.variable_scope("net", reuse=feed):
            cell = tf.nn.rnn_cell.GRUCell(16)
            outputs, _ = legacy.embedding_attention_seq2seq(source, start, cell, 5, 5, 8, feed_previous=feed)
        if not feed:
            weights = [tf.ones_like(one, dtype=tf.float32) for one in source]
            loss = legacy.sequence_loss(outputs, source, weights)
            step = tf.train.AdamOptimizer(0.02).minimize(loss)
    data = RNG.integers(1, 5, (64, 3))
    feeds = dict(zip(source, data.T, strict=True))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        first = session.run(loss, feeds)
        for _ in range(150):
            session.run(step, feeds)
        assert session.run(loss, feeds) < 0.2 * first
        found = numpy.stack(session.run([tf.argmax(one, 1) for one in outputs], feeds), 1)
        assert (found == data).mean() > 0.8


def test_encoder_and_decoder_of_lists() -> None:
    steps = [tf.constant(one) for one in RNG.normal(size=(4, 2, 3)).astype(numpy.float32)]
    cell = tf.nn.rnn_cell.GRUCell(3)
    outputs, state = legacy.basic_rnn_seq2seq(steps, steps[:2], cell)
    tied, _ = legacy.tied_rnn_seq2seq(steps, steps[:2], tf.nn.rnn_cell.GRUCell(3))
    assert len(outputs) == len(tied) == 2
    found, last = run([outputs[-1], state])
    numpy.testing.assert_array_equal(found, last)


def brute(scores: Any, table: Any) -> dict[tuple[int, ...], float]:
    """The scores of all sequences of tags."""
    steps, tags = scores.shape
    return {
        path: float(
            sum(scores[k, tag] for k, tag in enumerate(path))
            + sum(table[a, b] for a, b in itertools.pairwise(path))
        )
        for path in itertools.product(range(tags), repeat=steps)
    }


def test_chains_of_tags() -> None:
    scores = RNG.normal(size=(2, 4, 3)).astype(numpy.float32)
    table = RNG.normal(size=(3, 3)).astype(numpy.float32)
    tags, lengths = numpy.array([[0, 2, 1, 1], [1, 0, 0, 0]]), [4, 2]
    likelihood, _ = crf.crf_log_likelihood(scores, tags, lengths, table)
    decoded, best = crf.crf_decode(scores, table, lengths)
    found, path, value = run([likelihood, decoded, best])
    for k, length in enumerate(lengths):
        every = brute(scores[k, :length], table)
        norm = numpy.log(sum(numpy.exp(one) for one in every.values()))
        assert found[k] == pytest.approx(every[tuple(tags[k, :length])] - norm, rel=1e-4)
        top = max(every, key=lambda one: every[one])
        assert tuple(path[k, :length]) == top and not path[k, length:].any()
        assert value[k] == pytest.approx(every[top], rel=1e-5)
        own, score = crf.viterbi_decode(scores[k, :length], table)
        assert tuple(own) == top and score == pytest.approx(every[top], rel=1e-5)


def test_a_loss_function_may_call_its_logits_otherwise() -> None:
    logits, targets = (
        [tf.constant(LOGITS[:, k]) for k in range(3)],
        [tf.constant(TARGETS[:, k]) for k in range(3)],
    )
    weights = [tf.constant(WEIGHTS[:, k]) for k in range(3)]
    older = lambda labels, inputs: tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=labels, logits=inputs
    )
    newer = lambda labels, logits: older(labels, logits)
    found = run(
        [legacy.sequence_loss(logits, targets, weights, softmax_loss_function=one) for one in (older, newer)]
    )
    assert found[0] == found[1] == pytest.approx((entropy().sum(1) / WEIGHTS.sum(1)).mean(), rel=1e-5)


def test_an_inference_helper_reads_what_is_sampled():
    class Counting(tf.nn.rnn_cell.RNNCell):
        state_size = output_size = 1

        def call(self, inputs, state):
            return inputs + 1.0, state + inputs

    with tf.Graph().as_default(), tf.Session() as session:
        helper = tf.contrib.seq2seq.InferenceHelper(
            sample_fn=lambda outputs: outputs * 2.0,
            sample_shape=[1],
            sample_dtype=tf.float32,
            start_inputs=[[0.0], [3.0]],
            end_fn=lambda sampled: sampled[:, 0] > 20.0,
            next_inputs_fn=lambda sampled: sampled - 1.0,
        )
        cell = Counting()
        decoder = tf.contrib.seq2seq.BasicDecoder(cell, helper, cell.zero_state(2, tf.float32))
        outputs, state, lengths = tf.contrib.seq2seq.dynamic_decode(decoder, maximum_iterations=4)
        found = session.run([outputs.rnn_output, outputs.sample_id, state, lengths])
    # inputs 0, 1, 3, 7 and 3, 7, 15: the second ends with a sample of 32
    assert found[0][:, :, 0].tolist() == [[1.0, 2.0, 4.0, 8.0], [4.0, 8.0, 16.0, 32.0]]
    assert found[1][:, :, 0].tolist() == [[2.0, 4.0, 8.0, 16.0], [8.0, 16.0, 32.0, 64.0]]
    assert found[3].tolist() == [4, 3]
