"""Estimators that take arrays as well as input functions: those of ``tf.contrib.learn``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import sqrt
from typing import Any, NamedTuple

import numpy

from twofold.errors import ArgumentError
from twofold.runtime.tracing import here
from twofold.static import estimator
from twofold.static.api.op_functions import refuse
from twofold.static.api.signatures import REQUIRED, parameters, with_parameters
from twofold.static.arrays import shape_ops
from twofold.static.autodiff.clipping import clip_by_global_norm
from twofold.static.contrib.feature_columns import real_valued_column
from twofold.static.estimator.canned import both_parts, deep_part, linear_part, model_of, optimizer_of
from twofold.static.estimator.heads import ClassHead, RegressionHead
from twofold.static.estimator.inputs import numpy_input_fn
from twofold.static.estimator.spec import EstimatorSpec, ModeKeys
from twofold.static.graph.graph import Graph
from twofold.static.losses import Reduction
from twofold.static.nn.activations import relu


class RunConfig(estimator.RunConfig):
    """``tf.estimator.RunConfig`` with more arguments, which change nothing within one process.

    Args:
        master: Must be empty.
        num_cores: Has no effect, as ``log_device_placement``, ``gpu_memory_fraction`` and ``evaluation_master``.
        **options: Those of ``tf.estimator.RunConfig``.
    """

    def __init__(
        self,
        master: str | None = None,
        num_cores: int = 0,
        log_device_placement: bool = False,
        gpu_memory_fraction: float = 1,
        evaluation_master: str = "",
        **options: Any,
    ) -> None:
        refuse("RunConfig", master=master or None)
        options = {key: value for key, value in options.items() if (key, value) != ("tf_random_seed", None)}
        if options.get("save_checkpoints_steps") is not None:
            options.setdefault("save_checkpoints_secs", None)
        super().__init__(**options)


class ModelFnOps(NamedTuple):
    """What a model function returns: an ``EstimatorSpec`` with fewer demands."""

    mode: str
    predictions: Any = None
    loss: Any = None
    train_op: Any = None
    eval_metric_ops: Any = None
    output_alternatives: Any = None
    training_chief_hooks: Any = None
    training_hooks: Any = None
    scaffold: Any = None

    def as_estimator_spec(self) -> EstimatorSpec:
        """The same as an ``EstimatorSpec``."""
        parts = self._asdict()
        if parts.pop("output_alternatives"):
            what = f"ModelFnOps: output_alternatives, at {here()}"
            raise ArgumentError(what, "Return an EstimatorSpec with export_outputs.")
        return EstimatorSpec(**parts)


class MetricSpec:
    """A metric of predictions and labels, as ``evaluate`` takes it.

    Args:
        metric_fn: A function of predictions, labels and perhaps weights that returns a value and its update.
        prediction_key: Which prediction; needed where there are several.
        label_key: Which label.
        weight_key: Which feature has weights.
    """

    def __init__(
        self,
        metric_fn: Callable[..., Any],
        prediction_key: str | None = None,
        label_key: str | None = None,
        weight_key: str | None = None,
    ) -> None:
        self.metric_fn, self.prediction_key = metric_fn, prediction_key
        self.label_key, self.weight_key = label_key, weight_key

    def create_metric_ops(self, inputs: Any, labels: Any, predictions: Any) -> Any:
        """The value and its update."""
        found = _only("prediction_key", predictions, self.prediction_key)
        wanted = _only("label_key", labels, self.label_key)
        weights = {} if self.weight_key is None else {"weights": inputs[self.weight_key]}
        return self.metric_fn(found, wanted, **weights)


def _only(what: str, given: Any, key: str | None) -> Any:
    if not isinstance(given, Mapping):
        return given
    if key is None and len(given) > 1:
        raise ArgumentError(f"MetricSpec without {what} of {', '.join(given)}, at {here()}", "Give one.")
    return next(iter(given.values())) if key is None else given[key]


def _arrays(x: Any) -> Any:
    """Arrays as an input function takes them, float64 as float32."""
    if isinstance(x, Mapping):
        return {key: _arrays(value) for key, value in x.items()}
    array = numpy.asarray(x)
    return array.astype("f") if array.dtype == numpy.float64 else array


def _input(x: Any, y: Any, given: Any, size: int | None, trains: bool) -> Callable[[], Any]:
    """The input function given, or one of arrays: batches in random order without end, or all rows once."""
    if given is not None:
        if x is not None or y is not None:
            raise ArgumentError(f"both arrays and input_fn, at {here()}", "Give one of them.")
        found: Callable[[], Any] = given
        return found
    if x is None:
        raise ArgumentError(f"neither x nor input_fn, at {here()}", "Give one of them.")
    rows = _arrays(x)
    count = len(next(iter(rows.values())) if isinstance(rows, dict) else rows)
    labels = None if y is None else _arrays(y)
    return numpy_input_fn(rows, labels, size or count, None if trains else 1, trains)


class Estimator(estimator.Estimator):
    """A model whose ``fit``, ``evaluate`` and ``predict`` take arrays as well as input functions.

    Args:
        model_fn: A function of features, labels, and as far as it takes them ``mode``, ``params`` and ``config``, that
            returns predictions, loss and training operation, ``ModelFnOps`` or an ``EstimatorSpec``.
        model_dir: Directory of the checkpoints.
        config: A ``RunConfig``.
        params: A dict of settings for ``model_fn``.
        feature_engineering_fn: A function of features and labels that makes those that ``model_fn`` takes.

    >>> import twofold.static as tf
    >>> x = numpy.float32([[-2.0], [-1.0], [1.0], [2.0]])
    >>> columns = tf.contrib.learn.infer_real_valued_columns_from_input(x)
    >>> model = tf.contrib.learn.LinearClassifier(columns).fit(x, [0, 0, 1, 1], steps=30)
    >>> list(model.predict(x)) == [0, 0, 1, 1]
    True
    """

    _prediction: str | None = None
    """Which prediction ``predict`` gives unless told."""

    def __init__(
        self,
        model_fn: Callable[..., Any],
        model_dir: Any = None,
        config: Any = None,
        params: Any = None,
        feature_engineering_fn: Callable[..., Any] | None = None,
    ) -> None:
        super().__init__(model_fn, model_dir, config, params)
        self._engineer = feature_engineering_fn
        self._added_metrics: Mapping[str, Any] = {}

    def modelled(self, features: Any, labels: Any, mode: str) -> EstimatorSpec:
        """What ``model_fn`` returns in the default graph, with the metrics that ``evaluate`` was given."""
        if self._engineer is not None:
            features, labels = self._engineer(features, labels)
        spec = super().modelled(features, labels, mode)
        if mode != ModeKeys.EVAL or not self._added_metrics:
            return spec
        made = {
            name if isinstance(name, str) else name[0]: one.create_metric_ops(
                features, labels, spec.predictions
            )
            for name, one in self._added_metrics.items()
        }
        return spec._replace(eval_metric_ops={**spec.eval_metric_ops, **made})

    def _returned(self, features: Any, labels: Any, mode: str) -> Any:
        taken = inspect.signature(self._model_fn).parameters
        others = {name: value for name, value in self._settings(mode).items() if name in taken}
        found: Any = self._model_fn(features, labels, **others)
        if not isinstance(found, tuple) or hasattr(found, "mode"):
            return found
        predictions, loss, step = found
        return ModelFnOps(mode, predictions, loss, step)

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Any = None,
        steps: int | None = None,
        batch_size: int | None = None,
        monitors: Sequence[Any] | None = None,
        max_steps: int | None = None,
    ) -> Estimator:
        """Train; returns itself.

        Args:
            x: An array of features, or a dict of them.
            y: An array of labels.
            input_fn: Instead of arrays, a function that declares features and labels.
            steps: How many steps.
            batch_size: How many rows of arrays a step takes: all unless given.
            monitors: Instances of ``SessionRunHook``.
            max_steps: How many steps in all.
        """
        for one in monitors or ():
            if hasattr(one, "set_estimator"):
                one.set_estimator(self)
        self.train(_input(x, y, input_fn, batch_size, True), list(monitors or ()), steps, max_steps)
        return self

    partial_fit = fit

    def evaluate(  # type: ignore[override]
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Any = None,
        feed_fn: Any = None,
        batch_size: int | None = None,
        steps: int | None = None,
        metrics: Mapping[str, MetricSpec] | None = None,
        name: str | None = None,
        checkpoint_path: Any = None,
        hooks: Sequence[Any] | None = None,
        log_progress: bool = True,
    ) -> dict[str, Any]:
        """The metrics over all rows by name.

        Args:
            x, y, input_fn, batch_size: As ``fit`` takes them; each row of arrays is taken once.
            feed_fn: Not offered; it raises unless None.
            steps: At most so many batches.
            metrics: Further metrics by name.
            name: Of the evaluation.
            checkpoint_path: The checkpoint; the latest one unless given.
            hooks: Instances of ``SessionRunHook``.
            log_progress: Changes nothing: there is one line in the log.
        """
        refuse("evaluate", feed_fn=feed_fn)
        self._added_metrics = metrics or {}
        try:
            given = _input(x, y, input_fn, batch_size, False)
            return super().evaluate(given, steps, hooks, checkpoint_path, name)
        finally:
            self._added_metrics = {}

    def predict(  # type: ignore[override]
        self,
        x: Any = None,
        input_fn: Any = None,
        batch_size: int | None = None,
        outputs: Sequence[str] | None = None,
        as_iterable: bool = True,
        iterate_batches: bool = False,
    ) -> Any:
        """The predictions for all rows, one after the other or, unless ``as_iterable``, as arrays.

        Args:
            x, input_fn, batch_size: As ``fit`` takes them.
            outputs: Which of a dict of predictions.
            as_iterable: Whether they come one after the other.
            iterate_batches: Whether they come in batches.
        """
        keys = None if outputs is None else list(outputs)
        if keys is None and self._prediction is not None:
            keys = [self._prediction]
        given = _input(x, None, input_fn, batch_size, False)
        found = super().predict(given, keys, yield_single_examples=False)
        alone = keys[0] if outputs is None and keys is not None else None
        batches = (one if alone is None else one[alone] for one in found)
        if not as_iterable:
            return _joined(list(batches))
        return batches if iterate_batches else _rows(batches)

    def predict_classes(self, x: Any = None, input_fn: Any = None, batch_size: int | None = None) -> Any:
        """The number of the likeliest class of each row."""
        return self._one("classes", x, input_fn, batch_size)

    def predict_proba(self, x: Any = None, input_fn: Any = None, batch_size: int | None = None) -> Any:
        """The probabilities of the classes of each row."""
        return self._one("probabilities", x, input_fn, batch_size)

    def predict_scores(self, x: Any = None, input_fn: Any = None, batch_size: int | None = None) -> Any:
        """The number of each row."""
        return self._one("scores", x, input_fn, batch_size)

    def _one(self, key: str, x: Any, input_fn: Any, batch_size: int | None) -> Iterator[Any]:
        return (row[key] for row in self.predict(x, input_fn, batch_size, [key]))


def _rows(batches: Any) -> Iterator[Any]:
    for batch in batches:
        if isinstance(batch, Mapping):
            yield from (dict(zip(batch, row)) for row in zip(*batch.values()))
        else:
            yield from batch


def _joined(batches: list[Any]) -> Any:
    if isinstance(batches[0], Mapping):
        return {key: numpy.concatenate([one[key] for one in batches]) for key in batches[0]}
    return numpy.concatenate(batches)


class SKCompat:
    """An estimator that takes arrays alone and returns arrays."""

    def __init__(self, estimator: Estimator) -> None:
        self._estimator = estimator

    def fit(
        self, x: Any, y: Any, batch_size: int = 128, steps: int | None = None, **options: Any
    ) -> SKCompat:
        """Train; returns itself. ``options`` are ``max_steps`` and ``monitors``."""
        self._estimator.fit(x, y, None, steps, batch_size, **options)
        return self

    def score(
        self, x: Any, y: Any, batch_size: int = 128, steps: int | None = None, metrics: Any = None
    ) -> Any:
        """The metrics over all rows by name."""
        return self._estimator.evaluate(x, y, None, None, batch_size, steps, metrics, "score")

    def predict(self, x: Any, batch_size: int = 128, outputs: Any = None) -> Any:
        """A dict of arrays of predictions."""
        found = estimator.Estimator.predict(
            self._estimator,
            _input(x, None, None, batch_size, False),
            None if outputs is None else list(outputs),
            yield_single_examples=False,
        )
        return _joined(list(found))


def _clipped(rule: Any, norm: float | None) -> Any:
    """An optimiser whose gradients have at most a norm together."""
    if norm is None:
        return rule

    def minimize(loss: Any, global_step: Any = None, var_list: Any = None) -> Any:
        pairs = [
            (one, variable) for one, variable in rule.compute_gradients(loss, var_list) if one is not None
        ]
        clipped, _ = clip_by_global_norm([one for one, _ in pairs], norm)
        return rule.apply_gradients(
            list(zip(clipped, [variable for _, variable in pairs])), global_step=global_step
        )

    return _Minimizer(minimize)


class _Minimizer(NamedTuple):
    """What takes steps."""

    minimize: Callable[..., Any]


_SHARED = (
    "weight_column_name=None, gradient_clip_norm=None, enable_centered_bias=False, config=None, "
    "feature_engineering_fn=None"
)
_KINDS: dict[Callable[..., list[Any]], str] = {
    linear_part: f"feature_columns, model_dir=None, {{head}}, optimizer=None, {_SHARED}",
    deep_part: (
        "hidden_units, feature_columns, model_dir=None, {head}, optimizer=None, activation_fn=None, "
        f"dropout=None, {_SHARED}"
    ),
    both_parts: (
        "model_dir=None, {head}, linear_feature_columns=None, linear_optimizer=None, dnn_feature_columns=None, "
        f"dnn_optimizer=None, dnn_hidden_units=None, dnn_activation_fn=None, dnn_dropout=None, {_SHARED}"
    ),
}
"""The parameters of models of each kind of parts, around those of their heads."""
_HEADS = {ClassHead: "n_classes=2", RegressionHead: "label_dimension=1"}


def _rule(given: Any, name: str, rate: float, norm: float | None) -> Callable[[], Any]:
    return lambda: _clipped(optimizer_of(name if given is None else given, rate), norm)


def _parts(kind: Callable[..., list[Any]], norm: float | None, own: dict[str, Any]) -> list[Any]:
    """The parts of a model, with the rates of ``tf.contrib.learn``."""
    for key in [key for key in own if key.endswith("optimizer")]:
        prefix = key.removesuffix("optimizer")
        linear = kind is linear_part or prefix == "linear_"
        columns = own[f"{prefix}feature_columns"] or [None]
        rate = min(0.2, 1 / sqrt(len(list(columns)))) if linear else 0.05
        own[key] = _rule(own[key], "Ftrl" if linear else "Adagrad", rate, norm)
    more: dict[Any, dict[str, Any]] = {
        linear_part: {"sparse_combiner": "sum"},
        deep_part: {"batch_norm": False},
        both_parts: {"batch_norm": False, "linear_sparse_combiner": "sum"},
    }
    return kind(**own, **more[kind])


def _predictions(found: Mapping[str, Any]) -> dict[str, Any]:
    """Predictions by the names and of the shapes of ``tf.contrib.learn``."""
    if "predictions" in found:
        scores = found["predictions"]
        alone = scores.get_shape().as_list()[-1] == 1
        return {"scores": shape_ops.squeeze(scores, [-1]) if alone else scores}
    kept = {key: found[key] for key in ("logits", "logistic", "probabilities") if key in found}
    return {**kept, "classes": shape_ops.squeeze(found["class_ids"], [-1])}


def _taking(kind: Callable[..., list[Any]], head: Callable[..., Any]) -> Callable[..., None]:
    """The ``__init__`` of an estimator of these parts with this head."""

    def initialize(
        self: Estimator, model_dir: Any, config: Any, feature_engineering_fn: Any, **own: Any
    ) -> None:
        refuse(type(self).__name__, enable_centered_bias=own.pop("enable_centered_bias"))
        width, weight = own.pop(labels), own.pop("weight_column_name")
        names = [None] if head is ClassHead else []
        norm = own.pop("gradient_clip_norm")
        model = model_of(head(width, weight, Reduction.MEAN, *names), _parts(kind, norm, own))

        def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
            spec = model(features if isinstance(features, Mapping) else {"": features}, labels, mode)
            return spec._replace(predictions=_predictions(spec.predictions))

        Estimator.__init__(self, model_fn, model_dir, config, None, feature_engineering_fn)

    (labels,) = parameters(_HEADS[head])  # type: ignore[index]
    public = parameters(_KINDS[kind].format(head=_HEADS[head]))  # type: ignore[index]
    activations = {key: relu for key in public if key.endswith("activation_fn")}
    return with_parameters(initialize, {"self": REQUIRED, **public, **activations})


def _canned(
    name: str, kind: Callable[..., list[Any]], head: Callable[..., Any], text: str
) -> type[Estimator]:
    shown = "classes" if head is ClassHead else "scores"
    about = f"""{text} that tells {"one of ``n_classes`` classes" if shown == "classes" else "numbers"}.

    Its loss is the mean over a batch, where that of ``tf.estimator.{name}`` is the sum; the rates of its optimisers are
    those of ``tf.contrib.learn``, and ``predict`` gives {shown}. ``enable_centered_bias`` is not offered.
    """
    members = {
        "__init__": _taking(kind, head),
        "_prediction": shown,
        "__doc__": about,
        "__module__": __name__,
    }
    return type(name, (Estimator,), members)


_TEXTS: dict[str, tuple[Any, str]] = {
    "Linear": (linear_part, "A linear model of columns"),
    "DNN": (deep_part, "Dense layers over columns"),
    "DNNLinearCombined": (both_parts, "The sum of a linear model and dense layers"),
}
LinearClassifier, DNNClassifier, DNNLinearCombinedClassifier = (
    _canned(f"{name}Classifier", kind, ClassHead, text) for name, (kind, text) in _TEXTS.items()
)
LinearRegressor, DNNRegressor, DNNLinearCombinedRegressor = (
    _canned(f"{name}Regressor", kind, RegressionHead, text) for name, (kind, text) in _TEXTS.items()
)


def infer_real_valued_columns_from_input(x: Any) -> list[Any]:
    """The columns of an array, one of all its numbers, or those of a dict of arrays."""
    rows = _arrays(x)
    if isinstance(rows, dict):
        return [real_valued_column(key, _width(one)) for key, one in sorted(rows.items())]
    return [real_valued_column("", _width(rows))]


def infer_real_valued_columns_from_input_fn(input_fn: Callable[[], Any]) -> list[Any]:
    """The columns of the features that a function declares."""
    with Graph().as_default():
        features = input_fn()[0]
        named = features if isinstance(features, Mapping) else {"": features}
        return [
            real_valued_column(key, int(one.get_shape().as_list()[1] if one.get_shape().ndims > 1 else 1))
            for key, one in sorted(named.items())
        ]


def _width(array: Any) -> int:
    return array.shape[1] if array.ndim > 1 else 1
