"""Lines of files, and the fields in them."""

import numpy
import pytest

import twofold.static as tf


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as made:
        yield made


@pytest.fixture
def paths(tmp_path):
    rows = [f"{k},{k / 2},{'odd' if k % 2 else 'even'},{'' if k == 3 else k}" for k in range(8)]
    for name, part in (("a.csv", rows[:5]), ("b.csv", rows[5:])):
        (tmp_path / name).write_text("\n".join(["n,half,kind,last", *part]) + "\n")
    return [str(tmp_path / name) for name in ("a.csv", "b.csv")]


def test_training_rows_come_in_batches(session, paths):
    queue = tf.train.string_input_producer(paths, num_epochs=1, shuffle=False)
    key, line = tf.TextLineReader(skip_header_lines=1).read(queue)
    number, half, kind, last = tf.decode_csv(line, [[0], [0.0], [""], [-1]])
    assert (number.dtype, half.dtype, last.dtype) == (tf.int32, tf.float32, tf.int32)
    odd = tf.cond(tf.equal(kind, tf.constant("odd")), lambda: tf.constant(1.0), lambda: tf.constant(0.0))
    row = tf.stack([half, odd])
    rows, numbers, lasts, keys = tf.train.batch([row, number, last, key], 4)
    coordinator = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(session, coordinator)
    seen = []
    for _ in range(2):
        found, which, ends, positions = session.run([rows, numbers, lasts, keys])
        assert (found[:, 0] == which / 2).all() and (found[:, 1] == which % 2).all()
        assert (ends == numpy.where(which == 3, -1, which)).all()
        seen += [(int(k), position.decode()) for k, position in zip(which, positions)]
    assert [k for k, _ in seen] == list(range(8))
    assert seen[5][1] == f"{paths[1]}:2"
    with pytest.raises(tf.errors.OutOfRangeError):
        session.run(rows)
    coordinator.request_stop()
    coordinator.join(threads, stop_grace_period_secs=20)


def fields(session, text, defaults, **options):
    line = tf.constant(text)
    return session.run(tf.decode_csv(line, defaults, **options))


def test_fields(session):
    assert fields(session, '1;"2;5"', [[0], [""]], field_delim=";")[0] == 1
    assert fields(session, 'a,"b,c"', [[""], [""]])[1] == b"b,c"
    assert fields(session, "1,2,3", [[0.0], [0.0]], select_cols=[0, 2]) == [1.0, 3.0]
    assert fields(session, "NA,2", [[7], [0]], na_value="NA") == [7, 2]
    for text, defaults, words in (
        ("1,2", [[0]], "2 fields for 1 defaults"),
        ("x", [[0]], "'x' is no int32"),
        ("", [[], []], "0 fields"),
        (",1", [tf.constant([], tf.float32), [0]], "no default"),
    ):
        with pytest.raises(ValueError, match=words):
            fields(session, text, defaults)


def test_texts_are_compared(session):
    one, two = tf.constant("yes"), tf.constant("no")
    assert session.run([tf.equal(one, two), tf.equal(one, "yes"), tf.not_equal(one, two)]) == [
        False,
        True,
        True,
    ]
    with pytest.raises(ValueError, match="at least one"):
        tf.train.string_input_producer([])


def test_names_of_files_are_matched_when_they_are_initialised(tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        names = tf.train.match_filenames_once([str(tmp_path / "*.a"), str(tmp_path / "b*")])
        queue = tf.train.string_input_producer(names, num_epochs=1, shuffle=False)
        for file in ("2.a", "1.a", "b1", "c"):
            (tmp_path / file).write_text("x")
        session.run(tf.local_variables_initializer())
        wanted = [str(tmp_path / file).encode() for file in ("1.a", "2.a", "b1")]
        assert session.run(names).tolist() == wanted
        threads = tf.train.start_queue_runners(session)
        assert [session.run(queue.dequeue()) for _ in range(3)] == wanted
        assert threads
