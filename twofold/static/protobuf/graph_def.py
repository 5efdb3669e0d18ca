"""The messages of graphs, with the numbers and names of TensorFlow's schema.

Sources: ``graph.proto``, ``node_def.proto``, ``attr_value.proto``, ``tensor.proto``, ``tensor_shape.proto``,
``types.proto`` and ``versions.proto`` of tensorflow/core/framework.
"""

from __future__ import annotations

import json
from typing import Any

import numpy

from twofold import dtypes
from twofold.dtypes import DType
from twofold.static.protobuf.messages import KINDS, Message, fields, message

_ROWS = [
    row.split()
    for row in (
        "float32 1 FLOAT float_val",
        "float64 2 DOUBLE double_val",
        "int32 3 INT32 int_val",
        "uint8 4 UINT8 int_val",
        "int16 5 INT16 int_val",
        "int8 6 INT8 int_val",
        "string 7 STRING string_val",
        "complex64 8 COMPLEX64 scomplex_val",
        "int64 9 INT64 int64_val",
        "bool_ 10 BOOL bool_val",
        "bfloat16 14 BFLOAT16 half_val",
        "uint16 17 UINT16 int_val",
        "complex128 18 COMPLEX128 dcomplex_val",
        "float16 19 HALF half_val",
        "uint32 22 UINT32 uint32_val",
        "uint64 23 UINT64 uint64_val",
    )
]
"""Dtypes, their numbers and names in messages, and the lists that hold their values."""
CODES: dict[DType, int] = {getattr(dtypes, name): int(code) for name, code, *_ in _ROWS}
DTYPES = {code: dtype for dtype, code in CODES.items()}
_LISTS = {getattr(dtypes, row[0]): row[3] for row in _ROWS}
TYPES = {0: "DT_INVALID", 20: "DT_RESOURCE", 21: "DT_VARIANT"} | {
    int(code): f"DT_{label}" for _, code, label, _ in _ROWS
}
KINDS["DataType"] = TYPES


class Dim(Message):
    """A size; -1 where it is not known."""

    FIELDS = fields("int size = 1; string name = 2")


class TensorShapeProto(Message):
    """The sizes of a tensor."""

    FIELDS = fields("repeated Dim dim = 2; bool unknown_rank = 3")
    Dim = Dim


class TensorProto(Message):
    """The values of a tensor: bytes, or lists whose last value stands for all that follow."""

    FIELDS = fields(
        "DataType dtype = 1; TensorShapeProto tensor_shape = 2; int version_number = 3; "
        "bytes tensor_content = 4; repeated float float_val = 5; repeated double double_val = 6; "
        "repeated int int_val = 7; repeated bytes string_val = 8; repeated float scomplex_val = 9; "
        "repeated int int64_val = 10; repeated bool bool_val = 11; repeated double dcomplex_val = 12; "
        "repeated int half_val = 13; repeated int uint32_val = 16; repeated int uint64_val = 17"
    )


AttrList = message(
    "AttrList",
    "A list as the value of an attribute.",
    "repeated bytes s = 2; repeated int i = 3; repeated float f = 4; repeated bool b = 5; "
    "repeated DataType type = 6; repeated TensorShapeProto shape = 7; repeated TensorProto tensor = 8",
)


class AttrValue(Message):
    """The value of an attribute of a node; a function and its attributes are kept as they are.

    >>> import twofold.static as tf
    >>> tf.AttrValue(i=3).WhichOneof("value")
    'i'
    """

    ListValue = AttrList
    FIELDS = fields(
        "oneof AttrList list = 1; oneof bytes s = 2; oneof int i = 3; oneof float f = 4; oneof bool b = 5; "
        "oneof DataType type = 6; oneof TensorShapeProto shape = 7; oneof TensorProto tensor = 8; "
        "oneof string placeholder = 9; oneof bytes func = 10"
    )


class NodeDef(Message):
    """One operation; ``input`` lists ``name``, ``name:index`` for a later output, and ``^name`` for a control input.

    >>> import twofold.static as tf
    >>> node = tf.NodeDef(name="y", op="Neg", input=["x"])
    >>> node.op, list(node.input)
    ('Neg', ['x'])
    """

    FIELDS = fields(
        "string name = 1; string op = 2; repeated string input = 3; string device = 4; map AttrValue attr = 5"
    )


VersionDef = message(
    "VersionDef",
    "Which versions of the schema wrote and can read a graph.",
    "int producer = 1; int min_consumer = 2; repeated int bad_consumers = 3",
)


