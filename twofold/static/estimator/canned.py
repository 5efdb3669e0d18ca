"""Models of feature columns that are ready to train: linear ones, deep ones, and both together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import sqrt
from typing import Any, NamedTuple

from twofold.errors import ArgumentError
from twofold.runtime.calls import failed
from twofold.static import layers, losses, nn, train
from twofold.static.api.op_functions import refuse
from twofold.static.control_flow.dependencies import group
from twofold.static.estimator.estimator import Estimator
from twofold.static.estimator.heads import ClassHead, Head, RegressionHead
from twofold.static.estimator.spec import EstimatorSpec, ModeKeys
from twofold.static.feature_column.layers import input_layer, linear_model
from twofold.static.graph.collection_keys import GraphKeys
from twofold.static.graph.graph import get_default_graph
from twofold.static.graph.scopes import control_dependencies
from twofold.static.train.step_counter import get_global_step
from twofold.static.variables.variable_scope import variable_scope

_SUM = losses.Reduction.SUM
_OPTIMIZERS = {
    "Adagrad": train.AdagradOptimizer,
    "Adam": train.AdamOptimizer,
    "Ftrl": train.FtrlOptimizer,
    "RMSProp": train.RMSPropOptimizer,
    "SGD": train.GradientDescentOptimizer,
}


def _optimizer(given: Any, rate: float) -> Any:
    """An optimiser: itself, what a function returns, or the one of a name with the rate."""
    if isinstance(given, str):
        if given not in _OPTIMIZERS:
            raise failed(
                "estimator", ArgumentError(f"optimizer is {given!r}", f"Use one of {', '.join(_OPTIMIZERS)}.")
            )
        return _OPTIMIZERS[given](rate)
    return given() if callable(given) else given


class _Linear(NamedTuple):
    """A linear model of columns."""

    columns: Sequence[Any]
    optimizer: Any
    combiner: str
    most: float

    @property
    def scope(self) -> str:
        """Of its variables."""
        return "linear"

    def logits(self, features: Mapping[str, Any], width: int, mode: str) -> Any:
        """The results."""
        return linear_model(features, self.columns, width, self.combiner)

    def rule(self) -> Any:
        """The optimiser; its rate falls with the number of columns."""
        return _optimizer(self.optimizer, min(self.most, 1 / sqrt(len(list(self.columns)))))


class _Deep(NamedTuple):
    """Dense layers over columns."""

    columns: Sequence[Any]
    optimizer: Any
    units: Sequence[int]
    activation: Any
    dropout: float | None
    batch_norm: bool

    @property
    def scope(self) -> str:
        """Of its variables."""
        return "dnn"

    def logits(self, features: Mapping[str, Any], width: int, mode: str) -> Any:
        """The results."""
        training = mode == ModeKeys.TRAIN
        with variable_scope("input_from_feature_columns"):
            found = input_layer(features, self.columns)
        for k, count in enumerate(self.units):
            found = layers.dense(found, count, self.activation, name=f"hiddenlayer_{k}")
            if self.dropout is not None and training:
                found = layers.dropout(found, self.dropout, training=True)
            if self.batch_norm:
                found = layers.batch_normalization(
                    found, momentum=0.999, training=training, name=f"hiddenlayer_{k}/batchnorm_{k}"
                )
        return layers.dense(found, width, name="logits")

    def rule(self) -> Any:
        """The optimiser."""
        return _optimizer(self.optimizer, 0.05)


def _model(head: Head, parts: Sequence[_Linear | _Deep]) -> Callable[..., EstimatorSpec]:
    """A model function whose logits are the sum of those of the parts, each with its own optimiser."""

    def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
        if not isinstance(features, Mapping):
            what = f"features of type {type(features).__name__}"
            raise failed("estimator", ArgumentError(what, "Let input_fn return a dict of tensors by key."))
        logits: Any = None
        for part in parts:
            with variable_scope(part.scope):
                made = part.logits(features, head.width, mode)
            logits = made if logits is None else logits + made

        def trained(loss: Any) -> Any:
            graph = get_default_graph()
            steps = [
                part.rule().minimize(
                    loss, var_list=graph.get_collection(GraphKeys.TRAINABLE_VARIABLES, scope=f"{part.scope}/")
                )
                for part in parts
            ]
            with control_dependencies([group(*steps)]):
                step: Any = get_global_step()
                return step.assign_add(1).op

        return head.spec(features, mode, logits, labels, trained)

    return model_fn


def _parts(
    linear_columns: Any,
    linear_optimizer: Any,
    combiner: str,
    columns: Any,
    optimizer: Any,
    units: Any,
    *deep: Any,
) -> list[_Linear | _Deep]:
    parts: list[_Linear | _Deep] = []
    if columns:
        if not units:
            raise failed("estimator", ArgumentError("no dnn_hidden_units", "Give the sizes of the layers."))
        parts.append(_Deep(tuple(columns), optimizer, tuple(units), *deep))
    if linear_columns:
        parts.append(_Linear(tuple(linear_columns), linear_optimizer, combiner, 0.005))
    if not parts:
        raise failed(
            "estimator", ArgumentError("no columns", "Give linear_feature_columns or dnn_feature_columns.")
        )
    return parts


class LinearClassifier(Estimator):
    """A linear model of columns that tells classes.

    Args:
        feature_columns: Columns of ``tf.feature_column``.
        model_dir: Directory of the checkpoints.
        n_classes: How many classes there are.
        weight_column: Key of a feature, or a numeric column, with the weights of rows.
        label_vocabulary: The names of the classes, if labels are these.
        optimizer: A ``tf.train`` optimiser, a function that makes one, or a name. Ftrl has the rate 0.2, or less
            for more than 25 columns.
        config: A ``RunConfig``.
        partitioner: Not offered; it raises unless None.
        warm_start_from: A checkpoint that variables begin with.
        loss_reduction: How the losses of rows become one number: their sum unless given.
        sparse_combiner: How the weights of several categories in a row are combined.

    >>> import twofold.static as tf
    >>> x = tf.feature_column.numeric_column("x")
    >>> def rows():
    ...     return {"x": tf.constant([-1.0, 0.5, 2.0, -3.0])}, tf.constant([0, 1, 1, 0])
    >>> model = tf.estimator.LinearClassifier([x]).train(rows, steps=20)
    >>> float(model.evaluate(rows, steps=1)["accuracy"])
    1.0
    """

    def __init__(
        self,
        feature_columns: Sequence[Any],
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        partitioner: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = _SUM,
        sparse_combiner: str = "sum",
    ) -> None:
        refuse("LinearClassifier", partitioner=partitioner)
        head = ClassHead(n_classes, weight_column, loss_reduction, label_vocabulary)
        part = _Linear(tuple(feature_columns), optimizer, sparse_combiner, 0.2)
        super().__init__(_model(head, [part]), model_dir, config, warm_start_from=warm_start_from)


class LinearRegressor(Estimator):
    """A linear model of columns that tells ``label_dimension`` numbers; otherwise as ``LinearClassifier``."""

    def __init__(
        self,
        feature_columns: Sequence[Any],
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        partitioner: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = _SUM,
        sparse_combiner: str = "sum",
    ) -> None:
        refuse("LinearRegressor", partitioner=partitioner)
        head = RegressionHead(label_dimension, weight_column, loss_reduction)
        part = _Linear(tuple(feature_columns), optimizer, sparse_combiner, 0.2)
        super().__init__(_model(head, [part]), model_dir, config, warm_start_from=warm_start_from)


class DNNClassifier(Estimator):
    """Dense layers over columns that tell classes.

    Args:
        hidden_units: How many units each layer has.
        feature_columns: Dense columns of ``tf.feature_column``.
        model_dir: Directory of the checkpoints.
        n_classes: How many classes there are.
        weight_column: Key of a feature, or a numeric column, with the weights of rows.
        label_vocabulary: The names of the classes, if labels are these.
        optimizer: A ``tf.train`` optimiser, a function that makes one, or a name. Adagrad has the rate 0.05.
        activation_fn: Of the hidden layers.
        dropout: The probability that a unit is zero in training; None for no dropout.
        input_layer_partitioner: Not offered; it raises unless None.
        config: A ``RunConfig``.
        warm_start_from: A checkpoint that variables begin with.
        loss_reduction: How the losses of rows become one number: their sum unless given.
        batch_norm: Whether hidden layers are normalised over the batch.
    """

    def __init__(
        self,
        hidden_units: Sequence[int],
        feature_columns: Sequence[Any],
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        optimizer: Any = "Adagrad",
        activation_fn: Any = nn.relu,
        dropout: float | None = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = _SUM,
        batch_norm: bool = False,
    ) -> None:
        refuse("DNNClassifier", input_layer_partitioner=input_layer_partitioner)
        head = ClassHead(n_classes, weight_column, loss_reduction, label_vocabulary)
        part = _Deep(
            tuple(feature_columns), optimizer, tuple(hidden_units), activation_fn, dropout, batch_norm
        )
        super().__init__(_model(head, [part]), model_dir, config, warm_start_from=warm_start_from)


class DNNRegressor(Estimator):
    """Dense layers over columns that tell ``label_dimension`` numbers; otherwise as ``DNNClassifier``."""

    def __init__(
        self,
        hidden_units: Sequence[int],
        feature_columns: Sequence[Any],
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Adagrad",
        activation_fn: Any = nn.relu,
        dropout: float | None = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = _SUM,
        batch_norm: bool = False,
    ) -> None:
        refuse("DNNRegressor", input_layer_partitioner=input_layer_partitioner)
        head = RegressionHead(label_dimension, weight_column, loss_reduction)
        part = _Deep(
            tuple(feature_columns), optimizer, tuple(hidden_units), activation_fn, dropout, batch_norm
        )
        super().__init__(_model(head, [part]), model_dir, config, warm_start_from=warm_start_from)


class DNNLinearCombinedClassifier(Estimator):
    """The sum of a linear model and dense layers that tells classes, "wide and deep" (Cheng et al. 2016).

    Arguments that begin with ``linear`` and ``dnn`` are those of ``LinearClassifier`` and ``DNNClassifier``, with at
    most the rate 0.005 for the linear part; at least one of them has columns.
    """

    def __init__(
        self,
        model_dir: Any = None,
        linear_feature_columns: Sequence[Any] | None = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Sequence[Any] | None = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Sequence[int] | None = None,
        dnn_activation_fn: Any = nn.relu,
        dnn_dropout: float | None = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = _SUM,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ) -> None:
        refuse("DNNLinearCombinedClassifier", input_layer_partitioner=input_layer_partitioner)
        head = ClassHead(n_classes, weight_column, loss_reduction, label_vocabulary)
        wide = (linear_feature_columns, linear_optimizer, linear_sparse_combiner)
        deep = (
            dnn_feature_columns,
            dnn_optimizer,
            dnn_hidden_units,
            dnn_activation_fn,
            dnn_dropout,
            batch_norm,
        )
        super().__init__(
            _model(head, _parts(*wide, *deep)), model_dir, config, warm_start_from=warm_start_from
        )


class DNNLinearCombinedRegressor(Estimator):
    """The sum of a linear model and dense layers that tells numbers; otherwise as the classifier of this kind."""

    def __init__(
        self,
        model_dir: Any = None,
        linear_feature_columns: Sequence[Any] | None = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Sequence[Any] | None = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Sequence[int] | None = None,
        dnn_activation_fn: Any = nn.relu,
        dnn_dropout: float | None = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = _SUM,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ) -> None:
        refuse("DNNLinearCombinedRegressor", input_layer_partitioner=input_layer_partitioner)
        head = RegressionHead(label_dimension, weight_column, loss_reduction)
        wide = (linear_feature_columns, linear_optimizer, linear_sparse_combiner)
        deep = (
            dnn_feature_columns,
            dnn_optimizer,
            dnn_hidden_units,
            dnn_activation_fn,
            dnn_dropout,
            batch_norm,
        )
        super().__init__(
            _model(head, _parts(*wide, *deep)), model_dir, config, warm_start_from=warm_start_from
        )
