"""The most probable labels of sequences of logits: ``tf.nn.ctc_beam_search_decoder``."""

from __future__ import annotations

from typing import Any

import numpy

from twofold.dtypes import int64
from twofold.errors import ArgumentError
from twofold.runtime.calls import failed
from twofold.static.api.op_functions import convert_to_tensor
from twofold.static.functions.host_calls import in_python
from twofold.static.graph.docstrings import example
from twofold.static.sparse import SparseTensor


@example(
    "scores = tf.constant([[[9.0, 0.0, 0.0]], [[0.0, 0.0, 9.0]]])",
    "decoded, _ = tf.nn.ctc_beam_search_decoder(scores, [2], beam_width=4)",
    "decoded[0].values",
    "[0]",
)
def ctc_beam_search_decoder(
    inputs: Any, sequence_length: Any, beam_width: int = 100, top_paths: int = 1, merge_repeated: bool = True
) -> tuple[list[SparseTensor], Any]:
    """The labels of the highest probability, summed over all ways to read them, among ``beam_width`` at each step.

    As in TensorFlow, ``merge_repeated`` leaves out equal neighbours of the labels found, also where a blank was
    between them; ``ctc_beam_search_decoder_v2`` keeps them. Source: Graves et al. 2006.

    Args:
        inputs: Logits (time, batch, classes), of which the last class is the blank.
        sequence_length: How many steps each sequence has.
        beam_width: How many beginnings are kept.
        top_paths: How many results each sequence has, at most ``beam_width``.
        merge_repeated: Whether equal neighbours in a result are one.

    Returns:
        A list of ``top_paths`` sparse tensors (batch, labels), and logarithms of probabilities (batch, top_paths).
    """
    if not 0 < top_paths <= beam_width:
        what = f"{top_paths} paths of {beam_width} beams"
        raise failed(
            "ctc_beam_search_decoder", ArgumentError(what, "Give at most as many paths as beams, and one.")
        )
    logits, lengths = convert_to_tensor(inputs), convert_to_tensor(sequence_length)

    def decode(values: Any, counts: Any) -> list[Any]:
        found = [_search(values[:count, k], beam_width, top_paths) for k, count in enumerate(counts.tolist())]
        results: list[Any] = []
        for path in range(top_paths):
            rows = [_merged(paths[path]) if merge_repeated else paths[path] for paths, _ in found]
            positions = [(k, j) for k, row in enumerate(rows) for j in range(len(row))]
            results.append(numpy.array(positions, numpy.int64).reshape(-1, 2))
            results.append(numpy.array([label for row in rows for label in row], numpy.int64))
            results.append(numpy.array([len(rows), max(map(len, rows), default=0)]))
        return [*results, numpy.array([scores for _, scores in found], values.dtype).reshape(-1, top_paths)]

    path_types: list[Any] = [(int64, (None, 2)), (int64, (None,)), (int64, (2,))]
    batch = logits.shape.as_list()[1] if logits.shape.ndims == 3 else None
    types = [*path_types * top_paths, (logits.dtype, (batch, top_paths))]
    made = in_python("CTCBeamSearchDecoder", decode, [logits, lengths], types, None)
    return [SparseTensor(*made[3 * k : 3 * k + 3]) for k in range(top_paths)], made[-1]


@example(
    "scores = tf.constant([[[9.0, 0.0, 0.0]], [[0.0, 0.0, 9.0]]])",
    "tf.nn.ctc_beam_search_decoder_v2(scores, [2], beam_width=4)[0][0].values",
    "[0]",
)
def ctc_beam_search_decoder_v2(
    inputs: Any, sequence_length: Any, beam_width: int = 100, top_paths: int = 1
) -> tuple[list[SparseTensor], Any]:
    """``ctc_beam_search_decoder`` that keeps equal neighbours of the labels found."""
    return ctc_beam_search_decoder(inputs, sequence_length, beam_width, top_paths, merge_repeated=False)


def _merged(labels: list[int]) -> list[int]:
    return [label for k, label in enumerate(labels) if not k or label != labels[k - 1]]


class _Prefixes:
    """Beginnings of label sequences, numbered: 0 is the empty one, each other one a label more than its parent."""

    def __init__(self) -> None:
        self.parents, self.labels = [-1], [-1]
        self._children: dict[tuple[int, int], int] = {}

    def longer(self, prefix: int, label: int) -> int:
        """The prefix with one label more."""
        if (prefix, label) not in self._children:
            self._children[prefix, label] = len(self.parents)
            self.parents.append(prefix)
            self.labels.append(label)
        return self._children[prefix, label]

    def sequence(self, prefix: int) -> list[int]:
        """Its labels."""
        found: list[int] = []
        while prefix > 0:
            found.append(self.labels[prefix])
            prefix = self.parents[prefix]
        return found[::-1]


def _search(logits: Any, width: int, paths: int) -> tuple[list[list[int]], list[float]]:
    """The ``paths`` most probable label sequences of one sequence of logits, and the logarithms.

    ``blank`` and ``label`` are the logarithms of the probabilities of all ways to read a prefix that end so.
    """
    known = _Prefixes()
    beam = [0]
    blank, label = numpy.zeros(1), numpy.full(1, -numpy.inf)
    for step in numpy.asarray(logits, numpy.float64):
        scores = step - numpy.logaddexp.reduce(step)
        total, last = numpy.logaddexp(blank, label), numpy.array([known.labels[prefix] for prefix in beam])
        longer = total[:, None] + scores[:-1]
        some = numpy.flatnonzero(last >= 0)
        longer[some, last[some]] = blank[some] + scores[last[some]]
        kept_blank, kept_label = total + scores[-1], numpy.where(last >= 0, label + scores[last], -numpy.inf)
        rows = {prefix: k for k, prefix in enumerate(beam)}
        for k, prefix in enumerate(beam):
            row = rows.get(known.parents[prefix])
            if row is not None:
                kept_label[k] = numpy.logaddexp(kept_label[k], longer[row, last[k]])
                longer[row, last[k]] = -numpy.inf
        every_blank = numpy.concatenate([kept_blank, numpy.full(longer.size, -numpy.inf)])
        every_label = numpy.concatenate([kept_label, longer.ravel()])
        order = numpy.argsort(-numpy.logaddexp(every_blank, every_label), kind="stable")[:width]
        order = order[numpy.isfinite(every_blank[order]) | numpy.isfinite(every_label[order])]
        count, classes = len(beam), longer.shape[1]
        beam = [
            beam[k] if k < count else known.longer(beam[(k - count) // classes], (k - count) % classes)
            for k in order.tolist()
        ]
        blank, label = every_blank[order], every_label[order]
    totals = numpy.logaddexp(blank, label)
    best = numpy.argsort(-totals, kind="stable")[:paths].tolist()
    if len(best) < paths:
        what = f"{paths} paths, and {len(best)} label sequences are possible"
        raise failed("ctc_beam_search_decoder", ArgumentError(what, "Ask for fewer paths."))
    return [known.sequence(beam[k]) for k in best], [float(totals[k]) for k in best]
