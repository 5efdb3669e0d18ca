"""Functions called before and after the computations of a module, and of its gradients."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from twofold import _core
from twofold.frontend.called_backward import CalledBackward
from twofold.frontend.purity import watch_calls
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
    with_kwargs: bool = False,
    prepend: bool = False,
    always_call: bool = False,
) -> RemovableHandle:
    """Enter ``hook`` at the end, or at the front, of ``hooks``."""
    return _entered(RemovableHandle(hooks), (hook, with_kwargs, always_call), prepend)


def _entered(handle: RemovableHandle, entry: Any, prepend: bool) -> RemovableHandle:
    hooks = handle._hooks
    before = dict(hooks) if prepend else {}
    if prepend:
        hooks.clear()
    hooks[handle.id] = entry
    hooks.update(before)
    return handle


class _HandleOfAll(RemovableHandle):
    """The handle of a hook of all modules, whose calls go by way of their hooks as long as there is one."""

    def __init__(self, hooks: dict[int, Any]) -> None:
        super().__init__(hooks)
        watch_calls(1)

    def remove(self) -> None:
        """Take the hook away."""
        if self.id in self._hooks:
            super().remove()
            watch_calls(-1)


_before_all: dict[int, Any] = {}
_after_all: dict[int, Any] = {}
_backward_before_all: dict[int, Any] = {}
_backward_after_all: dict[int, Any] = {}
"""The hooks of all modules, called before those of a module itself."""


def _for_all(
    hooks: dict[int, Any], hook: Callable[..., Any], with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    return _entered(_HandleOfAll(hooks), (hook, with_kwargs, always_call), False)


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, args)`` before ``forward`` of every module; what it returns replaces the arguments."""
    return _for_all(_before_all, hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call ``hook(module, args, output)`` after ``forward`` of every module; what it returns replaces the output.

    With ``with_kwargs``, the keyword arguments come before the output; with ``always_call`` also, with None as
    output, where ``forward`` raises.

    >>> import twofold as torch
    >>> handle = torch.nn.modules.module.register_module_forward_hook(
    ...     lambda module, args, output: print(type(module).__name__, output.shape)
    ... )
    >>> with handle:
    ...     y = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())(torch.ones(1, 2))
    Linear twofold.Size([1, 3])
    ReLU twofold.Size([1, 3])
    Sequential twofold.Size([1, 3])
    """
    return _for_all(_after_all, hook, with_kwargs, always_call)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, grad_output)`` before the backward pass of every module; see the method of modules."""
    return _for_all(_backward_before_all, hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, grad_input, grad_output)`` after the backward pass of every module; see the method."""
    return _for_all(_backward_after_all, hook)


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """As ``register_module_full_backward_hook``."""
    return register_module_full_backward_hook(hook)


_registrations: dict[str, dict[int, Any]] = {"parameter": {}, "buffer": {}, "module": {}}


def registered(kind: str, module: Any, name: str, value: Any) -> Any:
    """What hooks of registrations make of ``value``, which ``module`` is to have under ``name``."""
    for hook, *_ in list(_registrations[kind].values()):
        found = hook(module, name, value)
        value = value if found is None else found
    return value


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, name, parameter)`` at each registration; what it returns is registered instead."""
    return add_hook(_registrations["parameter"], hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, name, buffer)`` at each registration; what it returns is registered instead."""
    return add_hook(_registrations["buffer"], hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, name, submodule)`` at each registration; what it returns is registered instead."""
    return add_hook(_registrations["module"], hook)


