"""The messages of graphs, with the numbers and names of TensorFlow's schema.

Sources: ``graph.proto``, ``node_def.proto``, ``attr_value.proto``, ``tensor.proto``, ``tensor_shape.proto``,
``types.proto`` and ``versions.proto`` of tensorflow/core/framework.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy

from twofold import dtypes
from twofold.dtypes import DType
from twofold.static.protobuf.messages import Field, Message

CODES: dict[DType, int] = {
    dtypes.float32: 1,
    dtypes.float64: 2,
    dtypes.int32: 3,
    dtypes.uint8: 4,
    dtypes.int16: 5,
    dtypes.int8: 6,
    dtypes.string: 7,
    dtypes.complex64: 8,
    dtypes.int64: 9,
    dtypes.bool_: 10,
    dtypes.bfloat16: 14,
    dtypes.uint16: 17,
    dtypes.complex128: 18,
    dtypes.float16: 19,
    dtypes.uint32: 22,
    dtypes.uint64: 23,
}
"""Numbers of dtypes in messages."""
DTYPES = {code: dtype for dtype, code in CODES.items()}
_NAMES = {
    dtypes.float16: "HALF",
    dtypes.float32: "FLOAT",
    dtypes.float64: "DOUBLE",
    dtypes.bool_: "BOOL",
    dtypes.string: "STRING",
}
TYPES = {0: "DT_INVALID", 20: "DT_RESOURCE", 21: "DT_VARIANT"} | {
    code: f"DT_{_NAMES.get(dtype, dtype.name.upper())}" for dtype, code in CODES.items()
}


class Dim(Message):
    """A size; -1 where it is not known."""

    FIELDS: ClassVar[dict[str, Field]] = {"size": Field(1, "int"), "name": Field(2, "string")}


class TensorShapeProto(Message):
    """The sizes of a tensor."""

    FIELDS: ClassVar[dict[str, Field]] = {"dim": Field(2, Dim, True), "unknown_rank": Field(3, "bool")}
    Dim = Dim


class TensorProto(Message):
    """The values of a tensor: bytes, or lists whose last value stands for all that follow."""

    FIELDS: ClassVar[dict[str, Field]] = {
        "dtype": Field(1, TYPES),
        "tensor_shape": Field(2, TensorShapeProto),
        "version_number": Field(3, "int"),
        "tensor_content": Field(4, "bytes"),
        "float_val": Field(5, "float", True),
        "double_val": Field(6, "double", True),
        "int_val": Field(7, "int", True),
        "string_val": Field(8, "bytes", True),
        "scomplex_val": Field(9, "float", True),
        "int64_val": Field(10, "int", True),
        "bool_val": Field(11, "bool", True),
        "dcomplex_val": Field(12, "double", True),
        "half_val": Field(13, "int", True),
        "uint32_val": Field(16, "int", True),
        "uint64_val": Field(17, "int", True),
    }


class AttrList(Message):
    """A list as the value of an attribute."""

    FIELDS: ClassVar[dict[str, Field]] = {
        "s": Field(2, "bytes", True),
        "i": Field(3, "int", True),
        "f": Field(4, "float", True),
        "b": Field(5, "bool", True),
        "type": Field(6, TYPES, True),
        "shape": Field(7, TensorShapeProto, True),
        "tensor": Field(8, TensorProto, True),
    }


class AttrValue(Message):
    """The value of an attribute of a node.

    >>> import twofold.static as tf
    >>> tf.AttrValue(i=3).WhichOneof("value")
    'i'
    """

    ListValue = AttrList
    FIELDS: ClassVar[dict[str, Field]] = {
        "list": Field(1, AttrList, oneof=True),
        "s": Field(2, "bytes", oneof=True),
        "i": Field(3, "int", oneof=True),
        "f": Field(4, "float", oneof=True),
        "b": Field(5, "bool", oneof=True),
        "type": Field(6, TYPES, oneof=True),
        "shape": Field(7, TensorShapeProto, oneof=True),
        "tensor": Field(8, TensorProto, oneof=True),
        "placeholder": Field(9, "string", oneof=True),
        "func": Field(10, "bytes", oneof=True),  # a function and its attributes, kept as they are
    }


class NodeDef(Message):
    """One operation; ``input`` lists ``name``, ``name:index`` for a later output, and ``^name`` for a control input.

    >>> import twofold.static as tf
    >>> node = tf.NodeDef(name="y", op="Neg", input=["x"])
    >>> node.op, list(node.input)
    ('Neg', ['x'])
    """

    FIELDS: ClassVar[dict[str, Field]] = {
        "name": Field(1, "string"),
        "op": Field(2, "string"),
        "input": Field(3, "string", True),
        "device": Field(4, "string"),
        "attr": Field(5, AttrValue, map=True),
    }


class VersionDef(Message):
    """Which versions of the schema wrote and can read a graph."""

    FIELDS: ClassVar[dict[str, Field]] = {
        "producer": Field(1, "int"),
        "min_consumer": Field(2, "int"),
        "bad_consumers": Field(3, "int", True),
    }


class GraphDef(Message):
    """The operations of a graph.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default() as graph:
    ...     x = tf.placeholder(tf.float32, name="x")
    ...     y = tf.exp(x, name="y")
    >>> [(node.name, node.op, node.input) for node in graph.as_graph_def().node]
    [('x', 'Placeholder', []), ('y', 'Exp', ['x'])]
    >>> tf.GraphDef.FromString(graph.as_graph_def().SerializeToString()).node[1].attr["T"].type
    1
    """

    FIELDS: ClassVar[dict[str, Field]] = {
        "node": Field(1, NodeDef, True),
        "library": Field(2, "bytes"),  # functions, kept as they are
        "version": Field(3, "int"),
        "versions": Field(4, VersionDef),
    }


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
        getattr(made, _LISTS.get(dtype, "int_val")).append(found.item())
    else:
        made.tensor_content = numpy.ascontiguousarray(found, dtype.numpy).tobytes()
    return made


_LISTS = {
    dtypes.float32: "float_val",
    dtypes.float64: "double_val",
    dtypes.int64: "int64_val",
    dtypes.bool_: "bool_val",
    dtypes.uint32: "uint32_val",
    dtypes.uint64: "uint64_val",
    dtypes.float16: "half_val",
    dtypes.bfloat16: "half_val",
    dtypes.complex64: "scomplex_val",
    dtypes.complex128: "dcomplex_val",
    dtypes.string: "string_val",
}


def array_of_message(message: TensorProto) -> tuple[numpy.ndarray, DType]:
    """The array that a message says, and its dtype; raises ValueError where the values do not fit the shape."""
    dtype = DTYPES.get(message.dtype)
    if dtype is None:
        raise ValueError(f"a tensor of type {TYPES.get(message.dtype, message.dtype)} has no array")
    shape = [dim.size for dim in message.tensor_shape.dim]
    count = int(numpy.prod(shape, dtype=numpy.int64))
    if message.tensor_content:
        return numpy.frombuffer(message.tensor_content, dtype.numpy).reshape(shape), dtype
    values: Any = getattr(message, _LISTS.get(dtype, "int_val"))
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
