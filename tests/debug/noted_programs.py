"""Programs that declare a graph, of a vector of two, in the many ways that Python has of doing so."""

# ruff: noqa: C417, F841, RUF059

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
from typing import Any

import numpy

import twofold.static as tf


def straight(x: Any) -> Any:
    a = x * 2.0
    b = a + x
    n = 3
    c = b * float(n)
    return c - a


def helper_twice(x: Any) -> Any:
    def twice(v: Any, by: Any = 2.0) -> Any:
        w = v * by
        u = w + 1.0
        return u

    p = twice(x)
    q = twice(p, by=3.0)
    return p * q


def continue_loop(x: Any) -> Any:
    y = x
    seen = []
    for k in range(5):
        if k % 2 == 0:
            continue
        y = y * float(k)
        seen.append(k)
    return y


def continue_data(x: Any) -> Any:
    total = x * 0.0
    for name, scale in {"a": 1.0, "skip": 5.0, "b": 2.0}.items():
        if name == "skip":
            continue
        total = total + x * scale
    return total


def break_loop(x: Any) -> Any:
    y = x
    steps = 0
    while True:
        steps += 1
        y = y * 0.5
        if steps == 3:
            break
    z = y + 1.0
    return z


def tuples(x: Any) -> Any:
    a, b = x * 2.0, x + 1.0
    a, b = b, a
    pair = (a, b)
    (c, d), e = pair, a * b
    return c + d + e


def starred(x: Any) -> Any:
    first, *rest = [x * float(k) for k in range(4)]
    total = first
    for one in rest[::-1]:
        total += one
    return total


def list_comprehension(x: Any) -> Any:
    scales = [1.0, 2.0, 3.0]
    parts = [x * s for s in scales if s != 2.0]
    named = {f"p{i}": p + 1.0 for i, p in enumerate(parts)}
    return named["p0"] + named["p1"]


def comprehension_behind(x: Any) -> Any:
    y = x * 2.0
    parts = [tf.tanh(y * s) + 1.0 for s in (1.0, 2.0)]
    z = parts[0] + parts[1]
    return z * y


def list_grows(x: Any) -> Any:
    outs = []
    h = x
    for k in range(3):
        h = tf.tanh(h + float(k))
        outs.append(h)
    outs[0] = outs[0] * 2.0
    last = outs.pop()
    return tf.add_n(outs) + last


def dict_updates(x: Any) -> Any:
    state = {"h": x, "n": 0}
    for key in ("u", "v"):
        state[key] = state["h"] * 2.0
        state["n"] += 1
        state.update(h=state[key] + 1.0)
    count = state["n"]
    return state["h"] + state["u"] * float(count)


class Dense:
    def __init__(self, n: Any, act: Any = None) -> None:
        self.n, self.act = n, act
        self.calls = 0

    def __call__(self, v: Any) -> Any:
        self.calls += 1
        w = tf.constant(numpy.eye(self.n, dtype="float32") * 0.5)
        out = tf.reshape(tf.matmul(tf.reshape(v, [1, self.n]), w), [self.n])
        if self.act is not None:
            out = self.act(out)
        return out


def classes(x: Any) -> Any:
    layers = [Dense(2, tf.tanh), Dense(2), Dense(2, act=lambda t: t * 3.0)]
    h = x
    for layer in layers:
        h = layer(h)
    total_calls = sum(one.calls for one in layers)
    return h * float(total_calls)


class Base:
    scale = 2.0

    def apply(self, v: Any) -> Any:
        return self.inner(v) + 1.0

    def inner(self, v: Any) -> Any:
        return v * self.scale


class Derived(Base):
    scale = 4.0

    def inner(self, v: Any) -> Any:
        base = super().inner(v)
        return base - 1.0


def inherited(x: Any) -> Any:
    first = Base().apply(x)
    second = Derived().apply(first)
    return second


def walrus(x: Any) -> Any:
    y = (z := x * 2.0) + 1.0
    if (n := 3) > 2:
        y = y * z
    return y + float(n)


def while_loop(x: Any) -> Any:
    def cond(i: Any, acc: Any) -> Any:
        return i < 3

    def body(i: Any, acc: Any) -> Any:
        step = x * 2.0
        acc = acc + step
        return i + 1, acc

    _, total = tf.while_loop(cond, body, [tf.constant(0), tf.zeros([2])])
    return total * 0.5


