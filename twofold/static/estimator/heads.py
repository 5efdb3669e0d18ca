"""What the last layer of an estimator means: classes or numbers, their loss, predictions and metrics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from twofold.dtypes import float32, int64, string
from twofold.errors import ArgumentError
from twofold.runtime.calls import failed
from twofold.static import lookup, losses, math, metrics, nn
from twofold.static.api.op_functions import constant, convert_to_tensor
from twofold.static.arrays import shape_ops
from twofold.static.arrays.creation import zeros_like
from twofold.static.debugging import assert_less, assert_non_negative
from twofold.static.estimator.export import ClassificationOutput, PredictOutput, RegressionOutput
from twofold.static.estimator.spec import EstimatorSpec, ModeKeys
from twofold.static.feature_column.columns import Features, NumericColumn
from twofold.static.graph.collection_keys import GraphKeys
from twofold.static.graph.graph import get_default_graph
from twofold.static.graph.scopes import control_dependencies
from twofold.static.strings.string_functions import as_string


class Head:
    """Logits of ``width`` columns as an ``EstimatorSpec``.

    Args:
        width: How many columns the logits have.
        weight_column: Key of a feature, or a numeric column, with the weights of rows.
        reduction: How the losses of rows become one number: one of ``tf.losses.Reduction``.
    """

    def __init__(self, width: int, weight_column: Any, reduction: str) -> None:
        if width < 1:
            raise failed("estimator", ArgumentError(f"{width} columns of logits", "Give a number above 0."))
        self.width, self._weight_column, self._reduction = width, weight_column, reduction

    def predictions(self, logits: Any) -> tuple[dict[str, Any], Any]:
        """Tensors by name, and the output of the default signature."""
        raise NotImplementedError

    def prepared(self, labels: Any) -> Any:
        """Labels as [batch, columns] of numbers."""
        raise NotImplementedError

    def losses(self, labels: Any, logits: Any) -> Any:
        """The loss of each row, [batch, columns]."""
        raise NotImplementedError

    def metrics(self, labels: Any, found: dict[str, Any], weights: Any) -> dict[str, Any]:
        """Pairs of values and updates by name."""
        raise NotImplementedError

    def spec(
        self, features: Any, mode: str, logits: Any, labels: Any, train: Callable[[Any], Any]
    ) -> EstimatorSpec:
        """What a model function returns; ``train`` gives for a loss the operation that lowers it."""
        found, output = self.predictions(logits)
        if mode == ModeKeys.PREDICT:
            outputs = {"serving_default": output, "predict": PredictOutput(found)}
            return EstimatorSpec(mode, predictions=found, export_outputs=outputs)
        if labels is None:
            raise failed("estimator", ArgumentError("no labels", "Let input_fn return features and labels."))
        wanted = self.prepared(_as_matrix(labels))
        each = self.losses(wanted, logits)
        weights: Any = 1.0
        if self._weight_column is not None:
            column = self._weight_column
            column = (
                column
                if isinstance(column, NumericColumn)
                else NumericColumn(column, (1,), None, float32, None)
            )
            weights = column.transformed(Features(features))
        loss = losses.compute_weighted_loss(each, weights, reduction=self._reduction)
        if mode == ModeKeys.TRAIN:
            with control_dependencies(get_default_graph().get_collection(GraphKeys.UPDATE_OPS)):
                step = train(loss)
            return EstimatorSpec(mode, predictions=found, loss=loss, train_op=step)
        scale = None if self._weight_column is None else weights
        pairs = {"average_loss": metrics.mean(each, scale), **self.metrics(wanted, found, scale)}
        return EstimatorSpec(mode, predictions=found, loss=loss, eval_metric_ops=pairs)


def _as_matrix(labels: Any) -> Any:
    tensor = convert_to_tensor(labels)
    return shape_ops.expand_dims(tensor, -1) if tensor.get_shape().ndims == 1 else tensor


class RegressionHead(Head):
    """Numbers, with squared errors."""

    def predictions(self, logits: Any) -> tuple[dict[str, Any], Any]:
        """The numbers."""
        return {"predictions": logits}, RegressionOutput(logits)

    def prepared(self, labels: Any) -> Any:
        """The numbers as float32."""
        return math.cast(labels, float32)

    def losses(self, labels: Any, logits: Any) -> Any:
        """Squared errors."""
        return losses.mean_squared_error(
            labels, logits, reduction=losses.Reduction.NONE, loss_collection=None
        )

    def metrics(self, labels: Any, found: dict[str, Any], weights: Any) -> dict[str, Any]:
        """Means."""
        return {
            "prediction/mean": metrics.mean(found["predictions"], weights),
            "label/mean": metrics.mean(labels, weights),
        }


class ClassHead(Head):
    """One of ``count`` classes: two have one column of logits, more a column each.

    Args:
        count: How many classes there are.
        weight_column, reduction: As ``Head`` takes them.
        vocabulary: The names of the classes, if labels are these.
    """

    def __init__(
        self, count: int, weight_column: Any, reduction: str, vocabulary: Sequence[str] | None
    ) -> None:
        if count < 2 or (vocabulary is not None and len(vocabulary) != count):
            what = f"{count} classes with the names {vocabulary}"
            raise failed("estimator", ArgumentError(what, "Give two classes or more, and all their names."))
        super().__init__(1 if count == 2 else count, weight_column, reduction)
        self._count, self._vocabulary = count, vocabulary

    def predictions(self, logits: Any) -> tuple[dict[str, Any], Any]:
        """Logits, probabilities, numbers and names of the likeliest classes, and of all."""
        found = {"logits": logits}
        both = logits
        if self.width == 1:
            found["logistic"] = nn.sigmoid(logits)
            both = shape_ops.concat([zeros_like(logits), logits], -1)
        found["probabilities"] = nn.softmax(both)
        best = shape_ops.expand_dims(math.argmax(both, -1), -1)
        names = constant(self._vocabulary or [str(k) for k in range(self._count)])
        found |= {
            "class_ids": best,
            "classes": shape_ops.gather(names, best) if self._vocabulary else as_string(best),
        }
        rows = shape_ops.shape(logits)[0]
        every = shape_ops.tile(shape_ops.expand_dims(names, 0), shape_ops.stack([rows, 1]))
        found["all_class_ids"] = shape_ops.tile([list(range(self._count))], shape_ops.stack([rows, 1]))
        found["all_classes"] = every
        return found, ClassificationOutput(scores=found["probabilities"], classes=every)

    def prepared(self, labels: Any) -> Any:
        """Numbers of classes as int64."""
        if self._vocabulary is not None:
            return lookup.index_table_from_tensor(list(self._vocabulary), name="class_id_lookup").lookup(
                labels
            )
        if labels.dtype is string:
            raise failed("estimator", ArgumentError("labels are strings", "Give label_vocabulary."))
        return math.cast(labels, int64)

    def losses(self, labels: Any, logits: Any) -> Any:
        """Cross entropies; another number than that of a class raises InvalidArgumentError."""
        message = f"Labels must be below n_classes, {self._count}"
        checks = [
            assert_less(labels, constant(self._count, int64), message=message),
            assert_non_negative(labels),
        ]
        with control_dependencies(checks):
            labels = shape_ops.identity(labels)
        if self.width == 1:
            return nn.sigmoid_cross_entropy_with_logits(labels=math.cast(labels, float32), logits=logits)
        rows = nn.sparse_softmax_cross_entropy_with_logits(
            labels=shape_ops.squeeze(labels, [-1]), logits=logits
        )
        return shape_ops.expand_dims(rows, -1)

    def metrics(self, labels: Any, found: dict[str, Any], weights: Any) -> dict[str, Any]:
        """The accuracy; for two classes also what their probabilities tell."""
        best = found["class_ids"]
        made = {"accuracy": metrics.accuracy(labels, best, weights)}
        if self.width != 1:
            return made
        score, truth = found["logistic"], math.cast(labels, float32)
        share, update = metrics.mean(truth, weights)
        return {
            **made,
            "accuracy_baseline": (math.maximum(share, 1.0 - share), math.maximum(update, 1.0 - update)),
            "precision": metrics.precision(labels, best, weights),
            "recall": metrics.recall(labels, best, weights),
            "prediction/mean": metrics.mean(score, weights),
            "label/mean": (share, update),
            "auc": metrics.auc(labels, score, weights),
            "auc_precision_recall": metrics.auc(
                labels, score, weights, curve="PR", summation_method="careful_interpolation"
            ),
        }
