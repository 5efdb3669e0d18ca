"""Printer and parser of graphs: one line for each node or call, in an order that depends on the graph alone.

Callees are printed before their callers, under names such as ``@0``.

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
from collections.abc import Iterator
from typing import Any

from twofold.dtypes import BY_NAME, DType
from twofold.errors import GraphError
from twofold.ir.bind import input_node, is_input
from twofold.ir.graph import Graph, call, called
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.op import REGISTRY, GetOutputOp, Op
from twofold.ir.types import TensorType, tensor_type

_TYPE = re.compile(r"(weak )?(\w+)\[([\d,]*)\]$")
_INPUT = re.compile(r"%(\d+) : ((?:weak )?\w+\[[\d,]*\])")
_CALL = re.compile(r"\s*(%\d+(?:, %\d+)*) = call (@\d+)\(([^)]*)\) : (.*)$")
_HEADER = re.compile(r"(?:(@\d+) = )?graph\(")
_NODE = re.compile(r"\s*%(\d+) = ([\w ]+)\(([^)]*)\)(?: \{(.*)\})? : ((?:weak )?\w+\[[\d,]*\])$")
_NAMES: dict[str, Any] = {**BY_NAME, "inf": math.inf, "nan": math.nan, "None": None}


def format_attribute(value: Any) -> str:
    """Print an attribute as text that ``parse_attribute`` reads; raises GraphError for values of other classes.

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
    """Parse the text of ``format_attribute``; raises GraphError for other text."""
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
    """Print a graph and its callees; equal graphs have equal texts."""
    names: dict[Graph, str] = {}
    texts = [f"{name} = {_format(callee, names)}" for callee, name in _name_callees(graph, names)]
    return "\n".join([*texts, _format(graph, names)])


def format_calls(graph: Graph, names: dict[Graph, str]) -> str:
    """Print a graph without its callees, which have ``names``."""
    return _format(graph, names)


def _name_callees(graph: Graph, names: dict[Graph, str]) -> Iterator[tuple[Graph, str]]:
    """Name the callees of a graph, each after its own callees."""
    for node in graph.nodes():
        callee = called(node)
        if callee is not None and callee not in names:
            yield from _name_callees(callee, names)
            names[callee] = f"@{len(names)}"
            yield callee, names[callee]


def _format(graph: Graph, names: dict[Graph, str]) -> str:
    numbers: dict[int, int] = {}
    for node in graph.nodes():
        if is_input(node):
            numbers[node.id] = node.attrs[0]
    header = ", ".join(f"%{number} : {type}" for number, type in enumerate(graph.input_types))
    lines = [f"graph({header}) {{"]
    following = len(graph.input_types)
    for node in graph.nodes():
        if node.id in numbers:
            continue
        if isinstance(node.op, GetOutputOp) and called(node.inputs[0]) is not None:
            numbers[node.id] = numbers[node.inputs[0].id] + node.attrs[0]
            continue
        numbers[node.id] = following
        arguments = ", ".join(f"%{numbers[value.id]}" for value in node.inputs)
        callee = called(node)
        if callee is not None:
            results = ", ".join(f"%{following + k}" for k in range(len(callee.outputs)))
            types = ", ".join(str(output.type) for output in callee.outputs)
            lines.append(f"  {results} = call {names[callee]}({arguments}) : {types}")
            following += len(callee.outputs)
            continue
        following += 1
        attributes = " {" + ", ".join(map(format_attribute, node.attrs)) + "}" if node.attrs else ""
        lines.append(f"  %{numbers[node.id]} = {node.op.name}({arguments}){attributes} : {node.type}")
    lines.append("  return " + ", ".join(f"%{numbers[output.id]}" for output in graph.outputs))
    return "\n".join([*lines, "}"])


def parse_type(text: str) -> TensorType:
    """Parse a type such as ``weak float64[]``; raises GraphError for other text.

    >>> parse_type("float32[2,3]")
    float32[2,3]
    """
    found = _TYPE.match(text.strip())
    if found is None or found[2] not in BY_NAME:
        raise GraphError(f"not a type: {text!r}", "Write it as float32[2,3].")
    shape = tuple(int(size) for size in found[3].split(",") if size)
    return tensor_type(BY_NAME[found[2]], shape, found[1] is not None)


def parse_graph(text: str) -> Graph:
    """Parse the text of ``format_graph``.

    Raises:
        GraphError: A line is not a node, an operation is unknown, or a value or graph is used before its definition.
    """
    lines = [line for line in text.strip().splitlines() if line.strip()]
    graphs: dict[str, Graph] = {}
    while True:
        end = next((k for k, line in enumerate(lines) if line.strip() == "}"), len(lines))
        header = _HEADER.match(lines[0].strip()) if lines else None
        graph = _parse_lines(lines[:end], graphs)
        if header is None or header[1] is None:
            return graph
        graphs[header[1]] = graph
        lines = lines[end + 1 :]


def _parse_lines(lines: list[str], graphs: dict[str, Graph]) -> Graph:
    values: dict[str, Node] = {}
    types: list[TensorType] = []
    for number, type_text in _INPUT.findall(lines[0] if lines else ""):
        types.append(parse_type(type_text))
        values[number] = input_node(len(types) - 1, types[-1])
    for line in lines[1:]:
        if line.strip().startswith("return"):
            names = re.findall(r"%(\d+)", line)
            return Graph(types, [_look_up(values, name, line) for name in names])
        if _parse_call(line, values, graphs):
            continue
        found = _NODE.match(line)
        if found is None:
            raise GraphError(f"not a node: {line.strip()!r}", "Write it as %2 = add(%0, %1) : float32[3].")
        name, op, arguments, attributes, type_text = found.groups()
        inputs = [_look_up(values, argument, line) for argument in re.findall(r"%(\d+)", arguments)]
        values[name] = make_node(_operation(op), _attributes(attributes), inputs, parse_type(type_text))
    raise GraphError("a graph without return", "End it with a line such as return %2.")


def _parse_call(line: str, values: dict[str, Node], graphs: dict[str, Graph]) -> bool:
    """Parse a call and add its results to ``values``; returns whether the line is one."""
    found = _CALL.match(line)
    if found is None:
        return False
    names, callee, arguments, types = found.groups()
    if callee not in graphs:
        raise GraphError(f"{callee} is called before its text in {line.strip()!r}", "Order the graphs.")
    graph = graphs[callee]
    results = re.findall(r"%(\d+)", names)
    if len(results) != len(graph.outputs) or types != ", ".join(str(node.type) for node in graph.outputs):
        raise GraphError(f"{callee} has other results than {line.strip()!r}", "Name all with their types.")
    inputs = [_look_up(values, argument, line) for argument in re.findall(r"%(\d+)", arguments)]
    values.update(zip(results, call(graph, inputs)))
    return True


def _attributes(text: str | None) -> Attributes:
    if not text:
        return ()
    parsed: Attributes = parse_attribute(f"({text},)")
    return parsed


def _operation(name: str) -> Op:
    if name not in REGISTRY:
        raise GraphError(f"no operation is called {name!r}", "Import the module that declares it.")
    return REGISTRY[name]


def _look_up(values: dict[str, Node], name: str, line: str) -> Node:
    if name not in values:
        raise GraphError(f"%{name} is used before its line in {line.strip()!r}", "Order the lines.")
    return values[name]
