"""``Graph``: the nodes of a function in the order in which they run."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from twofold.fx.code import Namespace, PythonCode, node_text, public_name, python_code, snake_case
from twofold.fx.node import Argument, Node, Target, map_aggregate, map_arg


class _Nodes:
    """The nodes of a graph, also while it changes."""

    def __init__(self, graph: Graph, step: str = "_next") -> None:
        self._graph, self._step = graph, step

    def __iter__(self) -> Iterator[Node]:
        root = self._graph._root
        node = getattr(root, self._step)
        while node is not root:
            if not node._erased:
                yield node
            node = getattr(node, self._step)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __reversed__(self) -> _Nodes:
        return _Nodes(self._graph, "_prev" if self._step == "_next" else "_next")


class _Inserting:
    """Nodes that are made go to one place, until the end of a ``with`` block."""

    def __init__(self, graph: Graph, insert: Callable[[Node], None]) -> None:
        self._graph, self._before = graph, graph._insert
        graph._insert = insert

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        self._graph._insert = self._before


class Graph:
    """Operations on named values, in the order in which they run; ``GraphModule`` runs them.

    >>> from twofold.fx import Graph, GraphModule
    >>> import twofold as torch
    >>> graph = Graph()
    >>> x = graph.placeholder("x")
    >>> y = graph.call_function(torch.exp, (x,))
    >>> result = graph.output(graph.call_method("sum", (y,)))
    >>> print(graph)
    graph():
        %x : [num_users=1] = placeholder[target=x]
        %exp : [num_users=1] = call_function[target=torch.exp](args = (%x,), kwargs = {})
        %sum_1 : [num_users=1] = call_method[target=sum](args = (%exp,), kwargs = {})
        return %sum_1
    >>> GraphModule(torch.nn.Module(), graph)(torch.zeros(3))
    tensor(3.)
    """

    def __init__(self, owning_module: Any = None, tracer_cls: Any = None, tracer_extras: Any = None) -> None:
        if tracer_extras is not None:
            raise NotImplementedError(
                f"Graph: tracer_extras is {tracer_extras!r}. It says how to trace a graph again that is read from a "
                "file, and graphs are kept in files as they are. Leave it out."
            )
        self.owning_module, self._tracer_cls = owning_module, tracer_cls
        self._made: dict[Node, None] = {}
        self._root = Node(self, "", "root", "", (), {})
        self._insert: Callable[[Node], None] = self._root.prepend
        self._namespace = Namespace()

    @property
    def nodes(self) -> Any:
        """The nodes in the order in which they run; may be iterated over while they change."""
        return _Nodes(self)

    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Make a node and put it where nodes go, which is the end outside of ``inserting_before`` and ``_after``.

        Args:
            op: The kind of node.
            target: What it calls or reads.
            args: Positional arguments.
            kwargs: Arguments by keyword.
            name: The name that the result is to have, if no other has it; without, one is made of the target.
            type_expr: The type of the result, kept as ``type`` of the node.
        """
        wanted = name if name is not None else self._name_for(target)
        found = self._namespace.create_name(wanted)
        node = Node(self, found, op, target, args or (), kwargs or {}, type_expr)
        self._insert(node)
        self._made[node] = None
        return node

    @staticmethod
    def _name_for(target: Target) -> str:
        name = target if isinstance(target, str) else public_name(target)[1]
        if name.startswith("__") and name.endswith("__"):
            name = name[2:-2]
        return snake_case(name.lstrip("*").replace(".", "_"))

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """An argument of the function; ``*args`` and ``**kwargs`` take what remains."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """A parameter, buffer or other attribute of the module."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self, module_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None
    ) -> Node:
        """A call of a module below the module."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self, method_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None
    ) -> Node:
        """A call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self, the_function: Callable[..., Any], args: Any = None, kwargs: Any = None, type_expr: Any = None
    ) -> Node:
        """A call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, type_expr=type_expr)

    def output(self, result: Argument, type_expr: Any = None) -> Node:
        """What the function returns."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def output_node(self) -> Node:
        """The node that says what the function returns; raises StopIteration where there is none."""
        return next(node for node in reversed(self.nodes) if node.op == "output")

    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Node]:
        """The nodes of one kind, and where it is given, with one target.

        Args:
            op: The kind.
            target: The target, or None for all.
            sort: Whether they are in the order in which they run; else they are in the order in which they were made.
        """
        nodes = self.nodes if sort else self._made
        return [node for node in nodes if node.op == op and target in (None, node.target)]

    def inserting_before(self, n: Node | None = None) -> _Inserting:
        """Until the end of the ``with`` block, nodes that are made go before ``n``, or to the front."""
        return _Inserting(self, (self._root._next if n is None else n).prepend)

    def inserting_after(self, n: Node | None = None) -> _Inserting:
        """Until the end of the ``with`` block, nodes that are made go right behind ``n``, or to the end."""
        return _Inserting(self, self._root.prepend if n is None else n.append)

    def erase_node(self, to_erase: Node) -> None:
        """Take a node out; raises RuntimeError if others use its result, or if it is of another graph."""
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            warnings.warn(f"erase_node({to_erase}) on an already erased node", stacklevel=2)
            return
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: "
                f"{to_erase.users}!"
            )
        to_erase._unlink()
        to_erase._erased = True
        del self._made[to_erase]
        to_erase._set_arguments((), {})

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Argument] = lambda node: node) -> Node:
        """A copy of a node of another graph, whose arguments ``arg_transform`` turns into ones of this graph."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = dict(node.meta)
        return made

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Copy all nodes of ``g`` but its output, the value of which is returned.

        Args:
            g: The other graph.
            val_map: Which nodes of this graph stand for nodes of the other; the copies are added.
            return_output_node: Whether to return the output node of ``g``, too.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], val_map.__getitem__)
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, val_map.__getitem__)
        return None

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Erase the nodes whose results nothing uses; whether there were any.

        Args:
            is_impure_node: Which of them stay; without, those that change an argument in place.
        """
        kept = is_impure_node or _changes_an_argument
        found = False
        for node in list(reversed(self.nodes)):
            if not node.users and node.op not in ("placeholder", "output") and not kept(node):
                self.erase_node(node)
                found = True
        return found

    def lint(self) -> None:
        """Raise RuntimeError where a node has a name or an argument that it cannot have."""
        seen: set[Node] = set()
        names: set[str] = set()
        for node in self.nodes:
            for one in node.all_input_nodes:
                if one.graph is not self:
                    raise RuntimeError(f"Argument {one} of Node {node} does not belong to this Graph")
                if one not in seen:
                    raise RuntimeError(f"Argument {one} of Node {node} was used before it has been defined!")
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            names.add(node.name)
            seen.add(node)
            if self.owning_module is not None and node.op in ("get_attr", "call_module"):
                self._need_member(node)

    def _need_member(self, node: Node) -> None:
        found = self.owning_module
        for part in node.target.split("."):
            if not hasattr(found, part):
                raise RuntimeError(
                    f"Node {node} target {node.target} references nonexistent attribute {part}"
                )
            found = getattr(found, part)

    def python_code(self, root_module: str = "self") -> PythonCode:
        """The function as Python: its text, and the values of the global names in it."""
        return python_code(list(self.nodes), root_module)

    def print_tabular(self) -> None:
        """Print a table of the nodes.

        >>> from twofold.fx import Graph
        >>> Graph().print_tabular()
        opcode    name    target    args    kwargs
        --------  ------  --------  ------  --------
        """
        head = ("opcode", "name", "target", "args", "kwargs")
        rows = [[str(v) for v in (n.op, n.name, n.target, n.args, n.kwargs)] for n in self.nodes]
        widths = [max(len(name) + 2, *(len(row[k]) for row in rows), 0) for k, name in enumerate(head)]
        for row in (head, ["-" * width for width in widths], *rows):
            print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())

    def __reduce__(self) -> Any:
        numbers = {node: number for number, node in enumerate(self.nodes)}
        place = lambda value: map_arg(value, lambda node: _NodeNumber(numbers[node]))
        described = [(n.op, n.target, place(n.args), place(n.kwargs), n.name, n.type) for n in self.nodes]
        return _graph_of, (described,)

    def __deepcopy__(self, memo: dict[int, Any]) -> Graph:
        made = Graph(tracer_cls=self._tracer_cls)
        nodes: dict[Node, Node] = {}
        result = made.graph_copy(self, nodes, return_output_node=True)
        if result is not None:
            made.output(result[0], type_expr=result[1].type)
        memo[id(self)] = made
        return made

    def __str__(self) -> str:
        return "\n    ".join(["graph():", *map(node_text, self.nodes)])


_IN_PLACE = frozenset(
    getattr(operator, name)
    for name in [
        *("setitem", "delitem", "iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "imatmul"),
        *("iand", "ior", "ixor", "ilshift", "irshift"),
    ]
)


def _changes_an_argument(node: Node) -> bool:
    """Whether a call is one of those whose names or options say that they work in place."""
    if node.op not in ("call_method", "call_function"):
        return False
    if node.target in _IN_PLACE or node.kwargs.get("inplace") or node.kwargs.get("out") is not None:
        return True
    name = node.target if isinstance(node.target, str) else public_name(node.target)[1]
    return name.endswith("_") and not name.endswith("__") and getattr(operator, name, None) is not node.target


class _NodeNumber:
    """Which node an argument is, in a pickle."""

    def __init__(self, number: int) -> None:
        self.number = number


def _graph_of(described: list[Any]) -> Graph:
    graph = Graph()
    nodes: list[Node] = []

    filled = lambda one: nodes[one.number] if isinstance(one, _NodeNumber) else one
    for op, target, *given, name, return_type in described:
        args, kwargs = (map_aggregate(one, filled) for one in given)
        nodes.append(graph.create_node(op, target, args, kwargs, name, return_type))
    return graph
