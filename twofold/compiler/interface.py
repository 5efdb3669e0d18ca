"""What programs ask of a compiler by PyTorch's names: every program is compiled here, and runs as plain Python, too."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from twofold import _core
from twofold.errors import ArgumentError

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


_STANCES = (
    "default",
    "force_eager",
    "eager_on_recompile",
    "fail_on_recompile",
    "eager_then_compile",
    "aot_eager_then_compile",
)


class set_stance:
    """Whether compiled functions run as graphs, from now on, in a ``with`` block, or in the calls of a function.

    With ``"force_eager"`` they run as plain Python in every call. The other stances choose what happens to a call that
    finds nothing compiled: here it runs at once, nothing is compiled again for other sizes, and results are the same,
    so they mean what ``"default"`` means.

    Args:
        stance: One of PyTorch's stances.
        skip_guard_eval_unsafe: True is refused: what a graph depends on is looked at in every call.
        force_backend: With the stance "default", "eager" for plain Python, as in ``compile``.

    Raises:
        ArgumentError: For another stance or backend, and where guards are to be skipped.

    >>> import twofold as torch
    >>> twice = torch.compile(lambda x: x * 2)
    >>> with torch.compiler.set_stance("force_eager"):
    ...     twice(torch.ones(1))
    tensor([2.])
    """

    def __init__(
        self,
        stance: str = "default",
        *,
        skip_guard_eval_unsafe: bool = False,
        force_backend: str | None = None,
    ) -> None:
        if stance not in _STANCES:
            raise ArgumentError(f"set_stance: no stance {stance!r}", f"Use one of {', '.join(_STANCES)}.")
        if skip_guard_eval_unsafe:
            raise ArgumentError("set_stance: guards are not skipped", "Leave skip_guard_eval_unsafe out.")
        if force_backend is not None and stance != "default":
            raise RuntimeError("non-default stance cannot have force_backend set")
        if force_backend not in (None, "inductor", "eager"):
            raise ArgumentError(f"set_stance: backend {force_backend!r}", "Use 'inductor' or 'eager'.")
        self._declares = stance != "force_eager" and force_backend != "eager"
        self._before = _core.use_declarations(self._declares)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        _core.use_declarations(self._before)

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        _core.use_declarations(self._before)  # the decorator itself says nothing of what comes after it

        @functools.wraps(fn)
        def call(*args: Any, **kwargs: Any) -> Any:
            before = _core.use_declarations(self._declares)
            try:
                return fn(*args, **kwargs)
            finally:
                _core.use_declarations(before)

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
