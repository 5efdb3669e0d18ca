"""Keras's layer over the steps of any cell: ``tf.keras.layers.RNN``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from twofold.runtime.pytree import flatten, unflatten
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import convert_to_tensor
from twofold.static.arrays import creation, shape_ops
from twofold.static.graph.context import at_once
from twofold.static.graph.docstrings import example
from twofold.static.graph.tensor_shape import TensorShape
from twofold.static.keras.base_layer import Layer, made_from, put_value
from twofold.static.keras.masking import stepped
from twofold.static.keras.named import serialize
from twofold.static.keras.state import keep_state, settings
from twofold.static.variables.variable import Variable, assign


def zero_state(cell: Any, inputs: Any = None, batch_size: Any = None, dtype: Any = None) -> Any:
    """A state of zeros in the structure of ``cell.state_size``, for as many rows as the inputs have."""
    if inputs is not None:
        value = convert_to_tensor(inputs)
        first = value.type_.shape[0]
        batch_size = first if first >= 0 else shape_ops.shape(value)[0]
        dtype = dtype or value.dtype
    sizes, _, structure = flatten(_nested(cell.state_size), "state_size")
    zeros = [creation.zeros([batch_size, *TensorShape(size.value).as_list()], dtype) for size in sizes]
    return unflatten(structure, zeros)


class _Size:
    """A size in a structure, which may be a shape."""

    def __init__(self, value: Any) -> None:
        self.value = value if isinstance(value, TensorShape) else [value]


def _nested(sizes: Any) -> Any:
    if isinstance(sizes, (list, tuple)) and not isinstance(sizes, TensorShape):
        return [_nested(one) for one in sizes]
    return _Size(sizes)


class AbstractRNNCell(Layer):
    """Base of cells: a subclass has ``state_size``, ``output_size`` and ``call(inputs, states)``."""

    @property
    def state_size(self) -> Any:
        """The size of the state, or of its parts."""
        raise NotImplementedError(f"{type(self).__name__} does not say its state_size. Define the property.")

    @property
    def output_size(self) -> Any:
        """The size of the output."""
        raise NotImplementedError(f"{type(self).__name__} does not say its output_size. Define the property.")

    def get_initial_state(self, inputs: Any = None, batch_size: Any = None, dtype: Any = None) -> Any:
        """A state of zeros for a batch, that of the inputs or of the size given."""
        return zero_state(self, inputs, batch_size, dtype)


class StackedRNNCells(AbstractRNNCell):
    """Cells each of which reads the output of the one before it; the state is the list of theirs."""

    def __init__(self, cells: Sequence[Any], **options: Any) -> None:
        super().__init__(**options)
        self.cells = list(cells)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal layer."""
        return {**self._base_config(), "cells": serialize(self.cells)}

    @classmethod
    def from_config(cls, config: Any) -> Any:
        """The cells of a configuration."""
        return cls(**{**config, "cells": [made_from(one) for one in config["cells"]]})

    @property
    def state_size(self) -> Any:
        """The sizes of the states of all cells."""
        return [cell.state_size for cell in self.cells]

    @property
    def output_size(self) -> Any:
        """The size of the last cell's output."""
        return self.cells[-1].output_size

    def call(self, inputs: Any, states: Any) -> Any:  # type: ignore[override]
        """The output of the last cell, and the new states of all."""
        new = []
        for cell, state in zip(self.cells, states):
            inputs, made = _stepped(cell, inputs, state)
            new.append(made)
        return inputs, new


def _stepped(cell: Any, inputs: Any, state: Any, **more: Any) -> tuple[Any, Any]:
    """A step of a cell, with the state in the structure of its ``state_size``."""
    several = isinstance(cell.state_size, (list, tuple))
    output, new = cell(inputs, list(state) if several else [state], **more)
    if several or not isinstance(new, (list, tuple)):
        return output, list(new) if several else new
    return output, new[0]


def split_inputs(inputs: Any, initial_state: Any, mask: Any) -> tuple[Any, Any, Any]:
    """Inputs that may be a list with the first states behind them, these states, and the mask of the inputs."""
    if not isinstance(inputs, list):
        return inputs, initial_state, mask
    first, *rest = inputs
    states = rest if initial_state is None and rest else initial_state
    return first, states, mask[0] if isinstance(mask, list) else mask


def kept_states(layer: Layer, batch: Any, shapes: Sequence[Any]) -> list[Any]:
    """Variables of zeros for the states of a stateful layer; raises ValueError where the batch's size is unknown."""
    size = getattr(batch, "value", batch)
    if size is None:
        what = f"{layer.name}: a stateful layer needs the size of a batch"
        raise ValueError(f"{what}, at {here()}. Give batch_input_shape, or batch_shape to Input.")
    made = []
    for shape in shapes:
        zeros = creation.zeros([size, *shape], layer.dtype or settings.floatx)
        made.append(Variable(zeros, False, [], name=f"{layer.name}/state"))
        if not at_once():
            keep_state(made[-1])
    return made


