"""The text of what users get wrong most, frozen for every family of functions, declared before they run."""

import re

import numpy as np
import pytest

import twofold.static as tf
from twofold import errors


def message(error, action):
    """The text of the error that ``action`` raises, with line numbers cut to ``:N``."""
    with pytest.raises(error) as caught, tf.Graph().as_default(), tf.Session() as session:
        action(session)
    return re.sub(r"test_static_families\.py:\d+", "here.py:N", str(caught.value))


def P(*sizes):
    """A placeholder of float32."""
    return tf.placeholder(tf.float32, list(sizes))


MISTAKES = {
    "static: matmul": (
        RuntimeError,
        lambda s: tf.matmul(P(2, 3), P(4, 5)),
        "MatMul: inner sizes differ, 3 against 4: 'Placeholder:0' float32[2,3] (here.py:N), "
        "'Placeholder_1:0' float32[4,5] (here.py:N), at here.py:N. Make the first axis of other 3.",
    ),
    "static: axis": (
        IndexError,
        lambda s: tf.reduce_sum(P(2, 3), axis=2),
        "Sum: axis 2 is outside a tensor with 2 axes: 'Placeholder:0' float32[2,3] (here.py:N), at "
        "here.py:N. Use an axis from -2 to 1.",
    ),
    "static: concat": (
        RuntimeError,
        lambda s: tf.concat([P(2, 3), P(3, 4)], 0),
        "ConcatV2: tensor 1 of shape (3, 4) beside (2, 3) along axis 0: 'Placeholder:0' float32[2,3] "
        "(here.py:N), 'Placeholder_1:0' float32[3,4] (here.py:N), at here.py:N. Make all axes but that "
        "one equal.",
    ),
    "static: gather": (
        IndexError,
        lambda s: s.run(tf.gather(tf.constant([1.0, 2.0]), tf.constant([0, 2]))),
        "index_select: index 2 is outside an axis of size 2: input float32[2] "
        "(here.py:N), index int32[2] (here.py:N), at here.py:N. Use indices from 0 to 1.",
    ),
    "static: feed shape": (
        RuntimeError,
        lambda s: (lambda x: s.run(x * 2, {x: np.ones((3, 3))}))(P(2, 3)),
        "feed: a value float32[3,3] does not fit 'Placeholder:0' float32[2,3] (here.py:N), at here.py:N."
        " Feed an array of its shape, or declare it with None where sizes vary.",
    ),
    "static: not fed": (
        RuntimeError,
        lambda s: s.run(P(2) * 2),
        "placeholder 'Placeholder:0' float32[2] (here.py:N) is not fed, but mul (here.py:N) needs it, at"
        " here.py:N. Add it to feed_dict: run(..., feed_dict={Placeholder: value}).",
    ),
    "static: uninitialised": (
        RuntimeError,
        lambda s: s.run(tf.Variable([1.0])),
        "variable 'Variable' float32[1] (here.py:N) has no value in this session, at here.py:N. Run "
        "tf.global_variables_initializer() first, or restore it with a Saver.",
    ),
    "static: fed inner sizes": (
        RuntimeError,
        lambda s: (lambda x, y: s.run(tf.matmul(x, y), {x: np.ones((2, 3)), y: np.ones((4, 5))}))(
            P(None, None), P(None, None)
        ),
        "MatMul, declared at here.py:N: matmul: inner sizes differ, 3 against 4: input float32[2,3] "
        "(here.py:N), other float32[4,5] (here.py:N), at here.py:N. Make the first axis of other 3.",
    ),
    "static: reshape": (
        RuntimeError,
        lambda s: tf.reshape(P(2, 3), [4, 2]),
        "Reshape: 6 elements do not fill shape (4, 2): 'Placeholder:0' float32[2,3] (here.py:N), at "
        "here.py:N. Make axis 0 3.",
    ),
    "static: embedding": (
        IndexError,
        lambda s: (
            lambda k: s.run(tf.nn.embedding_lookup(tf.constant(np.ones((4, 2), np.float32)), k), {k: [1, 4]})
        )(tf.placeholder(tf.int64, [None])),
        "index_select: index 4 is outside an axis of size 4: input float32[4,2] "
        "(here.py:N), index int64[2] (here.py:N), at here.py:N. Use indices from 0 to 3.",
    ),
    "static: split": (
        RuntimeError,
        lambda s: tf.split(P(5), 2),
        "Split: axis 0 of size 5 does not divide into 2 parts: 'Placeholder:0' float32[5] (here.py:N), "
        "at here.py:N. Give a list of sizes.",
    ),
    "static: stack": (
        RuntimeError,
        lambda s: tf.stack([P(2), P(3)]),
        "Pack: tensor 1 of shape (3,) beside (2,): 'Placeholder:0' float32[2] (here.py:N), "
        "'Placeholder_1:0' float32[3] (here.py:N), at here.py:N. Make all shapes equal.",
    ),
    "static: conv": (
        RuntimeError,
        lambda s: tf.nn.conv2d(P(1, 5, 5, 3), P(2, 2, 4, 8), [1, 1, 1, 1], "SAME"),
        "Conv2D: 3 channels for a weight that takes 4: 'Placeholder:0' float32[1,5,5,3] (here.py:N), "
        "'Placeholder_1:0' float32[2,2,4,8] (here.py:N), at here.py:N. Give an input with 4 channels, or"
        " another weight or groups.",
    ),
    "static: loss": (
        RuntimeError,
        lambda s: tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=tf.constant([0, 1, 2]), logits=P(2, 3)
        ),
        "SparseSoftmaxCrossEntropyWithLogits: targets of shape (3,) for scores of shape (2, 3): "
        "'Const:0' int32[3] (here.py:N), 'Placeholder:0' float32[2,3] (here.py:N), at here.py:N. Give "
        "one class number for each row: shape (2,).",
    ),
    "static: label": (
        IndexError,
        lambda s: s.run(
            tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels=tf.constant([0, 7]), logits=tf.constant(np.ones((2, 3), np.float32))
            )
        ),
        "cross_entropy: class 7 does not exist, there are 3 classes: input float32[2,3] "
        "(here.py:N), target int32[2] (here.py:N), at "
        "here.py:N. Use class numbers from 0 to 2, or a loss its ignore_index for rows to leave out.",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_text(name):
    error, action, text = MISTAKES[name]
    assert message(error, action) == text


def kinds(kind: type) -> list[type]:
    return [kind, *[inner for one in kind.__subclasses__() for inner in kinds(one)]]


def test_every_error_of_an_operation_can_be_one_of_a_run() -> None:
    for kind in kinds(errors.TwofoldError):
        found = errors.invalid(kind)
        assert issubclass(found, kind) and issubclass(found, errors.GraphError), kind


def test_none_among_numbers_is_an_error_and_not_nan() -> None:
    for wrong in (lambda: tf.stack([tf.constant(1.0), None]), lambda: tf.constant([1.0, None], tf.float32)):
        with pytest.raises(ValueError, match="None is no number"):
            wrong()
