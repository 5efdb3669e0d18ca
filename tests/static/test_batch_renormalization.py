"""Batch renormalisation beside the formulas of Ioffe (2017) in NumPy."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import twofold.static as tf

EPSILON, SLOW, FAST = 1e-3, 0.8, 0.7
LIMITS = {"rmin": 0.5, "rmax": 1.5, "dmax": 0.4}


def moved(old: Any, new: Any, share: float) -> Any:
    return old * share + new * (1 - share)


@pytest.mark.parametrize("limits", [None, LIMITS])
@pytest.mark.parametrize("known", [True, False])
def test_training_corrects_towards_averages(limits: Any, known: bool) -> None:
    values = numpy.random.default_rng(0).normal(1.0, 2.0, (4, 6, 3)).astype(numpy.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        x, flag = tf.placeholder(tf.float32, [6, 3]), tf.placeholder(tf.bool, [])
        options = {"renorm": True, "renorm_clipping": limits, "momentum": SLOW, "renorm_momentum": FAST}
        y = tf.layers.batch_normalization(x, training=True if known else flag, **options)
        session.run(tf.global_variables_initializer())
        mean = near = numpy.zeros(3)
        deviation = width = numpy.ones(3)
        for step, batch in enumerate(values):
            training = known or step != 2
            own, spread = batch.mean(0), numpy.sqrt(batch.var(0) + EPSILON)
            ratio, shift = spread / width, (own - near) / width
            if limits:
                ratio = ratio.clip(limits["rmin"], limits["rmax"])
                shift = shift.clip(-limits["dmax"], limits["dmax"])
            wanted = (batch - own) / spread * ratio + shift
            if not training:
                wanted = (batch - mean) / deviation if step else batch / numpy.sqrt(1 + EPSILON)
            else:
                mean, deviation = moved(mean, own, SLOW), moved(deviation, spread, SLOW)
                near, width = moved(near, own, FAST), moved(width, spread, FAST)
            feed = {x: batch, flag: training}
            found, _ = session.run([y, tf.get_collection(tf.GraphKeys.UPDATE_OPS)], feed)
            numpy.testing.assert_allclose(found, wanted, rtol=2e-4, atol=1e-5)
        kept = {v.op.name.split("/")[-1]: session.run(v) for v in tf.global_variables()}
    numpy.testing.assert_allclose(kept["moving_mean"], mean, rtol=1e-5)
    numpy.testing.assert_allclose(kept["moving_variance"], deviation**2 - EPSILON, rtol=1e-4)
    numpy.testing.assert_allclose(kept["renorm_mean"], near, rtol=1e-5)
    numpy.testing.assert_allclose(kept["renorm_stddev"], width, rtol=1e-5)


def test_corrections_have_no_gradient() -> None:
    """A gradient of the result with respect to the inputs is that of plain normalisation times the ratio."""
    batch = numpy.random.default_rng(1).normal(size=(5, 2)).astype(numpy.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(batch)
        weights = tf.constant(numpy.arange(10.0, dtype=numpy.float32).reshape(5, 2))
        renormed, plain = (
            tf.layers.batch_normalization(x, training=True, renorm=renorm, name=f"norm_{renorm}")
            for renorm in (True, False)
        )
        session.run(tf.global_variables_initializer())
        one, two = session.run([tf.gradients(y * weights, x)[0] for y in (renormed, plain)])
    ratio = numpy.sqrt(batch.var(0) + EPSILON)
    numpy.testing.assert_allclose(one, two * ratio, rtol=1e-4, atol=1e-5)
