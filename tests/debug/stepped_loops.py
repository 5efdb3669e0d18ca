"""Programs whose loops, calls and statements Python runs in more than one step; each is a function of tensors."""

from __future__ import annotations

from typing import Any

import twofold as torch
import twofold.static as tf
from twofold import nn
from twofold.nn import functional as F


def attention(x: Any, wq: Any, wk: Any) -> Any:
    q = x @ wq
    k = x @ wk
    scores = q @ k.T / 2.0
    weights = F.softmax(scores, -1)
    mixed = weights @ x
    return mixed


def lstm_cell(x: Any, h: Any, c: Any, w: Any) -> Any:
    gates = torch.cat([x, h]) @ w
    i, f, g, o = gates.chunk(4)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    h = torch.sigmoid(o) * torch.tanh(c)
    return h, c


def lstm(xs: Any, w: Any) -> Any:
    h = torch.zeros(2)
    c = torch.zeros(2)
    outputs = []
    for x in xs:
        h, c = lstm_cell(x, h, c, w)
        outputs.append(h)
    stacked = torch.stack(outputs)
    return stacked


def newton(a: Any) -> Any:
    x = a.clone()
    for _ in range(6):
        nxt = 0.5 * (x + a / x)
        if (nxt - x).abs().max() < 1e-3:
            break
        x = nxt
    return x


def comprehension(x: Any, w: Any) -> Any:
    parts = [torch.tanh(x * k) for k in range(1, 4)]
    total = sum(parts)
    scaled = total * w
    return scaled


def multiline(x: Any, w: Any) -> Any:
    h = x.mul(2.0).add(1.0)  # first
    y = torch.where(
        h > 2.0,
        h * w,
        h - w,
    )
    return y


def closure(x: Any, w: Any) -> Any:
    scale = w * 2

    def inner(v: Any) -> Any:
        moved = v * scale
        return moved + 1

    y = inner(x)
    z = inner(y)
    return z


def summed(x: Any, *rest: Any) -> Any:
    total = x
    for r in rest:
        total = total + r
    return total


def by_name(x: Any, *, scale: Any) -> Any:
    y = x * scale
    return y


def called_by_name(x: Any, w: Any) -> Any:
    y = by_name(x, scale=w)
    return by_name(y, scale=w)


def nested_loops(x: Any) -> Any:
    total = torch.zeros(2)
    for i in range(2):
        for j in range(2):
            total = total + x * (i + j)
        total = total * 0.5
    return total


def augmented(x: Any) -> Any:
    total = torch.zeros(2)
    k = 0
    while k < 4:
        total += x * k
        k += 1
        if k == 2:
            continue
        total = total * 0.5
    return total


def walrus(x: Any) -> Any:
    if (s := x.sum()) > 0:
        y = x / s
    return y


def numbered(xs: Any, w: Any) -> Any:
    total = w * 0
    for k, row in enumerate(xs):
        part = row * k
        total = total + part
    return total


def pairs(xs: Any, ys: Any) -> Any:
    total = xs[0] * 0
    for a, b in zip(xs, ys):
        d = a - b
        total = total + d * d
    return total


def members(a: Any, b: Any, c: Any) -> Any:
    items = [a, b, c]
    total = a
    for item in items:
        scaled = item * 2
        total = total + scaled
    return total


def skipping(a: Any, b: Any, c: Any) -> Any:
    total = a * 0
    for k, item in enumerate([a, b, c]):
        if k == 1:
            continue
        total = total + item
    return total


def splits(x: Any) -> Any:
    left, right = torch.split(x, 1)
    a, b = x
    c = left * right
    return c + a * b


def starred(x: Any, y: Any) -> Any:
    first, *others = x, y, x * y
    z = first + others[1]
    return z


def indexed(x: Any) -> Any:
    out = torch.zeros(3, 2)
    for k in range(3):
        out[k] = x * k
    s = out.sum(0)
    return s


