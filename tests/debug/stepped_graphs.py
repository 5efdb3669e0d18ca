"""Programs that declare a graph, of a vector of two; they run at once, too."""

from __future__ import annotations

import functools
from typing import Any

import numpy

import twofold.static as tf


def _dense(x: Any, n: Any, name: Any) -> Any:
    w = tf.constant(numpy.linspace(-1, 1, 2 * n).reshape(2, n).astype("float32"))
    b = tf.zeros([n])
    y = tf.matmul(tf.reshape(x, [1, 2]), w) + b
    return tf.reshape(y, [n])


def mlp(x: Any) -> Any:
    h = _dense(x, 2, "a")
    h = tf.nn.relu(h)
    out = _dense(h, 2, "b")
    return tf.reduce_sum(out)


def layers_in_list(x: Any) -> Any:
    outs = []
    h = x
    for k in range(3):
        h = tf.tanh(_dense(h, 2, str(k)))
        outs.append(h)
    stacked = tf.stack(outs)
    return tf.reduce_mean(stacked, 0)


def dict_of_tensors(x: Any) -> Any:
    params = {"w": x * 2.0, "b": x + 1.0}
    params["c"] = params["w"] * params["b"]
    total = tf.add_n([params["b"], params["c"], params["w"]])
    return total


def gru_steps(x: Any) -> Any:
    h = tf.zeros([2])
    for _k in range(3):
        z = tf.sigmoid(x + h)
        r = tf.sigmoid(x - h)
        n = tf.tanh(x + r * h)
        h = (1.0 - z) * n + z * h
    return h


def attention(x: Any) -> Any:
    q = tf.stack([x, x * 2.0])
    k = tf.transpose(q)
    heads = []
    for scale in (1.0, 0.5):
        scores = tf.matmul(q, k) * scale
        weights = tf.nn.softmax(scores)
        heads.append(tf.matmul(weights, q))
    merged = tf.concat(heads, 1)
    return tf.reduce_sum(merged, 0)


def closures(x: Any) -> Any:
    def scale(v: Any, k: Any) -> Any:
        s = v * k
        return s

    fs = [functools.partial(scale, k=float(k)) for k in (1, 2)]
    y = x
    for f in fs:
        y = f(y)
    return y


class Layer:
    def __init__(self, k: Any) -> None:
        self.k = k
        self.last = None

    def __call__(self, v: Any) -> Any:
        y = tf.tanh(v * self.k)
        self.last = y
        return y


def objects(x: Any) -> Any:
    layers = [Layer(1.0), Layer(2.0)]
    h = x
    for layer in layers:
        h = layer(h)
    return h + layers[0].last


def scoped(x: Any) -> Any:
    with tf.name_scope("block"):
        a = tf.exp(x)
        with tf.name_scope("inner"):
            b = tf.square(a)
    c = a + b
    return c


def loop_sum(x: Any) -> Any:
    def cond(i: Any, acc: Any) -> Any:
        return i < 3

    def body(i: Any, acc: Any) -> Any:
        step = x * tf.cast(i, tf.float32)
        acc = acc + step
        return i + 1, acc

    _i, acc = tf.while_loop(cond, body, [tf.constant(0), tf.zeros([2])])
    out = acc * 2.0
    return out


def cond_nested(x: Any) -> Any:
    s = tf.reduce_sum(x)

    def yes() -> Any:
        a = x * 2.0
        return tf.cond(s > 100.0, lambda: a, lambda: a + 1.0)

    def no() -> Any:
        b = x - 1.0
        return b

    y = tf.cond(s > 0.0, yes, no)
    z = tf.cond(s > 5.0, yes, no)
    return y + z


def generator_layers(x: Any) -> Any:
    def sizes() -> Any:
        yield 1.0
        yield 2.0

    y = x
    for s in sizes():
        y = y * s + 1.0
    return y


def reassign(x: Any) -> Any:
    y = x * 2.0
    z = y
    y = x + 1.0
    w = y
    y = z
    return w * y


def conditional_python(x: Any, flag: Any = True) -> Any:
    y = x if not flag else x * 2.0
    if flag:
        z = y + 1.0
    else:
        z = y - 1.0
    return z * y


def max_of(x: Any) -> Any:
    best = None
    for k in (1.0, 3.0, 2.0):
        v = x * k
        best = v if best is None else tf.maximum(best, v)
    return best


def recursion(x: Any, n: Any = 3) -> Any:
    if n == 0:
        return x
    left = recursion(x * 2.0, n - 1)
    return left + x


def scan_fn(x: Any) -> Any:
    def step(a: Any, v: Any) -> Any:
        g = a * v
        return g + 1.0

    ys = tf.scan(step, tf.stack([x, x * 2.0]), x)
    last = ys[1]
    return last


def map_fn(x: Any) -> Any:
    def f(row: Any) -> Any:
        r = row * 2.0
        return r + 1.0

    ys = tf.map_fn(f, tf.stack([x, x * 2.0]))
    return tf.reduce_sum(ys, 0)


def try_finally(x: Any) -> Any:
    try:
        y = x * 2.0
        z = y + x
    finally:
        w = z * y
    return w


def one_line(x: Any) -> Any:
    y = x
    # fmt: off
    for k in (1.0, 2.0): y = y * k + 1.0  # noqa: E701
    # fmt: on
    return y


def shared(x: Any) -> Any:
    acc = [x]
    for _k in range(2):
        acc.append(acc[-1] * 2.0)
    a, *rest = acc
    return a + rest[-1]