def while_lambda(x: Any) -> Any:
    i, y = tf.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, y * 2.0), [tf.constant(0), x])
    z = y + 1.0
    return z


def cond(x: Any) -> Any:
    s = tf.reduce_sum(x)

    def yes() -> Any:
        a = x * 2.0
        b = a + 1.0
        return b

    def no() -> Any:
        c = x - 1.0
        return c

    y = tf.cond(s > 0.0, yes, no)
    return y * s


def cases(x: Any) -> Any:
    s = tf.reduce_sum(x)
    y = tf.case([(s > 5.0, lambda: x * 5.0), (s > -1.0, lambda: x * 7.0)], default=lambda: x)
    return y + 1.0


def loop_in_loop(x: Any) -> Any:
    def outer(i: Any, h: Any) -> Any:
        def inner(j: Any, v: Any) -> Any:
            u = v + x
            return j + 1, u

        j, w = tf.while_loop(lambda j, v: j < 2, inner, [tf.constant(0), h])
        z = tf.cond(i > 0, lambda: w * 2.0, lambda: w)
        return i + 1, z

    i, y = tf.while_loop(lambda i, h: i < 2, outer, [tf.constant(0), x])
    return y


def scan(x: Any) -> Any:
    def step(carry: Any, row: Any) -> Any:
        new = carry * row
        return new + 1.0

    ys = tf.scan(step, tf.stack([x, x * 2.0]), x)
    out = ys[1] + x
    return out


def py_func(x: Any) -> Any:
    def host(v: Any) -> Any:
        return v * numpy.float32(3.0)

    a = x + 1.0
    b = tf.py_func(host, [a], tf.float32)
    b = tf.reshape(b, [2])
    return b * a


def try_except(x: Any) -> Any:
    options = {}
    try:
        scale = options["scale"]
        y = x * scale
    except KeyError as error:
        reason = str(error)
        y = x * 4.0
    else:
        y = x
    finally:
        done = True
    return y + 1.0


def generators(x: Any) -> Any:
    def layers(v: Any) -> Any:
        for k in (2.0, 3.0):
            v = v * k
            got = yield v
            assert got is None

    total = x
    for out in layers(x):
        total = total + out
    return total


def yield_from(x: Any) -> Any:
    def inner(v: Any) -> Any:
        yield v + 1.0
        yield v + 2.0

    def outer(v: Any) -> Any:
        yield from inner(v)
        yield v * 2.0

    a, b, c = outer(x)
    return a * b * c


def context_managers(x: Any) -> Any:
    @contextlib.contextmanager
    def scaled(by: Any) -> Any:
        factor = x * by
        yield factor

    with scaled(2.0) as f:
        y = x + f
    with tf.name_scope("outer"), tf.name_scope("inner"):
        z = y * 2.0
    return z


def variable_scope(x: Any) -> Any:
    def layer(v: Any, name: Any, reuse: Any = None) -> Any:
        with tf.variable_scope(name, reuse=reuse):
            w = tf.constant([0.5, 2.0])
            y = v * w
        return y

    a = layer(x, "a")
    b = layer(a, "b")
    return a + b


def defaults(x: Any, scale: Any = 2.0, *more: Any, power: Any = None, **named: Any) -> Any:
    power = power or 2
    y = x * scale
    for _ in range(power):
        y = y + 1.0
    named.setdefault("bias", 0.5)
    return y + named["bias"]


def nested(x: Any) -> Any:
    count = 0

    def outer(v: Any) -> Any:
        def inner(u: Any) -> Any:
            nonlocal count
            count += 1
            return u * float(count)

        first = inner(v)
        return inner(first) + v

    y = outer(x)
    y = outer(y)
    return y + float(count)


def lambdas(x: Any) -> Any:
    square, add = (lambda v: v * v), (lambda v, k=1.0: v + k)
    y = square(x)
    z = add(square(y), k=2.0)
    return sorted([(2, z), (1, y)], key=lambda pair: pair[0])[0][1] + z


def maps(x: Any) -> Any:
    outs = list(map(lambda s: x * s, [1.0, 2.0]))
    total = functools.reduce(lambda a, b: a + b, outs)
    pairs = list(zip(outs, "ab"))
    for value, letter in pairs:
        if letter == "b":
            total = total - value
    return total


