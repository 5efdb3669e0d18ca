"""Metrics that only ``tf.contrib.metrics`` has, gathered over runs, beside NumPy on all of the data."""

from __future__ import annotations

import numpy
import pytest

import twofold.static as tf

metrics = tf.contrib.metrics
RANDOM = numpy.random.default_rng(5)
ONE, TWO = RANDOM.normal(size=(2, 3, 6)).astype(numpy.float32)
TWO += 0.5 * ONE
WEIGHTS = RANDOM.integers(1, 4, (3, 6)).astype(numpy.float32)


@pytest.mark.parametrize("weighted", [False, True])
def test_streaming(weighted: bool) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x, y, w = (tf.placeholder(tf.float32, [None]) for _ in range(3))
        weights = w if weighted else None
        flags, truth = tf.cast(x > 0, tf.int64), tf.cast(y > 0, tf.int64)
        values, updates = metrics.aggregate_metric_map(
            {
                "covariance": metrics.streaming_covariance(x, y, weights),
                "pearson": metrics.streaming_pearson_correlation(x, y, weights),
                "count": metrics.count(x, weights),
                "missed": metrics.streaming_false_negative_rate(flags, truth, weights),
                "wrong": metrics.streaming_false_positive_rate(flags, truth, weights),
                "kappa": metrics.cohen_kappa(truth, flags, 2, weights),
            }
        )
        session.run(tf.local_variables_initializer())
        for one, two, scale in zip(ONE, TWO, WEIGHTS):
            last = session.run(updates, {x: one, y: two, w: scale})
        found = session.run(values)
    times = WEIGHTS.astype(int).ravel() if weighted else 1
    a, b = numpy.repeat(ONE.ravel(), times), numpy.repeat(TWO.ravel(), times)
    guess, truth = a > 0, b > 0
    agreed, chance = (guess == truth).mean(), sum((guess == k).mean() * (truth == k).mean() for k in (0, 1))
    wanted = {
        "covariance": numpy.cov(a, b)[0, 1],
        "pearson": numpy.corrcoef(a, b)[0, 1],
        "count": len(a),
        "missed": (~guess & truth).sum() / truth.sum(),
        "wrong": (guess & ~truth).sum() / (~truth).sum(),
        "kappa": (agreed - chance) / (1 - chance),
    }
    for name, value in wanted.items():
        numpy.testing.assert_allclose([found[name], last[name]], value, rtol=1e-4, err_msg=name)


def test_only_the_cases_asked_for_have_variables() -> None:
    with tf.Graph().as_default():
        tf.metrics.precision_at_thresholds([True], [0.3], [0.5])
        names = [v.op.name.split("/")[-1] for v in tf.local_variables()]
    assert sorted(names) == ["false_positives", "true_positives"]
