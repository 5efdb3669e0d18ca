"""Programs whose functions are called by functions of Python, or run in pieces; each is a function of tensors."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import twofold as torch


def activated(v: Any) -> Any:
    y = torch.tanh(v)
    return y * 2


def mapped(x: Any, w: Any) -> Any:
    total = x
    for part in map(activated, [x, w]):
        total = total + part
    first, second = map(lambda v: v * 2, (total, w))  # noqa: C417
    joined = list(map(activated, (first, second)))
    return joined[0] + joined[1]


def mapped_in_pairs(x: Any, w: Any) -> Any:
    def joined(a: Any, b: Any) -> Any:
        c = a * b
        return c + a

    parts = list(map(joined, [x, w], [w, x]))
    pairs = list(itertools.starmap(joined, [(x, parts[0]), (w, parts[1])]))
    a, b = pairs
    return parts[-1] + a * b


def size_of(v: Any) -> Any:
    s = v.abs().sum()
    return s.item()


def ordered(x: Any, w: Any) -> Any:
    y = sorted([w, x], key=size_of)[0] * 2
    return y * max(x, w, key=lambda v: v.sum().item())


def is_large(v: Any) -> Any:
    s = v.sum()
    return s > 4


def filtered(x: Any, w: Any) -> Any:
    kept = list(filter(is_large, [x, w, x]))
    y = kept[0] * 3
    return y


def reduced(x: Any, w: Any) -> Any:
    def join(a: Any, b: Any) -> Any:
        c = a * b
        return c + 1

    y = functools.reduce(join, [x, w, x])
    z = functools.reduce(join, [y, w], x)
    return z * 2


def partial(x: Any, w: Any) -> Any:
    def scale(v: Any, k: Any) -> Any:
        y = v * k
        return y + 1

    grown = functools.partial(scale, k=w)
    shrunk = functools.partial(scale, x)
    y = grown(x)
    return grown(y) + shrunk(w)


def lambdas(x: Any, w: Any) -> Any:
    def composed(f: Any, v: Any) -> Any:
        y = f(v)
        return y + 1

    twice = lambda v: v * 2
    y = twice(x)
    z = composed(lambda v: v * w, y)
    return z


def scaled_by(x: Any, count: int) -> Iterator[Any]:
    for k in range(count):
        y = x * k
        yield y + 1


def doubling(x: Any) -> Iterator[Any]:
    y = x
    for _ in range(3):
        y = y * 2
        yield y


def generators(x: Any) -> Any:
    total = x * 0
    for one in scaled_by(x, 2):
        total = total + one
    for k, one in enumerate(doubling(total)):
        total = total + one * k
    return total


def iterator(x: Any) -> Any:
    states = doubling(x)
    a = next(states)
    b = next(states)
    c = a + b
    return c


def collected(x: Any) -> Any:
    stacked = torch.stack(list(doubling(x)))
    total = sum(row * 2 for row in [x, stacked[0]])
    return total + stacked


def comprehensions(x: Any, w: Any) -> Any:
    products = [x * i for i in range(3)]
    rows = [v * 2 for v in (x, w)]
    named = {name: v * 3 for name, v in (("a", x), ("b", w))}
    total = products[0] + named["a"]
    for product in products[1:]:
        total = total + product
    return total + rows[0] * rows[1] + named["b"]


def nested_comprehension(x: Any) -> Any:
    products = [x * i + j for i in range(2) for j in range(2)]
    total = products[0]
    for product in products[1:]:
        total = total + product
    return total


def looped(x: Any) -> Any:
    k = 0
    while k < 3:
        x = x * 2
        if k == 1:
            x = x + 1
        k += 1
    return x


def caught(x: Any) -> Any:
    y = x
    for _ in range(2):
        try:
            y = y * 2
            y = y + x
        except RuntimeError:
            y = x + 1
        else:
            y = y.exp()
        finally:
            y = y * 3
    return y


@contextlib.contextmanager
def halved(x: Any) -> Iterator[Any]:
    y = x * 0.5
    yield y
    y = y + 1


class Held:
    def __init__(self, x: Any) -> None:
        self.x = x

    def __enter__(self) -> Any:
        entered = self.x + 1
        return entered

    def __exit__(self, *raised: object) -> None:
        pass


def managed(x: Any) -> Any:
    with contextlib.nullcontext():
        y = x * 2
    with Held(y) as v:
        z = v * 3
    return z


def managed_by_a_generator(x: Any) -> Any:
    with halved(x) as v:
        z = v * 3
    return z


class Layer:
    def __init__(self, w: Any) -> None:
        self.w = w

    def __call__(self, v: Any) -> Any:
        y = v * self.w
        return y + 1


def called(x: Any, w: Any) -> Any:
    layers = [Layer(w), Layer(x)]
    y = x
    for layer in layers:
        y = layer(y)
    return layers[0](y)


def early(v: Any, stops: bool) -> Any:
    y = v * 2
    if stops:
        return y
    z = y + 1
    return z


def early_return(x: Any) -> Any:
    a = early(x, True)
    b = early(a, False)
    return a * b


def power(x: Any, n: int) -> Any:
    if n == 0:
        return x * 0 + 1
    half = power(x, n // 2)
    square = half * half
    return square * x if n % 2 else square


def recursive(x: Any) -> Any:
    y = power(x, 3)
    return y


def matched(x: Any) -> Any:
    for kind in ("double", "shift", "other"):
        match kind:
            case "double":
                x = x * 2
            case "shift":
                x = x + 1
            case _:
                x = x - 3
    return x


def around(f: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(f)
    def wrapper(v: Any) -> Any:
        y = v * 2
        out = f(y)
        return out + 1

    return wrapper


@around
def inner(v: Any) -> Any:
    z = torch.tanh(v)
    return z


def decorated(x: Any) -> Any:
    y = inner(x)
    return y * 3


def by_names(x: Any, w: Any) -> Any:
    parameters = {"w": w, "b": x}
    y = x * parameters["w"]
    for _, one in parameters.items():
        y = y + one
    return y


def chosen(x: Any, w: Any) -> Any:
    y = x * 2 if x is not w else w
    z = y + (w if y is x else x * 3)
    return z


def changing(x: Any) -> Any:
    total = x

    def add(v: Any) -> None:
        nonlocal total
        total = total + v

    add(x)
    add(total * 2)
    return total


def differentiated(function: Any, *arguments: Any) -> Any:
    result = function(*arguments)
    total = result.sum()
    total.backward()
    return result
