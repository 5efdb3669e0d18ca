"""Programs with objects whose every line is stepped through; of two vectors."""

from __future__ import annotations

import collections
import copy
import functools
import itertools
import operator
from typing import Any

import twofold as torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, v: Any) -> Any:
        ctx.save_for_backward(v)
        out = v * v
        return out

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (v,) = ctx.saved_tensors
        scaled = g * 2
        return scaled * v


def custom_backward(x: Any, w: Any) -> Any:
    v = x.clone().requires_grad_()
    y = Square.apply(v * w)
    loss = y.sum()
    loss.backward()
    g = v.grad
    return g + w


def hooks(x: Any, w: Any) -> Any:
    v = x.clone().requires_grad_()
    seen = []

    def hook(g: Any) -> Any:
        doubled = g * 2
        seen.append(doubled)
        return doubled

    v.register_hook(hook)
    y = (v * w).sum()
    y.backward()
    return v.grad + seen[0]


def grad_of(x: Any, w: Any) -> Any:
    def f(v: Any) -> Any:
        s = v * w
        return (s * s).sum()

    g = torch.func.grad(f)(x)
    return g + x


class Pairs(torch.utils.data.Dataset):
    def __init__(self, a: Any, b: Any) -> None:
        self.items = [a, b, a * b]

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, k: Any) -> Any:
        v = self.items[k]
        return v * k, k


def collate(parts: Any) -> Any:
    values = torch.stack([p[0] for p in parts])
    ks = [p[1] for p in parts]
    return values, ks


def dataset_class(x: Any, w: Any) -> Any:
    ds = Pairs(x, w)
    acc = x * 0
    for values, ks in torch.utils.data.DataLoader(ds, batch_size=2, collate_fn=collate):
        acc = acc + values.sum(0) * sum(ks)
    return acc


def numpy_mix(x: Any, w: Any) -> Any:
    a = x.numpy().copy()
    a += 1
    b = torch.from_numpy(a) * w
    a[0] = 7
    c = float(b.sum())
    return w * c


def inplace_views(x: Any, w: Any) -> Any:
    m = torch.zeros(2, 2)
    rows = [m[k] for k in range(2)]
    for k, row in enumerate(rows):
        row += x * k
        row[0] = w[k]
    t = m.t()
    t.mul_(2)
    return m.sum(0)


def swap_in_list(x: Any, w: Any) -> Any:
    values = [x, w, x * w]
    values[0], values[2] = values[2], values[0]
    values.sort(key=lambda v: v.sum().item())
    values.insert(1, values.pop())
    a, *_, b = values
    return a - b


def nested_dicts(x: Any, w: Any) -> Any:
    params: Any = {"layer": {"w": w, "b": x}, "other": [x, {"deep": w}]}
    for name, group in params["layer"].items():
        params["layer"][name] = group * 2
    params["other"][1]["deep"] = params["layer"]["w"] + 1
    flat = [params["layer"]["w"], params["other"][1]["deep"]]
    return flat[0] * flat[1]


def early_return_in_loop(x: Any, w: Any) -> Any:
    for k in range(5):
        y = x * k
        for v in (x, w):
            if (y * v).sum() > 10:
                return y + v
    return x


def finally_return(x: Any, w: Any) -> Any:
    def inner(v: Any) -> Any:
        try:
            return v * 2
        finally:
            kept.append(v)

    kept: list[Any] = []
    a = inner(x)
    b = inner(w)
    return a + b + kept[0]


class Countdown:
    def __init__(self, v: Any, n: Any) -> None:
        self.v, self.n = v, n

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        if self.n == 0:
            raise StopIteration
        self.n -= 1
        self.v = self.v * 0.5
        return self.v


def custom_iterator(x: Any, w: Any) -> Any:
    total = w
    for v in Countdown(x, 3):
        total = total + v
    first = next(Countdown(w, 1))
    return total * first


def star_iter(x: Any, w: Any) -> Any:
    def gen() -> Any:
        k = 0
        while True:
            k += 1
            yield x * k

    taken = list(itertools.islice(gen(), 3))
    a, b, c = taken
    pairs = list(itertools.pairwise(taken))
    return a + b * c + pairs[1][0]


def ternaries(x: Any, w: Any) -> Any:
    y = (x if x.sum() > w.sum() else w) * 2
    z = [v * 2 if v.sum() > 4 else v for v in (x, w)]
    q = (z[0] > 1).all() or (z[1] > 1).all()
    return y + z[0] + (1 if q else 0)


def multiline(x: Any, w: Any) -> Any:
    y = torch.cat(
        [
            x * 2,
            w - 1,
        ]
    )
    z = y.reshape(2, 2).sum(0).mul(w)
    d = {
        "a": z + x,
        "b": z * w,
    }
    return d["a"] + d["b"]


def chained(x: Any, w: Any) -> Any:
    a = b = x * w
    c = d, e = a + 1, b - 1
    a += 1
    return a + c[0] * e + d


def global_list(x: Any, w: Any) -> Any:
    CACHE.clear()
    for v in (x, w):
        CACHE.append(v * 2)
    s = sum(CACHE)
    return s


