"""Beam search, in which beams of one sequence share a cell: ``tf.contrib.seq2seq.BeamSearchDecoder``."""

from __future__ import annotations

from typing import Any, NamedTuple

from twofold.dtypes import bool_, int32, int64
from twofold.errors import ArgumentError
from twofold.runtime.tracing import here
from twofold.static import math, nn
from twofold.static.api.op_functions import convert_to_tensor, limits_of
from twofold.static.arrays import creation, selection, shape_ops
from twofold.static.arrays.reordering import batch_gather
from twofold.static.contrib.decoding import Decoder, look_up, mapped
from twofold.static.control_flow.map_scan import scan
from twofold.static.graph.docstrings import example
from twofold.static.math import cumsum


class BeamSearchDecoderState(NamedTuple):
    """States of the cell, log-probabilities, and which beams have ended at which lengths: (batch, beam, ...)."""

    cell_state: Any
    log_probs: Any
    finished: Any
    lengths: Any


class BeamSearchDecoderOutput(NamedTuple):
    """What a step found: scores and symbols of the beams, and which beam of the step before each goes on from."""

    scores: Any
    predicted_ids: Any
    parent_ids: Any


class FinalBeamSearchDecoderOutput(NamedTuple):
    """Symbols of the beams (batch, time, beam), the best beam first, and the outputs of the steps."""

    predicted_ids: Any
    beam_search_decoder_output: Any


@example(
    "tf.set_random_seed(0)",
    "cell = tf.nn.rnn_cell.GRUCell(4)",
    "decoder = tf.contrib.seq2seq.BeamSearchDecoder(",
    "    cell, tf.ones([5, 3]), [1, 1], 2, cell.zero_state(6, tf.float32), 3, tf.layers.Dense(5))",
    "outputs, _, _ = tf.contrib.seq2seq.dynamic_decode(decoder, maximum_iterations=4)",
    "session.run(tf.global_variables_initializer())",
    "tf.shape(outputs.predicted_ids)",
    "[2 4 3]",
)
class BeamSearchDecoder(Decoder):
    """Goes on from the ``beam_width`` likeliest beginnings of each sequence at once.

    The score of a beam is its log-probability over ``((5 + length) / 6) ** length_penalty_weight`` (Wu et al., 2016).
    ``initial_state`` is that of ``tile_batch``: ``beam_width`` rows for each sequence. Coverage penalties and states
    that are tensor arrays raise ArgumentError.
    """

    tracks_own_finished = True

    def __init__(
        self,
        cell: Any,
        embedding: Any,
        start_tokens: Any,
        end_token: Any,
        initial_state: Any,
        beam_width: int,
        output_layer: Any = None,
        length_penalty_weight: float = 0.0,
        coverage_penalty_weight: float = 0.0,
        reorder_tensor_arrays: bool = True,
    ) -> None:
        if coverage_penalty_weight != 0.0:
            what = f"BeamSearchDecoder: coverage_penalty_weight is {coverage_penalty_weight}, at {here()}"
            raise ArgumentError(what, "Leave it out; length_penalty_weight is there.")
        self._cell, self._layer, self._width = cell, output_layer, int(beam_width)
        self._embed, self._penalty = look_up(embedding), length_penalty_weight
        start, self._end = convert_to_tensor(start_tokens, int32), convert_to_tensor(end_token, int32)
        for label, value, ndim in (("start_tokens", start, 1), ("end_token", self._end, 0)):
            if value.type_.ndim != ndim:
                what = f"BeamSearchDecoder: {label} of shape {value.get_shape()} has not {ndim} axes, at {here()}"
                raise ArgumentError(what, "Give one start token for each sequence, and one end token.")
        known = start.get_shape()[0].value
        self._batch = shape_ops.shape(start)[0] if known is None else known
        self._start = shape_ops.tile(shape_ops.expand_dims(start, 1), [1, self._width])
        self._state = mapped(self._apart, initial_state)
        # now, so that layers in it have their variables in this scope
        self._first = self._embed(self._start)

    @property
    def batch_size(self) -> Any:
        """How many sequences there are."""
        return self._batch

    def _apart(self, value: Any) -> Any:
        """(batch * beam, ...) as (batch, beam, ...); a scalar as it is."""
        if hasattr(value, "with_flow"):
            what = f"BeamSearchDecoder: a state is a TensorArray, at {here()}"
            raise ArgumentError(what, "Wrap the cell with alignment_history=False.")
        shape = convert_to_tensor(value).get_shape()
        if not shape.ndims:
            return value
        rows = shape[0].value
        if rows is not None and isinstance(self._batch, int) and rows != self._batch * self._width:
            what = f"BeamSearchDecoder: a state of shape {shape} for {self._batch} * {self._width} beams, at {here()}"
            raise ArgumentError(
                what, "Make the state with tile_batch, or zero_state(batch_size * beam_width)."
            )
        return self._shaped(value, [self._batch, self._width], 1)

    def _together(self, value: Any) -> Any:
        """(batch, beam, ...) as (batch * beam, ...); a scalar as it is."""
        return self._shaped(value, [self._batch * self._width], 2) if value.type_.ndim else value

    @staticmethod
    def _shaped(value: Any, first: list[Any], count: int) -> Any:
        """``value`` with sizes ``first`` instead of those of its first ``count`` axes."""
        found = shape_ops.shape(value)
        sizes = [size.value for size in value.get_shape()]
        rest = [found[axis] if sizes[axis] is None else sizes[axis] for axis in range(count, len(sizes))]
        return shape_ops.reshape(value, [*first, *rest])

    def initialize(self) -> tuple[Any, Any, BeamSearchDecoderState]:
        """All beams but the first have ended: at the first step they are equal."""
        kind = mapped(convert_to_tensor, self._state)
        while isinstance(kind, (list, tuple)):
            kind = kind[0]
        first = creation.zeros([self._batch], int32)
        finished = shape_ops.one_hot(first, self._width, False, True, dtype=bool_)
        log_probs = shape_ops.one_hot(first, self._width, 0.0, float("-inf"), dtype=kind.dtype)
        lengths = creation.zeros([self._batch, self._width], int64)
        state = BeamSearchDecoderState(self._state, log_probs, finished, lengths)
        return finished, self._first, state

    def step(self, time: Any, inputs: Any, state: Any) -> tuple[Any, Any, Any, Any]:
        """The best ``beam_width`` of all continuations of the beams by one symbol."""
        outputs, cell_state = self._cell(
            mapped(self._together, inputs), mapped(self._together, state.cell_state)
        )
        outputs, cell_state = mapped(self._apart, outputs), mapped(self._apart, cell_state)
        logits = outputs if self._layer is None else self._layer(outputs)
        known = logits.get_shape()[-1].value
        count = shape_ops.shape(logits)[2] if known is None else known

        logs = nn.log_softmax(logits)
        ends = shape_ops.one_hot(self._end, count, 0.0, limits_of(logits.dtype)[0], dtype=logits.dtype)
        ended = shape_ops.expand_dims(state.finished, 2)
        total = shape_ops.expand_dims(state.log_probs, 2) + selection.where(
            math.logical_and(ended, creation.ones_like(logits, dtype=bool_)),
            creation.zeros_like(logits) + ends,
            logs,
        )
        scores = total
        if not (isinstance(self._penalty, (int, float)) and self._penalty == 0):
            longer = shape_ops.one_hot(self._end, count, 0, 1, dtype=int64)
            lengths = shape_ops.expand_dims(state.lengths, 2) + longer * math.cast(
                math.logical_not(ended), int64
            )
            scores = total / math.pow((5.0 + math.cast(lengths, logits.dtype)) / 6.0, self._penalty)
        flat = [self._batch, self._width * count]
        best, indices = nn.top_k(shape_ops.reshape(scores, flat), self._width)
        parents, ids = math.floordiv(indices, count), math.floormod(indices, count)

        def of_parent(value: Any) -> Any:
            return batch_gather(value, parents) if value.type_.ndim >= 2 else value

        before = of_parent(state.finished)
        finished = math.logical_or(before, math.equal(ids, self._end))
        lengths = of_parent(state.lengths) + math.cast(math.logical_not(before), int64)
        logs = batch_gather(shape_ops.reshape(total, flat), indices)
        new = BeamSearchDecoderState(mapped(of_parent, cell_state), logs, finished, lengths)
        return BeamSearchDecoderOutput(best, ids, parents), new, self._embed(ids), finished

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> tuple[Any, Any]:
        """The symbols of each beam, found back from its end; ``outputs`` is time-major."""
        longest = math.cast(math.reduce_max(final_state.lengths, 1), int32)
        found = gather_tree(outputs.predicted_ids, outputs.parent_ids, longest, self._end)
        return FinalBeamSearchDecoderOutput(found, outputs), final_state


