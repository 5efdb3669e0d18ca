"""Measures of the ``k`` highest predictions of each row: precision, recall and average precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold.dtypes import float64, int64
from twofold.ops.base import ops
from twofold.static import math, nn
from twofold.static.api.op_functions import Number, convert_to_tensor, counted, operation, whole
from twofold.static.api.signatures import defaults_of, with_parameters
from twofold.static.graph.docstrings import START_LOCAL, with_example
from twofold.static.graph.scopes import name_scope
from twofold.static.metrics.streaming import COLLECTIONS, collected, gathered, quotient, shares_of
from twofold.static.sparse import SparseTensor, sparse_tensor_to_dense

_NO_LABEL = -(2**63)
"""Behind the labels of rows of a sparse tensor that has fewer than others."""


def _dense(labels: Any) -> Any:
    if isinstance(labels, SparseTensor):
        return sparse_tensor_to_dense(labels, _NO_LABEL)
    return math.cast(convert_to_tensor(labels), int64)


def _equal(guesses: Any, labels: Any) -> tuple[Any, Any, Any]:
    """Guesses and labels with one axis for those of a row, and whether each guess equals each label."""
    one = ops.cast(guesses, int64)
    two = ops.unsqueeze(labels, labels.ndim) if labels.ndim + 1 == guesses.ndim else labels
    return one, two, ops.equal(ops.unsqueeze(one, one.ndim), ops.unsqueeze(two, two.ndim - 1))


def _first(values: Any) -> Any:
    """Whether no equal value stands before one in its row."""
    last = values.ndim - 1
    size = values.shape[last]
    position = counted(size, values)
    before = ops.less(ops.unsqueeze(position, 0), ops.unsqueeze(position, 1))
    same = ops.equal(ops.unsqueeze(values, values.ndim), ops.unsqueeze(values, last))
    return ops.logical_not(ops.any(ops.logical_and(same, before), values.ndim))


@operation("SetSizes", several=list)
def _cases(labels: Any, guesses: Any, weights: Any, class_id: Number) -> Any:
    """The weights of right guesses, wrong guesses and missed labels, each of which counts once in a row."""
    one, two, equal = _equal(guesses, labels)
    last = one.ndim - 1
    hit, reached = ops.any(equal, last + 1), ops.any(equal, last)
    guess, label = _first(one), ops.logical_and(_first(two), ops.not_equal(two, _NO_LABEL))
    if class_id is not None:
        guess = ops.logical_and(guess, ops.equal(one, whole(class_id)))
        label = ops.logical_and(label, ops.equal(two, whole(class_id)))
    kinds = ((guess, hit), (guess, ops.logical_not(hit)), (label, ops.logical_not(reached)))
    sizes = [ops.sum(ops.cast(ops.logical_and(*kind), float64), last) for kind in kinds]
    if weights is None:
        return [ops.sum(size) for size in sizes]
    return [ops.sum(ops.multiply(size, ops.cast(weights, float64))) for size in sizes]


def _scope(kind: str, k: int | None, class_id: int | None) -> str:
    chosen = "" if class_id is None else f"_class{class_id}"
    return f"{kind}_at_{'k' if k is None else k}{chosen}"


def _entered(body: Callable[..., Any], name: str, text: str, call: str, result: str) -> Callable[..., Any]:
    """``body`` with the parameters for collections, a docstring and an example."""

    def measured(
        metrics_collections: Any, updates_collections: Any, name: str | None, **given: Any
    ) -> tuple[Any, Any]:
        value, update = body(name, **given)
        return collected(value, update, metrics_collections, updates_collections)

    setup = (f"value, update = tf.metrics.{name}({call})", START_LOCAL)
    measured.__name__ = measured.__qualname__ = name
    measured.__doc__ = with_example(text, *setup, "update", result)
    own = defaults_of(body)
    own.pop("name")
    return with_parameters(measured, {**own, **COLLECTIONS})


_LABELS = """``labels`` are int64, those of each row along the last axis (one alone may lack it), or a ``SparseTensor``.
With ``class_id`` only this class counts; ``weights`` are those of rows."""


def _share(kind: str, other: int, words: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The metric of scores, and that of the numbers of classes: right guesses over their sum with another case."""

    def of_classes(
        name: Any,
        labels: Any,
        predictions_idx: Any,
        k: int | None = None,
        class_id: int | None = None,
        weights: Any = None,
    ) -> tuple[Any, Any]:
        with name_scope(name, _scope(kind, k, class_id)):
            scale = None if weights is None else convert_to_tensor(weights)
            cases = _cases(_dense(labels), convert_to_tensor(predictions_idx), scale, class_id)
            names = ("true_positive", "false_positive", "false_negative")
            (right, more), (wrong, also) = (
                gathered(_scope(names[case], k, class_id), cases[case], dtype=float64) for case in (0, other)
            )
            value = math.divide(right, right + wrong, name="value")
            return value, math.divide(more, more + also, name="update_op")

    def of_scores(
        name: Any, labels: Any, predictions: Any, k: int, class_id: int | None = None, weights: Any = None
    ) -> tuple[Any, Any]:
        with name_scope(name, _scope(kind, k, class_id)) as scope:
            _, chosen = nn.top_k(predictions, k)
        return of_classes(scope, labels, chosen, k, class_id, weights)

    return (
        _entered(
            of_scores,
            f"{kind}_at_k",
            f"The share of {words} the ``k`` highest predictions of a row; NaN of none.\n\n{_LABELS}",
            "[[0], [2]], [[0.9, 0.1, 0.0], [0.6, 0.4, 0.2]], 1",
            "0.5",
        ),
        _entered(
            of_classes,
            f"{kind}_at_top_k",
            f"The share of {words} the classes predicted for a row; NaN of none.\n\n{_LABELS}",
            "[[0], [2]], [[0], [1]]",
            "0.5",
        ),
    )


precision_at_k, precision_at_top_k = _share("precision", 1, "right classes among")
recall_at_k, recall_at_top_k = _share("recall", 2, "labels that are among")


@operation("AveragePrecision")
def _average_precision(labels: Any, guesses: Any) -> Any:
    """The average precision of each row."""
    one, two, equal = _equal(guesses, labels)
    last = one.ndim - 1
    size = one.shape[last]
    hit = ops.cast(ops.any(equal, last + 1), float64)
    precision = ops.divide(ops.cumsum(hit, last), ops.cast(ops.add(counted(size, one), 1), float64))
    relevant = ops.minimum(ops.sum(ops.cast(ops.greater_equal(two, 0), int64), last), size)
    return ops.divide(ops.sum(ops.multiply(precision, hit), last), ops.cast(relevant, float64))


def _mean_average_precision(
    name: Any, labels: Any, predictions: Any, k: int, weights: Any = None
) -> tuple[Any, Any]:
    with name_scope(name, _scope("average_precision", k, None)):
        _, chosen = nn.top_k(predictions, k)
        found = _average_precision(_dense(labels), chosen)
        scale = shares_of(found, weights)
        total = gathered("total", math.reduce_sum(found * scale), dtype=float64)
        return quotient(total, gathered("max", math.reduce_sum(scale), dtype=float64))


average_precision_at_k = _entered(
    _mean_average_precision,
    "average_precision_at_k",
    "The mean over rows of the average precision of the ``k`` highest predictions.\n\n"
    "``labels`` are int64, those of each row along the last axis, or a ``SparseTensor``; those below 0 do not count.",
    "[[0, 2]], [[0.9, 0.5, 0.4]], 3",
    "0.8333333333333333",
)
sparse_precision_at_k, sparse_average_precision_at_k = precision_at_k, average_precision_at_k
