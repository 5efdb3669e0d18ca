"""Functions called before and after the forward computation of a module."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from twofold import _core
from twofold.ops.base import FUNCTIONS

Tensor = _core.Tensor

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
    hooks: dict[int, Any],
    hook: Callable[..., Any],
    with_kwargs: bool,
    prepend: bool,
    always_call: bool = False,
) -> RemovableHandle:
    """Enter ``hook`` at the end, or at the front, of ``hooks``."""
    handle = RemovableHandle(hooks)
    before = dict(hooks) if prepend else {}
    if prepend:
        hooks.clear()
    hooks[handle.id] = (hook, with_kwargs, always_call)
    hooks.update(before)
    return handle


def call_with_hooks(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``module.forward`` between its hooks; what a hook returns, unless None, replaces what it saw."""
    _core.not_by_types()  # what a module computes depends on its mode, too
    for hook, with_kwargs, _ in list(module._forward_pre_hooks.values()):
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
    backward = ModuleGradients(module) if module._backward_hooks or module._backward_pre_hooks else None
    if backward is not None:
        args = backward.enter(args)
    left = list(module._forward_hooks.values())
    try:
        result = module.forward(*args, **kwargs)
        while left:
            found = _called(left.pop(0), module, args, kwargs, result)
            result = result if found is None else found
    except Exception:
        for one in left:
            if one[2]:
                _called(one, module, args, kwargs, None)
        raise
    return result if backward is None else backward.leave(result)


def _called(entry: tuple[Any, bool, bool], module: Any, args: Any, kwargs: Any, result: Any) -> Any:
    hook, with_kwargs, _ = entry
    return hook(module, args, kwargs, result) if with_kwargs else hook(module, args, result)


def _layers(
    tensors: dict[int, Tensor], first: Callable[[int], Any], then: Callable[[int], Any]
) -> dict[int, Tensor]:
    """Two copies of every tensor: a backward pass calls ``first(k)`` at all of the outer ones it comes to.

    Only then does it call ``then(k)`` at the inner ones, so that each of these sees the gradients of all.
    """
    inner = {k: value.clone() for k, value in tensors.items()}
    outer = {k: value.clone() for k, value in inner.items()}
    for k in tensors:
        inner[k].register_hook(then(k))
        outer[k].register_hook(first(k))
    return outer


class ModuleGradients:
    """Calls the backward hooks of a module for one forward computation."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.hooks = [hook for hook, *_ in module._backward_hooks.values()]
        self.pre_hooks = [hook for hook, *_ in module._backward_pre_hooks.values()]
        self.inputs: dict[int, Tensor] = {}
        self.count = 0
        self.grad_output: tuple[Any, ...] | None = None

    def enter(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments that ``forward`` is to be called with."""
        self.count, self.inputs = len(args), _tracked(args)
        tensors = {k: value for k, value in enumerate(args) if isinstance(value, Tensor)}
        if not self.hooks:
            return args
        seen: dict[int, Tensor] = {}
        found: dict[int, Any] = {}

        def then(k: int) -> Callable[[Tensor], Any]:
            def hook(gradient: Tensor) -> Any:
                if seen:
                    found.update(self._call(_filled(seen, tensors)))
                    seen.clear()
                return found.pop(k, None)

            return hook

        outer = _layers(self.inputs, lambda k: lambda gradient: seen.update({k: gradient}), then)
        return tuple(outer.get(k, value) for k, value in enumerate(args))

    def leave(self, result: Any) -> Any:
        """The results that the caller of the module gets."""
        single = not isinstance(result, tuple)
        results = (result,) if single else result
        outputs = _tracked(results)
        seen: dict[int, Tensor] = {}
        found: dict[int, Any] = {}

        def then(k: int) -> Callable[[Tensor], Any]:
            def hook(gradient: Tensor) -> Any:
                if seen:
                    found.update(self._call_before(dict(seen), len(results)))
                    seen.clear()
                return found.pop(k, None)

            return hook

        outer = _layers(outputs, lambda k: lambda gradient: seen.update({k: gradient}), then)
        made = [outer.get(k, value) for k, value in enumerate(results)]
        if single:
            return made[0]
        return type(result)(*made) if hasattr(result, "_fields") else tuple(made)

    def _call_before(self, gradients: dict[int, Tensor], count: int) -> dict[int, Tensor]:
        """The gradients of the results, as the pre-hooks leave them."""
        given = _packed(gradients, count)
        for hook in self.pre_hooks:
            given = _replaced(hook(self.module, given), given, "pre-hook", "grad_output")
        self.grad_output = given
        if not self.inputs:
            nothing = (None,) * self.count
            for hook in self.hooks:
                answer = hook(self.module, nothing, given)
                if answer is not None and any(one is not None for one in _as_tuple(answer)):
                    raise RuntimeError(
                        "Backward hook for Modules where no input requires gradient should always return None or "
                        "None for all gradients."
                    )
            self.grad_output = None
        return {k: given[k] for k in gradients}

    def _call(self, gradients: dict[int, Tensor]) -> dict[int, Tensor]:
        """The gradients of the arguments, as the hooks leave them."""
        if self.grad_output is None:  # a backward pass that does not come from the results
            return {}
        given = _packed(gradients, self.count)
        for hook in self.hooks:
            given = _replaced(hook(self.module, given, self.grad_output), given, "hook", "grad_input")
        self.grad_output = None
        return {k: given[k] for k in gradients}


def _tracked(values: tuple[Any, ...]) -> dict[int, Tensor]:
    if not _core.grad_enabled():
        return {}
    return {k: value for k, value in enumerate(values) if isinstance(value, Tensor) and value.requires_grad}


def _filled(gradients: dict[int, Tensor], tensors: dict[int, Tensor]) -> dict[int, Tensor]:
    """Zeros for tensors that no gradient came to."""
    return {
        k: gradients[k] if k in gradients else FUNCTIONS["zeros_like"](value.detach())
        for k, value in tensors.items()
    }


def _packed(gradients: dict[int, Tensor], count: int) -> tuple[Any, ...]:
    return tuple(gradients.get(k) for k in range(count))


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _replaced(answer: Any, given: tuple[Any, ...], kind: str, what: str) -> tuple[Any, ...]:
    if answer is None:
        return given
    found = _as_tuple(answer)
    if len(found) != len(given):
        raise RuntimeError(
            f"Backward {kind} returned an invalid number of {what}, got {len(found)}, but expected {len(given)}"
        )
    return found
