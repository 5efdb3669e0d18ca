"""Namespaces of operators: ``Library``, and ``torch.ops.<namespace>.<operator>``."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from typing import Any

import twofold.ops
from twofold import _core
from twofold.library.operators import KEYS, OTHER_KEYS, OpOverload
from twofold.library.schemas import parse
from twofold.utils._pytree import tree_flatten


class OpOverloadPacket:
    """The operators of one name, which differ in their arguments."""

    def __init__(self, namespace: str, name: str) -> None:
        self._qualname, self._overloads = f"{namespace}::{name}", dict[str, OpOverload]()
        self.__name__, self.__module__ = name, f"twofold.ops.{namespace}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self._qualname.replace('::', '.')}')>"

    def __str__(self) -> str:
        return self._qualname.replace("::", ".")

    def overloads(self) -> list[str]:
        """The names of the overloads."""
        return list(self._overloads)

    def __getattr__(self, name: str) -> OpOverload:
        if name.startswith("_") or name not in self._overloads:
            raise AttributeError(f"The underlying op of '{self}' has no overload name '{name}'")
        return self._overloads[name]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        relevant = tree_flatten([args, kwargs])[0]
        if _core.has_torch_function(*relevant):
            return _core.call_torch_function(self, tuple(relevant), args, kwargs)
        *others, last = self._overloads.values()
        for one in others:
            try:
                one._schema.bound(args, kwargs)
            except RuntimeError:
                continue
            return one(*args, **kwargs)
        return last(*args, **kwargs)


class OpNamespace:
    """The operators of a namespace, each an attribute."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"<OpNamespace '{self._name}'>"

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"'_OpNamespace' '{self._name}' object has no attribute '{name}'")


_namespaces: dict[str, OpNamespace] = {}
_defined: set[str] = set()  # namespaces that a Library of kind DEF has


def split(qualname: str) -> tuple[str, str]:
    """The namespace and the name in ``mylib::f``."""
    namespace, separator, name = qualname.partition("::")
    if not separator or not namespace or not name:
        raise ValueError(
            f"Expected the name of an operator with its namespace, 'mylib::f', got {qualname!r}."
        )
    return namespace, name


def _namespace(name: str) -> OpNamespace:
    found = _namespaces.get(name)
    if found is None:
        if name in ("aten", "prim", "prims") or importlib.util.find_spec(f"twofold.ops.{name}") is not None:
            raise ValueError(f"The namespace '{name}' is taken. Use a name of your own.")
        found = _namespaces[name] = OpNamespace(name)
        setattr(twofold.ops, name, found)
    return found


def add(namespace: str, schema: str) -> OpOverload:
    """A new operator, of a schema that begins with its name."""
    parsed = parse(schema)
    attributes = vars(_namespace(namespace))
    packet = attributes.setdefault(parsed.name, OpOverloadPacket(namespace, parsed.name))
    overload = parsed.overload or "default"
    if overload in packet._overloads:
        raise RuntimeError(
            f"Tried to register an operator ({namespace}::{schema}) with the same name and overload name multiple "
            "times. Give each its own."
        )
    made = packet._overloads[overload] = OpOverload(namespace, parsed)
    return made


def remove(op: OpOverload) -> None:
    """Take an operator away."""
    attributes = vars(_namespaces[op.namespace])
    packet = attributes[op._schema.name]
    packet._overloads = {key: one for key, one in packet._overloads.items() if one is not op}
    if not packet._overloads:
        del attributes[op._schema.name]


def find(op: Any) -> OpOverload:
    """The operator of a name, a packet, or an operator itself."""
    if isinstance(op, OpOverload):
        return op
    if isinstance(op, OpOverloadPacket):
        return op._overloads["default"] if "default" in op._overloads else next(iter(op._overloads.values()))
    own = getattr(op, "_opoverload", None)
    if own is not None:
        found: OpOverload = own
        return found
    namespace, name = split(op)
    name, _, overload = name.partition(".")
    known = vars(_namespaces[namespace]) if namespace in _namespaces else {}
    if name not in known or (overload or "default") not in known[name]._overloads:
        raise RuntimeError(f"There is no operator {op}. Define it first.")
    found = known[name]._overloads[overload or "default"]
    return found


