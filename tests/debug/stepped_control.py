"""Programs of control flow whose every line is stepped through: loops, exceptions, generators; of two vectors."""

from __future__ import annotations

import collections
import contextlib
from typing import Any

import twofold as torch
import twofold.nn.functional as F


def mat(x: Any, w: Any) -> Any:
    return torch.stack([x, w])


def gru_cell(x: Any, w: Any) -> Any:
    h = torch.zeros(2)
    for _k in range(3):
        z = torch.sigmoid(x * w + h)
        r = torch.sigmoid(x - w * h)
        n = torch.tanh(x + r * h)
        h = (1 - z) * n + z * h
    return h


def lstm_states(x: Any, w: Any) -> Any:
    h, c = torch.zeros(2), torch.zeros(2)
    outputs = []
    for _k in range(3):
        gates = {"i": torch.sigmoid(x + h), "f": torch.sigmoid(w + h), "g": torch.tanh(x * h)}
        c = gates["f"] * c + gates["i"] * gates["g"]
        h = torch.tanh(c)
        outputs.append(h)
    stacked = torch.stack(outputs)
    return stacked.sum(0)


class Cell:
    def __init__(self, w: Any) -> None:
        self.w = w
        self.h = torch.zeros(2)
        self.steps = 0

    def step(self, x: Any) -> Any:
        self.steps += 1
        self.h = torch.tanh(self.w * self.h + x)
        return self.h


def stateful_cell(x: Any, w: Any) -> Any:
    cell = Cell(w)
    for _ in range(3):
        out = cell.step(x)
    y = cell.h + out
    return y * cell.steps


def attention_heads(x: Any, w: Any) -> Any:
    q = mat(x, w)
    k = mat(w, x)
    heads = []
    for _name, scale in (("a", 1.0), ("b", 2.0)):
        scores = q @ k.T * scale
        weights = torch.softmax(scores, -1)
        heads.append(weights @ q)
    merged = torch.cat(heads, -1)
    return merged.sum(0)


def attention_dict(x: Any, w: Any) -> Any:
    cache = {}
    for t in range(3):
        key = x * t
        cache.setdefault("k", []).append(key)
        cache.setdefault("v", []).append(key + w)
        ks = torch.stack(cache["k"])
        vs = torch.stack(cache["v"])
        att = torch.softmax(ks @ x, 0)
        ctx = att @ vs
    return ctx


def beam_search(x: Any, w: Any) -> Any:
    beams = [([], x.sum() * 0)]
    table = torch.log_softmax(mat(x, w), -1)
    for step in range(3):
        candidates = []
        for tokens, score in beams:
            for token in range(2):
                new = score + table[step % 2, token]
                candidates.append((tokens + [token], new))
        candidates.sort(key=lambda one: one[1].item(), reverse=True)
        beams = candidates[:2]
    best, score = beams[0]
    return score * len(best)


def beam_dict(x: Any, w: Any) -> Any:
    table = torch.log_softmax(mat(x, w), -1)
    beams = {(): torch.tensor(0.0)}
    for step in range(2):
        new = {}
        for prefix, score in beams.items():
            for token in range(2):
                new[prefix + (token,)] = score + table[step, token]
        best = sorted(new, key=lambda one: -new[one].item())[:2]
        beams = {one: new[one] for one in best}
    total = sum(beams.values())
    return total


def viterbi(x: Any, w: Any) -> Any:
    trans = mat(x, w)
    score = x
    back = []
    for _t in range(3):
        total = score.unsqueeze(1) + trans
        best = total.max(0)
        score = best.values + w
        back.append(best.indices)
    path = [int(score.argmax())]
    for pointers in reversed(back):
        path.append(int(pointers[path[-1]]))
    path.reverse()
    return score * sum(path)


def newton(x: Any, w: Any) -> Any:
    guess = x
    count = 0
    while True:
        nxt = 0.5 * (guess + w / guess)
        if (nxt - guess).abs().max() < 1e-3:
            break
        guess = nxt
        count += 1
        if count > 20:
            break
    return guess


def collatz_tensor(x: Any, w: Any) -> Any:
    v = x.sum()
    n = 0
    while v > 1 and n < 10:
        if v % 2 == 0:
            v = v / 2
            n += 1
            continue
        v = v * 3 + 1
        n += 1
    return v + n


def doubling_until(x: Any, w: Any) -> Any:
    y = x
    while y.sum() < 50:
        y = y * 2
    else:
        y = y - 1
    return y


def power_iteration(x: Any, w: Any) -> Any:
    m = mat(x, w)
    v = torch.ones(2)
    old = None
    for _it in range(50):
        v = m @ v
        norm = v.norm()
        v = v / norm
        if old is not None and (norm - old).abs() < 1e-4:
            break
        old = norm
    return v * norm


def first_large(x: Any, w: Any) -> Any:
    found = None
    for k, v in enumerate([x, w, x + w, x * w]):
        if v.sum() < 5:
            continue
        found = v * k
        break
    y = found + 1
    return y


def nested_break(x: Any, w: Any) -> Any:
    total = x * 0
    for i in range(3):
        for j in range(3):
            if j > i:
                break
            if (i + j) % 2:
                continue
            total = total + x * i - w * j
    return total


def for_else(x: Any, w: Any) -> Any:
    y = x
    for _k in range(3):
        y = y + w
        if y.sum() > 100:
            break
    else:
        y = y * 0.5
    return y


