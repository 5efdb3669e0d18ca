"""``TensorArray(dynamic_size=True)`` grows with what is written to it, in loops and outside. TensorFlow's numbers."""

import numpy
import pytest

import twofold.static as tf


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as found:
        yield found


def growing(dtype=tf.float32, **options):
    return tf.TensorArray(dtype, size=0, dynamic_size=True, **options)


def test_written_in_a_loop(session):
    _, array = tf.while_loop(
        lambda i, _: i < 4, lambda i, t: (i + 1, t.write(i, tf.cast(i * i, tf.float32))), [0, growing()]
    )
    assert session.run(array.stack()).tolist() == [0.0, 1.0, 4.0, 9.0]
    assert session.run(array.size()) == 4


def test_the_loop_decides_how_large_it_is(session):
    n = tf.placeholder(tf.int32, [])
    _, array = tf.while_loop(
        lambda i, _: i < n, lambda i, t: (i + 1, t.write(i, tf.cast([i, i], tf.float32))), [0, growing()]
    )
    rows = array.stack()
    assert rows.shape.as_list() == [None, 2]
    for count in (1, 3, 2, 3):
        found, size = session.run([rows, array.size()], {n: count})
        assert (found.tolist(), size) == ([[k, k] for k in range(count)], count)


def test_a_loop_that_does_not_run(session):
    n = tf.placeholder(tf.int32, [])
    _, array = tf.while_loop(lambda i, _: i < n, lambda i, t: (i + 1, t.write(i, 1.0)), [0, growing()])
    size, rows = session.run([array.size(), array.stack()], {n: 0})
    assert (size, rows.shape) == (0, (0,))


def test_values_decide_when_a_loop_ends_and_gradients_pass(session):
    x = tf.placeholder(tf.float32, [])
    count, _, array = tf.while_loop(
        lambda i, a, t: a < 50.0, lambda i, a, t: (i + 1, a * x, t.write(i, a)), [0, 1.0, growing()]
    )
    total = tf.reduce_sum(array.stack())
    (gradient,) = tf.gradients(total, x)
    assert session.run([count, array.stack()], {x: 100.0})[1].tolist() == [1.0]
    assert session.run([count, total, gradient], {x: 3.0}) == [4, 40.0, 1.0 + 6.0 + 27.0]
    assert session.run([count, total, gradient], {x: 2.0})[:2] == [6, 63.0]


def test_elements_are_skipped_and_read_while_it_grows(session):
    _, sparse = tf.while_loop(
        lambda i, _: i < 3, lambda i, t: (i + 1, t.write(i * 2, tf.cast(i + 1, tf.float32))), [0, growing()]
    )
    assert session.run(sparse.stack()).tolist() == [1.0, 0.0, 2.0, 0.0, 3.0]
    first = growing(clear_after_read=False).write(0, 1.0)
    _, powers = tf.while_loop(
        lambda i, _: i < 5, lambda i, t: (i + 1, t.write(i, t.read(i - 1) * 2.0)), [1, first]
    )
    assert session.run(powers.stack()).tolist() == [1.0, 2.0, 4.0, 8.0, 16.0]


def test_its_size_is_asked_for_while_it_grows(session):
    _, array = tf.while_loop(
        lambda i, _: i < 4, lambda i, t: (i + 1, t.write(t.size(), tf.cast(i, tf.float32))), [0, growing()]
    )
    assert session.run(array.stack()).tolist() == [0.0, 1.0, 2.0, 3.0]


def test_nested_loops_and_several_arrays(session):
    def outer(i, numbers, rows):
        _, numbers = tf.while_loop(
            lambda j, _: j < 2, lambda j, t: (j + 1, t.write(i * 2 + j, i * 10 + j)), [0, numbers]
        )
        return i + 1, numbers, rows.write(i, [1.0, 2.0])

    _, numbers, rows = tf.while_loop(lambda i, *_: i < 3, outer, [0, growing(tf.int32), growing()])
    assert session.run(numbers.stack()).tolist() == [0, 1, 10, 11, 20, 21]
    assert session.run(rows.stack()).shape == (3, 2)
    assert session.run(rows.write(3, [9.0, 9.0]).stack()).shape == (4, 2)


def test_a_loop_with_effects(session):
    def body(i, array):
        made = tf.py_func(lambda k: numpy.float32(k * 2), [i], tf.float32)
        made.set_shape([])
        return i + 1, array.write(i, made)

    _, array = tf.while_loop(lambda i, _: i < 4, body, [0, growing()])
    assert session.run(array.stack()).tolist() == [0.0, 2.0, 4.0, 6.0]


