"""What programs are fed for some epochs, queues with names and priorities, options of datasets, kept files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy
import pytest

import twofold.static as tf


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


def test_rows_for_two_epochs() -> None:
    rows = numpy.arange(6.0, dtype=numpy.float32).reshape(3, 2)
    row = tf.train.input_producer(tf.constant(rows), num_epochs=2, shuffle=False).dequeue()
    assert row.shape.as_list() == [2]
    with tf.train.MonitoredSession() as session:
        found = []
        while not session.should_stop():
            found.append(session.run(row))
    numpy.testing.assert_array_equal(found, [*rows, *rows])


def test_limits_of_runs() -> None:
    x = tf.train.limit_epochs(tf.constant(7), 2)
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        assert [session.run(x) for _ in range(2)] == [7, 7]
        with pytest.raises(tf.errors.OutOfRangeError) as raised:
            session.run(x)
    assert raised.value.error_code == tf.errors.OUT_OF_RANGE == 11


def test_batches_of_what_is_kept() -> None:
    number = tf.train.range_input_producer(6, num_epochs=1, shuffle=False).dequeue()
    even = tf.train.maybe_batch([number], tf.equal(number % 2, 0), 3)
    with tf.train.MonitoredSession() as session:
        assert session.run(even).tolist() == [0, 2, 4]


def test_queues_by_name_and_priority() -> None:
    named = tf.FIFOQueue(2, [tf.int32, tf.float32], [[], []], names=["a", "b"])
    first = tf.PriorityQueue(4, [tf.int32], [[]])
    with tf.Session() as session:
        session.run(named.enqueue({"b": 1.5, "a": 2}))
        assert session.run(named.dequeue()) == {"a": 2, "b": 1.5}
        session.run(first.enqueue_many([[5, 1, 3], [50, 10, 30]]))
        assert [session.run(first.dequeue()[1]) for _ in range(3)] == [10, 30, 50]
    with pytest.raises(ValueError, match="parts named"):
        named.enqueue([1, 2.0])
    assert isinstance(first, tf.QueueBase)


def elements(dataset: Any) -> list[Any]:
    following, found = dataset.make_one_shot_iterator().get_next(), []
    with tf.Session() as session:
        try:
            while True:
                found.append(session.run(following))
        except tf.errors.OutOfRangeError:
            return found


def test_options_change_no_elements() -> None:
    options = tf.data.Options()
    options.experimental_optimization.map_fusion = True
    dataset = tf.data.Dataset.range(3).with_options(options).map(lambda x: x * 2)
    assert elements(dataset) == [0, 2, 4]
    assert dataset.options().experimental_optimization.map_fusion
    with pytest.raises(AttributeError, match="property"):
        options.unknown = 1


def test_further_changes_of_datasets() -> None:
    numbers, experimental = tf.data.Dataset.range, tf.data.experimental
    assert elements(numbers(5, 8).enumerate(start=2)) == [(2, 5), (3, 6), (4, 7)]
    assert elements(numbers(4).batch(2).unbatch()) == [0, 1, 2, 3]
    assert elements(numbers(6).apply(experimental.take_while(lambda x: x < 3))) == [0, 1, 2]
    assert elements(numbers(6).map(lambda x: x % 3).apply(experimental.unique())) == [0, 1, 2]
    start = tf.constant(1, tf.int64)
    assert elements(numbers(4).apply(experimental.scan(start, lambda s, x: (s + x, s * x)))) == [0, 1, 4, 12]
    mixed = experimental.choose_from_datasets([numbers(2), numbers(10, 12)], numbers(4).map(lambda x: x % 2))
    assert elements(mixed) == [0, 10, 1, 11]
    both = experimental.sample_from_datasets([numbers(3), numbers(10, 13)], [0.5, 0.5], seed=1)
    assert sorted(elements(both)) == [0, 1, 2, 10, 11, 12]


def test_errors_of_elements_are_left_out() -> None:
    checked = tf.data.Dataset.from_tensor_slices([1.0, 0.0, 2.0]).map(lambda x: tf.check_numerics(1 / x, "x"))
    assert elements(checked.apply(tf.data.experimental.ignore_errors())) == [1.0, 0.5]


def test_the_file_of_checkpoints(tmp_path: Path) -> None:
    folder = str(tmp_path)
    v = tf.Variable(1.0, name="v")
    with tf.Session() as session:
        session.run(v.initializer)
        paths = [tf.train.Saver().save(session, f"{folder}/model", k) for k in range(2)]
    tf.train.update_checkpoint_state(folder, paths[0], paths[:1])
    assert tf.train.latest_checkpoint(folder) == paths[0]
    assert all(time > 0 for time in tf.train.get_checkpoint_mtimes(paths))
    tf.train.remove_checkpoint(paths[1])
    assert not [name for name in os.listdir(folder) if name.startswith("model-1")]
    with pytest.raises(tf.errors.NotFoundError):
        tf.train.get_checkpoint_mtimes(paths[1:])


def test_variables_from_checkpoints(tmp_path: Path) -> None:
    framework = tf.contrib.framework
    v, w = tf.Variable([1.0, 2.0], name="v"), tf.Variable(5.0, name="w")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver([v]).save(session, str(tmp_path / "model"))
        session.run(v.assign([0.0, 0.0]))
        framework.assign_from_checkpoint_fn(path, [v, w], ignore_missing_vars=True)(session)
        assert session.run(v).tolist() == [1.0, 2.0]
        session.run(v.assign([0.0, 0.0]))
        session.run(*framework.assign_from_checkpoint(path, {"v": v}))
        assert session.run(v).tolist() == [1.0, 2.0]
        framework.assign_from_values_fn({"v": numpy.array([[3.0], [4.0]])})(session)
        assert session.run(v).tolist() == [3.0, 4.0]
        with pytest.raises(ValueError, match="missing variable"):
            framework.assign_from_checkpoint(path, [w])
        assert framework.assign_from_checkpoint_fn(path, [w], ignore_missing_vars=True) is None


def test_an_element_of_an_array_is_written_once() -> None:
    array = tf.TensorArray(tf.float32, 3).write(0, 1.0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="index 0 has already been written"):
        array.write(0, 2.0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="index 0"):
        array.scatter([1, 0], [2.0, 3.0])
    with tf.Session() as session:
        assert session.run(array.write(1, 2.0).write(2, 3.0).stack()).tolist() == [1.0, 2.0, 3.0]


def test_texts_of_tensors() -> None:
    """As TensorFlow 2.21 prints them in graphs of version 1."""
    known, open_ = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, name="y")
    assert repr(known) == "<tf.Tensor 'Placeholder:0' shape=(?, 3) dtype=float32>"
    assert repr([open_]) == "[<tf.Tensor 'y:0' shape=<unknown> dtype=float32>]"
    assert repr(tf.Variable(1.0, name="v")) == "<tf.Variable 'v:0' shape=() dtype=float32_ref>"
    assert repr(tf.Variable(1.0, name="r", use_resource=True)).endswith("dtype=float32>")


def test_flags_within_bounds() -> None:
    tf.flags.DEFINE_integer("count_of_epochs", 3, "how many", lower_bound=1, upper_bound=5)
    tf.flags.FLAGS(["program"])
    tf.flags.FLAGS.count_of_epochs = 9
    with pytest.raises(SystemExit, match="must be from 1 to 5"):
        tf.flags.FLAGS(["program"])
    tf.flags.FLAGS.count_of_epochs = 4
