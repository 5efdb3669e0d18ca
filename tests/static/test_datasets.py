"""Input pipelines and threads that stop together."""

import threading

import numpy
import pytest

import twofold.static as tf

Dataset = tf.data.Dataset


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as made:
        yield made


def elements(session, dataset):
    item = dataset.make_one_shot_iterator().get_next()
    found = []
    while True:
        try:
            found.append(session.run(item))
        except tf.errors.OutOfRangeError:
            return found


def test_training_by_batches_until_the_data_ends(session):
    x = numpy.arange(10.0).astype("f")
    dataset = Dataset.from_tensor_slices((x, 3 * x)).shuffle(10, seed=1).batch(4)
    iterator = dataset.make_initializable_iterator()
    given, wanted = iterator.get_next()
    assert given.get_shape().as_list() == [None]
    slope = tf.Variable(0.0)
    loss = tf.reduce_mean((slope * given - wanted) ** 2)
    train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
    session.run(tf.global_variables_initializer())
    steps = 0
    for _ in range(8):
        session.run(iterator.initializer)
        while True:
            try:
                session.run(train)
                steps += 1
            except tf.errors.OutOfRangeError:
                break
    assert steps == 24
    assert session.run(slope) == pytest.approx(3.0, abs=0.01)


def test_elements_in_order(session):
    numbers = Dataset.range(6)
    assert [int(k) for k in elements(session, numbers.skip(1).take(3))] == [1, 2, 3]
    assert [int(k) for k in elements(session, numbers.filter(lambda k: tf.equal(k % 2, 0)))] == [0, 2, 4]
    assert [int(k) for k in elements(session, numbers.take(2).repeat(2).concatenate(numbers.skip(5)))] == [
        0,
        1,
        0,
        1,
        5,
    ]
    assert [int(k) for k in elements(session, numbers.shard(3, 1).prefetch(1))] == [1, 4]
    assert sorted(int(k) for k in elements(session, numbers.shuffle(3).cache())) == list(range(6))
    assert [b.tolist() for b in elements(session, numbers.batch(4))] == [[0, 1, 2, 3], [4, 5]]
    assert [b.tolist() for b in elements(session, numbers.batch(4, drop_remainder=True))] == [[0, 1, 2, 3]]
    pairs = Dataset.zip((numbers, {"half": numbers.map(lambda k: tf.cast(k, tf.float32) / 2.0)}))
    assert pairs.output_types == (tf.int64, {"half": tf.float32})
    assert elements(session, pairs.take(2))[1] == (1, {"half": 0.5})
    assert [a.tolist() for a in elements(session, Dataset.from_tensors([1, 2]))] == [[1, 2]]
    assert elements(session, Dataset.from_tensor_slices([])) == []


def test_orders_differ_from_pass_to_pass(session):
    order = [int(k) for k in elements(session, Dataset.range(50).shuffle(50, seed=3).repeat(2))]
    assert sorted(order[:50]) == sorted(order[50:]) == list(range(50))
    assert order[:50] != order[50:]
    fixed = Dataset.range(50).shuffle(50, seed=3, reshuffle_each_iteration=False).repeat(2)
    order = [int(k) for k in elements(session, fixed)]
    assert order[:50] == order[50:]


def test_orders_of_iterators_that_start_again(session):
    """TensorFlow 1.15: with a seed, of the dataset or of the graph, the same ones."""

    def orders(dataset, count):
        iterator = dataset.make_initializable_iterator()
        item, found = iterator.get_next(), []
        for _ in range(2):
            session.run(iterator.initializer)
            found.append([int(session.run(item)) for _ in range(count)])
        return found

    numbers = Dataset.range(20)
    first, again = orders(numbers.shuffle(20, seed=3).repeat(2), 40)
    assert first == again and first[:20] != first[20:]
    first, again = orders(numbers.shuffle(20), 20)
    assert first != again
    first, again = orders(numbers.shuffle(20, reshuffle_each_iteration=False).repeat(2), 40)
    assert first != again and first[:20] == first[20:]
    mixed = tf.data.experimental.sample_from_datasets([numbers, numbers], seed=5)
    first, again = orders(mixed, 30)
    assert first == again
    tf.set_random_seed(1)
    first, again = orders(numbers.shuffle(20), 20)
    assert first == again


