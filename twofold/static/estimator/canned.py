"""Models of feature columns that are ready to train: linear ones, deep ones, and both together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import sqrt
from typing import Any, NamedTuple

from twofold.errors import ArgumentError
from twofold.runtime.calls import failed
from twofold.static import layers, nn, train
from twofold.static.api.op_functions import refuse
from twofold.static.api.signatures import REQUIRED, parameters, with_parameters
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

_OPTIMIZERS = {
    "Adagrad": train.AdagradOptimizer,
    "Adam": train.AdamOptimizer,
    "Ftrl": train.FtrlOptimizer,
    "RMSProp": train.RMSPropOptimizer,
    "SGD": train.GradientDescentOptimizer,
}


def optimizer_of(given: Any, rate: float) -> Any:
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
        return optimizer_of(self.optimizer, min(self.most, 1 / sqrt(len(list(self.columns)))))


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
        return optimizer_of(self.optimizer, 0.05)


def model_of(head: Head, parts: Sequence[_Linear | _Deep]) -> Callable[..., EstimatorSpec]:
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


def linear_part(feature_columns: Any, optimizer: Any, sparse_combiner: str) -> list[Any]:
    """The part of a linear model."""
    return [_Linear(tuple(feature_columns), optimizer, sparse_combiner, 0.2)]


def deep_part(
    hidden_units: Any,
    feature_columns: Any,
    optimizer: Any,
    activation_fn: Any,
    dropout: Any,
    batch_norm: bool,
) -> list[Any]:
    """The part of a deep model."""
    return [_Deep(tuple(feature_columns), optimizer, tuple(hidden_units), activation_fn, dropout, batch_norm)]


def both_parts(
    dnn_feature_columns: Any,
    dnn_hidden_units: Any,
    linear_feature_columns: Any,
    linear_optimizer: Any,
    linear_sparse_combiner: str,
    batch_norm: bool,
    dnn_optimizer: Any,
    dnn_activation_fn: Any,
    dnn_dropout: float | None,
) -> list[Any]:
    """The parts of a model that is deep, linear or both."""
    parts: list[Any] = []
    if dnn_feature_columns:
        if not dnn_hidden_units:
            raise failed("estimator", ArgumentError("no dnn_hidden_units", "Give the sizes of the layers."))
        deep = (dnn_optimizer, dnn_activation_fn, dnn_dropout, batch_norm)
        parts += deep_part(dnn_hidden_units, dnn_feature_columns, *deep)
    if linear_feature_columns:
        columns = tuple(linear_feature_columns)
        parts.append(_Linear(columns, linear_optimizer, linear_sparse_combiner, 0.005))
    if not parts:
        raise failed(
            "estimator", ArgumentError("no columns", "Give linear_feature_columns or dnn_feature_columns.")
        )
    return parts


_KINDS: dict[Callable[..., list[Any]], str] = {
    linear_part: (
        "feature_columns, model_dir=None, {head}, optimizer='Ftrl', config=None, partitioner=None, "
        "warm_start_from=None, loss_reduction='weighted_sum', sparse_combiner='sum'"
    ),
    deep_part: (
        "hidden_units, feature_columns, model_dir=None, {head}, optimizer='Adagrad', activation_fn=None, "
        "dropout=None, input_layer_partitioner=None, config=None, warm_start_from=None, "
        "loss_reduction='weighted_sum', batch_norm=False"
    ),
    both_parts: (
        "model_dir=None, linear_feature_columns=None, linear_optimizer='Ftrl', dnn_feature_columns=None, "
        "dnn_optimizer='Adagrad', dnn_hidden_units=None, dnn_activation_fn=None, dnn_dropout=None, {head}, "
        "input_layer_partitioner=None, config=None, warm_start_from=None, loss_reduction='weighted_sum', "
        "batch_norm=False, linear_sparse_combiner='sum'"
    ),
}
"""The parameters of models of each kind of parts, around those of their heads."""
_HEADS: dict[type[Head], str] = {
    ClassHead: "n_classes=2, weight_column=None, label_vocabulary=None",
    RegressionHead: "label_dimension=1, weight_column=None",
}


def _taking(parts: Callable[..., list[Any]], head: Callable[..., Head]) -> Callable[..., None]:
    """The ``__init__`` of an estimator of these parts with this head."""

    def initialize(
        self: Estimator, model_dir: Any, config: Any, warm_start_from: Any, loss_reduction: str, **own: Any
    ) -> None:
        refused = [key for key in own if key.endswith("partitioner")]
        refuse(type(self).__name__, **{key: own.pop(key) for key in refused})
        width, weight, *names = [own.pop(key) for key in labels]
        made = model_of(head(width, weight, loss_reduction, *names), parts(**own))
        Estimator.__init__(self, made, model_dir, config, warm_start_from=warm_start_from)

    labels = parameters(_HEADS[head])  # type: ignore[index]
    public = parameters(_KINDS[parts].format(head=_HEADS[head]))  # type: ignore[index]
    activations = {key: nn.relu for key in public if key.endswith("activation_fn")}
    return with_parameters(initialize, {"self": REQUIRED, **public, **activations})


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

    __init__ = _taking(linear_part, ClassHead)


class LinearRegressor(Estimator):
    """A linear model of columns that tells ``label_dimension`` numbers; otherwise as ``LinearClassifier``."""

    __init__ = _taking(linear_part, RegressionHead)


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

    __init__ = _taking(deep_part, ClassHead)


class DNNRegressor(Estimator):
    """Dense layers over columns that tell ``label_dimension`` numbers; otherwise as ``DNNClassifier``."""

    __init__ = _taking(deep_part, RegressionHead)


class DNNLinearCombinedClassifier(Estimator):
    """The sum of a linear model and dense layers that tells classes, "wide and deep" (Cheng et al. 2016).

    Arguments that begin with ``linear`` and ``dnn`` are those of ``LinearClassifier`` and ``DNNClassifier``, with at
    most the rate 0.005 for the linear part; at least one of them has columns.
    """

    __init__ = _taking(both_parts, ClassHead)


class DNNLinearCombinedRegressor(Estimator):
    """The sum of a linear model and dense layers that tells numbers; otherwise as the classifier of this kind."""

    __init__ = _taking(both_parts, RegressionHead)
