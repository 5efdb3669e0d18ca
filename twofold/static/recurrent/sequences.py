"""A function or a cell along the steps of sequences: ``tf.sequence.Recurrence`` and ``Fold``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold.errors import ArgumentError
from twofold.runtime.calls import failed
from twofold.runtime.pytree import flatten, unflatten
from twofold.static.api.op_functions import convert_to_tensor, is_tensor_like
from twofold.static.graph.docstrings import example
from twofold.static.graph.scopes import name_scope
from twofold.static.recurrent.rnn import along_sequences
from twofold.static.sequence.axes import need_layout, rows_at
from twofold.static.sequence.loops import Start, along, is_for_each
from twofold.static.sequence.operations import first, last


def _shown(result: str, declaration: str) -> Callable[[Any], Any]:
    """An example of a total of sequences ``x``."""
    run = "print(session.run(total, {x: [[1.0, 2.0], [3.0]]}))"
    return example("x = tf.sequence.placeholder(tf.float32)", declaration, run, result)


@_shown(
    "[array([1., 3.], dtype=float32), array([3.], dtype=float32)]",
    "total = tf.sequence.Recurrence(lambda total, x: total + x)(x)",
)
def Recurrence(
    step_function: Any,
    go_backwards: bool = False,
    initial_state: Any = 0,
    return_full_state: bool = False,
    name: str | None = None,
) -> Callable[[Any], Any]:
    """A function of sequences that goes along their steps with a state.

    Args:
        step_function: Takes the values of the state, then a step, and returns the values of the next state; or a cell
            of ``tf.nn.rnn_cell``. It is declared once, for several sequences beside each other: its values have one
            more axis in front, as everywhere.
        go_backwards: Whether to begin at the ends.
        initial_state: The state before the first step, or several in a tuple: tensors for all sequences, tensors of
            unknown first size with one row for each, or numbers for a state of the shape of a step.
        return_full_state: Whether to return all values of the state instead of the first (or the output of a cell).
        name: The name of the scope.

    Returns:
        A function that takes sequences (several on one axis in a tuple, list or dict) and returns the states after
        each step as sequences.
    """

    def function(x: Any) -> Any:
        found = _along("Recurrence", step_function, x, initial_state, go_backwards, name)
        return found[return_full_state]

    return function


@_shown("[3. 3.]", "total = tf.sequence.Fold(lambda total, x: total + x)(x)")
def Fold(
    folder_function: Any,
    go_backwards: bool = False,
    initial_state: Any = 0,
    return_full_state: bool = False,
    name: str | None = None,
) -> Callable[[Any], Any]:
    """``Recurrence`` of which only what comes after the last step of each sequence is returned."""

    def function(x: Any) -> Any:
        found = _along("Fold", folder_function, x, initial_state, go_backwards, name)
        values, _, structure = flatten(found[return_full_state], "state")
        return unflatten(structure, [first(value) if go_backwards else last(value) for value in values])

    return function


def _along(
    operation: str, step: Any, x: Any, initial: Any, go_backwards: bool, name: str | None
) -> tuple[Any, Any]:
    """Outputs and states of a function or cell along sequences."""
    given, _, structure = flatten(x, "x")
    sequences = [convert_to_tensor(value) for value in given]
    layout = need_layout(operation, **{f"x[{k}]": value for k, value in enumerate(sequences)})
    with name_scope(name, operation):
        if go_backwards:
            sequences = [rows_at(value, layout.mirrored()) for value in sequences]
        if hasattr(step, "zero_state"):
            first = None if isinstance(initial, int) and initial == 0 else initial
            nested = unflatten(structure, sequences)
            found = along_sequences(operation, step, nested, first, sequences[0].dtype)
        else:
            found = _of_function(operation, step, sequences, structure, initial)
        if not go_backwards:
            return found
        values, _, both = flatten(found, "result")
        outputs, states = unflatten(both, [rows_at(value, layout.mirrored()) for value in values])
    return outputs, states


def _of_function(
    operation: str, step: Callable[..., Any], sequences: list[Any], structure: Any, initial: Any
) -> tuple[Any, Any]:
    values, names, carry = flatten(initial, "initial_state")
    several = isinstance(carry, (tuple, list))
    starts = []
    for value in values:
        tensor = convert_to_tensor(value, None if is_tensor_like(value) else sequences[0].dtype)
        is_number = not tensor.type_.shape
        starts.append(Start(tensor, is_for_each(tensor), sequences[0] if is_number else None))

    def once(states: Any, rows: Any) -> tuple[Any, Any]:
        found = step(*states, unflatten(structure, rows))
        new, _, shape = flatten(found, "state")
        if repr(shape) != repr(carry) and (several or len(new) != 1):
            what = f"the step returns the state {shape!r} for {carry!r}"
            raise failed(operation, ArgumentError(what, "Return the values of the state in a tuple."))
        return [], [convert_to_tensor(value) for value in new]

    _, states = along(operation, once, sequences, starts, names)
    return states[0], unflatten(carry, states)
