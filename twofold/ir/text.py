"""Graphs as text and back: one line per node, in an order that depends on the graph alone.

>>> from twofold.dtypes import float32
>>> from twofold.ir.types import tensor_type
>>> import twofold.ops
>>> source = '''graph(%0 : float32[2,3], %1 : float32[2,3]) {
...   %2 = add(%0, %1) : float32[2,3]
...   %3 = sum(%2) {(1,)} : float32[2]
...   return %3
... }'''
>>> print(format_graph(parse_graph(source)) == source)
True
"""

from __future__ import annotations

import ast
import math
import re
from typing import Any

from twofold.dtypes import BY_NAME, DType
from twofold.errors import GraphError
from twofold.ir.bind import input_node
from twofold.ir.graph import Graph
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.op import REGISTRY, Op
from twofold.ir.types import TensorType, tensor_type

_TYPE = re.compile(r"(weak )?(\w+)\[([\d,]*)\]$")
_INPUT = re.compile(r"%(\d+) : ((?:weak )?\w+\[[\d,]*\])")
_NODE = re.compile(r"\s*%(\d+) = ([\w ]+)\(([^)]*)\)(?: \{(.*)\})? : ((?:weak )?\w+\[[\d,]*\])$")
_NAMES: dict[str, Any] = {**BY_NAME, "inf": math.inf, "nan": math.nan, "None": None}


def format_attribute(value: Any) -> str:
    """One attribute as text that ``parse_attribute`` reads back; raises GraphError for values of other kinds.

    >>> format_attribute((1, 0.5, float("inf"), BY_NAME["int8"], "mean"))
    "(1, 0.5, inf, int8, 'mean')"
    """
    if isinstance(value, tuple):
        return "(" + ", ".join(map(format_attribute, value)) + ("," if len(value) == 1 else "") + ")"
    if isinstance(value, DType):
        return value.name
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    if hasattr(value, "content_key"):
        return f"<{value.content_key}>"
    raise GraphError(f"an attribute of type {type(value).__name__} has no text form", "Use plain values.")


def parse_attribute(text: str) -> Any:
    """The value that ``format_attribute`` wrote; raises GraphError for anything else."""
    return _value_of(ast.parse(text, mode="eval").body)


def _value_of(node: ast.expr) -> Any:
    if isinstance(node, ast.Tuple):
        return tuple(_value_of(item) for item in node.elts)
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name) and node.id in _NAMES:
        return _NAMES[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value_of(node.operand)
    raise GraphError(
        f"not an attribute: {ast.unparse(node)}", "Use numbers, strings, dtypes and tuples of them."
    )


def format_graph(graph: Graph) -> str:
    """The text of ``graph``; equal graphs have equal texts."""
    numbers: dict[int, int] = {}
    for node in graph.nodes():
        if node.op.name == "input":
            numbers[node.id] = node.attrs[0]
    header = ", ".join(f"%{number} : {type}" for number, type in enumerate(graph.input_types))
    lines = [f"graph({header}) {{"]
    following = len(graph.input_types)
    for node in graph.nodes():
        if node.id in numbers:
            continue
        numbers[node.id] = following
        following += 1
        arguments = ", ".join(f"%{numbers[value.id]}" for value in node.inputs)
        attributes = " {" + ", ".join(map(format_attribute, node.attrs)) + "}" if node.attrs else ""
        lines.append(f"  %{numbers[node.id]} = {node.op.name}({arguments}){attributes} : {node.type}")
    lines.append("  return " + ", ".join(f"%{numbers[output.id]}" for output in graph.outputs))
    return "\n".join([*lines, "}"])


def parse_type(text: str) -> TensorType:
    """A type such as ``weak float64[]``; raises GraphError for other text.

    >>> parse_type("float32[2,3]")
    float32[2,3]
    """
    found = _TYPE.match(text.strip())
    if found is None or found[2] not in BY_NAME:
        raise GraphError(f"not a type: {text!r}", "Write it as float32[2,3].")
    shape = tuple(int(size) for size in found[3].split(",") if size)
    return tensor_type(BY_NAME[found[2]], shape, found[1] is not None)


def parse_graph(text: str) -> Graph:
    """The graph that ``format_graph`` wrote.

    Raises GraphError for a line that is not a node, an unknown operation, or a value that is used before its line.
    """
    lines = [line for line in text.strip().splitlines() if line.strip()]
    values: dict[str, Node] = {}
    types: list[TensorType] = []
    for number, type_text in _INPUT.findall(lines[0]):
        types.append(parse_type(type_text))
        values[number] = input_node(len(types) - 1, types[-1])
    for line in lines[1:]:
        if line.strip() == "}":
            break
        if line.strip().startswith("return"):
            names = re.findall(r"%(\d+)", line)
            return Graph(types, [_known(values, name, line) for name in names])
        found = _NODE.match(line)
        if found is None:
            raise GraphError(f"not a node: {line.strip()!r}", "Write it as %2 = add(%0, %1) : float32[3].")
        name, op, arguments, attributes, type_text = found.groups()
        inputs = [_known(values, argument, line) for argument in re.findall(r"%(\d+)", arguments)]
        values[name] = make_node(_operation(op), _attributes(attributes), inputs, parse_type(type_text))
    raise GraphError("a graph without return", "End it with a line such as return %2.")


def _attributes(text: str | None) -> Attributes:
    if not text:
        return ()
    parsed: Attributes = parse_attribute(f"({text},)")
    return parsed


def _operation(name: str) -> Op:
    if name not in REGISTRY:
        raise GraphError(f"no operation is called {name!r}", "Import the module that declares it.")
    return REGISTRY[name]


def _known(values: dict[str, Node], name: str, line: str) -> Node:
    if name not in values:
        raise GraphError(f"%{name} is used before its line in {line.strip()!r}", "Order the lines.")
    return values[name]
