"""Keras's layer over the steps of any cell: ``tf.keras.layers.RNN``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold.runtime.pytree import flatten, unflatten
from twofold.static.api.op_functions import convert_to_tensor
from twofold.static.arrays import creation, shape_ops
from twofold.static.graph.docstrings import example
from twofold.static.graph.tensor_shape import TensorShape
from twofold.static.keras.base_layer import Layer, made_from
from twofold.static.keras.named import serialize
from twofold.static.recurrent.rnn import dynamic_rnn


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


def _stepped(cell: Any, inputs: Any, state: Any) -> tuple[Any, Any]:
    """A step of a cell, with the state in the structure of its ``state_size``."""
    several = isinstance(cell.state_size, (list, tuple))
    output, new = cell(inputs, list(state) if several else [state])
    if several or not isinstance(new, (list, tuple)):
        return output, list(new) if several else new
    return output, new[0]


class _Steps:
    """A cell as ``dynamic_rnn`` takes it."""

    def __init__(self, cell: Any) -> None:
        self._cell = cell
        self.state_size, self.output_size = cell.state_size, getattr(cell, "output_size", None)
        if self.output_size is None:
            sizes = cell.state_size
            self.output_size = sizes[0] if isinstance(sizes, (list, tuple)) else sizes

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """Zeros, or what the cell says."""
        if hasattr(self._cell, "get_initial_state"):
            return self._cell.get_initial_state(None, batch_size, dtype)
        return zero_state(self._cell, None, batch_size, dtype)

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> tuple[Any, Any]:
        return _stepped(self._cell, inputs, state)


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
        stateful: Not offered; raises unless False.
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
        if stateful:
            raise ValueError("RNN: stateful is not offered. Give initial_state.")
        super().__init__(**options)
        self.cell = StackedRNNCells(cell) if isinstance(cell, (list, tuple)) else cell
        self.return_sequences, self.return_state = return_sequences, return_state
        self.go_backwards, self._time_major = go_backwards, time_major

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal layer."""
        own = {key: getattr(self, key) for key in ("return_sequences", "return_state", "go_backwards")}
        return {**self._base_config(), **own, "time_major": self._time_major, "cell": serialize(self.cell)}

    @classmethod
    def from_config(cls, config: Any) -> Any:
        """The layer of a configuration."""
        return cls(made_from(config["cell"]), **{key: one for key, one in config.items() if key != "cell"})

    def call(self, inputs: Any, initial_state: Any = None) -> Any:
        """The last output or all, with ``return_state`` also the last states."""
        if isinstance(inputs, list):
            inputs, *rest = inputs
            initial_state = initial_state or rest
        time = 0 if self._time_major else 1
        x = shape_ops.reverse(inputs, [time]) if self.go_backwards else inputs
        several = isinstance(self.cell.state_size, (list, tuple))
        if isinstance(initial_state, (list, tuple)) and not several:
            initial_state = initial_state[0]
        kind = x.dtype if initial_state is None else None
        outputs, state = dynamic_rnn(
            _Steps(self.cell), x, initial_state=initial_state, dtype=kind, time_major=self._time_major
        )
        result = outputs
        if not self.return_sequences:
            result = outputs[-1] if self._time_major else outputs[:, -1]
        states = list(state) if several else [state]
        return [result, *states] if self.return_state else result