def test_sessions_have_iterators_queues_and_tables_of_their_own():
    """TensorFlow 1.15: what one session has taken, put or filled another one does not see."""
    with tf.Graph().as_default():
        first = Dataset.range(5).make_one_shot_iterator().get_next()
        iterator = Dataset.range(5).make_initializable_iterator()
        following = iterator.get_next()
        queue = tf.FIFOQueue(5, [tf.int32], shapes=[[]])
        put, size = queue.enqueue(3), queue.size()
        pairs = tf.lookup.KeyValueTensorInitializer(["a"], tf.constant([7], tf.int64))
        table = tf.lookup.StaticHashTable(pairs, -1)
        found = Dataset.from_tensors(["a", "b"]).map(table.lookup).make_initializable_iterator()
        values = found.get_next()
        number = tf.train.range_input_producer(3, num_epochs=1, shuffle=False).dequeue()
        path = tf.train.string_input_producer([__file__], num_epochs=1)
        _, line = tf.TextLineReader().read(path)
        for _ in range(2):
            with tf.Session() as one:
                assert [one.run(first), one.run(first)] == [0, 1]
                for early in (following, values):
                    with pytest.raises(tf.errors.FailedPreconditionError, match="not initialised"):
                        one.run(early)
                one.run([iterator.initializer, found.initializer])
                assert one.run(following) == 0
                with pytest.raises(tf.errors.FailedPreconditionError, match="not initialised"):
                    one.run(values)
                one.run([tf.tables_initializer(), found.initializer])
                assert one.run(values).tolist() == [7, -1]
                assert one.run(size) == 0
                one.run(put)
                assert one.run(size) == 1
                coordinator = tf.train.Coordinator()
                threads = tf.train.start_queue_runners(one, coordinator)
                assert [one.run(number) for _ in range(3)] == [0, 1, 2]
                with pytest.raises(tf.errors.OutOfRangeError):
                    one.run(number)
                assert one.run(line) == b'"""Input pipelines and threads that stop together."""'
                coordinator.request_stop()
                coordinator.join(threads)


def test_shards_and_negative_counts(session):
    numbers = Dataset.range(5)
    assert elements(session, numbers.shard(2, 1)) == [1, 3]
    for index in (2, 3, -1):
        with pytest.raises(tf.errors.InvalidArgumentError, match="between 0 and 1"):
            elements(session, numbers.shard(2, index))
    assert elements(session, numbers.take(-2)) == list(range(5))
    assert elements(session, numbers.skip(-2)) == []


def test_generators_and_padding(session):
    def sentences():
        for k in range(1, 4):
            yield [k] * k, float(k)

    dataset = Dataset.from_generator(sentences, (tf.int32, tf.float32), ([None], []))
    assert dataset.output_shapes[0].as_list() == [None]
    batches = elements(session, dataset.padded_batch(2, ([None], [])))
    assert batches[0][0].tolist() == [[1, 0], [2, 2]] and batches[0][1].tolist() == [1.0, 2.0]
    assert batches[1][0].tolist() == [[3, 3, 3]]
    with pytest.raises(ValueError, match=r"shapes \[\(1,\), \(2,\)\] in one batch"):
        elements(session, dataset.batch(2))


def test_what_is_fed_is_read_when_the_iterator_starts(session):
    x = tf.placeholder(tf.float32, [None, 2])
    dataset = Dataset.from_tensor_slices(x)
    iterator = dataset.make_initializable_iterator()
    row = iterator.get_next()
    assert row.get_shape().as_list() == [2]
    with pytest.raises(RuntimeError, match="not initialised"):
        session.run(row)
    session.run(iterator.initializer, {x: [[1, 2], [3, 4]]})
    assert session.run(row * 2.0).tolist() == [2, 4]
    with pytest.raises(ValueError, match="make_initializable_iterator"):
        dataset.make_one_shot_iterator()


