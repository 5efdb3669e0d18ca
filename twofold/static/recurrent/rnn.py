"""Recurrent networks: a cell applied step by step to sequences.

Steps of a sequence past its length put out zeros and keep the state, as in TensorFlow 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold.errors import ArgumentError, ShapeError
from twofold.ir.shape_inference import UNKNOWN_RANK
from twofold.ops.base import ops
from twofold.runtime.calls import failed
from twofold.runtime.pytree import flatten, unflatten
from twofold.static import math
from twofold.static.api.op_functions import convert_to_tensor, operation
from twofold.static.arrays import creation, reordering, shape_ops
from twofold.static.control_flow.tensor_array import TensorArray
from twofold.static.control_flow.while_loop import repeat, while_loop
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import describe
from twofold.static.sequence.axes import layout_of, rows_at
from twofold.static.sequence.loops import Start, along
from twofold.static.variables.variable_scope import get_variable_scope, variable_scope


@example(
    "x = tf.placeholder(tf.float32, [None, None, 3])",
    "outputs, state = tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(4), x, dtype=tf.float32)",
    "session.run(tf.global_variables_initializer())",
    "print(session.run(tf.shape(outputs), {x: [[[0.0, 1.0, 2.0]] * 5] * 2}))",
    "[2 5 4]",
)
def dynamic_rnn(
    cell: Any,
    inputs: Any,
    sequence_length: Any = None,
    initial_state: Any = None,
    dtype: Any = None,
    parallel_iterations: Any = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: Any = None,
) -> tuple[Any, Any]:
    """Outputs of all steps and the last state of ``cell`` over ``inputs`` of shape (batch, time, ...).

    With ``time_major`` the first two axes of inputs and outputs are (time, batch). ``sequence_length`` holds one
    length for each sequence. Without ``initial_state`` the state of ``dtype`` begins with zeros. The number of
    steps may be unknown. ``parallel_iterations`` and ``swap_memory`` change nothing.

    Of ``inputs`` with a sequence axis (see ``tf.sequence``) the outputs are sequences, and the state is one for each.
    """
    with variable_scope(scope or "rnn"):
        given, names, structure = flatten(inputs, "inputs")
        sequences = [convert_to_tensor(value) for value in given]
        if layout_of(sequences[0]) is not None:
            _check_no_lengths("dynamic_rnn", sequence_length, time_major)
            outputs, states = along_sequences("dynamic_rnn", cell, inputs, initial_state, dtype)
            return outputs, _ends(states, layout_of(sequences[0]))
        for value, name in zip(sequences, names):
            if value.type_.shape != UNKNOWN_RANK and value.type_.ndim < 3:
                what = f"{name} is {describe(value)}"
                raise failed("dynamic_rnn", ShapeError(what, "Give (batch, time, ...), at least three axes."))
        if not time_major:
            sequences = [_swapped(value) for value in sequences]
        batch = _size(sequences[0], 1)
        steps = _Steps("dynamic_rnn", cell, initial_state, dtype, batch, sequence_length)
        rows = list(sequences)
        if steps.lengths is not None:
            rows.append(math.cast(creation.range(shape_ops.shape(sequences[0])[0]), steps.lengths.dtype))

        def step(carried: Sequence[Any], row: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
            number = None if steps.lengths is None else row[-1]
            outputs, states = steps.next(unflatten(structure, row[: len(sequences)]), carried, number)
            return states, outputs

        if any(_is_array(value) for value in steps.starts):
            results = _with_arrays(step, steps.starts, rows)
        else:
            results = repeat("dynamic_rnn", step, steps.starts, steps.names, rows, False, "while")
        count = len(steps.starts)
        outputs = results[count:] if time_major else [_swapped(value) for value in results[count:]]
    return unflatten(steps.output_structure, outputs), unflatten(steps.structure, results[:count])


def _is_array(value: Any) -> bool:
    return isinstance(value, TensorArray)


def _with_arrays(step: Any, starts: Sequence[Any], rows: Sequence[Any]) -> list[Any]:
    """Last states and stacked outputs of a step whose states include tensor arrays, which a loop carries."""
    scope, count = get_variable_scope(), shape_ops.shape(rows[0])[0]

    def body(time: Any, states: Any, written: Any) -> Any:
        with variable_scope(scope, reuse=True):
            new, outputs = step(states, [row[time] for row in rows])
        return time + 1, new, [one.write(time, value) for one, value in zip(written, outputs, strict=True)]

    # for the types of outputs, and to make variables; nothing runs them
    _, outputs = step(starts, [row[0] for row in rows])
    arrays = [TensorArray(one.dtype, 0, dynamic_size=True) for one in outputs]
    found = while_loop(
        lambda time, *_: math.less(time, count), body, [convert_to_tensor(0), list(starts), arrays]
    )
    return [*found[1], *[one.stack() for one in found[2]]]


def along_sequences(operation: str, cell: Any, x: Any, initial_state: Any, dtype: Any) -> tuple[Any, Any]:
    """Outputs and states of ``cell`` after all steps of values with a sequence axis."""
    given, _, structure = flatten(x, "inputs")
    steps = _Steps(operation, cell, initial_state, dtype, 1, None)

    def step(states: Sequence[Any], rows: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        return steps.next(unflatten(structure, rows), states)

    alike = initial_state is None
    starts = [Start(shape_ops.squeeze(v, [0]) if alike else v, not alike) for v in steps.starts]
    sequences = [convert_to_tensor(value) for value in given]
    outputs, states = along(operation, step, sequences, starts, steps.names)
    return unflatten(steps.output_structure, outputs), unflatten(steps.structure, states)


def _check_no_lengths(operation: str, lengths: Any, time_major: bool) -> None:
    """Raise ArgumentError for what values with a sequence axis are given without effect."""
    if lengths is not None or time_major:
        what = "inputs with a sequence axis have lengths of their own, and no axis of time"
        raise failed(operation, ArgumentError(what, "Leave out sequence_length and time_major."))


def _ends(states: Any, layout: Any) -> Any:
    """What is after the last step of each sequence."""
    values, _, structure = flatten(states, "state")
    return unflatten(structure, [rows_at(value, layout.lasts()) for value in values])


class _Steps:
    """A cell with the first state of a batch, its states and outputs flat."""

    def __init__(
        self, operation: str, cell: Any, state: Any, dtype: Any, batch: Any, sequence_length: Any
    ) -> None:
        if not hasattr(cell, "zero_state") and not hasattr(cell, "get_initial_state"):
            what = f"cell is {cell!r}"
            raise failed(operation, ArgumentError(what, "Give a cell of tf.nn.rnn_cell or tf.keras.layers."))
        if state is None and dtype is None:
            what = "neither initial_state nor dtype is given"
            raise failed(operation, ArgumentError(what, "Give the dtype of a state of zeros, or a state."))
        self.operation, self.cell = operation, cell
        self.lengths = None if sequence_length is None else convert_to_tensor(sequence_length)
        # Cells of Keras take and return a list of states, which is seen outside only if it has several.
        self._lists_states = not hasattr(cell, "zero_state")
        first = self._zeros(batch, dtype) if state is None else state
        values, self.names, self.structure = flatten(first, "initial_state")
        self.starts = [value if _is_array(value) else convert_to_tensor(value) for value in values]
        self.output_structure: Any = None

    def _zeros(self, batch: Any, dtype: Any) -> Any:
        if self._lists_states:
            return self.cell.get_initial_state(inputs=None, batch_size=batch, dtype=dtype)
        return self.cell.zero_state(batch, dtype)

    def next(self, inputs: Any, state: Sequence[Any], number: Any = None) -> tuple[list[Any], list[Any]]:
        """Outputs and states of step ``number``; of a sequence that has ended, zeros and the state before."""
        before = unflatten(self.structure, state)
        if self._lists_states and not isinstance(before, (list, tuple)):
            before = [before]
        output, new = self.cell(inputs, before)
        if self._lists_states and len(new) == 1:
            (new,) = new
        outputs, _, self.output_structure = flatten(output, "output")
        states, _, found = flatten(new, "state")
        if repr(found) != repr(self.structure):
            what = f"the cell returns a state {found!r} for {self.structure!r}"
            raise failed(self.operation, ArgumentError(what, "Return the state in its structure."))
        if number is None:
            return outputs, states
        goes_on = math.less(number, self.lengths)
        return (
            [_chosen(goes_on, value, creation.zeros_like(value)) for value in outputs],
            [
                # What all sequences share goes on with the steps: arrays, and scalars as AttentionWrapper's time.
                value if _is_array(value) or not value.type_.shape else _chosen(goes_on, value, last)
                for value, last in zip(states, state)
            ],
        )


@operation("Select")
def _chosen(rows: Any, x: Any, y: Any) -> Any:
    """Rows of ``x`` where true, of ``y`` elsewhere."""
    return ops.where(ops.reshape(rows, (-1, *[1] * (x.ndim - 1))), x, y)


@operation("Transpose", default="transpose")
def _swapped(x: Any) -> Any:
    return ops.transpose(x, 0, 1)


def _size(tensor: Any, axis: int) -> Any:
    """A size: a number if it is known, else a tensor."""
    shape = tensor.type_.shape
    known = shape[axis] if shape != UNKNOWN_RANK else -1
    return known if known >= 0 else shape_ops.shape(tensor)[axis]


def static_rnn(
    cell: Any,
    inputs: Any,
    initial_state: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """The outputs and the last state of ``cell`` over a list of inputs, one for each step, of shape (batch, ...)."""
    if not isinstance(inputs, (list, tuple)) or not inputs:
        what = f"inputs are {inputs!r}"
        raise failed("static_rnn", ArgumentError(what, "Give a list with the input of each step."))
    with variable_scope(scope or "rnn") as own:
        batch = _size(convert_to_tensor(flatten(inputs[0], "inputs")[0][0]), 0)
        steps = _Steps("static_rnn", cell, initial_state, dtype, batch, sequence_length)
        state: Sequence[Any] = steps.starts
        outputs = []
        for number, value in enumerate(inputs):
            if number:
                own.reuse_variables()
            found, state = steps.next(value, state, None if steps.lengths is None else number)
            outputs.append(unflatten(steps.output_structure, found))
    return outputs, unflatten(steps.structure, state)


def bidirectional_dynamic_rnn(
    cell_fw: Any,
    cell_bw: Any,
    inputs: Any,
    sequence_length: Any = None,
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: Any = None,
    parallel_iterations: Any = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: Any = None,
) -> tuple[Any, Any]:
    """``dynamic_rnn`` forwards and backwards: ``((outputs, outputs), (state, state))``, each at its own step.

    ``parallel_iterations`` and ``swap_memory`` change nothing.
    """
    time, batch = (0, 1) if time_major else (1, 0)

    def backwards(value: Any) -> Any:
        values, _, structure = flatten(value, "inputs")
        layout = layout_of(values[0])
        if layout is not None:
            found = [rows_at(item, layout.mirrored()) for item in values]
        elif sequence_length is None:
            found = [shape_ops.reverse(item, [time]) for item in values]
        else:
            found = [reordering.reverse_sequence(item, sequence_length, time, batch) for item in values]
        return unflatten(structure, found)

    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as forward:
            options = {"dtype": dtype, "time_major": time_major, "scope": forward}
            outputs, state = dynamic_rnn(cell_fw, inputs, sequence_length, initial_state_fw, **options)
        with variable_scope("bw") as backward:
            options["scope"] = backward
            other, last = dynamic_rnn(
                cell_bw, backwards(inputs), sequence_length, initial_state_bw, **options
            )
        return (outputs, backwards(other)), (state, last)


def static_bidirectional_rnn(
    cell_fw: Any,
    cell_bw: Any,
    inputs: Any,
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any, Any]:
    """``static_rnn`` forwards and backwards: the outputs of both beside each other, and both last states."""
    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as forward:
            outputs, state = static_rnn(cell_fw, inputs, initial_state_fw, dtype, sequence_length, forward)
        with variable_scope("bw") as backward:
            flipped = _flipped(inputs, sequence_length)
            found, last = static_rnn(cell_bw, flipped, initial_state_bw, dtype, sequence_length, backward)
        both = zip(outputs, _flipped(found, sequence_length))
        return [shape_ops.concat([a, b], 1) for a, b in both], state, last


def _flipped(steps: Sequence[Any], lengths: Any) -> list[Any]:
    """Steps in the opposite order, each sequence within its own length."""
    if lengths is None:
        return list(reversed(steps))
    return shape_ops.unstack(reordering.reverse_sequence(shape_ops.stack(steps), lengths, 0, 1), len(steps))


def stack_bidirectional_dynamic_rnn(
    cells_fw: Sequence[Any],
    cells_bw: Sequence[Any],
    inputs: Any,
    initial_states_fw: Any = None,
    initial_states_bw: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    parallel_iterations: Any = None,
    time_major: bool = False,
    scope: Any = None,
) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    """Layers of ``bidirectional_dynamic_rnn`` above each other: outputs of the last, and all last states.

    ``parallel_iterations`` changes nothing.
    """
    forward, backward = [], []
    with variable_scope(scope or "stack_bidirectional_rnn"):
        for number, (first, second) in enumerate(zip(cells_fw, cells_bw, strict=True)):
            with variable_scope(f"cell_{number}"):
                both, (last, other) = bidirectional_dynamic_rnn(
                    first,
                    second,
                    inputs,
                    sequence_length,
                    None if initial_states_fw is None else initial_states_fw[number],
                    None if initial_states_bw is None else initial_states_bw[number],
                    dtype,
                    parallel_iterations,
                    time_major=time_major,
                )
                inputs = shape_ops.concat(both, 2)
            forward.append(last)
            backward.append(other)
    return inputs, tuple(forward), tuple(backward)
