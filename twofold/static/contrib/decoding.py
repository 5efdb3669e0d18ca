"""Decoders step by step, by given or by found symbols: ``tf.contrib.seq2seq``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from twofold.dtypes import int32
from twofold.runtime.pytree import flatten, unflatten
from twofold.static import math, random
from twofold.static.api.op_functions import convert_to_tensor
from twofold.static.arrays import creation, selection, shape_ops
from twofold.static.control_flow.tensor_array import TensorArray
from twofold.static.control_flow.while_loop import while_loop
from twofold.static.graph.docstrings import example
from twofold.static.nn.embeddings import embedding_lookup
from twofold.static.variables.variable_scope import variable_scope


def mapped(function: Callable[..., Any], *values: Any) -> Any:
    """``function`` of the tensors in nested structures of one kind."""
    found = [flatten(value, "value") for value in values]
    return unflatten(found[0][2], [function(*row) for row in zip(*[one[0] for one in found], strict=True)])


class Helper:
    """What a decoder reads at each step."""

    batch_size: Any
    sample_ids_dtype: Any = int32

    def initialize(self) -> tuple[Any, Any]:
        """Which sequences have ended already, and the first inputs."""
        raise NotImplementedError

    def sample(self, time: Any, outputs: Any, state: Any) -> Any:
        """The symbols that outputs mean: the likeliest."""
        return math.cast(math.argmax(outputs, -1), int32)

    def next_inputs(self, time: Any, outputs: Any, state: Any, sample_ids: Any) -> tuple[Any, Any, Any]:
        """Which sequences end with this step, the inputs of the next, and the state."""
        raise NotImplementedError


class CustomHelper(Helper):
    """A helper of three functions."""

    def __init__(
        self,
        initialize_fn: Callable[[], tuple[Any, Any]],
        sample_fn: Callable[..., Any],
        next_inputs_fn: Callable[..., tuple[Any, Any, Any]],
        sample_ids_shape: Any = None,
        sample_ids_dtype: Any = None,
    ) -> None:
        self._initialize, self._sample, self._next = initialize_fn, sample_fn, next_inputs_fn
        self.sample_ids_dtype = sample_ids_dtype or int32

    def initialize(self) -> tuple[Any, Any]:
        finished, inputs = self._initialize()
        self.batch_size = shape_ops.shape(finished)[0]
        return finished, inputs

    def sample(self, time: Any, outputs: Any, state: Any) -> Any:
        return self._sample(time=time, outputs=outputs, state=state)

    def next_inputs(self, time: Any, outputs: Any, state: Any, sample_ids: Any) -> tuple[Any, Any, Any]:
        return self._next(time=time, outputs=outputs, state=state, sample_ids=sample_ids)


class TrainingHelper(Helper):
    """Reads given inputs (batch, time, ...), each sequence up to its length."""

    def __init__(
        self, inputs: Any, sequence_length: Any, time_major: bool = False, name: str | None = None
    ) -> None:
        def first(value: Any) -> Any:
            tensor = convert_to_tensor(value)
            axes = [1, 0, *range(2, tensor.type_.ndim)]
            return tensor if time_major else shape_ops.transpose(tensor, axes, name=name)

        self._inputs = mapped(first, inputs)
        self._lengths = convert_to_tensor(sequence_length)
        self.batch_size = shape_ops.shape(self._lengths)[0]

    @property
    def sequence_length(self) -> Any:
        """The lengths."""
        return self._lengths

    def initialize(self) -> tuple[Any, Any]:
        return math.equal(self._lengths, 0), mapped(lambda value: value[0], self._inputs)

    def _at(self, time: Any) -> Any:
        """The inputs of a step; zeros past the last."""

        def row(value: Any) -> Any:
            last = shape_ops.shape(value)[0] - 1
            return shape_ops.gather(value, math.minimum(time, last)) * math.cast(time <= last, value.dtype)

        return mapped(row, self._inputs)

    def next_inputs(self, time: Any, outputs: Any, state: Any, sample_ids: Any) -> tuple[Any, Any, Any]:
        later = time + 1
        return math.cast(later, self._lengths.dtype) >= self._lengths, self._at(later), state


def look_up(embedding: Any) -> Callable[[Any], Any]:
    """The function that embeds symbols: ``embedding``, or rows of it."""
    return embedding if callable(embedding) else lambda ids: embedding_lookup(embedding, ids)


class ScheduledEmbeddingTrainingHelper(TrainingHelper):
    """``TrainingHelper`` that with ``sampling_probability`` reads a symbol sampled from the output before instead."""

    def __init__(
        self,
        inputs: Any,
        sequence_length: Any,
        embedding: Any,
        sampling_probability: Any,
        time_major: bool = False,
        seed: int | None = None,
        scheduling_seed: int | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(inputs, sequence_length, time_major, name)
        self._embed, self._probability = look_up(embedding), sampling_probability
        self._seeds = seed, scheduling_seed

    def sample(self, time: Any, outputs: Any, state: Any) -> Any:
        sampled = math.cast(random.multinomial(outputs, 1, seed=self._seeds[0])[:, 0], int32)
        chosen = random.random_uniform([self.batch_size], seed=self._seeds[1]) < self._probability
        return selection.where(chosen, sampled, creation.ones_like(sampled) * -1)

    def next_inputs(self, time: Any, outputs: Any, state: Any, sample_ids: Any) -> tuple[Any, Any, Any]:
        finished, inputs, state = super().next_inputs(time, outputs, state, sample_ids)
        own = self._embed(math.maximum(sample_ids, 0))
        return finished, selection.where(sample_ids >= 0, own, inputs), state


class ScheduledOutputTrainingHelper(TrainingHelper):
    """``TrainingHelper`` that with ``sampling_probability`` reads the output before instead.

    Args:
        inputs: Inputs (batch, time, ...).
        sequence_length: The length of each sequence.
        sampling_probability: How probable it is that a sequence reads an output.
        time_major: Whether inputs are (time, batch, ...).
        seed: Of the choice.
        next_inputs_fn: What becomes of outputs that are read.
        auxiliary_inputs: Joined to all that is read, along the last axis.
        name: That of the operations.
    """

    def __init__(
        self,
        inputs: Any,
        sequence_length: Any,
        sampling_probability: Any,
        time_major: bool = False,
        seed: int | None = None,
        next_inputs_fn: Callable[[Any], Any] | None = None,
        auxiliary_inputs: Any = None,
        name: str | None = None,
    ) -> None:
        self._probability, self._seed, self._next = sampling_probability, seed, next_inputs_fn
        self._auxiliary = None
        if auxiliary_inputs is not None:
            self._auxiliary = TrainingHelper(auxiliary_inputs, sequence_length, time_major)
            inputs = mapped(lambda *both: shape_ops.concat(both, -1), inputs, auxiliary_inputs)
        super().__init__(inputs, sequence_length, time_major, name)

    def sample(self, time: Any, outputs: Any, state: Any) -> Any:
        return math.cast(random.random_uniform([self.batch_size], seed=self._seed) < self._probability, int32)

    def next_inputs(self, time: Any, outputs: Any, state: Any, sample_ids: Any) -> tuple[Any, Any, Any]:
        finished, inputs, state = super().next_inputs(time, outputs, state, sample_ids)
        own = outputs if self._next is None else self._next(outputs)
        if self._auxiliary is not None:
            own = mapped(lambda *both: shape_ops.concat(both, -1), own, self._auxiliary._at(time + 1))
        chosen = math.cast(sample_ids, "bool")
        return finished, mapped(lambda one, other: selection.where(chosen, one, other), own, inputs), state


class GreedyEmbeddingHelper(Helper):
    """Reads the embedding of the likeliest symbol of the step before, until ``end_token``."""

    def __init__(self, embedding: Any, start_tokens: Any, end_token: Any) -> None:
        self._embed = look_up(embedding)
        self._start, self._end = convert_to_tensor(start_tokens), convert_to_tensor(end_token)
        self.batch_size = shape_ops.shape(self._start)[0]
        # now, so that layers in it have their variables in this scope
        self._first = self._embed(self._start)

    def initialize(self) -> tuple[Any, Any]:
        return creation.zeros_like(self._start, dtype="bool"), self._first

    def next_inputs(self, time: Any, outputs: Any, state: Any, sample_ids: Any) -> tuple[Any, Any, Any]:
        return math.equal(sample_ids, math.cast(self._end, sample_ids.dtype)), self._embed(sample_ids), state


class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """``GreedyEmbeddingHelper`` that samples a symbol by the probabilities of the outputs."""

    def __init__(
        self,
        embedding: Any,
        start_tokens: Any,
        end_token: Any,
        softmax_temperature: Any = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(embedding, start_tokens, end_token)
        self._temperature, self._seed = softmax_temperature, seed

    def sample(self, time: Any, outputs: Any, state: Any) -> Any:
        logits = outputs if self._temperature is None else outputs / self._temperature
        return math.cast(random.multinomial(logits, 1, seed=self._seed)[:, 0], int32)


class InferenceHelper(Helper):
    """Reads what ``sample_fn`` makes of the outputs of the step before, until ``end_fn`` says that a sequence ends.

    Args:
        sample_fn: What is sampled, of the outputs.
        sample_shape: The shape of what is sampled, without the batch.
        sample_dtype: Its dtype.
        start_inputs: The first inputs.
        end_fn: Of what is sampled, which sequences end.
        next_inputs_fn: Of what is sampled, the inputs of the next step; what is sampled itself unless given.
    """

    def __init__(
        self,
        sample_fn: Callable[[Any], Any],
        sample_shape: Any,
        sample_dtype: Any,
        start_inputs: Any,
        end_fn: Callable[[Any], Any],
        next_inputs_fn: Callable[[Any], Any] | None = None,
    ) -> None:
        self._sample, self._end, self._next = sample_fn, end_fn, next_inputs_fn
        self.sample_ids_dtype, self.sample_ids_shape = sample_dtype, sample_shape
        self._start = convert_to_tensor(start_inputs)
        self.batch_size = shape_ops.shape(self._start)[0]

    def initialize(self) -> tuple[Any, Any]:
        return creation.zeros([self.batch_size], "bool"), self._start

    def sample(self, time: Any, outputs: Any, state: Any) -> Any:
        return self._sample(outputs)

    def next_inputs(self, time: Any, outputs: Any, state: Any, sample_ids: Any) -> tuple[Any, Any, Any]:
        given = sample_ids if self._next is None else self._next(sample_ids)
        return self._end(sample_ids), given, state


class BasicDecoderOutput(NamedTuple):
    """What a decoder computes at a step, and the symbols that it means."""

    rnn_output: Any
    sample_id: Any


class Decoder:
    """What ``dynamic_decode`` runs; a subclass has ``initialize`` and ``step``."""

    tracks_own_finished = False
    """Whether a sequence that has ended may go on, as beams do that exchange their rows."""

    @property
    def batch_size(self) -> Any:
        """How many sequences there are."""
        raise NotImplementedError

    def initialize(self) -> tuple[Any, Any, Any]:
        """Which sequences have ended, the first inputs, the first state."""
        raise NotImplementedError

    def step(self, time: Any, inputs: Any, state: Any) -> tuple[Any, Any, Any, Any]:
        """The output of a step, the new state, the next inputs, and which sequences end."""
        raise NotImplementedError

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> tuple[Any, Any]:
        """What becomes of all outputs, time first, and of the last state."""
        return outputs, final_state


class BasicDecoder(Decoder):
    """A cell, a helper that gives its inputs, and a layer for its outputs."""

    def __init__(self, cell: Any, helper: Helper, initial_state: Any, output_layer: Any = None) -> None:
        self._cell, self._helper, self._state, self._layer = cell, helper, initial_state, output_layer

    @property
    def batch_size(self) -> Any:
        """How many sequences there are."""
        return self._helper.batch_size

    def initialize(self) -> tuple[Any, Any, Any]:
        """Which sequences have ended, the first inputs, the first state."""
        return (*self._helper.initialize(), self._state)

    def step(self, time: Any, inputs: Any, state: Any) -> tuple[Any, Any, Any, Any]:
        """The output of a step, the new state, the next inputs, and which sequences end."""
        outputs, new = self._cell(inputs, state)
        if self._layer is not None:
            outputs = self._layer(outputs)
        ids = self._helper.sample(time, outputs, new)
        finished, following, new = self._helper.next_inputs(time, outputs, new, ids)
        return BasicDecoderOutput(outputs, ids), new, following, finished


def _row(ended: Any, before: Any, after: Any) -> Any:
    """What was before in rows that have ended; a tensor array and what has no rows as it is after."""
    if hasattr(after, "with_flow") or convert_to_tensor(after).type_.ndim == 0:
        return after
    return selection.where(ended, before, after)


@example(
    "helper = tf.contrib.seq2seq.TrainingHelper(tf.ones([2, 5, 3]), [5, 2])",
    "cell = tf.nn.rnn_cell.GRUCell(4)",
    "decoder = tf.contrib.seq2seq.BasicDecoder(cell, helper, cell.zero_state(2, tf.float32))",
    "outputs, state, lengths = tf.contrib.seq2seq.dynamic_decode(decoder)",
    "session.run(tf.global_variables_initializer())",
    "print(session.run(tf.shape(outputs.rnn_output)), session.run(lengths))",
    "[2 5 4] [5 2]",
)
def dynamic_decode(
    decoder: Any,
    output_time_major: bool = False,
    impute_finished: bool = False,
    maximum_iterations: Any = None,
    parallel_iterations: int = 32,
    swap_memory: bool = False,
    scope: Any = None,
) -> tuple[Any, Any, Any]:
    """Outputs (batch, time, ...), last state and lengths of a decoder that goes on until all sequences have ended.

    With ``impute_finished`` sequences that have ended put out zeros and keep their state. ``parallel_iterations`` and
    ``swap_memory`` change nothing.
    """
    with variable_scope(scope, "decoder") as own:
        finished, inputs, state = decoder.initialize()
        if maximum_iterations is not None:
            finished = math.logical_or(finished, math.less_equal(maximum_iterations, 0))
        first = decoder.step(convert_to_tensor(0), inputs, state)[0]  # for its types; nothing runs it
        kinds, _, structure = flatten(first, "output")
        arrays = [TensorArray(one.dtype, 0, dynamic_size=True) for one in kinds]
        lengths, own_ends = (
            creation.zeros_like(finished, dtype=int32),
            getattr(decoder, "tracks_own_finished", False),
        )

        def go_on(_: Any, ended: Any, *__: Any) -> Any:
            return math.logical_not(math.reduce_all(ended))

        def body(time: Any, ended: Any, lengths: Any, given: Any, kept: Any, written: Any) -> Any:
            with variable_scope(own, reuse=True):
                output, new, following, stops = decoder.step(time, given, kept)
            now = stops if own_ends else math.logical_or(stops, ended)
            if maximum_iterations is not None:
                now = math.logical_or(now, math.greater_equal(time + 1, maximum_iterations))
            if impute_finished:
                new = mapped(lambda before, after: _row(ended, before, after), kept, new)
                output = mapped(lambda one: _row(ended, creation.zeros_like(one), one), output)
            live = math.logical_not(ended)
            if own_ends and hasattr(new, "lengths"):
                lengths = math.cast(new.lengths, int32)
            else:
                lengths = selection.where(live, creation.ones_like(lengths) * (time + 1), lengths)
            values = flatten(output, "output")[0]
            grown = [one.write(time, value) for one, value in zip(written, values, strict=True)]
            return [time + 1, now, lengths, following, new, grown]

        start = [convert_to_tensor(0), finished, lengths, inputs, state, arrays]
        found = while_loop(go_on, body, start)
        outputs, last = unflatten(structure, [one.stack() for one in found[5]]), found[4]
        if hasattr(decoder, "finalize"):
            outputs, last = decoder.finalize(outputs, last, found[2])
        if not output_time_major:
            outputs = mapped(lambda one: shape_ops.transpose(one, [1, 0, *range(2, one.type_.ndim)]), outputs)
        return outputs, last, found[2]
