"""Models for serving: exports of estimators, and the functions that they are loaded as; NumPy is the reference."""

import os

import numpy
import pytest

import twofold.static as tf

X = numpy.random.default_rng(0).standard_normal((10, 3)).astype("f")
Y = (X @ numpy.array([[1.0], [-2.0], [0.5]], "f") + 0.1).astype("f")


def model(features, labels, mode):
    w = tf.get_variable("w", [3, 1], initializer=tf.zeros_initializer())
    made = tf.matmul(features["x"], w)
    export = tf.estimator.export
    outputs = {"line": export.PredictOutput({"y": made}), "value": export.RegressionOutput(made)}
    outputs["serving_default"] = outputs["line"]
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"y": made}, export_outputs=outputs)
    loss = tf.losses.mean_squared_error(labels, made)
    step = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step)


def rows():
    return tf.estimator.inputs.numpy_input_fn({"x": X}, Y, batch_size=5, num_epochs=None, shuffle=False)


def receive():
    features = {"x": tf.constant(X)}
    return tf.estimator.export.build_raw_serving_input_receiver_fn(features)()


@pytest.fixture
def estimator(tmp_path):
    return tf.estimator.Estimator(model, tmp_path / "model").train(rows(), steps=4)


def test_an_export_is_loaded_as_a_function(estimator, tmp_path):
    folder = estimator.export_savedmodel(tmp_path / "out", receive)
    assert os.path.dirname(folder) == os.fspath(tmp_path / "out").encode()
    wanted = X @ estimator.get_variable_value("w")
    for predict in (
        tf.contrib.predictor.from_saved_model(folder.decode()),
        tf.contrib.predictor.from_saved_model(folder.decode(), signature_def_key="line"),
        tf.contrib.predictor.from_estimator(estimator, receive),
    ):
        numpy.testing.assert_allclose(predict({"x": X})["y"], wanted, rtol=1e-6)
        numpy.testing.assert_allclose(predict({"x": X[:2]})["y"], wanted[:2], rtol=1e-6)
        with pytest.raises(ValueError, match="unexpected keys"):
            predict({"z": X})
    with pytest.raises(ValueError, match="no signature"):
        tf.contrib.predictor.from_saved_model(folder.decode(), signature_def_key="value")


def test_serialised_examples_are_parsed(estimator):
    spec = {"x": tf.FixedLenFeature([3], tf.float32)}
    parse = tf.estimator.export.build_parsing_serving_input_receiver_fn(spec)

    def message(row):
        feature = tf.train.Feature(float_list=tf.train.FloatList(value=row))
        return tf.train.Example(features=tf.train.Features(feature={"x": feature})).SerializeToString()

    wanted, examples = X @ estimator.get_variable_value("w"), [message(row) for row in X]
    predict = tf.contrib.predictor.from_estimator(estimator, parse, "value")
    numpy.testing.assert_allclose(predict({"examples": examples})["outputs"], wanted, rtol=1e-6)


def test_exporters_are_given_the_checkpoints_that_are_evaluated(tmp_path):
    estimator = tf.estimator.Estimator(
        model, tmp_path, tf.estimator.RunConfig(save_checkpoints_steps=2, log_step_count_steps=None)
    )
    exporters = [
        tf.estimator.FinalExporter("last", receive),
        tf.estimator.LatestExporter("latest", receive, exports_to_keep=2),
        tf.estimator.BestExporter("best", receive),
        tf.estimator.BestExporter(
            "worst", receive, compare_fn=lambda best_eval_result, current_eval_result: False
        ),
    ]
    spec = tf.estimator.EvalSpec(rows(), steps=2, exporters=exporters, throttle_secs=0)
    found, exports = tf.estimator.train_and_evaluate(
        estimator, tf.estimator.TrainSpec(rows(), max_steps=6), spec
    )
    assert found["global_step"] == 6
    assert [one is None for one in exports] == [False, False, False, True]
    counts = [len(os.listdir(tmp_path / "export" / one.name)) for one in exporters]
    assert counts == [1, 2, 3, 1]


def test_variables_begin_with_those_of_another_model(estimator, tmp_path):
    w = estimator.get_variable_value("w")
    for given in (
        estimator.model_dir,
        tf.estimator.WarmStartSettings(estimator.model_dir, ["w"]),
        tf.estimator.WarmStartSettings(estimator.latest_checkpoint(), "w"),
    ):
        other = tf.estimator.Estimator(still, tmp_path / str(given)[-9:], warm_start_from=given)
        other.train(rows(), steps=1)
        numpy.testing.assert_array_equal(other.get_variable_value("w"), w)


def still(features, labels, mode):
    spec = model(features, labels, mode)
    return spec._replace(train_op=tf.assign_add(tf.train.get_global_step(), 1))


def test_a_name_that_is_not_warm_started_raises(estimator):
    with tf.Graph().as_default():
        tf.get_variable("w", [3, 1])
        with pytest.raises(ValueError, match="names v"):
            tf.train.warm_start(estimator.model_dir, var_name_to_prev_var_name={"v": "w"})


def test_directories_are_named_by_bytes(estimator):
    folder = estimator.export_savedmodel(os.fsencode(estimator.model_dir), receive)
    assert isinstance(folder, bytes) and tf.saved_model.contains_saved_model(folder)
    predict = tf.contrib.predictor.from_saved_model(folder)
    assert predict({"x": X})["y"].shape == (10, 1)
