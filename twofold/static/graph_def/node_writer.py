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
from twofold.dtypes import DType, float32, int32, int64, string
from twofold.ir.shape_inference import UNKNOWN_RANK
from twofold.static.graph.graph import Operation
from twofold.static.graph.graph_elements import Slot
from twofold.static.graph.inference import Source
from twofold.static.graph.string_table import decode
from twofold.static.graph_def.own_nodes import record
from twofold.static.protobuf.graph_def import (
    CODES,
    DTYPES,
    OWN,
    AttrValue,
    GraphDef,
    NodeDef,
    TensorProto,
    TensorShapeProto,
    VersionDef,
    shape_message,
    tensor_message,
)

_PRODUCER, _CONSUMER = 134, 12
"""The versions of the schema that TensorFlow 1.15 writes."""

EXPORTERS: dict[str, Callable[[Writer], Any]] = {}
"""What writes an operation, by its type."""

_UNTYPED = {"All", "Any", "Cast", "GatherNd", "GatherV2", "LogicalAnd", "LogicalNot", "LogicalOr"}
_UNTYPED |= {
    "PlaceholderWithDefault",
    "Range",
    "IsVariableInitialized",
    "ParseExample",
    "StringToHashBucketFast",
    "Where",
}
_UNTYPED |= {"LookupTableFindV2", "LookupTableImportV2", "LookupTableSizeV2", "InitializeTableFromTextFileV2"}
"""Nodes with inputs that have no attribute ``T``."""


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
    elif value and isinstance(value[0], DType):
        made.list.type.extend(CODES[item] for item in value)
    elif value and isinstance(value[0], TensorShapeProto):
        made.list.shape.extend(value)
    elif value and isinstance(value[0], bytes):
        made.list.s.extend(value)
    else:
        made.list.i.extend(int(item) for item in value)
        made.list.SetInParent()
    return made


def shape_of(tensor: Any) -> TensorShapeProto:
    """The message of the shape of a declared tensor."""
    sizes = tensor.type_.shape
    return shape_message(None if sizes == UNKNOWN_RANK else sizes)


class OtherArguments(Exception):
    """An operation has not the arguments of TensorFlow's of its type."""


