"""Programs of data whose every line is stepped through: containers, closures, classes, training; of two vectors."""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
from typing import Any, NamedTuple

import twofold as torch
from twofold import nn


def mat(x: Any, w: Any) -> Any:
    return torch.stack([x, w])


def comprehension_filter(x: Any, w: Any) -> Any:
    values = [x * k for k in range(4) if k != 2]
    table = {k: v + w for k, v in enumerate(values)}
    kept = {k: v for k, v in table.items() if k > 0}
    return kept[1] + kept[2]


def nested_comprehension(x: Any, w: Any) -> Any:
    grid = [[a * b for a in (x, w)] for b in (x, w)]
    rows = [sum(row) for row in grid]
    flat = [v for row in grid for v in row]
    return rows[0] + flat[3]


def any_all(x: Any, w: Any) -> Any:
    ok = all((v > 0).all() for v in (x, w))
    some = any((v > 100).any() for v in (x, w))
    y = x * w if ok and not some else x - w
    return y


def counter_closure(x: Any, w: Any) -> Any:
    state = x
    calls = 0

    def bump(v: Any, times: Any = 2) -> Any:
        nonlocal state, calls
        calls += 1
        state = state + v * times
        return state

    a = bump(w)
    b = bump(x, times=3)
    return a * b + calls


def make_layer(weight: Any) -> Any:
    def layer(v: Any, *, bias: Any = 0.0) -> Any:
        out = v * weight
        return torch.tanh(out) + bias

    return layer


def closures_in_list(x: Any, w: Any) -> Any:
    layers = [make_layer(w * k) for k in (1, 2)]
    h = x
    for layer in layers:
        h = layer(h, bias=0.1)
    return h


def compose(*functions: Any) -> Any:
    return functools.reduce(lambda f, g: lambda v: g(f(v)), functions)


def composed(x: Any, w: Any) -> Any:
    f = compose(torch.tanh, lambda v: v * w, torch.exp)
    y = f(x)
    return y


def decorated(function: Any) -> Any:
    @functools.wraps(function)
    def inner(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        return result * 2

    return inner


@decorated
def affine(a: Any, b: Any = None, **options: Any) -> Any:
    y = a * options.get("scale", 1.0)
    if b is not None:
        y = y + b
    return y


def calls_decorated(x: Any, w: Any) -> Any:
    a = affine(x, w, scale=3.0)
    b = affine(a)
    return b


@dataclasses.dataclass
class State:
    h: Any
    c: Any

    def moved(self, v: Any) -> Any:
        return State(self.h + v, self.c * v)


def dataclass_state(x: Any, w: Any) -> Any:
    state = State(x, w)
    for v in (x, w):
        state = state.moved(v)
    return state.h * state.c


class Pair(NamedTuple):
    left: Any
    right: Any


def namedtuple_state(x: Any, w: Any) -> Any:
    pair = Pair(x, w)
    for _ in range(2):
        pair = Pair(pair.right, pair.left + pair.right)
    left, right = pair
    return left * right


class Vec:
    def __init__(self, v: Any) -> None:
        self.v = v

    def __add__(self, other: Any) -> Any:
        return Vec(self.v + other.v)

    def __mul__(self, k: Any) -> Any:
        scaled = self.v * k
        return Vec(scaled)

    def __getitem__(self, k: Any) -> Any:
        return self.v[k]

    @property
    def norm(self) -> Any:
        s = (self.v * self.v).sum()
        return s.sqrt()


def operators_of_class(x: Any, w: Any) -> Any:
    a = Vec(x) + Vec(w) * 2
    n = a.norm
    return a[0] * n


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(2)])
        self.history: list[Any] = []

    def forward(self, x: Any) -> Any:
        for _k, layer in enumerate(self.layers):
            h = layer(x)
            x = x + torch.relu(h)
            self.history.append(x)
        return x


def module_history(x: Any, w: Any) -> Any:
    net = Mlp()
    y = net(x)
    z = net(y)
    mean = sum(net.history) / len(net.history)
    return z + mean


def walrus(x: Any, w: Any) -> Any:
    y = x
    while (s := y.sum()) < 20:
        y = y + w
    if (m := (y * 2)).max() > 3 and (n := m - 1) is not None:
        y = n
    return y * s


def match_statement(x: Any, w: Any) -> Any:
    total = x
    for op in (("add", w), ("scale", 2.0), ("neg",), {"shift": w}):
        match op:
            case ("add", value):
                total = total + value
            case ("scale", factor) if factor > 1:
                total = total * factor
            case ("neg",):
                total = -total
            case {"shift": value}:
                total = total - value
            case _:
                total = total * 0
    return total


def unpacking(x: Any, w: Any) -> Any:
    (a, b), *rest = (x, w), x + w, x * w
    first, *middle, last = rest + [a, b]
    a, b = b, a
    c, d = (lambda *v: (v[1], v[0]))(a, b)
    return first + sum(middle) * last + a * c - d


def star_args(*values: Any, **named: Any) -> Any:
    total = values[0] * 0
    for v in values:
        total = total + v
    for _key, v in named.items():
        total = total * v
    return total


def calls_star(x: Any, w: Any) -> Any:
    parts = [x, w]
    more = {"u": w, "v": x}
    a = star_args(*parts, x + 1, **more)
    b = star_args(*parts)
    return a - b


