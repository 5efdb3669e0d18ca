"""Attention over the states of an encoder, and cells with it: ``tf.contrib.seq2seq``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from twofold.dtypes import int32
from twofold.errors import ArgumentError
from twofold.runtime.pytree import flatten, unflatten
from twofold.runtime.tracing import here
from twofold.static import initializers, math, nn
from twofold.static.api.op_functions import convert_to_tensor, snake_case
from twofold.static.api.signatures import parameters, with_parameters
from twofold.static.arrays import creation, selection, shape_ops
from twofold.static.control_flow.tensor_array import TensorArray
from twofold.static.graph.docstrings import example
from twofold.static.layers import dense
from twofold.static.recurrent.rnn_cell import RNNCell
from twofold.static.variables.variable_scope import get_variable, get_variable_scope, variable_scope


class AttentionMechanism:
    """The memory that a decoder looks at: ``keys`` to compare with, ``values`` to take."""

    _option = ""
    """The name of the parameter that is the mechanism's own."""

    def _begin(self, num_units: int, memory: Any, memory_sequence_length: Any, **given: Any) -> None:
        lengths, units = memory_sequence_length, num_units
        self.values = convert_to_tensor(memory)
        self._mask = None
        if lengths is not None:
            self._mask = shape_ops.sequence_mask(lengths, shape_ops.shape(self.values)[1])
            mask = math.cast(shape_ops.expand_dims(self._mask, -1), self.values.dtype)
            self.values = self.values * mask
        with variable_scope("memory_layer"):
            self.keys = dense(self.values, units, use_bias=False, name=get_variable_scope())
        self._name, self._units, self._chosen = given["name"], units, given[self._option]
        self._probability = given["probability_fn"] or nn.softmax
        self._masked = float("-inf") if given["score_mask_value"] is None else given["score_mask_value"]
        self._dtype = given["dtype"] or self.values.dtype
        sizes = self.values.type_.shape
        self.batch_size = sizes[0] if sizes[0] >= 0 else shape_ops.shape(self.values)[0]
        self.alignments_size = sizes[1] if sizes[1] >= 0 else shape_ops.shape(self.values)[1]

    def _score(self, query: Any) -> Any:
        raise NotImplementedError

    def __call__(self, query: Any, state: Any = None) -> Any:
        """How much of each value the query takes; ``state`` (the alignments before) is not read."""
        with variable_scope(snake_case(self._name)):
            score = self._score(query)
            if self._mask is not None:
                score = selection.where(self._mask, score, creation.ones_like(score) * self._masked)
            return self._probability(score)

    def initial_alignments(self, batch_size: Any, dtype: Any) -> Any:
        """Zeros for a batch."""
        return creation.zeros([batch_size, self.alignments_size], dtype)


def _taking(name: str, option: str) -> Callable[..., None]:
    """The ``__init__`` of a mechanism with an option of its own."""

    def initialize(self: AttentionMechanism, **given: Any) -> None:
        self._begin(**given)

    own = parameters(
        f"self, num_units, memory, memory_sequence_length=None, {option}=False, probability_fn=None, "
        f"score_mask_value=None, dtype=None, name={name!r}"
    )
    return with_parameters(initialize, own)


class BahdanauAttention(AttentionMechanism):
    """Additive attention (Bahdanau et al., 2014); with ``normalize`` after Salimans and Kingma, 2016."""

    _option = "normalize"
    __init__ = _taking("BahdanauAttention", "normalize")

    def _score(self, query: Any) -> Any:
        with variable_scope("query_layer"):
            asked = dense(query, self._units, use_bias=False, name=get_variable_scope())
        vector = get_variable("attention_v", [self._units], self._dtype)
        added = self.keys + shape_ops.expand_dims(asked, 1)
        if not self._chosen:
            return math.reduce_sum(vector * math.tanh(added), 2)
        first = initializers.constant_initializer(self._units**-0.5)
        gain = get_variable("attention_g", [], self._dtype, first)
        bias = get_variable("attention_b", [self._units], self._dtype, initializers.zeros_initializer())
        length = math.sqrt(math.reduce_sum(math.square(vector)))
        return math.reduce_sum(gain * vector / length * math.tanh(added + bias), 2)


class LuongAttention(AttentionMechanism):
    """Multiplicative attention (Luong et al., 2015); with ``scale`` times a variable."""

    _option = "scale"
    __init__ = _taking("LuongAttention", "scale")

    def _score(self, query: Any) -> Any:
        if query.type_.shape[-1] != self._units:
            what = f"{self._name}: a query of {query.type_.shape[-1]} features for {self._units} units, at {here()}"
            raise ArgumentError(what, "Give num_units the size of the cell.")
        score = shape_ops.squeeze(
            math.matmul(shape_ops.expand_dims(query, 1), self.keys, transpose_b=True), [1]
        )
        if self._chosen:
            score = score * get_variable("attention_g", [], self._dtype, initializers.ones_initializer())
        return score


