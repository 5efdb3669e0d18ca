"""``Node``: one operation of a graph that was traced symbolically."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Target = Any
"""What a node calls: a function, or the name of a method, of a module, of an attribute or of an argument."""
Argument = Any
OPERATIONS = ("placeholder", "get_attr", "call_function", "call_method", "call_module", "output", "root")


def map_aggregate(value: Any, function: Callable[[Any], Any]) -> Any:
    """``value`` with ``function`` applied to all that its tuples, lists, dictionaries and slices hold."""
    if isinstance(value, tuple):
        made = [map_aggregate(one, function) for one in value]
        return type(value)(*made) if hasattr(value, "_fields") else tuple(made)
    if isinstance(value, list):
        return [map_aggregate(one, function) for one in value]
    if isinstance(value, dict):
        return {key: map_aggregate(one, function) for key, one in value.items()}
    if isinstance(value, slice):
        return slice(*(map_aggregate(one, function) for one in (value.start, value.stop, value.step)))
    return function(value)


def map_arg(value: Any, function: Callable[[Node], Any]) -> Any:
    """``value`` with ``function`` applied to all nodes that it holds.

    >>> from twofold.fx import Graph
    >>> from twofold.fx.node import map_arg
    >>> x = Graph().placeholder("x")
    >>> map_arg((x, [1, x]), lambda node: node.name)
    ('x', [1, 'x'])
    """
    return map_aggregate(value, lambda one: function(one) if isinstance(one, Node) else one)


class Node:
    """One operation: what it calls, and with which arguments, which may be other nodes.

    Attributes:
        op: "placeholder", "get_attr", "call_function", "call_method", "call_module" or "output".
        target: The function, or the name of what is called, read or taken as an argument.
        name: The name of the result, which no other node of the graph has.
        users: The nodes that have this one among their arguments, as the keys of a dictionary.
        meta: What transformations note about the node.
    """

    def __init__(
        self,
        graph: Any,
        name: str,
        op: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        return_type: Any = None,
    ) -> None:
        if op not in OPERATIONS:
            raise ValueError(f"Node: op {op!r} is none of {', '.join(OPERATIONS)}")
        if op == "call_function" and not callable(target):
            raise ValueError(f"Node: the target of a call_function is {target!r}, which cannot be called")
        self.graph, self.name, self.op, self.target, self.type = graph, name, op, target, return_type
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._prev = self._next = self
        self._erased = False
        self._args: tuple[Argument, ...] = ()
        self._kwargs: dict[str, Argument] = {}
        self._inputs: dict[Node, None] = {}
        self._set_arguments(args, kwargs)

    def _set_arguments(self, args: Any, kwargs: Any) -> None:
        for node in self._inputs:
            node.users.pop(self, None)
        self._inputs = {}
        map_arg((args, kwargs), lambda node: self._inputs.setdefault(node))
        for node in self._inputs:
            node.users.setdefault(self)
        self._args, self._kwargs = tuple(args), dict(kwargs)

    @property
    def args(self) -> tuple[Argument, ...]:
        """The positional arguments."""
        return self._args

    @args.setter
    def args(self, args: tuple[Argument, ...]) -> None:
        self._set_arguments(args, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Argument]:
        """The arguments by keyword."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict[str, Argument]) -> None:
        self._set_arguments(self._args, kwargs)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among the arguments, each once."""
        return list(self._inputs)

    @property
    def next(self) -> Node:
        """The node after this one."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before this one."""
        return self._prev

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Put ``arg`` at a position of the positional arguments."""
        args = list(self._args)
        args[idx] = arg
        self.args = tuple(args)

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Set an argument by keyword."""
        self.kwargs = {**self._kwargs, key: arg}

    def append(self, x: Node) -> None:
        """Move ``x`` behind this node."""
        self._next.prepend(x)

    def prepend(self, x: Node) -> None:
        """Move ``x`` before this node; raises ValueError for a node of another graph."""
        if x.graph is not self.graph:
            raise ValueError("Attempting to move a Node into a different Graph")
        if x is self:
            return
        x._unlink()
        x._prev, x._next = self._prev, self
        self._prev._next = self._prev = x

    def _unlink(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    def replace_all_uses_with(
        self, replace_with: Node, delete_user_cb: Callable[[Node], bool] = lambda user: True
    ) -> list[Node]:
        """Put another node in place of this one among the arguments of its users.

        Args:
            replace_with: The other node.
            delete_user_cb: Whether to change a user; called with each.

        Returns:
            The users that were changed.
        """
        changed = [user for user in self.users if delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Put one node in place of another among the arguments."""
        swap = lambda node: new_input if node is old_input else node
        self._set_arguments(map_arg(self._args, swap), map_arg(self._kwargs, swap))

    def __repr__(self) -> str:
        return self.name

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.__dict__)
