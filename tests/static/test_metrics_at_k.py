"""Measures of the highest predictions and of thresholds, against counts of Python's sets and of NumPy."""

import numpy
import pytest

import twofold.static as tf

RANDOM = numpy.random.default_rng(0)
SCORES = RANDOM.random((3, 6, 5)).astype("f")
LABELS = RANDOM.integers(0, 5, (3, 6, 2))
WEIGHTS = RANDOM.random((3, 6)).astype("f")
TRUTH = RANDOM.integers(0, 2, (3, 6))


def run(make, *arrays):
    """What the update returns after each batch, and the value that is only read."""
    with tf.Graph().as_default(), tf.Session() as session:
        fed = [tf.placeholder(one.dtype.name, [None, *one.shape[2:]]) for one in arrays]
        value, update = make(*fed)
        session.run(tf.local_variables_initializer())
        found = [
            session.run(update, dict(zip(fed, batch, strict=True))) for batch in zip(*arrays, strict=True)
        ]
        return found, session.run(value)


def rows(count):
    for scores, labels, weights in zip(SCORES[:count], LABELS[:count], WEIGHTS[:count], strict=True):
        yield from zip(scores, labels, weights, strict=True)


def share(kind, k, class_id, weighted, count):
    right = other = 0.0
    for scores, labels, weight in rows(count):
        guesses, wanted = set(numpy.argsort(-scores)[:k]), set(labels)
        if class_id is not None:
            guesses, wanted = guesses & {class_id}, wanted & {class_id}
        scale = float(weight) if weighted else 1.0
        right += scale * len(guesses & wanted)
        other += scale * len(guesses - wanted if kind == "precision" else wanted - guesses)
    return right / (right + other) if right + other else numpy.nan


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("class_id", [None, 2])
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("kind", ["precision", "recall"])
def test_shares_of_the_highest(kind, k, class_id, weighted):
    metric = getattr(tf.metrics, f"{kind}_at_k")
    found, value = run(
        lambda labels, scores, weights: metric(labels, scores, k, class_id, weights if weighted else None),
        *(LABELS, SCORES, WEIGHTS),
    )
    wanted = [share(kind, k, class_id, weighted, count) for count in (1, 2, 3)]
    numpy.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert value.dtype == numpy.float64 and numpy.array_equal(value, found[-1], equal_nan=True)


def test_sparse_labels_and_classes_that_are_given():
    labels = tf.SparseTensor([[0, 0], [1, 0], [1, 1]], tf.constant([1, 2, 3], tf.int64), [3, 2])
    with tf.Session() as session:
        value, update = tf.metrics.recall_at_top_k(labels, [[1, 0], [2, 1], [0, 4]])
        precision, more = tf.metrics.sparse_precision_at_k([1, 0], [[0.1, 0.9], [0.2, 0.8]], 1)
        session.run(tf.local_variables_initializer())
        assert session.run(update) == pytest.approx(2 / 3)
        assert session.run(more) == 0.5
        assert session.run([precision, value]) == pytest.approx([0.5, 2 / 3])
        assert update.dtype == tf.float64 and more.op.name == "precision_at_1/update_op"


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [1, 3])
def test_average_precision(k, weighted):
    found, _ = run(
        lambda labels, scores, weights: tf.metrics.average_precision_at_k(
            labels, scores, k, weights if weighted else None
        ),
        *(LABELS, SCORES, WEIGHTS),
    )
    total = most = 0.0
    for scores, labels, weight in rows(3):
        hits = numpy.isin(numpy.argsort(-scores)[:k], labels)
        each = (hits * hits.cumsum() / numpy.arange(1, k + 1)).sum() / min(k, 2)
        scale = float(weight) if weighted else 1.0
        total, most = total + scale * each, most + scale
    assert found[-1] == pytest.approx(total / most, rel=1e-12)


CASES = {
    "true_positives": lambda truth, above: truth & above,
    "false_positives": lambda truth, above: ~truth & above,
    "false_negatives": lambda truth, above: truth & ~above,
    "true_negatives": lambda truth, above: ~truth & ~above,
}


