"""What functions take: ``tensorflow.python.util.function_utils``."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any


def fn_args(fn: Callable[..., Any]) -> tuple[str, ...]:
    """The names of the arguments of a function, without ``self`` and those that ``functools.partial`` gives.

    >>> fn_args(lambda features, labels, mode=None: None)
    ('features', 'labels', 'mode')
    """
    if isinstance(fn, functools.partial):
        names = fn_args(fn.func)[len(fn.args) :]
        return tuple(name for name in names if name not in fn.keywords)
    called: Any = fn if inspect.isroutine(fn) or inspect.isclass(fn) else type(fn).__call__.__get__(fn)
    found = inspect.getfullargspec(inspect.unwrap(called))
    taken = [*found.args, *found.kwonlyargs]
    return tuple(taken[1:] if inspect.ismethod(called) or taken[:1] == ["self"] else taken)
