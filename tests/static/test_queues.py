"""Queues and what fills them."""

import threading

import numpy
import pytest

import twofold.static as tf


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as made:
        yield made


def test_first_in_first_out(session):
    queue = tf.FIFOQueue(10, [tf.float32, tf.int32], shapes=[[2], []])
    x = tf.placeholder(tf.float32, [None, 2])
    fill = queue.enqueue_many([x, [0, 1, 2]])
    pair = queue.dequeue()
    assert pair[0].get_shape().as_list() == [2]
    rows = queue.dequeue_many(2)
    session.run(fill, {x: numpy.arange(6.0).reshape(3, 2)})
    session.run(queue.enqueue(([7.0, 8.0], 9)))
    assert session.run(queue.size()) == 4
    first, number = session.run(pair)
    assert first.tolist() == [0, 1] and number == 0
    found, numbers = session.run(rows)
    assert found.tolist() == [[2, 3], [4, 5]] and numbers.tolist() == [1, 2]
    session.run(queue.close())
    with pytest.raises(tf.errors.OutOfRangeError, match="has 1 of 2"):
        session.run(rows)
    with pytest.raises(tf.errors.CancelledError):
        session.run(fill, {x: numpy.zeros((3, 2))})
    assert session.run(queue.dequeue_up_to(5))[1].tolist() == [9]
    with pytest.raises(ValueError, match="1 values for elements of 2"):
        queue.enqueue([1.0])


@pytest.mark.parametrize(
    ("kind", "shape", "given", "many"),
    [
        (tf.FIFOQueue, [2], (3,), False),
        (tf.FIFOQueue, [2], (2, 1), False),
        (tf.FIFOQueue, [2], (4, 3), True),
        (tf.FIFOQueue, [2], (), True),
        (tf.PaddingFIFOQueue, [None, 2], (3, 3), False),
    ],
)
def test_sizes_of_a_run_that_do_not_fit_are_not_put(session, kind, shape, given, many):
    queue = kind(4, [tf.float32], [shape])
    x = tf.placeholder(tf.float32, None)
    fill = (queue.enqueue_many if many else queue.enqueue)([x])
    with pytest.raises(tf.errors.InvalidArgumentError, match="shape"):
        session.run(fill, {x: numpy.ones(given)})
    assert session.run(queue.size()) == 0


def test_a_tensor_of_another_dtype_is_refused_where_it_is_put(session):
    queue = tf.FIFOQueue(3, [tf.float32, tf.int32], [[], []])
    with pytest.raises(TypeError, match="where the queue has float32"):
        queue.enqueue([tf.constant(3), 1])
    session.run(queue.enqueue([3, 1]))  # numbers are converted
    assert session.run(queue.dequeue()) == [3.0, 1]


def test_runs_wait_for_each_other(session):
    queue = tf.FIFOQueue(1, tf.int32, [[]])
    item, put = queue.dequeue(), queue.enqueue_many([[1, 2, 3]])
    thread = threading.Thread(target=session.run, args=(put,))
    thread.start()
    assert [int(session.run(item)) for _ in range(3)] == [1, 2, 3]
    thread.join(5)
    assert not thread.is_alive()


def test_runners_fill_queues_until_all_stop(session):
    data = numpy.random.default_rng(0).standard_normal((100, 4))
    queue = tf.FIFOQueue(capacity=50, dtypes=[tf.float32, tf.int32], shapes=[[4], []])
    fill = queue.enqueue_many([data, numpy.arange(100, dtype="i4")])
    row, number = queue.dequeue()
    runner = tf.train.QueueRunner(queue, [fill] * 3)
    coordinator = tf.train.Coordinator()
    threads = runner.create_threads(session, coord=coordinator, start=True)
    for _ in range(40):
        found, position = session.run([row, number])
        assert (found == data[position].astype("f")).all()
    coordinator.request_stop()
    coordinator.join(threads, stop_grace_period_secs=20)
    assert not any(thread.is_alive() for thread in threads)


def test_batches_of_slices(session):
    x = numpy.arange(12.0).astype("f")
    one, two = tf.train.slice_input_producer([x, 2 * x], num_epochs=2, shuffle=False)
    a, b = tf.train.batch([one, two + 1.0], 5, allow_smaller_final_batch=True)
    assert a.get_shape().as_list() == [None]
    coordinator = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(session, coordinator)
    found = []
    with pytest.raises(tf.errors.OutOfRangeError):
        while True:
            first, second = session.run([a, b])
            assert (second == 2 * first + 1).all()
            found += first.tolist()
    assert found == [*x, *x]
    coordinator.request_stop()
    coordinator.join(threads, stop_grace_period_secs=20)


def test_batches_in_random_order(session):
    (x,) = tf.train.slice_input_producer([numpy.arange(40)], num_epochs=1, shuffle=False)
    drawn = tf.train.shuffle_batch({"x": x}, 10, capacity=40, min_after_dequeue=20)["x"]
    coordinator = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(session, coordinator)
    found = [int(k) for _ in range(4) for k in session.run(drawn)]
    assert sorted(found) == list(range(40)) and found != list(range(40))
    coordinator.request_stop()
    coordinator.join(threads, stop_grace_period_secs=20)


