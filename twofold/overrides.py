"""Classes and modes that handle calls of the library's functions (``__torch_function__``).

A class that defines ``__torch_function__`` as a class method is asked first where one of its instances is an argument
of a function of ``torch``, ``torch.nn.functional``, ``torch.linalg``, ``torch.fft``, ``torch.special``, or of a method
or operator of tensors. A class of tensors that does not define it gives its class to what is computed of its instances.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from twofold import _core
from twofold.frontend import torch_function as _classes
from twofold.tracebacks import is_boundary

Tensor = _core.Tensor
_Operation: Any = type(_core.operation_callable(None, -1, len))

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether the class of an argument, or a mode, handles calls.

    >>> import twofold as torch
    >>> class Named(torch.Tensor):
    ...     pass
    >>> torch.overrides.has_torch_function((torch.ones(1), Named([1.0])))
    True
    >>> torch.overrides.has_torch_function((torch.ones(1), torch.nn.Parameter(torch.ones(1))))
    False
    """
    return _core.has_torch_function(*relevant_args)


def has_torch_function_unary(argument: Any) -> bool:
    """Whether the class of the one argument, or a mode, handles calls."""
    return _core.has_torch_function(argument)


def has_torch_function_variadic(*arguments: Any) -> bool:
    """Whether the class of one of the arguments, or a mode, handles calls."""
    return _core.has_torch_function(*arguments)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """What the first class of the relevant arguments that handles calls makes of a call.

    Derived classes are asked before those they derive from, else the classes in the order of the arguments.

    Args:
        public_api: The function that was called.
        relevant_args: The arguments whose classes are asked.
        *args: Positional arguments of the call.
        **kwargs: Arguments of the call by names.

    Returns:
        The first result of a ``__torch_function__`` that is not NotImplemented.

    Raises:
        TypeError: If there is none.

    >>> import twofold as torch
    >>> class Scaled:
    ...     @classmethod
    ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
    ...         return func.__name__, args[1:], kwargs
    >>> def shift(x, by, sign=1):
    ...     if torch.overrides.has_torch_function((x,)):
    ...         return torch.overrides.handle_torch_function(shift, (x,), x, by, sign=sign)
    ...     return x + sign * by
    >>> shift(torch.ones(1), 2), shift(Scaled(), 2)
    (tensor([3.]), ('shift', (2,), {'sign': 1}))
    """
    return _core.call_torch_function(public_api, tuple(relevant_args), args, kwargs)


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[..., Any]:
    """A decorator: the classes of what ``dispatcher`` returns for the arguments handle calls of the function.

    >>> import twofold as torch
    >>> @torch.overrides.wrap_torch_function(lambda x: (x,))
    ... def double(x):
    ...     return 2 * x
    >>> double(torch.ones(1))
    tensor([2.])
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def made(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if _core.has_torch_function(*relevant):
                return _core.call_torch_function(made, relevant, args, kwargs)
            return function(*args, **kwargs)

        return made

    return decorate


def is_tensor_like(inp: Any) -> bool:
    """Whether an object is a tensor, or its class has ``__torch_function__``.

    >>> import twofold as torch
    >>> torch.overrides.is_tensor_like(torch.ones(1)), torch.overrides.is_tensor_like([1.0])
    (True, False)
    """
    return isinstance(inp, Tensor) or hasattr(type(inp), "__torch_function__")


_IGNORED = """
tensor as_tensor asarray from_numpy from_dlpack frombuffer zeros ones empty full rand randn randint randperm arange
linspace logspace eye normal empty_strided tril_indices triu_indices is_tensor is_storage is_grad_enabled
set_grad_enabled get_default_dtype set_default_dtype manual_seed seed initial_seed promote_types can_cast result_type
get_num_threads set_num_threads compile typename set_printoptions
""".split()  # noqa: SIM905


@functools.cache
def get_ignored_functions() -> frozenset[Callable[..., Any]]:
    """The functions that no class of an argument handles; modes do.

    >>> import twofold as torch
    >>> torch.tensor in torch.overrides.get_ignored_functions()
    True
    """
    package = import_module("twofold")
    return frozenset(getattr(package, name) for name in _IGNORED if hasattr(package, name))


def get_default_nowrap_functions() -> frozenset[Callable[..., Any]]:
    """The functions whose results ``Tensor.__torch_function__`` does not give the class of the argument."""
    return _classes.nowrap_functions()


_SPACES = (
    "twofold",
    "twofold.functional",
    "twofold.nn.functional",
    "twofold.linalg",
    "twofold.fft",
    "twofold.special",
)


def _is_overridable(value: Any) -> bool:
    return isinstance(value, _Operation) and not is_boundary(value) and value not in get_ignored_functions()


@functools.cache
def _named() -> dict[Any, dict[str, Any]]:
    found: dict[Any, dict[str, Any]] = {}
    for name in _SPACES:
        module = import_module(name)
        names = [one for one in dir(module) if not one.startswith("_")]
        members = {one: getattr(module, one, None) for one in names}
        found[module] = {one: value for one, value in members.items() if _is_overridable(value)}
    asking = _classes.asking_members()
    found[Tensor] = {}
    for one, value in vars(Tensor).items():
        if one in asking or _is_overridable(value):
            found[Tensor][one] = value if callable(value) else value.__get__
    return found


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """The functions and methods that classes handle, by module; those of tensors by ``Tensor``.

    >>> import twofold as torch
    >>> torch.nn.functional.relu in torch.overrides.get_overridable_functions()[torch.nn.functional]
    True
    """
    return {module: list(names.values()) for module, names in _named().items()}


def resolve_name(f: Callable[..., Any]) -> str | None:
    """The name by which programs call a function that classes or modes handle, or None.

    >>> import twofold as torch
    >>> torch.overrides.resolve_name(torch.nn.functional.linear)
    'torch.nn.functional.linear'
    """
    for name in _IGNORED:
        if getattr(import_module("twofold"), name, None) is f:
            return f"torch.{name}"
    for module, names in _named().items():
        start = "torch.Tensor" if module is Tensor else module.__name__.replace("twofold", "torch", 1)
        for name, value in names.items():
            if value is f or (getattr(f, "__name__", "") == "__get__" and value == f):
                return f"{start}.{name}" + (".__get__" if value is not f else "")
    return None


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether a function that classes handle is a method or the getter of a property of tensors.

    >>> import twofold as torch
    >>> torch.overrides.is_tensor_method_or_property(torch.Tensor.shape.__get__)
    True
    """
    return getattr(func, "__name__", "") == "__get__" or func in _named()[Tensor].values()


class TorchFunctionMode:
    """A ``with`` block in which ``__torch_function__`` of an object handles all calls of this thread.

    In the method itself the mode is off, and the modes outside of it are on.

    >>> import twofold as torch
    >>> class Counting(torch.overrides.TorchFunctionMode):
    ...     calls = 0
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         self.calls += 1
    ...         return func(*args, **(kwargs or {}))
    >>> with Counting() as counting:
    ...     x = torch.ones(2) * 2
    >>> counting.calls
    2
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """What the mode makes of a call."""
        raise NotImplementedError(f"{type(self).__name__}: define __torch_function__ of the mode.")

    def __enter__(self) -> TorchFunctionMode:
        _classes.push_mode(self)
        return self

    def __exit__(self, *error: Any) -> None:
        _classes.pop_mode()


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that calls every function as it is."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """The result of the function."""
        return func(*args, **(kwargs or {}))
