"""The ways of merging repetitions in CTC losses, against sums over all paths."""

import itertools

import numpy
import pytest

import twofold.static as tf

LABELS = [[0, 0, 1], [2, 2, 2], [1, 0, 0]]
LENGTHS = [5, 5, 3]
LOGITS = numpy.random.default_rng(0).normal(size=(5, 3, 4))


def said(path, merges):
    """The labels of a path of classes, of which the last is the blank."""
    kept = [c for k, c in enumerate(path) if not merges or k == 0 or c != path[k - 1]]
    return [c for c in kept if c != 3]


def losses(logits, collapses, merges):
    found = []
    for n, labels in enumerate(LABELS):
        target = [c for k, c in enumerate(labels) if not collapses or k == 0 or c != labels[k - 1]]
        rows = logits[: LENGTHS[n], n]
        chances = numpy.exp(rows) / numpy.exp(rows).sum(1, keepdims=True)
        paths = itertools.product(range(4), repeat=LENGTHS[n])
        steps = range(LENGTHS[n])
        found.append(sum(chances[steps, path].prod() for path in paths if said(path, merges) == target))
    with numpy.errstate(divide="ignore"):  # labels too long for their frames
        return -numpy.log(found)


@pytest.mark.parametrize("collapses", [False, True])
@pytest.mark.parametrize("merges", [False, True])
def test_repetitions(collapses, merges):
    where = [[n, k] for n in range(3) for k in range(3)]
    with tf.Graph().as_default(), tf.Session() as session:
        logits = tf.placeholder(tf.float64, [None, 3, 4])
        labels = tf.SparseTensor(where, numpy.ravel(LABELS).tolist(), [3, 3])
        made = tf.nn.ctc_loss(
            labels, logits, LENGTHS, preprocess_collapse_repeated=collapses, ctc_merge_repeated=merges
        )
        (slope,) = tf.gradients(made[:2], logits)
        found, share = session.run([made, slope], {logits: LOGITS})
    numpy.testing.assert_allclose(found, losses(LOGITS, collapses, merges), rtol=1e-6)
    for index in [(0, 0, 0), (2, 0, 1), (3, 1, 2), (1, 1, 3), (4, 1, 0)]:
        change = numpy.zeros_like(LOGITS)
        change[index] = 1e-5
        ends = [losses(LOGITS + one * change, collapses, merges)[:2].sum() for one in (1, -1)]
        assert abs(share[index] - (ends[0] - ends[1]) / 2e-5) < 1e-6