def skip_by_dict(x: Any, w: Any) -> Any:
    weights = {"a": x, "b": w, "skip": x * w}
    out = []
    for name, value in weights.items():
        if name == "skip":
            continue
        scaled = value * 2
        out.append(scaled)
    return out[0] + out[1]


def same_line_branches(x: Any, w: Any) -> Any:
    acc = x
    for k in range(4):
        acc = acc + w if k % 2 else acc * w
    return acc


def one_line_loop(x: Any, w: Any) -> Any:
    total = x * 0
    # fmt: off
    for k in range(3): total = total + x * k  # noqa: E701
    while total.sum() < 30: total = total + w  # noqa: E701
    # fmt: on
    return total


def ops_by_table(x: Any, w: Any) -> Any:
    ops = {"add": lambda a, b: a + b, "mul": lambda a, b: a * b, "max": torch.maximum}
    acc = x
    for name in ("add", "mul", "max", "add"):
        acc = ops[name](acc, w)
    return acc


def activations_by_list(x: Any, w: Any) -> Any:
    y = x
    for f in (torch.tanh, torch.sigmoid, torch.exp, F.relu):
        y = f(y)
        y = y * w
    return y


def try_finally(x: Any, w: Any) -> Any:
    y = x
    try:
        y = y * 2
        z = y + w
    finally:
        y = y - 1
    return y + z


def try_except_else(x: Any, w: Any) -> Any:
    total = x * 0
    for value in (x, None, w):
        try:
            part = value * 2
        except TypeError:
            part = w - x
        else:
            part = part + 1
        finally:
            total = total + 1
        total = total + part
    return total


def retry(x: Any, w: Any) -> Any:
    attempts = 0
    while True:
        try:
            attempts += 1
            if attempts < 3:
                raise RuntimeError(f"attempt {attempts}")
            y = x * attempts
            break
        except RuntimeError as error:
            last = str(error)
    return y + w if last else w


def checked(v: Any) -> Any:
    if v.sum() > 5:
        raise ValueError("too large")
    return v * 2


def raised_in_callee(x: Any, w: Any) -> Any:
    out = []
    for v in (x, w, x * 4):
        try:
            out.append(checked(v))
        except ValueError:
            out.append(v * 0)
    return out[0] + out[1] + out[2]


@contextlib.contextmanager
def scaled_scope(v: Any) -> Any:
    inner = v * 3
    try:
        yield inner
    finally:
        inner = inner + 1


def with_scope(x: Any, w: Any) -> Any:
    with scaled_scope(x) as a, scaled_scope(w) as b:
        y = a * b
    return y + a


class Scope:
    def __init__(self, v: Any) -> None:
        self.v = v

    def __enter__(self) -> Any:
        self.v = self.v * 2
        return self.v

    def __exit__(self, *error: Any) -> Any:
        self.v = self.v - 1
        return True


def with_class(x: Any, w: Any) -> Any:
    scope = Scope(x)
    with scope as inner:
        y = inner + w
        raise KeyError("ignored")
    z = y * scope.v
    return z


def no_grad_scope(x: Any, w: Any) -> Any:
    with torch.no_grad():
        y = x * w
        z = y + 1
    return z * 2


def running(values: Any) -> Any:
    total = None
    for v in values:
        total = v if total is None else total + v
        yield total


def delegated(a: Any, b: Any) -> Any:
    yield from running([a, b])
    yield a * b
    result = yield from returning(a)
    yield result


def returning(v: Any) -> Any:
    y = v * 7
    yield y
    return y + 1


def yield_from(x: Any, w: Any) -> Any:
    total = x * 0
    for one in delegated(x, w):
        total = total + one
    return total


def flatten(tree: Any) -> Any:
    if isinstance(tree, (list, tuple)):
        for one in tree:
            yield from flatten(one)
    else:
        yield tree * 2


def flattened_tree(x: Any, w: Any) -> Any:
    total = x * 0
    for leaf in flatten([x, [w, (x, w)]]):
        total = total * 0.5 + leaf
    return total


def coroutine(v: Any) -> Any:
    mean = v
    count = 1
    while True:
        got = yield mean
        if got is None:
            return
        count += 1
        mean = mean + (got - mean) / count


def averaged(x: Any, w: Any) -> Any:
    running_mean = coroutine(x)
    next(running_mean)
    for v in (w, x * w, w - x):
        mean = running_mean.send(v)
    running_mean.close()
    return mean


def pairs_of(values: Any) -> Any:
    it = iter(values)
    for a, b in zip(it, it):
        yield a - b


def generator_expr(x: Any, w: Any) -> Any:
    values = [x, w, w, x * w]
    total = sum((p * p for p in pairs_of(values)), x * 0)
    return total


def windows(x: Any, w: Any) -> Any:
    d = collections.deque(maxlen=2)
    outs = []
    for v in (x, w, x + w, x * w):
        d.append(v)
        if len(d) == 2:
            outs.append(d[0] * d[1])
    y = torch.stack(outs)
    return y.sum(0)


def caught_error(x: Any, w: Any) -> Any:
    table = torch.stack([x, w])
    out = x * 0
    for k in (0, 5, 1):
        try:
            row = table.index_select(0, torch.tensor([k]))
            out = out + row[0][0].item()
        except IndexError:
            out = out - w
    return out
