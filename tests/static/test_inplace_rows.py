"""Rows of tensors changed by ``tensorflow.python.ops.inplace_ops``."""

import numpy
import pytest

import twofold.static as tf
from twofold.static.python.ops import inplace_ops

X = numpy.arange(12, dtype=numpy.float32).reshape(4, 3)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("update", lambda old, new: new),
        ("add", lambda old, new: old + new),
        ("sub", lambda old, new: old - new),
    ],
)
def test_one_row_several_rows_and_all(name, change):
    function = getattr(inplace_ops, f"alias_inplace_{name}")
    for rows, values in ((2, X[0] + 1), ([0, 3], X[1:3] + 2), (None, X * 3)):
        expected = X.copy()
        chosen = slice(None) if rows is None else rows
        expected[chosen] = change(expected[chosen], values)
        with tf.Graph().as_default(), tf.Session() as session:
            given = tf.constant(X)
            assert session.run(function(given, rows, values)).tolist() == expected.tolist()
            assert session.run(given).tolist() == X.tolist()
