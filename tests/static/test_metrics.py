"""Measures over many runs, against NumPy over all batches at once."""

import numpy
import pytest

import twofold.static as tf

RANDOM = numpy.random.default_rng(0)
LABELS = RANDOM.integers(0, 2, (3, 20))
GUESSES = RANDOM.integers(0, 2, (3, 20))
WEIGHTS = RANDOM.random((3, 20)).astype("f")
SCORES = numpy.clip(LABELS * 0.4 + RANDOM.random((3, 20)) * 0.6, 0, 1).astype("f")


def measured(metric, labels, guesses, weights=None):
    """The values after each batch, and the one that is only read."""
    with tf.Graph().as_default(), tf.Session() as session:
        label, guess = tf.placeholder(tf.int64, [None]), tf.placeholder(guesses.dtype.name, [None])
        weight = None if weights is None else tf.placeholder(tf.float32, [None])
        value, update = metric(label, guess, weight)
        session.run(tf.local_variables_initializer())
        found = []
        for k in range(len(labels)):
            feeds = {label: labels[k], guess: guesses[k]}
            found.append(session.run(update, feeds if weight is None else {**feeds, weight: weights[k]}))
        return found, session.run(value)


def weighted(part):
    return lambda y, p, w: (part(y, p) * w).sum()


def share(one, other):
    return lambda y, p, w: one(y, p, w) / (one(y, p, w) + other(y, p, w))


COUNTS = {
    "true_positives": weighted(lambda y, p: (y == 1) & (p == 1)),
    "true_negatives": weighted(lambda y, p: (y == 0) & (p == 0)),
    "false_positives": weighted(lambda y, p: (y == 0) & (p == 1)),
    "false_negatives": weighted(lambda y, p: (y == 1) & (p == 0)),
}
METRICS = {
    "accuracy": lambda y, p, w: numpy.average(y == p, weights=w),
    **COUNTS,
    "precision": share(COUNTS["true_positives"], COUNTS["false_positives"]),
    "recall": share(COUNTS["true_positives"], COUNTS["false_negatives"]),
    "mean_absolute_error": lambda y, p, w: numpy.average(abs(y - p), weights=w),
    "mean_squared_error": lambda y, p, w: numpy.average((y - p) ** 2, weights=w),
    "root_mean_squared_error": lambda y, p, w: numpy.average((y - p) ** 2, weights=w) ** 0.5,
}


@pytest.mark.parametrize("use_weights", [False, True])
@pytest.mark.parametrize("name", METRICS)
def test_batches_add_up(name, use_weights):
    found, value = measured(getattr(tf.metrics, name), LABELS, GUESSES, WEIGHTS if use_weights else None)
    for k in range(3):
        parts = (
            LABELS[: k + 1],
            GUESSES[: k + 1],
            WEIGHTS[: k + 1] if use_weights else numpy.ones((k + 1, 20)),
        )
        assert found[k] == pytest.approx(METRICS[name](*parts), rel=1e-5)
    assert value == found[-1]


def test_area_under_the_curve():
    found, value = measured(tf.metrics.auc, LABELS, SCORES)
    positive, negative = SCORES[LABELS == 1], SCORES[LABELS == 0]
    above = (positive[:, None] > negative).mean() + (positive[:, None] == negative).mean() / 2
    assert value == found[-1] == pytest.approx(above, abs=0.01)


def test_intersection_over_union():
    with tf.Graph().as_default(), tf.Session() as session:
        value, update = tf.metrics.mean_iou([0, 1, 2, 1], [0, 2, 2, 1], 4)
        session.run(tf.local_variables_initializer())
        assert session.run(update).sum() == 4
        assert session.run(value) == pytest.approx((1 + 0.5 + 0.5) / 3)


def test_names_and_collections():
    with tf.Graph().as_default(), tf.Session() as session:
        value, update = tf.metrics.accuracy([1, 2], [[1], [3]], updates_collections=["updates"])
        assert [v.name for v in tf.local_variables()] == ["accuracy/total:0", "accuracy/count:0"]
        assert tf.get_collection("updates") == [update] and tf.trainable_variables() == []
        session.run(tf.local_variables_initializer())
        assert session.run(value) == 0.0
        assert session.run(update) == 0.5
        share, _ = tf.metrics.percentage_below(tf.constant([1.0, 2.0]), 1.5)
        session.run(tf.local_variables_initializer())
        assert session.run(share) == 0.0


@pytest.mark.parametrize("name", METRICS)
def test_a_last_axis_that_one_side_alone_has_is_dropped(name):
    labels, guesses = numpy.random.default_rng(3).integers(0, 2, (2, 3, 4)).astype("float32")
    wanted = METRICS[name](labels, guesses, numpy.ones((3, 4)))
    metric = getattr(tf.metrics, name)
    for given in ((labels, guesses), (labels[..., None], guesses), (labels, guesses[..., None])):
        with tf.Graph().as_default(), tf.Session() as session:
            value, update = metric(*given)
            session.run(tf.local_variables_initializer())
            assert session.run(update) == pytest.approx(wanted, rel=1e-6)
            assert session.run(value) == pytest.approx(wanted, rel=1e-6)


def test_a_confusion_matrix_of_all_runs():
    from twofold.static.python.ops.metrics_impl import _streaming_confusion_matrix

    with tf.Graph().as_default(), tf.Session() as session:
        labels, guessed = tf.placeholder(tf.int32, [None, 2]), tf.placeholder(tf.int32, [None, 2])
        total, update = _streaming_confusion_matrix(labels, guessed, 3, tf.cast(labels > 0, tf.int32))
        session.run(tf.local_variables_initializer())
        for _ in range(2):
            session.run(update, {labels: [[0, 1], [2, 2]], guessed: [[0, 2], [2, 1]]})
        assert session.run(total).tolist() == [[0, 0, 0], [0, 0, 2], [0, 2, 2]]
        assert total.dtype is tf.float64


def test_errors_of_pairs_of_elements():
    rng = numpy.random.default_rng(0)
    labels, predictions = rng.normal(size=(2, 3, 2, 2)).astype(numpy.float32)
    error = (predictions - labels).reshape(3, 4)
    pairs = [(a[:, None] - a[None, :])[~numpy.eye(4, dtype=bool)] ** 2 for a in error]
    wanted = numpy.array([one.mean() for one in pairs])
    with tf.Graph().as_default(), tf.Session() as session:
        found = tf.losses.mean_pairwise_squared_error(labels, predictions, 2.0)
        numpy.testing.assert_allclose(session.run(found), 2 * wanted.sum(), rtol=1e-5)
        weights = numpy.array([1.0, 0.0, 3.0]).reshape(3, 1, 1)
        found = tf.losses.mean_pairwise_squared_error(labels, predictions, weights)
        numpy.testing.assert_allclose(session.run(found), wanted @ [1, 0, 3], rtol=1e-5)
        assert len(tf.losses.get_losses()) == 2
