"""Sessions: CPU time of one run of each kind, beside TensorFlow's where that is installed.

    python bench/sessions.py [--framework twofold|tensorflow]

One text for both: runs that are one call into the core, and runs that a function of the host, a queue, an iterator or a
number that must be known divides into steps. Threads of the framework are counted; the best of five samples is shown.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))


def step(tf: Any) -> Callable[[], Any]:
    """A training step of two layers."""
    x, labels = tf.placeholder(tf.float32, [None, 32]), tf.placeholder(tf.int32, [None])
    w = tf.get_variable("w", [32, 32])
    v = tf.get_variable("v", [32, 10])
    logits = tf.matmul(tf.nn.relu(tf.matmul(x, w)), v)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    random = numpy.random.default_rng(0)
    feeds = {x: random.standard_normal((16, 32), "f"), labels: random.integers(0, 10, 16).astype("i")}
    return _runs(tf, [train, loss], feeds)


def chain(tf: Any) -> Callable[[], Any]:
    """A hundred element-wise operations on eight numbers."""
    x = found = tf.placeholder(tf.float32, [8])
    for k in range(100):
        found = tf.tanh(found) if k % 2 else found * 1.01
    return _runs(tf, found, {x: numpy.ones(8, "f")})


def nested(tf: Any) -> Callable[[], Any]:
    """A dict of a tensor and a pair."""
    x = tf.placeholder(tf.float32, [8])
    y = x * 2.0
    feeds = {x: numpy.ones(8, "f")}
    session = tf.Session()
    return lambda: session.run({"y": y, "pair": (y, x)}, feeds)


def function(tf: Any) -> Callable[[], Any]:
    """``py_func`` between operations."""
    x = tf.placeholder(tf.float32, [8])
    made = tf.py_func(lambda value: value * 2, [tf.tanh(x)], tf.float32)
    return _runs(tf, tf.tanh(made) + 1.0, {x: numpy.ones(8, "f")})


def queue(tf: Any) -> Callable[[], Any]:
    """Putting an element into a queue and taking it, two runs."""
    elements = tf.FIFOQueue(10, [tf.float32], [[]])
    put, take = elements.enqueue([1.0]), elements.dequeue() + 1.0
    session = tf.Session()
    return lambda: (session.run(put), session.run(take))


def iterator(tf: Any) -> Callable[[], Any]:
    """The next batch of a data set."""
    data = tf.data.Dataset.from_tensor_slices(numpy.arange(8, dtype="f")).repeat().batch(4)
    return _runs(tf, data.make_one_shot_iterator().get_next() * 2.0, None)


def number(tf: Any) -> Callable[[], Any]:
    """A shape that is fed."""
    count = tf.placeholder(tf.int32, [])
    return _runs(tf, tf.fill([count], 2.0) * 2.0, {count: 5})


KINDS = [step, chain, nested, function, queue, iterator, number]


def _runs(tf: Any, fetches: Any, feeds: Any) -> Callable[[], Any]:
    session = tf.Session()
    session.run(tf.global_variables_initializer())
    return lambda: session.run(fetches, feeds)


def _microseconds(run: Callable[[], Any], count: int) -> float:
    for _ in range(count):
        run()
    samples = []
    for _ in range(5):
        start = time.process_time()
        for _ in range(count):
            run()
        samples.append((time.process_time() - start) / count * 1e6)
    return min(samples)


def main() -> None:
    """Print a line for each kind of run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--framework", choices=["twofold", "tensorflow"], default="twofold")
    parser.add_argument("--count", type=int, default=300, help="runs a sample")
    options = parser.parse_args()
    if options.framework == "twofold":
        import twofold.static as tf
    else:
        import tensorflow.compat.v1 as tf

        tf.disable_v2_behavior()
    for kind in KINDS:
        with tf.Graph().as_default():
            found = _microseconds(kind(tf), options.count)
        print(f"{kind.__name__:10} {found:8.1f} us   {(kind.__doc__ or '').strip()}")


if __name__ == "__main__":
    main()