def conditions(x: Any, mode: Any = "fast", depth: Any = 2) -> Any:
    if mode == "slow":
        y = x * 10.0
    elif mode == "fast" and depth > 1:
        y = x * 2.0
    else:
        y = x
    z = y if depth == 3 else y + 1.0
    assert z is not None
    if depth > 5:
        return y
    return z


def early_return(x: Any) -> Any:
    def pick(v: Any, flag: Any) -> Any:
        w = v * 2.0
        if flag:
            return w
        u = w + 1.0
        return u

    a = pick(x, True)
    b = pick(x, False)
    return a * b


def recursion(x: Any) -> Any:
    def tree(v: Any, n: Any) -> Any:
        if n == 0:
            return v
        left = tree(v * 2.0, n - 1)
        right = tree(v + 1.0, n - 1)
        return left + right

    return tree(x, 2)


Pair = collections.namedtuple("Pair", "mean dev")


def named_tuples(x: Any) -> Any:
    def stats(v: Any) -> Any:
        m = tf.reduce_mean(v)
        d = tf.reduce_mean(tf.square(v - m))
        return Pair(m, d)

    p = stats(x)
    q = p._replace(dev=p.dev + 1.0)
    return (x - p.mean) / tf.sqrt(q.dev)


@dataclasses.dataclass
class Config:
    width: int
    rate: float
    notes: list


def dataclass(x: Any) -> Any:
    config = Config(2, 0.5, [])
    y = x * config.rate
    config.notes.append("scaled")
    config.rate = 0.25
    z = y * config.rate
    return z + float(len(config.notes))


def nested_loops(x: Any) -> Any:
    grid = []
    for i in range(2):
        row = []
        for j in range(3):
            if j < i:
                continue
            row.append(x * float(i + j))
        grid.append(tf.add_n(row))
    best = grid[0]
    for one in grid:
        best = tf.maximum(best, one)
    return best


def loop_else(x: Any) -> Any:
    y = x
    for k in (1.0, 2.0):
        if k > 5.0:
            break
        y = y + k
    else:
        y = y * 2.0
    return y


def multi_line(x: Any) -> Any:
    y = tf.add(
        x * 2.0,
        tf.multiply(
            x,
            3.0,
        ),
    )
    z = y + 1.0
    return z


def delete_names(x: Any) -> Any:
    a = x * 2.0
    b = a
    del a
    a = b + 1.0
    alias = b
    b = None
    return a * alias


def split_unstack(x: Any) -> Any:
    a, b = tf.unstack(x)
    c, d = tf.split(tf.stack([a, b, a, b]), 2)
    e = tf.concat([c, d], 0)
    return tf.reduce_sum(e)


def enumerate_zip(x: Any) -> Any:
    ws = [x * 1.0, x * 2.0]
    bs = [x + 1.0, x + 2.0]
    h = x
    for i, (w, b) in enumerate(zip(ws, bs)):
        h = h * w + b
        label = f"layer{i}"
    return h


def tensor_rows(x: Any) -> Any:
    m = tf.stack([x, x * 2.0, x * 3.0])
    total = tf.zeros([2])
    for k in range(m.shape[0]):
        row = m[k]
        total = total + row
    return total


def unused(x: Any) -> Any:
    y = x * 2.0
    shape = y.shape.as_list()
    z = y + float(shape[0])
    names = [type(x).__name__, str(len(shape))]
    return z


def gradients(x: Any) -> Any:
    y = x * x
    loss = tf.reduce_sum(y * 3.0)
    (grad,) = tf.gradients(loss, [x])
    norm = tf.reduce_sum(tf.square(grad))
    return loss + norm


def optimizer(x: Any) -> Any:
    w = tf.get_variable("w", initializer=[1.0, 2.0])
    error = x * w
    loss = tf.reduce_sum(tf.square(error))
    opt = tf.train.GradientDescentOptimizer(0.1)
    step = opt.minimize(loss)
    with tf.control_dependencies([step]):
        after = tf.identity(loss)
    return after


def clipped(x: Any) -> Any:
    w = tf.get_variable("w", initializer=[1.0, 2.0])
    loss = tf.reduce_sum(tf.square(x * w))
    opt = tf.train.GradientDescentOptimizer(0.1)
    pairs = opt.compute_gradients(loss)
    clipped_pairs = [(tf.clip_by_value(g, -1.0, 1.0), v) for g, v in pairs]
    train = opt.apply_gradients(clipped_pairs)
    with tf.control_dependencies([train]):
        out = tf.identity(loss)
    return out
