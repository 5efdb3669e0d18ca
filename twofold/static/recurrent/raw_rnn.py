"""Recurrent networks whose inputs, ends and results a function says: ``tf.nn.raw_rnn``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold.dtypes import int32
from twofold.runtime.pytree import flatten, unflatten
from twofold.static import math
from twofold.static.api.op_functions import constant, convert_to_tensor
from twofold.static.arrays import creation, selection, shape_ops
from twofold.static.control_flow.tensor_array import TensorArray
from twofold.static.control_flow.while_loop import while_loop
from twofold.static.variables.variable_scope import variable_scope


def raw_rnn(
    cell: Any,
    loop_fn: Callable[..., Any],
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    scope: Any = None,
) -> tuple[Any, Any, Any]:
    """Steps of a cell until every sample is finished.

    A sample that is finished keeps its state, and emits zeros. ``parallel_iterations`` and ``swap_memory`` change
    nothing.

    Args:
        cell: The cell.
        loop_fn: A function of ``time``, ``cell_output``, ``cell_state`` and ``loop_state`` (all but the first None at
            first) that returns which samples are finished, the next input, the next state, what is emitted (at first
            tensors of the shape of a sample, or None for the cell's outputs) and the next ``loop_state`` or None.
        parallel_iterations: See above.
        swap_memory: See above.
        scope: The variable scope of the cell; "rnn" unless given.

    Returns:
        TensorArrays of what was emitted, in the structure of that, the last state and the last ``loop_state``.

    >>> import twofold.static as tf
    >>> class Sum(tf.nn.rnn_cell.RNNCell):
    ...     state_size = output_size = 1
    ...     def call(self, inputs, state):
    ...         return inputs + state, inputs + state
    >>> def step(time, cell_output, cell_state, loop_state):
    ...     state = tf.zeros([2, 1]) if cell_output is None else cell_state
    ...     return time >= [1, 3], tf.ones([2, 1]), state, cell_output, None
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     emitted, state, _ = tf.nn.raw_rnn(Sum(), step)
    ...     print(session.run([tf.squeeze(emitted.stack()), state]))
    [array([[1., 1.],
           [0., 2.],
           [0., 3.]], dtype=float32), array([[1.],
           [3.]], dtype=float32)]
    """
    with variable_scope(scope or "rnn"):
        return _looped(cell, loop_fn)


def _looped(cell: Any, loop_fn: Callable[..., Any]) -> tuple[Any, Any, Any]:
    finished, inputs, state, emit, loop_state = loop_fn(constant(0, int32), None, None, None)
    states, _, state_structure = flatten(state, "state")
    ours, _, loop_structure = flatten(() if loop_state is None else loop_state, "loop_state")
    batch = shape_ops.shape(flatten(inputs, "input")[0][0])[0]
    dtypes, emit_structure = _emitted(cell, emit, states[0].dtype)
    arrays = [TensorArray(dtype, 0, dynamic_size=True) for dtype in dtypes]

    def body(time: Any, finished: Any, inputs: Any, states: Any, arrays: Any, ours: Any) -> Any:
        output, new = cell(inputs, unflatten(state_structure, states))
        known = None if loop_state is None else unflatten(loop_structure, ours)
        ends, inputs, new, emit, found = loop_fn(time + 1, output, new, known)
        values = [convert_to_tensor(value) for value in flatten(new, "state")[0]]
        kept = [selection.where(finished, old, value) for old, value in zip(states, values)]
        shown = flatten(output if emit is None else emit, "emit_output")[0]
        shown = [selection.where(finished, creation.zeros_like(value), value) for value in shown]
        written = [each.write(time, value) for each, value in zip(arrays, shown)]
        carried = ours if found is None else list(flatten(found, "loop_state")[0])
        return time + 1, math.logical_or(finished, ends), inputs, kept, written, carried

    every = math.logical_or(convert_to_tensor(finished), creation.fill([batch], False))
    start = (constant(0, int32), every, inputs, list(states), arrays, list(ours))
    _, _, _, last, arrays, ours = while_loop(_going_on, body, start)
    loop_state = None if loop_state is None else unflatten(loop_structure, ours)
    return unflatten(emit_structure, arrays), unflatten(state_structure, last), loop_state


def _going_on(time: Any, finished: Any, *rest: Any) -> Any:
    return math.logical_not(math.reduce_all(finished))


def _emitted(cell: Any, emit: Any, dtype: Any) -> tuple[list[Any], Any]:
    """Dtypes of what is emitted, and its structure."""
    if emit is None:
        sizes, _, structure = flatten(cell.output_size, "output_size")
        return [dtype] * len(sizes), structure
    values, _, structure = flatten(emit, "emit_structure")
    return [convert_to_tensor(value).dtype for value in values], structure
