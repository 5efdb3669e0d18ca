"""Connectionist temporal classification under TensorFlow's names; the last class is the blank."""

from __future__ import annotations

from typing import Any

import numpy

from twofold.dtypes import int64
from twofold.errors import ArgumentError
from twofold.ops.axes import given_once
from twofold.ops.base import apply, ops
from twofold.runtime.calls import failed
from twofold.static.api.op_functions import (
    Number,
    checked_below,
    convert_to_tensor,
    counted,
    full_of,
    operation,
    sizes,
)
from twofold.static.arrays.indexing import flat_indices
from twofold.static.functions.host_calls import in_python
from twofold.static.graph.docstrings import example
from twofold.static.sparse import SparseTensor


@operation("CTCLoss")
def _losses(
    logits: Any,
    positions: Any,
    labels: Any,
    lengths: Any,
    shape: Number,
    skips: Number,
    first: Number,
    collapses: Number,
    merges: Number,
) -> Any:
    scores = ops.log_softmax(logits if first else ops.transpose(logits, 0, 1), -1)
    batch, most = sizes(shape)
    flat = flat_indices(positions, (batch, most))
    targets = ops.index_copy(full_of(0, (batch * most,), int64, labels), 0, flat, ops.cast(labels, int64))
    ones = ops.full_like(flat, 1)
    counts = ops.index_add(full_of(0, (batch,), int64, labels), 0, ops.select(positions, 1, 0), ones)
    rows = ops.reshape(targets, (batch, most))
    if collapses:
        rows, counts = _without_repetitions(rows, counts)
    blank = scores.shape[2] - 1
    known = checked_below(lengths, scores.shape[0] + 1, "a length in sequence_length,")
    return apply("ctc_losses", scores, rows, known, counts, attrs=(blank, bool(skips), bool(merges)))


def _without_repetitions(rows: Any, counts: Any) -> tuple[Any, Any]:
    """Rows of labels without those that repeat the one before, and how many are left of each."""
    batch, most = rows.shape
    if most == 0:
        return rows, counts
    numbers = ops.reshape(counted(most, rows), (1, most))
    before = ops.cat((ops.narrow(rows, 1, 0, 1), ops.narrow(rows, 1, 0, most - 1)), 1)
    new = ops.logical_or(ops.not_equal(rows, before), ops.equal(numbers, 0))
    kept = ops.cast(ops.logical_and(new, ops.less(numbers, ops.unsqueeze(counts, 1))), int64)
    after = ops.subtract(ops.cumsum(kept, 1), 1)
    # what is left out goes behind the row
    columns = ops.where(ops.equal(kept, 1), after, most)
    wide = ops.scatter(full_of(0, (batch, most + 1), int64, rows), 1, columns, rows)
    return ops.narrow(wide, 1, 0, most), ops.sum(kept, 1)


def ctc_loss(
    labels: Any,
    inputs: Any = None,
    sequence_length: Any = None,
    preprocess_collapse_repeated: bool = False,
    ctc_merge_repeated: bool = True,
    ignore_longer_outputs_than_inputs: bool = False,
    time_major: bool = True,
    logits: Any = None,
) -> Any:
    """For each sequence, minus the logarithm of the probability that its logits read as its labels.

    ``labels`` is a sparse tensor (batch, labels), ``inputs`` are logits (time, batch, classes), or (batch, time,
    classes) if not ``time_major``. Labels too long for their inputs give infinity, or 0 if they are ignored.
    With ``preprocess_collapse_repeated`` labels that repeat the one before are left out first. Without
    ``ctc_merge_repeated`` each label is one frame: equal classes in succession are as many labels.
    Source: Graves et al. 2006.
    """
    given = SparseTensor.from_value(labels)
    scores = convert_to_tensor(given_once(logits=logits, inputs=inputs))
    lengths = convert_to_tensor(sequence_length)
    flags = (bool(preprocess_collapse_repeated), bool(ctc_merge_repeated))
    options = (given.dense_shape, ignore_longer_outputs_than_inputs, time_major, *flags)
    return _losses(scores, given.indices, given.values, lengths, *options)


@example(
    "decoded, _ = tf.nn.ctc_greedy_decoder(tf.constant([[[9.0, 0.0, 0.0]], [[0.0, 0.0, 9.0]]]), [2])",
    "decoded[0].values",
    "[0]",
)
def ctc_greedy_decoder(
    inputs: Any, sequence_length: Any, merge_repeated: bool = True
) -> tuple[list[SparseTensor], Any]:
    """The most probable class of each step, without blanks (the last class) and, if merged, repetitions.

    ``inputs`` are logits (time, batch, classes). Also returns minus the sum of the largest logits, [batch, 1].
    """
    logits, lengths = convert_to_tensor(inputs), convert_to_tensor(sequence_length)

    def decode(values: Any, counts: Any) -> list[Any]:
        if values.shape[1] != len(counts):
            what = f"{len(counts)} lengths in sequence_length for a batch of {values.shape[1]}"
            raise failed("ctc_greedy_decoder", ArgumentError(what, "Give one for each sequence."))
        best = values.argmax(-1)
        blank = values.shape[2] - 1
        rows = []
        for k, count in enumerate(counts.tolist()):
            path = best[:count, k]
            new = numpy.concatenate([[True], path[1:] != path[:-1]])[:count] if merge_repeated else True
            rows.append(path[(path != blank) & new])
        positions = [(k, j) for k, row in enumerate(rows) for j in range(len(row))]
        total = [[-values[:count, k].max(-1).sum()] for k, count in enumerate(counts.tolist())]
        return [
            numpy.array(positions, numpy.int64).reshape(-1, 2),
            numpy.concatenate([*rows, []]).astype(numpy.int64),
            numpy.array([len(rows), max(map(len, rows), default=0)]),
            numpy.array(total, values.dtype).reshape(-1, 1),
        ]

    results = [(int64, (None, 2)), (int64, (None,)), (int64, (2,)), (logits.dtype, (None, 1))]
    positions, found, shape, total = in_python("CTCGreedyDecoder", decode, [logits, lengths], results, None)
    return [SparseTensor(positions, found, shape)], total
