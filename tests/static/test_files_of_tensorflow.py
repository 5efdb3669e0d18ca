"""Names that programs import from TensorFlow's files."""

from importlib import import_module

import numpy as np
import pytest

import twofold.static as tf

FILES = [
    ("contrib.framework.python.ops", "arg_scope", lambda: tf.contrib.framework.arg_scope),
    ("contrib.framework.python.ops.variables", "model_variable", lambda: tf.contrib.framework.model_variable),
    (
        "contrib.legacy_seq2seq.python.ops.seq2seq",
        "rnn_decoder",
        lambda: tf.contrib.legacy_seq2seq.rnn_decoder,
    ),
    ("contrib.rnn.python.ops.core_rnn_cell_impl", "LSTMStateTuple", lambda: tf.nn.rnn_cell.LSTMStateTuple),
    ("core.framework.summary_pb2", "Summary", lambda: tf.Summary),
    ("core.framework.graph_pb2", "GraphDef", lambda: tf.GraphDef),
    ("core.protobuf.config_pb2", "ConfigProto", lambda: tf.ConfigProto),
    ("core.example.example_pb2", "Example", lambda: tf.train.Example),
    ("python.framework.ops", "get_collection", lambda: tf.get_collection),
    ("python.framework.ops", "IndexedSlices", lambda: tf.IndexedSlices),
    ("python.keras.layers", "Dense", lambda: tf.keras.layers.Dense),
    ("python.keras.models", "Sequential", lambda: tf.keras.models.Sequential),
    (
        "python.keras.preprocessing.sequence",
        "pad_sequences",
        lambda: tf.keras.preprocessing.sequence.pad_sequences,
    ),
    ("python.lib.io.tf_record", "TFRecordWriter", lambda: tf.python_io.TFRecordWriter),
    ("python.ops.confusion_matrix", "confusion_matrix", lambda: tf.confusion_matrix),
    ("python.ops.losses.losses", "mean_squared_error", lambda: tf.losses.mean_squared_error),
    ("python.ops.special_math_ops", "einsum", lambda: tf.einsum),
    ("python.summary.summary_iterator", "summary_iterator", lambda: tf.train.summary_iterator),
    ("python.training.queue_runner", "QueueRunner", lambda: tf.train.QueueRunner),
]


@pytest.mark.parametrize("file, name, public", FILES)
def test_a_file_has_what_the_public_module_has(file, name, public):
    assert getattr(import_module(f"twofold.static.{file}"), name) is public()


def test_several_matrices_are_projected_together():
    from twofold.static.contrib.rnn.python.ops.core_rnn_cell import _linear

    first, second = np.ones((2, 3), "f"), np.full((2, 1), 2, "f")
    with tf.Graph().as_default(), tf.Session() as session:
        ones = tf.ones_initializer()
        made = _linear([tf.constant(first), tf.constant(second)], 4, True, ones, kernel_initializer=ones)
        session.run(tf.global_variables_initializer())
        assert session.run(made).tolist() == [[6.0] * 4] * 2
        assert [one.name for one in tf.global_variables()] == ["kernel:0", "bias:0"]
