"""Classes of tensors that handle calls by ``__torch_function__``, and modes that handle all calls."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from importlib import import_module
from types import GetSetDescriptorType, MethodDescriptorType
from typing import Any

from twofold import _core
from twofold.tracebacks import is_boundary

Tensor = _core.Tensor


def converted(result: Any, cls: type[Tensor]) -> Any:
    """A result of a function with its tensors as those of a class, in lists and tuples, too."""
    if isinstance(result, Tensor):
        return (
            result
            if isinstance(result, cls)
            else _core.disabled_torch_function(Tensor.as_subclass, (), (result, cls))
        )
    if isinstance(result, (tuple, list)):
        parts = [converted(one, cls) for one in result]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    return result


@functools.cache
def nowrap_functions() -> frozenset[Callable[..., Any]]:
    """The functions whose results keep their class."""
    members: Any = Tensor
    getters = (members.grad.__get__, members._base.__get__, members._grad.__get__)
    return frozenset((*getters, *import_module("twofold.overrides").get_ignored_functions()))


def torch_function(
    cls: type[Tensor],
    func: Callable[..., Any],
    types: tuple[type, ...],
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
) -> Any:
    """``Tensor.__torch_function__``: call a function, and give its results the class of the argument.

    Args:
        cls: The class that handles the call.
        func: The public function, method, or getter of a property (``Tensor.shape.__get__``).
        types: The classes of the arguments that handle calls.
        args: Positional arguments.
        kwargs: Arguments by names.

    Returns:
        The result, whose tensors are of class ``cls``; NotImplemented where ``types`` has a class that ``cls`` does not
        derive from.
    """
    if not all(issubclass(cls, one) for one in types):
        return NotImplemented
    result = _core.disabled_torch_function(func, types, args, kwargs)
    return result if func in nowrap_functions() else converted(result, cls)


_SLOTS = ("__len__", "__bool__", "__float__", "__int__", "__repr__", "__str__", "__format__") + (
    "__contains__",
    "__deepcopy__",
    "__reduce_ex__",
    "__array__",
)


def _getter(name: str) -> property:
    def get(self: Tensor) -> Any:
        getter = vars(Tensor)[name].__get__  # looked up here: define-then-run has members of its own
        if _core.has_torch_function(self):
            return _core.call_torch_function(getter, (self,), (self,), {})
        return getter(self)

    def write(self: Tensor, value: Any) -> None:
        setter = vars(Tensor)[name].__set__
        if _core.has_torch_function(self):
            _core.call_torch_function(setter, (self,), (self, value), {})
        else:
            setter(self, value)

    return property(get, write, doc=vars(Tensor)[name].__doc__)


def _method(name: str) -> Callable[..., Any]:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        member = vars(Tensor)[name]
        if _core.has_torch_function(self, *args):
            return _core.call_torch_function(member, (self, *args), (self, *args), kwargs)
        return member(self, *args, **kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = vars(Tensor)[name].__doc__
    return method


@functools.cache
def asking_members() -> dict[str, Any]:
    """Members that ask classes, for those of tensors that the core does not ask for: properties, and some methods."""
    found: dict[str, Any] = {}
    for name, member in vars(Tensor).items():
        if name.startswith("_") and name not in _SLOTS:
            continue
        if isinstance(member, (property, GetSetDescriptorType)):
            found[name] = _getter(name)
        elif isinstance(member, MethodDescriptorType) or is_boundary(member) or name in _SLOTS:
            found[name] = _method(name)
    return found


_OPERATOR_METHODS = {
    "__add__": ("add", "add", "add_"),
    "__sub__": ("sub", "__rsub__", "sub_"),
    "__mul__": ("mul", "mul", "mul_"),
    "__truediv__": ("div", "__rdiv__", "div_"),
    "__floordiv__": ("__floordiv__", "__rfloordiv__", "__ifloordiv__"),
    "__mod__": ("remainder", "__rmod__", "remainder_"),
    "__matmul__": ("matmul", "__rmatmul__", "__imatmul__"),
    "__neg__": ("neg",),
    "__abs__": ("abs",),
    "__invert__": ("__invert__",),
    "__and__": ("__and__", "__rand__", "__iand__"),
    "__or__": ("__or__", "__ror__", "__ior__"),
    "__xor__": ("__xor__", "__rxor__", "__ixor__"),
    "__lshift__": ("__lshift__", "__rlshift__", "__ilshift__"),
    "__rshift__": ("__rshift__", "__rrshift__", "__irshift__"),
    "__lt__": ("lt", "gt"),
    "__le__": ("le", "ge"),
    "__eq__": ("__eq__", "__eq__"),
    "__ne__": ("ne", "ne"),
    "__gt__": ("gt", "lt"),
    "__ge__": ("ge", "le"),
}
"""The methods that an operator is: with the tensor on the left, with it on the right alone, in place."""


def operator_method(operator: str, reflected: bool, in_place: bool) -> Callable[..., Any]:
    """What ``__torch_function__`` is told that was called where it was an operator."""
    method: Callable[..., Any] = getattr(Tensor, _OPERATOR_METHODS[operator][2 if in_place else reflected])
    return method


def handle_calls(cls: type[Tensor]) -> None:
    """Let a new class of tensors handle calls.

    The core asks it for functions, operators and most methods. Of the others, the class gets members that ask, where
    the members of tensors are what it would inherit.
    """
    _core.use_torch_function()
    for name, asking in asking_members().items():
        owner = next(one for one in cls.__mro__ if name in vars(one) and vars(one)[name] is not asking)
        inherited = vars(owner)[name]
        if owner is Tensor:
            setattr(cls, name, asking)
        elif owner is not cls and getattr(cls, name, None) is not inherited:
            setattr(cls, name, inherited)


class _Modes(threading.local):
    def __init__(self) -> None:
        self.stack: list[Any] = []


_modes = _Modes()


def _ask_mode(func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """What the innermost mode makes of a call; while it runs, those outside of it are asked."""
    mode = _modes.stack.pop()
    if not _modes.stack:
        _core.set_torch_function_mode(None)
    try:
        return mode.__torch_function__(func, types, args, kwargs)
    finally:
        _modes.stack.append(mode)
        _core.set_torch_function_mode(_ask_mode)


def push_mode(mode: Any) -> None:
    """Let a mode handle all calls of this thread."""
    _modes.stack.append(mode)
    _core.set_torch_function_mode(_ask_mode)


def pop_mode() -> None:
    """Take the innermost mode away."""
    _modes.stack.pop()
    if not _modes.stack:
        _core.set_torch_function_mode(None)


class DisableTorchFunctionSubclass:
    """A ``with`` block in which classes of tensors handle no calls.

    >>> import twofold as torch
    >>> class Named(torch.Tensor):
    ...     pass
    >>> with torch._C.DisableTorchFunctionSubclass():
    ...     type(Named([1.0]) + 1) is torch.Tensor
    True
    """

    def __enter__(self) -> None:
        self._before = _core.set_torch_function_disabled(True)

    def __exit__(self, *error: Any) -> None:
        _core.set_torch_function_disabled(self._before)


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """A ``with`` block in which neither classes of tensors nor modes handle calls."""

    def __enter__(self) -> None:
        super().__enter__()
        self._mode = _core.set_torch_function_mode(None)

    def __exit__(self, *error: Any) -> None:
        _core.set_torch_function_mode(self._mode)
        super().__exit__(*error)
