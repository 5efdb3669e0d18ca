"""Hooks on gradients of tensors, gradients kept of tensors that are no leaves, and copies of tensors with both."""

from __future__ import annotations

import copy
import functools
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from twofold import _core
from twofold.ops.shape.storage import alias_of, storage_of

Tensor = _core.Tensor


class HookHandle:
    """Takes a hook away again with ``remove``, or at the end of a ``with`` block."""

    def __init__(self, hooks: list[Any], hook: Any) -> None:
        self._hooks, self._hook = hooks, hook

    def remove(self) -> None:
        """Take the hook away."""
        if self._hook in self._hooks:
            self._hooks.remove(self._hook)

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *error: Any) -> None:
        self.remove()


def constant(value: Any, recorded: bool | None = None) -> Any:
    """What a pass takes for ``value``: if it is recorded, a tensor through which no gradient flows is copied.

    A detached tensor shares its value with the one that it was detached from, and so would get its gradients.
    """
    if not isinstance(value, Tensor) or value.requires_grad:
        return value
    return value.clone() if (_core.grad_enabled() if recorded is None else recorded) else value


class _TensorHook(functools.partial[Any]):
    """A hook on the gradient of a tensor, and where it was registered."""

    registered_at: int

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return constant(super().__call__(*args, **kwargs))


def register_hook(self: Tensor, hook: Callable[[Tensor], Any]) -> HookHandle:
    """Call ``hook`` with each gradient of this tensor; what it returns, unless None, takes its place.

    >>> import twofold as torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> handle = x.register_hook(lambda gradient: gradient * 10)
    >>> (x * x).backward()
    >>> x.grad
    tensor(60.)
    """
    if not self.requires_grad:
        raise RuntimeError(
            "register_hook: cannot register a hook on a tensor that doesn't require gradient. Set requires_grad first."
        )
    hooks = self._gradient_hooks(False)
    called = _TensorHook(hook)
    called.registered_at = _core.capture_location()  # for the error of one that returns what is no gradient
    hooks.append(called)
    return HookHandle(hooks, called)


def register_post_accumulate_grad_hook(self: Tensor, hook: Callable[[Tensor], None]) -> HookHandle:
    """Call ``hook`` with this leaf each time a backward pass has added to its ``.grad``.

    All gradients of the pass have been found by then, so the hook may change the tensor, or free ``.grad``.
    ``autograd.grad``, which adds to nothing, does not call it. Raises RuntimeError for a tensor that is no leaf
    or does not require grad.

    >>> import twofold as torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> handle = x.register_post_accumulate_grad_hook(lambda x: print(x.grad))
    >>> (x * x).backward()
    tensor(6.)
    """
    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if not self.is_leaf:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    owner = weakref.ref(self)

    def call() -> None:
        tensor = owner()
        if tensor is not None:
            hook(tensor)

    hooks = self._after_hooks()
    hooks.append(call)
    return HookHandle(hooks, call)


class MultiGradHook(HookHandle):
    """A hook on the gradients of several tensors, called once in a backward pass; see ``register_multi_grad_hook``.

    Each tensor has a hook of its own that hands its gradient on. The pass tells of its end, where no more can come.
    """

    def __init__(self, tensors: Sequence[Tensor], hook: Callable[[Any], Any], first: bool) -> None:
        self._hook, self._first, self._count = hook, first, len(tensors)
        wanted = [(k, tensor) for k, tensor in enumerate(tensors) if tensor.requires_grad or not first]
        self._handles = [tensor.register_hook(self._collector(k)) for k, tensor in wanted]
        _multi_hooks.add(self)

    def remove(self) -> None:
        """Take the hook away from all tensors."""
        for handle in self._handles:
            handle.remove()
        _multi_hooks.discard(self)

    def _collector(self, position: int) -> Callable[[Tensor], None]:
        def collect(gradient: Tensor) -> None:
            found = _passes.open[-1].setdefault(self, {}) if _passes.open else {}
            found.setdefault(position, gradient)
            if self._first and len(found) == 1:
                self._hook(gradient)
            elif not _passes.open:
                self.finish(found)

        return collect

    def finish(self, found: dict[int, Tensor]) -> None:
        """Call the hook with the gradients of a pass that is over."""
        if not self._first:
            self._hook([found.get(position) for position in range(self._count)])


class _Passes(threading.local):
    """The backward passes that the thread is in, and what multi-gradient hooks have seen of each."""

    def __init__(self) -> None:
        self.open: list[dict[MultiGradHook, dict[int, Tensor]]] = []
        self.runs_before: int | None = None  # how many traces had run when the last pass was recorded


_passes = _Passes()
_multi_hooks: weakref.WeakSet[MultiGradHook] = weakref.WeakSet()


def backward_pass(run: Callable[..., Any], *args: Any) -> Any:
    """``run(*args)``, a backward pass, at whose end hooks on the gradients of several tensors are called."""
    if not _multi_hooks:
        result = run(*args)
        _passes.runs_before = _core.traced_runs()
        return result
    _passes.open.append({})
    try:
        result = run(*args)
    finally:
        seen = _passes.open.pop()
    for hook, found in seen.items():
        hook.finish(found)
    _passes.runs_before = _core.traced_runs()
    return result


def may_be_pending() -> bool:
    """Whether a backward pass of this thread may be recorded that has not run yet."""
    return _passes.runs_before == _core.traced_runs()


def retain_grad(self: Tensor) -> None:
    """Keep the gradient of a tensor that is not a leaf, too; after an in-place change, that of the new value.

    >>> import twofold as torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> y = x * 2
    >>> y.retain_grad()
    >>> (y * y).backward()
    >>> y.grad
    tensor(12.)
    """
    if not self.requires_grad:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if not self.is_leaf:
        self._gradient_hooks(True)


def _copied_in_place(tensor: Tensor, memo: dict[Any, Any]) -> Tensor:
    """The copy of a tensor in the copy of its storage, which copies of other tensors in it share."""
    root, *place = storage_of(tensor)
    key = (storage_of, id(root))
    if key not in memo:
        memo[key] = root, root.detach().clone()
    whole: Tensor = memo[key][1]
    if root is tensor:
        return whole.detach()
    return alias_of(whole, tensor.dtype).as_strided(place[1], place[2], place[0])


def __copy__(self: Tensor) -> Tensor:
    """A leaf with the same memory and attributes."""
    made = self.detach() if type(self) is Tensor else type(self)(self.detach())
    made.requires_grad = self.requires_grad
    made.__dict__.update(self.__dict__)
    return made


def __deepcopy__(self: Tensor, memo: dict[int, Any]) -> Tensor:
    if not self.is_leaf:
        raise RuntimeError(
            "deepcopy: Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol. "
            "Use detach().clone()."
        )
    made = _copied_in_place(self, memo) if type(self) is Tensor else type(self)(self.detach().clone())
    made.requires_grad = self.requires_grad
    memo[id(self)] = made
    if self._dense_grad is not None:
        made.grad = copy.deepcopy(self._dense_grad.detach(), memo)
        made._sparse_grad = self._sparse_grad
    made.__dict__.update(copy.deepcopy(self.__dict__, memo))
    return made


METHODS: dict[str, Any] = {
    "register_hook": register_hook,
    "register_post_accumulate_grad_hook": register_post_accumulate_grad_hook,
    "retain_grad": retain_grad,
    "__copy__": __copy__,
    "__deepcopy__": __deepcopy__,
}
