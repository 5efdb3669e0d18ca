"""Samplers of classes by their frequencies, and what sampled classes and true ones have in common: ``tf.nn``."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import Any

import numpy

from twofold.dtypes import float32, int32, int64
from twofold.errors import ArgumentError
from twofold.runtime.calls import failed
from twofold.static.functions.host_calls import in_python
from twofold.static.graph.docstrings import example
from twofold.static.nn.sampled_losses import Distribution, Sampled, sampled_classes, sampler


class _Unigrams(Distribution):
    """Classes with weights; ``learns``: each true class adds 1 to its own."""

    def __init__(self, weights: Any, first: int = 0, learns: bool = False) -> None:
        self.weights, self.first, self.learns, self.count = weights, first, learns, len(weights)

    def generate(self, random: Any, wanted: int) -> Any:
        return random.choice(self.count, wanted, p=self.weights / self.weights.sum()) + self.first

    def probability(self, classes: Any) -> Any:
        return self.weights[classes.astype(numpy.int64) - self.first] / self.weights.sum()

    def seen(self, classes: Any) -> None:
        if self.learns:
            numpy.add.at(self.weights, numpy.ravel(classes), 1.0)


class _All(Distribution):
    """Every class once."""

    def __init__(self, count: int) -> None:
        self.count = count

    def sample(self, random: Any, wanted: int, unique: bool) -> tuple[Any, int]:
        return numpy.arange(wanted), wanted

    def expected(self, classes: Any, tries: int, unique: bool) -> Any:
        return numpy.ones(classes.shape, numpy.float32)


@example(
    "tf.nn.all_candidate_sampler(tf.constant([[1]], tf.int64), 1, 3, True).sampled_candidates", "[0 1 2]"
)
def all_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    seed: int | None = None,
    name: str | None = None,
) -> Sampled:
    """All classes below ``num_sampled``, each expected once."""
    given = (true_classes, num_true, num_sampled, unique, seed, name)
    return sampled_classes("all_candidate_sampler", _All(num_sampled), *given)


learned_unigram_candidate_sampler = sampler(
    "learned_unigram_candidate_sampler",
    lambda count: _Unigrams(numpy.ones(count), learns=True),
    "by the frequencies of the true classes of the runs before, which are equal at first",
    "found = tf.nn.learned_unigram_candidate_sampler(tf.constant([[1]], tf.int64), 1, 3, True, 3)",
    "tf.sort(found.sampled_candidates)",
    "[0 1 2]",
)


@example(
    "found = tf.nn.fixed_unigram_candidate_sampler(",
    "    tf.constant([[1]], tf.int64), 1, 3, True, 3, unigrams=[2.0, 1.0, 1.0])",
    "tf.sort(found.sampled_candidates)",
    "[0 1 2]",
)
def fixed_unigram_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    vocab_file: str = "",
    distortion: float = 1.0,
    num_reserved_ids: int = 0,
    num_shards: int = 1,
    shard: int = 0,
    unigrams: Sequence[float] = (),
    seed: int | None = None,
    name: str | None = None,
) -> Sampled:
    """A sample of classes by given frequencies.

    Args:
        true_classes: The true classes of each row.
        num_true: How many there are in a row.
        num_sampled: How many to sample.
        unique: Whether a class is sampled only once.
        range_max: The number of classes.
        vocab_file: A file of lines with commas, whose last entries are the frequencies.
        distortion: The power of the frequencies.
        num_reserved_ids: Classes of frequency 0 before those of the list.
        num_shards: The classes are dealt to so many samplers.
        shard: The number of this one.
        unigrams: The frequencies, unless they are in a file.
        seed: Of the random numbers.
        name: That of the operation.
    """
    own = "fixed_unigram_candidate_sampler"
    if bool(vocab_file) == bool(len(unigrams)):
        what = "both vocab_file and unigrams are given" if vocab_file else "no frequencies"
        raise failed(own, ArgumentError(what, "Give vocab_file or unigrams."))
    if vocab_file:
        with open(vocab_file, encoding="utf-8", newline="") as lines:
            unigrams = [float(row[-1]) for row in csv.reader(lines) if row]
    weights = numpy.array([*[0.0] * num_reserved_ids, *[float(one) ** distortion for one in unigrams]])
    if len(weights) != range_max:
        fix = "Give as many frequencies as classes that are not reserved."
        raise failed(own, ArgumentError(f"{len(weights)} frequencies for range_max={range_max}", fix))
    weights[numpy.arange(range_max) % num_shards != shard] = 0.0
    given = (true_classes, num_true, num_sampled, unique, seed, name)
    return sampled_classes(own, _Unigrams(weights), *given)


@example(
    "rows, ids, weights = tf.nn.compute_accidental_hits([[1, 2], [0, 5]], [2, 7, 0], 2)",
    "tf.stack([tf.to_int64(rows), ids])",
    "[[0 1]\n [0 2]]",
)
def compute_accidental_hits(
    true_classes: Any,
    sampled_candidates: Any,
    num_true: int,
    seed: int | None = None,
    name: str | None = None,
) -> tuple[Any, Any, Any]:
    """Where sampled classes are true ones: rows, last positions in the sample, and the smallest float32 for each.

    ``seed`` changes nothing.
    """

    def function(true: Any, sampled: Any) -> list[Any]:
        if true.shape[1] != num_true:
            what = f"{true.shape[1]} true classes in a row, and num_true is {num_true}"
            raise failed("compute_accidental_hits", ArgumentError(what, "Make them equal."))
        last = {one: position for position, one in enumerate(sampled.tolist())}
        hits = [(row, last[one]) for row, line in enumerate(true.tolist()) for one in line if one in last]
        rows, positions = numpy.array(hits, numpy.int64).reshape(-1, 2).T
        lowest = numpy.full(len(hits), numpy.finfo(numpy.float32).min, numpy.float32)
        return [rows.astype(numpy.int32), positions, lowest]

    results = [(int32, (None,)), (int64, (None,)), (float32, (None,))]
    found = in_python("ComputeAccidentalHits", function, [true_classes, sampled_candidates], results, name)
    return found[0], found[1], found[2]
