"""``tf.contrib.losses``: the computed values stand before the wanted ones, as in TensorFlow 1.15's ``loss_ops.py``."""

import numpy as np
import pytest

import twofold.static as tf

VALUES = np.array([[0.3, 0.6, 0.1], [0.2, 0.2, 0.6]], np.float32)
WANTED = np.array([[0, 1, 0], [1, 0, 0]], np.float32)


def cross_entropy(logits, labels):
    return -(labels * (logits - np.log(np.exp(logits).sum(-1, keepdims=True)))).sum(-1).mean()


EXPECTED = {
    "mean_squared_error": lambda x, y: ((x - y) ** 2).mean(),
    "absolute_difference": lambda x, y: abs(x - y).mean(),
    "log_loss": lambda x, y: -(y * np.log(x + 1e-7) + (1 - y) * np.log(1 - x + 1e-7)).mean(),
    "softmax_cross_entropy": cross_entropy,
    "sigmoid_cross_entropy": lambda x, y: (np.log1p(np.exp(x)) - x * y).mean(),
    "hinge_loss": lambda x, y: np.maximum(0, 1 - (2 * y - 1) * x),
}


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize("module", ["losses", "slim.losses"])
def test_the_computed_values_come_first(name, module):
    with tf.Graph().as_default(), tf.Session() as session:
        holder = tf.contrib.losses if module == "losses" else tf.contrib.slim.losses
        made = getattr(holder, name)(tf.constant(VALUES), tf.constant(WANTED))
        collected = tf.losses.get_losses()
        np.testing.assert_allclose(session.run(made), EXPECTED[name](VALUES, WANTED), rtol=1e-5)
    assert collected == ([] if name == "hinge_loss" else [made])


def test_others():
    with tf.Graph().as_default(), tf.Session() as session:
        losses = tf.contrib.losses
        sparse = losses.sparse_softmax_cross_entropy(tf.constant(VALUES), [1, 0])
        weighted = losses.mean_squared_error(tf.constant(VALUES), tf.constant(WANTED), weights=[[1.0], [0.0]])
        cosine = losses.cosine_distance(tf.constant(VALUES), tf.constant(WANTED), 1)
        mean = losses.compute_weighted_loss(tf.constant([1.0, 3.0]), [1.0, 0.5])
        found = session.run([sparse, weighted, cosine, mean])
    expected = [
        cross_entropy(VALUES, WANTED),
        ((VALUES - WANTED)[0] ** 2).mean(),
        1 - (VALUES * WANTED).sum(1).mean(),
        1.25,
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_the_hinge_loss_has_logits_by_name():
    with tf.Graph().as_default(), tf.Session() as session:
        made = tf.losses.hinge_loss(logits=VALUES, labels=WANTED)
        np.testing.assert_allclose(
            session.run(made), EXPECTED["hinge_loss"](VALUES, WANTED).mean(), rtol=1e-5
        )