def test_outside_loops(session):
    i = tf.placeholder(tf.int32, [])
    array = growing().write(0, 1.0).write(1, 2.0).write(i, 5.0)
    assert session.run(array.stack(), {i: 3}).tolist() == [1.0, 2.0, 0.0, 5.0]
    assert session.run(growing().scatter([2, 0, i], [[1.0], [2.0], [3.0]]).size(), {i: 6}) == 7


def test_an_array_of_a_fixed_size_does_not_grow(session):
    array = tf.TensorArray(tf.float32, 2)
    assert array.write(0, [1.0, 2.0]).stack().shape.as_list() == [2, 2]
    _, array = tf.while_loop(lambda i, _: i < 4, lambda i, t: (i + 1, t.write(i, 1.0)), [0, array])
    with pytest.raises(IndexError):
        session.run(array.stack())


def test_elements_of_another_shape_than_was_said_raise(session):
    with pytest.raises(ValueError, match="for elements of shape"):
        tf.TensorArray(tf.float32, 2, element_shape=[2]).write(0, [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="handle is not offered"):
        tf.TensorArray(tf.float32, 2, handle=tf.constant(1))


@pytest.mark.parametrize("indices", [[0, 2], [1], None])
def test_the_declared_shape_of_gathered_elements_is_that_of_the_run(session, indices):
    fed = [2, 2, 0, 1]
    positions = tf.placeholder(tf.int32, [None]) if indices is None else tf.constant(indices)
    feeds = {positions: fed} if indices is None else {}
    rows = numpy.arange(6, dtype=numpy.float32).reshape(3, 2)
    gathered = tf.TensorArray(tf.float32, 3).unstack(rows).gather(positions)
    assert gathered.shape.as_list() == [None if indices is None else len(indices), 2]
    assert session.run(gathered, feeds).tolist() == rows[fed if indices is None else indices].tolist()
    unknown = tf.placeholder(tf.float32)
    found = tf.TensorArray(tf.float32, 3).unstack(unknown).gather(positions)
    assert found.shape.dims is None
    assert session.run(found, {unknown: rows, **feeds}).shape[1:] == (2,)


@pytest.mark.parametrize(
    "size, rows, lengths, words",
    [
        (0, 2, [], "no lengths for 2 rows"),
        (0, 0, [], "no lengths for 0 rows"),
        (3, 2, [1, 1], "2 parts for an array of size 3"),
        (1, 2, [1, 1], "2 parts for an array of size 1"),
    ],
)
def test_parts_of_a_split_fit_the_array(session, size, rows, lengths, words):
    with pytest.raises(ValueError, match=f"{words}.*test_growing_arrays"):
        tf.TensorArray(tf.float32, size).split(tf.ones([rows, 2]), lengths)
    given = tf.placeholder(tf.int32, [None])
    parts = tf.TensorArray(tf.float32, size).split(tf.ones([rows, 2]), given).stack()
    with pytest.raises(ValueError, match=words):
        session.run(parts, {given: lengths})


def test_a_split_makes_an_array_larger(session):
    assert session.run(growing().split(tf.ones([4, 3]), [2, 2]).size()) == 2
    array = tf.TensorArray(tf.float32, 2).split(tf.ones([4, 3]), [2, 2])
    assert session.run(array.stack()).shape == (2, 2, 3)


@pytest.mark.parametrize(
    "again",
    [
        lambda array: array.write(0, 1.0).write(1, 2.0).write(0, 3.0),
        lambda array: array.write(tf.constant(0), 1.0).write(tf.constant(0), 3.0),
        lambda array: array.unstack([1.0, 2.0]).write(1, 3.0),
        lambda array: array.scatter([0, 1], [1.0, 2.0]).write(0, 3.0),
        lambda array: array.write(1, 1.0).scatter([0, 1], [1.0, 2.0]),
    ],
)
def test_an_element_is_written_once(again):
    with (
        tf.Graph().as_default(),
        pytest.raises(tf.errors.InvalidArgumentError, match="has already been written to"),
    ):
        again(tf.TensorArray(tf.float32, 2))


def test_what_is_written_to_another_array_does_not_count():
    with tf.Graph().as_default(), tf.Session() as session:
        array = tf.TensorArray(tf.float32, 2)
        array.write(0, 1.0)
        assert session.run(array.write(0, 2.0).write(1, 3.0).stack()).tolist() == [2.0, 3.0]


def test_arrays_have_the_names_of_methods_before_tensorflow_1():
    with tf.Graph().as_default(), tf.Session() as session:
        array = tf.TensorArray(tf.float32, 2).unpack([[1.0, 2.0], [3.0, 4.0]])
        assert session.run(array.pack()).tolist() == [[1, 2], [3, 4]]
