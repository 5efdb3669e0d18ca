"""Loops whose variables change shape, choices between values of different sizes, effects in both, and derivatives.

The expected values were recorded from TensorFlow 2.21, ``tf.compat.v1`` without version 2 behaviour.
"""

import numpy
import pytest

import twofold.static as tf

GROWING = [tf.TensorShape([]), tf.TensorShape([None])]


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as found:
        yield found


def lists(values):
    return [numpy.asarray(value).tolist() for value in values]


def repeated(count, start, change, shapes=GROWING):
    """The variable after ``count`` iterations of ``change(i, x)``."""
    return tf.while_loop(
        lambda i, _: i < count, lambda i, x: [i + 1, change(i, x)], [0, start], shape_invariants=shapes
    )[1]


def counting(calls):
    """A function that notes its argument, and doubles it."""

    def function(x):
        calls.append(float(x))
        return numpy.float32(x * 2)

    return function


def test_a_growing_variable_and_its_derivative(session):
    start = tf.constant([3.0])
    found = repeated(4, start, lambda i, x: tf.concat([x, x[-1:] * 2], 0))
    assert found.get_shape().as_list() == [None]
    assert lists(session.run([found, tf.gradients(found, start)[0]])) == [[3, 6, 12, 24, 48], [31]]


def test_the_rank_changes(session):
    found = repeated(
        3, tf.constant(1.0), lambda i, x: tf.expand_dims(x, 0), [tf.TensorShape([]), tf.TensorShape(None)]
    )
    assert session.run(found).shape == (1, 1, 1)


def test_the_condition_reads_the_shape_and_no_invariant_is_needed_for_unknown_sizes(session):
    x = tf.placeholder(tf.float32, [None, 2])
    found = tf.while_loop(lambda x: tf.shape(x)[0] < 10, lambda x: tf.concat([x, x], 0), [x])
    assert [session.run(tf.shape(found), {x: numpy.ones((k, 2))})[0] for k in (1, 3, 11)] == [16, 12, 11]
    slope = tf.gradients(tf.reduce_sum(found * found), x)[0]
    assert session.run(slope, {x: numpy.ones((3, 2))}).tolist() == [[8, 8]] * 3


def test_a_loop_that_is_not_entered(session):
    w, x, count = tf.constant(2.0), tf.constant([1.0, 5.0]), tf.placeholder(tf.int32, [])
    found = repeated(count, x, lambda i, x: tf.concat([x, x * w], 0))
    slopes = tf.gradients(tf.reduce_sum(found * found), [x, w])
    assert lists(session.run([found, *slopes], {count: 0})) == [[1, 5], [2, 10], 0]


def test_loops_in_loops(session):
    w, start = tf.constant(2.0), tf.constant([1.0, 2.0])

    def outer(i, x):
        return w * repeated(i + 1, x, lambda j, y: tf.concat([y, y[:1] * w], 0))

    found = repeated(2, start, outer)
    expected = [[4, 8, 8, 8, 8], [28, 4], 48]
    assert lists(session.run([found, *tf.gradients(found, [start, w])])) == expected


def test_loops_after_each_other(session):
    w, start = tf.constant(2.0), tf.constant([1.0])
    a = repeated(2, start, lambda i, x: tf.concat([x, x[:1] * w], 0))
    b = repeated(2, a * w, lambda i, x: tf.concat([x, x[:1] * w], 0))
    y = tf.reduce_sum(b) * w + tf.reduce_sum(a)
    assert lists(session.run([y, *tf.gradients(y, [start, w, a])])) == [41, [41], 54, [21, 5, 5]]


def test_an_array_beside_a_growing_variable(session):
    w = tf.constant(2.0)

    def body(i, x, array):
        y = tf.concat([x, x[-1:] * w], 0)
        return i + 1, y, array.write(i, tf.reduce_sum(y))

    start = [0, tf.constant([1.0]), tf.TensorArray(tf.float32, 3)]
    shapes = [*GROWING, tf.TensorShape(None)]
    array = tf.while_loop(lambda i, x, array: i < 3, body, start, shape_invariants=shapes)[2].stack()
    assert lists(session.run([array, *tf.gradients(array, w)])) == [[3, 7, 15], 23]


def test_samples_of_an_iteration_are_those_of_its_derivative(session):
    w = tf.constant(2.0)

    def body(i, x, kept):
        sample = tf.random_uniform([])
        return i + 1, tf.concat([x, [w * sample]], 0), tf.concat([kept, [sample]], 0)

    start = [0, tf.zeros([0]), tf.zeros([0])]
    shapes = [*GROWING, tf.TensorShape([None])]
    _, x, kept = tf.while_loop(lambda i, *_: i < 3, body, start, shape_invariants=shapes)
    slope, samples = session.run([tf.gradients(x, w)[0], kept])
    assert len(set(samples.tolist())) == 3
    assert slope == pytest.approx(samples.sum())