def test_the_error_of_a_filling_operation_stops_all(session):
    queue = tf.FIFOQueue(4, tf.int32, [[]])
    bad = queue.enqueue(tf.py_func(lambda: 1 / 0, [], tf.int32))
    coordinator = tf.train.Coordinator()
    tf.train.QueueRunner(queue, [bad]).create_threads(session, coordinator, start=True)
    with pytest.raises(ZeroDivisionError):
        coordinator.join()


def test_a_list_among_the_tensors_of_a_batch_is_stacked():
    with tf.Graph().as_default():
        one, two = tf.train.batch([[tf.constant(1.0), tf.constant(2.0)], tf.constant([3.0])], batch_size=4)
        assert one.shape.as_list() == [4, 2] and two.shape.as_list() == [4, 1]
        named = tf.train.batch({"x": tf.constant(1), "y": [2.0, 3.0]}, batch_size=5)
        assert named["x"].shape.as_list() == [5] and named["y"].shape.as_list() == [5, 2]
        assert tf.train.batch(tf.constant([1.0, 2.0]), 3).shape.as_list() == [3, 2]


def test_elements_of_different_sizes_are_padded():
    with tf.Graph().as_default(), tf.Session() as session:
        queue = tf.PaddingFIFOQueue(5, [tf.float32, tf.string], shapes=[[None, 2], [None]])
        rows, words = tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.string, [None])
        put = queue.enqueue([rows, words])
        session.run(put, {rows: [[1, 2]], words: ["a", "b"]})
        session.run(put, {rows: [[3, 4], [5, 6]], words: ["c"]})
        numbers, names = session.run(queue.dequeue_many(2))
        assert numbers.tolist() == [[[1, 2], [0, 0]], [[3, 4], [5, 6]]]
        assert names.tolist() == [[b"a", b"b"], [b"c", b""]]
        length = tf.Variable(0, trainable=False)
        counted = tf.range(length.assign_add(1))
        batch = tf.train.batch(counted, 3, dynamic_pad=True)
        session.run(tf.global_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        assert session.run(batch).tolist() == [[0, 0, 0], [0, 1, 0], [0, 1, 2]]
        coordinator.request_stop()
        coordinator.join(threads)


@pytest.mark.parametrize("shuffled", [False, True])
def test_batches_of_several_lists(shuffled):
    with tf.Graph().as_default(), tf.Session() as session:
        numbers = [tf.train.range_input_producer(3, 2, shuffle=False).dequeue() + k for k in (0, 10)]
        rows = [[numbers[0], tf.zeros([2])], [numbers[1], tf.ones([2])]]
        if shuffled:
            made = tf.train.shuffle_batch_join(rows, 4, 20, 2, allow_smaller_final_batch=True)
        else:
            made = tf.train.batch_join(rows, 4, allow_smaller_final_batch=True)
        assert [one.shape.as_list() for one in made] == [[None], [None, 2]]
        coordinator = tf.train.Coordinator()
        session.run(tf.local_variables_initializer())
        threads = tf.train.start_queue_runners(session, coordinator)
        found = [session.run(made) for _ in range(3)]
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(made)
        coordinator.join(threads)
    values = [pair for first, second in found for pair in zip(first.tolist(), second[:, 0].tolist())]
    assert sorted(values) == [(k, 0.0) for k in (0, 0, 1, 1, 2, 2)] + [
        (k, 1.0) for k in (10, 10, 11, 11, 12, 12)
    ]


def test_lists_that_are_joined_are_alike():
    with tf.Graph().as_default():
        with pytest.raises(TypeError, match="different dtypes"):
            tf.train.batch_join([[tf.constant(1)], [tf.constant(1.0)]], 2)
        made = tf.train.batch_join([[tf.zeros([2, 3])], [tf.zeros([2, 4])]], 2, dynamic_pad=True)
        assert made.shape.as_list() == [2, 2, None]


def test_batches_of_one_tensor_are_a_tensor(session):
    zeros = tf.zeros([2])
    for made in (
        tf.train.batch([zeros], 4),
        tf.train.batch((zeros,), 4),
        tf.train.batch(zeros, 4),
        tf.train.shuffle_batch([zeros], 4, 20, 8),
        tf.train.batch_join([[zeros], [zeros]], 4),
        tf.train.maybe_batch([zeros], tf.constant(True), 4),
    ):
        assert made.shape.as_list() == [4, 2]
    assert isinstance(tf.train.batch([zeros, zeros], 4), list)
    assert list(tf.train.batch({"x": zeros}, 4)) == ["x"]


@pytest.mark.parametrize("kind", ["in order", "at random"])
def test_elements_may_be_taken_that_are_never_there_at_once(session, kind):
    if kind == "in order":
        queue = tf.FIFOQueue(3, [tf.int32], shapes=[[]])
    else:
        queue = tf.RandomShuffleQueue(3, 1, [tf.int32], shapes=[[]], seed=0)
    fill = queue.enqueue_many([list(range(10))])
    thread = threading.Thread(target=session.run, args=(fill,))
    thread.start()
    found = session.run(queue.dequeue_many(8))
    thread.join()
    assert found.tolist() == list(range(8)) or (kind == "at random" and len({*found.tolist()}) == 8)
    assert session.run(queue.size()) == 2
    session.run(queue.close())
    with pytest.raises(tf.errors.OutOfRangeError, match="has 2 of 8"):
        session.run(queue.dequeue_many(8))
    assert session.run(queue.size()) == 2
