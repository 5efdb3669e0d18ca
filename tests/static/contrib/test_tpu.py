"""Estimators for tensor processing units on this machine: the same numbers as ``tf.estimator``."""

import numpy
import pytest

import twofold.static as tf

tpu = tf.contrib.tpu
X = numpy.random.default_rng(0).standard_normal((8, 3)).astype("f")
Y = (X @ numpy.array([[1.0], [-2.0], [0.5]], "f")).astype("f")


def rows(params):
    return tf.data.Dataset.from_tensor_slices((X, Y)).repeat().batch(params["batch_size"])


def model(across):
    def declared(features, labels, mode, params):
        w = tf.get_variable("w", [3, 1], initializer=tf.zeros_initializer())
        made = tf.matmul(features, w)
        if mode == tf.estimator.ModeKeys.PREDICT:
            return tpu.TPUEstimatorSpec(mode, predictions={"y": made})
        error = tf.square(made - labels)
        loss = tf.reduce_mean(error)
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        optimizer = tpu.CrossShardOptimizer(optimizer) if across else optimizer
        step = optimizer.minimize(loss, tf.train.get_global_step())
        measure = lambda error: {
            "error": tf.metrics.mean(error),
            "size": tf.metrics.mean(params["batch_size"]),
        }
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=step, eval_metrics=(measure, [error]))

    return declared


def made(tmp_path, across=True):
    config = tpu.RunConfig(
        cluster=None,
        master=None,
        model_dir=tmp_path / str(across),
        save_checkpoints_steps=2,
        tpu_config=tpu.TPUConfig(iterations_per_loop=2, num_shards=8),
    )
    sizes = {"train_batch_size": 4, "eval_batch_size": 8, "predict_batch_size": 5}
    return tpu.TPUEstimator(model(across), use_tpu=False, config=config, params={"other": 1}, **sizes)


def test_functions_find_the_size_of_a_batch(tmp_path):
    estimator = made(tmp_path).train(rows, max_steps=3)
    w = numpy.zeros((3, 1), "f")
    for k in range(3):
        x, y = X[4 * k % 8 :][:4], Y[4 * k % 8 :][:4]
        w -= numpy.float32(0.1) * (2 * x.T @ (x @ w - y) / 4).astype("f")
    numpy.testing.assert_allclose(estimator.get_variable_value("w"), w, rtol=1e-5)
    found = estimator.evaluate(rows, steps=1)
    assert found["size"] == 8
    numpy.testing.assert_allclose(found["error"], ((X @ w - Y) ** 2).mean(), rtol=1e-5)
    batch = next(estimator.predict(lambda params: rows(params).take(1), yield_single_examples=False))
    numpy.testing.assert_allclose(batch["y"], X[:5] @ w, rtol=1e-5)
    alone = made(tmp_path, False).train(rows, max_steps=3)
    numpy.testing.assert_array_equal(alone.get_variable_value("w"), estimator.get_variable_value("w"))


def test_host_calls_are_made_with_each_step(tmp_path):
    seen = []

    def declared(features, labels, mode, params):
        spec = model(True)(features, labels, mode, params)
        note = lambda loss: tf.py_func(lambda value: seen.append(float(value)), [loss], [])
        return spec._replace(host_call=(note, {"loss": spec.loss}))

    estimator = tpu.TPUEstimator(declared, tmp_path, use_tpu=False, train_batch_size=4)
    estimator.train(rows, max_steps=2)
    assert len(seen) == 2
    assert seen[0] == pytest.approx(float((Y[:4] ** 2).mean()), rel=1e-5)


def test_what_needs_a_unit_says_that_there_is_none(tmp_path):
    for attempt in (
        lambda: tpu.TPUEstimator(model(True), tmp_path, train_batch_size=4),
        lambda: tpu.RunConfig(master="grpc://10.0.0.1:8470"),
        lambda: tf.contrib.cluster_resolver.TPUClusterResolver("unit"),
        tpu.initialize_system,
    ):
        with pytest.raises(tf.errors.UnimplementedError, match="no tensor processing unit"):
            attempt()
    with pytest.raises(ValueError, match="batch_size is among params"):
        tpu.TPUEstimator(model(True), tmp_path, use_tpu=False, params={"batch_size": 4})


def test_tensorflow_s_files_have_the_names():
    from twofold.static.contrib.cluster_resolver.python.training import tpu_cluster_resolver
    from twofold.static.contrib.tpu.python.tpu import tpu_config, tpu_estimator, tpu_optimizer

    assert tpu_config.RunConfig is tpu.RunConfig
    assert tpu_estimator.TPUEstimator is tpu.TPUEstimator
    assert tpu_optimizer.CrossShardOptimizer is tpu.CrossShardOptimizer
    assert tpu_cluster_resolver.TPUClusterResolver is tf.contrib.cluster_resolver.TPUClusterResolver
    assert tpu.RunConfig(tf_random_seed=3).replace(save_checkpoints_steps=7).save_checkpoints_steps == 7
