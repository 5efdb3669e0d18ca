"""Functions that tell the sequences of a sequence axis apart: ``tf.sequence``."""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Any

from twofold.dtypes import float32, int64
from twofold.errors import ArgumentError, ShapeError
from twofold.ir.types import tensor_type
from twofold.ops.base import apply, ops
from twofold.runtime.calls import failed
from twofold.static import math
from twofold.static.api.op_functions import (
    Number,
    as_dtype,
    convert_to_tensor,
    counted,
    full_of,
    operation,
)
from twofold.static.arrays import creation, segments, shape_ops
from twofold.static.arrays.selection import where as _indices
from twofold.static.debugging import assert_equal, assert_greater_equal, assert_less_equal
from twofold.static.functions.bodies import source_of
from twofold.static.graph.context import at_once
from twofold.static.graph.docstrings import described, example
from twofold.static.graph.graph import describe, get_default_graph
from twofold.static.graph.scopes import control_dependencies, name_scope
from twofold.static.graph.tensor_shape import sizes_of_shape
from twofold.static.sequence.axes import (
    Axis,
    Layout,
    axes_of,
    checked_axis,
    layout_named,
    layout_of,
    need_layout,
    rows_at,
    shared_scope,
)
from twofold.static.sequence.loops import is_for_each, one_for_each

__all__ = [
    "Axis",
    "broadcast_as",
    "delay",
    "first",
    "future_value",
    "gather",
    "input_variable",
    "is_first",
    "is_last",
    "last",
    "lengths",
    "past_value",
    "placeholder",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_sum",
    "reverse",
    "scatter",
    "slice",
    "softmax",
    "to_sequence",
    "unpack",
    "where",
]

_PAIR = "x = tf.sequence.placeholder(tf.float32)"
_FED = "{x: [[1.0, 2.0], [3.0]]}"


def _shown(expression: str, result: str, *setup: str) -> Callable[[Any], Any]:
    """An example: a function of ``tf.sequence`` of sequences ``x``."""
    return example(_PAIR, *setup, f"print(session.run({expression}, {_FED}))", result)


@example(
    "x = tf.sequence.placeholder(tf.float32, [2])",
    "y = tf.reduce_sum(x, 1)",
    "print(session.run(y, {x: [[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0]]]}))",
    "[array([3., 7.], dtype=float32), array([11.], dtype=float32)]",
)
def placeholder(dtype: Any, shape: Any = (), name: str | None = None, sequence_axis: Any = None) -> Any:
    """A tensor that is fed a list of sequences in every run; ``shape`` is that of one step.

    Args:
        dtype: The dtype of the elements.
        shape: The sizes of a step; none for sequences of numbers.
        name: The name of the operation.
        sequence_axis: An ``Axis`` or its name. Placeholders on one axis are fed sequences of the same lengths; those
            that are given none are on one.

    Raises:
        ArgumentError: For a ``sequence_axis`` that is neither.
    """
    axis = checked_axis(sequence_axis)
    if at_once():
        raise RuntimeError("tf.sequence.placeholder() is not compatible with eager execution.")
    graph = get_default_graph()
    type = tensor_type(as_dtype(dtype), (layout_named(graph, axis).size, *sizes_of_shape(shape)))
    return graph.add("Placeholder", name or "Placeholder", [type], ()).outputs[0]


@example(
    "x = tf.sequence.input_variable(2)",
    "print(session.run(x * 2.0, {x: [[[1.0, 2.0]]]}))",
    "[array([[2., 4.]], dtype=float32)]",
)
def input_variable(
    shape: Any = (), dtype: Any = float32, sequence_axis: Any = None, name: str | None = None
) -> Any:
    """``placeholder`` with CNTK's name and order of arguments."""
    return placeholder(dtype, shape, name, sequence_axis)


@_shown("tf.sequence.lengths(x)", "[2 1]")
def lengths(seq: Any) -> Any:
    """The length of each sequence, int64."""
    return need_layout("lengths", seq=seq).lengths


# One step of each sequence


def _of_edges(name: str, text: str, result: str) -> Callable[..., Any]:
    def function(seq: Any, name: str | None = None) -> Any:
        layout = need_layout(function.__name__, seq=seq)
        return rows_at(seq, getattr(layout, f"{function.__name__}s")(), name=name)

    return _shown(f"tf.sequence.{name}(x)", result)(described(function, name, text))


first = _of_edges("first", "The first step of each sequence.", "[1. 3.]")
last = _of_edges("last", "The last step of each sequence.", "[2. 3.]")


def _at_edges(name: str, text: str, result: str) -> Callable[..., Any]:
    def function(seq: Any, name: str | None = None) -> Any:
        layout = need_layout(function.__name__, seq=seq)
        rows = layout.positions() if function.__name__ == "is_first" else _from_end(layout)
        return math.equal(rows, 0, name=name)

    return _shown(f"tf.sequence.{name}(x)", result)(described(function, name, text))