def test_one_iterator_for_several_datasets(session):
    train, test = Dataset.range(3), Dataset.range(10, 12)
    iterator = tf.data.Iterator.from_structure(train.output_types, train.output_shapes)
    item = iterator.get_next()
    for dataset, first in ((train, 0), (test, 10), (train, 0)):
        session.run(iterator.make_initializer(dataset))
        assert session.run(item) == first
    with pytest.raises(ValueError, match="types"):
        iterator.make_initializer(Dataset.from_tensors(1.0))


def test_the_error_of_a_thread_reaches_join():
    coordinator = tf.train.Coordinator()

    def fail():
        with coordinator.stop_on_exception():
            raise KeyError("broken")

    def wait():
        coordinator.wait_for_stop()

    threads = [threading.Thread(target=target) for target in (wait, fail)]
    for thread in threads:
        thread.start()
    with pytest.raises(KeyError, match="broken"):
        coordinator.join(threads)
    assert coordinator.should_stop() and coordinator.joined
    coordinator.clear_stop()
    coordinator.request_stop(tf.errors.OutOfRangeError("no more", "Stop."))
    coordinator.join([])


def test_functions_of_datasets_and_iterators():
    dataset = tf.data.Dataset.range(3).batch(2).prefetch(tf.data.AUTOTUNE)
    iterator = tf.data.make_initializable_iterator(dataset)
    following = iterator.get_next()
    for typed in (dataset, iterator):
        assert tf.data.get_output_types(typed) is tf.int64
        assert tf.data.get_output_shapes(typed).as_list() == [None]
    with tf.Session() as session:
        assert session.run(tf.data.make_one_shot_iterator(dataset).get_next()).tolist() == [0, 1]
        for _ in range(2):
            session.run(iterator.initializer)
            assert [session.run(following).tolist() for _ in range(2)] == [[0, 1], [2]]


