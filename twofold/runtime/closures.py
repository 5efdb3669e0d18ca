"""Closing functions: what a Python function does to tensors, as a closed graph and the values it captures.

The function runs once, on placeholders. What it uses beside them becomes further inputs: tensors from outside,
which gradients reach as they reach any input, and Python numbers, which stay numbers of each run. The graph of
a trace seen before is not built again.
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
"""Locations of the operations of a body, by operation, attributes and input types, and which graphs are noted."""


class Closed:
    """A closed graph: its first inputs are those of the function, the others the values ``captured``."""

    __slots__ = ("_trace", "captured", "graph", "positions")

    def __init__(self, graph: Graph, captured: Sequence[Any], trace: Any) -> None:
        self.graph = graph
        self.captured = list(captured)
        first = len(graph.input_types) - len(self.captured)
        self.positions = list(range(first, len(graph.input_types)))  # of the values captured among the inputs
        self._trace = trace

    def calls(self, count: int) -> BodyCalls:
        """The calls inside, as those of a body with ``count`` inputs."""
        _, entries, outputs = self._trace.describe()
        captured = iter(self.positions)
        leaves = [leaf if isinstance(leaf, int) else next(captured) for leaf in self._trace.leaves]
        return BodyCalls(entries, self._trace.provenance, leaves, outputs, count)

    def note_lines(self) -> None:
        """Keep the lines of what runs inside, for the errors of a call that is declared now."""
        call = _core.declaring_location()
        lines = BODY_LINES.get(call)
        if lines is not None and self.graph in lines:
            return
        before = {} if lines is None or len(lines) * _LINE_BYTES > BODY_LINES.budget // 2 else lines
        lines = dict(before)
        lines[self.graph] = call
        for entry, location in zip(self._trace.describe()[1], self._trace.locations):
            _note(lines, _graph_of(entry), entry[3], location or call)
        BODY_LINES.replace(call, lines)


class BodyCalls(NamedTuple):
    """The calls of a body: entries and outputs as the core describes them, and which input each leaf is."""

    entries: Sequence[Any]
    provenance: Sequence[tuple[int, int]]
    positions: Sequence[int]
    outputs: Sequence[int]
    inputs: int


_graphs: Cache[Graph] = Cache("closed graphs", 1, lambda key, graph: 1024 + graph_bytes(graph))

_LINE_BYTES = 256

BODY_LINES: Cache[Lines] = Cache("body lines", 1, lambda call, lines: _LINE_BYTES * (1 + len(lines)))
"""Lines of what runs inside the calls of programs, by the location of the call."""


def inner_line(location: int, called: tuple[Any, ...]) -> int:
    """The location of what is called inside the body that a call at ``location`` runs, 0 where there is none.

    ``called`` has the operation, its attributes and the types of its inputs. What the gradient of a single line
    computes has that line.
    """
    lines = BODY_LINES.get(location) or {}
    found = lines.get(called)
    if found is None:
        found = next((line for key, line in _calls(lines) if _is_like(key, called)), None)
    return _differentiated_line(lines, called) if found is None else found


def _differentiated_line(lines: Lines, called: tuple[Any, ...]) -> int:
    from twofold.transforms.derived import pullback_nodes

    found = {
        line
        for key, line in _calls(lines)
        if any(node.op is called[0] and _is_like(node.attrs, called[1]) for node in pullback_nodes(*key))
    }
    return found.pop() if len(found) == 1 else 0


class _ForAllSizes:
    """What is called in a body over symbols: operation, attributes and input types."""

    def __init__(self, called: tuple[Any, ...]) -> None:
        self.called = called


def _calls(lines: Lines) -> list[tuple[tuple[Any, ...], int]]:
    """Operation, attributes and input types of the calls with lines."""
    calls = [(key.called if isinstance(key, _ForAllSizes) else key, line) for key, line in lines.items()]
    return [(called, line) for called, line in calls if isinstance(called, tuple)]


def _is_like(own: Any, other: Any) -> bool:
    """Whether a call is another one for some sizes: symbols stand for any."""
    if isinstance(own, Symbol):
        return isinstance(other, int)
    if isinstance(own, TensorType) and isinstance(other, TensorType):
        return own.dtype is other.dtype and _is_like(own.shape, other.shape)
    if not isinstance(own, tuple) or not isinstance(other, tuple):
        return bool(own == other)
    return len(own) == len(other) and all(map(_is_like, own, other))


BODY_CALLS: Cache[dict[str, list[BodyCalls]]] = Cache(
    "body calls",
    1,
    lambda call, kept: (
        1024 + sum(_CALL_BYTES * len(part.entries) for parts in kept.values() for part in parts)
    ),
)
"""The calls inside programs by the location of the call and the key of what it runs, for tools that step."""

_CALL_BYTES = 512


def note_calls(content_key: str, parts: Sequence[Closed], count: int) -> None:
    """Keep the calls inside the bodies of a program with ``count`` inputs, which is declared now."""
    call = _core.declaring_location()
    kept = BODY_CALLS.get(call) or {}
    if content_key not in kept:
        BODY_CALLS.replace(call, {**kept, content_key: [part.calls(count) for part in parts]})


_iterations: list[Tensor] = []
_MIX = 0x9E3779B97F4A7C15
_SIGN = 1 << 63


@contextmanager
def in_iteration(number: Tensor) -> Iterator[None]:
    """Inside, random samples differ by the int64 tensor ``number``, which counts the iterations of a loop."""
    _iterations.append(number)
    try:
        yield
    finally:
        _iterations.pop()


def varied(counter: Any) -> Any:
    """The counter of a random sample: another one in each iteration of the loops around it."""
    for number in _iterations:
        scaled = counter * _MIX if isinstance(counter, int) else counter * _signed(_MIX)
        counter = number + (_signed(scaled) if isinstance(scaled, int) else scaled) + 1
    return counter


def _signed(number: int) -> int:
    return (number + _SIGN) % (2 * _SIGN) - _SIGN


def close(function: Callable[..., Sequence[Any]], types: Sequence[TensorType]) -> Closed:
    """What ``function`` does to tensors of ``types``; it returns tensors.

    Where sizes are symbols, so are those of the graph.
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
        return Closed(_build(trace.describe(), positions, types), captured, trace)
    key = (trace.key, tuple(types), positions)
    found = _graphs.get(key)
    if found is None:
        found = _graphs.keep(key, _build(trace.describe(), positions, types))
    return Closed(found, captured, trace)


