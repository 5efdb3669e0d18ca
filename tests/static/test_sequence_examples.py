"""Rows with sequences, read as tensors."""

import numpy as np
import pytest

import twofold.static as tf


def _int(*values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def _row(**lists):
    words = tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"a", b"b"]))
    context = tf.train.Features(feature={"label": _int(7), "words": words})
    sequences = {name: tf.train.FeatureList(feature=steps) for name, steps in lists.items()}
    lists = tf.train.FeatureLists(feature_list=sequences)
    return tf.train.SequenceExample(context=context, feature_lists=lists).SerializeToString()


def test_context_and_sequences():
    serialized = tf.placeholder(tf.string, [])
    context, steps = tf.parse_single_sequence_example(
        serialized,
        {"label": tf.FixedLenFeature([], tf.int64), "words": tf.VarLenFeature(tf.string)},
        {
            "pairs": tf.FixedLenSequenceFeature([2], tf.int64),
            "any": tf.VarLenFeature(tf.int64),
            "none": tf.FixedLenSequenceFeature([3], tf.float32, allow_missing=True),
        },
    )
    assert context["label"].shape == () and steps["pairs"].shape.as_list() == [None, 2]
    row = _row(pairs=[_int(1, 2), _int(3, 4), _int(5, 6)], any=[_int(), _int(8, 9)])
    with tf.Session() as session:
        found, read = session.run([context, steps], {serialized: row})
        assert found["label"] == 7 and found["words"].values.tolist() == [b"a", b"b"]
        np.testing.assert_array_equal(read["pairs"], [[1, 2], [3, 4], [5, 6]])
        assert read["any"].indices.tolist() == [[1, 0], [1, 1]] and read["any"].dense_shape.tolist() == [2, 2]
        assert read["none"].shape == (0, 3)
        with pytest.raises(tf.errors.InvalidArgumentError, match="missing"):
            session.run(steps["pairs"], {serialized: _row(any=[])})
        with pytest.raises(tf.errors.InvalidArgumentError, match="shape"):
            session.run(steps["pairs"], {serialized: _row(pairs=[_int(1)])})