def test_training_through_a_loop_with_an_assignment(session):
    w, count = tf.Variable([1.0, 2.0]), tf.Variable(0.0)

    def change(i, x):
        with tf.control_dependencies([tf.assign_add(count, 1.0)]):
            return tf.concat([x, w * tf.reduce_sum(x)], 0)

    loss = tf.reduce_sum(repeated(2, tf.ones([1]), change))
    step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    session.run(tf.global_variables_initializer())
    assert session.run([loss, step, count])[0] == 16.0
    numpy.testing.assert_allclose(session.run(w), [0.2, 1.2], rtol=1e-6)
    assert session.run(count) == 2.0


def test_a_variable_that_the_loop_changes(session):
    v, start = tf.Variable(1.0, use_resource=True), tf.constant(2.0)

    def body(i, x):
        with tf.control_dependencies([tf.assign_add(v, 1.0)]):
            return i + 1, x * v.read_value()

    x = tf.while_loop(lambda i, _: i < 3, body, [0, start])[1]
    session.run(tf.global_variables_initializer())
    assert session.run([x, tf.gradients(x, start)[0]]) == [48.0, 24.0]


def test_python_functions_run_once_an_iteration_with_a_derivative(session):
    calls = []
    w = tf.constant(3.0)

    def body(i, x):
        found = tf.py_func(counting(calls), [x], tf.float32)
        found.set_shape([])
        return i + 1, x * w + found

    x = tf.while_loop(lambda i, _: i < 3, body, [0, tf.constant(1.0)])[1]
    assert session.run([x, tf.gradients(x, w)[0]]) == [125.0, 49.0]
    assert calls == [1.0, 5.0, 25.0]


def test_python_functions_in_branches_of_a_loop(session):
    calls = []
    start, w = tf.constant(2.0), tf.constant(3.0)

    def called(x):
        found = tf.py_func(counting(calls), [x], tf.float32)
        found.set_shape([])
        return x * (found / 2 + 1)

    def body(i, x):
        return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: called(x), lambda: x * w)

    x = tf.while_loop(lambda i, _: i < 3, body, [0, start])[1]
    assert session.run([x, *tf.gradients(x, [start, w])]) == [342.0, 171.0, 114.0]
    assert calls == [2.0, 18.0]


@pytest.mark.parametrize("mapped", [True, False])
def test_python_functions_along_an_axis(session, mapped):
    w, xs = tf.constant(3.0), tf.constant([1.0, 2.0, 4.0])

    def more(x):
        found = tf.py_func(lambda x: numpy.float32(x + 1), [x], tf.float32)
        found.set_shape([])
        return found

    if mapped:
        y, expected = tf.map_fn(lambda x: x * more(x) * w, xs), [[6, 18, 60], [72, 324, 1800], 2640]
    else:
        y = tf.scan(lambda total, x: total * more(x) * w + x, xs, tf.constant(1.0))
        expected = [[7, 65, 979], [265514, 29500, 1958], 1786878]
    assert lists(session.run([y, *tf.gradients(tf.reduce_sum(y * y), [xs, w])])) == expected


def test_assignments_in_branches_and_conditions_of_loops(session):
    v, rows, tests = tf.Variable(0.0), tf.Variable(numpy.zeros(4, numpy.float32)), tf.Variable(0)

    def condition(i):
        with tf.control_dependencies([tf.assign_add(tests, 1)]):
            return i < 3

    def body(i):
        up = tf.cond(tf.equal(i % 3, 0), lambda: tf.assign_add(v, 10.0), lambda: tf.assign_add(v, 1.0))
        with tf.control_dependencies([up, tf.scatter_add(rows, [i], [1.0])]):
            return tf.identity(i + 1)

    looped = tf.while_loop(condition, body, [tf.constant(0)])
    session.run(tf.global_variables_initializer())
    session.run(looped)
    assert lists(session.run([v, rows, tests])) == [12, [1, 1, 1, 0], 4]


def test_branches_of_different_sizes(session):
    choice, x = tf.placeholder(tf.bool, []), tf.constant([1.0, 2.0, 3.0])
    y = tf.cond(choice, lambda: x[:1], lambda: x)
    assert y.get_shape().as_list() == [None]
    fetches = [y, tf.gradients(tf.reduce_sum(y * y), x)[0]]
    assert lists(session.run(fetches, {choice: True})) == [[1], [2, 0, 0]]
    assert lists(session.run(fetches, {choice: False})) == [[1, 2, 3], [2, 4, 6]]
    other = tf.placeholder(tf.bool, [])
    nested = tf.cond(choice, lambda: tf.cond(other, lambda: x[:1], lambda: x[:2]), lambda: x)
    sizes = [session.run(nested, {choice: a, other: b}).size for a in (True, False) for b in (True, False)]
    assert sizes == [1, 2, 3, 3]


