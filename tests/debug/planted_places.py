"""Functions of a tensor with one bug planted in a line each, in the places where Python has code run."""

from __future__ import annotations

import functools
import itertools
import operator
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from enum import Enum
from typing import Any, NamedTuple

import twofold as torch
from twofold import nn
from twofold.nn import functional as F


def bug_max_key(x: Any, i: Any) -> Any:
    rows = [x[0], x[1]]
    return max(rows, key=lambda row: (row @ torch.ones(4)).sum())  # bug


def bug_filter(x: Any, i: Any) -> Any:
    def is_large(row: Any) -> Any:
        return (row.reshape(2, 2) > 0).all()  # bug

    return torch.stack(list(filter(is_large, x.unbind(0))))


def bug_send(x: Any, i: Any) -> Any:
    def running() -> Iterator[Any]:
        total = torch.zeros(3)
        while True:
            given = yield total
            total = total + given  # bug

    worker: Any = running()
    next(worker)
    worker.send(x[0])
    return worker.send(x.T)


def bug_yield_from(x: Any, i: Any) -> Any:
    def halves(v: Any) -> Iterator[Any]:
        yield v[:, :2]
        yield v[:, 1:3] @ v.T  # bug

    def both(v: Any) -> Iterator[Any]:
        yield from halves(v)

    return sum(one.sum() for one in both(x))


def bug_dict_comprehension(x: Any, i: Any) -> Any:
    weights = {
        name: torch.einsum("ij,jk->ik", x, torch.ones(rows, 2))  # bug
        for name, rows in (("a", 3), ("b", 2))
    }
    return weights["a"] + weights["b"]


class Scaled:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __matmul__(self, other: Any) -> Any:
        return Scaled(self.value @ other.value)  # bug of bug_operator_method

    def __getattr__(self, name: str) -> Any:
        return self.value.sum(int(name.removeprefix("over_")))  # bug of bug_getattr


def bug_operator_method(x: Any, i: Any) -> Any:
    return functools.reduce(operator.matmul, [Scaled(x), Scaled(x.T), Scaled(x.T)]).value


def bug_getattr(x: Any, i: Any) -> Any:
    made = Scaled(x)
    return made.over_1 + made.over_2.sum()


class Norm:
    def __init__(self, size: int) -> None:
        self.size = size

    @functools.cached_property
    def weight(self) -> Any:
        return torch.ones(self.size, 2).T @ torch.ones(self.size + 1)  # bug of bug_cached_property

    def __call__(self, x: Any) -> Any:
        return x * self.weight


def bug_cached_property(x: Any, i: Any) -> Any:
    return Norm(3)(x)


@functools.singledispatch
def widened(value: Any, x: Any) -> Any:
    return x + value


@widened.register
def _(value: list, x: Any) -> Any:  # type: ignore[type-arg]
    return torch.cat([x, *value], 1)  # bug of bug_single_dispatch


def bug_single_dispatch(x: Any, i: Any) -> Any:
    return widened([x, x.T], x) + widened(1.0, x)


class Kind(Enum):
    MEAN = "mean"
    NORM = "norm"

    def of(self, x: Any) -> Any:
        match self:
            case Kind.MEAN:
                return x.mean(1)
            case Kind.NORM:
                return x / x.norm(dim=1)  # bug of bug_enum_match


def bug_enum_match(x: Any, i: Any) -> Any:
    return sum(kind.of(x).sum() for kind in Kind)


class Pair(NamedTuple):
    left: Any
    right: Any

    @property
    def product(self) -> Any:
        return self.left * self.right  # bug of bug_named_tuple


def bug_named_tuple(x: Any, i: Any) -> Any:
    return Pair(x, x.T).product


class Base:
    def transformed(self, x: Any) -> Any:
        return x.permute(1, 0, 2)  # bug of bug_super


class Derived(Base):
    def transformed(self, x: Any) -> Any:
        y = x * 2
        return super().transformed(y) + 1


def bug_super(x: Any, i: Any) -> Any:
    return Derived().transformed(x)


class Held:
    def __init__(self, x: Any) -> None:
        self.x = x

    def __enter__(self) -> Any:
        return self.x.view(3, 2)

    def __exit__(self, *raised: object) -> None:
        self.x.view(4, 2)  # bug of bug_exit


def bug_exit(x: Any, i: Any) -> Any:
    with Held(x) as v:
        y = v + 1
    return y


def bug_exit_stack(x: Any, i: Any) -> Any:
    found = []
    with ExitStack() as stack:
        stack.callback(lambda: found.append(x.squeeze(3)))  # bug
        found.append(x * 2)
    return found[-1]


