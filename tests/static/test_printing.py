"""``tf.print``: the texts are those of TensorFlow 2.21."""

import sys

import numpy as np
import pytest

import twofold.static as tf


def _printed(capfd, *inputs, **options):
    with tf.Session() as session:
        session.run(tf.print(*inputs, output_stream=sys.stdout, **options))
    return capfd.readouterr().out


def test_texts(capfd):
    many, table = tf.range(9), tf.reshape(tf.range(12), [2, 3, 2])
    assert _printed(capfd, "x:", many, sep=" | ") == "x: | [0 1 2 ... 6 7 8]\n"
    assert _printed(capfd, many, summarize=-1, end="") == "[0 1 2 3 4 5 6 7 8]"
    assert _printed(capfd, table, summarize=1) == "[[[0 1]\n  ...\n  [4 5]]\n\n [[6 7]\n  ...\n  [10 11]]]\n"
    assert _printed(capfd, [many[:2], tf.constant(3)], {"b": "text", "a": tf.constant(True)}) == (
        "[[0 1], 3] {'a': 1, 'b': 'text'}\n"
    )
    assert _printed(capfd, tf.constant("a")) == "a\n"
    assert _printed(capfd, tf.constant("a"), "{}", None) == '"a" {} None\n'
    numbers = tf.constant(np.array([0.1, 1 / 3, 1e10, 1.0, np.nan], np.float32))
    assert _printed(capfd, numbers, tf.constant(1 / 3, tf.float64)) == (
        "[0.1 0.333333343 1e+10 1 nan] 0.33333333333333331\n"
    )
    sparse = tf.SparseTensor([[0, 1]], [1.5], [2, 2])
    assert _printed(capfd, sparse) == "'SparseTensor(indices=[[0 1]], values=[1.5], shape=[2 2])'\n"


def test_order_and_loops(capfd, tmp_path):
    x = tf.placeholder(tf.float32, [None])
    with tf.control_dependencies([tf.print("first", x)]):
        y = x * 2
    with tf.control_dependencies(
        [tf.print("second", tf.reduce_sum(y), output_stream=f"file://{tmp_path}/lines")]
    ):
        z = tf.identity(y)

    def body(k):
        with tf.control_dependencies([tf.print("k", k, output_stream=sys.stderr)]):
            return k + 1

    with tf.Session() as session:
        assert session.run(z, {x: [1, 2]}).tolist() == [2, 4]
        session.run(tf.while_loop(lambda k: k < 2, body, [0]))
        session.run(x * 3, {x: [1]})
    assert capfd.readouterr().err == "first [1 2]\nk 0\nk 1\n"
    assert (tmp_path / "lines").read_text() == "second 6\n"
    with pytest.raises(ValueError, match="Unsupported output stream"):
        tf.print(x, output_stream="lines")
    with pytest.raises(ValueError, match="Unrecognized keyword"):
        tf.print(x, file=sys.stderr)
