"""The beam search of connectionist temporal classification, against all ways to read a sequence."""

import itertools

import numpy as np

import twofold.static as tf


def _by_counting(logits):
    """The logarithm of the probability of each label sequence, summed over all paths."""
    scores = logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True)
    blank, found = logits.shape[1] - 1, {}
    for path in itertools.product(range(blank + 1), repeat=len(logits)):
        labels = tuple(k for k, _ in itertools.groupby(path) if k != blank)
        score = sum(scores[step, label] for step, label in enumerate(path))
        found[labels] = np.logaddexp(found.get(labels, -np.inf), score)
    return sorted(found.items(), key=lambda item: -item[1])


def test_most_probable_labels():
    logits = np.random.default_rng(2).standard_normal((6, 2, 3)).astype(np.float32) * 2
    decoded, scores = tf.nn.ctc_beam_search_decoder(
        logits, [6, 4], beam_width=500, top_paths=3, merge_repeated=False
    )
    assert scores.shape == (2, 3)
    with tf.Session() as session:
        paths, totals = session.run([decoded, scores])
    for k, length in enumerate([6, 4]):
        for path, total, (labels, score) in zip(paths, totals[k], _by_counting(logits[:length, k])):
            assert tuple(path.values[path.indices[:, 0] == k]) == labels
            np.testing.assert_allclose(total, score, rtol=1e-5)


def test_merged_labels():
    logits = np.full((3, 1, 2), -9.0, np.float32)
    logits[[0, 1, 2], 0, [0, 1, 0]] = 9
    with tf.Session() as session:
        merged, plain = session.run(
            [tf.nn.ctc_beam_search_decoder(logits, [3])[0], tf.nn.ctc_beam_search_decoder_v2(logits, [3])[0]]
        )
    assert merged[0].values.tolist() == [0] and plain[0].values.tolist() == [0, 0]
