"""Sequence to sequence over lists with an entry for each step: ``tf.contrib.legacy_seq2seq``."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from twofold.static import math, nn
from twofold.static.api.docstrings import example
from twofold.static.api.op_functions import convert_to_tensor
from twofold.static.arrays import creation, shape_ops
from twofold.static.contrib.seq2seq_losses import sequence_loss_by_example as sequence_loss_by_example
from twofold.static.contrib.seq2seq_losses import sequence_loss_of_lists as sequence_loss
from twofold.static.control_flow.conditional import cond
from twofold.static.nn.embeddings import embedding_lookup
from twofold.static.recurrent.projected_cells import EmbeddingWrapper, OutputProjectionWrapper, linear
from twofold.static.recurrent.rnn import static_rnn
from twofold.static.variables.variable_scope import get_variable, get_variable_scope, variable_scope

Loop = Callable[[Any, int], Any]


@example(
    "cell = tf.nn.rnn_cell.GRUCell(4)",
    "steps = [tf.zeros([2, 3])] * 5",
    "outputs, state = tf.contrib.legacy_seq2seq.rnn_decoder(steps, cell.zero_state(2, tf.float32), cell)",
    "print(len(outputs), state.shape)",
    "5 (2, 4)",
)
def rnn_decoder(
    decoder_inputs: Sequence[Any],
    initial_state: Any,
    cell: Any,
    loop_function: Loop | None = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """Outputs and last state of ``cell``; ``loop_function(output, step)`` gives the inputs after the first step."""
    with variable_scope(scope or "rnn_decoder"):
        state, outputs, before = initial_state, [], None
        for number, given in enumerate(decoder_inputs):
            if loop_function is not None and before is not None:
                with variable_scope("loop_function", reuse=True):
                    given = loop_function(before, number)
            if number > 0:
                get_variable_scope().reuse_variables()
            output, state = cell(given, state)
            outputs.append(output)
            before = output if loop_function is not None else None
    return outputs, state


def basic_rnn_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: Any,
    dtype: Any = "float32",
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """A decoder that begins with the last state of an encoder, which is a cell of its own."""
    with variable_scope(scope or "basic_rnn_seq2seq"):
        _, state = static_rnn(copy.deepcopy(cell), encoder_inputs, dtype=dtype)
        return rnn_decoder(decoder_inputs, state, cell)


def tied_rnn_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: Any,
    loop_function: Loop | None = None,
    dtype: Any = "float32",
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """An encoder and a decoder that are one cell."""
    with variable_scope("combined_tied_rnn_seq2seq"):
        name = scope or "tied_rnn_seq2seq"
        _, state = static_rnn(cell, encoder_inputs, dtype=dtype, scope=name)
        get_variable_scope().reuse_variables()
        return rnn_decoder(decoder_inputs, state, cell, loop_function, scope=name)


def _found_again(embedding: Any, projection: Any, update: bool) -> Loop:
    """The embedding of the likeliest symbol of an output; without ``update`` no gradient passes."""

    def loop(output: Any, _: int) -> Any:
        if projection is not None:
            output = nn.xw_plus_b(output, projection[0], projection[1])
        found = embedding_lookup(embedding, math.argmax(output, 1))
        return found if update else math.stop_gradient(found)

    return loop


def embedding_rnn_decoder(
    decoder_inputs: Sequence[Any],
    initial_state: Any,
    cell: Any,
    num_symbols: int,
    embedding_size: int,
    output_projection: Any = None,
    feed_previous: bool = False,
    update_embedding_for_previous: bool = True,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """``rnn_decoder`` of symbols; with ``feed_previous`` each step reads the symbol that the one before found."""
    with variable_scope(scope or "embedding_rnn_decoder"):
        embedding = get_variable("embedding", [num_symbols, embedding_size])
        loop = (
            _found_again(embedding, output_projection, update_embedding_for_previous)
            if feed_previous
            else None
        )
        embedded = [embedding_lookup(embedding, one) for one in decoder_inputs]
        return rnn_decoder(embedded, initial_state, cell, loop)


def _fed(feed_previous: Any, decode: Callable[[bool], tuple[list[Any], Any]]) -> tuple[list[Any], Any]:
    """A decoder that feeds its outputs or not; by the value of a bool tensor, both share variables."""
    if isinstance(feed_previous, bool):
        return decode(feed_previous)
    count: list[int] = []

    def branch(feed: bool, reuse: Any) -> list[Any]:
        with variable_scope(get_variable_scope(), reuse=reuse):
            outputs, state = decode(feed)
        count[:] = [len(outputs)]
        return [*outputs, state]

    found = cond(feed_previous, lambda: branch(True, None), lambda: branch(False, True))
    return list(found[: count[0]]), found[count[0]]


def embedding_rnn_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: Any,
    num_encoder_symbols: int,
    num_decoder_symbols: int,
    embedding_size: int,
    output_projection: Any = None,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """``basic_rnn_seq2seq`` of symbols with embeddings of their own.

    Outputs are logits without ``output_projection``, a pair of weights and bias.
    """
    with variable_scope(scope or "embedding_rnn_seq2seq", dtype=dtype):
        encoder = EmbeddingWrapper(copy.deepcopy(cell), num_encoder_symbols, embedding_size)
        _, state = static_rnn(encoder, encoder_inputs, dtype=dtype or "float32")
        if output_projection is None:
            cell = OutputProjectionWrapper(cell, num_decoder_symbols)
        return _fed(
            feed_previous,
            lambda feed: embedding_rnn_decoder(
                decoder_inputs, state, cell, num_decoder_symbols, embedding_size, output_projection, feed
            ),
        )


class _Attention:
    """Additive attention of several heads over states (batch, length, size)."""

    def __init__(self, states: Any, heads: int) -> None:
        size, length = states.type_.shape[2], states.type_.shape[1]
        self.size, self.length = size, shape_ops.shape(states)[1] if length < 0 else length
        self.hidden = shape_ops.reshape(states, [-1, self.length, 1, size])
        self.keys, self.vectors = [], []
        for head in range(heads):
            kernel = get_variable(f"AttnW_{head}", [1, 1, size, size])
            self.keys.append(nn.conv2d(self.hidden, kernel, [1, 1, 1, 1], "SAME"))
            self.vectors.append(get_variable(f"AttnV_{head}", [size]))

    def __call__(self, query: Any) -> list[Any]:
        """A weighted mean of the states for each head."""
        parts = query if isinstance(query, (list, tuple)) else [query]
        flat = shape_ops.concat(
            [item for one in parts for item in (one if isinstance(one, tuple) else [one])], 1
        )
        found = []
        for head, (key, vector) in enumerate(zip(self.keys, self.vectors, strict=True)):
            with variable_scope(f"Attention_{head}"):
                asked = shape_ops.reshape(linear(flat, self.size, True), [-1, 1, 1, self.size])
                weights = nn.softmax(math.reduce_sum(vector * math.tanh(key + asked), [2, 3]))
                weighted = shape_ops.reshape(weights, [-1, self.length, 1, 1]) * self.hidden
                found.append(shape_ops.reshape(math.reduce_sum(weighted, [1, 2]), [-1, self.size]))
        return found


def attention_decoder(
    decoder_inputs: Sequence[Any],
    initial_state: Any,
    attention_states: Any,
    cell: Any,
    output_size: int | None = None,
    num_heads: int = 1,
    loop_function: Loop | None = None,
    dtype: Any = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> tuple[list[Any], Any]:
    """``rnn_decoder`` that looks at ``attention_states`` (batch, length, size) after each step.

    Source: Bahdanau et al., Neural Machine Translation by Jointly Learning to Align and Translate, 2014.
    """
    states = convert_to_tensor(attention_states)
    with variable_scope(scope or "attention_decoder", dtype=dtype):
        attention = _Attention(states, num_heads)
        state, outputs, before = initial_state, [], None
        rows = shape_ops.shape(decoder_inputs[0])[0]
        looks = [creation.zeros([rows, attention.size], states.dtype) for _ in range(num_heads)]
        if initial_state_attention:
            looks = attention(initial_state)
        for number, given in enumerate(decoder_inputs):
            if number > 0:
                get_variable_scope().reuse_variables()
            if loop_function is not None and before is not None:
                with variable_scope("loop_function", reuse=True):
                    given = loop_function(before, number)
            width = convert_to_tensor(given).type_.shape[-1]
            output, state = cell(linear(shape_ops.concat([given, *looks], 1), width, True), state)
            reuse = True if number == 0 and initial_state_attention else None
            with variable_scope(get_variable_scope(), reuse=reuse):
                looks = attention(state)
            with variable_scope("AttnOutputProjection"):
                wanted = cell.output_size if output_size is None else output_size
                output = linear(shape_ops.concat([output, *looks], 1), wanted, True)
            before = output if loop_function is not None else None
            outputs.append(output)
    return outputs, state


def embedding_attention_decoder(
    decoder_inputs: Sequence[Any],
    initial_state: Any,
    attention_states: Any,
    cell: Any,
    num_symbols: int,
    embedding_size: int,
    num_heads: int = 1,
    output_size: int | None = None,
    output_projection: Any = None,
    feed_previous: bool = False,
    update_embedding_for_previous: bool = True,
    dtype: Any = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> tuple[list[Any], Any]:
    """``attention_decoder`` of symbols; see ``embedding_rnn_decoder``."""
    with variable_scope(scope or "embedding_attention_decoder", dtype=dtype):
        embedding = get_variable("embedding", [num_symbols, embedding_size])
        loop = (
            _found_again(embedding, output_projection, update_embedding_for_previous)
            if feed_previous
            else None
        )
        return attention_decoder(
            [embedding_lookup(embedding, one) for one in decoder_inputs],
            initial_state,
            attention_states,
            cell,
            output_size,
            num_heads,
            loop,
            initial_state_attention=initial_state_attention,
        )


def embedding_attention_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: Any,
    num_encoder_symbols: int,
    num_decoder_symbols: int,
    embedding_size: int,
    num_heads: int = 1,
    output_projection: Any = None,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> tuple[list[Any], Any]:
    """``embedding_rnn_seq2seq`` whose decoder looks at all outputs of the encoder."""
    with variable_scope(scope or "embedding_attention_seq2seq", dtype=dtype):
        encoder = EmbeddingWrapper(copy.deepcopy(cell), num_encoder_symbols, embedding_size)
        outputs, state = static_rnn(encoder, encoder_inputs, dtype=dtype or "float32")
        states = shape_ops.stack(outputs, 1)
        size = None
        if output_projection is None:
            cell, size = OutputProjectionWrapper(cell, num_decoder_symbols), num_decoder_symbols
        return _fed(
            feed_previous,
            lambda feed: embedding_attention_decoder(
                decoder_inputs,
                state,
                states,
                cell,
                num_decoder_symbols,
                embedding_size,
                num_heads,
                size,
                output_projection,
                feed,
                initial_state_attention=initial_state_attention,
            ),
        )


def model_with_buckets(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    targets: Sequence[Any],
    weights: Sequence[Any],
    buckets: Sequence[tuple[int, int]],
    seq2seq: Callable[[Any, Any], tuple[list[Any], Any]],
    softmax_loss_function: Callable[..., Any] | None = None,
    per_example_loss: bool = False,
    name: str | None = None,
) -> tuple[list[list[Any]], list[Any]]:
    """Outputs and losses of ``seq2seq`` on the first steps of the lists, for each bucket of two lengths."""
    outputs, losses = [], []
    loss = sequence_loss_by_example if per_example_loss else sequence_loss
    with variable_scope(name, "model_with_buckets"):
        for number, (source, target) in enumerate(buckets):
            with variable_scope(get_variable_scope(), reuse=True if number else None):
                found, _ = seq2seq(encoder_inputs[:source], decoder_inputs[:target])
                outputs.append(found)
                chosen = targets[:target], weights[:target]
                losses.append(loss(found, *chosen, softmax_loss_function=softmax_loss_function))
    return outputs, losses
