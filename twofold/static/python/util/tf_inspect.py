"""``inspect`` for functions that decorators wrap: ``tensorflow.python.util.tf_inspect``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from inspect import *  # noqa: F403
from typing import Any, NamedTuple


class ArgSpec(NamedTuple):
    """What a function takes: the names of its arguments, and the default values of the last of them."""

    args: list[str]
    varargs: str | None
    keywords: str | None
    defaults: tuple[Any, ...] | None


def getargspec(obj: Callable[..., Any]) -> ArgSpec:
    """The arguments of the function that decorators made with ``tf_decorator`` wrap; of a class, its ``__init__``.

    >>> getargspec(lambda x, *more, y=2: None)
    ArgSpec(args=['x'], varargs='more', keywords=None, defaults=None)
    """
    found = inspect.getfullargspec(inspect.unwrap(obj))
    return ArgSpec(found.args, found.varargs, found.varkw, found.defaults)