class AttentionWrapperState(NamedTuple):
    """The state of an ``AttentionWrapper``."""

    cell_state: Any
    attention: Any
    time: Any
    alignments: Any
    alignment_history: Any
    attention_state: Any

    def clone(self, **kwargs: Any) -> AttentionWrapperState:
        """The state with other parts."""
        return self._replace(**kwargs)


class AttentionWrapper(RNNCell):
    """A cell whose inputs are joined with what attention found, and whose outputs are what it finds next.

    ``attention_layer_size`` is the size that output and context are projected to (None: the context as it is). With
    lists of mechanisms and sizes there are several contexts. With ``output_attention=False`` the cell's output is the
    output.
    """

    def __init__(
        self,
        cell: RNNCell,
        attention_mechanism: Any,
        attention_layer_size: Any = None,
        alignment_history: bool = False,
        cell_input_fn: Callable[[Any, Any], Any] | None = None,
        output_attention: bool = True,
        initial_cell_state: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(name=name)
        self._many = isinstance(attention_mechanism, (list, tuple))
        self._mechanisms = list(attention_mechanism) if self._many else [attention_mechanism]
        sizes = attention_layer_size if isinstance(attention_layer_size, (list, tuple)) else None
        self._sizes = list(sizes) if sizes else [attention_layer_size] * len(self._mechanisms)
        self._cell, self._history, self._output_attention = cell, alignment_history, output_attention
        self._join = cell_input_fn or (lambda inputs, attention: shape_ops.concat([inputs, attention], -1))
        self._initial = initial_cell_state

    def _as_given(self, values: list[Any]) -> Any:
        return tuple(values) if self._many else values[0]

    @property
    def _width(self) -> int:
        pairs = zip(self._sizes, self._mechanisms, strict=True)
        return sum(one.values.type_.shape[-1] if size is None else size for size, one in pairs)

    @property
    def output_size(self) -> Any:
        return self._width if self._output_attention else self._cell.output_size

    @property
    def state_size(self) -> Any:
        sizes = self._as_given([one.alignments_size for one in self._mechanisms])
        return AttentionWrapperState(self._cell.state_size, self._width, (), sizes, (), sizes)

    def zero_state(self, batch_size: Any, dtype: Any) -> AttentionWrapperState:
        """A state that has seen nothing; of the cell the state that it was made with, if any."""
        first = self._cell.zero_state(batch_size, dtype) if self._initial is None else self._initial
        none = [one.initial_alignments(batch_size, dtype) for one in self._mechanisms]
        kept: Any = ()
        if self._history:
            kept = self._as_given([TensorArray(dtype, 0, dynamic_size=True) for _ in none])
        return AttentionWrapperState(
            first,
            creation.zeros([batch_size, self._width], dtype),
            creation.zeros([], int32),
            self._as_given(none),
            kept,
            self._as_given(none),
        )

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        output, new = self._cell(self._join(inputs, state.attention), state.cell_state)
        found, weights = [], []
        for number, (mechanism, size) in enumerate(zip(self._mechanisms, self._sizes, strict=True)):
            taken = mechanism(output)
            context = shape_ops.squeeze(math.matmul(shape_ops.expand_dims(taken, 1), mechanism.values), [1])
            if size is not None:
                name = "attention_layer" if number == 0 else f"attention_layer_{number}"
                with variable_scope(name):
                    context = dense(
                        shape_ops.concat([output, context], 1),
                        size,
                        use_bias=False,
                        name=get_variable_scope(),
                    )
            found.append(context)
            weights.append(taken)
        attention = found[0] if len(found) == 1 else shape_ops.concat(found, 1)
        kept = state.alignment_history
        if self._history:
            given = list(kept) if self._many else [kept]
            kept = self._as_given(
                [one.write(state.time, taken) for one, taken in zip(given, weights, strict=True)]
            )
        given_weights = self._as_given(weights)
        made = AttentionWrapperState(new, attention, state.time + 1, given_weights, kept, given_weights)
        return (attention if self._output_attention else output), made


@example("tf.contrib.seq2seq.tile_batch(tf.constant([1, 2]), 3)", "[1 1 1 2 2 2]")
def tile_batch(t: Any, multiplier: int, name: str | None = None) -> Any:
    """Each row of a nested structure of batches ``multiplier`` times in a row."""
    values, _, structure = flatten(t, "t")
    return unflatten(structure, [_tiled(convert_to_tensor(one), multiplier, name) for one in values])


def _tiled(value: Any, count: int, name: str | None) -> Any:
    ndim = value.type_.ndim
    apart = shape_ops.tile(shape_ops.expand_dims(value, 1), [1, count, *[1] * (ndim - 1)])
    sizes = shape_ops.shape(value)
    made = shape_ops.reshape(apart, shape_ops.concat([[sizes[0] * count], sizes[1:]], 0), name=name)
    first, *rest = value.get_shape().as_list()
    made.set_shape([None if first is None else first * count, *rest])
    return made
