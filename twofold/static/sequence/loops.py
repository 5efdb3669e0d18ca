"""Loops along the steps of sequences of different lengths.

All sequences go at a time, in lanes (see ``sequence.axes``): where one begins, its initial state replaces what
the lane carries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from twofold.ir.shape_inference import UNKNOWN_RANK
from twofold.ops.base import ops
from twofold.static.api.op_functions import Number, full_of, operation
from twofold.static.arrays import shape_ops
from twofold.static.control_flow.while_loop import repeat
from twofold.static.debugging import assert_equal
from twofold.static.graph.graph import describe
from twofold.static.graph.scopes import control_dependencies
from twofold.static.sequence.axes import Layout, need_layout, rows_at

Step = Callable[[Sequence[Any], Sequence[Any]], tuple[Sequence[Any], Sequence[Any]]]


def is_for_each(value: Any) -> bool:
    """Whether a value has a row for each sequence: its first size is not known."""
    shape = value.type_.shape
    return bool(shape) and shape != UNKNOWN_RANK and shape[0] < 0


def one_for_each(value: Any, layout: Layout) -> Any:
    """``value``; a run raises InvalidArgumentError unless it has one row for each sequence."""
    if value.type_.shape[0] == layout.lengths.type_.shape[0]:
        return value
    given, wanted = (shape_ops.shape(one)[0] for one in (value, layout.lengths))
    message = f"{describe(value)} has not one row for each sequence of axis '{layout.name}':"
    with control_dependencies([assert_equal(given, wanted, message=message)]):
        return shape_ops.identity(value)


class Start(NamedTuple):
    """An initial state: one for all sequences, or (``for_each``) one for each; ``like`` has rows of its shape."""

    value: Any
    for_each: bool
    like: Any = None


def along(
    operation: str, step: Step, sequences: Sequence[Any], starts: Sequence[Start], names: Sequence[str]
) -> tuple[list[Any], list[Any]]:
    """Outputs and states of all steps of ``sequences``, from the states ``starts``, as sequences.

    ``step`` takes the states and the steps of several sequences and returns (outputs, states).
    """
    layout = need_layout(operation, **{f"x[{k}]": value for k, value in enumerate(sequences)})
    lanes = layout.lanes()
    rows = [rows_at(value, lanes.rows) for value in sequences]
    if any(start.for_each for start in starts):
        numbers = rows_at(layout.numbers, lanes.rows)
        own = [one_for_each(start.value, layout) for start in starts if start.for_each]
        rows += [rows_at(value, numbers) for value in own]
    outputs: list[Any] = []

    def iteration(carried: Sequence[Any], row: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        own = iter(row[len(sequences) : -1])
        begins = [next(own) if start.for_each else start.value for start in starts]
        states = [_begun(row[-1], begin, state) for begin, state in zip(begins, carried)]
        found, new = step(states, row[: len(sequences)])
        outputs[:] = found
        return new, [*found, *new]

    carried = [_nothing(lanes.begins, *_shape_of(start), start.value) for start in starts]
    made = repeat(operation, iteration, carried, names, [*rows, lanes.begins], False, "while")
    whole = [rows_at(_joined(value), lanes.inverse) for value in made[len(starts) :]]
    return whole[: len(outputs)], whole[len(outputs) :]


@operation("Select")
def _begun(begins: Any, initial: Any, state: Any) -> Any:
    """The states, where sequences begin their initial ones."""
    return ops.where(ops.reshape(begins, (-1, *[1] * (state.ndim - 1))), initial, state)


def _shape_of(start: Start) -> tuple[Any, int]:
    """A tensor that ends in the shape of a state, and how many of its axes stand before."""
    like = start.value if start.like is None else start.like
    return like, int(start.for_each or start.like is not None)


@operation("ZerosLike")
def _nothing(begins: Any, like: Any, first: Number, value: Any) -> Any:
    """Zeros for the lanes, each of which begins with a sequence."""
    return full_of(0, (begins.shape[1], *tuple(like.shape)[first:]), value.dtype, like)


@operation("Reshape")
def _joined(x: Any) -> Any:
    """The rows of all iterations one after another."""
    return ops.reshape(x, (x.shape[0] * x.shape[1], *tuple(x.shape)[2:]))
