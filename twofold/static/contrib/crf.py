"""Linear chains of tags (Lafferty et al., 2001): ``tf.contrib.crf``."""

from __future__ import annotations

from typing import Any

import numpy

from twofold.dtypes import int32
from twofold.static import math
from twofold.static.api.op_functions import convert_to_tensor
from twofold.static.arrays import creation, selection, shape_ops
from twofold.static.control_flow.map_scan import scan
from twofold.static.graph.docstrings import example
from twofold.static.variables.variable_scope import get_variable, variable_scope


def crf_sequence_score(inputs: Any, tag_indices: Any, sequence_lengths: Any, transition_params: Any) -> Any:
    """The score of tags (batch, time): their inputs (batch, time, tags), and transitions between neighbours."""
    unary = crf_unary_score(tag_indices, sequence_lengths, inputs)
    return unary + crf_binary_score(tag_indices, sequence_lengths, transition_params)


def _mask(lengths: Any, like: Any, less: int = 0) -> Any:
    """1 for the steps of each sequence, without the last ``less``; 0 behind."""
    steps = shape_ops.shape(like)[1]
    rest = math.maximum(math.cast(lengths, int32) - less, 0)
    return shape_ops.sequence_mask(rest, steps - less, dtype="float32")


def crf_unary_score(tag_indices: Any, sequence_lengths: Any, inputs: Any) -> Any:
    """The sum of the inputs of the tags."""
    tensor = convert_to_tensor(inputs)
    chosen = shape_ops.one_hot(tag_indices, tensor.type_.shape[2], dtype=tensor.dtype)
    mask = math.cast(_mask(sequence_lengths, tensor), tensor.dtype)
    return math.reduce_sum(math.reduce_sum(tensor * chosen, 2) * mask, 1)


def crf_binary_score(tag_indices: Any, sequence_lengths: Any, transition_params: Any) -> Any:
    """The sum of the transitions between neighbouring tags."""
    table, tags = convert_to_tensor(transition_params), convert_to_tensor(tag_indices)
    count = table.type_.shape[0]
    positions = math.cast(tags[:, :-1], int32) * count + math.cast(tags[:, 1:], int32)
    found = shape_ops.gather(shape_ops.reshape(table, [-1]), positions)
    return math.reduce_sum(found * math.cast(_mask(sequence_lengths, tags, 1), table.dtype), 1)


def _steps(inputs: Any, lengths: Any) -> tuple[Any, Any, Any]:
    """The first step, the others with time first, and which of these count."""
    rest = shape_ops.transpose(inputs[:, 1:], [1, 0, 2])
    later = creation.range(1, shape_ops.shape(inputs)[1])
    alive = math.less(shape_ops.expand_dims(later, 1), shape_ops.expand_dims(math.cast(lengths, int32), 0))
    return inputs[:, 0], rest, alive


def crf_log_norm(inputs: Any, sequence_lengths: Any, transition_params: Any) -> Any:
    """The logarithm of the sum over all sequences of tags of the exponentials of their scores."""
    tensor, table = convert_to_tensor(inputs), convert_to_tensor(transition_params)
    first, rest, alive = _steps(tensor, sequence_lengths)

    def step(before: Any, row: Any) -> Any:
        scores, goes_on = row
        found = math.reduce_logsumexp(shape_ops.expand_dims(before, 2) + table, 1) + scores
        return selection.where(goes_on, found, before)

    def last(states: Any) -> Any:
        return shape_ops.concat([shape_ops.expand_dims(first, 0), states], 0)[-1]

    zero = math.less_equal(math.cast(sequence_lengths, int32), 0)
    found = math.reduce_logsumexp(last(scan(step, (rest, alive), initializer=first)), 1)
    return selection.where(zero, creation.zeros_like(found), found)


@example(
    "scores, tags = tf.zeros([1, 3, 2]), tf.zeros([1, 3], tf.int32)",
    "found, _ = tf.contrib.crf.crf_log_likelihood(scores, tags, [3], tf.zeros([2, 2]))",
    "print(session.run(found).round(4))",
    "[-2.0794]",
)
def crf_log_likelihood(
    inputs: Any, tag_indices: Any, sequence_lengths: Any, transition_params: Any = None
) -> tuple[Any, Any]:
    """The logarithms of the probabilities of tags, and the transitions, which are a variable if not given."""
    tensor = convert_to_tensor(inputs)
    if transition_params is None:
        count = tensor.type_.shape[2]
        with variable_scope("", reuse=None):
            transition_params = get_variable("transitions", [count, count])
    score = crf_sequence_score(tensor, tag_indices, sequence_lengths, transition_params)
    return score - crf_log_norm(tensor, sequence_lengths, transition_params), transition_params


def viterbi_decode(score: Any, transition_params: Any) -> tuple[list[int], Any]:
    """The likeliest tags of one sequence, from an array (time, tags), and their score."""
    values, table = numpy.asarray(score), numpy.asarray(transition_params)
    best, back = values[0], []
    for row in values[1:]:
        sums = best[:, None] + table
        back.append(sums.argmax(0))
        best = row + sums.max(0)
    path = [int(best.argmax())]
    for choice in reversed(back):
        path.append(int(choice[path[-1]]))
    return path[::-1], best.max()


def crf_decode(potentials: Any, transition_params: Any, sequence_length: Any) -> tuple[Any, Any]:
    """The likeliest tags (batch, time), 0 behind the end of a sequence, and their scores."""
    tensor, table = convert_to_tensor(potentials), convert_to_tensor(transition_params)
    lengths = math.cast(sequence_length, int32)
    first, rest, alive = _steps(tensor, lengths)
    count = tensor.type_.shape[2]
    same = creation.zeros_like(first, dtype=int32) + creation.range(count)

    def forward(carried: Any, row: Any) -> Any:
        before, _ = carried
        scores, goes_on = row
        sums = shape_ops.expand_dims(before, 2) + table
        choice = math.cast(math.argmax(sums, 1), int32)
        best = math.reduce_max(sums, 1) + scores
        return selection.where(goes_on, best, before), selection.where(goes_on, choice, same)

    states, choices = scan(forward, (rest, alive), initializer=(first, same))
    best = shape_ops.concat([shape_ops.expand_dims(first, 0), states], 0)[-1]
    end = math.cast(math.argmax(best, 1), int32)

    def backward(tag: Any, choice: Any) -> Any:
        return math.reduce_sum(shape_ops.one_hot(tag, count, dtype=int32) * choice, 1)

    before = scan(backward, choices, initializer=end, reverse=True)
    tags = shape_ops.transpose(shape_ops.concat([before, shape_ops.expand_dims(end, 0)], 0))
    inside = shape_ops.sequence_mask(lengths, shape_ops.shape(tensor)[1], dtype=int32)
    return tags * inside, math.reduce_max(best, 1)
