"""``torch.ops.aten``: the operations under the names, and with the overloads, of PyTorch's operators.

A call is that of the function or method of the name. Overloads differ in the types of their arguments, which functions
here tell apart themselves, so each calls the same.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from importlib import import_module
from typing import Any

from twofold import _core
from twofold.library.aten_overloads import OVERLOADS
from twofold.library.namespaces import OpNamespace, OpOverloadPacket
from twofold.utils._pytree import tree_flatten

_REDUCTIONS = ("none", "mean", "sum")  # by PyTorch's numbers of them


def owner_of(name: str, package: Any, is_loss: bool = False) -> str:
    """The module or class of ``package`` that has an operator, and its name there; empty if there is none.

    Losses, which have a ``reduction``, are those of ``nn.functional``: ``torch.kl_div`` has another default.
    """
    for module in ("linalg", "fft", "special"):
        own = name.removeprefix(f"{module}_")
        if own != name and hasattr(getattr(package, module), own):
            return f"{module} {own}"
    holders = {"": package, "Tensor": package.Tensor, "nn.functional": package.nn.functional}
    for owner, holder in reversed(holders.items()) if is_loss else holders.items():
        if callable(getattr(holder, name, None)):
            return f"{owner} {name}"
    return ""


def _function(name: str, is_loss: bool) -> Callable[..., Any]:
    holder: Any = import_module("twofold")
    owner, _, own = owner_of(name, holder, is_loss).partition(" ")
    for part in owner.split(".") if owner else ():
        holder = getattr(holder, part)
    found: Callable[..., Any] = getattr(holder, own)
    return found


@functools.cache
def _table() -> dict[str, tuple[list[str], list[str]]]:
    """The overloads of each operator, and the names of its arguments where these are called by name."""
    found = {}
    for entry in " ".join(OVERLOADS.split()).split("; "):
        name, overloads, order = re.fullmatch(r"(\w+): ([^(]*)(?:\((.*)\))?", entry).groups("")  # type: ignore[union-attr]
        found[name] = overloads.split(), order.split()
    return found


def _call(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    order = _table()[name][1]
    is_loss = "reduction" in order
    function = _function(name, is_loss)
    if order == ["*"]:  # a function of any number of tensors, and an operator of a list of them
        return function(*(args[0] if args and isinstance(args[0], (list, tuple)) else args), **kwargs)
    if not order:
        args = (kwargs.pop("self"), *args) if "self" in kwargs else args
        return function(*args, **kwargs)
    if len(args) > len(order):
        raise TypeError(f"aten::{name}() takes {len(order)} arguments but {len(args)} were given")
    given = {**dict(zip(order, args, strict=False)), **kwargs}
    if "self" in given and "self" not in order:
        given[order[0]] = given.pop("self")
    if is_loss:
        given["reduction"] = _REDUCTIONS[given.get("reduction", 1)]
    return function(**given)


class AtenOverload:
    """An overload of an operator."""

    def __init__(self, packet: AtenPacket, overload: str) -> None:
        self.overloadpacket, self._overloadname, self._opname = packet, overload, packet.__name__
        self.namespace = "aten"
        self.__name__, self.__module__ = f"{packet.__name__}.{overload}", packet.__module__

    def __repr__(self) -> str:
        return f"<OpOverload(op='aten.{self._opname}', overload='{self._overloadname}')>"

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def name(self) -> str:
        """The name with its namespace, ``aten::add.Tensor``."""
        return f"aten::{self._opname}" + ("" if self._overloadname == "default" else f".{self._overloadname}")

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        relevant = tree_flatten([args, kwargs])[0]
        if _core.has_torch_function(*relevant):
            return _core.call_torch_function(self, tuple(relevant), args, kwargs)
        return _call(self._opname, args, kwargs)


class AtenPacket(OpOverloadPacket):
    """An operator, with its overloads as attributes."""

    def __init__(self, name: str) -> None:
        super().__init__("aten", name)
        self._overloads = {one: AtenOverload(self, one) for one in _table()[name][0]}  # type: ignore[misc]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._overloads]

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        relevant = tree_flatten([args, kwargs])[0]
        if _core.has_torch_function(*relevant):
            return _core.call_torch_function(self, tuple(relevant), args, kwargs)
        return _call(self.__name__, args, kwargs)


class AtenNamespace(OpNamespace):
    """All operators, each made when it is first used.

    >>> import twofold as torch
    >>> torch.ops.aten.add.Tensor(torch.ones(2), torch.ones(2), alpha=3)
    tensor([4., 4.])
    >>> torch.ops.aten.mse_loss(torch.ones(2), torch.zeros(2), 2), "relu" in dir(torch.ops.aten)
    (tensor(2.), True)
    >>> torch.ops.aten.sum.dim_IntList
    <OpOverload(op='aten.sum', overload='dim_IntList')>
    """

    def __getattr__(self, name: str) -> Any:
        if name not in _table():
            return super().__getattr__(name)
        made = AtenPacket(name)
        return vars(self).setdefault(name, made)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *_table()]


namespace = AtenNamespace("aten")
