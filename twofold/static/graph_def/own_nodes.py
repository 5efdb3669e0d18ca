"""Operations that TensorFlow has no node for: their nodes say what they are, so that this library imports them again.

A node names the function that computes the operation and what it is given, or the kind of a loop with the operations
of its bodies. Only functions that ``importable`` has entered are called by what a file says.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy

from twofold.dtypes import DType
from twofold.ir.shape_inference import UNKNOWN_RANK, new_unknown_size
from twofold.ir.types import TensorType, tensor_type
from twofold.static.autodiff.derivatives import Derivative, operations_between
from twofold.static.functions.bodies import ARGUMENT, Body, source_of
from twofold.static.functions.lowering import Flow, Repeat, Sizes, While
from twofold.static.graph.graph import Operation
from twofold.static.graph.graph_elements import BODIES, Slot
from twofold.static.graph.tensor_shape import TensorShape
from twofold.static.protobuf.graph_def import CODES, DTYPES

_OPTIONS: dict[type[Flow], tuple[str, ...]] = {
    Repeat: ("operation", "names", "arrays", "reverse"),
    While: ("names", "limited", "growing", "varying"),
    Sizes: ("names", "limited", "growing", "varying"),
}
_FLOWS: dict[str, Callable[..., Flow]] = {kind.__name__: kind for kind in _OPTIONS}
_OF_DERIVATIVE = ("roots", "targets", "weighted", "paths")
_BODIES = {"Repeat": ("body",), "While": ("condition", "body"), "Sizes": ("condition", "body")}


class _Unwritable(Exception):
    """What a node cannot say."""


def record(writer: Any) -> str | None:
    """What the node of an operation says of it; None where it can say nothing."""
    operation: Operation = writer.operation
    flow = operation.flow or operation.hosted
    try:
        if operation.type == ARGUMENT:
            found: dict[str, Any] = {}
        elif type(flow) in _OPTIONS and not flow.rules:
            found = _flow_record(writer, flow)
        elif type(flow) is Derivative and not flow.rules:
            found = {"derivative": {name: getattr(flow, name) for name in _OF_DERIVATIVE}}
            found["stops"] = [writer.of(source) for source in flow.stops]
        else:
            found = _body_record(operation)
    except _Unwritable:
        return None
    found["types"] = [[CODES[out.dtype], _sizes(out.type_)] for out in operation.outputs]
    for name in ("host", "wished"):
        if getattr(operation, name):
            found[name] = sorted(getattr(operation, name))
    return json.dumps(found)


def _sizes(type: TensorType) -> list[int] | None:
    return None if type.shape == UNKNOWN_RANK else [int(size) for size in type.shape]


def _body_record(operation: Operation) -> dict[str, Any]:
    body = operation.body
    key = getattr(body, "__module__", ""), getattr(body, "__qualname__", "")
    unusual = (operation.python, operation.number_of, operation.observe, operation.pullback)
    if (
        body is None
        or BODIES.get(key) is not body
        or operation.branches
        or not isinstance(operation.gradient, (str, type(None)))
        or any(item is not None for item in unusual)
    ):
        raise _Unwritable
    found = {
        "body": list(key),
        "arguments": [_written(value) for value in operation.arguments],
        "keywords": {name: _written(value) for name, value in operation.keywords.items()},
        "random": operation.is_random,
        "looks": operation.looks,
        "gradient": operation.gradient,
    }
    if operation.updates:
        found["updates"] = [variable.op.name for variable in operation.updates]
        found["reads_state"] = operation.reads_state
    return found


def _written(value: Any) -> Any:
    """An argument for JSON."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, numpy.generic) and value.dtype.kind in "biuf":
        return value.item()
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return {type(value).__name__: [_written(item) for item in value]}
    if isinstance(value, Slot):
        return {"slot": value.index}
    if isinstance(value, DType) and value in CODES:
        return {"dtype": CODES[value]}
    if isinstance(value, TensorShape):
        return {"shape": None if value.dims is None else [size.value for size in value.dims]}
    if value is Ellipsis:
        return {"ellipsis": True}
    raise _Unwritable


