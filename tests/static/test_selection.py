"""Elements chosen by their values, against NumPy."""

import numpy
import pytest

import twofold.static as tf


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as made:
        yield made


X = numpy.array([[3.0, -1.0, 0.0], [0.0, 5.0, -2.0]], "f")


def test_positions_and_masks(session):
    x = tf.placeholder(tf.float32, [None, 3])
    assert (session.run(tf.where(x > 0), {x: X}) == numpy.argwhere(X > 0)).all()
    assert tf.where(x > 0).get_shape().as_list() == [None, 2]
    chosen = tf.boolean_mask(x, x > 0)
    assert session.run(chosen, {x: X}).tolist() == [3.0, 5.0]
    assert session.run(chosen, {x: -abs(X)}).shape == (0,)
    rows = tf.boolean_mask(x, x[:, 0] > 1)
    assert rows.get_shape().as_list() == [None, 3]
    assert (session.run(rows, {x: X}) == X[:1]).all()
    columns = tf.boolean_mask(x, [True, False, True], axis=1)
    assert (session.run(columns, {x: X}) == X[:, [0, 2]]).all()
    slope = tf.gradients(tf.reduce_sum(chosen**2), x)[0]
    assert session.run(slope, {x: X}).tolist() == [[6, 0, 0], [0, 10, 0]]
    with pytest.raises(ValueError, match="boolean_mask: .* for .*"):
        tf.boolean_mask(x, [True, False], axis=1)


def test_different_elements(session):
    x = tf.placeholder(tf.int32, [None])
    values = [4, 2, 4, 7, 2, 2]
    found, positions, counts = session.run(tf.unique_with_counts(x), {x: values})
    assert found.tolist() == [4, 2, 7] and counts.tolist() == [2, 3, 1]
    assert positions.tolist() == [0, 1, 0, 2, 1, 1] and positions.dtype == numpy.int32
    assert [a.tolist() for a in session.run(tf.unique(x), {x: []})] == [[], []]
    left, where = session.run(tf.setdiff1d(x, [2, 9]), {x: values})
    assert left.tolist() == [4, 4, 7] and where.tolist() == [0, 2, 3]


def test_partitions_are_put_together_again(session):
    x = tf.placeholder(tf.float32, [None, 2])
    kinds = tf.placeholder(tf.int32, [None])
    values, given = numpy.arange(8.0).reshape(4, 2).astype("f"), [1, 0, 1, 2]
    parts = tf.dynamic_partition(x, kinds, 4)
    found = session.run(parts, {x: values, kinds: given})
    assert [part.tolist() for part in found] == [[[2, 3]], [[0, 1], [4, 5]], [[6, 7]], []]
    positions = tf.dynamic_partition(tf.range(tf.shape(x)[0]), kinds, 4)
    whole = tf.dynamic_stitch(positions, [part * 2 for part in parts])
    slope = tf.gradients(tf.reduce_sum(whole * whole), x)[0]
    one, two = session.run([whole, slope], {x: values, kinds: given})
    assert (one == values * 2).all() and (two == values * 8).all()
    with pytest.raises(ValueError, match="from 0 to 9"):
        session.run(parts, {x: values, kinds: [0, 1, 9, 0]})


def test_counts(session):
    assert session.run(tf.count_nonzero(X)) == 4
    assert session.run(tf.count_nonzero(X, 0)).tolist() == [1, 2, 1]
    assert session.run(tf.count_nonzero(X, [1], True, tf.int32)).tolist() == [[2], [2]]
    labels, guesses = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.int64, [None])
    feeds = {labels: [0, 1, 2, 1], guesses: [0, 2, 2, 1]}
    expected = [[1, 0, 0], [0, 1, 1], [0, 0, 1]]
    assert session.run(tf.confusion_matrix(labels, guesses, 3), feeds).tolist() == expected
    assert session.run(tf.confusion_matrix(labels, guesses), feeds).tolist() == expected
    weighted = tf.confusion_matrix(labels, guesses, 3, tf.float32, weights=[0.5, 1.0, 1.0, 2.0])
    assert session.run(weighted, feeds).tolist() == [[0.5, 0, 0], [0, 2, 1], [0, 0, 1]]
    assert session.run(tf.bincount(labels), feeds).tolist() == [1, 2, 1]
    assert session.run(tf.bincount(labels, minlength=5), feeds).tolist() == [1, 2, 1, 0, 0]
    assert session.run(tf.bincount(labels, [1.0, 2.0, 3.0, 4.0], maxlength=2), feeds).tolist() == [1, 6]
    assert session.run(tf.histogram_fixed_width([-1.0, 0.1, 2.4, 9.0], [0.0, 5.0], 5)).tolist() == [
        2,
        0,
        1,
        0,
        1,
    ]
