"""``functionalize``: functions without mutations."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from twofold.errors import ArgumentError


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """``func``, whose graph has no mutations: in-place operations and views end at the handles of tensors.

    So the graph of any function is one without them, and what the function writes to its arguments is written.

    Args:
        func: The function.
        remove: "mutations", or "mutations_and_views"; both are never in a graph.

    Raises:
        ArgumentError: For another value of ``remove``.

    >>> import twofold as torch
    >>> def shifted(x):
    ...     return x.clone().add_(1)
    >>> torch.func.functionalize(shifted)(torch.zeros(2))
    tensor([1., 1.])
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise ArgumentError(f"functionalize: remove={remove!r}", "Use 'mutations' or 'mutations_and_views'.")

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    return call