CACHE: list[Any] = []


class Registry:
    shared: dict[str, Any] = {}

    def __init__(self, name: Any) -> None:
        self.name = name

    def put(self, v: Any) -> Any:
        self.shared[self.name] = v * 2
        return self

    @classmethod
    def total(cls) -> Any:
        return sum(cls.shared.values())

    @staticmethod
    def scale(v: Any, k: Any) -> Any:
        return v * k


def class_methods(x: Any, w: Any) -> Any:
    Registry.shared.clear()
    Registry("a").put(x)
    r = Registry("b").put(w)
    t = r.total()
    return Registry.scale(t, 0.5)


class Stack:
    def __init__(self) -> None:
        self.items: list[Any] = []

    def push(self, v: Any) -> Any:
        self.items.append(v)

    def reduce(self) -> Any:
        r, l = self.items.pop(), self.items.pop()
        self.items.append(torch.tanh(l + r))

    def __len__(self) -> int:
        return len(self.items)


def shift_reduce(x: Any, w: Any) -> Any:
    stack = Stack()
    queue = collections.deque([x, w, x * w])
    for action in "SSRSR":
        if action == "S":
            stack.push(queue.popleft())
        else:
            stack.reduce()
    assert len(stack) == 1
    return stack.items[0]


def ring_buffer(x: Any, w: Any) -> Any:
    buf = [None] * 3
    for k in range(5):
        buf[k % 3] = x * k + w
    kept = [b for b in buf if b is not None]
    return torch.stack(kept).mean(0)


def priority(x: Any, w: Any) -> Any:
    import heapq

    heap: list[Any] = []
    for k, v in enumerate((x, w, x - w)):
        heapq.heappush(heap, (float(v.sum()), k, v))
    _, k, best = heapq.heappop(heap)
    return best * (k + 1)


def bisect(x: Any, w: Any) -> Any:
    lo, hi = torch.zeros(2), w
    for _ in range(6):
        mid = (lo + hi) / 2
        big = mid * mid > x
        hi = torch.where(big, mid, hi)
        lo = torch.where(big, lo, mid)
        if (hi - lo).max() < 0.2:
            break
    return lo


def mutual(x: Any, w: Any) -> Any:
    def even(n: Any, v: Any) -> Any:
        if n == 0:
            return v
        return odd(n - 1, v * 2)

    def odd(n: Any, v: Any) -> Any:
        return even(n - 1, v + w)

    return even(4, x)


def functional_partial(x: Any, w: Any) -> Any:
    scale = functools.partial(operator.mul, w)
    ys = list(map(scale, (x, w)))
    acc = functools.reduce(operator.add, ys)
    big = list(filter(lambda v: v.sum() > 5, ys))
    return acc * len(big)


def copying(x: Any, w: Any) -> Any:
    a = {"v": x, "l": [w]}
    b = copy.deepcopy(a)
    c = copy.copy(a)
    c["l"].append(x)
    b["l"].append(w * 2)
    return a["l"][1] + b["l"][1]


def local_class(x: Any, w: Any) -> Any:
    class Scale:
        factor = 3
        bias = w * factor

        def __call__(self, v: Any) -> Any:
            return v * self.factor + self.bias

    s = Scale()
    return s(x)


def delete(x: Any, w: Any) -> Any:
    y = x * w
    z = y + 1
    del y
    y = z * 2
    d = {"a": y, "b": z}
    del d["a"], z
    return d["b"] + y


def sets(x: Any, w: Any) -> Any:
    seen = set()
    y = x
    for k in (1, 2, 1, 3, 2):
        if k in seen:
            continue
        seen.add(k)
        y = y + w * k
    return y


def parts_of_a_large_object(x: Any, w: Any) -> Any:
    m = torch.zeros(2, 2)
    held: Any = {"rows": [m[0], m[1]], "m": m, "more": [[x], [w]] * 10, "own": [[x] for _ in range(20)]}
    m[0] = w
    m += 1
    held["own"][3][0] = x * 5
    held["own"][4].append(held["rows"][0])
    z = held["rows"][0] + held["own"][3][0]
    return z


class Slotted:
    __slots__ = ("h", "name")

    def __init__(self, h: Any) -> None:
        self.h, self.name = h, "slotted"


class Freer(Slotted):
    def grow(self, w: Any) -> Any:
        self.last = self.h
        self.h = self.h * w
        return self.h


def slots(x: Any, w: Any) -> Any:
    one = Slotted(x + 1)
    two = Freer(one.h)
    two.grow(w)
    one.h = two.last * 2
    del one.name
    two.grow(one.h)
    return two.h + one.h


def state_of_an_optimizer(x: Any, w: Any) -> Any:
    v = torch.nn.Parameter(x.clone())
    optimizer = torch.optim.SGD([v], lr=0.5, momentum=0.9)
    for _ in range(2):
        optimizer.zero_grad()
        loss = (v * w).sum()
        loss.backward()
        optimizer.step()
    moved = v.detach() + x
    return moved * 2
