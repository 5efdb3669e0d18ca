"""Estimators of feature columns: one step of gradient descent and metrics beside NumPy, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest

import twofold.static as tf

fc, estimator = tf.feature_column, tf.estimator
X = numpy.array([[1.0, 2.0], [-1.0, 0.5], [0.5, -2.0], [3.0, 1.0]], numpy.float32)


def _rows(labels: Any, **more: Any) -> Callable[[], Any]:
    return estimator.inputs.numpy_input_fn(
        {"x": X, **more}, labels, batch_size=4, num_epochs=None, shuffle=False
    )


def _numbers() -> list[Any]:
    return [fc.numeric_column("x", shape=[2])]


def test_a_linear_classifier_takes_the_step_of_logistic_regression(tmp_path: Any) -> None:
    labels, weights = numpy.array([1, 0, 1, 1]), numpy.array([1.0, 2.0, 0.5, 1.0], numpy.float32)
    model = estimator.LinearClassifier(
        _numbers(),
        str(tmp_path),
        weight_column="weight",
        optimizer=lambda: tf.train.GradientDescentOptimizer(0.1),
    )
    rows = _rows(labels, weight=weights)
    assert model.train(rows, steps=1) is model
    slope = weights * (0.5 - labels)  # of the sum of weighted cross entropies, at logits of zero
    kernel, bias = -0.1 * X.T @ slope, -0.1 * slope.sum()
    assert model.get_variable_value("linear/linear_model/x/weights")[:, 0] == pytest.approx(kernel)
    assert model.get_variable_value("linear/linear_model/bias_weights") == pytest.approx([bias])
    logits = X @ kernel + bias
    chance = 1 / (1 + numpy.exp(-logits.astype(float)))
    losses = numpy.where(labels == 1, -numpy.log(chance), -numpy.log1p(-chance))
    found = model.evaluate(rows, steps=1)
    assert found["loss"] == pytest.approx((weights * losses).sum())
    assert found["average_loss"] == pytest.approx((weights * losses).sum() / weights.sum())
    assert found["accuracy"] == pytest.approx((weights * ((logits > 0) == labels)).sum() / weights.sum())
    assert found["label/mean"] == pytest.approx(2.5 / 4.5) and found["accuracy_baseline"] == pytest.approx(
        2.5 / 4.5
    )
    assert found["prediction/mean"] == pytest.approx((weights * chance).sum() / weights.sum())
    first = next(model.predict(rows))
    assert first["logistic"] == pytest.approx(chance[:1]) and first["classes"].tolist() == [b"1"]
    assert first["probabilities"] == pytest.approx([1 - chance[0], chance[0]])


def test_wide_and_deep_models_train_both_parts_by_names_of_classes(tmp_path: Any) -> None:
    names = numpy.array(["low", "high", "mid", "mid"])
    model = estimator.DNNLinearCombinedClassifier(
        str(tmp_path),
        linear_feature_columns=[fc.bucketized_column(fc.numeric_column("age"), [2.0])],
        linear_optimizer="SGD",
        dnn_feature_columns=_numbers(),
        dnn_hidden_units=[3],
        n_classes=3,
        label_vocabulary=["low", "mid", "high"],
    )
    rows = _rows(names, age=numpy.array([1.0, 2.0, 3.0, 0.0], numpy.float32))
    before = model.train(rows, steps=1).evaluate(rows, steps=1)
    after = model.train(rows, steps=30).evaluate(rows, steps=1)
    assert after["global_step"] == 31 and after["loss"] < before["loss"]
    assert after["loss"] == pytest.approx(4 * after["average_loss"])
    trained = [name for name in model.get_variable_names() if not name.endswith("Adagrad")]
    assert trained == [
        "dnn/hiddenlayer_0/bias",
        "dnn/hiddenlayer_0/kernel",
        "dnn/logits/bias",
        "dnn/logits/kernel",
        "global_step",
        "linear/linear_model/age_bucketized/weights",
        "linear/linear_model/bias_weights",
    ]
    assert next(model.predict(rows))["all_classes"].tolist() == [b"low", b"mid", b"high"]
    wrong = _rows(numpy.array(["other", "low", "low", "low"]), age=X[:, 0])
    with pytest.raises(tf.errors.InvalidArgumentError):
        model.evaluate(wrong, steps=1)


def test_regressors_tell_several_numbers(tmp_path: Any) -> None:
    model = estimator.DNNRegressor(
        [4],
        _numbers(),
        str(tmp_path),
        label_dimension=2,
        optimizer="Adam",
        loss_reduction=tf.losses.Reduction.MEAN,
    )
    found = model.train(_rows(X), steps=2).evaluate(_rows(X), steps=1)
    assert found["loss"] == pytest.approx(found["average_loss"]) and found["label/mean"] == pytest.approx(
        X.mean()
    )
    assert next(model.predict(_rows(None)))["predictions"].shape == (2,)


def test_what_canned_estimators_refuse() -> None:
    for wrong in (
        lambda: estimator.DNNLinearCombinedRegressor(),
        lambda: estimator.DNNLinearCombinedRegressor(dnn_feature_columns=_numbers()),
        lambda: estimator.LinearClassifier(_numbers(), n_classes=1),
        lambda: estimator.LinearClassifier(_numbers(), n_classes=3, label_vocabulary=["a"]),
        lambda: estimator.LinearRegressor(_numbers(), optimizer="Best").train(_rows(X[:, 0]), steps=1),
        lambda: estimator.LinearRegressor(_numbers()).train(
            lambda: (tf.zeros([2, 2]), tf.zeros([2])), steps=1
        ),
    ):
        with pytest.raises(ValueError):
            wrong()


@pytest.mark.parametrize("method", ["trapezoidal", "careful_interpolation"])
def test_areas_under_precision_and_recall(method: str) -> None:
    rng = numpy.random.default_rng(0)
    labels, scores = rng.random(60) < 0.4, rng.random(60).astype("f")
    value, update = tf.metrics.auc(labels, scores, num_thresholds=50, curve="PR", summation_method=method)
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        session.run(update)
        found = session.run(value)
    cuts = numpy.array([-1e-7, *(k / 49 for k in range(1, 49)), 1 + 1e-7])
    above = scores[None] > cuts[:, None]
    true, wrong, count = (above & labels).sum(1), (above & ~labels).sum(1), labels.sum()
    expected = 0.0
    for k in range(49):
        if method == "trapezoidal":
            sides = [(true[j] + 1e-6) / (true[j] + 1e-6 + wrong[j]) for j in (k, k + 1)]
            expected += sum(sides) / 2 * (true[k] - true[k + 1]) / count
            continue
        low, high = true[k] + wrong[k], true[k + 1] + wrong[k + 1]
        slope = (true[k] - true[k + 1]) / (low - high) if low > high else 0.0
        rest = (true[k + 1] - slope * high) * numpy.log(low / high) if low and high else 0.0
        expected += slope * (true[k] - true[k + 1] + rest) / count
    assert found == pytest.approx(expected, rel=1e-5)