def reset_kept(layer: Any, states: Any) -> None:
    """Set the states that a stateful layer keeps, to zeros unless arrays are given."""
    if layer.states is None:
        raise AttributeError(f"{layer.name}: Layer must be stateful, and built, at {here()}.")
    given = [states] if states is not None and not isinstance(states, (list, tuple)) else states
    shapes = [variable.get_shape().as_list() for variable in layer.states]
    values = [numpy.zeros(shape, "f") for shape in shapes] if given is None else given
    for variable, value in zip(layer.states, values, strict=True):
        put_value(variable, value)


def keep_states(layer: Any, states: Sequence[Any]) -> None:
    """Let a stateful layer begin with states in the next batch."""
    if layer.states is not None:
        made = [assign(variable, state) for variable, state in zip(layer.states, states, strict=True)]
        layer._state_updates += made


def mask_of_outputs(layer: Any, mask: Any) -> Any:
    """The mask of the steps where a layer returns all outputs; the states have none."""
    found = mask[0] if isinstance(mask, list) else mask
    return [found] if layer.return_sequences and found is not None else None


@example(
    "cells = [tf.keras.layers.LSTMCell(4), tf.keras.layers.GRUCell(6)]",
    "print(tf.keras.layers.RNN(cells, return_sequences=True)(tf.zeros([2, 5, 3])).shape)",
    "(2, 5, 6)",
)
class RNN(Layer):
    """A cell, or several upon each other, over inputs (batch, time, channels): the last output, or all of them.

    Args:
        cell: A layer with ``state_size`` and ``call(inputs, states)``, or a list of them.
        return_sequences: Whether all outputs are returned.
        return_state: Whether the last states are returned behind the outputs.
        go_backwards: Whether the last step comes first.
        stateful: Whether a batch begins with the states that the one before ended with, until ``reset_states``.
        unroll: Changes nothing that is computed.
        time_major: Whether inputs and outputs have time first.
        **options: Those of ``Layer``.
    """

    def __init__(
        self,
        cell: Any,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
        time_major: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.cell = StackedRNNCells(cell) if isinstance(cell, (list, tuple)) else cell
        self.return_sequences, self.return_state = return_sequences, return_state
        self.go_backwards, self._time_major = go_backwards, time_major
        self.time_major, self.stateful, self.unroll = time_major, stateful, unroll
        self.states: list[Any] | None = None

    supports_masking = True

    def build(self, input_shape: Any) -> None:
        """The states that a stateful layer keeps."""
        if self.stateful:
            first = input_shape[0] if isinstance(input_shape, list) else input_shape
            sizes = flatten(_nested(self.cell.state_size), "state_size")[0]
            shapes = [TensorShape(size.value).as_list() for size in sizes]
            self.states = kept_states(self, first[1 if self.time_major else 0], shapes)

    def reset_states(self, states: Any = None) -> None:
        """Let a stateful layer begin with zeros, or with the arrays given."""
        reset_kept(self, states)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask of the steps, where all outputs are returned; the states have none."""
        return mask_of_outputs(self, mask)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal layer."""
        keys = ("return_sequences", "return_state", "go_backwards", "stateful", "unroll")
        own = {key: getattr(self, key) for key in keys}
        return {**self._base_config(), **own, "time_major": self._time_major, "cell": serialize(self.cell)}

    @classmethod
    def from_config(cls, config: Any) -> Any:
        """The layer of a configuration."""
        return cls(made_from(config["cell"]), **{key: one for key, one in config.items() if key != "cell"})

    def call(self, inputs: Any, initial_state: Any = None, constants: Any = None, mask: Any = None) -> Any:
        """The last output or all, with ``return_state`` also the last states; ``constants`` go to each step."""
        inputs, initial_state, mask = split_inputs(inputs, initial_state, mask)
        several = isinstance(self.cell.state_size, (list, tuple))
        if initial_state is not None:
            first = initial_state
            if isinstance(first, (list, tuple)) and not several:
                first = first[0]
        elif self.states is not None:
            first = [convert_to_tensor(one) for one in self.states]
            first = first if several else first[0]
        else:
            first = self._zeros(inputs[0] if self.time_major else inputs[:, 0])
        starts, _, structure = flatten(first, "initial_state")
        more = {} if constants is None else {"constants": constants}

        def step(value: Any, before: list[Any]) -> Any:
            output, new = _stepped(self.cell, value, unflatten(structure, before), **more)
            return output, flatten(new, "state")[0]

        last, outputs, states = stepped(step, inputs, starts, mask, self.go_backwards, self.time_major)
        keep_states(self, states)
        result = outputs if self.return_sequences else last
        found = unflatten(structure, states)
        return [result, *(list(found) if several else [found])] if self.return_state else result

    def _zeros(self, value: Any) -> Any:
        """The first state for the inputs of a step."""
        if hasattr(self.cell, "get_initial_state"):
            size = value.get_shape()[0].value
            batch = shape_ops.shape(value)[0] if size is None else size
            return self.cell.get_initial_state(inputs=None, batch_size=batch, dtype=value.dtype)
        return zero_state(self.cell, value)
