"""Elements of a ``TensorArray`` are written once, as in TensorFlow 1: a second write raises at its line."""

import traceback

import numpy
import pytest

import twofold.static as tf

N = 3


def array(size=N, **options):
    return tf.TensorArray(tf.float32, size, **options)


def loop(body, *start):
    return tf.while_loop(lambda i, *_: i < N, lambda i, *rest: (i + 1, *body(i, *rest)), (0, *start))[1]


def inner(i, t):
    return (tf.while_loop(lambda j, _: j < 2, lambda j, t: (j + 1, t.write(i + j, 1.0)), (0, t))[1],)


def doubled(i, t):
    value = t.read(i)
    return (t.write(i, value * 2.0),)


def in_a_branch(k, start, *writes):
    """An array that one of two branches writes to, the first of them for k = 1."""
    return tf.cond(k > 0, *[lambda write=write: write(start) for write in writes])


def called(index):
    """A loop whose body calls Python, and writes to ``index``."""

    def body(i, t):
        value = tf.py_func(lambda i: numpy.float32(i), [i], tf.float32)
        value.set_shape([])
        return (t.write(index(i), value),)

    return body


def unchanged(t):
    return t


AGAIN = {
    "one index in each iteration": lambda k: loop(lambda i, t: (t.write(0, 1.0),), array()),
    "twice in an iteration": lambda k: loop(lambda i, t: (t.write(i, 1.0).write(i, 2.0),), array()),
    "before the loop": lambda k: loop(lambda i, t: (t.write(i, 1.0),), array().write(1, 5.0)),
    "after the loop": lambda k: loop(lambda i, t: (t.write(i, 1.0),), array()).write(1, 5.0),
    "unstacked before": lambda k: loop(doubled, array().unstack([1.0, 2.0, 3.0])),
    "before the loop, to an index with a default": lambda k: loop(
        lambda i, t: (t.write(i, 1.0),), array().write(tf.placeholder_with_default(1, []), 5.0)
    ),
    "unstacked after the loop": lambda k: loop(lambda i, t: (t.write(i, 1.0),), array()).unstack([1.0, 2.0, 3.0]),
    "split after an index that is fed": lambda k: array().write(k, [1.0]).split([1.0, 2.0, 3.0], [1, 1, 1]),
    "by an inner loop": lambda k: loop(inner, array(N + 1)),
    "by two loops": lambda k: loop(lambda i, t: (t.write(i, 1.0),), loop(lambda i, t: (t.write(i, 1.0),), array())),
    "a fraction that is counted": lambda k: tf.while_loop(
        lambda f, t: f < 2.0, lambda f, t: (f + 0.5, t.write(tf.cast(f, tf.int32), f)), (0.0, array())
    )[1],
    "while it grows": lambda k: loop(lambda i, t: (t.write(i // 2, 1.0),), array(0, dynamic_size=True)),
    "an index that is fed": lambda k: array().write(k, 1.0).write(k, 2.0),
    "scattered to an index that is fed": lambda k: array().write(1, 1.0).scatter([2, k], [1.0, 2.0]),
    "after a branch": lambda k: in_a_branch(
        k, array(), lambda t: t.write(0, 1.0), lambda t: t.write(1, 2.0)
    ).write(0, 3.0),
    "after a branch that wrote first": lambda k: in_a_branch(
        k, array(), lambda t: t.write(0, 1.0), unchanged
    ).write(0, 3.0),
    "an index that is fed to a branch": lambda k: in_a_branch(
        k, array(), lambda t: t.write(k, 1.0), lambda t: t.write(2, 1.0)
    ).write(1, 3.0),
    "by a branch in a loop": lambda k: loop(
        lambda i, t: (tf.cond(i < 2, lambda: t.write(0, 1.0), lambda: t),), array().write(1, 1.0)
    ),
    "by two branches": lambda k: in_a_branch(
        k,
        in_a_branch(k, array(), lambda t: t.write(0, 1.0), lambda t: t.write(1, 2.0)),
        lambda t: t.write(0, 3.0),
        lambda t: t.write(1, 3.0),
    ),
    "by a loop that calls Python": lambda k: loop(called(lambda i: i // 2), array()),
    "before a loop that calls Python": lambda k: loop(called(lambda i: i), array().write(1, 5.0)),
    "unstacked before a loop that calls Python": lambda k: loop(called(lambda i: i), array().unstack([1.0, 2.0])),
}  # fmt: skip


@pytest.mark.parametrize("name", AGAIN)
def test_a_second_write_raises_in_the_run(name):
    with tf.Graph().as_default(), tf.Session() as session:
        k = tf.placeholder(tf.int32, [])
        elements = AGAIN[name](k).stack()
        for _ in range(2):
            with pytest.raises(tf.errors.InvalidArgumentError, match="has already been written to") as raised:
                session.run(elements, {k: 1})
    assert "write" in traceback.extract_tb(raised.value.__traceback__)[-1].line


@pytest.mark.parametrize(("index", "value"), [(lambda i: N - 1 - i, "210"), (lambda i: i, "012")])
def test_indices_that_a_loop_counts(index, value):
    with tf.Graph().as_default(), tf.Session() as session:
        rows = loop(lambda i, t: (t.write(index(i), tf.cast(i, tf.float32)),), array()).stack()
        assert session.run(rows).tolist() == [float(k) for k in value]


def test_gradients_pass_through_writes_that_a_run_checks():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [])
        filled = loop(lambda i, t: (t.write(2 * i, x).write(2 * i + 1, x * x),), array(2 * N + 1))
        rows = filled.write(2 * N, x * x * x).stack()
        assert session.run(rows, {x: 2.0}).tolist() == [2.0, 4.0] * N + [8.0]
        assert session.run(tf.gradients(rows, x), {x: 2.0}) == [N * (1 + 2 * 2.0) + 3 * 2.0**2]


def test_gradients_pass_through_branches_that_a_run_checks():
    with tf.Graph().as_default(), tf.Session() as session:
        x, k = tf.placeholder(tf.float32, []), tf.placeholder(tf.int32, [])
        filled = in_a_branch(k, array(), lambda t: t.write(0, x * x), lambda t: t.write(1, 3.0 * x)).write(
            2, x
        )
        rows = filled.stack()
        for number, wanted, slope in ((1, [4.0, 0.0, 2.0], 2 * 2.0 + 1), (0, [0.0, 6.0, 2.0], 3.0 + 1)):
            assert session.run(rows, {x: 2.0, k: number}).tolist() == wanted
            assert session.run(tf.gradients(rows, x), {x: 2.0, k: number}) == [slope]


def test_a_loop_that_calls_python_writes_behind_what_is_written():
    with tf.Graph().as_default(), tf.Session() as session:
        rows = loop(called(lambda i: i), array(N + 1).write(N, 5.0)).stack()
        assert session.run(rows).tolist() == [0.0, 1.0, 2.0, 5.0]


def test_unstack_keeps_the_size():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None])
        rows = array().unstack(x).stack()
        assert session.run(rows, {x: [1.0, 2.0]}).tolist() == [1.0, 2.0, 0.0]
        assert session.run(array().unstack([[1.0, 2.0]]).stack()).tolist() == [
            [1.0, 2.0],
            [0.0, 0.0],
            [0.0, 0.0],
        ]
        with pytest.raises(tf.errors.InvalidArgumentError, match="4 rows for an array of size 3"):
            session.run(rows, {x: [1.0, 2.0, 3.0, 4.0]})
        for again in (lambda t: t.unstack([1.0]), lambda t: t.split([1.0, 2.0, 3.0], [1, 1, 1])):
            with pytest.raises(tf.errors.InvalidArgumentError, match="index 1 has already been written to"):
                again(array().write(1, 5.0))


def test_branches_return_arrays():
    with tf.Graph().as_default(), tf.Session() as session:

        def body(i, t):
            return (tf.cond(i < 1, lambda: t.write(i, 1.0), lambda: t.write(i, 2.0)),)

        assert session.run(loop(body, array()).stack()).tolist() == [1.0, 2.0, 2.0]
        p = tf.placeholder(tf.bool, [])
        rows = tf.cond(p, lambda: array().write(0, 1.0), lambda: array().write(2, 2.0)).write(1, 3.0).stack()
        assert session.run(rows, {p: True}).tolist() == [1.0, 3.0, 0.0]
        assert session.run(rows, {p: False}).tolist() == [0.0, 3.0, 2.0]


def test_an_array_is_unstacked_after_a_loop_without_iterations():
    with tf.Graph().as_default(), tf.Session() as session:
        n, x = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [3])
        _, left = tf.while_loop(lambda i, t: i < n, lambda i, t: (i + 1, t.write(i, 1.0)), (0, array()))
        rows = left.unstack(x * x).stack()
        fed = {n: 0, x: [1.0, 2.0, 3.0]}
        assert session.run(rows, fed).tolist() == [1.0, 4.0, 9.0]
        assert session.run(tf.gradients(rows, x)[0], fed).tolist() == [2.0, 4.0, 6.0]
        with pytest.raises(tf.errors.InvalidArgumentError, match="has already been written to"):
            session.run(rows, {**fed, n: 1})
