"""Objects of a program that stand for tensors in operations, fetches and feeds."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from twofold.static.python.client.session import register_session_run_conversion_functions

import twofold.static as tf


class Pair:
    def __init__(self, first: Any, second: Any) -> None:
        self.first, self.second = first, second


class Both(Pair):
    pass


def test_operations_take_registered_objects_by_priority() -> None:
    calls = []

    def refuse(value: Any, **options: Any) -> Any:
        calls.append(options)
        return NotImplemented

    tf.register_tensor_conversion_function(Pair, lambda pair, **_: tf.stack([pair.first, pair.second]))
    tf.register_tensor_conversion_function(Pair, refuse, priority=1)
    pair = Both(tf.constant(1.0), tf.constant(3.0))
    with tf.Session() as session:
        for made in (tf.square(pair) - 1.0, tf.constant([1.0, 3.0]) * pair - 1.0):
            assert session.run(made).tolist() == [0.0, 8.0]
    assert calls[0] == {"dtype": None, "name": None, "as_ref": False}
    with pytest.raises(TypeError):
        tf.register_tensor_conversion_function(complex, lambda value, **_: value)


def test_sessions_fetch_and_feed_registered_objects() -> None:
    class Noisy:
        def __init__(self) -> None:
            self.tensor = tf.placeholder_with_default(tf.constant([1.0, 2.0]), [2])

    register_session_run_conversion_functions(
        Noisy,
        lambda one: ([one.tensor], lambda found: found[0] + 1),
        lambda one, value: [(one.tensor, value[::-1])],
    )
    with pytest.raises(ValueError, match="already been registered"):
        register_session_run_conversion_functions(Noisy, lambda one: ([], list))
    noisy = Noisy()
    with tf.Session() as session:
        for _ in range(2):
            assert session.run({"a": noisy})["a"].tolist() == [2.0, 3.0]
            assert session.run(noisy, {noisy: [5.0, 6.0]}).tolist() == [7.0, 6.0]
            assert session.run(noisy.tensor * 2, {noisy: [5.0, 6.0]}).tolist() == [12.0, 10.0]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([numpy.int64(1), numpy.int64(2)], "int32"),
        ([numpy.int64(1), 2], "int32"),
        ([[numpy.float64(1.0)]], "float32"),
        ((numpy.float32(1.0), numpy.float64(2.0)), "float32"),
        ([numpy.int64(2**40)], "int64"),
        ([numpy.int8(1)], "int8"),
        (numpy.float64(1.0), "float64"),
        (numpy.arange(2), "int64"),
    ],
)
def test_lists_of_numbers_of_numpy_have_tensorflows_defaults(value, expected):
    with tf.Graph().as_default():
        makers = [tf.constant, tf.convert_to_tensor, tf.Variable]
        makers += [tf.stack] if isinstance(value, (list, tuple)) else []
        assert {make(value).dtype.base_dtype.name for make in makers} == {expected}


def test_objects_that_become_arrays_keep_their_dtype():
    class Column:
        def __array__(self, dtype=None, copy=None):
            return numpy.array([1.0, 2.0], dtype)

    with tf.Graph().as_default():
        assert tf.constant(Column()).dtype is tf.float64
