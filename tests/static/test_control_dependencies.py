"""What is declared under ``control_dependencies`` runs after them, each effect once: host functions, choices, loops."""

import numpy
import pytest

import twofold.static as tf


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as found:
        yield found


@pytest.fixture
def log():
    return []


def noting(log, name, *inputs):
    """A ``py_func`` that notes what it is given; its result is the number of notes."""

    def function(*arrays):
        log.append((name, *[float(numpy.sum(array)) for array in arrays]))
        return numpy.float32(len(log))

    return tf.py_func(function, list(inputs), tf.float32)


def started(session):
    session.run(tf.global_variables_initializer())


def test_an_update_before_a_python_function_runs_once(session, log):
    v = tf.Variable(1.0)
    with tf.control_dependencies([v.assign_add(1.0)]):
        called = noting(log, "f", v.read_value())
    started(session)
    assert session.run(called) == 1.0
    assert (log, session.run(v)) == ([("f", 2.0)], 2.0)


def test_an_update_before_a_dequeue_runs(session):
    v, queue = tf.Variable(1.0), tf.FIFOQueue(5, [tf.float32], shapes=[[]])
    with tf.control_dependencies([v.assign_add(1.0)]):
        taken = queue.dequeue()
    started(session)
    session.run(queue.enqueue(7.0))
    assert (session.run(taken), session.run(v)) == (7.0, 2.0)


def test_a_failed_assertion_keeps_python_and_queues_from_running(session, log):
    x, queue = tf.placeholder(tf.float32, []), tf.FIFOQueue(5, [tf.float32], shapes=[[]])
    with tf.control_dependencies([tf.Assert(x > 2.0, [x])]):
        called, taken, same = noting(log, "f", x), queue.dequeue(), tf.identity(x)
    behind = noting(log, "g", same)
    session.run(queue.enqueue(7.0))
    for fetch in (called, taken, behind):
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(fetch, {x: 1.0})
    assert (log, session.run(queue.size())) == ([], 1)


def test_python_sees_in_the_session_what_ran_before_it_and_reads_see_what_it_did(session):
    v, seen = tf.Variable(1.0), []
    nine = v.assign(9.0).op

    def function():
        seen.append(float(session.run(v)))
        session.run(nine)
        return numpy.float32(0.0)

    with tf.control_dependencies([v.assign_add(1.0)]):
        called = tf.py_func(function, [], tf.float32)
    with tf.control_dependencies([called]):
        after = v.read_value() * 1.0
    started(session)
    session.run(v)
    assert (session.run(after), seen) == (9.0, [2.0])


def test_updates_and_python_functions_in_a_chain(session, log):
    v = tf.Variable(1.0)
    with tf.control_dependencies([v.assign_add(1.0)]):
        first = noting(log, "first", v.read_value())
    with tf.control_dependencies([first]):
        more = v.assign_add(10.0)
    with tf.control_dependencies([more]):
        second = noting(log, "second", v.read_value())
    started(session)
    session.run([second, first])
    assert log == [("first", 2.0), ("second", 12.0)]
    assert session.run(v) == 12.0


def test_an_update_that_several_parts_of_a_run_read_happens_once(session, log):
    v = tf.Variable(1)
    more = v.assign_add(1)
    rows = tf.reduce_sum(tf.ones(tf.stack([more, 2])))
    called = noting(log, "f", more)
    started(session)
    assert session.run([rows, called]) == [4.0, 1.0]
    assert (session.run(v), log) == (2, [("f", 2.0)])


