"""Graphs with tables and parsed examples as messages: exported and imported again, and one that TensorFlow wrote."""

import base64
import json
from pathlib import Path

import numpy
import pytest

import twofold.static as tf

COLUMN = tf.feature_column


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as made:
        yield made


def example(**features):
    made = {}
    for name, values in features.items():
        if isinstance(values[0], bytes):
            made[name] = tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
        else:
            made[name] = tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Example(features=tf.train.Features(feature=made)).SerializeToString()


def again(session, fetches, feeds=None):
    """What fetches are in a session of the graph that the message of the session's graph declares."""
    values = session.run(fetches, feeds)
    graph = tf.Graph()
    with graph.as_default(), tf.Session() as other:
        tf.import_graph_def(session.graph.as_graph_def(), name="")
        for operation in session.graph.get_collection(tf.GraphKeys.TABLE_INITIALIZERS):
            other.run(operation.name)
        found = other.run(
            [one.name for one in fetches], {key.name: value for key, value in (feeds or {}).items()}
        )
    for one, two in zip(values, found):
        numpy.testing.assert_array_equal(one, two)


def test_tables(session, tmp_path):
    path = tmp_path / "words"
    path.write_text("the\nof\nand\n")
    asked = tf.constant(["of", "none", "and", "other"])
    pairs = tf.lookup.KeyValueTensorInitializer(["of", "and"], [0.5, 1.5])
    fetches = [
        tf.lookup.HashTable(pairs, -1.0).lookup(asked),
        tf.contrib.lookup.index_table_from_tensor(["of", "the"], num_oov_buckets=7).lookup(asked),
        tf.contrib.lookup.index_table_from_file(str(path), num_oov_buckets=3, vocab_size=2).lookup(asked),
        tf.contrib.lookup.index_table_from_file(str(path)).size(),
        tf.contrib.lookup.index_to_string_table_from_file(str(path)).lookup(tf.constant([2, 9], tf.int64)),
        tf.contrib.lookup.index_table_from_tensor(tf.constant([7, 9], tf.int64), 2).lookup([[9, 5]]),
        tf.strings.to_hash_bucket_fast(asked, 5),
    ]
    session.run(tf.tables_initializer())
    again(session, fetches)


def test_masks_and_segments_of_sizes_that_a_run_tells(session):
    x, ids = tf.placeholder(tf.float32, [None, None, 2]), tf.placeholder(tf.int64, [None])
    fetches = [
        tf.boolean_mask(x, x[:, :, 0] > 0),
        tf.boolean_mask(x, ids > 0),
        tf.unsorted_segment_sum(x, ids, 3),
        tf.unsorted_segment_mean(x, ids, 3),
        tf.unsorted_segment_sqrt_n(x, ids, 3),
        tf.segment_max(x, tf.abs(ids)),
        *tf.unique_with_counts(ids),
        tf.where(x > 0),
    ]
    values = numpy.random.default_rng(0).standard_normal((3, 4, 2)).astype("f")
    again(session, fetches, {x: values, ids: [-1, 1, 1]})


@pytest.mark.parametrize("single", [False, True])
def test_examples(session, single):
    features = {
        "b": tf.VarLenFeature(tf.string),
        "a": tf.FixedLenFeature([2], tf.float32, [1.0, 2.0]),
        "c": tf.FixedLenFeature([], tf.string),
        "d": tf.FixedLenSequenceFeature([2], tf.float32, allow_missing=True),
        "e": tf.VarLenFeature(tf.float32),
    }
    rows = [
        example(b=[b"x", b"y"], c=[b"u"], d=[1.0, 2.0, 3.0, 4.0]),
        example(a=[3.0, 4.0], c=[b"v"], e=[5.0]),
    ]
    made = tf.parse_single_example(rows[0], features) if single else tf.parse_example(rows, features)
    parts = [
        made["b"].indices,
        made["b"].values,
        made["b"].dense_shape,
        made["e"].values,
        made["e"].dense_shape,
    ]
    again(session, [*parts, made["a"], made["c"], made["d"]])


def test_an_estimator_of_vocabularies_is_loaded(tmp_path):
    path = tmp_path / "words"
    path.write_text("x\ny\nz\n")
    columns = [
        COLUMN.indicator_column(
            COLUMN.categorical_column_with_vocabulary_list("c", ["a", "b"], num_oov_buckets=2)
        ),
        COLUMN.embedding_column(COLUMN.categorical_column_with_vocabulary_file("v", str(path), 3), 2),
        COLUMN.numeric_column("n"),
    ]
    labels = ["no", "yes"]
    estimator = tf.estimator.DNNClassifier([4], columns, tmp_path / "model", label_vocabulary=labels)
    features = {"c": ["a", "q", "b"], "v": ["y", "none", "z"], "n": [1.0, 2.0, -3.0]}

    def read():
        return tf.data.Dataset.from_tensor_slices((features, ["no", "yes", "no"])).batch(3)

    estimator.train(read)
    wanted = numpy.array([one["probabilities"] for one in estimator.predict(read)])
    parse = tf.estimator.export.build_parsing_serving_input_receiver_fn(
        COLUMN.make_parse_example_spec(columns)
    )
    folder = estimator.export_saved_model(tmp_path / "out", parse).decode()
    rows = [
        example(c=[c.encode()], v=[v.encode()], n=[n])
        for c, v, n in zip(*(features[key] for key in ("c", "v", "n")))
    ]
    predict = tf.contrib.predictor.from_saved_model(folder)
    found = predict({"inputs": rows})
    numpy.testing.assert_allclose(found["scores"], wanted, rtol=1e-6)
    assert found["classes"].tolist() == [[b"no", b"yes"]] * 3


def test_uninitialised_variables_of_a_message(session):
    tf.get_variable("v", []), tf.get_variable("w", [2])
    missing = tf.report_uninitialized_variables(name="missing")
    assert session.run(missing).tolist() == [b"v", b"w"]
    with tf.Graph().as_default(), tf.Session() as other:
        tf.import_graph_def(session.graph.as_graph_def(), name="")
        assert other.run("missing:0").tolist() == [b"v", b"w"]
        other.run("w/Assign")
        assert other.run("missing:0").tolist() == [b"v"]


def test_columns_that_tensorflow_declared():
    stored = json.loads((Path(__file__).parent / "parsed_examples.json").read_text())
    rows = [base64.b64decode(one) for one in stored["examples"]]
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(base64.b64decode(stored["graph"]), name="")
        session.run("start")
        y, label, sequence = session.run(["y:0", "label:0", "sequence:0"], {"ex:0": rows})
        assert session.graph.get_tensor_by_name("y:0").shape[0].value is None
    numpy.testing.assert_allclose(y, stored["y"], rtol=1e-6)
    assert [one.decode() for one in label] == stored["label"] and sequence.tolist() == stored["sequence"]
