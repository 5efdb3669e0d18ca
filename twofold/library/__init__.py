"""Operators of a program's own, with PyTorch's names: ``custom_op``, ``Library`` and what is registered for them.

An operator is a function with a schema, which ``torch.ops.<namespace>.<name>`` calls; its gradient is that of a
``torch.autograd.Function``. Where arguments have no values yet (in ``vmap``, loops, ``torch.compile``), its function is
declared with the call, so it consists of tensor operations there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from twofold.library.checking import opcheck
from twofold.library.namespaces import Library, add, add_function, find, split
from twofold.library.schemas import infer_schema

__all__ = [
    "CustomOpDef",
    "Library",
    "custom_op",
    "define",
    "impl",
    "impl_abstract",
    "infer_schema",
    "opcheck",
    "register_autograd",
    "register_fake",
    "register_kernel",
]


class CustomOpDef:
    """An operator that ``custom_op`` made: called, it computes; the rest registers what belongs to it."""

    def __init__(self, namespace: str, name: str, schema: str, fn: Callable[..., Any]) -> None:
        self._opoverload = add(namespace, name + schema)
        self._namespace, self._name, self._init_fn = namespace, name, fn
        self._qualname = f"{namespace}::{name}"
        self.__name__, self.__doc__ = getattr(fn, "__name__", name), fn.__doc__

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._opoverload(*args, **kwargs)

    def register_kernel(self, device_types: str | Sequence[str], fn: Any = None, /) -> Any:
        """Have a function compute the operator on devices, ``"cpu"`` or those of others, where none is called."""
        return _registered(fn, lambda function: _add_kernel(self._opoverload, device_types, function))

    def register_fake(self, fn: Any, /) -> Any:
        """Register the function that gives results of the right shapes and dtypes without values, for ``opcheck``."""
        return register_fake(self, fn)

    def register_autograd(self, backward: Any, /, *, setup_context: Any = None) -> None:
        """Register the gradient, see ``torch.library.register_autograd``."""
        register_autograd(self, backward, setup_context=setup_context)


def _registered(function: Any, register: Callable[[Any], None]) -> Any:
    """``function``, registered; without one the decorator."""

    def decorator(one: Any) -> Any:
        register(one)
        return one

    return decorator if function is None else decorator(function)


def _add_kernel(op: Any, device_types: str | Sequence[str] | None, function: Any) -> None:
    names = (
        ("cpu",)
        if device_types is None
        else (device_types,)
        if isinstance(device_types, str)
        else device_types
    )
    known = ("default", "cpu", "cuda", "xpu", "mps", "hpu", "xla")
    for name in names:
        if name not in known:
            raise ValueError(f"device type {name!r} is not known. Use one of {', '.join(known)}.")
        key = "CPU" if name == "default" else name.upper()
        if key == "CPU":
            op.functions.pop("kernel", None)
        add_function(op, key, function)


def custom_op(
    name: str,
    fn: Any = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: Sequence[Any] | None = None,
) -> Any:
    """Wrap a function into an operator, which no transform looks into; works as a decorator.

    Its gradient is that of ``register_autograd``, its results must not share memory with its arguments.

    Args:
        name: Its name with a namespace, ``"mylib::f"``.
        fn: The function, with annotated parameters.
        mutates_args: Names of the tensors that it writes to; ``"unknown"`` for any.
        device_types: Devices that the function is for; all of them if None.
        schema: What it takes and returns, ``"(Tensor x) -> Tensor"``; else its annotations say so.
        tags: Without effect: they say what other compilers may do.

    Returns:
        CustomOpDef: The operator.

    Raises:
        ValueError: A name without a namespace, or parameters without annotations.

    >>> import numpy
    >>> import twofold as torch
    >>> @torch.library.custom_op("docs::sine", mutates_args=())
    ... def sine(x: torch.Tensor) -> torch.Tensor:
    ...     return torch.from_numpy(numpy.sin(x.numpy()))
    >>> sine.register_autograd(
    ...     lambda ctx, cotangent: cotangent * ctx.saved_tensors[0].cos(),
    ...     setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    ... )
    >>> x = torch.zeros(2, requires_grad=True)
    >>> sine(x).sum().backward()
    >>> x.grad
    tensor([1., 1.])
    """
    namespace, own = split(name)

    def decorator(function: Any) -> CustomOpDef:
        text = infer_schema(function, mutates_args=mutates_args) if schema is None else schema
        made = CustomOpDef(namespace, own, text, function)
        _add_kernel(made._opoverload, device_types, function)
        return made

    return decorator if fn is None else decorator(fn)


def register_kernel(
    op: Any, device_types: str | Sequence[str] | None, func: Any = None, /, *, lib: Library | None = None
) -> Any:
    """Have a function compute an operator on devices; works as a decorator.

    Args:
        op: The operator, or its name.
        device_types: ``"cpu"``, or other devices, where none is called; all of them if None.
        func: The function.
        lib: Without effect: registrations last as long as the operator.
    """
    return _registered(func, lambda function: _add_kernel(find(op), device_types, function))


def register_fake(
    op: Any,
    func: Any = None,
    /,
    *,
    lib: Library | None = None,
    _stacklevel: int = 1,
    allow_override: bool = False,
) -> Any:
    """Register a function that gives results of the right shapes and dtypes without values; works as a decorator.

    Programs run without it. ``opcheck`` compares its results with those of the operator.

    Args:
        op: The operator, or its name.
        func: A function of the operator's arguments.
        lib: Without effect: registrations last as long as the operator.
        allow_override: Whether it may replace one.

    Raises:
        RuntimeError: The operator has one.
    """

    def register(function: Any) -> None:
        found = find(op)
        if "fake" in found.functions and not (allow_override or hasattr(op, "_opoverload")):
            raise RuntimeError(f"register_fake(...): the operator {found.name()} already has a fake impl.")
        found.functions["fake"] = function

    return _registered(func, register)


impl_abstract = register_fake


def register_autograd(
    op: Any, backward: Any, /, *, setup_context: Any = None, lib: Library | None = None
) -> None:
    """Register the gradient of an operator.

    Args:
        op: The operator, or its name.
        backward: ``backward(ctx, *cotangents)``, which returns a gradient, or None, for each positional argument, a
            list of them for a list.
        setup_context: ``setup_context(ctx, inputs, output)``, with ``keyword_only_inputs`` where the operator has
            such; it keeps on ``ctx`` what ``backward`` reads.
        lib: Without effect: registrations last as long as the operator.

    Raises:
        TypeError: What is registered is no function.
        RuntimeError: The operator writes to its arguments.
    """
    for one in (backward, setup_context):
        if one is not None and not callable(one):
            raise TypeError(f"register_autograd: expected a function, got {type(one).__name__}")
    find(op).set_gradient(backward, setup_context)


def define(qualname: str, schema: str, *, lib: Library | None = None, tags: Sequence[Any] = ()) -> None:
    """Define an operator.

    Args:
        qualname: Its name with a namespace, ``"mylib::f"``.
        schema: What it takes and returns, ``"(Tensor x) -> Tensor"``.
        lib: A library that has it, and takes it away with itself.
        tags: Without effect: they say what other compilers may do.
    """
    namespace, name = split(qualname)
    if lib is None:
        add(namespace, name + schema)
    else:
        lib.define(name + schema)


def impl(qualname: Any, types: str | Sequence[str], func: Any = None, *, lib: Library | None = None) -> Any:
    """Have a function compute an operator on devices, or for a dispatch key; works as a decorator.

    Args:
        qualname: The operator, or its name with a namespace.
        types: ``"cpu"`` or other devices, ``"default"`` for all; or a dispatch key such as ``"Meta"``.
        func: The function.
        lib: Without effect: registrations last as long as the operator.
    """

    def register(function: Any) -> None:
        for one in (types,) if isinstance(types, str) else types:
            key = {"default": "CompositeExplicitAutograd", "cpu": "CPU", "cuda": "CUDA", "xpu": "XPU"}.get(
                one, one
            )
            add_function(find(qualname), key, function)

    return _registered(func, register)
