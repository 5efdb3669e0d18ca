"""Functions called before and after the forward computation of a module."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

_numbers = itertools.count()


class RemovableHandle:
    """Takes a hook away again with ``remove``, or at the end of a ``with`` block."""

    def __init__(self, hooks: dict[int, Any]) -> None:
        self._hooks = hooks
        self.id = next(_numbers)

    def remove(self) -> None:
        """Take the hook away."""
        self._hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *error: Any) -> None:
        self.remove()


def add_hook(
    hooks: dict[int, Any], hook: Callable[..., Any], with_kwargs: bool, prepend: bool
) -> RemovableHandle:
    """Enter ``hook`` at the end, or at the front, of ``hooks``."""
    handle = RemovableHandle(hooks)
    before = dict(hooks) if prepend else {}
    if prepend:
        hooks.clear()
    hooks[handle.id] = (hook, with_kwargs)
    hooks.update(before)
    return handle


def call_with_hooks(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``module.forward`` between its hooks; what a hook returns, unless None, replaces what it saw."""
    for hook, with_kwargs in list(module._forward_pre_hooks.values()):
        if with_kwargs:
            found = hook(module, args, kwargs)
            if found is not None:
                if not (isinstance(found, tuple) and len(found) == 2):
                    raise RuntimeError(
                        f"forward pre-hook must return None or a tuple of (new_args, "
                        f"new_kwargs), but got {found}."
                    )
                args, kwargs = found
        else:
            found = hook(module, args)
            if found is not None:
                args = found if isinstance(found, tuple) else (found,)
    result = module.forward(*args, **kwargs)
    for hook, with_kwargs in list(module._forward_hooks.values()):
        found = hook(module, args, kwargs, result) if with_kwargs else hook(module, args, result)
        if found is not None:
            result = found
    return result
