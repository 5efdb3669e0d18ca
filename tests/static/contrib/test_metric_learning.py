"""Losses of embeddings, against their definitions in loops."""

import numpy as np

import twofold.static as tf

LABELS = np.array([0, 1, 0, 1, 2])


def _points(seed):
    return np.random.default_rng(seed).standard_normal((5, 3)).astype(np.float32)


def test_semihard_triplets():
    points, found = _points(0), []
    distances = ((points[:, None] - points[None]) ** 2).sum(-1)
    for k in range(5):
        others = distances[k][LABELS[k] != LABELS]
        for j in range(5):
            if k != j and LABELS[k] == LABELS[j]:
                farther = others[others > distances[k, j]]
                negative = farther.min() if farther.size else others.max()
                found.append(max(0, 0.5 + distances[k, j] - negative))
    loss = tf.contrib.losses.metric_learning.triplet_semihard_loss(LABELS, points, 0.5)
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(loss), np.mean(found), rtol=1e-5)


def test_pairs():
    one, two = _points(1), _points(2)
    together = np.array([1, 0, 1, 0, 0])
    learning = tf.contrib.losses.metric_learning
    fetches = learning.contrastive_loss(together, one, two, 2.0), learning.npairs_loss(LABELS, one, two, 0.1)
    distances = np.sqrt(((one - two) ** 2).sum(1))
    contrast = np.where(together, distances**2, np.maximum(2 - distances, 0) ** 2).mean()
    wanted = (LABELS[:, None] == LABELS).astype(float)
    scores = one @ two.T
    scores = scores - np.log(np.exp(scores).sum(1, keepdims=True))
    entropy = -(wanted / wanted.sum(1, keepdims=True) * scores).sum(1).mean()
    penalty = 0.25 * 0.1 * ((one**2).sum(1).mean() + (two**2).sum(1).mean())
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(fetches), [contrast, entropy + penalty], rtol=1e-5)