def _from_end(layout: Layout) -> Any:
    """How many steps of its sequence follow each row."""
    return rows_at(layout.positions(), layout.mirrored())


is_first = _at_edges(
    "is_first", "Whether each step is the first of its sequence.", "[array([ True, False]), array([ True])]"
)
is_last = _at_edges(
    "is_last", "Whether each step is the last of its sequence.", "[array([False,  True]), array([ True])]"
)


# Values of each sequence


def _reduced(how: str, noun: str, result: str) -> Callable[..., Any]:
    combine = getattr(segments, f"unsorted_segment_{how}")

    def function(seq: Any, name: str | None = None) -> Any:
        layout = need_layout(function.__name__, seq=seq)
        return combine(seq, layout.numbers, _count(layout), name=name)

    name = f"reduce_{how}"
    text = f"The {noun} of the steps of each sequence."
    return _shown(f"tf.sequence.{name}(x)", result)(described(function, name, text))


def _count(layout: Layout) -> Any:
    return shape_ops.shape(layout.lengths)[0]


reduce_sum = _reduced("sum", "sum", "[3. 3.]")
reduce_mean = _reduced("mean", "mean", "[1.5 3. ]")
reduce_max = _reduced("max", "largest", "[2. 3.]")
reduce_min = _reduced("min", "smallest", "[1. 3.]")


@example(
    _PAIR,
    "print(session.run(tf.sequence.softmax(x), {x: [[1.0, 1.0], [3.0]]}))",
    "[array([0.5, 0.5], dtype=float32), array([1.], dtype=float32)]",
)
def softmax(seq: Any, name: str | None = None) -> Any:
    """The exponentials of the steps, divided by their sum over each sequence."""
    layout = need_layout("softmax", seq=seq)
    with name_scope(name, "sequence_softmax"):
        powers = math.exp(seq - apply("stop_gradient", _spread(reduce_max(seq), layout)))
        return powers / _spread(reduce_sum(powers), layout)


def _spread(values: Any, layout: Layout) -> Any:
    """The value of each sequence at all of its steps."""
    return rows_at(values, layout.numbers)


@_shown(
    "x - tf.sequence.broadcast_as(tf.sequence.last(x), x)",
    "[array([-1.,  0.], dtype=float32), array([0.], dtype=float32)]",
)
def broadcast_as(operand: Any, broadcast_as_operand: Any, name: str | None = None) -> Any:
    """Sequences that hold the value of ``operand`` (one for each sequence) at each step of another one.

    Raises:
        ShapeError: For an operand that is a sequence itself, or has no axis.
    """
    layout = need_layout("broadcast_as", broadcast_as_operand=broadcast_as_operand)
    value = convert_to_tensor(operand)
    if layout_of(value) is not None or value.type_.ndim < 1:
        what = f"operand is {describe(value)}"
        raise failed("broadcast_as", ShapeError(what, "Give one value for each sequence."), value)
    return rows_at(one_for_each(value, layout), layout.numbers, name=name)


# Other steps of the same sequence


@operation("SequenceDelay")
def _delayed(x: Any, initial: Any, positions: Any, steps: Number) -> Any:
    there = ops.greater_equal(positions, abs(steps))
    rows = ops.where(there, counted(x.shape[0], x) - steps, 0)
    column = ops.reshape(there, (-1, *[1] * (x.ndim - 1)))
    return ops.where(column, ops.index_select(x, 0, rows), initial)


@_shown("tf.sequence.delay(x, -1.0)", "[array([-1.,  1.], dtype=float32), array([-1.], dtype=float32)]")
def delay(x: Any, initial_state: Any = None, time_step: int = 1, name: str | None = None) -> Any:
    """For each step the value ``time_step`` steps before it, or after it where that is negative.

    Args:
        x: The sequences.
        initial_state: What stands where a sequence has no such step, 0 unless given: a value of a step for all
            sequences, or a tensor of unknown first size with one for each sequence.
        time_step: How many steps; 0 leaves all as it is.
        name: The name of the operation.
    """
    layout = need_layout("delay", x=x)
    steps = index(time_step)
    if not steps:
        return shape_ops.identity(x, name=name)
    initial = convert_to_tensor(0 if initial_state is None else initial_state, x.dtype)
    if is_for_each(initial):
        initial = rows_at(one_for_each(initial, layout), layout.numbers)
    return _delayed(x, initial, layout.positions() if steps > 0 else _from_end(layout), steps, name=name)