def test_numbers_of_a_dataset_may_be_told_when_an_iterator_starts(session):
    n = tf.placeholder(tf.int64, [])
    dataset = Dataset.range(n).skip(n // 4).take(n).shard(1, n - n).batch(n // 2).repeat(n // n)
    iterator = dataset.make_initializable_iterator()
    following = iterator.get_next()
    for count, wanted in ((8, [[2, 3, 4, 5], [6, 7]]), (4, [[1, 2], [3]])):
        session.run(iterator.initializer, {n: count})
        assert [session.run(following).tolist() for _ in wanted] == wanted
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(following)
    session.run(iterator.initializer, {n: 1})
    with pytest.raises(ValueError, match="batch: batch_size is 0"):
        session.run(following)
    constant = Dataset.range(4).batch(tf.constant(2), drop_remainder=True)
    assert constant.output_shapes.as_list() == [2]
    shuffled = Dataset.range(6).shuffle(n).padded_batch(n, []).make_initializable_iterator()
    session.run(shuffled.initializer, {n: 3})
    assert session.run(shuffled.get_next()).shape == (3,)


def numbers_of(session, dataset):
    return [numpy.asarray(one).tolist() for one in elements(session, dataset)]


def test_datasets_of_elements(session, tmp_path):
    flat = Dataset.range(3).flat_map(lambda x: Dataset.from_tensor_slices([x, x * 10]))
    assert numbers_of(session, flat) == [0, 0, 1, 10, 2, 20]
    blocks = Dataset.range(5).interleave(
        lambda x: Dataset.from_tensors(x).repeat(3), cycle_length=2, block_length=2
    )
    assert numbers_of(session, blocks) == [0, 0, 1, 1, 0, 1, 2, 2, 3, 3, 2, 3, 4, 4, 4]
    triangle = Dataset.range(4).interleave(lambda x: Dataset.from_tensor_slices(tf.range(x)), cycle_length=3)
    assert numbers_of(session, triangle) == [0, 0, 0, 1, 1, 2]
    with pytest.raises(ValueError, match="returns no dataset"):
        Dataset.range(3).flat_map(lambda x: x)
    with pytest.raises(ValueError, match="cycle_length is 0"):
        Dataset.range(3).interleave(Dataset.from_tensors, 0)
    for name, lines in {"one": "head\na\nb\n", "two": "head\nc\n"}.items():
        (tmp_path / f"{name}.csv").write_text(lines)
    pattern = str(tmp_path / "*.csv")
    files = Dataset.list_files(pattern, shuffle=False)
    lines = files.flat_map(lambda path: tf.data.TextLineDataset(path).skip(1))
    assert elements(session, lines) == [b"a", b"b", b"c"]
    assert sorted(elements(session, Dataset.list_files(pattern))) == elements(session, files)
    with pytest.raises(tf.errors.InvalidArgumentError, match="no files fit"):
        elements(session, Dataset.list_files(str(tmp_path / "none*")))


def test_reduced(session):
    assert session.run(Dataset.range(5).reduce(numpy.int64(0), lambda total, x: total + x)) == 10
    pairs = Dataset.from_tensor_slices(([1.0, 2.0], [3.0, 5.0]))
    total, count = pairs.reduce((0.0, 0), lambda state, pair: (state[0] + pair[0] * pair[1], state[1] + 1))
    assert session.run([total, count]) == [13.0, 2]


def test_iterators_that_are_fed(session):
    handle = tf.placeholder(tf.string, [])
    train, test = Dataset.range(3), Dataset.range(10, 20).map(lambda x: x * 2)
    item = tf.data.Iterator.from_string_handle(handle, train.output_types, train.output_shapes).get_next()
    once, again = train.make_one_shot_iterator(), test.make_initializable_iterator()
    first, second = session.run([once.string_handle(), again.string_handle()])
    with pytest.raises(tf.errors.OpError, match="not initialised"):
        session.run(item, {handle: second})
    session.run(again.initializer)
    found = [session.run(item, {handle: given}) for given in (first, second, first, second, first)]
    assert found == [0, 20, 1, 22, 2]
    with pytest.raises(tf.errors.OutOfRangeError):
        session.run(item, {handle: first})
    with pytest.raises(tf.errors.InvalidArgumentError, match="no iterator has the handle"):
        session.run(item, {handle: b"other"})
    other = Dataset.from_tensors(1.0).make_one_shot_iterator()
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected"):
        session.run(item, {handle: session.run(other.string_handle())})


def test_generators_are_given_arrays(session):
    def pairs(words, count, scale):
        assert words.tolist() == [b"a", b"bc"] and count == 2
        for word in words:
            yield len(word) * scale, word

    data = Dataset.from_generator(pairs, (tf.float32, tf.string), args=(["a", "bc"], 2, tf.constant(1.5)))
    assert elements(session, data) == [(1.5, b"a"), (3.0, b"bc")]


def test_padded_strings(session):
    data = Dataset.from_generator(lambda: iter([["a"], ["b", "c"]]), tf.string, [None])
    found = elements(session, data.padded_batch(2, [None], padding_values="-"))
    assert found[0].tolist() == [[b"a", b"-"], [b"b", b"c"]]
    scalars = Dataset.from_generator(
        lambda: iter([(["a"], "x"), ([], "yz")]), (tf.string, tf.string), ([None], ())
    )
    (words, names), *_ = elements(session, scalars.padded_batch(2, ([None], ())))
    assert words.tolist() == [[b"a"], [b""]] and names.tolist() == [b"x", b"yz"]


def test_functions_of_elements_read_tensors_around_them():
    with tf.Graph().as_default(), tf.Session() as session:
        scale, first = tf.placeholder(tf.int64, []), tf.Variable(numpy.int64(7))
        three = tf.constant(3, tf.int64)
        session.run(first.initializer)
        dataset = tf.data.Dataset.range(6).map(lambda x: (x * scale, tf.concat([[first], [x + three]], 0)))
        dataset = dataset.filter(lambda a, b: a > scale)
        iterator = dataset.padded_batch(2, ([], [None]), (first, scale)).make_initializable_iterator()
        a, b = iterator.get_next()
        for factor in (2, 5):
            session.run(iterator.initializer, {scale: factor})
            assert session.run([a, b])[0].tolist() == [2 * factor, 3 * factor]
            found = session.run([a, b])
            assert [one.tolist() for one in found] == [[4 * factor, 5 * factor], [[7, 7], [7, 8]]]


def test_functions_inside_of_functions_read_tensors_around_both():
    with tf.Graph().as_default(), tf.Session() as session:
        more = tf.range(tf.constant(10, tf.int64), 12)  # which only a run computes
        dataset = tf.data.Dataset.range(2).flat_map(
            lambda k: tf.data.Dataset.from_tensor_slices(more).map(lambda x: x + 100 * k + more[0])
        )
        following = dataset.make_one_shot_iterator().get_next()
        assert [session.run(following) for _ in range(4)] == [20, 21, 120, 121]
        total = tf.data.Dataset.range(3).reduce(numpy.int64(1), lambda state, x: state + x * more[1])
        assert session.run(total) == 34
        window = tf.contrib.data.group_by_window(
            lambda x: x % more[0], lambda key, group: group.batch(2).map(lambda x: x + key + more[1]), 2
        )
        grouped = tf.data.Dataset.from_tensor_slices(numpy.array([1, 2, 11], "int64")).apply(window)
        assert session.run(grouped.make_one_shot_iterator().get_next()).tolist() == [13, 23]


def test_padding_values_that_a_run_tells():
    with tf.Graph().as_default(), tf.Session() as session:
        words = tf.contrib.lookup.index_table_from_tensor(tf.constant(["a", "b"]), default_value=5)
        blank = tf.cast(words.lookup(tf.constant("b")), tf.int32)
        rows = tf.data.Dataset.from_generator(lambda: iter([[3], [4, 4]]), tf.int32, [None])
        iterator = rows.padded_batch(2, [None], blank).make_initializable_iterator()
        session.run([tf.tables_initializer(), iterator.initializer])
        assert session.run(iterator.get_next()).tolist() == [[3, 1], [4, 4]]


def test_the_end_is_told_in_tensorflow_s_words():
    with tf.Graph().as_default(), tf.Session() as session:
        following = tf.data.Dataset.range(0).make_one_shot_iterator().get_next()
        with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
            session.run(following)


def test_reduce_leaves_sizes_open_that_the_function_changes():
    with tf.Graph().as_default(), tf.Session() as session:
        rows = tf.data.Dataset.from_tensor_slices(tf.ones([4, 3]))
        total = rows.reduce(tf.zeros([3]), lambda state, row: tf.reduce_sum(state + row))
        assert session.run(total) == 120.0  # 3, then thrice the sum of three and three times itself
        joined = rows.reduce(tf.zeros([0, 3]), lambda state, row: tf.concat([state, row[None]], 0))
        assert joined.shape.as_list() == [None, 3] and session.run(joined).tolist() == [[1.0] * 3] * 4


def test_reduce_refuses_another_state():
    with tf.Graph().as_default():
        rows = tf.data.Dataset.from_tensor_slices(tf.ones([4, 3]))
        with pytest.raises(TypeError, match="the function returns .* float64"):
            rows.reduce(tf.zeros([3]), lambda state, row: tf.cast(state + row, tf.float64))
        with pytest.raises(ValueError, match="the function returns the structure"):
            rows.reduce(tf.zeros([3]), lambda state, row: (state, row))