def test_cases_of_different_sizes(session):
    number, x = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [None])
    pairs = [
        (tf.equal(number, 0), lambda: tf.boolean_mask(x, x > 1)),
        (tf.equal(number, 1), lambda: tf.zeros([5])),
    ]
    y = tf.case(pairs, default=lambda: x)
    z = tf.switch_case(number, [lambda: x[:1], lambda: x[:2], lambda: x])
    found = [session.run([y, z], {number: k, x: [1, 2, 3]}) for k in range(3)]
    assert [lists(each) for each in found] == [
        [[2, 3], [1]],
        [[0] * 5, [1, 2]],
        [[1, 2, 3], [1, 2, 3]],
    ]


def test_branches_of_different_sizes_in_a_loop(session):
    x = tf.constant([1.0, 2.0, 3.0, 4.0])

    def body(i, total):
        part = tf.cond(tf.equal(i % 2, 0), lambda: x[:2], lambda: x)
        return i + 1, total + tf.reduce_sum(part)

    total = tf.while_loop(lambda i, _: i < 4, body, [0, 0.0])[1]
    assert lists(session.run([total, tf.gradients(total, x)[0]])) == [26, [4, 4, 2, 2]]


def test_a_growing_loop_in_a_branch(session):
    choice, x = tf.placeholder(tf.bool, []), tf.constant([1.0, 2.0])
    y = tf.cond(choice, lambda: repeated(2, x, lambda i, x: tf.concat([x, x], 0)), lambda: x)
    fetches = [y, tf.gradients(tf.reduce_sum(y * y), x)[0]]
    assert lists(session.run(fetches, {choice: True})) == [[1, 2] * 4, [8, 16]]
    assert lists(session.run(fetches, {choice: False})) == [[1, 2], [2, 4]]


def test_without_an_invariant_a_known_shape_stays(session):
    with pytest.raises(ValueError, match=r"leaves the body as .* float32\[2\]"):
        repeated(3, tf.constant([1.0]), lambda i, x: tf.concat([x, x], 0), None)


@pytest.mark.parametrize("shape", [None, [None, 3], [5, 3]])
@pytest.mark.parametrize("kind", ["cond", "while_loop", "map_fn", "scan"])
def test_derivatives_inside_of_bodies(kind, shape):
    values = numpy.random.default_rng(0).standard_normal((5, 3)).astype("f")
    weights = numpy.float32([0.5, -1.0, 2.0])
    with tf.Graph().as_default(), tf.Session() as session:
        x, w = tf.placeholder(tf.float32, shape), tf.Variable(weights)

        def slopes():
            loss = tf.reduce_sum(tf.square(x * w))
            by_w, by_x = tf.gradients(loss, [w, x])
            return by_w, tf.reduce_sum(by_x, 0)

        if kind == "cond":
            made = tf.cond(tf.reduce_sum(x) < 1e9, slopes, lambda: (tf.zeros([3]), tf.zeros([3])))
        elif kind == "while_loop":
            made = tf.while_loop(
                lambda k, *_: k < 1, lambda k, *_: (k + 1, *slopes()), (0, w * 0.0, w * 0.0)
            )[1:]
        elif kind == "map_fn":
            made = tf.map_fn(lambda _: slopes(), tf.zeros([1]), dtype=(tf.float32, tf.float32))
            made = [one[0] for one in made]
        else:
            made = tf.scan(lambda _, k: slopes(), tf.zeros([1]), (w * 0.0, w * 0.0))
            made = [one[0] for one in made]
        session.run(tf.global_variables_initializer())
        for count in (5, 5) if shape == [5, 3] else (5, 4, 5, 1):
            given = values[:count]
            found = session.run(made, {x: given})
            wanted = 2 * (given**2).sum(0) * weights, 2 * given.sum(0) * weights**2
            for one, other in zip(found, wanted):
                numpy.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_a_branch_that_does_not_fit_the_sizes_of_a_run_is_not_computed():
    x, w = tf.placeholder(tf.float32, [None]), tf.Variable(2.0)
    count = tf.shape(x)[0]
    guarded = tf.cond(count > 3, lambda: w * x[3], lambda: w * w * tf.reduce_sum(x))
    slopes = tf.gradients(guarded, [w, x])
    nested = tf.cond(
        count > 1, lambda: tf.cond(count > 3, lambda: x[3], lambda: x[1]), lambda: tf.constant(-1.0)
    )
    with tf.Session() as session:
        session.run(w.initializer)
        for size, value in ((5, 6.0), (2, 4.0), (4, 6.0), (0, 0.0)):
            given = numpy.arange(size, dtype=numpy.float32)
            found, by_w, by_x = session.run([guarded, *slopes], {x: given})
            assert found == value and by_w == (3.0 if size > 3 else 4 * given.sum())
            assert by_x.tolist() == ([0, 0, 0, 2, 0][:size] if size > 3 else [4.0] * size)
        assert [session.run(nested, {x: numpy.arange(k)}) for k in (5, 2, 1)] == [3.0, 1.0, -1.0]
        bad = tf.cond(count > 3, lambda: x[0], lambda: x[3])
        with pytest.raises(IndexError, match="index 3 of axis 0 with size 2"):
            session.run(bad, {x: [1.0, 2.0]})
