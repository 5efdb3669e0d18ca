"""Look-ups in tables: of rows of at most some norm, and in tables of several parts. TensorFlow's numbers."""

import numpy
import pytest

import twofold.static as tf

TABLE = numpy.array([[3.0, 4.0], [0.1, 0.2]], numpy.float32)


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as made:
        yield made


def test_rows_are_scaled_down(session):
    found = session.run(tf.nn.embedding_lookup(TABLE, [0, 1, 1], max_norm=1.0))
    numpy.testing.assert_allclose(found, [[0.6, 0.8], [0.1, 0.2], [0.1, 0.2]], rtol=1e-6)


def test_the_norm_is_that_of_all_that_one_number_names(session):
    table = numpy.arange(12, dtype=numpy.float32).reshape(2, 3, 2)
    found = session.run(tf.nn.embedding_lookup(table, [[0, 1]], max_norm=2.0))
    numpy.testing.assert_allclose(numpy.sqrt((found**2).sum((2, 3))), [[2.0, 2.0]], rtol=1e-6)


@pytest.mark.parametrize(
    ("strategy", "firsts"),
    [("mod", [3.0, 13.0, 23.0, 0.1, 10.1, 20.1]), ("div", [3.0, 0.1, 13.0, 10.1, 23.0, 20.1])],
)
def test_a_table_in_parts(session, strategy, firsts):
    parts = [TABLE, TABLE + 10.0, TABLE + 20.0]
    found = session.run(tf.nn.embedding_lookup(parts, [0, 1, 2, 3, 4, 5], strategy))
    numpy.testing.assert_allclose(found[:, 0], firsts, rtol=1e-6)


def test_parts_of_different_sizes(session):
    parts = [numpy.concatenate([TABLE, TABLE[:1] + 1.0]), TABLE + 10.0, TABLE + 20.0]
    found = session.run(tf.nn.embedding_lookup(parts, numpy.arange(7, dtype=numpy.int64), "div"))
    numpy.testing.assert_allclose(found, numpy.concatenate(parts), rtol=1e-6)


def test_an_unknown_strategy_raises(session):
    with pytest.raises(ValueError, match="partition_strategy 'foo'"):
        tf.nn.embedding_lookup([TABLE, TABLE], [0], "foo")


@pytest.mark.parametrize(
    ("combiner", "expected"),
    [
        ("sum", [[0.7, 1.0], [0.1, 0.2]]),
        ("mean", [[0.35, 0.5], [0.1, 0.2]]),
        ("sqrtn", [[0.4949747, 0.7071068], [0.1, 0.2]]),
    ],
)
def test_combined_rows_are_scaled_down_before(session, combiner, expected):
    ids = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], tf.constant([0, 1, 1], tf.int64), [2, 2])
    found = session.run(tf.nn.embedding_lookup_sparse(TABLE, ids, None, combiner=combiner, max_norm=1.0))
    numpy.testing.assert_allclose(found, expected, rtol=1e-6)


def test_identity_matrices_in_batches(session):
    assert session.run(tf.eye(2, batch_shape=[2, 1])).tolist() == [[[[1, 0], [0, 1]]]] * 2
    found = tf.eye(2, 3, batch_shape=tf.constant([2]), dtype=tf.int32)
    assert found.shape.as_list() == [2, 2, 3]
    assert session.run(found).tolist() == [[[1, 0, 0], [0, 1, 0]]] * 2