@pytest.mark.parametrize(
    "make",
    [
        lambda: tf.constant(3.0),
        lambda: tf.identity(tf.constant(3.0)),
        lambda: tf.zeros([2]),
        lambda: tf.range(3),
        lambda: tf.no_op(),
        lambda: tf.group(tf.no_op()),
        lambda: tf.Print(tf.constant(3.0), [], first_n=0),
        lambda: tf.py_func(lambda: numpy.float32(1.0), [], tf.float32),
        lambda: tf.random_uniform([2]),
        lambda: tf.cond(tf.constant(True), lambda: tf.constant(1.0), lambda: tf.constant(2.0)),
        lambda: tf.while_loop(lambda i: i < 3, lambda i: i + 1, [0]),
        lambda: tf.map_fn(lambda x: x * 2.0, tf.zeros([2])),
    ],
)
def test_every_kind_of_operation_waits(session, make):
    v = tf.Variable(1.0)
    with tf.control_dependencies([v.assign_add(1.0)]):
        made = make()
    started(session)
    session.run(made)
    assert session.run(v) == 2.0


def test_nested_contexts_and_none(session, log):
    v, called = tf.Variable(1.0), noting(log, "f")
    with tf.control_dependencies([v.assign_add(1.0)]):
        with tf.control_dependencies(None):
            free = noting(log, "free")
        with tf.control_dependencies([called]):
            both = noting(log, "both")
    started(session)
    session.run(free)
    assert (log, session.run(v)) == ([("free",)], 1.0)
    session.run(both)
    assert (log[1:], session.run(v)) == ([("f",), ("both",)], 2.0)


def test_a_choice_by_an_update_and_reads_after_a_choice(session):
    v, w = tf.Variable(1.0), tf.Variable(0.0)
    chosen = tf.cond(v.assign_add(1.0) > 2.5, lambda: w.assign(5.0), lambda: w.assign(7.0))
    with tf.control_dependencies([chosen]):
        after = w.read_value() * 1.0
    started(session)
    assert [session.run(after), session.run(after), session.run(v)] == [7.0, 5.0, 3.0]


def test_dependencies_inside_a_branch(session, log):
    v, w, x = tf.Variable(1.0), tf.Variable(0.0), tf.placeholder(tf.float32, [])
    outside = w.assign_add(1.0)

    def positive():
        with tf.control_dependencies([v.assign_add(1.0), tf.Assert(x < 5.0, [x])]):
            return noting(log, "f", x)

    def negative():
        with tf.control_dependencies([outside]):
            return w.read_value() + 0.0

    chosen = tf.cond(x > 0.0, positive, negative)
    started(session)
    assert session.run(chosen, {x: 1.0}) == 1.0
    assert session.run([v, w]) == [2.0, 0.0]
    assert session.run(chosen, {x: -1.0}) == 1.0
    with pytest.raises(tf.errors.InvalidArgumentError):
        session.run(chosen, {x: 6.0})
    assert log == [("f", 1.0)]


def test_loops_with_effects(session, log):
    v, queue = tf.Variable(0.0), tf.FIFOQueue(5, [tf.float32], shapes=[[]])

    def body(i, total):
        update = tf.cond(tf.equal(i % 2, 0), lambda: v.assign_add(1.0), lambda: v.assign_add(10.0))
        with tf.control_dependencies([update, noting(log, "body", tf.cast(i, tf.float32))]):
            return i + 1, total * 10.0 + queue.dequeue() + v.read_value() * 100.0

    made = tf.while_loop(lambda i, _: i < 3, body, [0, 0.0])
    started(session)
    session.run(queue.enqueue_many([[1.0, 2.0, 3.0, 4.0]]))
    assert session.run(made) == [3, 100.0 * 100.0 + 100.0 + 11.0 * 1000.0 + 20.0 + 12.0 * 100.0 + 3.0]
    assert (session.run([v, queue.size()]), log) == ([12.0, 1], [("body", 0.0), ("body", 1.0), ("body", 2.0)])


def test_nested_loops_and_functions_over_rows_with_effects(session, log):
    v = tf.Variable(0.0)

    def outer(i, total):
        def inner(j, part):
            with tf.control_dependencies([v.assign_add(1.0)]):
                return j + 1, tf.identity(part) + tf.cast(i, tf.float32)

        return i + 1, tf.while_loop(lambda j, _: j < 2, inner, [0, total])[1]

    looped = tf.while_loop(lambda i, _: i < 3, outer, [0, 0.0])
    mapped = tf.map_fn(lambda x: noting(log, "row", x) * x, tf.constant([1.0, 2.0, 3.0]))
    started(session)
    assert (session.run(looped), session.run(v)) == ([3, 6.0], 6.0)
    assert session.run(mapped).tolist() == [1.0, 4.0, 9.0]


