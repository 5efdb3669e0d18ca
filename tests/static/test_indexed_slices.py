"""Gradients of tables by the rows that were looked up, and what optimisers and clipping make of them.

The reference of an optimiser is the same optimiser on one variable for each row: rows that no look-up reaches have no
gradient there, and so are left alone with their slots.
"""

import numpy
import pytest

import twofold as torch
import twofold.static as tf

TABLE = numpy.arange(10, dtype=numpy.float32).reshape(5, 2) / 4 + 1
STEPS = ([1, 1, 3], [2, 4, 0], [1, 0, 0, 0])
OPTIMIZERS = {
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "nesterov": lambda: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.1, momentum=0.5),
    "centered": lambda: tf.train.RMSPropOptimizer(0.1, centered=True),
    "adadelta": lambda: tf.train.AdadeltaOptimizer(0.5),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.1),
    "proximal": lambda: tf.train.ProximalGradientDescentOptimizer(0.1, l1_regularization_strength=0.1),
    "proximal adagrad": lambda: tf.train.ProximalAdagradOptimizer(0.1, l2_regularization_strength=0.1),
}


def in_rows(make):
    """The table after some steps, whose rows are looked up."""
    with tf.Graph().as_default(), tf.Session() as session:
        table, ids = tf.Variable(TABLE), tf.placeholder(tf.int32, [None])
        train = make().minimize(tf.reduce_sum(tf.square(tf.gather(table, ids))))
        session.run(tf.global_variables_initializer())
        for step in STEPS:
            session.run(train, {ids: step})
        return session.run(table)


def one_by_one(make):
    """The same with a variable for each row."""
    with tf.Graph().as_default(), tf.Session() as session:
        rows, optimizer = [tf.Variable(row) for row in TABLE], make()
        trains = []
        for step in STEPS:
            loss = tf.add_n([tf.reduce_sum(tf.square(rows[k])) for k in step])
            trains.append(optimizer.minimize(loss, var_list=[rows[k] for k in sorted(set(step))]))
        session.run(tf.global_variables_initializer())
        for train in trains:
            session.run(train)
        return numpy.stack(session.run(rows))


@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_rows_without_a_gradient_are_left_alone(make):
    numpy.testing.assert_allclose(in_rows(make), one_by_one(make), rtol=2e-6)


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_what_changes_all_rows_has_the_bits_of_define_by_run(name):
    ids = numpy.array([[1, 1, 3], [4, 0, 1]])
    parameter = torch.nn.Parameter(torch.from_numpy(TABLE.copy()))
    optimizer = getattr(torch.optim, name)([parameter], lr=0.1)
    with tf.Graph().as_default(), tf.Session() as session:
        table = tf.Variable(TABLE)
        made = {
            "SGD": lambda: tf.train.GradientDescentOptimizer(0.1),
            "Adam": lambda: tf.train.AdamOptimizer(0.1, formulation="pytorch"),
        }[name]()
        train = made.minimize(tf.reduce_sum(tf.square(tf.nn.embedding_lookup(table, ids))))
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run(train)
            optimizer.zero_grad()
            parameter[torch.from_numpy(ids)].square().sum().backward()
            optimizer.step()
        assert session.run(table).tobytes() == parameter.detach().numpy().tobytes()


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as made:
        yield made


def test_rows_and_their_numbers(session):
    table, ids = tf.constant(TABLE), tf.placeholder(tf.int32, [None, None])
    (found,) = tf.gradients(
        tf.reduce_sum(tf.gather(table, ids) * [1.0, 2.0]) + tf.reduce_sum(tf.gather(table, 4)), table
    )
    assert isinstance(found, tf.IndexedSlices)
    assert found.get_shape().as_list() == [5, 2] and found.dtype is tf.float32
    rows = session.run(found, {ids: [[3, 0], [3, 1]]})
    assert isinstance(rows, tf.IndexedSlicesValue)
    assert rows.indices.tolist() == [3, 0, 3, 1, 4] and rows.dense_shape.tolist() == [5, 2]
    assert rows.values.tolist() == [[1, 2], [1, 2], [1, 2], [1, 2], [1, 1]]
    dense = session.run(tf.convert_to_tensor(found), {ids: [[3, 0], [3, 1]]})
    assert dense.tolist() == [[1, 2], [1, 2], [0, 0], [2, 4], [1, 1]]
    assert session.run(2.0 * found + table, {ids: [[3, 0], [3, 1]]}).tolist() == (2 * dense + TABLE).tolist()


