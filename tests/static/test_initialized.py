"""Which variables have values in a session, as its runs see it."""

import pytest

import twofold.static as tf


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as made:
        yield made


def test_a_run_says_which_variables_have_values(session):
    v, w = tf.Variable(1.0, name="v"), tf.Variable(2.0, name="w")
    asked, missing = (
        [tf.is_variable_initialized(v), tf.is_variable_initialized(w)],
        tf.report_uninitialized_variables(),
    )
    assert session.run(asked) == [False, False] and session.run(missing).tolist() == [b"v", b"w"]
    session.run(w.initializer)
    assert session.run(asked) == [False, True] and session.run(missing).tolist() == [b"v"]
    with pytest.raises(tf.errors.FailedPreconditionError, match="'v'"):
        session.run(tf.assert_variables_initialized())
    session.run(v.initializer)
    assert session.run(tf.report_uninitialized_variables([v])).shape == (0,)
    session.run(tf.assert_variables_initialized())


def test_under_control_dependencies_after_them(session):
    v = tf.Variable(1.0)
    with tf.control_dependencies([v.initializer]):
        after = tf.is_variable_initialized(v)
    assert session.run(after)


def test_only_missing_variables_are_initialised(session):
    variables = [tf.Variable(1.0), tf.Variable(2.0)]
    session.run(variables[0].initializer)
    session.run(variables[0].assign(5.0))
    there = session.run([tf.is_variable_initialized(variable) for variable in variables])
    session.run(tf.variables_initializer([v for v, has_value in zip(variables, there) if not has_value]))
    assert session.run(variables) == [5.0, 2.0]
