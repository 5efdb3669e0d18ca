"""Programs that come to the same function, generator or callback again; each is a function of tensors."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import twofold as torch


def grown(v: Any, count: int) -> Iterator[Any]:
    for k in range(count):
        y = v * k
        yield y + 1


def halves(v: Any) -> Iterator[Any]:
    y = v * 0.5
    yield y
    y = y * 0.5
    yield y
    return


@contextlib.contextmanager
def shifted(v: Any) -> Iterator[Any]:
    y = v + 1
    yield y
    y = y * 2


def doubled(v: Any) -> Any:
    y = v * 2
    return y


def generator_in_a_loop(x: Any) -> Any:
    total = x
    for _ in range(2):
        for one in grown(total, 2):
            total = total + one
    return total


def generator_twice(x: Any, w: Any) -> Any:
    total = x
    for one in halves(x):
        total = total + one
    for one in halves(w):
        total = total * one
    return total


def next_twice(x: Any) -> Any:
    first = next(halves(x))
    second = next(halves(first))
    return first + second


def mapped_in_a_loop(x: Any, w: Any) -> Any:
    total = x
    for _ in range(2):
        a, b = map(doubled, (total, w))
        total = a + b
    return total


def inside_a_return(x: Any, w: Any) -> Any:
    y = x * w
    return sum(map(doubled, [y, w]))


def in_place(x: Any) -> Any:
    y = x * 2
    y += x
    y.mul_(x)
    z = y + 1
    return z


def written_to(buffer: Any, x: Any) -> Any:
    buffer.mul_(x)
    y = buffer + 1
    return y


def managed_in_a_loop(x: Any) -> Any:
    y = x
    for _ in range(2):
        with shifted(y) as v:
            y = v * 3
    return y


def nested_managers(x: Any, w: Any) -> Any:
    with shifted(x) as a:
        with shifted(w) as b:
            y = a * b
        z = y + a
    return z


class Scaled(torch.autograd.Function):
    """A custom function whose ``forward`` is given a context."""

    @staticmethod
    def forward(ctx: Any, a: Any, b: Any) -> Any:
        ctx.save_for_backward(a, b)
        r = a * b
        return r + a

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        a, b = ctx.saved_tensors
        return g * (b + 1), g * a


def custom_function(x: Any, w: Any) -> Any:
    z = Scaled.apply(x, w)
    return z + 1
