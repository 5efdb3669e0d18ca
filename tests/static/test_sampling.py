"""Losses over sampled classes, against NumPy and what they tend to."""

import numpy
import pytest

import twofold.static as tf

RANDOM = numpy.random.default_rng(0)
W, B = RANDOM.standard_normal((9, 4)).astype("f"), RANDOM.standard_normal(9).astype("f")
X, Y = RANDOM.standard_normal((5, 4)).astype("f"), numpy.array([[0], [3], [8], [3], [1]])


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as made:
        yield made


def sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


def logits(sampled, expected, also, hides):
    true = (X[:, None] * W[Y]).sum(-1) + B[Y] - numpy.log(expected)
    noise = X @ W[sampled].T + B[sampled] - numpy.log(also)
    if hides:
        noise = numpy.where((Y[:, :, None] == sampled).any(1), -numpy.inf, noise)
    return true, noise


def test_noise_contrastive_estimation(session):
    sampled, expected, also = (
        numpy.array([2, 3, 5]),
        numpy.full((5, 1), 0.3, "f"),
        numpy.array([0.2, 0.5, 0.1], "f"),
    )
    given = [tf.constant(value) for value in (sampled, expected, also)]
    w, x = tf.constant(W), tf.placeholder(tf.float32, [None, 4])
    loss = tf.nn.nce_loss(w, B, Y, x, 3, 9, sampled_values=given)
    true, noise = logits(sampled, expected, also, False)
    by_hand = -numpy.log(sigmoid(true)).sum(1) - numpy.log(1 - sigmoid(noise)).sum(1)
    found, slope = session.run([loss, tf.gradients(loss, w)[0]], {x: X})
    numpy.testing.assert_allclose(found, by_hand, rtol=1e-4)
    assert set(numpy.flatnonzero(slope.any(1))) == {0, 1, 2, 3, 5, 8}
    soft = tf.nn.sampled_softmax_loss(w, B, Y, x, 3, 9, sampled_values=given)
    true, noise = logits(sampled, expected, also, True)
    by_hand = -(true[:, 0] - numpy.log(numpy.exp(true[:, 0]) + numpy.exp(noise).sum(1)))
    numpy.testing.assert_allclose(session.run(soft, {x: X}), by_hand, rtol=1e-4)


def test_samples_are_drawn_anew_without_repetition(session):
    labels = tf.constant([[0], [49]])
    sample = tf.nn.log_uniform_candidate_sampler(labels, 1, 20, True, 50)
    runs = [session.run(sample) for _ in range(30)]
    assert all(len(set(run.sampled_candidates)) == 20 for run in runs)
    assert len({run.sampled_candidates.tobytes() for run in runs}) > 1
    found = numpy.bincount(numpy.concatenate([run.sampled_candidates for run in runs]), minlength=50)
    assert found[:5].sum() > found[-5:].sum()
    expected = numpy.mean([run.true_expected_count[:, 0] for run in runs], 0)
    assert abs(found[0] / 30 - expected[0]) < 0.1
    with pytest.raises(ValueError, match="51 different ones of 50"):
        tf.nn.uniform_candidate_sampler(labels, 1, 51, True, 50)


def test_repeated_samples_have_known_frequencies(session):
    sample = tf.nn.uniform_candidate_sampler(tf.constant([[3]]), 1, 400, False, 4)
    found = session.run(sample)
    assert found.true_expected_count.tolist() == [[100.0]]
    assert (found.sampled_expected_count == 100).all()
    assert abs(numpy.bincount(found.sampled_candidates, minlength=4) - 100).max() < 50


def test_embeddings_are_trained(session):
    tf.set_random_seed(1)
    table = tf.Variable(tf.random_uniform([30, 8], -1.0, 1.0))
    inputs, labels = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.int32, [None, 1])
    weights, biases = tf.Variable(tf.truncated_normal([30, 8], stddev=0.3)), tf.Variable(tf.zeros([30]))
    loss = tf.reduce_mean(
        tf.nn.nce_loss(weights, biases, labels, tf.nn.embedding_lookup(table, inputs), 5, 30)
    )
    train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    session.run(tf.global_variables_initializer())
    feeds = {inputs: numpy.arange(30), labels: (numpy.arange(30)[:, None] + 1) % 30}
    losses = [session.run([loss, train], feeds)[0] for _ in range(60)]
    assert numpy.mean(losses[-10:]) < numpy.mean(losses[:10])


def test_labels_of_any_dtype_and_first_values_that_are_tensors(session):
    labels, x = tf.placeholder(tf.int32, [None, 3]), tf.placeholder(tf.float32, [None, 3])
    loss = tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=x)
    found = session.run(loss, {labels: [[0, 1, 0]], x: [[0.0, 0.0, 0.0]]})
    assert found[0] == pytest.approx(numpy.log(3))
    variable = tf.get_variable("first", initializer=tf.constant(2.0))
    session.run(tf.global_variables_initializer())
    assert session.run(variable) == 2.0


def test_categorical_has_its_dtype_before_the_seed():
    made = tf.random.categorical(tf.constant([[0.0, 1.0]]), 5, tf.int32, 3)
    assert made.dtype is tf.int32 and made.shape.as_list() == [1, 5]
    assert tf.random.categorical(tf.constant([[0.0, 1.0]]), 5).dtype is tf.int64
