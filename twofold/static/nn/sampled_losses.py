"""Losses over a sample of classes, for very many classes.

Sources: Gutmann, Hyvärinen 2010 (noise-contrastive estimation); Jean et al. 2015 (sampled softmax).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy

from twofold.dtypes import float32, int64
from twofold.errors import ArgumentError
from twofold.ops.base import ops
from twofold.runtime.calls import failed
from twofold.runtime.tracing import here
from twofold.static import math, nn
from twofold.static.api.op_functions import convert_to_tensor, operation
from twofold.static.api.signatures import takes
from twofold.static.arrays import creation, shape_ops
from twofold.static.functions.host_calls import in_python
from twofold.static.graph.docstrings import described
from twofold.static.random import next_key


class Sampled(NamedTuple):
    """Classes, and how often each true and each sampled class is expected among them."""

    sampled_candidates: Any
    true_expected_count: Any
    sampled_expected_count: Any


class Distribution:
    """Classes 0 to ``count - 1`` with known probabilities."""

    def __init__(
        self, count: int, probability: Callable[[Any], Any], generate: Callable[[Any, int], Any]
    ) -> None:
        self.count, self.probability, self.generate = count, probability, generate

    def sample(self, random: Any, wanted: int, unique: bool) -> tuple[Any, int]:
        """Classes, and how many had to be sampled to find so many different ones."""
        if not unique:
            return self.generate(random, wanted), wanted
        found: dict[int, None] = {}
        tries = 0
        while len(found) < wanted:
            for number in self.generate(random, wanted).tolist():
                tries += 1
                found[number] = None
                if len(found) == wanted:
                    break
        return numpy.fromiter(found, numpy.int64, wanted), tries

    def seen(self, classes: Any) -> None:
        """Learn from true classes, which only some distributions do."""

    def expected(self, classes: Any, tries: int, unique: bool) -> Any:
        """How often classes are expected in a sample."""
        p = self.probability(classes.astype(numpy.float64))
        expected = -numpy.expm1(tries * numpy.log1p(-p)) if unique else tries * p
        return expected.astype(numpy.float32)


def _log_uniform(count: int) -> Distribution:
    total = numpy.log(count + 1.0)

    def generate(random: Any, wanted: int) -> Any:
        found = numpy.floor(numpy.exp(random.random(wanted) * total)).astype(numpy.int64) - 1
        return numpy.clip(found, 0, count - 1)

    return Distribution(count, lambda k: (numpy.log(k + 2) - numpy.log(k + 1)) / total, generate)


def _uniform(count: int) -> Distribution:
    def generate(random: Any, wanted: int) -> Any:
        return random.integers(0, count, wanted)

    return Distribution(count, lambda k: numpy.full_like(k, 1 / count), generate)


def sampled_classes(
    own: str,
    classes_of: Any,
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    seed: int | None,
    name: str | None,
) -> Sampled:
    """Classes of a distribution, sampled in every run, and how often each is expected."""
    if unique and num_sampled > classes_of.count:
        what = f"{num_sampled} different ones of {classes_of.count} classes"
        raise failed(own, ArgumentError(what, "Sample fewer, or with unique=False."))
    random = numpy.random.default_rng(next_key(seed))

    def function(classes: Any) -> list[Any]:
        found, tries = classes_of.sample(random, num_sampled, unique)
        expected = [classes_of.expected(k, tries, unique) for k in (classes, found)]
        classes_of.seen(classes)
        return [found, *expected]

    labels = math.cast(convert_to_tensor(true_classes), int64)
    rows = labels.type_.shape[0]
    sizes = [(num_sampled,), (rows if rows >= 0 else None, num_true), (num_sampled,)]
    results = list(zip((int64, float32, float32), sizes))
    return Sampled(*in_python(own, function, [labels], results, name))


def sampler(
    own: str, distribution: Callable[[int], Distribution], words: str, *shown: str
) -> Callable[..., Sampled]:
    """``tf.nn``'s function called ``own`` that samples classes of a distribution of ``range_max`` of them."""

    def sample(
        true_classes: Any,
        num_true: int,
        num_sampled: int,
        unique: bool,
        range_max: int,
        seed: int | None = None,
        name: str | None = None,
    ) -> Sampled:
        given = (true_classes, num_true, num_sampled, unique, seed, name)
        return sampled_classes(own, distribution(range_max), *given)

    text = f"A sample of classes, {words}; without repetition if ``unique``. It is new in every run."
    return described(sample, own, text, *shown)


