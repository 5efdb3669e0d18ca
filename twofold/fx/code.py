"""The text of a graph as a Python function, and what its names stand for."""

from __future__ import annotations

import builtins
import keyword
import math
import operator
import re
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from twofold.dtypes import DType
from twofold.frontend.device import Device
from twofold.frontend.options import memory_format
from twofold.fx.node import Node, map_arg

_ARITHMETIC = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@",
    "lshift": "<<", "rshift": ">>", "and_": "&", "or_": "|", "xor": "^",
}  # fmt: skip
_COMPARING = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_PREFIX = {"neg": "-", "pos": "+", "invert": "~"}
OPERATORS: dict[Callable[..., Any], str] = {
    **{getattr(operator, name): f"{{}} {sign} {{}}" for name, sign in (_ARITHMETIC | _COMPARING).items()},
    **{getattr(operator, name): f"{sign}{{}}" for name, sign in _PREFIX.items()},
    operator.getitem: "{}[{}]",
}
"""The expressions of operators."""
REFLECTED = frozenset(getattr(operator, name) for name in _ARITHMETIC)
"""Operators that the second operand sees to where the first does not."""
_WRITTEN = (bool, int, float, complex, str, bytes, type(Ellipsis))
"""Classes of constants whose ``repr`` is an expression for them."""
WRAPPED_NAMES = "__wrapped_names__"
"""The global name of generated code that lists the wrapped functions which it calls."""
_RESERVED = {"inf", "nan", "NoneType", "torch", "device", "self"}


class Namespace:
    """Names, each given out once, that hide no keyword and nothing built in."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._counts: dict[str, int] = {}

    def create_name(self, candidate: str) -> str:
        """``candidate``, or with a number behind it."""
        candidate = re.sub(r"\W+", "_", candidate) or "_unnamed"
        candidate = f"_{candidate}" if candidate[0].isdigit() else candidate
        found = re.fullmatch(r"(.*)_(\d+)", candidate)
        base, number = (found[1], int(found[2])) if found and found[1] else (candidate, None)
        name = base if number is None else candidate
        number = max(number or 0, self._counts.get(base, 0))
        while name in self._used or self._is_taken(name):
            number += 1
            name = f"{base}_{number}"
        self._used.add(name)
        self._counts[base] = number
        return name

    def _is_taken(self, name: str) -> bool:
        return keyword.iskeyword(name) or hasattr(builtins, name) or name in _RESERVED


def snake_case(text: str) -> str:
    """``someName`` as ``some_name``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text).lower()


class PythonCode(NamedTuple):
    """The text of a function ``forward``, and the values of the global names in it."""

    src: str
    globals: dict[str, Any]


_PACKAGES = ("twofold", "twofold.nn.functional", "twofold.special", "twofold.linalg", "twofold.fft")


def public_name(function: Callable[..., Any]) -> tuple[str, str]:
    """The package that has a function, or "", and the name that it has there, or its own."""
    own = getattr(function, "__name__", type(function).__name__)
    for path in _PACKAGES:
        space = vars(sys.modules[path]) if path in sys.modules else {}
        names = [name for name, value in space.items() if value is function]
        if names:  # the shortest of its aliases
            return path, min(names, key=len)
    return "", own


def qualified_name(function: Callable[..., Any]) -> str:
    """The dotted name of a function: those of this package begin with ``torch``, under which programs import it."""
    path, name = public_name(function)
    if path:
        return f"torch{path.removeprefix('twofold')}.{name}"
    source = getattr(function, "__module__", None) or ""
    if getattr(builtins, name, None) is function:
        return name
    return f"{source}.{name}".replace("_operator", "operator", 1).replace("twofold.", "torch.", 1)


def target_text(node: Node) -> str:
    """What a node calls or reads, as text."""
    return node.target if isinstance(node.target, str) else qualified_name(node.target)


