"""Sequence to sequence over lists with an entry for each step: ``tf.contrib.legacy_seq2seq``."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from twofold.static import math, nn
from twofold.static.api.op_functions import convert_to_tensor
from twofold.static.api.signatures import takes
from twofold.static.arrays import creation, shape_ops
from twofold.static.contrib.seq2seq_losses import sequence_loss_by_example as sequence_loss_by_example
from twofold.static.contrib.seq2seq_losses import sequence_loss_of_lists as sequence_loss
from twofold.static.control_flow.conditional import cond
from twofold.static.graph.docstrings import example
from twofold.static.nn.embeddings import embedding_lookup
from twofold.static.python.positions import enter
from twofold.static.recurrent.projected_cells import EmbeddingWrapper, OutputProjectionWrapper, linear
from twofold.static.recurrent.rnn import static_rnn
from twofold.static.variables.variable_scope import get_variable, get_variable_scope, variable_scope

Loop = Callable[[Any, int], Any]
_Decoded = tuple[list[Any], Any]


@example(
    "cell = tf.nn.rnn_cell.GRUCell(4)",
    "steps = [tf.zeros([2, 3])] * 5",
    "outputs, state = tf.contrib.legacy_seq2seq.rnn_decoder(steps, cell.zero_state(2, tf.float32), cell)",
    "print(len(outputs), state.shape)",
    "5 (2, 4)",
)
@takes("loop_function=None, scope=None")
def rnn_decoder(decoder_inputs: Sequence[Any], initial_state: Any, cell: Any, **options: Any) -> _Decoded:
    """Outputs and last state of ``cell``; ``loop_function(output, step)`` gives the inputs after the first step."""
    with variable_scope(options["scope"] or "rnn_decoder"):
        return _steps(decoder_inputs, initial_state, options["loop_function"], cell)


def _steps(
    inputs: Sequence[Any], state: Any, loop_function: Loop | None, step: Callable[..., Any]
) -> _Decoded:
    """``step(inputs, state)`` in turn: its outputs and the last state; a loop function makes inputs of outputs."""
    outputs: list[Any] = []
    for number, given in enumerate(inputs):
        if number > 0:
            get_variable_scope().reuse_variables()
            if loop_function is not None:
                with variable_scope("loop_function", reuse=True):
                    given = loop_function(outputs[-1], number)
        output, state = step(given, state)
        outputs.append(output)
    return outputs, state


@takes("dtype='float32', scope=None")
def basic_rnn_seq2seq(
    encoder_inputs: Sequence[Any], decoder_inputs: Sequence[Any], cell: Any, **options: Any
) -> _Decoded:
    """A decoder that begins with the last state of an encoder, which is a cell of its own."""
    with variable_scope(options["scope"] or "basic_rnn_seq2seq"):
        _, state = static_rnn(copy.deepcopy(cell), encoder_inputs, dtype=options["dtype"])
        return rnn_decoder(decoder_inputs, state, cell)


@takes("loop_function=None, dtype='float32', scope=None")
def tied_rnn_seq2seq(
    encoder_inputs: Sequence[Any], decoder_inputs: Sequence[Any], cell: Any, **options: Any
) -> _Decoded:
    """An encoder and a decoder that are one cell."""
    with variable_scope("combined_tied_rnn_seq2seq"):
        name = options["scope"] or "tied_rnn_seq2seq"
        _, state = static_rnn(cell, encoder_inputs, dtype=options["dtype"], scope=name)
        get_variable_scope().reuse_variables()
        return rnn_decoder(decoder_inputs, state, cell, options["loop_function"], scope=name)


def _found_again(embedding: Any, projection: Any, update: bool) -> Loop:
    """The embedding of the likeliest symbol of an output; without ``update`` no gradient passes."""

    def loop(output: Any, _: int) -> Any:
        if projection is not None:
            output = nn.xw_plus_b(output, projection[0], projection[1])
        found = embedding_lookup(embedding, math.argmax(output, 1))
        return found if update else math.stop_gradient(found)

    return loop


_SYMBOLS = "output_projection=None, feed_previous=False"


def _embedded(decoder_inputs: Sequence[Any], given: dict[str, Any]) -> tuple[list[Any], Loop | None]:
    """Symbols as rows of a variable, and what feeds them back."""
    embedding = get_variable("embedding", [given["num_symbols"], given["embedding_size"]])
    loop = _found_again(embedding, given["output_projection"], given["update_embedding_for_previous"])
    embedded = [embedding_lookup(embedding, one) for one in decoder_inputs]
    return embedded, loop if given["feed_previous"] else None


@takes(f"num_symbols, embedding_size, {_SYMBOLS}, update_embedding_for_previous=True, scope=None")
def embedding_rnn_decoder(
    decoder_inputs: Sequence[Any], initial_state: Any, cell: Any, **given: Any
) -> _Decoded:
    """``rnn_decoder`` of symbols; with ``feed_previous`` each step reads the symbol that the one before found."""
    with variable_scope(given["scope"] or "embedding_rnn_decoder"):
        embedded, loop = _embedded(decoder_inputs, given)
        return rnn_decoder(embedded, initial_state, cell, loop)


def _fed(feed_previous: Any, decode: Callable[[bool], _Decoded]) -> _Decoded:
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


_BOTH = "num_encoder_symbols, num_decoder_symbols, embedding_size"


@takes(f"{_BOTH}, {_SYMBOLS}, dtype=None, scope=None")
def embedding_rnn_seq2seq(
    encoder_inputs: Sequence[Any], decoder_inputs: Sequence[Any], cell: Any, **given: Any
) -> _Decoded:
    """``basic_rnn_seq2seq`` of symbols with embeddings of their own.

    Outputs are logits without ``output_projection``, a pair of weights and bias.
    """
    with variable_scope(given["scope"] or "embedding_rnn_seq2seq", dtype=given["dtype"]):
        _, state = _encoded(encoder_inputs, cell, given)
        symbols, projection = given["num_decoder_symbols"], given["output_projection"]
        if projection is None:
            cell = OutputProjectionWrapper(cell, symbols)
        own = (decoder_inputs, state, cell, symbols, given["embedding_size"], projection)
        return _fed(given["feed_previous"], lambda feed: embedding_rnn_decoder(*own, feed))


def _encoded(inputs: Sequence[Any], cell: Any, given: dict[str, Any]) -> _Decoded:
    """The outputs and the last state of an encoder of symbols, a cell of its own."""
    encoder = EmbeddingWrapper(copy.deepcopy(cell), given["num_encoder_symbols"], given["embedding_size"])
    return static_rnn(encoder, inputs, dtype=given["dtype"] or "float32")


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


@takes(
    "output_size=None, num_heads=1, loop_function=None, dtype=None, scope=None, initial_state_attention=False"
)
def attention_decoder(
    decoder_inputs: Sequence[Any], initial_state: Any, attention_states: Any, cell: Any, **given: Any
) -> _Decoded:
    """``rnn_decoder`` that looks at ``attention_states`` (batch, length, size) after each step.

    Source: Bahdanau et al., Neural Machine Translation by Jointly Learning to Align and Translate, 2014.
    """
    states, heads, early = (
        convert_to_tensor(attention_states),
        given["num_heads"],
        given["initial_state_attention"],
    )
    wanted = cell.output_size if given["output_size"] is None else given["output_size"]
    with variable_scope(given["scope"] or "attention_decoder", dtype=given["dtype"]):
        attention = _Attention(states, heads)
        rows = shape_ops.shape(decoder_inputs[0])[0]
        looks = [creation.zeros([rows, attention.size], states.dtype) for _ in range(heads)]
        if early:
            looks = attention(initial_state)

        def step(given: Any, state: Any) -> tuple[Any, Any]:
            nonlocal looks, early
            width = convert_to_tensor(given).type_.shape[-1]
            output, state = cell(linear(shape_ops.concat([given, *looks], 1), width, True), state)
            with variable_scope(get_variable_scope(), reuse=True if early else None):
                looks, early = attention(state), False
            with variable_scope("AttnOutputProjection"):
                return linear(shape_ops.concat([output, *looks], 1), wanted, True), state

        return _steps(decoder_inputs, initial_state, given["loop_function"], step)


@takes(
    f"num_symbols, embedding_size, num_heads=1, output_size=None, {_SYMBOLS}, update_embedding_for_previous=True, "
    "dtype=None, scope=None, initial_state_attention=False"
)
def embedding_attention_decoder(
    decoder_inputs: Sequence[Any], initial_state: Any, attention_states: Any, cell: Any, **given: Any
) -> _Decoded:
    """``attention_decoder`` of symbols; see ``embedding_rnn_decoder``."""
    with variable_scope(given["scope"] or "embedding_attention_decoder", dtype=given["dtype"]):
        embedded, loop = _embedded(decoder_inputs, given)
        options = {name: given[name] for name in ("output_size", "num_heads", "initial_state_attention")}
        return attention_decoder(
            embedded, initial_state, attention_states, cell, loop_function=loop, **options
        )


@takes(f"{_BOTH}, num_heads=1, {_SYMBOLS}, dtype=None, scope=None, initial_state_attention=False")
def embedding_attention_seq2seq(
    encoder_inputs: Sequence[Any], decoder_inputs: Sequence[Any], cell: Any, **given: Any
) -> _Decoded:
    """``embedding_rnn_seq2seq`` whose decoder looks at all outputs of the encoder."""
    with variable_scope(given["scope"] or "embedding_attention_seq2seq", dtype=given["dtype"]):
        outputs, state = _encoded(encoder_inputs, cell, given)
        states, symbols, size = shape_ops.stack(outputs, 1), given["num_decoder_symbols"], None
        if given["output_projection"] is None:
            cell, size = OutputProjectionWrapper(cell, symbols), symbols
        own = (
            decoder_inputs,
            state,
            states,
            cell,
            symbols,
            given["embedding_size"],
            given["num_heads"],
            size,
        )
        early = {"initial_state_attention": given["initial_state_attention"]}
        return _fed(
            given["feed_previous"],
            lambda feed: embedding_attention_decoder(*own, given["output_projection"], feed, **early),
        )


@takes("softmax_loss_function=None, per_example_loss=False, name=None")
def model_with_buckets(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    targets: Sequence[Any],
    weights: Sequence[Any],
    buckets: Sequence[tuple[int, int]],
    seq2seq: Callable[[Any, Any], _Decoded],
    **options: Any,
) -> tuple[list[list[Any]], list[Any]]:
    """Outputs and losses of ``seq2seq`` on the first steps of the lists, for each bucket of two lengths."""
    outputs, losses = [], []
    loss = sequence_loss_by_example if options["per_example_loss"] else sequence_loss
    with variable_scope(options["name"], "model_with_buckets"):
        for number, (source, target) in enumerate(buckets):
            with variable_scope(get_variable_scope(), reuse=True if number else None):
                found, _ = seq2seq(encoder_inputs[:source], decoder_inputs[:target])
                outputs.append(found)
                own = {"softmax_loss_function": options["softmax_loss_function"]}
                losses.append(loss(found, targets[:target], weights[:target], **own))
    return outputs, losses


enter(__name__, {"python.ops.seq2seq": "contrib.legacy_seq2seq"})
