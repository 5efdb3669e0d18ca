"""Beam search beside one that enumerates continuations in NumPy."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import twofold.static as tf
from twofold.errors import ArgumentError

seq2seq = tf.contrib.seq2seq
RNG = numpy.random.default_rng(3)
SYMBOLS, END, WIDTH = 5, 2, 3
TABLE = RNG.normal(size=(SYMBOLS, SYMBOLS)).astype(numpy.float32) * 2
"""Logits of the next symbol, by the symbol before."""


class Chain(tf.nn.rnn_cell.RNNCell):
    """A cell whose output is its input, which counts its steps; logits are rows of ``TABLE``."""

    state_size = 1
    output_size = SYMBOLS

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        return inputs, state + 1


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


def decoder(start: Any, penalty: float, batch: int, **options: Any) -> Any:
    cell = Chain()
    state = seq2seq.tile_batch(tf.zeros([batch, 1]), WIDTH)
    return seq2seq.BeamSearchDecoder(
        cell, tf.constant(TABLE), start, END, state, WIDTH, length_penalty_weight=penalty, **options
    )


def searched(start: int, penalty: float, steps: int) -> list[tuple[list[int], float]]:
    """The best beams after ``steps`` steps, with their log-probabilities."""
    logs = TABLE - numpy.log(numpy.exp(TABLE).sum(1, keepdims=True))
    beams: list[tuple[list[int], float]] = [([], 0.0)]
    for _ in range(steps):
        grown = []
        for symbols, score in beams:
            if END in symbols:
                grown.append(([*symbols, END], score))
                continue
            before = symbols[-1] if symbols else start
            grown += [([*symbols, one], score + float(logs[before, one])) for one in range(SYMBOLS)]

        def rank(beam: tuple[list[int], float]) -> float:
            symbols = beam[0]
            length = len(symbols)
            if END in symbols:  # which counts from the step after its own on
                length = symbols.index(END) + (symbols.index(END) + 1 < len(symbols))
            return beam[1] / ((5 + length) / 6) ** penalty

        beams = sorted(grown, key=rank, reverse=True)[:WIDTH]
        if all(END in symbols for symbols, _ in beams):
            break
    return beams


@pytest.mark.parametrize("penalty", [0.0, 1.0])
@pytest.mark.parametrize("known", [True, False])
def test_finds_the_best_beams(penalty: float, known: bool) -> None:
    starts = [0, 1, 4]
    given = tf.constant(starts) if known else tf.placeholder(tf.int32, [None])
    outputs, state, lengths = seq2seq.dynamic_decode(decoder(given, penalty, 3), maximum_iterations=4)
    with tf.Session() as session:
        feeds = {} if known else {given: starts}
        found, logs, ends = session.run([outputs.predicted_ids, state.log_probs, lengths], feeds)
    for row, start in enumerate(starts):
        for beam, (symbols, score) in enumerate(searched(start, penalty, found.shape[1])):
            whole = symbols + [END] * (found.shape[1] - len(symbols))
            assert found[row, :, beam].tolist() == whole
            assert logs[row, beam] == pytest.approx(score, rel=1e-5)
            assert ends[row, beam] == (whole.index(END) + 1 if END in whole else len(whole))


def test_symbols_are_found_back_from_the_ends() -> None:
    ids = tf.constant([[[1, 2, 3]], [[4, 5, 6]], [[7, 8, 9]]])
    parents = tf.constant([[[0, 0, 0]], [[0, 1, 1]], [[2, 1, 2]]])
    with tf.Session() as session:
        whole = session.run(seq2seq.gather_tree(ids, parents, [3], 10))
        assert whole[:, 0].T.tolist() == [[2, 6, 7], [2, 5, 8], [2, 6, 9]]
        short = session.run(seq2seq.gather_tree(ids, parents, [2], 5))
        assert short[:, 0].T.tolist() == [[1, 4, 5], [2, 5, 5], [2, 6, 5]]


def test_attention_in_beams() -> None:
    memory = tf.constant(RNG.normal(size=(2, 4, 6)).astype(numpy.float32))
    tiled, sizes = seq2seq.tile_batch(memory, WIDTH), seq2seq.tile_batch(tf.constant([4, 2]), WIDTH)
    cell = seq2seq.AttentionWrapper(
        tf.nn.rnn_cell.LSTMCell(6), seq2seq.LuongAttention(6, tiled, sizes), attention_layer_size=6
    )
    state = cell.zero_state(2 * WIDTH, tf.float32)
    made = seq2seq.BeamSearchDecoder(
        cell, tf.constant(TABLE), [0, 1], END, state, WIDTH, tf.layers.Dense(SYMBOLS)
    )
    outputs, last, _ = seq2seq.dynamic_decode(made, maximum_iterations=3, output_time_major=True)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        ids, scores = session.run([outputs.predicted_ids, outputs.beam_search_decoder_output.scores])
        assert ids.shape[1:] == scores.shape[1:] == (2, WIDTH)
        assert (numpy.diff(scores, axis=2) <= 0).all()
        assert session.run(last.cell_state.alignments).shape == (2, WIDTH, 4)


def test_wrong_use() -> None:
    with pytest.raises(ArgumentError, match="2 axes|not 1 axes"):
        decoder([[0]], 0.0, 1)
    with pytest.raises(ArgumentError, match="for 2 [*] 3 beams"):
        decoder([0, 1], 0.0, 3)
    with pytest.raises(ArgumentError, match="coverage_penalty_weight"):
        decoder([0], 0.0, 1, coverage_penalty_weight=0.5)


@pytest.mark.parametrize("beams", [1, 2])
def test_layers_of_the_embedding_are_made_where_the_decoder_is(beams):
    """So a decoder for inference finds the variables of one for training, which embeds its inputs beforehand."""
    with tf.Graph().as_default(), tf.variable_scope("decoder"):
        table, project = tf.get_variable("table", [5, 3]), tf.layers.Dense(4, name="project")
        cell = tf.nn.rnn_cell.GRUCell(4)

        def embed(ids):
            return project(tf.nn.embedding_lookup(table, ids))

        start = tf.zeros([2], tf.int32)
        if beams == 1:
            helper = tf.contrib.seq2seq.GreedyEmbeddingHelper(embed, start, 1)
            decoder = tf.contrib.seq2seq.BasicDecoder(cell, helper, cell.zero_state(2, tf.float32))
        else:
            state = cell.zero_state(2 * beams, tf.float32)
            decoder = tf.contrib.seq2seq.BeamSearchDecoder(cell, embed, start, 1, state, beams)
        tf.contrib.seq2seq.dynamic_decode(decoder, maximum_iterations=3)
        names = {variable.op.name for variable in tf.global_variables()}
    assert names >= {
        "decoder/project/kernel",
        "decoder/project/bias",
        "decoder/decoder/gru_cell/gates/kernel",
    }
