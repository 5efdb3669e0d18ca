"""Programs that write to tensors through views, to lists and dictionaries; each is a function of tensors."""

from __future__ import annotations

from typing import Any

import twofold as torch
from twofold import nn
from twofold.nn import functional as F


def through_a_view(x: Any) -> Any:
    z = x * 2
    v = z[0:1]
    v.mul_(3)
    w = z + v
    return w


def through_a_view_of_a_view(x: Any) -> Any:
    z = x * 2
    m = z.reshape(2, 1)
    v = m[1]
    v += 1
    u = v * 2
    return u + z


def seen_by_a_view(x: Any) -> Any:
    z = x * 2
    v = z[1:]
    y = v + 1
    z.add_(1)
    z[0] = 5.0
    u = v * y
    return u + z


def copied_into(x: Any, w: Any) -> Any:
    z = x * 2
    v = z[1:]
    y = v * z
    v.copy_(w[:1])
    y = v * y + z
    z.copy_(w)
    u = v + z
    return u * y


def scaled_(v: Any) -> Any:
    v.mul_(3)
    u = v + 1
    return u


def by_a_function(x: Any) -> Any:
    z = x * 2
    u = scaled_(z)
    w = z + 1
    return w + u


def chained(x: Any) -> Any:
    z = x * 2
    y = z.mul_(2).add_(1)
    F.relu(z, inplace=True)
    w = z * y
    return w


def shared(x: Any) -> Any:
    total = x * 1
    same = total
    total += x
    y = same * 2
    return y


def appended(x: Any) -> Any:
    outs = []
    for _ in range(2):
        x = x * 2
        outs.append(x)
    y = torch.stack(outs)
    return y


def of_names(x: Any, w: Any) -> Any:
    d = {"a": x}
    d["b"] = w * 2
    d["a"] = x * 3
    t = d["a"] * 2
    for v in d.values():
        t = t + v
    return t


def collected(outs: Any, x: Any) -> Any:
    y = x * 2
    outs.append(y)
    return y


def by_name(x: Any) -> Any:
    outs = [x]
    a = collected(outs, x)
    b = collected(outs, a)
    t = b
    for one in outs:
        t = t + one
    return t


def joined(x: Any, w: Any) -> Any:
    h = [x]
    h += [w * 2]
    h = h + [w]
    for v in h:
        x = x + v
    return x


def popped(x: Any, w: Any) -> Any:
    stack = [x, w]
    y = x
    while stack:
        top = stack.pop()
        y = y * top
    return y


FLAG = True


def another(x: Any) -> Any:
    z = x * 2
    y = z + 1
    if FLAG:
        z = x
    w = z + y
    return w


def forgotten(x: Any, w: Any) -> Any:
    z = x * 2
    y = z + 1
    z = None
    w = y + w
    a, b = y * 1, w * 1
    if FLAG:
        a, b = b, a
    c = a - b
    del a
    return c + b


def behind_a_branch(x: Any) -> Any:
    y = x
    if FLAG:
        y = x * 2
        z = y
    w = y + 1
    u = w + z
    return u


def carried(x: Any) -> Any:
    k, last = 0, x
    while k < 3:
        now = last * 2
        last, k = now, k + 1
    out = last + 1
    return out


def in_parts(x: Any, w: Any) -> Any:
    m = torch.stack([x, w])
    parts = m.chunk(2)
    rows = m.unbind(1)
    c = parts[0] * parts[1]
    return c + rows[0] * rows[1]


NORM = nn.BatchNorm1d(2)


def normalised(x: Any, w: Any) -> Any:
    m = torch.stack([x, w])
    y = NORM(m)
    return y


def differentiated(function: Any, *arguments: Any) -> Any:
    result = function(*arguments)
    total = result.sum()
    total.backward()
    return result


def in_order(x: Any, w: Any) -> Any:
    m = torch.stack([x, w])
    values, indices = m.sort(1)
    top = m.max(0)
    best = torch.topk(w, 1)
    return values * indices + top.values + best.values


def chosen(x: Any, w: Any) -> Any:
    keep = {}
    z = x * 3
    for k, v in enumerate([x, w]):
        keep[k + 1] = v * 2
        last = keep[k + 1]
        z = z + last
    for v in (w, x):
        if v is x:
            last = v
    return z * last


LSTM = nn.LSTM(2, 2)


def of_a_layer(x: Any, w: Any) -> Any:
    both = LSTM(torch.stack([x, w]))
    out, states = LSTM(both[0])[:2]
    return out * states[0]


def counter_bound_again(x: Any) -> Any:
    h, w = x + 1, x
    for k in range(3):
        k = k * 2
        if k > 1:
            w = h
        h = h * 2
    return w + h
