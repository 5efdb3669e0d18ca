"""``tf.logging`` shows messages from its level on; summaries warn once that nothing is written."""

import numpy
import pytest

import twofold.static as tf


@pytest.fixture(autouse=True)
def levels():
    before = tf.logging.get_verbosity()
    yield
    tf.logging.set_verbosity(before)


def test_messages_are_shown_from_a_level_on(capsys, caplog):
    tf.logging.set_verbosity(tf.logging.INFO)
    assert tf.logging.get_verbosity() == tf.logging.INFO
    tf.logging.debug("no")
    tf.logging.info("loss %.1f", 0.5)
    tf.logging.warn("careful")
    tf.logging.error("wrong")
    tf.logging.log(tf.logging.ERROR, "number %d", 3)
    shown = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert shown == [("INFO", "loss 0.5"), ("WARNING", "careful"), ("ERROR", "wrong"), ("ERROR", "number 3")]
    tf.logging.set_verbosity(tf.logging.FATAL)
    tf.logging.error("no")
    assert len(caplog.records) == 4


def test_messages_of_some_times_only(caplog):
    tf.logging.set_verbosity(tf.logging.INFO)
    for k in range(5):
        tf.logging.log_every_n(tf.logging.INFO, "every %d", 2, k)
        tf.logging.log_first_n(tf.logging.INFO, "first %d", 2, k)
        tf.logging.log_if(tf.logging.INFO, "if %d", k == 3, k)
    shown = [record.getMessage() for record in caplog.records]
    assert shown == ["every 0", "first 0", "first 1", "every 2", "if 3", "every 4"]


def test_an_evaluation_and_a_restored_checkpoint_are_told(tmp_path, caplog):
    def line(features, labels, mode):
        loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features, 1))
        step = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step)

    rows = numpy.ones((4, 2), "float32")
    given = tf.estimator.inputs.numpy_input_fn(rows, rows[:, :1], batch_size=4, shuffle=False)
    tf.logging.set_verbosity(tf.logging.INFO)
    estimator = tf.estimator.Estimator(line, tmp_path).train(given)
    caplog.clear()
    found = estimator.evaluate(given)
    shown = [record.getMessage() for record in caplog.records]
    assert shown[0] == "Calling model_fn." and shown[1] == "Done calling model_fn."
    assert shown[2] == f"Restoring parameters from {tmp_path / 'model.ckpt-1'}"
    assert shown[3].startswith("Starting evaluation at 2") and shown[4].startswith("Finished evaluation at 2")
    assert shown[5] == f"Saving dict for global step 1: global_step = 1, loss = {found['loss']}"