def call_with_hooks(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``module.forward`` between its hooks; what a hook returns, unless None, replaces what it saw."""
    _core.not_by_types()  # what a module computes depends on its mode, too
    left = [*_after_all.values(), *module._forward_hooks.values()]
    result = None
    try:
        args, kwargs = _prepared(module, args, kwargs)
        backward = ModuleGradients.of(module)
        if backward is not None:
            args = backward.enter(args)
        result = module.forward(*args, **kwargs)
        while left:
            found = _called(left.pop(0), module, args, kwargs, result)
            result = result if found is None else found
    except Exception:
        for one in left:
            if one[2]:
                _called_in_spite(one, module, args, kwargs, result)
        raise
    return result if backward is None else backward.leave(result)


def _prepared(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The arguments as the hooks before ``forward`` leave them."""
    for hook, with_kwargs, _ in [*_before_all.values(), *module._forward_pre_hooks.values()]:
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
    return args, kwargs


def _called(entry: tuple[Any, bool, bool], module: Any, args: Any, kwargs: Any, result: Any) -> Any:
    hook, with_kwargs, _ = entry
    return hook(module, args, kwargs, result) if with_kwargs else hook(module, args, result)


def _called_in_spite(entry: tuple[Any, bool, bool], module: Any, args: Any, kwargs: Any, result: Any) -> None:
    """Call a hook after an error, which an error of the hook must not hide."""
    try:
        _called(entry, module, args, kwargs, result)
    except Exception as error:
        warnings.warn(f"a forward hook with always_call=True raised after an error: {error}", stacklevel=4)


def _linked(
    tensors: dict[int, Tensor], call: Callable[[dict[int, Tensor]], Mapping[int, Tensor | None]]
) -> dict[int, Tensor]:
    """Copies of all tensors. A backward pass calls ``call`` with their gradients, which makes those of the tensors."""
    if not tensors:
        return {}

    numbers = list(tensors)

    def shares(cotangents: dict[int, Tensor]) -> list[Tensor | None]:
        found = call(cotangents)
        return [found[k] for k in numbers]

    gradient = CalledBackward("BackwardHookFunction", list(tensors.values()), shares)
    made = {k: gradient.result(k, value.detach()) for k, value in tensors.items()}
    gradient.close(made)
    return made


class ModuleGradients:
    """Calls the backward hooks of a module for one forward computation."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.hooks = [hook for hook, *_ in (*_backward_after_all.values(), *module._backward_hooks.values())]
        before = (*_backward_before_all.values(), *module._backward_pre_hooks.values())
        self.pre_hooks = [hook for hook, *_ in before]
        self.is_linked = False  # whether an argument requires grad
        self.count = 0
        self.grad_output: tuple[Any, ...] | None = None

    @classmethod
    def of(cls, module: Any) -> ModuleGradients | None:
        """One for a forward computation that starts now; None where there is no hook to call."""
        found = cls(module)
        return found if found.hooks or found.pre_hooks else None

    def enter(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments that ``forward`` is to be called with."""
        inputs = _tracked(args)
        self.count, self.is_linked = len(args), bool(inputs)
        if not self.hooks:
            return args
        zeros = {k: _zeros_like(value) for k, value in enumerate(args) if isinstance(value, Tensor)}
        outer = _linked(inputs, lambda seen: self._call(_filled(seen, zeros)))
        return tuple(outer.get(k, value) for k, value in enumerate(args))

    def leave(self, result: Any) -> Any:
        """The results that the caller of the module gets."""
        single = not isinstance(result, tuple)
        if single and not isinstance(result, Tensor):
            warnings.warn(
                f"{type(self.module).__name__} returned a {type(result).__name__}: its backward hooks are called for a "
                "tensor or a tuple of tensors only. Return one of these.",
                stacklevel=4,
            )
        results = (result,) if single else result
        outputs = _tracked(results)
        zeros, count = {k: _zeros_like(value) for k, value in outputs.items()}, len(results)
        outer = _linked(outputs, lambda seen: _filled(self._call_before(seen, count), zeros))
        made = [outer.get(k, value) for k, value in enumerate(results)]
        if single:
            return made[0]
        return type(result)(*made) if hasattr(result, "_fields") else tuple(made)

    def _call_before(self, gradients: dict[int, Tensor], count: int) -> dict[int, Tensor | None]:
        """The gradients of the results, as the pre-hooks leave them."""
        given = _packed(gradients, count)
        for hook in self.pre_hooks:
            given = _replaced(hook(self.module, given), given, "pre-hook", "grad_output")
        self.grad_output = given
        if not self.is_linked:
            nothing = (None,) * self.count
            for hook in self.hooks:
                answer = hook(self.module, nothing, given)
                if answer is not None and any(one is not None for one in _as_tuple(answer)):
                    raise RuntimeError(
                        "Backward hook for Modules where no input requires gradient should always return None or "
                        "None for all gradients."
                    )
            self.grad_output = None
        return dict(enumerate(given))

    def _call(self, gradients: dict[int, Tensor]) -> Mapping[int, Tensor | None]:
        """The gradients of the arguments, as the hooks leave them."""
        if self.grad_output is None:  # a backward pass that does not come from the results
            return gradients
        given = _packed(gradients, self.count)
        for hook in self.hooks:
            given = _replaced(hook(self.module, given, self.grad_output), given, "hook", "grad_input")
        self.grad_output = None
        return dict(enumerate(given))


def _tracked(values: tuple[Any, ...]) -> dict[int, Tensor]:
    if not _core.grad_enabled():
        return {}
    return {k: value for k, value in enumerate(values) if isinstance(value, Tensor) and value.requires_grad}


def _zeros_like(value: Tensor) -> Callable[[], Tensor]:
    """What makes zeros like a tensor, without it: a hook that held a value of its graph would keep the graph alive."""
    if value._is_symbolic:
        return partial(FUNCTIONS["zeros_like"], value.detach())
    return partial(FUNCTIONS["zeros"], tuple(value.shape), dtype=value.dtype)


def _filled(
    gradients: Mapping[int, Tensor | None], zeros: Mapping[int, Callable[[], Tensor]]
) -> dict[int, Tensor]:
    """Zeros for tensors that no gradient came to."""
    given = {k: gradients.get(k) for k in zeros}
    return {k: zeros[k]() if one is None else one for k, one in given.items()}


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