def _read(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind in ("list", "tuple"):
        items = [_read(item) for item in content]
        return items if kind == "list" else tuple(items)
    return _KINDS[kind](content)


_KINDS: dict[str, Callable[[Any], Any]] = {
    "slot": Slot,
    "dtype": DTYPES.__getitem__,
    "shape": TensorShape,
    "ellipsis": lambda content: Ellipsis,
}


def _flow_record(writer: Any, flow: Flow) -> dict[str, Any]:
    bodies = []
    for body in flow.bodies:
        inside = [*body.arguments, *body.operations]
        first = min(inside, key=lambda one: one.number).name if inside else None
        results = [writer.of(source) for source in body.results]
        bodies.append([first, [one.name for one in body.arguments], results])
    found: dict[str, Any] = {"flow": type(flow).__name__, "bodies": bodies}
    found["options"] = {name: getattr(flow, name) for name in _OPTIONS[type(flow)]}
    if isinstance(flow, While):
        known = flow.checked.items()
        found["checked"] = [[k, None if written is None else sorted(written)] for k, written in known]
    return found


def _given(flow: Flow) -> int:
    """How many inputs a loop is given before what its bodies capture."""
    if isinstance(flow, Repeat):
        return len(flow.names) + flow.arrays
    assert isinstance(flow, While)
    growing = 0 if isinstance(flow, Sizes) else len(flow.growing)
    return len(flow.names) + int(flow.limited) + growing


def is_known(text: str) -> bool:
    """Whether the function that computes an operation, by what its node says, is there."""
    module, name = json.loads(text).get("body", (None, None))
    if module is None:
        return True
    if module.startswith("twofold.static."):
        import_module(module)
    return (module, name) in BODIES


class Restorer:
    """Declares operations by what their nodes say; ``tensor`` finds a tensor, ``operation`` an operation by name."""

    def __init__(
        self, graph: Any, tensor: Callable[[str], Any], operation: Callable[[str], Operation]
    ) -> None:
        self._graph, self._tensor, self._operation = graph, tensor, operation
        self._unknown: dict[int, int] = {}

    def restore(self, op: str, name: str, inputs: list[Any], text: str) -> Operation:
        """The operation."""
        said = json.loads(text)
        sources = [source_of(value) for value in inputs]
        types = [self._type(*pair) for pair in said["types"]]
        host, wished = (frozenset(said.get(key, ())) for key in ("host", "wished"))
        if "flow" in said:
            made = self._flow(said, op, name, types, sources)
        elif "derivative" in said:
            made = self._derivative(said, op, name, types, sources)
        elif "body" in said:
            made = self._call(said, op, name, types, sources)
        else:
            made = self._graph.add(ARGUMENT, name, types, sources)
        made.host, made.wished = host, wished
        return made

    def _type(self, code: int, sizes: list[int] | None) -> TensorType:
        if sizes is None:
            return tensor_type(DTYPES[code], UNKNOWN_RANK)
        return tensor_type(DTYPES[code], tuple(size if size >= -1 else self._size(size) for size in sizes))

    def _size(self, number: int) -> int:
        """An unknown size, the same one for each number."""
        if number not in self._unknown:
            self._unknown[number] = new_unknown_size()
        return self._unknown[number]

    def _call(self, said: Any, op: str, name: str, types: list[TensorType], sources: list[Any]) -> Operation:
        module, qualname = said["body"]
        keywords = {key: _read(value) for key, value in said["keywords"].items()}
        arguments = tuple(_read(value) for value in said["arguments"])
        parts = {"body": BODIES[module, qualname], "arguments": arguments, "keywords": keywords}
        if "updates" in said:
            variables = tuple(self._operation(one).variable for one in said["updates"])
            parts |= {"updates": variables, "reads_state": said["reads_state"]}
        made: Operation = self._graph.add(op, name, types, sources, **parts)
        made.is_random, made.looks, made.gradient = said["random"], said["looks"], said["gradient"]
        return made

    def _derivative(
        self, said: Any, op: str, name: str, types: list[TensorType], sources: list[Any]
    ) -> Operation:
        options, stops = said["derivative"], [source_of(self._tensor(stop)) for stop in said["stops"]]
        between = operations_between(sources[: options["roots"]], set(stops))
        made: Operation = self._graph.add(
            op, name, types, sources, flow=Derivative(**options, stops=stops, between=between)
        )
        return made

    def _flow(self, said: Any, op: str, name: str, types: list[TensorType], sources: list[Any]) -> Operation:
        bodies = []
        for first, arguments, results in said["bodies"]:
            begin = self._graph.version if first is None else self._operation(first).number
            given = [self._operation(argument) for argument in arguments]
            bodies.append(Body(begin, given, [self._tensor(result) for result in results]))
        flow = _FLOWS[said["flow"]](**dict(zip(_BODIES[said["flow"]], bodies)), **said["options"])
        if isinstance(flow, While):
            flow.checked = {k: None if known is None else frozenset(known) for k, known in said["checked"]}
        return flow.declare(self._graph, op, name, types, sources[: _given(flow)])
