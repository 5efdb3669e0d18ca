"""Attention over the states of an encoder, and cells with it: ``tf.contrib.seq2seq``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from twofold.dtypes import int32
from twofold.runtime.tracing import here
from twofold.static import math
from twofold.static.arrays import creation, shape_ops
from twofold.static.contrib.attention_mechanisms import AttentionMechanism
from twofold.static.control_flow.tensor_array import TensorArray
from twofold.static.layers import Dense
from twofold.static.recurrent.rnn_cell import RNNCell


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


def _compute_attention(
    attention_mechanism: AttentionMechanism, cell_output: Any, attention_state: Any, attention_layer: Any
) -> tuple[Any, Any, Any]:
    """What one mechanism finds for an output: the attention, the alignments, and its next state."""
    taken = attention_mechanism(cell_output, attention_state)
    # Mechanisms of programs written for early versions return only alignments, which are their state.
    alignments, following = taken if isinstance(taken, tuple) else (taken, taken)
    context = shape_ops.squeeze(
        math.matmul(shape_ops.expand_dims(alignments, 1), attention_mechanism.values), [1]
    )
    if attention_layer is not None:
        context = attention_layer(shape_ops.concat([cell_output, context], 1))
    return context, alignments, following


class AttentionWrapper(RNNCell):
    """A cell whose inputs are joined with what attention found, and whose outputs are what it finds next.

    ``attention_layer_size`` is the size that output and context are projected to (None: the context as it is). With
    lists of mechanisms and sizes there are several contexts. With ``output_attention=False`` the cell's output is the
    output. ``attention_layer`` are layers of one's own that project; ``attention_fn(mechanism, output, state, layer)``
    returns attention, alignments and the mechanism's next state.
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
        attention_layer: Any = None,
        attention_fn: Callable[[AttentionMechanism, Any, Any, Any], Any] | None = None,
    ) -> None:
        super().__init__(name=name)
        self._is_multi = isinstance(attention_mechanism, (list, tuple))
        self._attention_mechanisms = list(attention_mechanism) if self._is_multi else [attention_mechanism]
        if attention_layer_size is not None and attention_layer is not None:
            raise ValueError(
                f"AttentionWrapper: attention_layer_size and attention_layer, at {here()}. Give one."
            )
        if attention_layer_size is not None:
            sizes = attention_layer_size if self._is_multi else [attention_layer_size]
            attention_layer = [Dense(one, name="attention_layer", use_bias=False) for one in sizes]
        elif attention_layer is None:
            attention_layer = [None] * len(self._attention_mechanisms)
        self._attention_layers = (
            list(attention_layer) if isinstance(attention_layer, (list, tuple)) else [attention_layer]
        )
        counts = len(self._attention_layers), len(self._attention_mechanisms)
        if counts[0] != counts[1]:
            what = f"AttentionWrapper: {counts[0]} layers for {counts[1]} mechanisms, at {here()}"
            raise ValueError(f"{what}. Give one for each.")
        self._attend = attention_fn or _compute_attention
        self._cell, self._alignment_history, self._output_attention = (
            cell,
            alignment_history,
            output_attention,
        )
        self._cell_input_fn = cell_input_fn or (
            lambda inputs, attention: shape_ops.concat([inputs, attention], -1)
        )
        self._initial_cell_state = initial_cell_state

    def _item_or_tuple(self, values: list[Any]) -> Any:
        return tuple(values) if self._is_multi else values[0]

    @property
    def _attention_layer_size(self) -> int:
        pairs = zip(self._attention_layers, self._attention_mechanisms, strict=True)
        return sum(one.values.type_.shape[-1] if layer is None else layer.units for layer, one in pairs)

    @property
    def output_size(self) -> Any:
        return self._attention_layer_size if self._output_attention else self._cell.output_size

    @property
    def state_size(self) -> Any:
        sizes = self._item_or_tuple([one.alignments_size for one in self._attention_mechanisms])
        states = self._item_or_tuple([one.state_size for one in self._attention_mechanisms])
        return AttentionWrapperState(self._cell.state_size, self._attention_layer_size, (), sizes, (), states)

    def zero_state(self, batch_size: Any, dtype: Any) -> AttentionWrapperState:
        """A state that has seen nothing; of the cell the state that it was made with, if any."""
        first = (
            self._cell.zero_state(batch_size, dtype)
            if self._initial_cell_state is None
            else self._initial_cell_state
        )
        none = [one.initial_alignments(batch_size, dtype) for one in self._attention_mechanisms]
        states = [one.initial_state(batch_size, dtype) for one in self._attention_mechanisms]
        kept: Any = ()
        if self._alignment_history:
            kept = self._item_or_tuple([TensorArray(dtype, 0, dynamic_size=True) for _ in none])
        return AttentionWrapperState(
            first,
            creation.zeros([batch_size, self._attention_layer_size], dtype),
            creation.zeros([], int32),
            self._item_or_tuple(none),
            kept,
            self._item_or_tuple(states),
        )

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        output, new = self._cell(self._cell_input_fn(inputs, state.attention), state.cell_state)
        states = state.attention_state if self._is_multi else [state.attention_state]
        every = [
            self._attend(mechanism, output, before, layer)
            for mechanism, before, layer in zip(
                self._attention_mechanisms, states, self._attention_layers, strict=True
            )
        ]
        found, weights, after = [list(one) for one in zip(*every, strict=True)]
        attention = found[0] if len(found) == 1 else shape_ops.concat(found, 1)
        kept = state.alignment_history
        if self._alignment_history:
            given = list(kept) if self._is_multi else [kept]
            kept = self._item_or_tuple(
                [one.write(state.time, taken) for one, taken in zip(given, weights, strict=True)]
            )
        aligned, following = self._item_or_tuple(weights), self._item_or_tuple(after)
        made = AttentionWrapperState(new, attention, state.time + 1, aligned, kept, following)
        return (attention if self._output_attention else output), made