def count(name, limit, weights=1.0):
    return (CASES[name](TRUTH == 1, SCORES[..., 0] > limit) * weights).sum()


@pytest.mark.parametrize("name", CASES)
def test_counts_at_thresholds(name):
    limits = [0.2, 0.5, 0.7]
    metric = getattr(tf.metrics, f"{name}_at_thresholds")
    found, _ = run(lambda *args: metric(args[0], args[1], limits, args[2]), TRUTH, SCORES[..., 0], WEIGHTS)
    numpy.testing.assert_allclose(found[-1], [count(name, limit, WEIGHTS) for limit in limits], rtol=1e-5)


@pytest.mark.parametrize("kind, other", [("precision", "false_positives"), ("recall", "false_negatives")])
def test_shares_at_thresholds(kind, other):
    limits = [0.2, 0.5, 0.7]
    metric = getattr(tf.metrics, f"{kind}_at_thresholds")
    found, _ = run(lambda *args: metric(*args, limits), TRUTH, SCORES[..., 0])
    right = numpy.array([count("true_positives", limit) for limit in limits])
    wrong = numpy.array([count(other, limit) for limit in limits])
    numpy.testing.assert_allclose(found[-1], right / (right + wrong), rtol=1e-5)


def rates(limit):
    right, missed = count("true_positives", limit), count("false_negatives", limit)
    rejected, wrong = count("true_negatives", limit), count("false_positives", limit)
    return right / (right + missed), rejected / (rejected + wrong)


@pytest.mark.parametrize("wanted", [0.3, 0.45, 0.9])
def test_one_rate_where_the_other_is_given(wanted):
    both = numpy.array([rates(limit) for limit in numpy.linspace(-1e-7, 1 + 1e-7, 200)]) - [[1e-8, 1e-8]]
    found, _ = run(lambda *args: tf.metrics.sensitivity_at_specificity(*args, wanted), TRUTH, SCORES[..., 0])
    at = abs(both[:, 1] - wanted).argmin()
    assert found[-1] == pytest.approx(both[at, 0], rel=1e-5)
    found, _ = run(lambda *args: tf.metrics.specificity_at_sensitivity(*args, wanted), TRUTH, SCORES[..., 0])
    at = 199 - abs(both[::-1, 0] - wanted).argmin()
    assert found[-1] == pytest.approx(both[at, 1], rel=1e-5)
    with pytest.raises(ValueError, match="from 0 to 1"):
        tf.metrics.sensitivity_at_specificity([True], [0.5], 2.0)


def test_the_area_without_true_labels_is_that_of_full_recall():
    found, _ = run(tf.metrics.auc, 0 * TRUTH, SCORES[..., 0])
    assert found[-1] == pytest.approx(1.0, abs=1e-5)


def test_means_by_element_class_and_size():
    weights = WEIGHTS
    found, _ = run(lambda x, w: tf.metrics.mean_tensor(tf.reshape(x, [6, 5]), w[:, None]), SCORES, weights)
    wanted = (SCORES * weights[..., None]).sum(0) / weights.sum(0)[:, None]
    numpy.testing.assert_allclose(found[-1], wanted, rtol=1e-5)
    guesses = (SCORES[..., 0] > 0.5).astype(int)
    found, value = run(lambda *args: tf.metrics.mean_per_class_accuracy(*args, 3), TRUTH, guesses)
    shares = [(guesses[one == TRUTH] == one).mean() for one in (0, 1)]
    numpy.testing.assert_allclose(found[-1], [*shares, 0.0], rtol=1e-6)
    assert value == pytest.approx(sum(shares) / 3)
    scale = WEIGHTS - 0.5
    found, _ = run(tf.metrics.mean_relative_error, SCORES[..., 0], WEIGHTS, scale)
    wanted = (abs(SCORES[..., 0] - WEIGHTS) / scale).mean()
    assert found[-1] == pytest.approx(wanted, rel=1e-4)
    found, _ = run(lambda *args: tf.metrics.mean_cosine_distance(*args, 1), SCORES, SCORES[:, ::-1])
    wanted = 1 - (SCORES * SCORES[:, ::-1]).sum(-1).mean()
    assert found[-1] == pytest.approx(wanted, abs=1e-5)
