"""Decorators that know what they decorate, as TensorFlow's libraries make them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any


def make_decorator(target: Callable[..., Any], decorator_func: Callable[..., Any]) -> Callable[..., Any]:
    """``decorator_func`` with the name, the documentation and the signature of ``target``.

    >>> def one(x):
    ...     return x
    >>> two = make_decorator(one, lambda *given: one(*given) * 2)
    >>> two.__name__, two(3)
    ('one', 6)
    """
    return functools.wraps(target)(decorator_func)


def unwrap(maybe_tf_decorator: Callable[..., Any]) -> tuple[list[Any], Callable[..., Any]]:
    """The decorators of a function, the outermost first, and the function itself."""
    decorators = []
    while hasattr(maybe_tf_decorator, "__wrapped__"):
        decorators.append(maybe_tf_decorator)
        maybe_tf_decorator = maybe_tf_decorator.__wrapped__
    return decorators, inspect.unwrap(maybe_tf_decorator)