def test_first_derivatives_pass_through_a_loop_with_effects_and_no_second_ones(session, log):
    x = tf.constant(1.0)
    _, y = tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, y * noting(log, "x", y)), [0, x])
    (slope,) = tf.gradients(y, x)
    assert session.run([y, slope]) == [6.0, 6.0]
    assert log == [("x", 1.0), ("x", 1.0), ("x", 2.0)]
    with pytest.raises(RuntimeError, match="no second derivative passes through"):
        tf.gradients(slope, x)


def test_a_variable_is_initialised_and_read_in_one_run(session, log):
    v = tf.Variable(3.0)
    with tf.control_dependencies([v.initializer]):
        read, called = v.read_value() * 2.0, noting(log, "f", v.read_value())
    assert session.run(read) == 6.0
    session.run(called)
    assert log == [("f", 3.0)]


def test_python_functions_are_called_in_the_order_of_their_declaration(session, log):
    first, second, third = noting(log, "first"), noting(log, "second"), noting(log, "third")
    session.run([third, first, second])
    assert log == [("first",), ("second",), ("third",)]


def test_a_failed_assertion_tells_what_it_was_given(session):
    x = tf.constant([1.0, 2.0, 3.0, 4.0])
    for check, words in (
        (tf.Assert(tf.constant(False), [x]), r"\[1.0 2.0 3.0\.\.\.\]"),
        (tf.Assert(tf.constant(False), [x], summarize=-1), r"\[1.0 2.0 3.0 4.0\]"),
        (tf.assert_negative(x, data=["seen", tf.constant(7)], summarize=1), r"seen \[7\]"),
        (tf.assert_equal(x, x + 1.0, data=["other"]), "other"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=words):
            session.run(check)


def test_a_function_without_results_is_an_operation(session, log):
    noted = tf.py_func(lambda value: log.append(("seen", value.item())), [tf.constant(3.0)], [])
    assert isinstance(noted, tf.Operation)
    assert session.run(noted) is None and log == [("seen", 3.0)]
    with tf.control_dependencies([noted]):
        after = tf.constant(1.0) + 1.0
    assert session.run(after) == 2.0 and len(log) == 2

    def body(i):
        with tf.control_dependencies([tf.py_func(lambda k: log.append(("pass", k.item())), [i], [])]):
            return i + 1

    assert session.run(tf.while_loop(lambda i: i < 2, body, [0])) == 2
    assert log[2:] == [("pass", 0), ("pass", 1)]


def test_branches_and_loops_read_what_their_choice_or_start_waits_for():
    with tf.Graph().as_default(), tf.Session() as session:
        total, count = tf.Variable(0.0), tf.Variable(0)
        with tf.control_dependencies([total.assign_add(1.0)]):
            number = tf.identity(count.assign_add(1))
        ten = tf.cond(number > 0, lambda: total.read_value() * 10.0, lambda: tf.constant(-1.0))
        nested = tf.cond(
            number > 0, lambda: tf.cond(number < 9, lambda: total * 2.0, lambda: 0.0), lambda: 0.0
        )
        loop = tf.while_loop(
            lambda k, _: k < 4, lambda k, x: (k + 1, x + total.read_value()), [number, tf.constant(0.0)]
        )
        x = tf.constant([1.0, 2.0])
        (slope,) = tf.gradients(
            tf.cond(number > 0, lambda: tf.reduce_sum(x) * total.read_value(), lambda: 0.0), [x]
        )
        session.run(tf.global_variables_initializer())
        assert session.run(ten) == 10.0
        assert session.run(nested) == 4.0
        assert session.run(loop[1]) == 3.0  # from 3, one iteration
        assert session.run(slope).tolist() == [4.0, 4.0]
