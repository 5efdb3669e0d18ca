"""Running a graph node by node, and making another graph of it."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Any

from twofold.fx.code import last_uses
from twofold.fx.graph import Graph
from twofold.fx.graph_module import GraphModule
from twofold.fx.node import Node, Target, map_arg
from twofold.fx.proxy import Proxy, TracerBase
from twofold.fx.tracing import Tracer
from twofold.nn.module import Module


class Interpreter:
    """Runs the graph of a module node by node; methods may be overridden to change what nodes do.

    Args:
        module: The module whose graph runs, and which has what it calls and reads.
        garbage_collect_values: Whether a value is forgotten after its last use.
        graph: A graph to run in place of that of the module.

    >>> import twofold as torch
    >>> class Doubling(torch.fx.Interpreter):
    ...     def call_function(self, target, args, kwargs):
    ...         return super().call_function(target, args, kwargs) * 2
    >>> Doubling(torch.fx.symbolic_trace(lambda x: torch.exp(x))).run(torch.zeros(2))
    tensor([2., 2.])
    """

    def __init__(
        self, module: Module, garbage_collect_values: bool = True, graph: Graph | None = None
    ) -> None:
        self.module, self.garbage_collect_values = module, garbage_collect_values
        self.graph: Graph = module.graph if graph is None else graph
        self.submodules = dict(module.named_modules())
        self.env: dict[Node, Any] = {}
        self.args_iter: Iterator[Any] = iter(())

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None) -> Any:
        """What the graph returns.

        Args:
            *args: The arguments.
            initial_env: Values of some nodes, which then do not run.
        """
        self.env, self.args_iter = dict(initial_env or {}), iter(args)
        last = last_uses(list(self.graph.nodes)) if self.garbage_collect_values else {}
        for node in self.graph.nodes:
            if node not in self.env:
                self.env[node] = self.run_node(node)
            if node.op == "output":
                return self.env[node]
            for used in last.get(node, ()):
                del self.env[used]
        return None

    def run_node(self, n: Node) -> Any:
        """What one node gives, by the method of this object that has the name of its kind."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The next argument, or its default; raises RuntimeError where there is neither."""
        if target.startswith("*"):
            return list(self.args_iter)
        for value in self.args_iter:
            return value
        if not args:
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            )
        return args[0]

    def get_attr(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """An attribute of the module."""
        return self.fetch_attr(target)

    def call_function(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What a function returns."""
        return target(*args, **kwargs)

    def call_method(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What a method of the first argument returns."""
        owner, *rest = args
        return getattr(owner, target)(*rest, **kwargs)

    def call_module(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What a module returns."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the graph returns."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """The attribute of the module with a dotted name; raises RuntimeError where there is none."""
        try:
            return attrgetter(target)(self.module)
        except AttributeError:
            raise RuntimeError(f"Node referenced nonexistent target {target}") from None

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a node, with values in place of nodes."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """``args`` with values in place of nodes."""
        return map_arg(args, self.env.__getitem__)


class _Transforming(TracerBase):
    def __init__(self, graph: Graph, module: Module) -> None:
        self.graph, self._tracer = graph, Tracer()
        self._tracer.root, self._tracer.graph = module, graph

    def _argument(self, value: Any) -> Any:
        return self._tracer._argument(value)


class Transformer(Interpreter):
    """Makes another graph by running one with proxies; methods may be overridden to change what nodes become.

    >>> import twofold as torch
    >>> class ExpForSin(torch.fx.Transformer):
    ...     def call_function(self, target, args, kwargs):
    ...         return super().call_function(torch.exp if target is torch.sin else target, args, kwargs)
    >>> ExpForSin(torch.fx.symbolic_trace(lambda x: torch.sin(x))).transform()(torch.zeros(2))
    tensor([1., 1.])
    """

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.tracer = _Transforming(self.new_graph, module)

    def placeholder(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy:
        """An argument of the new graph."""
        return self.tracer.create_proxy("placeholder", target, args, {})

    def get_attr(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy:
        """A reading of an attribute in the new graph."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of a module in the new graph."""
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def call_function(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of a function in the new graph."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """A module with the new graph."""
        result = self.run()
        if result is not None:
            self.new_graph.output(self.tracer.create_arg(result))
        return GraphModule(self.module, self.new_graph, type(self.module).__name__)
