"""Functions of strings under TensorFlow's names; Python computes them while the graph runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from twofold.dtypes import DType, float32, float64, int32, int64, string
from twofold.errors import ArgumentError, DTypeError, InvalidArgumentError
from twofold.runtime.calls import failed
from twofold.static.api.op_functions import as_dtype, as_tensor, convert_to_tensor
from twofold.static.functions.host_calls import in_python
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import Tensor


def known_sizes(*tensors: Tensor) -> tuple[int | None, ...] | None:
    """The shape that tensors broadcast to as far as it is known: None for an unknown rank, or in place of a size."""
    found: list[int | None] = []
    for tensor in tensors:
        dims = tensor.get_shape().dims
        if dims is None:
            return None
        sizes: list[int | None] = [size.value for size in dims]
        found = [*[1] * (len(sizes) - len(found)), *found]
        for axis, size in enumerate(sizes, len(found) - len(sizes)):
            if found[axis] == 1 or (found[axis] is None and size not in (None, 1)):
                found[axis] = size
    return tuple(found)


def as_string_tensor(name: str, value: Any) -> Tensor:
    tensor = convert_to_tensor(value, None if isinstance(as_tensor(value), Tensor) else string)
    if tensor.dtype is not string:
        raise failed(
            name, DTypeError(f"takes strings, not {tensor.dtype.name}", "Give it a tf.string tensor.")
        )
    return tensor


def _each(function: Callable[..., Any], result: DType) -> Callable[..., Any]:
    """A function of arrays, whose operands are broadcast, from one of elements."""

    def mapped(*arrays: Any) -> Any:
        given = numpy.broadcast_arrays(*[numpy.asarray(array, dtype=object) for array in arrays])
        found = numpy.empty(given[0].shape, object if result is string else result.numpy)
        for index in numpy.ndindex(found.shape):
            found[index] = function(*[array[index] for array in given])
        return found

    return mapped


@example('tf.string_join(["a", tf.constant(["b", "c"])], separator="-")', "[b'a-b' b'a-c']")
def string_join(inputs: Sequence[Any], separator: str = "", name: str | None = None) -> Any:
    """The strings of ``inputs``, element by element, joined with ``separator`` between them.

    Args:
        inputs: ``tf.string`` tensors or strings of one shape; scalars go with every element.
        separator: what stands between two strings.
        name: the name of the operation.
    """
    tensors = [as_string_tensor("string_join", value) for value in inputs]
    between = separator.encode()
    join = _each(lambda *parts: between.join(parts), string)
    return in_python("StringJoin", join, tensors, [(string, known_sizes(*tensors))], name)[0]


@example("tf.as_string([1.5, 2.25], precision=1)", "[b'1.5' b'2.2']")
def as_string(
    input: Any,
    precision: int = -1,
    scientific: bool = False,
    shortest: bool = False,
    width: int = -1,
    fill: str = "",
    name: str | None = None,
) -> Any:
    """Each number or boolean as a string, as C's ``printf`` writes it.

    Args:
        input: numbers or booleans.
        precision: digits after the point of floating numbers (-1: six).
        scientific: use ``%e``.
        shortest: use ``%g``; not together with ``scientific``.
        width: the least number of characters (-1: as many as needed).
        fill: ``"0"``, ``" "``, ``"+"``, ``"-"`` or nothing: the flag of the format.
        name: the name of the operation.
    """
    tensor = convert_to_tensor(input)
    if scientific and shortest:
        raise failed("as_string", ArgumentError("both scientific and shortest are chosen", "Choose one."))
    if len(fill) > 1:
        raise failed("as_string", ArgumentError(f"fill is {fill!r}", "Give one character or none."))
    flags = fill + (str(width) if width > -1 else "")
    if tensor.dtype.kind == "f":
        digits = f".{precision}" if precision > -1 else ""
        letter = "e" if scientific else "g" if shortest else "f"
        write = lambda value: (f"%{flags}{digits}{letter}" % value).encode()
    elif tensor.dtype.kind == "b":
        write = lambda value: b"true" if value else b"false"
    else:
        write = lambda value: (f"%{flags}d" % value).encode()
    return in_python("AsString", _each(write, string), [tensor], [(string, known_sizes(tensor))], name)[0]


@example('tf.string_to_number(["1.5", "-2"])', "[ 1.5 -2. ]")
def string_to_number(string_tensor: Any, out_type: Any = float32, name: str | None = None) -> Any:
    """The number that each string spells; a run raises InvalidArgumentError for any other string.

    Args:
        string_tensor: a ``tf.string`` tensor.
        out_type: float32, float64, int32 or int64.
        name: the name of the operation.
    """
    tensor, dtype = as_string_tensor("string_to_number", string_tensor), as_dtype(out_type)
    if dtype not in (float32, float64, int32, int64):
        raise failed("string_to_number", DTypeError(f"out_type is {dtype.name}", "Use float32 or int32."))

    def parse(text: bytes) -> Any:
        try:
            return float(text) if dtype.kind == "f" else int(text)
        except ValueError:
            what = f"string_to_number: {text!r} spells no {dtype.name}"
            raise InvalidArgumentError(what, "Give strings of numbers.") from None

    found = in_python("StringToNumber", _each(parse, dtype), [tensor], [(dtype, known_sizes(tensor))], name)
    return found[0]


@example('tf.strings.length(["one", "three"])', "[3 5]")
def string_length(input: Any, name: str | None = None, unit: str = "BYTE") -> Any:
    """The length of each string, in bytes or, with ``unit="UTF8_CHAR"``, in characters."""
    tensor = as_string_tensor("string_length", input)
    if unit not in ("BYTE", "UTF8_CHAR"):
        raise failed("string_length", ArgumentError(f"unit is {unit!r}", "Give 'BYTE' or 'UTF8_CHAR'."))
    count = len if unit == "BYTE" else lambda value: len(value.decode())
    return in_python("StringLength", _each(count, int32), [tensor], [(int32, known_sizes(tensor))], name)[0]


@example('tf.substr(["hello", "world"], 1, 3)', "[b'ell' b'orl']")
def substr(input: Any, pos: Any, len: Any, name: str | None = None) -> Any:
    """``len`` bytes of each string from ``pos`` on; a negative ``pos`` counts from the end."""
    tensor = as_string_tensor("substr", input)

    def cut(text: bytes, start: int, count: int) -> bytes:
        size = text.__len__()
        if not -size <= start <= size:
            raise failed(
                "substr", ArgumentError(f"pos {start} in a string of {size} bytes", "Stay inside it.")
            )
        start += size if start < 0 else 0
        return text[start : start + count]

    given = [tensor, convert_to_tensor(pos), convert_to_tensor(len)]
    return in_python("Substr", _each(cut, string), given, [(string, known_sizes(*given))], name)[0]


@example('tf.decode_raw(tf.constant(b"abc"), tf.uint8)', "[97 98 99]")
def decode_raw(input_bytes: Any, out_type: Any, little_endian: bool = True, name: str | None = None) -> Any:
    """The bytes of strings as numbers: one more axis, whose size is the length over the size of a number.

    Args:
        input_bytes: a ``tf.string`` tensor of strings of one length.
        out_type: the dtype of the numbers.
        little_endian: the order of the bytes of a number.
        name: the name of the operation.
    """
    tensor, dtype = as_string_tensor("decode_raw", input_bytes), as_dtype(out_type)
    order = dtype.numpy.newbyteorder("<" if little_endian else ">")

    def read(strings: Any) -> Any:
        array = numpy.asarray(strings, dtype=object)
        lengths = {len(item) for item in array.flat}
        if len(lengths) > 1 or any(length % dtype.itemsize for length in lengths):
            what = f"strings of {sorted(lengths)} bytes as {dtype.name}"
            raise failed("decode_raw", ArgumentError(what, "Give strings of one length, whole numbers long."))
        numbers = numpy.frombuffer(b"".join(array.flat), order).astype(dtype.numpy)
        return numbers.reshape(*array.shape, -1 if array.size else 0)

    sizes = known_sizes(tensor)
    return in_python("DecodeRaw", read, [tensor], [(dtype, None if sizes is None else (*sizes, None))], name)[
        0
    ]


def read_file(filename: Any, name: str | None = None) -> Any:
    """The bytes of a file as a ``tf.string`` scalar; a run raises NotFoundError where there is none.

    >>> import os, tempfile
    >>> import twofold.static as tf
    >>> path = os.path.join(tempfile.mkdtemp(), "note")
    >>> _ = open(path, "w").write("hello")
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     print(session.run(tf.read_file(path)))
    b'hello'
    """

    def read(path: bytes) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    return in_python("ReadFile", read, [as_string_tensor("read_file", filename)], [(string, ())], name)[0]