def _graph_of(entry: tuple[Any, ...]) -> Graph:
    """The closed graph of an entry that the core describes."""
    from twofold.transforms.derived import graph_of_entry

    return graph_of_entry(entry)


def _build(described: tuple[Any, ...], positions: Sequence[int], types: Sequence[TensorType]) -> Graph:
    written, entries, outputs = described
    leaf_types = [symbolic_type(type_from_code(*type)) for type in written]
    input_types = list(types)
    leaves: list[Node] = []
    for position, type in zip(positions, leaf_types):
        if position < 0:
            position = len(input_types)
            input_types.append(type)
        leaves.append(input_node(position, type))
    values: list[Node] = []
    for entry in entries:
        _, refs, _, _, mask, _ = entry
        arguments = [values[ref] if ref >= 0 else leaves[~ref] for ref in refs]
        given = [_stopped(node, mask, k) for k, node in enumerate(arguments)]
        values.append(_graph_of(entry).inline(given)[0])
    return Graph(input_types, [values[ref] if ref >= 0 else leaves[~ref] for ref in outputs])


def _stopped(node: Node, mask: int, position: int) -> Node:
    """An operand, as a constant for gradients where the program says so."""
    if mask >> min(position, 63) & 1 or not node.dtype.is_differentiable or node.type.weak:
        return node
    stopped: Node = ops.stop_gradient(node)
    return stopped


def _note(lines: Lines, graph: Graph, attrs: Any, location: int) -> None:
    for node in graph.nodes():
        called = (node.op, node.attrs, tuple(value.type for value in node.inputs))
        lines.setdefault(_ForAllSizes(called) if has_symbols(called) else called, location)
    for item in attrs:
        if hasattr(item, "content_key"):
            lines.update(BODY_LINES.get(location) or {})


def together(parts: Sequence[Closed], count: int) -> tuple[list[Graph], list[Any]]:
    """Graphs with the same inputs: the first ``count`` of each, then everything that any of them captures."""
    captured: list[Any] = []
    types: list[TensorType] = list(parts[0].graph.input_types[:count])
    known: dict[int, int] = {}
    graphs = []
    for part in parts:
        arguments = [input_node(k, type) for k, type in enumerate(types[:count])]
        for value, type in zip(part.captured, part.graph.input_types[count:]):
            position = known.get(_core.value_key(value)) if isinstance(value, Tensor) else None
            if position is None:
                position = len(types)
                types.append(type)
                captured.append(value)
                if isinstance(value, Tensor):
                    known[_core.value_key(value)] = position
            arguments.append(input_node(position, type))
            part.positions[len(arguments) - 1 - count] = position
        graphs.append(part.graph.inline(arguments))
    return [Graph(types, outputs) for outputs in graphs], captured


def as_tensor(value: Any, type: TensorType | None = None) -> Tensor:
    """A tensor as it is; a number or array as a tensor, of the dtype of ``type`` if that is given."""
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
