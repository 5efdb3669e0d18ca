"""What programs ask of a compiler by PyTorch's names: every program is compiled here, and runs as plain Python, too."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from twofold import _core

T = TypeVar("T")


def is_compiling() -> bool:
    """False: what is compiled is what was recorded, so that no line of a program runs for a compiler alone.

    >>> import twofold as torch
    >>> torch.compiler.is_compiling()
    False
    """
    return False


is_dynamo_compiling = is_exporting = is_compiling


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """A function that runs as Python in every call, also where a compiled function calls it; works as a decorator.

    Args:
        fn: The function, or a module, which is returned as it is: modules run as Python in every call.
        recursive: True and False are the same: what the function calls runs as Python with it.
        reason: A note for readers.

    >>> import twofold as torch
    >>> calls = []
    >>> @torch.compiler.disable
    ... def noted(x):
    ...     calls.append(1)
    ...     return x + 1
    >>> add = torch.compile(lambda x: noted(x) * 2)
    >>> add(torch.ones(1)), add(torch.ones(1)), len(calls)
    (tensor([4.]), tensor([4.]), 2)
    """
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)
    if hasattr(fn, "forward"):
        return fn

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        _core.not_by_types()
        return fn(*args, **kwargs)

    return call


def reset() -> None:
    """Forget all that was recorded, planned and compiled in this process; results stay the same.

    What is kept on disk is found again.

    >>> import twofold as torch
    >>> torch.compiler.reset()
    """
    _core.flush()
    _core.clear_caches()


def allow_in_graph(fn: T) -> T:
    """The function itself: what any function records is part of the graph."""
    return fn


def assume_constant_result(fn: T) -> T:
    """The function itself, which is called whenever the program calls it."""
    return fn


def list_backends(exclude_tags: Sequence[str] = ("debug", "experimental")) -> list[str]:
    """What ``compile`` takes as ``backend`` by name, beside "eager", which counts as one to find mistakes with.

    Args:
        exclude_tags: Kinds of compilers to leave out: "eager" is listed where this has no "debug".

    >>> import twofold as torch
    >>> torch.compiler.list_backends()
    ['inductor']
    """
    return ["inductor"] if "debug" in (exclude_tags or ()) else ["eager", "inductor"]


def cudagraph_mark_step_begin() -> None:
    """Does nothing: there are no graphs of a device whose memory a new step would take over."""


def nested_compile_region(fn: Callable[..., Any] | None = None) -> Any:
    """The function itself: repeated calls of a function are compiled once without being marked."""
    return nested_compile_region if fn is None else fn
