"""A training step of a session has the same bits under a debugger, in ``verify`` and where values are asked for."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import twofold as torch
import twofold.static as tf
from twofold import debug


def trained(way: str) -> list[Any]:
    with tf.Graph().as_default(), tf.Session() as session:
        x, w = tf.placeholder(tf.float32, [None, 4]), tf.Variable(tf.ones([4, 1]) * 0.1)
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - 1.0))
        step = tf.train.AdamOptimizer(0.05).minimize(loss)  # whose corrections are numbers of 64 bits
        session.run(tf.global_variables_initializer())
        losses = []
        for k in range(4):
            feeds = {x: numpy.random.default_rng(k).normal(size=(8, 4))}
            if way == "verify":
                with debug.verify():
                    losses.append(session.run([loss, step], feeds)[0])
            else:
                losses.append(session.run([loss, step], feeds, debug=way == "debug")[0])
            if way == "value":
                debug.value("loss", session)
                torch.explain(session)
                torch.draw(session)
        return [*map(float, losses), *session.run(w).ravel().tolist()]


@pytest.mark.parametrize("way", ["debug", "verify", "value"])
def test_the_bits_are_those_of_a_run_without(way: str) -> None:
    assert trained(way) == trained("plain")
