"""Estimators of ``tf.contrib.learn``: their steps against NumPy, arrays as inputs, monitors and experiments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import pytest

import twofold.static as tf
from twofold.errors import ArgumentError

learn = tf.contrib.learn
RANDOM = numpy.random.default_rng(0)
X = RANDOM.random((12, 3)) - 0.5
Y = X.sum(1)
CLASSES = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
COLUMNS = learn.infer_real_valued_columns_from_input(X)


@pytest.mark.parametrize("norm", [None, 0.01])
def test_the_loss_is_a_mean_and_gradients_are_clipped_together(norm: float | None) -> None:
    rule = tf.train.GradientDescentOptimizer
    model = learn.LinearRegressor(COLUMNS, optimizer=lambda: rule(0.5), gradient_clip_norm=norm)
    model.fit(X, Y, steps=3)
    w, b = numpy.zeros(3), 0.0
    for _ in range(3):
        off = X @ w + b - Y
        slopes = numpy.array([*(2 * off @ X / 12), 2 * off.mean()])
        if norm is not None:
            slopes *= norm / max(norm, numpy.sqrt((slopes**2).sum()))
        w, b = w - 0.5 * slopes[:3], b - 0.5 * slopes[3]
    numpy.testing.assert_allclose(list(model.predict(X)), X @ w + b, rtol=1e-4, atol=1e-6)
    assert model.evaluate(X, Y)["loss"] == pytest.approx(((X @ w + b - Y) ** 2).mean(), rel=1e-4)


def test_classes_of_arrays() -> None:
    model = learn.DNNClassifier([8], COLUMNS, n_classes=3, optimizer=tf.train.AdamOptimizer(0.1))
    assert model.fit(X, CLASSES, steps=150, batch_size=6) is model
    assert list(model.predict(X)) == list(model.predict_classes(X)) == CLASSES.tolist()
    shares = numpy.array(list(model.predict_proba(X)))
    assert shares.argmax(1).tolist() == CLASSES.tolist()
    assert next(iter(model.predict(X, outputs=["classes"]))) == {"classes": CLASSES[0]}
    numpy.testing.assert_array_equal(model.predict(X, as_iterable=False), CLASSES)
    spec = learn.MetricSpec(tf.contrib.metrics.streaming_accuracy, prediction_key="classes")
    found = model.evaluate(X, CLASSES, metrics={"share": spec}, batch_size=5)
    assert found["share"] == found["accuracy"] == 1.0 and found["global_step"] == 150
    again = learn.SKCompat(model)
    assert again.predict(X)["classes"].tolist() == CLASSES.tolist()
    assert again.score(X, CLASSES)["accuracy"] == 1.0


def test_model_functions_that_return_three_values() -> None:
    def line(features: Any, targets: Any, mode: str, params: Any) -> Any:
        found = tf.squeeze(tf.layers.dense(features, 1, kernel_initializer=tf.zeros_initializer()), 1)
        if mode == learn.ModeKeys.INFER:
            return found, None, None
        loss = tf.losses.mean_squared_error(targets, found)
        step = tf.train.GradientDescentOptimizer(params["rate"]).minimize(loss, tf.train.get_global_step())
        return found, loss, step if mode == learn.ModeKeys.TRAIN else None

    model = learn.Estimator(line, params={"rate": 0.5}).fit(X, Y, steps=1)
    w, b = 0.5 * 2 * Y @ X / 12, 0.5 * 2 * Y.mean()
    numpy.testing.assert_allclose(list(model.predict(X)), X @ w + b, rtol=1e-4, atol=1e-6)
    with pytest.raises(ArgumentError, match="neither x nor input_fn"):
        model.fit(steps=1)
    with pytest.raises(ArgumentError, match="both arrays and input_fn"):
        model.fit(X, Y, lambda: (X, Y), steps=1)


def test_wide_and_deep_columns() -> None:
    layers = tf.contrib.layers
    word = layers.sparse_column_with_hash_bucket("word", 20)
    kind = layers.sparse_column_with_keys("kind", ["a", "b"])
    age = layers.real_valued_column("age")
    wide = [word, kind, layers.crossed_column([word, kind], 30), layers.bucketized_column(age, [1.5, 2.5])]
    deep = [layers.embedding_column(word, 3), layers.one_hot_column(kind), age]
    model = learn.DNNLinearCombinedClassifier(
        linear_feature_columns=wide, dnn_feature_columns=deep, dnn_hidden_units=[4]
    )

    def rows() -> Any:
        words = tf.SparseTensor([[k, 0] for k in range(4)], ["p", "q", "p", "r"], [4, 1])
        return {"word": words, "kind": tf.constant(["a", "b", "a", "c"]), "age": tf.range(1.0, 5.0)}, [
            0,
            1,
            0,
            1,
        ]

    model.fit(input_fn=rows, steps=40)
    assert model.evaluate(input_fn=rows, steps=1)["accuracy"] == 1.0
    with pytest.raises(ArgumentError, match="sparse_combiner"):
        layers.sparse_column_with_hash_bucket("word", 20, combiner="mean")


def rising() -> Any:
    """A model that gets worse with each step."""
    return learn.LinearRegressor(
        COLUMNS,
        optimizer=lambda: tf.train.GradientDescentOptimizer(-0.1),
        config=learn.RunConfig(save_checkpoints_steps=1),
    )


def test_training_ends_where_a_metric_gets_no_better() -> None:
    monitor = learn.monitors.ValidationMonitor(X, Y, every_n_steps=2, early_stopping_rounds=4)
    model = rising().fit(X, Y, steps=50, monitors=[monitor])
    assert monitor.early_stopped and 4 <= model.get_variable_value("global_step") < 20
    assert monitor.best_step <= 2


def test_experiments(tmp_path: Path) -> None:
    def rows() -> Any:
        return {"": tf.constant(X.astype("f"))}, tf.constant(Y.astype("f"))

    def made(run_config: Any, hparams: Any) -> Any:
        model = learn.LinearRegressor(COLUMNS, config=run_config)
        return learn.Experiment(model, rows, rows, train_steps=hparams, eval_steps=1, min_eval_frequency=2)

    config = learn.RunConfig(model_dir=str(tmp_path), save_checkpoints_steps=2)
    found, exports = learn.learn_runner.run(made, run_config=config, hparams=6)
    assert found["global_step"] == 6 and exports == []
    assert (tmp_path / "eval_validation").is_dir()
    assert (
        learn.learn_runner.run(made, schedule="evaluate", run_config=config, hparams=6)["loss"]
        == found["loss"]
    )
    with pytest.raises(ArgumentError, match="no schedule 'fly'"):
        learn.learn_runner.run(made, schedule="fly", run_config=config)
    with pytest.raises(ArgumentError, match="no model_dir"):
        learn.learn_runner.run(made, run_config=learn.RunConfig())


def test_tables_in_files(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("2,2,one,two\n1.5,2,0\n3,4,1\n")
    base = learn.datasets.base
    found = base.load_csv_with_header(path, numpy.int32, numpy.float32)
    assert found.data.tolist() == [[1.5, 2.0], [3.0, 4.0]] and found.target.dtype == numpy.int32
    assert learn.datasets.load_iris(path).target.tolist() == [0, 1]
    path.write_text("1,2,3\n4,5,6\n")
    found = base.load_csv_without_header(path, int, float, target_column=0)
    assert found.target.tolist() == [1, 4] and found.data.tolist() == [[2.0, 3.0], [5.0, 6.0]]
    path.write_text("3,2\n4,5,6\n")
    with pytest.raises(ArgumentError, match="rows of"):
        base.load_csv_with_header(path, int, float)
    with pytest.raises(ArgumentError, match="data_path"):
        learn.datasets.load_dataset("iris")
    assert base.maybe_download("table.csv", tmp_path, "https://example.org/table.csv") == str(path)
    with pytest.raises(ArgumentError, match=r"is not there.*\n?.*https://example.org/other.csv"):
        base.maybe_download("other.csv", str(tmp_path), "https://example.org/other.csv")


def test_positions_inside_the_package() -> None:
    from twofold.static.contrib.learn.python.learn.estimators import estimator, run_config

    from twofold.static.contrib.learn.python.learn import learn_runner
    from twofold.static.contrib.learn.python.learn.datasets import base

    assert estimator.SKCompat is learn.SKCompat and run_config.RunConfig is learn.RunConfig
    assert learn_runner.run is learn.learn_runner.run and base.load_iris is learn.datasets.base.load_iris