def sliced(x: Any) -> Any:
    y = x * 1
    y[:1] += 5.0
    y[1:] *= 2.0
    return y - x


def with_else(x: Any) -> Any:
    for _ in range(2):
        x = x * 2
    else:
        x = x + 1
    return x


class Machine:
    def __init__(self, w: Any) -> None:
        self.w = w

    @property
    def double(self) -> Any:
        d = self.w * 2
        return d

    @staticmethod
    def squash(v: Any) -> Any:
        s = torch.tanh(v)
        return s

    def step(self, x: Any, k: int = 2) -> Any:
        y = x * self.double
        z = self.squash(y) * k
        return z

    def run(self, x: Any) -> Any:
        for _ in range(2):
            x = self.step(x)
        return x


def machine(x: Any, w: Any) -> Any:
    m = Machine(w)
    return m.run(x)


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.c1 = nn.Conv2d(2, 2, 3, padding=1)
        self.bn = nn.BatchNorm2d(2)
        self.act = nn.ReLU()

    def forward(self, x: Any) -> Any:
        y = self.c1(x)
        y = self.bn(y)
        y = self.act(y)
        out = y + x
        return out


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(Residual(), Residual())
        self.head = nn.Linear(2, 3)

    def forward(self, x: Any) -> Any:
        h = self.body(x)
        pooled = h.mean((2, 3))
        logits = self.head(pooled)
        return logits


def declared_cell(i: Any, h: Any, c: Any) -> Any:
    z = h * 0.5
    c = c + z
    h = tf.tanh(c)
    return i + 1, h, c


def declared_state(x: Any) -> Any:
    c0 = tf.zeros_like(x)
    _, h, c = tf.while_loop(lambda i, h, c: i < 3, declared_cell, [tf.constant(0), x, c0])
    y = h * c
    return tf.reduce_sum(y)


def grown(v: Any) -> Any:
    w = v + 1.0
    return w * 2.0


def shrunk(v: Any) -> Any:
    return v - 1.0


def choosing_body(i: Any, h: Any) -> Any:
    t = tf.reduce_sum(h)
    h = tf.cond(t > 1.0, lambda: shrunk(h), lambda: grown(h))
    return i + 1, h


def choices_in_a_loop(x: Any) -> Any:
    a = x * 1.5
    _, h = tf.while_loop(lambda i, h: i < 4, choosing_body, [tf.constant(0), a])
    return tf.reduce_sum(h)


def layer(v: Any, k: Any) -> Any:
    scaled = v * k
    shifted = scaled + 1.0
    return shifted


def layers(x: Any) -> Any:
    a = layer(x, 2.0)
    b = layer(a, 0.5)
    with tf.name_scope("out"):
        c = tf.nn.relu(b)
    d = tf.stack([a, b, c])
    e, f, g = tf.unstack(d)
    return tf.reduce_sum(e * f + g)


def twice(i: Any, h: Any) -> Any:
    for _ in range(2):
        h = tf.sin(h)
    n = h + 1.0
    h = n
    return i + 1, h


def loop_in_a_loop(x: Any) -> Any:
    _, h = tf.while_loop(lambda i, h: i < 3, twice, [tf.constant(0), x * 2.0])
    return tf.reduce_sum(h)


def neighbours(x: Any) -> Any:
    doubled = tf.concat([x, x], 0)

    def following(k: Any, total: Any) -> Any:
        pair = doubled[k] * tf.gather(doubled, k + 1)
        total = total + pair / tf.cast(tf.size(x), tf.float32)
        return k + 1, total

    _, total = tf.while_loop(lambda k, total: k < tf.size(x), following, [tf.constant(0), tf.constant(0.0)])
    return total * 2.0


def differentiated(function: Any, *arguments: Any) -> Any:
    result = function(*arguments)
    total = result.sum()
    total.backward()
    return result
