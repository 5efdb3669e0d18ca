"""Programs that are stepped through as they are and as graphs; each is a function of tensors."""

from __future__ import annotations

from typing import Any

import twofold as torch
import twofold.dynet as dy
import twofold.static as tf
from twofold import nn


def straight(x: Any, w: Any) -> Any:
    h = x @ w
    a = torch.tanh(h)
    b = a * 2
    return b.sum()


def scaled(h: Any, factor: Any) -> Any:
    z = h * factor
    shifted = z + 1
    return shifted


def unrolled(x: Any, factor: Any) -> Any:
    h = torch.exp(-x)
    for _ in range(3):
        h = scaled(h, factor)
        h = torch.sigmoid(h)
    return h


def both(a: Any, b: Any) -> Any:
    total = a + b
    product = a * b
    return total, product


def tuples(a: Any, b: Any) -> Any:
    s, p = both(a, b)
    pair = both(s, p)
    q = pair[0] / pair[1]
    return q


def in_place(x: Any) -> Any:
    y = x * 3
    y += 1
    y.mul_(2)
    y[0] = 0.0
    z = y - x
    return z


class Block(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.linear = nn.Linear(size, size)

    def forward(self, x: Any) -> Any:
        h = self.linear(x)
        y = torch.relu(h)
        return x + y


class Network(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.first = Block(size)
        self.second = Block(size)

    def forward(self, x: Any) -> Any:
        h = self.first(x)
        h = self.second(h)
        out = h.sum(1)
        return out


def branching(x: Any) -> Any:
    total = x.sum()
    if total > 2:
        y = x / total
    else:
        y = x * total
    while y.sum() < 20:
        y = y * 2
        y = y + 1
    return y


def tree(depth: int, x: Any) -> Any:
    if depth == 0:
        return x * 0.5
    left = tree(depth - 1, x)
    right = tree(depth - 1, left)
    return torch.tanh(left + right)


def trained(x: Any, w: Any, target: Any) -> Any:
    y = x @ w
    error = y - target
    loss = (error * error).mean()
    return loss


def columns(w: Any, x: Any) -> Any:
    h = w * x
    a = dy.tanh(h)
    b = dy.softmax(a)
    loss = dy.squared_norm(b)
    return loss


def stepped_body(i: Any, h: Any) -> Any:
    grown = h * 2.0
    bounded = tf.tanh(grown)
    return i + 1, bounded


def below_three(i: Any, h: Any) -> Any:
    return i < 3


def declared(x: Any) -> Any:
    a = tf.exp(x)
    _, h = tf.while_loop(below_three, stepped_body, [tf.constant(0), a])
    b = tf.square(h)
    return tf.reduce_sum(b)


def inner_body(j: Any, s: Any) -> Any:
    scaled = s * 0.5
    return j + 1, scaled


def outer_body(i: Any, h: Any) -> Any:
    moved = tf.sin(h)
    _, s = tf.while_loop(below_three, inner_body, [tf.constant(1), moved])
    joined = s + h
    return i + 1, joined


def nested(x: Any) -> Any:
    a = x * 3.0
    _, h = tf.while_loop(below_three, outer_body, [tf.constant(1), a])
    return tf.reduce_sum(h)


def cumulated(total: Any, row: Any) -> Any:
    grown = total * row
    return grown + 1.0


def scanned(x: Any) -> Any:
    doubled = x * 2.0
    rows = tf.scan(cumulated, doubled, tf.constant(1.0))
    squared = tf.square(rows)
    return tf.reduce_sum(squared)


def larger(v: Any) -> Any:
    twice = v * 2.0
    return twice


def smaller(v: Any) -> Any:
    half = v * 0.5
    return half


def chosen(x: Any) -> Any:
    total = tf.reduce_sum(x)
    y = tf.cond(total > 1.0, lambda: larger(x), lambda: smaller(x))
    return y + total


def looped(x: Any) -> Any:
    y = x * 2
    for _ in range(3):
        y = y + x
    return y


def read_by_a_builder(builder: Any, x: Any, w: Any) -> Any:
    s = builder.initial_state()
    outs = []
    for k in (1, 2, 3):
        s = s.add_input(x * k)
        h = s.output()
        y = w * h
        outs.append(y)
    total = dy.esum(outs)
    return total


def encoded(w: Any, x: Any) -> Any:
    state = x
    for _ in range(3):
        mixed = w * state
        state = dy.tanh(mixed)
    loss = dy.squared_norm(state)
    return loss


def differentiated(function: Any, *arguments: Any) -> Any:
    result = function(*arguments)
    total = result.sum() if hasattr(result, "sum") else result
    total.backward()
    return result