class Writer:
    """Writes one operation after another into ``graph``."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        self.graph = GraphDef(versions=VersionDef(producer=_PRODUCER, min_consumer=_CONSUMER))
        self.operations = list(operations)
        self._taken = {operation.name for operation in self.operations}
        self._refs: dict[Source, str] = {}
        self._dtypes: dict[str, DType] = {}
        self._constants: dict[Any, str] = {}
        self.handles: dict[Any, str] = {}  # of tables
        self.operation: Operation

    def write(self) -> GraphDef:
        """The message of all operations."""
        for operation in self.operations:
            self.operation, self._constants = operation, {}
            before = len(self.graph.node)
            try:
                EXPORTERS.get(operation.type, other)(self)
            except OtherArguments:
                del self.graph.node[before:]
                other(self)
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
        self.need(name)
        return self.value(self.argument(name), dtype or self.dtype, name)

    def need(self, *names: str) -> None:
        """Raise OtherArguments for an operation of the same type that another function computes."""
        if any(name not in self.operation.keywords for name in names):
            raise OtherArguments

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
        owner, index = self.operation.sources[position]
        sizes = owner.outputs[index].type_.shape
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

    def cast(self, ref: str, dtype: DType, hint: str = "Cast") -> str:
        """An input, converted to a dtype."""
        return self.node("Cast", [ref], hint, dtype, SrcT=self.dtype_of(ref), DstT=dtype)

    def last(self, op: str, inputs: Sequence[str], **attrs: Any) -> None:
        """The node that has the name of the operation, and waits for what it waits for."""
        controls = [f"^{control.name}" for control in self.operation.control_inputs]
        found = self._add(self.operation.name, op, [*inputs, *controls], attrs)
        found.device = self.operation.device
        if isinstance(self.operation.gradient, str):
            found.attr["_gradient_op_type"].s = self.operation.gradient.encode()

    def _add(self, name: str, op: str, inputs: Sequence[str], attrs: dict[str, Any]) -> NodeDef:
        """A node; its attribute ``T`` is the dtype of its first input, unless it is given."""
        if inputs and inputs[0] in self._dtypes and op not in _UNTYPED:
            attrs = {"T": self._dtypes[inputs[0]], **attrs}
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
    """An operation that TensorFlow has no counterpart of: its own type, its inputs, and what it is."""
    operation = writer.operation
    dtype = operation.outputs[0].type_.dtype if operation.outputs else None
    writer.last(operation.type, writer.sources(), T=dtype, **{OWN: record(writer)})


def exports(*types: str) -> Callable[[Callable[[Writer], Any]], Callable[[Writer], Any]]:
    """Make a function the writer of operations of some types."""

    def enter(function: Callable[[Writer], Any]) -> Callable[[Writer], Any]:
        EXPORTERS.update(dict.fromkeys(types, function))
        return function

    return enter


def index_dtype(writer: Writer, ref: str) -> DType:
    """The dtype of an index or shape, which TensorFlow wants to be int32 or int64."""
    return int64 if writer.dtype_of(ref) is int64 else int32


Rule = Callable[[Writer, "list[str]"], Any]
"""What finds an attribute, given the inputs of the node."""


def row(types: str, inputs: str, **attributes: Any) -> None:
    """Operations of these types are nodes of the same type, but for an attribute ``op``.

    Args:
        types: The types.
        inputs: The parameters that are inputs, in their order; "#axis" is a shape, an axis or the like, "axis:int32"
            has this dtype, if it is a number, and "axis=0" this value, if none is given. "values*" is a list of
            inputs, and "*" stands for the tensors that the operation reads.
        attributes: Attributes: a rule, or a parameter's default where the value is that of the parameter of the same
            name.
    """

    def operands(writer: Writer, text: str) -> list[str]:
        if text == "*":
            return writer.sources()
        name, _, default = text.strip("#*").partition("=")
        name, _, kind = name.partition(":")
        if not default:
            writer.need(name)
        given = writer.argument(name, int(default) if default else None)
        if text[0] == "#":
            return [writer.sizes(name, given)]
        dtype = int32 if kind == "int32" else float32 if kind else writer.dtype
        return [writer.value(item, dtype, name) for item in (given if text[-1] == "*" else [given])]

    def found(writer: Writer, refs: list[str], name: str, rule: Any) -> Any:
        if callable(rule):
            return rule(writer, refs)
        given = writer.argument(name, rule)
        return type(rule)(rule if given is None else given)

    def write(writer: Writer) -> None:
        refs = [ref for text in inputs.split() for ref in operands(writer, text)]
        attrs = {name: found(writer, refs, name, rule) for name, rule in attributes.items()}
        writer.last(attrs.pop("op", writer.operation.type), refs, **attrs)

    exports(*types.split())(write)


def result(writer: Writer, refs: list[str]) -> DType:
    """The dtype of the result."""
    return writer.dtype


def of(position: int) -> Rule:
    """The dtype of an input."""
    return lambda writer, refs: writer.dtype_of(refs[position])


def index(position: int) -> Rule:
    """The dtype of an input that is an index or a shape."""
    return lambda writer, refs: index_dtype(writer, refs[position])


def count(writer: Writer, refs: list[str]) -> int:
    """The number of inputs."""
    return len(refs)


def graph_def_of(operations: Iterable[Operation], add_shapes: bool = False) -> GraphDef:
    """The message of some operations; with ``add_shapes`` the shapes of their results are attributes, too."""
    import_module("twofold.static.graph_def.export")
    import_module("twofold.static.graph_def.export_tables")

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