@example(
    "ids, parents = tf.constant([[[1, 2]], [[3, 4]]]), tf.constant([[[0, 0]], [[1, 0]]])",
    "tf.contrib.seq2seq.gather_tree(ids, parents, [2], 9)",
    "[[[2 1]]\n<BLANKLINE>\n [[3 4]]]",
)
def gather_tree(
    step_ids: Any, parent_ids: Any, max_sequence_lengths: Any, end_token: Any, name: str | None = None
) -> Any:
    """The symbols of whole beams (time, batch, beam) from those of steps and the beams that they went on from.

    Behind the first ``end_token`` of a beam, and from ``max_sequence_lengths`` of a sequence on, all are ``end_token``.
    """
    ids, parents = convert_to_tensor(step_ids), convert_to_tensor(parent_ids)
    shape, end = shape_ops.shape(ids), convert_to_tensor(end_token, ids.dtype)
    inside = shape_ops.transpose(shape_ops.sequence_mask(max_sequence_lengths, shape[0]))
    first = shape_ops.tile(shape_ops.expand_dims(creation.range(shape[2]), 0), [shape[1], 1])
    nothing = creation.zeros_like(ids[0]) + end

    def back(later: Any, step: Any) -> Any:
        symbols, origin, live = step
        live = math.logical_and(shape_ops.expand_dims(live, 1), creation.ones_like(symbols, dtype=bool_))
        found = selection.where(live, batch_gather(symbols, later[1]), nothing)
        return found, selection.where(live, batch_gather(origin, later[1]), later[1])

    found, _ = scan(back, (ids, parents, inside), initializer=(nothing, first), reverse=True)
    ended = cumsum(math.cast(math.equal(found, end), int32), exclusive=True) > 0
    return selection.where(ended, creation.zeros_like(found) + end, found, name=name)
