"""Steps on the mean of several gradients, against steps of NumPy."""

import numpy
import pytest

import twofold.static as tf
from twofold.errors import ArgumentError

X = numpy.random.default_rng(0).random((7, 4, 3)).astype("f")


def trained(count, steps=7, **options):
    """A weight, its moving average and the global step after each run."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 3])
        w = tf.Variable(tf.ones([3]))
        table = tf.Variable(tf.ones([5, 3]))
        loss = tf.reduce_mean(
            tf.square(tf.reduce_sum(x * w * tf.nn.embedding_lookup(table, [1, 1, 4, 0]), 1))
        )
        average = tf.train.ExponentialMovingAverage(0.5)
        base = tf.train.MomentumOptimizer(0.1, 0.9)
        made = tf.train.SyncReplicasOptimizer(base, count, 1, average, [w], **options)
        counted = tf.train.get_or_create_global_step()
        step = made.minimize(loss, global_step=counted)
        session.run(tf.global_variables_initializer())
        session.run([made.get_init_tokens_op(), made.chief_init_op, made.local_step_init_op])
        made.get_chief_queue_runner().create_threads(session, start=True)
        found = []
        for batch in X[:steps]:
            session.run(step, {x: batch})
            found.append(session.run([w, table, average.average(w), counted]))
        return found


@pytest.mark.parametrize("count", [1, 3])
def test_one_step_for_several_gradients(count):
    w, table, average = numpy.ones(3), numpy.ones((5, 3)), numpy.ones(3)
    rows = numpy.array([1, 1, 4, 0])
    momenta, sums, steps = [0.0, 0.0], [0.0, 0.0], 0
    for k, found in enumerate(trained(count), 1):
        x = X[k - 1]
        outer = 2 * (x * w * table[rows]).sum(1)[:, None] / 4
        by_row = numpy.zeros((5, 3))
        numpy.add.at(by_row, rows, outer * x * w)
        sums = [sums[0] + (outer * x * table[rows]).sum(0), sums[1] + by_row]
        if k % count == 0:
            momenta = [0.9 * momentum + one / count for momentum, one in zip(momenta, sums)]
            w, table = w - 0.1 * momenta[0], table - 0.1 * momenta[1]
            average, sums, steps = (average + w) / 2, [0.0, 0.0], steps + 1
        for one, other in zip(found, (w, table, average, steps)):
            numpy.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def test_what_is_missing():
    base = tf.train.GradientDescentOptimizer(0.1)
    with pytest.raises(ArgumentError, match="global_step"):
        tf.train.SyncReplicasOptimizer(base, 2).minimize(tf.Variable(1.0) * 2.0)
    with pytest.raises(ValueError, match="before apply_gradients"):
        tf.train.SyncReplicasOptimizer(base, 2).get_init_tokens_op()
    with pytest.raises(ArgumentError, match="at least one"):
        tf.train.SyncReplicasOptimizer(base, 0)
    with pytest.raises(ArgumentError, match="variables_to_average"):
        tf.train.SyncReplicasOptimizer(base, 1, variable_averages=tf.train.ExponentialMovingAverage(0.5))
