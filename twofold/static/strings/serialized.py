"""Tensors and texts as strings: messages, compressed bytes, and values put into a template."""

from __future__ import annotations

import gzip
import zlib
from typing import Any

import numpy

from twofold.dtypes import int64, string
from twofold.errors import InvalidArgumentError
from twofold.ops.axes import given_once
from twofold.static.api.op_functions import as_dtype, convert_to_tensor, refuse
from twofold.static.functions.host_calls import in_python
from twofold.static.functions.printing import value_text
from twofold.static.graph.docstrings import example
from twofold.static.graph_util import make_ndarray, make_tensor_proto
from twofold.static.protobuf.graph_def import TensorProto
from twofold.static.sparse import SparseTensor
from twofold.static.strings.string_functions import as_string_tensor, known_sizes


@example("tf.io.parse_tensor(tf.io.serialize_tensor([1, 2]), tf.int32)", "[1 2]")
def serialize_tensor(tensor: Any, name: str | None = None) -> Any:
    """A tensor as a string: the message ``TensorProto``."""
    given = convert_to_tensor(tensor)
    write = lambda array: numpy.array(make_tensor_proto(array).SerializeToString(), object)
    return in_python("SerializeTensor", write, [given], [(string, ())], name)[0]


def parse_tensor(serialized: Any, out_type: Any, name: str | None = None) -> Any:
    """The tensor of a string that ``serialize_tensor`` made; a run raises InvalidArgumentError for another dtype.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     print(session.run(tf.io.parse_tensor(tf.io.serialize_tensor([0.5]), tf.float32)))
    [0.5]
    """
    wanted = as_dtype(out_type)

    def read(text: Any) -> Any:
        found = make_ndarray(TensorProto.FromString(bytes(text.item() if hasattr(text, "item") else text)))
        if wanted is not string and found.dtype != wanted.numpy:
            what = f"parse_tensor: the string holds {found.dtype}, and {wanted.name} is asked for"
            raise InvalidArgumentError(what, "Ask for its dtype.")
        return found

    return in_python(
        "ParseTensor", read, [as_string_tensor("parse_tensor", serialized)], [(wanted, None)], name
    )[0]


@example("tf.io.decode_compressed(tf.constant(b'as it is'))", "b'as it is'")
def decode_compressed(bytes: Any, compression_type: str = "", name: str | None = None) -> Any:
    """Each string decompressed: ``compression_type`` is "ZLIB", "GZIP" or nothing."""
    readers = {"": lambda text: text, "ZLIB": zlib.decompress, "GZIP": gzip.decompress}
    if compression_type not in readers:
        raise ValueError(f"decode_compressed: {compression_type!r} is none of {list(readers)}.")
    tensor = as_string_tensor("decode_compressed", bytes)

    def read(array: Any) -> Any:
        flat = [readers[compression_type](text) for text in numpy.ravel(array)]
        made = numpy.empty(len(flat), object)
        made[:] = flat
        return made.reshape(numpy.shape(array))

    return in_python("DecodeCompressed", read, [tensor], [(string, known_sizes(tensor))], name)[0]


@example("tf.strings.format('{} of {}', (tf.constant([1, 2]), 3))", "b'[1 2] of 3'")
def string_format(
    template: str, inputs: Any, placeholder: str = "{}", summarize: int = 3, name: str | None = None
) -> Any:
    """``template`` with a value in each ``placeholder``, as ``tf.print`` shows it.

    Raises ValueError where there are not as many values as placeholders.
    """
    given = [convert_to_tensor(one) for one in (inputs if isinstance(inputs, (list, tuple)) else [inputs])]
    pieces = template.split(placeholder)
    if len(pieces) != len(given) + 1:
        raise ValueError(f"strings.format: {len(given)} values for {len(pieces) - 1} placeholders.")

    def write(*arrays: Any) -> Any:
        texts = [*[value_text(array, summarize) for array in arrays], ""]
        return numpy.array("".join(piece + text for piece, text in zip(pieces, texts)).encode(), object)

    return in_python("StringFormat", write, given, [(string, ())], name)[0]


@example("tf.strings.bytes_split(tf.constant(b'abc'))", "[b'a' b'b' b'c']")
def bytes_split(input: Any, name: str | None = None) -> Any:
    """The bytes of a string, each a string."""
    tensor = as_string_tensor("bytes_split", input)
    if tensor.type_.ndim:
        raise ValueError("bytes_split: several strings have rows of different sizes. Give one string.")

    def split(text: Any) -> Any:
        whole = text.item() if hasattr(text, "item") else text
        return numpy.array([whole[k : k + 1] for k in range(len(whole))], object)

    return in_python("BytesSplit", split, [tensor], [(string, (None,))], name)[0]


@example(
    "found = tf.strings.split(tf.constant(['a  b', 'c']))",
    "found.values",
    "[b'a' b'b' b'c']",
)
def split(
    input: Any = None,
    sep: str | None = None,
    maxsplit: int = -1,
    result_type: str = "SparseTensor",
    source: Any = None,
    name: str | None = None,
) -> SparseTensor:
    """The parts of each string, as a sparse tensor with a row for each string.

    Args:
        input: A vector of strings, or one string.
        sep: What stands between parts, which may be empty; without it they are separated by white space.
        maxsplit: How often a string is split at most; -1 for no limit.
        result_type: "SparseTensor"; anything else raises.
        source: An older name of ``input``.
        name: That of the operation.
    """
    refuse("strings.split", **{f"result_type={result_type!r}": result_type != "SparseTensor"})
    tensor = as_string_tensor("strings.split", given_once(input=input, source=source))
    between = sep.encode() if sep else None

    def parts(lines: Any) -> list[Any]:
        rows = [line.split(between, maxsplit) for line in numpy.ravel(lines)]
        indices = [(row, column) for row, found in enumerate(rows) for column in range(len(found))]
        values = numpy.array([part for found in rows for part in found] or [b""], object)[: len(indices)]
        width = max(map(len, rows), default=0)
        positions = numpy.array(indices, numpy.int64).reshape(-1, 2)
        return [positions, values, numpy.array([len(rows), width], numpy.int64)]

    results: Any = [(int64, (None, 2)), (string, (None,)), (int64, (2,))]
    return SparseTensor(*in_python("StringSplitV2", parts, [tensor], results, name))