class _Writer:
    """Writes the body of a function, and gathers its global names."""

    def __init__(self, root: str, names: set[str]) -> None:
        self.root, self.names = root, names
        self.globals: dict[str, Any] = {"torch": sys.modules["twofold"], "inf": math.inf, "nan": math.nan}
        self.globals["device"] = sys.modules["twofold"].device
        self.parameters: list[str] = []
        self.wrapped: dict[str, None] = {}

    def name_of(self, value: Any, dotted: str) -> str:
        """A global name for a value: a dotted name below ``torch`` as it is, others with underscores."""
        if dotted.startswith("torch."):
            found: Any = self.globals["torch"]
            for part in dotted.split(".")[1:]:
                found = getattr(found, part, None)
            if found is value:
                return dotted
        if getattr(builtins, dotted, None) is value:
            return dotted
        name = base = re.sub(r"\W", "_", dotted)
        count = 0
        while name in self.names or self.globals.get(name, value) is not value:
            count += 1
            name = f"{base}_{count}"
        self.globals[name] = value
        return name

    def value(self, value: Any) -> str:
        """An argument as an expression."""
        if isinstance(value, Node):
            return value.name
        if isinstance(value, tuple):
            inner = "".join(f"{self.value(one)}, " for one in value)
            if hasattr(value, "_fields"):
                return f"{self.name_of(type(value), qualified_name(type(value)))}({inner.removesuffix(', ')})"
            return f"({inner.removesuffix(', ') if len(value) > 1 else inner.rstrip()})"
        if isinstance(value, list):
            return f"[{', '.join(map(self.value, value))}]"
        if isinstance(value, dict):
            return "{" + ", ".join(f"{key!r}: {self.value(one)}" for key, one in value.items()) + "}"
        if isinstance(value, slice):
            return f"slice({self.value(value.start)}, {self.value(value.stop)}, {self.value(value.step)})"
        if isinstance(value, DType):
            return f"torch.{value.name}"
        if isinstance(value, memory_format):
            return self.name_of(value, repr(value).replace("twofold.", "torch.", 1))
        # the text of a number of NumPy or of an enumeration is no expression for it
        if value is None or isinstance(value, Device) or type(value) in _WRITTEN:
            return "..." if value is Ellipsis else repr(value)
        if isinstance(value, type) or callable(value):
            return self.name_of(value, qualified_name(value))
        return self.name_of(value, f"{type(value).__module__}.{type(value).__name__}")

    def arguments(self, args: Any, kwargs: dict[str, Any]) -> str:
        """Arguments as they stand between parentheses."""
        return ", ".join(
            [*map(self.value, args), *(f"{key} = {self.value(one)}" for key, one in kwargs.items())]
        )

    def statement(self, node: Node) -> str:
        """What a node does, as a statement."""
        if node.op == "output":
            return f"return {self.value(node.args[0])}"
        return f"{node.name} = {self._expression(node)}"

    def _expression(self, node: Node) -> str:
        args, kwargs = node.args, node.kwargs
        if node.op == "get_attr":
            return self._member(node.target)
        if node.op == "call_module":
            return f"{self._member(node.target)}({self.arguments(args, kwargs)})"
        if node.op == "call_method":
            return f"{self.value(args[0])}.{node.target}({self.arguments(args[1:], kwargs)})"
        if node.target in OPERATORS and not kwargs:
            first, *rest = map(self.value, args)
            # a sign binds less than a power
            return OPERATORS[node.target].format(f"({first})" if first.startswith("-") else first, *rest)
        if node.target is getattr and len(args) == 2 and str(args[1]).isidentifier():
            return f"{self.value(args[0])}.{args[1]}"
        called = self.name_of(node.target, qualified_name(node.target))
        if node.meta.get("is_wrapped"):
            self.wrapped[called] = None
        return f"{called}({self.arguments(args, kwargs)})"

    def _member(self, path: str) -> str:
        text = self.root
        for part in path.split("."):
            text = f"{text}.{part}" if part.isidentifier() else f'getattr({text}, "{part}")'
        return text


def last_uses(nodes: list[Node]) -> dict[Node, list[Node]]:
    """The nodes whose values each node is the last to use, in the order of its arguments."""
    seen: set[Node] = set()
    found: dict[Node, list[Node]] = {node: [] for node in nodes}

    def first_seen(node: Node, user: Node) -> Node:
        if node not in seen:
            seen.add(node)
            found[user].append(node)
        return node

    for user in reversed(nodes):
        map_arg((user.args, user.kwargs), lambda node, user=user: first_seen(node, user))  # type: ignore[misc]
    return found


def python_code(nodes: list[Node], root_module: str) -> PythonCode:
    """The function that computes what ``nodes`` do, as a method of ``root_module``."""
    writer, last, lines = _Writer(root_module, {node.name for node in nodes}), last_uses(nodes), []
    for node in nodes:
        if node.op == "placeholder":
            stem = node.target.lstrip("*")
            default = f" = {writer.value(node.args[0])}" if node.args else ""
            writer.parameters.append(f"{node.target}{default}")
            line = "" if stem == node.name else f"{node.name} = {stem}"
        else:
            line = writer.statement(node)
        freed = [used.name for used in last[node]]
        if node.op == "output":
            freed = []
        elif node.op != "placeholder" and not node.users:
            freed.append(node.name)
        if line:
            lines.append(line + (f";  {' = '.join(freed)} = None" if freed else ""))
    head = f"def forward({', '.join([root_module, *writer.parameters])}):"
    body = "\n".join(f"    {line}" for line in lines or ["pass"])
    if writer.wrapped:
        writer.globals[WRAPPED_NAMES] = tuple(writer.wrapped)
    wraps = "\n".join(f'torch.fx._symbolic_trace.wrap("{name}")' for name in writer.wrapped)
    return PythonCode(f"\n{wraps}\n\n{head}\n{body}\n    ", writer.globals)


def node_text(node: Node) -> str:
    """A node as a line of text."""
    if node.op == "output":
        return f"return {_shown(node.args[0])}"
    head = f"%{node.name} : [num_users={len(node.users)}] = {node.op}[target={target_text(node)}]"
    called = node.op.startswith("call")
    return f"{head}(args = {_shown(node.args)}, kwargs = {_shown(node.kwargs)})" if called else head


def _shown(value: Any) -> str:
    """A value as text, with a sign before the names of nodes."""
    if isinstance(value, Node):
        return f"%{value.name}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_shown, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_shown(one)}" for key, one in value.items()) + "}"
    return str(value)