def bug_accumulate(x: Any, i: Any) -> Any:
    steps = [torch.ones(3, 3), torch.ones(3, 3), torch.ones(2, 3)]
    return list(itertools.accumulate(steps, lambda h, w: h @ w, initial=x))[-1]  # bug


def bug_nested_list(x: Any, i: Any) -> Any:
    return torch.stack([torch.stack([x[r] * x[:, c] for c in range(3)]) for r in range(2)])  # bug


STEPS_OF_FOUR = torch.arange(4.0)


def bug_default_argument(x: Any, i: Any) -> Any:
    def shifted(v: Any, by: Any = STEPS_OF_FOUR) -> Any:
        return v + by  # bug

    return shifted(x, 1.0) + shifted(x)


def bug_helper_second_call(x: Any, i: Any) -> Any:
    def project(v: Any, w: Any) -> Any:
        h = v.relu()
        return h @ w  # bug

    h = project(x, torch.ones(3, 5))
    return project(h, torch.ones(3, 5))


def bug_thread_object(x: Any, i: Any) -> Any:
    caught: list[BaseException] = []

    class Work(threading.Thread):
        def run(self) -> None:
            try:
                torch.stack([x, x[0]]).sum().item()  # bug
            except RuntimeError as error:
                caught.append(error)

    work = Work()
    work.start()
    work.join()
    raise caught[0]


def bug_in_finally(x: Any, i: Any) -> Any:
    try:
        y = x * 2
    finally:
        y = x.expand(4, 2, 4)  # bug
    return y


def bug_while_condition(x: Any, i: Any) -> Any:
    h = x
    while h.numel() < 100 and (h @ x.T).numel():  # bug
        h = torch.cat([h, h], 1)
    return h


def bug_augmented_item(x: Any, i: Any) -> Any:
    y = x * 1
    y[:, 0] += x[0]  # bug
    return y


def bug_slice_assignment(x: Any, i: Any) -> Any:
    out = torch.zeros(4, 3)
    out[1:4] = x  # bug
    return out + 1


def bug_format(x: Any, i: Any) -> Any:
    title = f"norm {(x - x.mean(1)).sum()}"  # bug
    return x * len(title)


def bug_assert(x: Any, i: Any) -> Any:
    assert torch.allclose(x, x[:, :2]), "equal"  # bug
    return x


def bug_chained_comparison(x: Any, i: Any) -> Any:
    inside = (x > 0) & (x.T < 9)  # bug
    return torch.where(inside, x, 0.0)


def bug_conv_in_a_list(x: Any, i: Any) -> Any:
    image = x.reshape(1, 1, 2, 3)
    layers = [nn.Conv2d(1, 4, 1), nn.Conv2d(4, 8, 1), nn.Conv2d(4, 2, 1)]
    for layer in layers:
        image = layer(image)  # bug
    return image


class Tower(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(3, 3), nn.ReLU()) for _ in range(3)])
        self.heads = nn.ModuleDict({"mean": nn.Linear(3, 1), "scale": nn.Linear(4, 1)})

    def forward(self, x: Any) -> Any:
        for block in self.blocks:
            x = x + block(x)
        return {name: head(x) for name, head in self.heads.items()}  # bug of bug_module_dict_comprehension


def bug_module_dict_comprehension(x: Any, i: Any) -> Any:
    return Tower()(x)["scale"]


def bug_embedding_twice(x: Any, i: Any) -> Any:
    words = nn.Embedding(4, 3)
    first = words(i)
    second = words(i + 3)  # bug
    return first + second


def bug_gather_in_a_map(x: Any, i: Any) -> Any:
    def picked(k: int) -> Any:
        return x.gather(1, (i + k).reshape(2, 1))  # bug

    return torch.cat(list(map(picked, (0, 1, 2))), 1)


def bug_index_of_index(x: Any, i: Any) -> Any:
    order = x.sum(0).argsort()
    return x[order + i[0]] * 2  # bug


def bug_label_smoothing(x: Any, i: Any) -> Any:
    losses = [
        F.cross_entropy(x, i + k, label_smoothing=0.1)  # bug
        for k in range(3)
    ]
    return torch.stack(losses)


def bug_normalized_shape(x: Any, i: Any) -> Any:
    normed = (lambda v: F.layer_norm(v, (2,)))(x)  # bug
    return normed * 2


def bug_bilinear(x: Any, i: Any) -> Any:
    return F.bilinear(x, x, torch.ones(5, 3, 2))  # bug


def bug_unbind_too_many(x: Any, i: Any) -> Any:
    a, b, c = x  # bug
    return a + b + c


def bug_tensordot(x: Any, i: Any) -> Any:
    contracted = functools.partial(torch.tensordot, dims=([1], [0]))
    return contracted(x, x)  # bug


PLACES = [one for name, one in list(globals().items()) if name.startswith("bug_")]