@_shown("tf.sequence.past_value(x)", "[array([0., 1.], dtype=float32), array([0.], dtype=float32)]")
def past_value(x: Any, initial_state: Any = None, time_step: int = 1, name: str | None = None) -> Any:
    """``delay`` by a positive number of steps."""
    return delay(x, initial_state, _positive("past_value", time_step), name)


@_shown("tf.sequence.future_value(x)", "[array([2., 0.], dtype=float32), array([0.], dtype=float32)]")
def future_value(x: Any, initial_state: Any = None, time_step: int = 1, name: str | None = None) -> Any:
    """For each step the value a positive number of steps after it; see ``delay``."""
    return delay(x, initial_state, -_positive("future_value", time_step), name)


def _positive(function: str, steps: Any) -> int:
    if index(steps) < 1:
        raise failed(function, ArgumentError(f"time_step is {steps}", "Give a positive number of steps."))
    return index(steps)


@_shown("tf.sequence.reverse(x)", "[array([2., 1.], dtype=float32), array([3.], dtype=float32)]")
def reverse(seq: Any, name: str | None = None) -> Any:
    """The steps of each sequence from its last to its first."""
    return rows_at(seq, need_layout("reverse", seq=seq).mirrored(), name=name)


# Some of the steps, on an axis of their own


def _selected(layout: Layout, key: Any, condition: Callable[[], Any]) -> tuple[Any, Layout]:
    """The numbers of the rows where a condition is not zero, and the axis that these have; one for each ``key``."""
    if key not in layout.derived:
        graph = layout.lengths.graph
        name = graph.unique_name(f"{layout.name}_where")
        with shared_scope(graph, f"{name}/"):
            chosen = condition()
            rows = shape_ops.reshape(_indices(chosen), [-1])
            counts = _chosen_counts(layout, chosen)
            layout.derived[key] = rows, Layout(name, counts, rows_at(layout.numbers, rows), False)
    return layout.derived[key]


def _chosen_counts(layout: Layout, condition: Any) -> Any:
    """How many steps of each sequence a condition selects."""
    chosen = math.cast(math.not_equal(math.cast(condition, int64), 0), int64)
    return segments.unsorted_segment_sum(chosen, layout.numbers, _count(layout))


def _where_true(function: str, condition: Any) -> tuple[Any, Layout]:
    layout = need_layout(function, condition=condition)
    return _selected(layout, source_of(condition), lambda: condition)


@_shown("tf.sequence.gather(x, x > 1.0)", "[array([2.], dtype=float32), array([3.], dtype=float32)]")
def gather(seq: Any, condition: Any, name: str | None = None) -> Any:
    """The steps at which ``condition``, on the same axis, is true or not zero.

    What one condition selects is on one new axis, which differs from that of ``seq``.
    """
    need_layout("gather", seq=seq, condition=condition)
    return rows_at(seq, _where_true("gather", condition)[0], name=name)


@_shown("tf.sequence.where(x > 1.0)", "[array([1]), array([0])]")
def where(condition: Any, name: str | None = None) -> Any:
    """The numbers, int64, of the steps at which ``condition`` is true or not zero; on the axis of ``gather``."""
    rows, _ = _where_true("where", condition)
    return rows_at(need_layout("where", condition=condition).positions(), rows, name=name)


@operation("SequenceScatter")
def _scattered(seq: Any, given: Any, condition: Any, counts: Any) -> Any:
    chosen = ops.cast(ops.not_equal(ops.cast(condition, int64), 0), int64)
    rows, one = seq.shape[0], full_of(0, (1, *tuple(seq.shape)[1:]), seq.dtype, seq)
    # behind the rows there is one of zeros; sequences of other lengths read what is outside
    positions = ops.where(ops.greater(chosen, 0), ops.cumsum(chosen, 0) - 1, rows)
    fits = ops.all(ops.equal(given, counts))
    return ops.index_select(ops.concat([seq, one], 0), 0, ops.where(fits, positions, rows + 1))


@_shown(
    "tf.sequence.scatter(tf.sequence.gather(x, last), last)",
    "[array([0., 2.], dtype=float32), array([3.], dtype=float32)]",
    "last = tf.sequence.is_last(x)",
)
def scatter(seq: Any, condition: Any, name: str | None = None) -> Any:
    """The steps of ``seq`` where ``condition`` is true or not zero, and zeros elsewhere, on the axis of ``condition``.

    Each sequence of ``seq`` has as many steps as ``condition`` selects; an IndexError says where one has not.
    """
    layout, own = need_layout("scatter", condition=condition), need_layout("scatter", seq=seq)
    return _scattered(seq, own.lengths, condition, _chosen_counts(layout, condition), name=name)


