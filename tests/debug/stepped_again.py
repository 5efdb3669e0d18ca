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


def rows_of_a_comprehension(x: Any, w: Any) -> Any:
    m = torch.stack([x, w])
    sums = [t.sum() for t in m]
    doubled = {k: t * 2 for k, t in enumerate(m)}
    total = sum(t * 3 for t in m)
    return total + sums[0] + sums[1] + doubled[0] * doubled[1]


def doubling(v: Any, count: int) -> Iterator[Any]:
    for _ in range(count):
        v = v * 2
        yield v


def zipped_generators(x: Any, w: Any) -> Any:
    total = x * 0
    for a, b in zip(doubling(x, 2), doubling(w, 2)):
        total = total + a * b
    return total


def unpacked_generators(x: Any, w: Any) -> Any:
    a, b = doubling(x, 2)
    first, *others = doubling(w, 3)
    return a + b + first + others[1]


def stored_generators(x: Any, w: Any) -> Any:
    sources = [doubling(x, 2), doubling(w, 2)]
    total = x * 0
    for source in sources:
        for one in source:
            total = total + one
    return total


def scaled(source: Any, w: Any) -> Iterator[Any]:
    for one in source:
        y = one * w
        yield y


def generator_of_a_generator(x: Any, w: Any) -> Any:
    total = x * 0
    for one in scaled(doubling(x, 2), w):
        total = total + one
    return total


def answered(v: Any) -> Iterator[Any]:
    y = v + 1
    got = yield y
    z = y * got
    yield z


def sent_to(x: Any, w: Any) -> Any:
    source = answered(x)
    a = next(source)
    b = source.send(w)  # type: ignore[attr-defined]
    return a + b


class Steps:
    def __init__(self, w: Any) -> None:
        self.w = w

    def __iter__(self) -> Iterator[Any]:
        for k in range(2):
            y = self.w * k
            yield y


def iterated_object(x: Any, w: Any) -> Any:
    total = x
    for step in Steps(w):
        total = total + step
    return total


def returned_in_the_last_round(x: Any) -> Any:
    for k in range(3):
        x = x * 2
        if k == 2:
            return x
    return x


def rounds_without_a_call(x: Any, w: Any) -> Any:
    total = x * 0
    for k, v in enumerate([x, w, x]):
        if k == 1:
            continue
        total = total + v
    for k in range(4):
        if k % 2:
            continue
        total = total * k
    return total


def raised_inside(x: Any) -> Any:
    y = x * 2
    try:
        z = y
        raise ValueError
    except ValueError:
        y = z + 1
    finally:
        y = y * 3
    return y