class GraphDef(Message):
    """The operations of a graph; its functions are kept as they are.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default() as graph:
    ...     x = tf.placeholder(tf.float32, name="x")
    ...     y = tf.exp(x, name="y")
    >>> [(node.name, node.op, node.input) for node in graph.as_graph_def().node]
    [('x', 'Placeholder', []), ('y', 'Exp', ['x'])]
    >>> tf.GraphDef.FromString(graph.as_graph_def().SerializeToString()).node[1].attr["T"].type
    1
    """

    FIELDS = fields("repeated NodeDef node = 1; bytes library = 2; int version = 3; VersionDef versions = 4")


def shape_message(shape: Any) -> TensorShapeProto:
    """The message of sizes (negative where not known), or of an unknown rank for None."""
    if shape is None:
        return TensorShapeProto(unknown_rank=True)
    return TensorShapeProto(dim=[Dim(size=size if size >= 0 else -1) for size in shape])


def sizes_of_message(message: TensorShapeProto) -> list[int | None] | None:
    """The sizes that a message says, None where it leaves one open or the rank."""
    if message.unknown_rank:
        return None
    return [None if dim.size < 0 else dim.size for dim in message.dim]


def tensor_message(array: Any, dtype: DType) -> TensorProto:
    """The message of an array (of bytes objects for strings) of a dtype."""
    found = numpy.asarray(array)
    made = TensorProto(dtype=CODES[dtype], tensor_shape=shape_message(found.shape))
    if dtype is dtypes.string:
        made.string_val.extend(
            item.encode() if isinstance(item, str) else bytes(item) for item in found.ravel()
        )
    elif found.size == 1 and dtype.kind in "biuf" and dtype.itemsize != 2:
        getattr(made, _LISTS[dtype]).append(found.item())
    else:
        made.tensor_content = numpy.ascontiguousarray(found, dtype.numpy).tobytes()
    return made


def array_of_message(message: TensorProto) -> tuple[numpy.ndarray, DType]:
    """The array that a message says, and its dtype; raises ValueError where the values do not fit the shape."""
    dtype = DTYPES.get(message.dtype)
    if dtype is None:
        raise ValueError(f"a tensor of type {TYPES.get(message.dtype, message.dtype)} has no array")
    shape = [dim.size for dim in message.tensor_shape.dim]
    count = int(numpy.prod(shape, dtype=numpy.int64))
    if message.tensor_content:
        return numpy.frombuffer(message.tensor_content, dtype.numpy).reshape(shape), dtype
    values: Any = getattr(message, _LISTS[dtype])
    if dtype is dtypes.string:
        flat = numpy.empty(len(values), object)
        flat[:] = values
    elif dtype is dtypes.float16:
        flat = numpy.array(values, numpy.uint16).view(numpy.float16)
    elif dtype.kind == "c":
        flat = numpy.array(values[0::2]) + 1j * numpy.array(values[1::2])
    else:
        flat = numpy.array(values)
    if not flat.size and count:
        flat = numpy.array([b""], object) if dtype is dtypes.string else numpy.zeros(1)
    if flat.size < count:
        flat = numpy.concatenate([flat, numpy.repeat(flat[-1:], count - flat.size)])
    return flat[:count].reshape(shape).astype(object if dtype is dtypes.string else dtype.numpy), dtype


def message_of(graph_def: Any) -> GraphDef:
    """A message of ours, from one of ours or of TensorFlow's, or its bytes."""
    if isinstance(graph_def, GraphDef):
        return graph_def
    if isinstance(graph_def, (bytes, bytearray)):
        found: GraphDef = GraphDef.FromString(bytes(graph_def))
        return found
    if hasattr(graph_def, "SerializeToString"):
        found = GraphDef.FromString(graph_def.SerializeToString())
        return found
    raise TypeError(f"a {type(graph_def).__name__} is no GraphDef. Give a tf.GraphDef.")


OWN = "_twofold"
"""The attribute of a node that TensorFlow has no counterpart of: what it is, as JSON, see ``graph_def.own_nodes``."""


def nodes_named(node: NodeDef) -> list[str]:
    """The nodes that one needs beside its inputs, such as the bodies of a loop."""
    if OWN not in node.attr:
        return []
    said = json.loads(node.attr[OWN].s.decode())
    names = [*said.get("updates", ()), *said.get("stops", ())]
    for first, arguments, results in said.get("bodies", ()):
        names += [*([] if first is None else [first]), *arguments, *results]
    return [name.partition(":")[0] for name in names]
