"""Nodes of a ``GraphDef`` for the operations of a graph; which nodes, ``export`` says.

An operation whose parameters are numbers becomes a node with constants beside it, and one that TensorFlow has no
operation for several nodes, of which the last has its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any

import numpy

from twofold import _core
from twofold.dtypes import DType, int32, int64, string
from twofold.ir.shape_inference import UNKNOWN_RANK
from twofold.static.graph.graph import Operation
from twofold.static.graph.graph_elements import Slot
from twofold.static.graph.inference import Source
from twofold.static.protobuf.graph_def import (
    CODES,
    DTYPES,
    AttrValue,
    GraphDef,
    NodeDef,
    TensorProto,
    TensorShapeProto,
    VersionDef,
    shape_message,
    tensor_message,
)
from twofold.static.strings.string_table import decode

_PRODUCER, _CONSUMER = 134, 12
"""The versions of the schema that TensorFlow 1.15 writes."""

EXPORTERS: dict[str, Callable[[Writer], Any]] = {}
"""What writes an operation, by its type."""


def attribute(value: Any) -> AttrValue:
    """The message of an attribute."""
    made = AttrValue()
    if isinstance(value, bool):
        made.b = value
    elif isinstance(value, int):
        made.i = value
    elif isinstance(value, float):
        made.f = value
    elif isinstance(value, (str, bytes)):
        made.s = value.encode() if isinstance(value, str) else value
    elif isinstance(value, DType):
        made.type = CODES[value]
    elif isinstance(value, TensorShapeProto):
        made.shape.CopyFrom(value)
    elif isinstance(value, TensorProto):
        made.tensor.CopyFrom(value)
    else:
        made.list.i.extend(int(item) for item in value)
        made.list.SetInParent()
    return made


def shape_of(tensor: Any) -> TensorShapeProto:
    """The message of the shape of a declared tensor."""
    sizes = tensor.type_.shape
    return shape_message(None if sizes == UNKNOWN_RANK else sizes)


class Writer:
    """Writes one operation after another into ``graph``."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        self.graph = GraphDef(versions=VersionDef(producer=_PRODUCER, min_consumer=_CONSUMER))
        self.operations = list(operations)
        self._taken = {operation.name for operation in self.operations}
        self._refs: dict[Source, str] = {}
        self._dtypes: dict[str, DType] = {}
        self._constants: dict[Any, str] = {}
        self.operation: Operation

    def write(self) -> GraphDef:
        """The message of all operations."""
        for operation in self.operations:
            self.operation, self._constants = operation, {}
            EXPORTERS.get(operation.type, other)(self)
        return self.graph

    # What the operation is given

    def sources(self) -> list[str]:
        """The inputs of the operation."""
        return [self.of(source) for source in self.operation.sources]

    def of(self, source: Source) -> str:
        """What a tensor is called as an input of a node."""
        operation, index = source
        name = self._refs.get(source) or (f"{operation.name}:{index}" if index else operation.name)
        self._dtypes[name] = operation.outputs[index].type_.dtype
        return name

    def argument(self, name: str, default: Any = None) -> Any:
        """An argument of the operation, by the name of its parameter."""
        return self.operation.keywords.get(name, default)

    def value(self, given: Any, dtype: DType, hint: str = "value") -> str:
        """An argument as an input: a tensor, numbers of a dtype, or both in one list."""
        if isinstance(given, Slot):
            return self.of(self.operation.sources[given.index])
        if _holds_slot(given):
            parts = [self.value(item, dtype, f"{hint}/{k}") for k, item in enumerate(given)]
            return self.node("Pack", parts, hint, out=dtype, N=len(parts), T=dtype, axis=0)
        return self.constant(given, dtype, hint)

    def input(self, name: str, dtype: DType | None = None) -> str:
        """An argument as an input; numbers are of the dtype given, else of that of the result."""
        return self.value(self.argument(name), dtype or self.dtype, name)

    def sizes(self, name: str, default: Any = None) -> str:
        """An argument that is a shape, an axis or the like, as an int32 input (int64 where it is a tensor of that)."""
        given = self.argument(name, default)
        if hasattr(given, "dims"):
            given = [-1 if size.value is None else size.value for size in given.dims]
        return self.value(given, int32, name)

    @property
    def dtype(self) -> DType:
        """The dtype of the first result."""
        return self.operation.outputs[0].type_.dtype

    def rank(self, position: int = 0) -> int | None:
        """The number of axes of an input, if it is known."""
        sizes = self.operation.inputs[position].type_.shape
        return None if sizes == UNKNOWN_RANK else len(sizes)

    # Nodes

    def dtype_of(self, ref: str) -> DType:
        """The dtype of an input."""
        return self._dtypes[ref]

    def constant(self, value: Any, dtype: DType, hint: str = "Const") -> str:
        """A constant beside the operation."""
        array = (
            decode(value.detach().numpy()) if isinstance(value, _core.Tensor) and dtype is string else value
        )
        array = array.detach().numpy() if isinstance(array, _core.Tensor) else numpy.asarray(array)
        found = array.astype(object if dtype is string else dtype.numpy)
        key = (dtype, found.shape, found.tobytes() if dtype is not string else str(found.tolist()), hint)
        if key not in self._constants:
            message = tensor_message(found, dtype)
            self._constants[key] = self.node("Const", [], hint, out=dtype, dtype=dtype, value=message)
        return self._constants[key]

    def node(self, op: str, inputs: Sequence[str], hint: str, out: DType | None = None, **attrs: Any) -> str:
        """A node beside the operation's own; returns what it is called as an input."""
        name = f"{self.operation.name}/{hint}"
        count = 0
        while name in self._taken:
            count += 1
            name = f"{self.operation.name}/{hint}_{count}"
        self._taken.add(name)
        self._add(name, op, inputs, attrs)
        self._dtypes[name] = out or self._dtypes[inputs[0]]
        return name

    def last(self, op: str, inputs: Sequence[str], **attrs: Any) -> None:
        """The node that has the name of the operation, and waits for what it waits for."""
        controls = [f"^{control.name}" for control in self.operation.control_inputs]
        found = self._add(self.operation.name, op, [*inputs, *controls], attrs)
        found.device = self.operation.device
        if isinstance(self.operation.gradient, str):
            found.attr["_gradient_op_type"].s = self.operation.gradient.encode()

    def _add(self, name: str, op: str, inputs: Sequence[str], attrs: dict[str, Any]) -> NodeDef:
        made: NodeDef = self.graph.node.add(name=name, op=op, input=list(inputs))
        for key, value in attrs.items():
            if value is not None:
                made.attr[key].CopyFrom(attribute(value))
        return made

    def call(self, ref: str, index: int, dtype: DType | None = None) -> str:
        """A later output of a node."""
        name = f"{ref}:{index}"
        self._dtypes[name] = dtype or self._dtypes[ref]
        return name

    def rename(self, index: int, ref: str) -> None:
        """Let what reads an output of the operation read this."""
        self._refs[self.operation, index] = ref


