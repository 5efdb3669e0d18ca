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
    "invert_permutation": (
        lambda i: tf.invert_permutation(i), [2, 0, 1], [1, 2, 0], [[1, 1, 0], [3, 0, 1], [-1, 0, 1]],
    ),
    "unravel_index": (lambda i: tf.unravel_index(i, [2, 3]), [5], [[1], [2]], [[6], [-1]]),
    "batch_gather": (lambda i: tf.batch_gather(X, i), [[1], [0], [3]], X[[0, 1, 2], [1, 0, 3]][:, None], [[[-1]] * 3]),
    "dynamic_stitch": (lambda i: tf.dynamic_stitch([i, [1]], [[5], [6]]), [0], [5, 6], [[-1]]),
    "TensorArray.read": (lambda i: tf.TensorArray(tf.float32, 3).unstack(X).read(i), 1, X[1], [-1, 3]),
    "TensorArray.write": (
        lambda i: tf.TensorArray(tf.float32, 3).write(0, X[0]).write(i, X[0]).read(1), 1, X[0], [-1, 3],
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


def test_diagonals_of_halves_of_the_axes() -> None:
    """Of ``tf.diag`` as TensorFlow documents it: ``output[i, j, i, j] = diagonal[i, j]``."""
    values = numpy.arange(1, 7).reshape(2, 3)
    expected = numpy.zeros((2, 3, 2, 3), int)
    for k in range(2):
        for j in range(3):
            expected[k, j, k, j] = values[k, j]
    with tf.Graph().as_default(), tf.Session() as session:
        made = tf.diag(tf.constant(values))
        assert session.run(made).tolist() == expected.tolist()
        assert session.run(tf.diag_part(made)).tolist() == values.tolist()
        assert session.run(tf.diag_part(tf.diag([1.0, 2.0]))).tolist() == [1.0, 2.0]


SHAPES: dict[str, tuple[Callable[[Any], Any], tuple[int, ...], tuple[int, ...]]] = {
    "add_n": (lambda x: tf.add_n([x, tf.ones([3])]), (3,), (1,)),
    "accumulate_n": (lambda x: tf.accumulate_n([x, tf.ones([3])]), (3,), (1,)),
    "scatter_add": (lambda x: tf.scatter_add(tf.Variable(tf.ones([4, 2])), [0, 1], x), (2, 2), (2, 1)),
    "rgb_to_grayscale": (lambda x: tf.image.rgb_to_grayscale(x), (2, 2, 3), (2, 2, 4)),
    "diag_part": (lambda x: tf.diag_part(x), (2, 2), (2, 3)),
    "ctc_greedy_decoder": (lambda x: tf.nn.ctc_greedy_decoder(x, [2])[1], (2, 1, 3), (2, 2, 3)),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_that_could_be_broadcast(name: str) -> None:
    """TensorFlow raises for each."""
    declare, good, wrong = SHAPES[name]
    with tf.Graph().as_default(), tf.Session() as session:
        fed = tf.placeholder(tf.float32, [None] * len(good))
        found = declare(fed)
        session.run(tf.global_variables_initializer())
        session.run(found, {fed: numpy.ones(good)})
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(found, {fed: numpy.ones(wrong)})


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


def test_the_broadcast_of_a_shape_that_is_known_in_a_run() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None])
        found = tf.broadcast_dynamic_shape(tf.shape(x), [3, 4])
        wide = tf.broadcast_to(x, found)
        for size in (4, 1):
            assert session.run(found, {x: numpy.ones(size)}).tolist() == [3, 4]
            assert session.run(wide, {x: numpy.ones(size)}).shape == (3, 4)
        with pytest.raises(
            tf.errors.InvalidArgumentError, match=r"shapes \(3,\) and \(3, 4\) do not broadcast"
        ):
            session.run(found, {x: numpy.ones(3)})