def augmented(x: Any, w: Any) -> Any:
    y = x.clone()
    y += w
    y *= 2
    y[0] -= 1
    parts = [x, w]
    parts += [y]
    parts[0] *= 3
    d = {"s": x * 0}
    for p in parts:
        d["s"] += p
    return d["s"]


def dict_updates(x: Any, w: Any) -> Any:
    d = {"a": x}
    d["b"] = w
    d.update(c=x + w)
    d |= {"e": x * w}
    merged = {**d, "a": d["b"] * 2}
    popped = merged.pop("c")
    del merged["e"]
    return sum(merged.values()) + popped


def fstrings(x: Any, w: Any) -> Any:
    log = []
    y = x
    for k in range(2):
        y = y * w
        log.append(f"step {k}: {y.sum().item():.3f}")
    text = " ".join(log)
    return y + len(text)


def asserts(x: Any, w: Any) -> Any:
    y = x * w
    assert y.shape == (2,), f"bad {y.shape}"
    assert y.sum() != 0
    z = y / y.sum()
    return z


def dropped(x: Any, w: Any) -> Any:
    x * w
    (x + w).sum()
    y = x - w
    y.exp()
    torch.tanh(y)
    y = y * 2
    y = y + 1
    return y


def overwritten(x: Any, w: Any) -> Any:
    y = x * 2
    y = w * 3
    z = y
    y = x
    return z + y


def fib(n: Any, a: Any, b: Any) -> Any:
    if n == 0:
        return a
    return fib(n - 1, b, a + b)


def recursion(x: Any, w: Any) -> Any:
    y = fib(4, x, w)
    return y * 2


def tree_lstm(tree: Any, w: Any) -> Any:
    if not isinstance(tree, tuple):
        h = torch.tanh(tree * w)
        return h, h * 0.5
    (lh, lc), (rh, rc) = [tree_lstm(child, w) for child in tree]
    c = lc + rc
    h = torch.sigmoid(lh + rh) * torch.tanh(c)
    return h, c


def tree_model(x: Any, w: Any) -> Any:
    h, c = tree_lstm(((x, w), (w, (x, x))), w)
    return h + c


@functools.cache
def cached_power(n: Any) -> Any:
    return 2.0**n


def memoised(x: Any, w: Any) -> Any:
    memo = {}

    def go(n: Any) -> Any:
        if n in memo:
            return memo[n]
        r = x if n < 2 else go(n - 1) * w + go(n - 2)
        memo[n] = r
        return r

    y = go(4)
    return y * cached_power(2)


def sgd_loop(x: Any, w: Any) -> Any:
    p = w.clone().requires_grad_()
    losses = []
    for _epoch in range(3):
        loss = ((p * x - 1) ** 2).sum()
        loss.backward()
        with torch.no_grad():
            p -= 0.1 * p.grad
            p.grad.zero_()
        losses.append(loss.item())
    return p.detach() * losses[-1]


def optimiser_loop(x: Any, w: Any) -> Any:
    net = nn.Linear(2, 1)
    with torch.no_grad():
        net.weight.fill_(0.5)
        net.bias.zero_()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(2):
        opt.zero_grad()
        y = net(x)
        loss = (y - 1).square().mean()
        loss.backward()
        opt.step()
    return loss.detach() + net.weight.detach().sum()


def gradient_penalty(x: Any, w: Any) -> Any:
    v = x.clone().requires_grad_()
    y = (v * w).sum() ** 2
    (g,) = torch.autograd.grad(y, [v], create_graph=True)
    norm = g.norm()
    penalty = (norm - 1) ** 2
    return penalty


def minmax_sorted(x: Any, w: Any) -> Any:
    values = [x, w, x - w]
    best = max(values, key=lambda v: v.sum().item())
    ordered = sorted(values, key=lambda v: float(v[0]))
    worst = min(values, key=lambda v: v.norm())
    return best + ordered[0] * worst


def itertools_use(x: Any, w: Any) -> Any:
    total = x * 0
    for a, b in itertools.product((x, w), repeat=2):
        total = total + a * b
    for k, v in zip(itertools.count(1), (x, w)):
        total = total - v * k
    acc = list(itertools.accumulate([x, w, x], lambda a, b: a * b))
    return total + acc[-1]


def global_state(x: Any, w: Any) -> Any:
    global KEPT
    KEPT = x * 2
    y = KEPT + w
    KEPT = y
    return helper_global(y)


def helper_global(v: Any) -> Any:
    return KEPT * v


KEPT: Any = None


def masks(x: Any, w: Any) -> Any:
    m = mat(x, w)
    mask = m > 1.5
    m[mask] = 0.0
    m[:, 0] += 1
    row = m[1]
    row.mul_(2)
    return m.sum(0)


def conditional_chain(x: Any, w: Any) -> Any:
    s = x.sum()
    y = x if s > 100 else w if s > 2 else x * w
    z = y if s > 0 else x
    if s > 100:
        y = y * 0
    elif s > 1:
        y = y + 1
    else:
        y = y - 1
    return y * z


def bucketed(x: Any, w: Any) -> Any:
    buckets = collections.defaultdict(list)
    for k, v in enumerate((x, w, x + w, x - w)):
        buckets[k % 2].append(v * k)
    means = {k: sum(vs) / len(vs) for k, vs in buckets.items()}
    return means[0] * means[1]
