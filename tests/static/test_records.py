"""Files of records and examples: TensorFlow 2.21 wrote the files, and read the same numbers from them."""

import base64

import numpy
import pytest

import twofold.static as tf

WRITTEN = {
    "": (
        "RQAAAAAAAADr5miwCkMKCwoBYhIGCgQKAngACg0KAWYSCBIGCgQAAAA/ChQKAW4SDxoNCgsB/v//////////AQoPCgNzZXESCBoG"
        "CgQBAgMEiyOrGzoAAAAAAAAAEpXq4go4CgsKAWISBgoECgJ5eQoNCgFmEggSBgoEAADAPwoLCgFuEgYaBAoCAwQKDQoDc2VxEgYa"
        "BAoCBQYx4G0iGwAAAAAAAAAaDZ4TChkKCgoBYhIFCgMKAXoKCwoBbhIGGgQKAgUGM+h55g=="
    ),
    "GZIP": (
        "H4sIAAAAAAAAA3NlgIDXzzI2cDlzcXMxJgmxcbFwMVUwcPFyMaYJcYC4QAX2XCJcjHlC/FK8XNyM//5DASMXPxdzcWqhEIcUUBkj"
        "EzNLt/JqaSuooUJTXz3iskAytLISxdAD9iC5PCE2KaAcMwtQDmwWmMvKZvggV0kaapIU7zxhLkkuLpBJrFzMXIxVSDpZ2YxfVD4D"
        "ANO7q8/KAAAA"
    ),
    "ZLIB": (
        "eJxzZYCA188yNnA5c3FzMSYJsXGxcDFVMHDxcjGmCXGAuEAF9lwiXIx5QvxSvFzcjP/+QwEjFz8Xc3FqoRCHFFAZIxMzS7fyamkr"
        "qKFCU1894rJAMrSyEsXQA/YguTwhNimgHDMLUA5sFpjLymb4IFdJGmqSFO88YS5JLi6QSaxczFyMVUg6WdmMX1Q+AwD0OyLy"
    ),
}
FEATURES = {
    "n": tf.FixedLenFeature([2], tf.int64),
    "f": tf.FixedLenFeature([], tf.float32, default_value=7.0),
    "b": tf.VarLenFeature(tf.string),
    "seq": tf.FixedLenSequenceFeature([2], tf.int64, allow_missing=True, default_value=-1),
    "v": tf.VarLenFeature(tf.int64),
}


def example(n, b, f=None, seq=None):
    feature = {
        "n": tf.train.Feature(int64_list=tf.train.Int64List(value=n)),
        "b": tf.train.Feature(bytes_list=tf.train.BytesList(value=b)),
    }
    if f is not None:
        feature["f"] = tf.train.Feature(float_list=tf.train.FloatList(value=f))
    if seq is not None:
        feature["seq"] = tf.train.Feature(int64_list=tf.train.Int64List(value=seq))
    return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()


ROWS = [
    example([1, -2], [b"x\0"], [0.5], [1, 2, 3, 4]),
    example([3, 4], [b"yy"], [1.5], [5, 6]),
    example([5, 6], [b"z"]),
]


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as found:
        yield found


@pytest.fixture(params=WRITTEN)
def file(request, tmp_path):
    path = tmp_path / "rows"
    path.write_bytes(base64.b64decode(WRITTEN[request.param]))
    return path, request.param


def test_files_of_tensorflow_are_read_and_written(file, tmp_path):
    path, kind = file
    assert list(tf.python_io.tf_record_iterator(path, tf.python_io.TFRecordOptions(kind))) == ROWS
    with tf.io.TFRecordWriter(tmp_path / "ours", options=kind) as writer:
        for row in ROWS:
            writer.write(row)
    assert list(tf.io.tf_record_iterator(tmp_path / "ours", kind)) == ROWS
    if not kind:
        assert (tmp_path / "ours").read_bytes() == path.read_bytes()


def test_damage_is_told(tmp_path):
    content = base64.b64decode(WRITTEN[""])
    for damaged in (content[:-3], content[:20] + b"?" + content[21:], content[:5]):
        (tmp_path / "rows").write_bytes(damaged)
        with pytest.raises(tf.errors.DataLossError, match="rows"):
            list(tf.python_io.tf_record_iterator(tmp_path / "rows"))
    with pytest.raises(ValueError, match="compression_type is 'LZ4'"):
        tf.python_io.TFRecordWriter(tmp_path / "rows", "LZ4")


