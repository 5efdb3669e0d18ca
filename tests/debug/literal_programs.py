"""Programs whose variables are assigned numbers and texts as they are written, in ways that are and are not known."""

from __future__ import annotations

from typing import Any

import twofold.static as tf


def plain(x: Any) -> Any:
    factor = 3.0
    name, offset = "scaled", -2.5
    y = x * factor
    return tf.identity(y + offset, name=name)


def parameters(x: Any) -> Any:
    def scaled(v: Any, by: float, times: int = 2) -> Any:
        y = v * by
        return y * float(times)

    return scaled(x, 4.0) + scaled(x, by=0.5)


def rebound(x: Any) -> Any:
    count = 1

    def bump(v: Any) -> Any:
        nonlocal count
        count = count + 1
        return v * 2.0

    y = bump(x)
    y = y + 1.0
    return y * float(count)


def branches(x: Any) -> Any:
    rate = 1.0
    limit = 2
    if x.shape[0] > limit:
        rate = 3.0
    y = x * rate
    for k in range(2):
        rate = 0.5
        if k:
            rate = 0.25
        y = y * rate
    y = y + 1.0
    return y - rate


def augmented(x: Any) -> Any:
    total = 0
    y = x * 2.0
    total += 5
    y = y + float(total)
    del total
    return y - 1.0


def attempts(x: Any) -> Any:
    found = None
    try:
        found = 1
        y = x * 2.0
        found = int("no number")
    except ValueError:
        y = x * 3.0
    return y + 1.0 if found else y


def raised(x: Any) -> Any:
    state = 0
    try:
        state = 1
        y = x * 2.0
        if x.shape[0] == 2:
            state = 2
            raise ValueError
        state = 3
    except ValueError:
        y = x * 3.0
    return y + float(state)


def retried(x: Any) -> Any:
    y = x
    for k in range(3):
        try:
            if k == 1:
                raise ValueError
            y = y * 2.0
        except ValueError:
            y = y * 3.0
        y = y + 1.0
    return y


def loops(x: Any) -> Any:
    last = 0
    y = x
    for last in (1, 2):
        y = y * float(last)
    while last < 4:
        last = last + 1
        y = y + 1.0
    return y * 2.0