def add_function(op: OpOverload, key: str, function: Callable[..., Any]) -> None:
    """Have a function compute an operator for a dispatch key.

    Raises:
        ValueError: A key that is not known.
        RuntimeError: The operator has a function for the key.
    """
    if key in OTHER_KEYS:
        return  # no tensor lies on such a device, so it is never called
    if key not in KEYS:
        raise ValueError(
            f"impl: dispatch key {key!r} is not known. Use one of {', '.join([*KEYS, *OTHER_KEYS])}."
        )
    if KEYS[key] in op.functions:
        raise RuntimeError(f"{op}: there is already a function for the dispatch key {key}.")
    op.functions[KEYS[key]] = function


class Library:
    """Operators of a namespace of the program's own, defined by schemas.

    Args:
        ns: The namespace.
        kind: ``"DEF"`` for the one library that has the namespace, ``"FRAGMENT"`` for further ones, ``"IMPL"`` for one
            that only implements operators.
        dispatch_key: The key of functions that are given without one.

    Raises:
        ValueError: Another kind, or a namespace that the package has itself.
        RuntimeError: A second ``"DEF"`` of a namespace.

    >>> import twofold as torch
    >>> library = torch.library.Library("readme", "DEF")
    >>> library.define("scaled(Tensor x, int n=2) -> Tensor")
    'readme::scaled'
    >>> library.impl("scaled", lambda x, n=2: x * n, "CPU")
    >>> torch.ops.readme.scaled(torch.tensor([1.0, 2.0]))
    tensor([2., 4.])
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("DEF", "FRAGMENT", "IMPL"):
            raise ValueError(f"Unsupported kind: {kind}. Use 'DEF', 'FRAGMENT' or 'IMPL'.")
        _namespace(ns)
        if kind == "DEF" and ns in _defined:
            raise RuntimeError(
                f"Only a single Library of kind 'DEF' can have the namespace {ns}. Use 'FRAGMENT' for further ones."
            )
        if kind == "DEF":
            _defined.add(ns)
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._operators: list[OpOverload] = []

    def define(self, schema: str, alias_analysis: str = "", *, tags: Sequence[Any] = ()) -> str:
        """Define an operator, and return its name.

        Args:
            schema: Its name, arguments and results, ``f(Tensor x, int n=2) -> Tensor``.
            alias_analysis: Empty, or ``"CONSERVATIVE"``: without effect, as the schema is not trusted.
            tags: Without effect: they say what other compilers may do.

        Raises:
            RuntimeError: A schema that cannot be read, or an operator that is there.
        """
        if self.kind == "IMPL":
            raise ValueError(
                "define: a library of kind 'IMPL' defines no operators. Use 'DEF' or 'FRAGMENT'."
            )
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        made = add(self.ns, schema)
        self._operators.append(made)
        return made.name()

    def impl(
        self, op_name: Any, fn: Callable[..., Any], dispatch_key: str = "", *, with_keyset: bool = False
    ) -> None:
        """Have a function compute an operator of the namespace.

        Args:
            op_name: The operator or its name.
            fn: A function of its arguments.
            dispatch_key: ``"CPU"`` or ``"CompositeExplicitAutograd"`` for one without gradient,
                ``"CompositeImplicitAutograd"`` for one of differentiable operations, ``"Autograd"`` for one that makes
                the gradient, ``"Meta"`` for one of shapes. Those of other devices are never called.
            with_keyset: Must be false: there are no sets of keys.

        Raises:
            ValueError: Another key.
            RuntimeError: An operator that is not there, or has a function for the key.
        """
        if with_keyset:
            raise ValueError("impl: there are no sets of dispatch keys. Leave with_keyset out.")
        is_name = isinstance(op_name, str) and "::" not in op_name
        found = find(f"{self.ns}::{op_name}" if is_name else op_name)
        add_function(found, dispatch_key or self.dispatch_key or "CompositeImplicitAutograd", fn)

    def _destroy(self) -> None:
        """Take away the operators that it defined, as tests do."""
        for one in self._operators:
            remove(one)
        self._operators.clear()
        if self.kind == "DEF":
            _defined.discard(self.ns)
