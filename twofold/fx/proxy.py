"""``Proxy``: what stands for a value while a function is traced, and records what is done with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from twofold.dtypes import DType
from twofold.frontend.device import Device
from twofold.frontend.options import memory_format
from twofold.fx.code import OPERATORS, REFLECTED
from twofold.fx.graph import Graph
from twofold.fx.node import Argument, Node, Target, map_aggregate

_PLAIN = (
    str,
    bytes,
    int,
    float,
    bool,
    complex,
    type(None),
    type(Ellipsis),
    range,
    DType,
    Device,
    memory_format,
)


class TraceError(ValueError):
    """Raised where what is traced depends on a value, which is not known."""


class TracerBase:
    """Makes nodes and proxies; a tracer may override how."""

    graph: Graph

    def create_node(
        self,
        kind: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Put a node into the graph."""
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node: Node) -> Proxy:
        """What stands for the result of a node."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """Record an operation on proxies and other values, and return what stands for its result."""
        given = self.create_arg(args), self.create_arg(kwargs)
        node = self.create_node(kind, target, *given, name, type_expr)
        return self.proxy(node) if proxy_factory_fn is None else proxy_factory_fn(node)

    def create_arg(self, a: Any) -> Argument:
        """``a`` as an argument of a node; raises NotImplementedError for what cannot be one."""
        return map_aggregate(a, self._argument)

    def _argument(self, value: Any) -> Argument:
        if isinstance(value, Proxy):
            return value.node
        if isinstance(value, (*_PLAIN, Node)) or callable(value):
            return value
        raise NotImplementedError(f"argument of type: {type(value)}")

    def to_bool(self, obj: Proxy) -> bool:
        """Called where a value decides which way to go; raises TraceError."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """Called where a value is iterated over; raises TraceError."""
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or "
            "**kwargs function argument."
        )

    def keys(self, obj: Proxy) -> Any:
        """Called where a value is given as ``**kwargs``."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """Puts what is done with its proxies into a graph that is there."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph


class Proxy:
    """Stands for a value: what is done with it becomes nodes of a graph.

    >>> from twofold.fx import Graph, Proxy
    >>> graph = Graph()
    >>> x = Proxy(graph.placeholder("x"))
    >>> y = (x + 1).sum()
    >>> [node.name for node in graph.nodes], y
    (['x', 'add', 'sum_1'], Proxy(sum_1))
    """

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, name: str) -> Attribute:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Attribute(self, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        return self.tracer.iter(self)

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        """What ``**`` of the value asks for."""
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. fx.wrap('len') records its calls."
        )

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Record a call of a function of the package."""
        found: list[TracerBase] = []
        map_aggregate(
            (args, kwargs or {}), lambda one: found.append(one.tracer) if isinstance(one, Proxy) else None
        )
        if len(set(map(id, found))) > 1:
            raise RuntimeError(f"Found multiple different tracers while trying to trace operations {func}")
        if (
            getattr(func, "__name__", "") == "einsum"
            and len(args) == 2
            and isinstance(args[1], (list, tuple))
        ):
            args = (args[0], *args[1])  # as PyTorch records it, whichever way the operands are given
        return found[0].create_proxy("call_function", func, args, kwargs or {})


class Attribute(Proxy):
    """An attribute of a value: a method if it is called, else read when its value is needed."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """The node that reads the attribute."""
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


def _operator(function: Callable[..., Any], reflected: bool) -> Callable[..., Proxy]:
    def method(self: Proxy, *others: Any) -> Proxy:
        operands = (*others, self) if reflected else (self, *others)
        return self.tracer.create_proxy("call_function", function, operands, {})

    return method


for _function in OPERATORS:
    _name = _function.__name__.rstrip("_")
    setattr(Proxy, f"__{_name}__", _operator(_function, False))
    if _function in REFLECTED:
        setattr(Proxy, f"__r{_name}__", _operator(_function, True))
Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]
