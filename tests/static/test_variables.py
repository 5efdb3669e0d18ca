"""Variables: their values in a session, the order of updates, saving."""

import numpy
import pytest

import twofold.static as tf


@pytest.fixture(autouse=True)
def session():
    with tf.Graph().as_default(), tf.Session() as made:
        yield made


def test_initial_values_of_every_kind(session):
    made = [
        tf.Variable(2),
        tf.Variable(2.5),
        tf.Variable([[1.0]]),
        tf.Variable(numpy.float64(1)),
        tf.Variable(lambda: tf.ones([2])),
        tf.Variable(tf.zeros([3]), dtype=tf.float32),
        tf.Variable(True),
    ]
    session.run(tf.global_variables_initializer())
    values = session.run(made)
    assert [value.dtype.name for value in values] == [
        "int32",
        "float32",
        "float32",
        "float64",
        "float32",
        "float32",
        "bool",
    ]
    assert [value.shape for value in values] == [(), (), (1, 1), (), (2,), (3,), ()]


def test_each_session_has_its_own_values():
    v = tf.Variable(1.0)
    with tf.Session() as a, tf.Session() as b:
        a.run(v.initializer)
        b.run(v.initializer)
        a.run(v.assign(5.0))
        assert (a.run(v), b.run(v)) == (5.0, 1.0)


def test_computations_see_the_state_before_the_run_and_updates_follow_each_other(session):
    v = tf.Variable(1.0, use_resource=True)
    first = v.assign_add(1.0)
    second = v.assign(v * 10.0)
    third = tf.assign_sub(v, 3.0)
    session.run(v.initializer)
    assert session.run([v, first, second, third, v + 0.5]) == [1.0, 2.0, 10.0, 7.0, 1.5]
    assert session.run(v) == 7.0


def test_under_control_dependencies_reads_see_the_update(session):
    v = tf.Variable(1.0, use_resource=True)
    update = v.assign_add(1.0)
    with tf.control_dependencies([update]):
        after, doubled = v.read_value(), v * 2.0
    session.run(v.initializer)
    assert session.run([v, after, doubled]) == [1.0, 2.0, 4.0]
    assert session.run(v) == 2.0


def test_nobody_outside_can_change_a_variable(session):
    v = tf.Variable(tf.zeros([200]))
    p = tf.placeholder(tf.float32, [200])
    session.run(v.initializer)
    for fetched in (session.run(v), session.run(v.assign_add(tf.ones([200])))):
        fetched[:] = 7.0
    fed = numpy.full(200, 3.0, numpy.float32)
    assert session.run(v)[0] == 1.0
    session.run(v.assign(p), {p: fed})
    fed[:] = 8.0
    assert session.run(v)[0] == 3.0


def test_load_and_group(session):
    v, w = tf.Variable([1.0, 2.0]), tf.Variable(0)
    session.run(tf.global_variables_initializer())
    v.load([3.0, 4.0], session)
    assert session.run(tf.group(v.assign_add([1.0, 1.0]), w.assign_add(2))) is None
    numpy.testing.assert_array_equal(session.run(v), [4.0, 5.0])
    assert session.run(w) == 2
    with pytest.raises(
        RuntimeError, match=r"a value float32\[3\] does not fit variable 'Variable' float32\[2\]"
    ):
        v.load([1.0, 2.0, 3.0], session)


def test_moving_averages_of_batch_normalization(session):
    x, training = tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.bool, [])
    y = tf.layers.batch_normalization(x, momentum=0.5, training=training)
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    session.run(tf.global_variables_initializer())
    batch = numpy.array([[1.0, 2.0], [3.0, 6.0]], numpy.float32)
    found, _ = session.run([y, updates], {x: batch, training: True})
    numpy.testing.assert_allclose(found, [[-1, -1], [1, 1]], atol=1e-2)
    mean, variance = (v for v in tf.global_variables() if "moving" in v.name)
    numpy.testing.assert_allclose(session.run(mean), [1.0, 2.0])
    numpy.testing.assert_allclose(session.run(variance), [1.0, 2.5])
    numpy.testing.assert_allclose(session.run(y, {x: batch, training: False})[0], [0.0, 0.0], atol=1e-6)


@pytest.mark.parametrize("key", [numpy.s_[1:3, 0], numpy.s_[0], numpy.s_[..., 1:], numpy.s_[::2]], ids=str)
def test_a_part_is_assigned(session, key):
    wanted = numpy.arange(8, dtype=numpy.float32).reshape(4, 2)
    v = tf.Variable(wanted.copy())
    session.run(v.initializer)
    part = numpy.full(wanted[key].shape, 7.0, numpy.float32)
    wanted[key] = part
    assert session.run(v[key].assign(part)).tolist() == wanted.tolist() == session.run(v).tolist()


def test_a_part_at_a_tensor_is_refused(session):
    v = tf.Variable([1.0, 2.0])
    with pytest.raises(ValueError, match="scatter_nd_update"):
        v[tf.constant(1)].assign(3.0)


def test_a_tensor_beside_a_variable_in_every_operator():
    with tf.Graph().as_default(), tf.Session() as session:
        x, v = tf.constant([3.0]), tf.Variable([2.0])
        session.run(v.initializer)
        made = [x + v, x - v, x * v, x / v, x // v, x % v, x**v, v**x, x < v]
        found = [one.tolist() for one in session.run(made)]
        assert found == [[5.0], [1.0], [6.0], [1.5], [1.0], [1.0], [9.0], [8.0], [False]]


def test_inputs_of_an_update_begin_with_the_variables_that_it_writes(session):
    v, delta = tf.Variable([1.0, 2.0], name="v"), tf.constant([3.0, 4.0])
    assert v.assign(delta).op.inputs == (v.op.outputs[0], delta)
    assert tf.assign_add(v, delta).op.inputs[0].name == "v:0"
    assert v.initializer.inputs[0] == v.op.outputs[0]
    step = tf.train.MomentumOptimizer(0.1, 0.9).apply_gradients([(delta, v)])
    (update,) = step.control_inputs
    assert [one.name for one in update.inputs[:3]] == ["v:0", "v/Momentum:0", delta.name]
    assert (v + delta).op.inputs == (v.op.outputs[0], delta)


def test_what_is_kept_beside_variables_has_the_scope_of_the_call_in_its_name():
    with tf.Graph().as_default():
        with tf.variable_scope("net"):
            w = tf.get_variable("w", [])
            tf.train.MomentumOptimizer(0.1, 0.9).minimize(w * w)
            average = tf.train.ExponentialMovingAverage(0.9)
            average.apply([w])
        with tf.name_scope("train"):
            tf.train.MomentumOptimizer(0.1, 0.9, name="Other").minimize(w * w)
        names = [variable.op.name for variable in tf.global_variables()]
        assert names == ["net/w", "net/net/w/Momentum", "net/net/w/ExponentialMovingAverage", "net/w/Other"]
        assert average.average_name(w) == names[2]
