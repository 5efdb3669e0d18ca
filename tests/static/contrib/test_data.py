"""Transformations of datasets, records of equal length, and other small parts that programs use."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy
import pytest

import twofold.static as tf
from twofold.errors import ArgumentError

data = tf.contrib.data


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


def elements(dataset: Any) -> list[Any]:
    following, found = dataset.make_one_shot_iterator().get_next(), []
    with tf.Session() as session:
        while True:
            try:
                found.append(session.run(following).tolist())
            except tf.errors.OutOfRangeError:
                return found


NUMBERS = tf.data.Dataset.range(10)


@pytest.mark.parametrize(
    "change, wanted",
    [
        (data.map_and_batch(lambda x: x * 2, 4), [[0, 2, 4, 6], [8, 10, 12, 14], [16, 18]]),
        (data.map_and_batch(lambda x: x, 4, drop_remainder=True), [[0, 1, 2, 3], [4, 5, 6, 7]]),
        (data.batch_and_drop_remainder(4), [[0, 1, 2, 3], [4, 5, 6, 7]]),
        (data.group_by_window(lambda x: x % 3, lambda key, group: group.batch(5), 2),
         [[0, 3], [1, 4], [2, 5], [6, 9], [7], [8]]),
        (data.group_by_window(lambda x: x % 2, lambda key, group: group.batch(9), window_size_func=lambda key: key + 2),
         [[0, 2], [1, 3, 5], [4, 6], [8], [7, 9]]),
        (data.bucket_by_sequence_length(lambda x: x, [3, 7], [2, 3, 4]),
         [[0, 1], [3, 4, 5], [2], [6], [7, 8, 9]]),
        (data.bucket_by_sequence_length(lambda x: x, [3, 7], [2, 3, 4], drop_remainder=True),
         [[0, 1], [3, 4, 5]]),
        (data.parallel_interleave(lambda x: tf.data.Dataset.from_tensors(x), 2), [*range(10)]),
        (data.prefetch_to_device("/cpu:0"), [*range(10)]),
    ],
)  # fmt: skip
def test_changes(change: Any, wanted: list[Any]) -> None:
    assert elements(NUMBERS.apply(change)) == wanted


def test_rows_and_repetitions() -> None:
    assert elements(NUMBERS.batch(4).apply(tf.data.experimental.unbatch())) == [*range(10)]
    found = elements(NUMBERS.apply(data.shuffle_and_repeat(10, 2, seed=1)))
    assert sorted(found[:10]) == sorted(found[10:]) == [*range(10)] and found[:10] != found[10:]


def test_wrong_windows() -> None:
    with pytest.raises(ArgumentError, match="no size is given"):
        data.group_by_window(lambda x: x, lambda key, group: group)
    with pytest.raises(ArgumentError, match="no dataset"):
        NUMBERS.apply(data.group_by_window(lambda x: x, lambda key, group: key, 2))
    with pytest.raises(ArgumentError, match="2 batch sizes for 2 boundaries"):
        data.bucket_by_sequence_length(lambda x: x, [1, 2], [1, 2])


def test_records_of_equal_length(tmp_path: Path) -> None:
    path = os.fspath(tmp_path / "records")
    Path(path).write_bytes(b"##abcdefghij!")
    sizes = {"record_bytes": 3, "header_bytes": 2, "footer_bytes": 1}
    assert elements(
        tf.data.FixedLengthRecordDataset(path, **sizes).map(lambda r: tf.decode_raw(r, tf.uint8))
    )[1] == [*b"def"]
    for hop, wanted in ((None, [b"abc", b"def", b"ghi"]), (1, [b"abc", b"bcd", b"cde"])):
        queue = tf.train.string_input_producer([path], num_epochs=1)
        key, record = tf.FixedLengthRecordReader(**sizes, hop_bytes=hop).read(queue)
        with tf.Session() as session:
            session.run(tf.local_variables_initializer())
            coordinator = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(session, coordinator)
            found = [session.run([key, record]) for _ in range(3)]
            coordinator.request_stop()
            coordinator.join(threads)
        assert [one[1] for one in found] == wanted and found[2][0].decode() == f"{path}:2"


def test_independent_normal_vectors() -> None:
    made = tf.contrib.distributions.MultivariateNormalDiag([[0.0, 1.0], [2.0, 3.0]], [1.0, 2.0], 0.5)
    with tf.Session() as session:
        found = session.run([made.log_prob([1.0, 1.0]), made.sample(5), made.stddev()])
    z = (1 - numpy.array([[0.0, 1.0], [2.0, 3.0]])) / [1.5, 2.5]
    wanted = (-(z**2) / 2 - numpy.log([1.5, 2.5]) - numpy.log(2 * numpy.pi) / 2).sum(1)
    numpy.testing.assert_allclose(found[0], wanted, rtol=1e-5)
    assert found[1].shape == (5, 2, 2) and made.batch_shape.as_list() == made.event_shape.as_list() == [2]
    numpy.testing.assert_array_equal(found[2], [[1.5, 2.5]] * 2)
    with pytest.raises(ValueError, match="neither loc nor scale_diag"):
        tf.contrib.distributions.MultivariateNormalDiag()


def test_known_values() -> None:
    x = tf.placeholder(tf.float32, [2, None])
    value = tf.contrib.util.constant_value
    assert value(tf.constant([1, 2])).tolist() == [1, 2] and value(x) is None and value(tf.shape(x)) is None
    assert value(tf.shape(tf.zeros([2, 3])))[1] == 3 and value(tf.rank(x)) == 2
    assert value(tf.stack([tf.constant(1), tf.shape(x)[1]]), partial=True).tolist() == [1, None]
    smart = tf.contrib.framework.smart_cond
    assert smart(True, lambda: "yes", lambda: "no") == "yes"
    assert smart(tf.constant(False), lambda: "yes", lambda: "no") == "no"
    with tf.Session() as session:
        condition = tf.placeholder(tf.bool, [])
        chosen = smart(condition, lambda: tf.constant(1), lambda: tf.constant(2))
        assert session.run(chosen, {condition: False}) == 2


def test_accuracy_of_a_batch() -> None:
    with tf.Session() as session:
        assert session.run(tf.contrib.metrics.accuracy([1, 2, 3], [1, 2, 4], [1.0, 1.0, 2.0])) == 0.5
        value, update = tf.contrib.metrics.streaming_accuracy(tf.constant([1, 0]), tf.constant([1, 1]))
        session.run(tf.local_variables_initializer())
        session.run(update)
        assert session.run(value) == 0.5