def _holds_slot(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_holds_slot(item) for item in value)
    return isinstance(value, Slot)


def other(writer: Writer) -> None:
    """An operation that TensorFlow has no counterpart of: its own type, its inputs, the dtypes of its results."""
    operation = writer.operation
    attrs: dict[str, Any] = {"T": operation.outputs[0].type_.dtype} if operation.outputs else {}
    writer.last(operation.type, writer.sources(), **attrs)


def exports(*types: str) -> Callable[[Callable[[Writer], Any]], Callable[[Writer], Any]]:
    """Make a function the writer of operations of some types."""

    def enter(function: Callable[[Writer], Any]) -> Callable[[Writer], Any]:
        EXPORTERS.update(dict.fromkeys(types, function))
        return function

    return enter


def index_dtype(writer: Writer, ref: str) -> DType:
    """The dtype of an index or shape, which TensorFlow wants to be int32 or int64."""
    return int64 if writer.dtype_of(ref) is int64 else int32


def graph_def_of(operations: Iterable[Operation], add_shapes: bool = False) -> GraphDef:
    """The message of some operations; with ``add_shapes`` the shapes of their results are attributes, too."""
    import_module("twofold.static.graph_def.export")

    writer = Writer(operations)
    found = writer.write()
    if add_shapes:
        nodes = {node.name: node for node in found.node}
        for operation in writer.operations:
            shapes = nodes[operation.name].attr["_output_shapes"].list.shape
            shapes.extend(shape_of(output) for output in operation.outputs)
    return found


def value_of_attribute(message: AttrValue) -> Any:
    """What an attribute says, as ``Operation.get_attr`` returns it."""
    kind = message.WhichOneof("value")
    if kind == "type":
        return DTYPES.get(message.type)
    if kind != "list":
        return None if kind is None else getattr(message, kind)
    found: list[Any] = next((items for items in message.list._values.values() if items), [])
    return list(found)
