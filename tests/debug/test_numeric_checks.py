"""``tf.add_check_numerics_ops`` beside a training step."""

from __future__ import annotations

import pytest

import twofold.static as tf


def test_checks_of_a_graph_run_no_update_that_nobody_asked_for() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x, w = tf.placeholder(tf.float32, [2]), tf.Variable([1.0, 2.0])
        step = tf.train.GradientDescentOptimizer(0.5).minimize(tf.reduce_sum(w * x))
        doubled = tf.assign(w, w * 2.0)
        check = tf.add_check_numerics_ops()
        session.run(tf.global_variables_initializer())
        session.run([check, step], {x: [1.0, 0.0]})
        session.run([check, step], {x: [0.0, 2.0]})
        session.run(check, {x: [1.0, 1.0]})
        assert session.run(w).tolist() == [0.5, 1.0]
        session.run([check, doubled], {x: [1.0, 1.0]})
        assert session.run(w).tolist() == [1.0, 2.0]
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run([check, step], {x: [3e38, 1e38]})
            session.run([check, step], {x: [3e38, 3e38]})
            session.run([check, step], {x: [3e38, 3e38]})
