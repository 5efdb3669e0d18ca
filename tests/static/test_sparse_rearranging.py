"""Sparse tensors joined, cut and filled, against dense arrays."""

import numpy
import pytest

import twofold.static as tf


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as made:
        yield made


DENSE = numpy.array([[0, 5, 0, 0], [0, 0, 0, 0], [6, 0, 0, 7]], "f")


def sparse(array):
    positions = numpy.argwhere(array)
    return tf.SparseTensor(positions, array[tuple(positions.T)], array.shape)


def dense(session, made):
    """The dense form, which is checked to be in row-major order."""
    value = session.run(made)
    assert sorted(map(tuple, value.indices.tolist())) == list(map(tuple, value.indices.tolist()))
    found = numpy.zeros(value.dense_shape, value.values.dtype)
    found[tuple(value.indices.T)] = value.values
    return found


def test_rows_without_elements_are_filled(session):
    made, empty = tf.sparse_fill_empty_rows(sparse(DENSE), -1.0)
    expected = DENSE.copy()
    expected[1, 0] = -1.0
    assert (dense(session, made) == expected).all() and session.run(empty).tolist() == [False, True, False]
    words = tf.SparseTensor([[1, 0]], ["a"], [2, 1])
    assert session.run(tf.sparse.fill_empty_rows(words, "none")[0]).values.tolist() == [b"none", b"a"]
    values = tf.constant([2.0, 3.0])
    total = tf.reduce_sum(
        tf.sparse_fill_empty_rows(tf.SparseTensor([[0, 0], [2, 1]], values, [3, 2]), 9.0)[0].values ** 2
    )
    assert session.run(tf.gradients(total, values)[0]).tolist() == [4.0, 6.0]


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_joined(session, axis):
    made = tf.sparse_concat(axis, [sparse(DENSE), sparse(DENSE * 2)])
    assert (dense(session, made) == numpy.concatenate([DENSE, DENSE * 2], axis)).all()


def test_joined_of_other_sizes(session):
    parts = [sparse(DENSE), sparse(DENSE[:2, :2])]
    with pytest.raises(tf.errors.InvalidArgumentError, match="differ beside axis 0"):
        session.run(tf.sparse_concat(0, parts))
    expected = numpy.zeros((5, 4), "f")
    expected[:3], expected[3:, :2] = DENSE, DENSE[:2, :2]
    assert (dense(session, tf.sparse_concat(0, parts, expand_nonconcat_dim=True)) == expected).all()


def test_cut(session):
    assert (dense(session, tf.sparse_slice(sparse(DENSE), [1, 0], [5, 2])) == DENSE[1:, :2]).all()
    for axis in (0, 1):
        parts = tf.sparse_split(sp_input=sparse(DENSE), num_split=2, axis=axis)
        for one, expected in zip(parts, numpy.array_split(DENSE, 2, axis)):
            assert (dense(session, one) == expected).all()


def test_other_shapes(session):
    assert session.run(tf.sparse_reset_shape(sparse(DENSE))).dense_shape.tolist() == [3, 4]
    assert session.run(tf.sparse_reset_shape(sparse(DENSE), [5, 9])).dense_shape.tolist() == [5, 9]
    with pytest.raises(tf.errors.InvalidArgumentError, match="smaller"):
        session.run(tf.sparse_reset_shape(sparse(DENSE), [2, 9]))


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 0, 1, [0, 1], -1])
def test_largest_elements(session, axis, keepdims):
    given = tuple(axis) if isinstance(axis, list) else axis
    held = numpy.where(DENSE == 0, -numpy.inf, -DENSE).max(given, keepdims=keepdims)
    expected = numpy.where(numpy.isinf(held), 0, held)
    assert (session.run(tf.sparse_reduce_max(sparse(-DENSE), axis, keepdims)) == expected).all()


def test_two_of_one_shape(session):
    other = numpy.array([[0, -5, 0, 1], [0, 0, 0, 0], [8, 0, 0, 0]], "f")
    for function, expected in ((tf.sparse_maximum, numpy.maximum), (tf.sparse_minimum, numpy.minimum)):
        assert (dense(session, function(sparse(DENSE), sparse(other))) == expected(DENSE, other)).all()
    with pytest.raises(tf.errors.InvalidArgumentError, match="of shapes"):
        session.run(tf.sparse_maximum(sparse(DENSE), sparse(DENSE.T)))


def test_ids_as_coordinates(session):
    ids = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], [3, 1, 0], [3, 2])
    values = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], [5.0, 6.0, 7.0], [3, 2])
    made = tf.sparse_merge(ids, values, 4)
    assert (dense(session, made) == [[0, 6, 0, 5], [0] * 4, [7, 0, 0, 0]]).all()
    assert (session.run(tf.sparse_to_indicator(ids, 4)) == (dense(session, made) != 0)).all()
    both = tf.sparse_merge([ids, ids], values, [4, 5])
    assert session.run(both).indices.tolist() == [[0, 1, 1], [0, 3, 3], [2, 0, 0]]
    with pytest.raises(ValueError, match="2 tensors of ids for 1 sizes"):
        tf.sparse_merge([ids, ids], values, [4])


def test_shapes_that_a_run_tells_stay_open(session):
    x = tf.placeholder(tf.float32, [None, 3])
    shape = tf.stack([tf.shape(x)[0], 2])
    made = tf.sparse_to_dense(tf.placeholder(tf.int64, [None, 2], "i"), shape, 1.0)
    given = tf.SparseTensor(tf.placeholder(tf.int64, [None, 2], "j"), [1.0], tf.cast(shape, tf.int64))
    total = tf.sparse_reduce_sum(given, 1)
    assert made.shape.as_list() == [None, 2] and total.shape.as_list() == [None]
    for rows in (3, 5):
        feeds = {x: numpy.zeros((rows, 3)), "i:0": [[1, 1]], "j:0": [[2, 0]]}
        assert session.run(made, feeds).tolist() == [[0.0, float(k == 1)] for k in range(rows)]
        assert session.run(total, feeds).tolist() == [float(k == 2) for k in range(rows)]
