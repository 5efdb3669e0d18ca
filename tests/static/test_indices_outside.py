"""Indices outside of one axis, of which the flat index is inside of the whole: TensorFlow raises on a CPU for each."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import twofold.static as tf

X = numpy.arange(12, dtype="float32").reshape(3, 4)


def ones_at(position: tuple[int, ...]) -> Any:
    made = numpy.zeros((3, 4), "float32")
    made[position] = 1.0
    return made


def variable() -> Any:
    return tf.Variable(tf.zeros([3, 4]))


Case = tuple[
    Callable[[Any], Any], Any, Any, list[Any]
]  # what is declared, what is fed, its result, wrong feeds
CASES: dict[str, Case] = {
    "gather": (lambda i: tf.gather(X, i), [2, 0], X[[2, 0]], [[0, -1], [3, 0]]),
    "gather axis": (lambda i: tf.gather(X, i, axis=1), [3], X[:, [3]], [[-1], [4]]),
    "embedding_lookup": (lambda i: tf.nn.embedding_lookup(X, i), [[1]], X[[[1]]], [[[-1]], [[3]]]),
    "gather_nd": (lambda i: tf.gather_nd(X, i), [[1, 3], [2, 0]], X[[1, 2], [3, 0]], [[[0, 5]], [[1, -1]], [[3, 0]]]),
    "gather_nd rows": (lambda i: tf.gather_nd(X, i), [[1]], X[[1]], [[[-1]], [[3]]]),
    "scatter_nd": (lambda i: tf.scatter_nd(i, [1.0], [3, 4]), [[1, 3]], ones_at((1, 3)), [[[1, 5]], [[1, -1]]]),
    "scatter_nd_update": (
        lambda i: tf.scatter_nd_update(variable(), i, [1.0]), [[0, 1]], ones_at((0, 1)), [[[0, 5]], [[2, -1]]],
    ),
    "tensor_scatter_update": (
        lambda i: tf.tensor_scatter_update(tf.zeros([3, 4]), i, [1.0]), [[0, 1]], ones_at((0, 1)), [[[0, 5]]],
    ),
    "scatter_update": (
        lambda i: tf.scatter_update(variable(), i, tf.ones([1, 4])), [1], ones_at((1,)), [[-1], [3]],
    ),
    "sparse_add": (
        lambda i: tf.sparse_add(tf.SparseTensor(tf.cast(i, tf.int64), [1.0], [3, 4]), tf.zeros([3, 4])),
        [[1, 3]], ones_at((1, 3)), [[[0, 5]]],
    ),
    "confusion_matrix": (lambda i: tf.confusion_matrix([0, 1], i, 2), [1, 1], [[0, 1], [0, 1]], [[0, -1], [2, 0]]),
    "unsorted_segment_sum": (
        lambda i: tf.unsorted_segment_sum([1.0, 2.0], i, 2), [1, -1], [0.0, 1.0], [[0, 2], [3, 0]],
    ),
    "unsorted_segment_max": (lambda i: tf.unsorted_segment_max([1.0, 2.0], i, 1), [0, 0], [2.0], [[0, 1]]),
    "segment_sum": (lambda i: tf.segment_sum([1.0, 2.0], i), [0, 0], [3.0], [[-1, 0]]),
    "bincount": (lambda i: tf.bincount(i), [2, 0], [1, 0, 1], [[0, -1]]),
    "reverse_sequence": (
        lambda i: tf.reverse_sequence([[1, 2, 3]], i, seq_axis=1), [2], [[2, 1, 3]], [[-1], [4]],
    ),
    "unravel_index": (lambda i: tf.unravel_index(i, [2, 3]), [5], [[1], [2]], [[6], [-1]]),
    "batch_gather": (lambda i: tf.batch_gather(X, i), [[1], [0], [3]], X[[0, 1, 2], [1, 0, 3]][:, None], [[[-1]] * 3]),
    "dynamic_stitch": (lambda i: tf.dynamic_stitch([i, [1]], [[5], [6]]), [0], [5, 6], [[-1]]),
    "TensorArray.read": (lambda i: tf.TensorArray(tf.float32, 3).unstack(X).read(i), 1, X[1], [-1, 3]),
    "TensorArray.write": (
        lambda i: tf.TensorArray(tf.float32, 3).unstack(X).write(i, X[0]).read(1), 1, X[0], [-1, 3],
    ),
    "ctc_loss": (
        lambda i: tf.exp(-tf.nn.ctc_loss(tf.SparseTensor([[0, 0]], [1], [1, 1]), tf.zeros([2, 1, 4]), i)),
        [1], [0.25], [[3]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_run_raises(name: str) -> None:
    declare, good, expected, wrong = CASES[name]
    with tf.Graph().as_default(), tf.Session() as session:
        fed = tf.placeholder(tf.int32, [None, *numpy.shape(good)[1:]] if numpy.ndim(good) else [])
        found = declare(fed)
        session.run(tf.global_variables_initializer())
        numpy.testing.assert_allclose(session.run(found, {fed: good}), expected, rtol=1e-6)
        for values in wrong:
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(found, {fed: values})


def test_a_case_of_which_no_predicate_is_true() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.int32, [])
        pairs = [(tf.equal(x, k), lambda k=k: tf.constant(k)) for k in (1, 2)]
        found, other = tf.case(pairs), tf.case(pairs, default=lambda: tf.constant(-1))
        assert session.run([found, other], {x: 2}) == [2, 2]
        assert session.run(other, {x: 3}) == -1
        with pytest.raises(tf.errors.InvalidArgumentError, match="none of the predicates is true"):
            session.run(found, {x: 3})


def test_one_value_for_two_positions_of_a_sparse_tensor() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        positions = tf.placeholder(tf.int64, [None, 2])
        dense = tf.sparse_tensor_to_dense(tf.SparseTensor(positions, [1.0], [2, 2]))
        with pytest.raises(tf.errors.InvalidArgumentError, match="1 values for 2 positions"):
            session.run(dense, {positions: [[0, 0], [1, 1]]})


WORDS: dict[str, tuple[Callable[[Any], Any], Any, type[Exception]]] = {
    "decode_raw": (lambda s: tf.decode_raw(s, tf.int32), b"abc", tf.errors.InvalidArgumentError),
    "decode_csv": (lambda s: tf.decode_csv([s], [[0.0], [0.0]])[0], b"1,2,3", tf.errors.InvalidArgumentError),
    "substr": (lambda s: tf.substr(s, 9, 1), b"hello", tf.errors.InvalidArgumentError),
    "string_join": (
        lambda s: tf.string_join([[s, s], ["a", "b", "c"]]),
        b"a",
        tf.errors.InvalidArgumentError,
    ),
    "string_to_number": (lambda s: tf.string_to_number(s), b"two", tf.errors.InvalidArgumentError),
    "read_file": (lambda s: tf.read_file(s), b"/nothing/there", tf.errors.NotFoundError),
    "py_func": (lambda s: tf.py_func(lambda v: 1.0, [s], tf.float32), b"", tf.errors.InvalidArgumentError),
}


@pytest.mark.parametrize("name", WORDS)
def test_what_python_computes_raises_as_a_run_does(name: str) -> None:
    declare, value, kind = WORDS[name]
    with tf.Graph().as_default(), tf.Session() as session:
        fed = tf.placeholder(tf.string, [])
        found = declare(fed)
        with pytest.raises(kind) as caught:
            session.run(found, {fed: value})
        assert traceback.extract_tb(caught.value.__traceback__)[-1].filename == __file__
        assert "lambda" in str(traceback.extract_tb(caught.value.__traceback__)[-1].line)


def test_a_singular_matrix_is_an_invalid_argument() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        inverse = tf.matrix_inverse(tf.zeros([2, 2]))
        with pytest.raises(tf.errors.InvalidArgumentError, match="singular"):
            session.run(inverse)