def test_examples_are_read_as_by_tensorflow(session):
    found = session.run(
        tf.parse_example(tf.placeholder(tf.string, [None], "rows"), FEATURES), {"rows:0": ROWS}
    )
    numpy.testing.assert_array_equal(found["n"], [[1, -2], [3, 4], [5, 6]])
    numpy.testing.assert_array_equal(found["f"], [0.5, 1.5, 7.0])
    numpy.testing.assert_array_equal(
        found["seq"], [[[1, 2], [3, 4]], [[5, 6], [-1, -1]], [[-1, -1], [-1, -1]]]
    )
    assert found["b"].indices.tolist() == [[0, 0], [1, 0], [2, 0]]
    assert (found["b"].values.tolist(), found["b"].dense_shape.tolist()) == ([b"x\0", b"yy", b"z"], [3, 1])
    assert (found["v"].indices.shape, found["v"].dense_shape.tolist()) == ((0, 2), [3, 0])
    one = session.run(tf.io.parse_single_example(ROWS[0], FEATURES))
    assert (one["n"].tolist(), float(one["f"]), one["seq"].tolist()) == ([1, -2], 0.5, [[1, 2], [3, 4]])
    assert (one["b"].indices.tolist(), one["b"].dense_shape.tolist()) == ([[0]], [1])
    assert (one["v"].indices.shape, one["v"].dense_shape.tolist()) == ((0, 1), [0])


@pytest.mark.parametrize(
    "feature, words",
    [
        ({"f": tf.FixedLenFeature([], tf.float32)}, "no values in example 0, and the shape"),
        ({"n": tf.FixedLenFeature([2], tf.float32)}, "values in int64_list, and float32 is asked for"),
        ({"n": tf.FixedLenFeature([3], tf.int64)}, "2 values in example 0"),
    ],
)
def test_what_was_not_written_is_refused_in_a_run(session, feature, words):
    read = tf.parse_single_example(ROWS[2], feature)
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        session.run(read)


@pytest.mark.parametrize(
    "feature, words",
    [
        (tf.FixedLenFeature([], tf.int32), "a dtype of int32"),
        (tf.FixedLenFeature([None], tf.int64), "the shape"),
        (tf.FixedLenSequenceFeature([], tf.int64), "allow_missing=False"),
        ("n", "the feature 'n' is 'n'"),
    ],
)
def test_features_that_are_not_offered_are_refused_at_once(session, feature, words):
    with pytest.raises(ValueError, match=words):
        tf.parse_single_example(ROWS[0], {"n": feature})
    with pytest.raises(ValueError, match="of shape"):
        tf.parse_single_example(ROWS, FEATURES)


def test_readers_and_datasets(session, file):
    path, kind = file
    options = tf.python_io.TFRecordOptions(kind)
    queue = tf.train.string_input_producer([str(path)], num_epochs=1, shuffle=False)
    reader = tf.TFRecordReader(options=options)
    key, record = reader.read(queue)
    number = tf.parse_single_example(record, {"n": tf.FixedLenFeature([2], tf.int64)})["n"]
    coordinator = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(session, coordinator)
    assert [session.run(number).tolist() for _ in ROWS] == [[1, -2], [3, 4], [5, 6]]
    assert session.run(reader.num_records_produced()) == 3
    with pytest.raises(tf.errors.OutOfRangeError):
        session.run(key)
    assert session.run(reader.num_work_units_completed()) == 1
    coordinator.request_stop()
    coordinator.join(threads)
    rows = tf.data.TFRecordDataset([str(path)] * 2, kind).map(
        lambda row: tf.parse_single_example(row, FEATURES)["f"]
    )
    found = rows.batch(6).make_one_shot_iterator().get_next()
    assert session.run(found).tolist() == [0.5, 1.5, 7.0] * 2


def test_lines_and_whole_files(session, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(f"{name}1\n{name}2\r\n".encode())
    names = [str(tmp_path / name) for name in ("a", "b")]
    given = tf.placeholder(tf.string, [None])
    lines = tf.data.TextLineDataset(given).skip(1).make_initializable_iterator()
    session.run(lines.initializer, {given: names})
    line = lines.get_next()
    assert [session.run(line) for _ in range(3)] == [b"a2", b"b1", b"b2"]
    queue = tf.FIFOQueue(2, [tf.string], shapes=[[]])
    session.run(queue.enqueue_many([names]))
    session.run(queue.close())
    keys, contents = tf.WholeFileReader().read_up_to(queue, 5)
    assert session.run([keys, contents])[1].tolist() == [b"a1\na2\r\n", b"b1\nb2\r\n"]
    with pytest.raises(tf.errors.OutOfRangeError):
        session.run(keys)


def test_messages_check_their_values():
    with pytest.raises(TypeError, match="is not bytes"):
        tf.train.BytesList(value=["text"])
    with pytest.raises(TypeError):
        tf.train.Int64List(value=[1.5])
    text = str(tf.train.Example.FromString(ROWS[1]).features.feature["n"])
    assert text == "int64_list {\n  value: 3\n  value: 4\n}\n"