def test_indices_of_several_dtypes(session):
    table = tf.constant(TABLE)
    rows = tf.concat([tf.gather(table, numpy.int64([1, 2])), tf.gather(table, numpy.int32([2]))], 0)
    (found,) = tf.gradients(rows, table)
    assert session.run(found.indices).tolist() == [1, 2, 2] and found.indices.dtype is tf.int64


@pytest.mark.parametrize(
    "read",
    [
        lambda table: tf.reduce_sum(tf.gather(table, [1])) + tf.reduce_sum(table),
        lambda table: tf.reduce_sum(tf.gather(table, [1], axis=1)),
        lambda table: tf.reduce_sum(tf.gather(tf.identity(table), [1])),
    ],
    ids=["also whole", "along another axis", "a copy"],
)
def test_whole_gradients(session, read):
    table = tf.constant(TABLE)
    assert isinstance(tf.gradients(read(table), table)[0], tf.Tensor)


def test_look_ups_in_choices_and_loops(session):
    table, first = tf.constant(TABLE), tf.placeholder(tf.bool)
    chosen = tf.cond(
        first,
        lambda: tf.reduce_sum(tf.gather(table, [1, 1])),
        lambda: tf.reduce_sum(tf.gather(table, [0]) ** 2),
    )
    looped = tf.while_loop(
        lambda i, _: i < 3, lambda i, s: (i + 1, s + tf.reduce_sum(tf.gather(table, i))), [0, 0.0]
    )[1]
    found = tf.convert_to_tensor(tf.gradients(chosen + looped, table)[0])
    wanted = numpy.array([[1.0], [1], [1], [0], [0]]) * numpy.ones(2)
    assert session.run(found, {first: True}).tolist() == (wanted + [[0], [2], [0], [0], [0]]).tolist()
    assert (
        session.run(found, {first: False}).tolist()
        == (wanted + [2 * TABLE[0], *numpy.zeros((4, 2))]).tolist()
    )


def test_clipping_looks_at_the_rows_as_they_were_looked_up(session):
    table, other = tf.constant(TABLE), tf.constant([3.0])
    gradients = tf.gradients(tf.reduce_sum(tf.gather(table, [1, 1, 3])) * 2.0 + other * 4.0, [table, other])
    assert session.run(tf.global_norm(gradients)) == pytest.approx((6 * 4 + 16) ** 0.5)
    clipped, norm = tf.clip_by_global_norm(gradients, 1.0)
    assert isinstance(clipped[0], tf.IndexedSlices)
    rows = session.run(clipped[0])
    assert rows.values == pytest.approx(numpy.full((3, 2), 2 / session.run(norm)))
    limited = tf.clip_by_value(gradients[0], 0.0, 0.5)
    assert session.run(limited).values.tolist() == [[0.5, 0.5]] * 3
    scaled = session.run(tf.clip_by_norm(gradients[0], 1.0))
    assert scaled.values == pytest.approx(numpy.full((3, 2), 2 / 24**0.5))


def test_zeros_where_there_is_no_path(session):
    table, x = tf.Variable(TABLE), tf.constant([1.0])
    zeros, slope = tf.gradients(x * 3.0, [table, x], unconnected_gradients=tf.UnconnectedGradients.ZERO)
    assert session.run(zeros).tolist() == numpy.zeros((5, 2)).tolist() and session.run(slope) == [3.0]
    with pytest.raises(ValueError):
        tf.gradients(x * 3.0, x, unconnected_gradients="one")


def test_rows_that_are_looked_up_before_a_loop_on_the_host():
    with tf.Graph().as_default(), tf.Session() as session:
        table = tf.Variable([[1.0], [2.0], [3.0]])
        rows = tf.nn.embedding_lookup(table, [2, 0, 2])

        def body(k, total):
            scale = tf.py_func(lambda k: numpy.float32(k + 1), [k], tf.float32)
            scale.set_shape([])
            return k + 1, total + scale * rows

        _, total = tf.while_loop(lambda k, _: k < 2, body, [0, tf.zeros([3, 1])])
        slices = tf.gradients(tf.reduce_sum(total), table)[0]
        session.run(table.initializer)
        found = session.run(slices)
        assert found.indices.tolist() == [2, 0, 2] and found.values.tolist() == [[3.0], [3.0], [3.0]]
        norm = session.run(tf.global_norm([slices]))  # of the slices, not of the rows that they add up to
        numpy.testing.assert_allclose(norm, numpy.sqrt(27.0), rtol=1e-6)
