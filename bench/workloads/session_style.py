"""Define-then-run programs in TensorFlow 1's style; the module to run them with is an argument."""

from __future__ import annotations

import itertools
from typing import Any

import numpy

from timing import Case
from workloads import inputs


def two_scalars(tf: Any) -> Case:
    """``Session.run`` of two operations on two scalar feeds."""
    with tf.Graph().as_default() as graph:
        a, b = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
        c = a * b + a
    session = tf.Session(graph=graph)
    feeds = {a: 3.0, b: 4.0}

    def call() -> Any:
        return session.run(c, feed_dict=feeds)

    return Case(call, check=lambda: [float(call())])


def never_seen(tf: Any) -> Case:
    """A graph of 100 operations in an order not met before is declared and run once."""
    arrays = inputs.tiny()
    endless = inputs.recipes()
    starts = itertools.count(0, inputs.SHIFT)

    def call() -> Any:
        start = next(starts)
        recipe = endless[start : start + inputs.CHAIN]
        with tf.Graph().as_default() as graph:
            x, w, b = (tf.placeholder(tf.float32, [inputs.TINY]) for _ in range(3))
            c = x
            for kind in recipe:
                c = _apply(tf, kind, c, w, b)
        with tf.Session(graph=graph) as session:
            return session.run(c, feed_dict=dict(zip((x, w, b), arrays)))

    return Case(call, inputs.CHAIN, check=lambda: [float(call().sum())])


def _apply(tf: Any, kind: int, c: Any, w: Any, b: Any) -> Any:
    if kind == 0:
        return c * w
    if kind == 1:
        return c + b
    if kind == 2:
        return tf.tanh(c)
    return c - b


def chain(tf: Any) -> Case:
    """100 element-wise operations on ten numbers, and their gradient."""
    with tf.Graph().as_default() as graph:
        x, w, b = leaves = [tf.placeholder(tf.float32, [inputs.TINY]) for _ in range(3)]
        for _ in range(inputs.CHAIN // 4):
            x = tf.tanh(x * w + b) - b
        loss = tf.reduce_sum(x)
        fetches = [loss, *tf.gradients(loss, leaves)]
    session = tf.Session(graph=graph)
    feeds = dict(zip(leaves, inputs.tiny()))

    def check() -> list[float]:
        values = session.run(fetches, feed_dict=feeds)
        return [float(value.sum()) for value in values]

    return Case(lambda: session.run(fetches, feed_dict=feeds), check=check)


def call_six(tf: Any) -> Case:
    """``Session.run`` of a small network with six feeds."""
    arrays = inputs.six()
    with tf.Graph().as_default() as graph:
        leaves = [tf.placeholder(tf.float32, array.shape) for array in arrays]
        x, w1, b1, w2, b2, r = leaves
        result = tf.matmul(tf.nn.relu(tf.matmul(x, w1) + b1), w2) + b2 + r
    session = tf.Session(graph=graph)
    feeds = dict(zip(leaves, arrays))

    def call() -> Any:
        return session.run(result, feed_dict=feeds)

    return Case(call, check=lambda: [float(call().sum())])


def train(tf: Any, kind: str, size: int) -> Case:
    """One step of training with Adam; the loss is read."""
    arrays = inputs.network(kind)
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, inputs.WIDTHS[kind][0]])
        y = tf.placeholder(tf.int64, [None])
        hidden = x
        for index in range(0, len(arrays), 2):
            weight, bias = tf.Variable(arrays[index]), tf.Variable(arrays[index + 1])
            hidden = tf.matmul(hidden, weight, transpose_b=True) + bias
            if index + 2 < len(arrays):
                hidden = tf.nn.relu(hidden)
        errors = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=hidden)
        loss = tf.reduce_mean(errors)
        update = tf.train.AdamOptimizer(inputs.LEARNING_RATE).minimize(loss)
        initialize = tf.global_variables_initializer()
    session = tf.Session(graph=graph)
    session.run(initialize)
    steps = itertools.cycle(inputs.batches(kind, size))

    def call() -> float:
        images, labels = next(steps)
        value, _ = session.run([loss, update], feed_dict={x: images, y: labels.astype(numpy.int64)})
        return float(value)

    return Case(call, check=lambda: [call() for _ in range(5)])


def case(workload: str, tf: Any) -> Case | None:
    """The named workload, or None where it has no meaning."""
    simple = {"two_scalars": two_scalars, "never_seen": never_seen, "chain": chain, "call_six": call_six}
    if workload in simple:
        return simple[workload](tf)
    if workload.startswith("train"):
        _, kind, size = workload.split("_")
        return train(tf, kind, int(size))
    return None