@_shown("tf.sequence.slice(x, -1, 0)", "[array([2.], dtype=float32), array([3.], dtype=float32)]")
def slice(seq: Any, begin_index: int, end_index: int, name: str | None = None) -> Any:
    """The steps from ``begin_index`` to the one before ``end_index``, on a new axis.

    Negative indices count from the end of each sequence; ``end_index`` 0 is the end.
    """
    layout = need_layout("slice", seq=seq)
    begin, end = index(begin_index), index(end_index)

    def condition() -> Any:
        ahead, left = layout.positions(), _from_end(layout)
        after = math.greater_equal(ahead, begin) if begin >= 0 else math.less(left, -begin)
        before = math.less(ahead, end) if end > 0 else math.greater_equal(left, -end)
        return math.logical_and(after, before)

    return rows_at(seq, _selected(layout, ("slice", begin, end), condition)[0], name=name)


# Beside padded tensors


@example(
    _PAIR,
    f"print(*session.run(tf.sequence.unpack(x, -1.0), {_FED}))",
    "[[ 1.  2.]\n [ 3. -1.]] [[ True  True]\n [ True False]]",
)
def unpack(x: Any, padding_value: Any = 0, no_mask_output: bool = False, name: str | None = None) -> Any:
    """The sequences padded to the longest one, (sequences, steps, ...), and where there are steps.

    Args:
        x: The sequences.
        padding_value: What stands behind the end of a sequence.
        no_mask_output: Whether to return the padded tensor alone.
        name: The name of the scope.
    """
    layout = need_layout("unpack", x=x)
    with name_scope(name, "unpack"):
        longest = math.reduce_max(layout.lengths)
        mask = shape_ops.sequence_mask(layout.lengths, longest)
        indices = shape_ops.stack([layout.numbers, layout.positions()], 1)
        sizes = shape_ops.concat([shape_ops.shape(mask), shape_ops.shape(x)[1:]], 0)
        rows = segments.scatter_nd(indices, x, sizes)
        values = _filled(rows, mask, convert_to_tensor(padding_value, x.dtype))
    return values if no_mask_output else (values, mask)


@operation("Select")
def _filled(rows: Any, mask: Any, value: Any) -> Any:
    return ops.where(ops.reshape(mask, (*mask.shape, *[1] * (rows.ndim - mask.ndim))), rows, value)


@example(
    "x = tf.placeholder(tf.float32, [None, None])",
    "y = tf.sequence.to_sequence(x, [1, 2])",
    "print(session.run(y, {x: [[1.0, 0.0], [2.0, 3.0]]}))",
    "[array([1.], dtype=float32), array([2., 3.], dtype=float32)]",
)
def to_sequence(
    x: Any, sequence_lens: Any = None, sequence_axis_name_prefix: str = "to_sequence", name: str | None = None
) -> Any:
    """The first ``sequence_lens`` steps of each row of a padded tensor (sequences, steps, ...), on a new axis.

    Without ``sequence_lens`` all steps.

    Raises:
        ShapeError: For an ``x`` of fewer axes, and for ``sequence_lens`` that are not a vector of integers. A run
            raises InvalidArgumentError unless there is one from 0 to the number of steps for each row.
    """
    value = convert_to_tensor(x)
    if layout_of(value) is not None or value.type_.ndim < 2:
        what = f"x is {describe(value)}"
        raise failed("to_sequence", ShapeError(what, "Give (sequences, steps, ...)."), value)
    graph = value.graph
    axis = graph.unique_name(sequence_axis_name_prefix)
    with graph.name_scope(f"{axis}/"):
        count, steps = shape_ops.shape(value)[0], shape_ops.shape(value)[1]
        counts = creation.fill([count], math.cast(steps, int64))
        if sequence_lens is not None:
            counts = _checked_lengths(convert_to_tensor(sequence_lens), value, count, steps)
        indices = _indices(shape_ops.sequence_mask(counts, steps))
        axes_of(graph)[axis] = Layout(axis, counts, indices[:, 0], False)
    return shape_ops.gather_nd(value, indices, name=name)


def _checked_lengths(lengths: Any, padded: Any, count: Any, steps: Any) -> Any:
    """Lengths as int64; a run raises InvalidArgumentError unless the padded rows have that many steps each."""
    if lengths.dtype.kind not in "iu" or lengths.type_.ndim != 1:
        what = f"sequence_lens is {describe(lengths)}"
        raise failed("to_sequence", ShapeError(what, "Give an integer for each sequence."), lengths)
    message = f"to_sequence: sequence_lens does not fit {describe(padded)}:"
    checks = [
        assert_equal(shape_ops.shape(lengths)[0], count, message=message),
        assert_greater_equal(lengths, 0, message=message),
        assert_less_equal(math.cast(lengths, int64), math.cast(steps, int64), message=message),
    ]
    with control_dependencies(checks):
        # what runs beside the checks stays inside the rows
        return math.minimum(math.maximum(math.cast(lengths, int64), 0), math.cast(steps, int64))