log_uniform_candidate_sampler = sampler(
    "log_uniform_candidate_sampler",
    _log_uniform,
    "class k with probability log((k + 2) / (k + 1)) / log(range_max + 1)",
)
uniform_candidate_sampler = sampler("uniform_candidate_sampler", _uniform, "all equally probable")


@operation("SampledLogits", several=list)
def _true_and_sampled(
    inputs: Any, weights: Any, biases: Any, labels: Any, sampled: Any, expected: Any, also: Any, hides: Any
) -> Any:
    batch, count = labels.shape
    flat = ops.reshape(labels, (-1,))
    rows = ops.reshape(ops.index_select(weights, 0, flat), (batch, count, weights.shape[1]))
    true = ops.sum(ops.multiply(ops.unsqueeze(inputs, 1), rows), -1)
    true = ops.add(true, ops.reshape(ops.index_select(biases, 0, flat), (batch, count)))
    noise = ops.matmul(inputs, ops.transpose(ops.index_select(weights, 0, sampled), 0, 1))
    noise = ops.add(noise, ops.index_select(biases, 0, sampled))
    if hides:
        hits = ops.any(ops.equal(ops.unsqueeze(labels, 2), ops.reshape(sampled, (1, 1, -1))), 1)
        noise = ops.where(hits, float(numpy.finfo(numpy.float32).min), noise)
    return [ops.subtract(true, ops.log(expected)), ops.subtract(noise, ops.log(also))]


def _logits(called: str, given: dict[str, Any]) -> tuple[Any, Any]:
    """The logits of true and sampled classes, and the probabilities that they should have."""
    weights, strategy, true = given["weights"], given["partition_strategy"], given["num_true"]
    if strategy not in ("mod", "div"):
        raise ValueError(f"{called}: partition_strategy {strategy!r}, at {here()}. Use 'mod' or 'div'.")
    if isinstance(weights, (list, tuple)):
        if len(weights) != 1:
            what = f"weights in {len(weights)} parts"
            raise failed(called, ArgumentError(what, "Give one table."))
        (weights,) = weights
    numbers = math.cast(convert_to_tensor(given["labels"]), int64)
    if numbers.type_.ndim == 1:
        numbers = shape_ops.expand_dims(numbers, -1)
    counts = true, given["num_sampled"], True, given["num_classes"], given.get("seed")
    sample = given["sampled_values"] or log_uniform_candidate_sampler(numbers, *counts)
    sample = [math.stop_gradient(value) for value in sample]
    tensors = [convert_to_tensor(value) for value in (given["inputs"], weights, given["biases"])]
    hides = bool(given["remove_accidental_hits"])
    made = _true_and_sampled(*tensors, numbers, *sample, hides, name=given["name"])
    ones, zeros = creation.ones_like(made[0]) / float(true), creation.zeros_like(made[1])
    return shape_ops.concat(made, 1), shape_ops.concat([ones, zeros], 1)


_CLASSES = "weights, biases, labels, inputs, num_sampled, num_classes, num_true=1, sampled_values=None"


@takes(f"{_CLASSES}, remove_accidental_hits=False, partition_strategy='mod', name='nce_loss'")
def nce_loss(**given: Any) -> Any:
    """For each row, the loss of telling its true classes from sampled ones (log-uniform unless given)."""
    logits, wanted = _logits("nce_loss", given)
    return math.reduce_sum(nn.sigmoid_cross_entropy_with_logits(labels=wanted, logits=logits), 1)


@takes(
    f"{_CLASSES}, remove_accidental_hits=True, partition_strategy='mod', name='sampled_softmax_loss', seed=None"
)
def sampled_softmax_loss(**given: Any) -> Any:
    """For each row, the softmax cross entropy among its true classes and sampled ones (log-uniform unless given)."""
    logits, wanted = _logits("sampled_softmax_loss", given)
    return nn.softmax_cross_entropy_with_logits(labels=wanted, logits=logits)
