"""Closure conversion: from a Python function of tensors to a closed graph and the values that it captures.

The function is traced once, on placeholders. Captured values become further inputs: tensors, through which gradients
flow as through any input, and Python numbers, which are run-time values. Graphs are cached by trace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy

from twofold import _core
from twofold.cache import Cache
from twofold.ir.bind import input_node
from twofold.ir.graph import Graph, graph_bytes, has_symbols
from twofold.ir.node import Node
from twofold.ir.sizes import Symbol, current_sizes, symbolic_type
from twofold.ir.types import TensorType, type_from_code
from twofold.ops.base import ops

Tensor = _core.Tensor
Lines = dict[Any, int]
"""Locations of the operations of a body, by operation, attributes and input types, and of the graphs recorded."""


class ClosedFunction:
    """A converted function.

    Attributes:
        graph: The closed graph; its first inputs are those of the function, the others captured values.
        captured: The captured values.
        positions: Their positions among the inputs.
    """

    __slots__ = ("_leaves", "_trace", "captured", "graph", "positions")

    def __init__(self, graph: Graph, captured: Sequence[Any], trace: Any, leaves: Sequence[int]) -> None:
        self.graph = graph
        self.captured = list(captured)
        self._leaves = (
            leaves  # of the trace: positions among the inputs of the function; -1: the next captured value
        )
        first = len(graph.input_types) - len(self.captured)
        self.positions = list(range(first, len(graph.input_types)))
        self._trace = trace

    def calls(self, count: int) -> BodyCalls:
        """The calls in the function, as those of a body with ``count`` inputs."""
        _, entries, outputs = self._trace.describe()
        captured = iter(self.positions)
        leaves = [leaf if leaf >= 0 else next(captured) for leaf in self._leaves]
        return BodyCalls(entries, self._trace.provenance, leaves, outputs, count)

    def record_lines(self) -> None:
        """Record the lines of operations in the function, for the errors of the call that is being declared."""
        call = _core.declaring_location()
        lines = BODY_LINES.get(call)
        if lines is not None and self.graph in lines:
            return
        before = {} if lines is None or len(lines) * _LINE_BYTES > BODY_LINES.budget // 2 else lines
        lines = dict(before)
        lines[self.graph] = call
        for entry, location in zip(self._trace.describe()[1], self._trace.locations):
            _record_graph_lines(lines, _graph_of(entry), entry[3], location or call)
        BODY_LINES.replace(call, lines)


class BodyCalls(NamedTuple):
    """The calls of a body.

    Attributes:
        entries: Its instructions, as the core describes them.
        provenance: Their locations.
        positions: For each input of the trace, the input of the body that it is.
        outputs: The operands that it returns.
        inputs: The number of inputs of the body.
    """

    entries: Sequence[Any]
    provenance: Sequence[tuple[int, int]]
    positions: Sequence[int]
    outputs: Sequence[int]
    inputs: int


_Calls = list[tuple[Any, Any]]
"""The operation and the attributes of each instruction of a trace."""

_graphs: Cache[tuple[_Calls, Graph]] = Cache(
    "closed graphs", 1, lambda key, entry: 1024 + graph_bytes(entry[1])
)
"""Graphs by trace. A key has the addresses of op instances, which are reused once those are evicted: the calls tell."""

_LINE_BYTES = 256

BODY_LINES: Cache[Lines] = Cache("body lines", 1, lambda call, lines: _LINE_BYTES * (1 + len(lines)))
"""Lines of operations in the bodies of control flow, by the location of the call."""


def inner_line(location: int, called: tuple[Any, ...]) -> int:
    """The location of an operation in the body of control flow.

    Args:
        location: That of the call of control flow.
        called: The operation, its attributes and the types of its inputs.

    Returns:
        0 if there is none. An operation in the gradient of the body has the line that it differentiates, if unique.
    """
    lines = BODY_LINES.get(location) or {}
    found = lines.get(called)
    if found is None:
        found = next((line for key, line in _calls(lines) if _matches(key, called)), None)
    return _differentiated_line(lines, called) if found is None else found


def _differentiated_line(lines: Lines, called: tuple[Any, ...]) -> int:
    from twofold.transforms.derived import pullback_nodes

    found = {
        line
        for key, line in _calls(lines)
        if any(node.op is called[0] and _matches(node.attrs, called[1]) for node in pullback_nodes(*key))
    }
    return found.pop() if len(found) == 1 else 0


class _SymbolicCall:
    """A call in a body over symbols: operation, attributes and input types."""

    def __init__(self, called: tuple[Any, ...]) -> None:
        self.called = called


def _calls(lines: Lines) -> list[tuple[tuple[Any, ...], int]]:
    """Calls with lines: operation, attributes and input types."""
    calls = [(key.called if isinstance(key, _SymbolicCall) else key, line) for key, line in lines.items()]
    return [(called, line) for called, line in calls if isinstance(called, tuple)]


def _matches(own: Any, other: Any) -> bool:
    """Whether a call over symbols is another one for some sizes."""
    if isinstance(own, Symbol):
        return isinstance(other, int)
    if isinstance(own, TensorType) and isinstance(other, TensorType):
        return own.dtype is other.dtype and _matches(own.shape, other.shape)
    if not isinstance(own, tuple) or not isinstance(other, tuple):
        return bool(own == other)
    return len(own) == len(other) and all(map(_matches, own, other))


BODY_CALLS: Cache[dict[str, list[BodyCalls]]] = Cache(
    "body calls",
    1,
    lambda call, kept: (
        1024 + sum(_CALL_BYTES * len(part.entries) for parts in kept.values() for part in parts)
    ),
)
"""Calls in the bodies of control flow, by the location of the call and its content key, for debuggers."""

_CALL_BYTES = 512


def record_calls(content_key: str, bodies: Sequence[ClosedFunction], count: int) -> None:
    """Record the calls in the bodies of the control flow that is being declared.

    Args:
        content_key: Its content key.
        bodies: Its bodies.
        count: The number of inputs of each body.
    """
    call = _core.declaring_location()
    kept = BODY_CALLS.get(call) or {}
    if content_key not in kept:
        BODY_CALLS.replace(call, {**kept, content_key: [body.calls(count) for body in bodies]})


_iterations: list[Tensor] = []
_MIX = 0x9E3779B97F4A7C15
_SIGN = 1 << 63


@contextmanager
def in_iteration(number: Tensor) -> Iterator[None]:
    """Inside, random samples depend on the int64 tensor ``number``, which counts the iterations of a loop."""
    _iterations.append(number)
    try:
        yield
    finally:
        _iterations.pop()


def varied(counter: Any) -> Any:
    """The counter of a random sample, different in each iteration of the enclosing loops."""
    for number in _iterations:
        scaled = counter * _MIX if isinstance(counter, int) else counter * _signed(_MIX)
        counter = number + (_signed(scaled) if isinstance(scaled, int) else scaled) + 1
    return counter


def _signed(number: int) -> int:
    return (number + _SIGN) % (2 * _SIGN) - _SIGN


def closure_convert(function: Callable[..., Sequence[Any]], types: Sequence[TensorType]) -> ClosedFunction:
    """Trace a function.

    Args:
        function: A function of tensors that returns tensors.
        types: The types of its arguments, whose sizes may be symbols.
    """
    sizes = current_sizes()
    inputs = [_core.placeholder(type if sizes is None else sizes.named(type)) for type in types]
    mark, before = _core.declaration_mark(), len(sizes.operands) if sizes else 0
    outputs = tuple(function(*inputs))
    inputs += [tensor for tensor, _ in sizes.operands[before:]] if sizes else []
    trace = _core.close(tuple(inputs), outputs, mark)
    leaves = [inputs[leaf] if isinstance(leaf, int) and leaf >= len(types) else leaf for leaf in trace.leaves]
    captured = [leaf[0] if isinstance(leaf, tuple) else leaf for leaf in leaves if not isinstance(leaf, int)]
    positions = tuple(leaf if isinstance(leaf, int) else -1 for leaf in leaves)
    if sizes is not None:
        return ClosedFunction(_build(trace.describe(), positions, types), captured, trace, positions)
    return ClosedFunction(_graph_of_trace(trace, positions, types), captured, trace, positions)


def _graph_of_trace(trace: Any, positions: tuple[int, ...], types: Sequence[TensorType]) -> Graph:
    """The closed graph of a trace over concrete sizes, built once."""
    described = trace.describe()
    calls = [(op, attrs) for _, _, op, attrs, _, _ in described[1]]
    key = (trace.key, tuple(types), positions)
    found = _graphs.get(key)
    # attributes of one op instance are one object
    if found is not None and all(a[0] is b[0] and a[1] is b[1] for a, b in zip(found[0], calls, strict=True)):
        return found[1]
    graph = _build(described, positions, types)
    _graphs.replace(key, (calls, graph))
    return graph


def _graph_of(entry: tuple[Any, ...]) -> Graph:
    """The closed graph of an instruction that the core describes."""
    from twofold.transforms.derived import graph_of_entry

    return graph_of_entry(entry)


def _build(described: tuple[Any, ...], positions: Sequence[int], types: Sequence[TensorType]) -> Graph:
    written, entries, outputs = described
    trace_types = [symbolic_type(type_from_code(*type)) for type in written]
    input_types = list(types)
    inputs: list[Node] = []
    for position, type in zip(positions, trace_types):
        if position < 0:
            position = len(input_types)
            input_types.append(type)
        inputs.append(input_node(position, type))
    values: list[Node] = []
    for entry in entries:
        _, refs, _, _, mask, _ = entry
        arguments = [values[ref] if ref >= 0 else inputs[~ref] for ref in refs]
        operands = [_stopped(node, mask, k) for k, node in enumerate(arguments)]
        values.append(_graph_of(entry).inline(operands)[0])
    return Graph(input_types, [values[ref] if ref >= 0 else inputs[~ref] for ref in outputs])


def _stopped(node: Node, mask: int, position: int) -> Node:
    """An operand, with ``stop_gradient`` where the mask of the call says so."""
    if mask >> min(position, 63) & 1 or not node.dtype.is_differentiable or node.type.weak:
        return node
    stopped: Node = ops.stop_gradient(node)
    return stopped


def _record_graph_lines(lines: Lines, graph: Graph, attrs: Any, location: int) -> None:
    for node in graph.nodes():
        called = (node.op, node.attrs, tuple(value.type for value in node.inputs))
        lines.setdefault(_SymbolicCall(called) if has_symbols(called) else called, location)
    for item in attrs:
        if hasattr(item, "content_key"):
            lines.update(BODY_LINES.get(location) or {})


def with_common_inputs(bodies: Sequence[ClosedFunction], count: int) -> tuple[list[Graph], list[Any]]:
    """Give several functions the same inputs.

    Args:
        bodies: The functions, with the same first ``count`` inputs.
        count: The number of these.

    Returns:
        Their graphs, whose further inputs are what any of them captures, and the captured values.
    """
    captured: list[Any] = []
    types: list[TensorType] = list(bodies[0].graph.input_types[:count])
    known: dict[int, int] = {}
    graphs = []
    for body in bodies:
        arguments = [input_node(k, type) for k, type in enumerate(types[:count])]
        for value, type in zip(body.captured, body.graph.input_types[count:]):
            position = known.get(_core.value_key(value)) if isinstance(value, Tensor) else None
            if position is None:
                position = len(types)
                types.append(type)
                captured.append(value)
                if isinstance(value, Tensor):
                    known[_core.value_key(value)] = position
            arguments.append(input_node(position, type))
            body.positions[len(arguments) - 1 - count] = position
        graphs.append(body.graph.inline(arguments))
    return [Graph(types, outputs) for outputs in graphs], captured


def as_tensor(value: Any, type: TensorType | None = None) -> Tensor:
    """Convert a number or array to a tensor, of the dtype of ``type`` if it is given; tensors stay."""
    if isinstance(value, Tensor):
        return value
    array = numpy.asarray(value)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"a value of type {_kind(value)} is not a tensor")
    if type is not None and not isinstance(value, numpy.ndarray):
        array = array.astype(type.dtype.numpy)
    elif array.dtype == numpy.float64 and not isinstance(value, (numpy.ndarray, numpy.generic)):
        array = array.astype(numpy.float32)
    return _core.from_array(array, False)


def _kind(value: Any) -> str:
    return type(value).__name__
