"""Masks of steps that do not count, and recurrences that leave these out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from twofold.static import math
from twofold.static.api.op_functions import convert_to_tensor
from twofold.static.arrays import creation, shape_ops
from twofold.static.arrays.selection import where
from twofold.static.recurrent.rnn import dynamic_rnn

Step = Callable[[Any, list[Any]], tuple[Any, list[Any]]]


class _Cell:
    """A function of a step as the cell of ``dynamic_rnn``; steps that a mask leaves out change nothing."""

    def __init__(self, step: Step, states: Sequence[Any], masked: bool, zeros: bool) -> None:
        self._step, self._states, self._masked, self._zeros = step, list(states), masked, zeros

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """The first states."""
        return self._states

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> tuple[Any, Any]:
        if not self._masked:
            return self._step(inputs[0], list(state))
        given, kept = inputs
        last, *states = state
        output, new = self._step(given, states)
        output = _kept(kept, output, creation.zeros_like(output) if self._zeros else last)
        return output, [output, *[_kept(kept, one, before) for one, before in zip(new, states)]]


def _kept(mask: Any, value: Any, other: Any) -> Any:
    """Rows of a value where the mask, of one column, is true, and of another one elsewhere."""
    rows = shape_ops.reshape(mask, [-1, *[1] * (len(value.get_shape()) - 1)])
    return where(math.logical_and(rows, creation.ones_like(value, "bool")), value, other)


def stepped(
    step: Step,
    inputs: Any,
    states: Sequence[Any],
    mask: Any = None,
    backwards: bool = False,
    time_major: bool = False,
    zeros: bool = False,
) -> tuple[Any, Any, list[Any]]:
    """The last output, all outputs and the last states of a function applied to one step after the other.

    Args:
        step: Gives for the input of a step and the list of states an output and new states.
        inputs: A tensor (batch, time, ...).
        states: The first states.
        mask: Bools (batch, time); at a step that is false the output and the states before are kept.
        backwards: Whether the last step comes first.
        time_major: Whether inputs, mask and outputs have time first.
        zeros: Whether outputs of steps that are left out are zeros.
    """
    time = 0 if time_major else 1
    x = shape_ops.reverse(inputs, [time]) if backwards else inputs
    rows, given = [x], [convert_to_tensor(one) for one in states]
    if mask is not None:
        kept = math.cast(convert_to_tensor(mask), "bool")
        kept = kept[..., 0] if len(kept.get_shape()) == 3 else kept
        rows.append(shape_ops.expand_dims(shape_ops.reverse(kept, [time]) if backwards else kept, -1))
        first, _ = step(x[0] if time_major else x[:, 0], given)
        given = [creation.zeros_like(first), *given]
    cell = _Cell(step, given, mask is not None, zeros)
    outputs, last = dynamic_rnn(cell, rows, initial_state=given, time_major=time_major)
    final = outputs[-1] if time_major else outputs[:, -1]
    return final, outputs, list(last)[1 if mask is not None else 0 :]


def of_all(masks: Any) -> Any:
    """Where all of some masks, of which some may be None, are true; None where all are."""
    found = [one for one in masks if one is not None]
    if not found:
        return None
    made = found[0]
    for one in found[1:]:
        made = math.logical_and(made, one)
    return made


def of_merged(layer: Any, inputs: Any, mask: Any = None) -> Any:
    """The mask of what is made of several inputs element by element."""
    return None if mask is None else of_all(mask)


def of_concatenated(layer: Any, inputs: Any, mask: Any = None) -> Any:
    """The mask of inputs behind each other."""
    if mask is None or all(one is None for one in mask):
        return None
    found = []
    for value, one in zip(inputs, mask):
        whole = creation.ones_like(value, "bool")
        if one is None:
            found.append(whole)
        elif len(one.get_shape()) < len(value.get_shape()):
            found.append(math.logical_and(whole, shape_ops.expand_dims(one, -1)))
        else:
            found.append(one)
    return math.reduce_all(shape_ops.concat(found, layer.axis), -1)


def of_numbers(layer: Any, inputs: Any, mask: Any = None) -> Any:
    """The mask of numbers that are looked up: where they are not 0, if the layer says so."""
    return math.not_equal(inputs, 0) if layer.mask_zero else None


def mean_of_steps(inputs: Any, axis: int, mask: Any) -> Any:
    """The mean over the steps that count."""
    kept = math.cast(mask, inputs.dtype)
    total = math.reduce_sum(inputs * shape_ops.expand_dims(kept, 2 if axis == 1 else 1), axis)
    return total / math.reduce_sum(kept, 1, keepdims=True)
