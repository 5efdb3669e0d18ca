"""Functions called before and after the steps of optimisers, and before and after their states are taken and loaded."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from twofold.frontend.tensor_hooks import HookHandle

_everywhere: dict[str, list[Callable[..., Any]]] = {"step before": [], "step after": []}


def _registered(hooks: list[Callable[..., Any]], hook: Callable[..., Any], first: bool = False) -> HookHandle:
    hooks.insert(0 if first else len(hooks), hook)
    return HookHandle(hooks, hook)


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> HookHandle:
    """Call ``hook(optimizer, args, kwargs)`` before each step of any optimiser; see ``register_step_pre_hook``.

    >>> import twofold as torch
    >>> called = lambda optimizer, args, kwargs: print(type(optimizer).__name__)
    >>> with torch.optim.optimizer.register_optimizer_step_pre_hook(called):
    ...     torch.optim.SGD([torch.ones(1, requires_grad=True)]).step()
    SGD
    """
    return _registered(_everywhere["step before"], hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> HookHandle:
    """Call ``hook(optimizer, args, kwargs)`` after each step of any optimiser.

    >>> import twofold as torch
    >>> called = lambda optimizer, args, kwargs: print(type(optimizer).__name__)
    >>> with torch.optim.optimizer.register_optimizer_step_post_hook(called):
    ...     torch.optim.SGD([torch.ones(1, requires_grad=True)]).step()
    SGD
    """
    return _registered(_everywhere["step after"], hook)


class Hooked:
    """What has hooks on its steps and on its state."""

    _hooks: dict[str, list[Callable[..., Any]]] | None = None
    has_stepped = False
    """Whether there was a step."""

    def _hooks_on(self, when: str) -> list[Callable[..., Any]]:
        if self._hooks is None:
            self._hooks = {}
        return self._hooks.setdefault(when, [])

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step; it may return other ``(args, kwargs)``."""
        return _registered(self._hooks_on("step before"), hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return _registered(self._hooks_on("step after"), hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> HookHandle:
        """Call ``hook(optimizer)`` before ``state_dict``; with ``prepend`` before the hooks that are there."""
        return _registered(self._hooks_on("state before"), hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> HookHandle:
        """Call ``hook(optimizer, state)`` with what ``state_dict`` gives; it may return something else to give."""
        return _registered(self._hooks_on("state after"), hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> HookHandle:
        """Call ``hook(optimizer, state)`` before ``load_state_dict``; it may return another state to load."""
        return _registered(self._hooks_on("load before"), hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> HookHandle:
        """Call ``hook(optimizer)`` after ``load_state_dict``."""
        return _registered(self._hooks_on("load after"), hook, prepend)

    def _call_hooks(self, when: str, *state: Any) -> Any:
        """Call hooks in turn with the state, if one is given, and return what they make of it."""
        for hook in list(self._hooks.get(when, ())) if self._hooks else ():
            found = hook(self, *state)
            if state and found is not None:
                state = (found,)
        return state[0] if state else None


def with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """A ``step`` that notes that it was called and calls the hooks before and after it."""

    @functools.wraps(step)
    def hooked(self: Hooked, *args: Any, **kwargs: Any) -> Any:
        own = self._hooks or {}
        for hook in [*_everywhere["step before"], *own.get("step before", ())]:
            found = hook(self, args, kwargs)
            if found is not None:
                if not (isinstance(found, tuple) and len(found) == 2):
                    raise RuntimeError(
                        f"step: a hook before it must return None or (args, kwargs), but got {found!r}"
                    )
                args, kwargs = found
        self.has_stepped = True
        result = step(self, *args, **kwargs)
        for hook in [*own.get("step after", ()), *_everywhere["step after"]]:
            hook(self, args, kwargs)
        return result

    return hooked
