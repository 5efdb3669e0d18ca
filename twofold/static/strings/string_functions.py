"""Functions of strings under TensorFlow's names; Python computes them while the graph runs."""

from __future__ import annotations

import base64
import glob
import math
import os
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from twofold.dtypes import DType, bool_, float32, float64, int32, int64, string
from twofold.errors import ArgumentError, DTypeError, InvalidArgumentError
from twofold.ops.axes import given_once
from twofold.runtime.calls import failed
from twofold.static.api.op_functions import as_dtype, as_tensor, convert_to_tensor
from twofold.static.errors import NotFoundError
from twofold.static.functions.host_calls import in_python
from twofold.static.graph.docstrings import described, example
from twofold.static.graph.graph import Tensor


def known_sizes(*tensors: Tensor) -> tuple[int | None, ...] | None:
    """The shape that tensors broadcast to as far as it is known: None for an unknown rank or size."""
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
def string_to_number(
    string_tensor: Any = None, out_type: Any = float32, name: str | None = None, input: Any = None
) -> Any:
    """The number that each string spells; a run raises InvalidArgumentError for any other string.

    Args:
        string_tensor: a ``tf.string`` tensor.
        out_type: float32, float64, int32 or int64.
        name: the name of the operation.
        input: a later name of ``string_tensor``.
    """
    strings = given_once(string_tensor=string_tensor, input=input)
    tensor, dtype = as_string_tensor("string_to_number", strings), as_dtype(out_type)
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


def _counts_characters(what: str, unit: str) -> bool:
    """Whether a unit is that of characters and not of bytes; raises ArgumentError for another one."""
    if unit not in ("BYTE", "UTF8_CHAR"):
        raise failed(what, ArgumentError(f"unit is {unit!r}", "Give 'BYTE' or 'UTF8_CHAR'."))
    return unit == "UTF8_CHAR"


@example('tf.strings.length(["one", "three"])', "[3 5]")
def string_length(input: Any, name: str | None = None, unit: str = "BYTE") -> Any:
    """The length of each string, in bytes or, with ``unit="UTF8_CHAR"``, in characters."""
    tensor = as_string_tensor("string_length", input)
    count = (lambda value: len(value.decode())) if _counts_characters("string_length", unit) else len
    return in_python("StringLength", _each(count, int32), [tensor], [(int32, known_sizes(tensor))], name)[0]


def _element_by_element(
    type: str, own: str, change: Callable[[bytes], Any], text: str, given: str, result: str
) -> Callable[..., Any]:
    """The function of strings that ``change`` makes of each; its example is a call with ``given``."""

    def changed(input: Any, name: str | None = None) -> Any:
        tensor = as_string_tensor(own, input)
        return in_python(type, _each(change, string), [tensor], [(string, known_sizes(tensor))], name)[0]

    return described(changed, own, text, f"tf.{own}({given})", result)


string_strip = _element_by_element(
    "StringStrip",
    "string_strip",
    bytes.strip,
    "Each string without white space at its ends.",
    '[" a b "]',
    "[b'a b']",
)
string_lower = _element_by_element(
    "StringLower", "strings.lower", bytes.lower, "Each string with its letters small.", '["aB"]', "[b'ab']"
)
string_upper = _element_by_element(
    "StringUpper", "strings.upper", bytes.upper, "Each string with its letters large.", '["aB"]', "[b'AB']"
)
decode_base64 = _element_by_element(
    "DecodeBase64",
    "decode_base64",
    lambda text: base64.urlsafe_b64decode(text + b"=" * (-len(text) % 4)),
    "The bytes that each string of web-safe base64, padded or not, stands for.",
    '["aGk"]',
    "[b'hi']",
)


@example('tf.encode_base64(["hi"])', "[b'aGk']")
def encode_base64(input: Any, pad: bool = False, name: str | None = None) -> Any:
    """Each string in web-safe base64, with ``=`` up to a multiple of four letters if ``pad`` is true."""
    tensor = as_string_tensor("encode_base64", input)

    def written(text: bytes) -> bytes:
        found = base64.urlsafe_b64encode(text)
        return found if pad else found.rstrip(b"=")

    return in_python("EncodeBase64", _each(written, string), [tensor], [(string, known_sizes(tensor))], name)[
        0
    ]


@example('tf.regex_replace(["a1b22"], "[0-9]+", "-")', "[b'a-b-']")
def regex_replace(
    input: Any, pattern: str, rewrite: str, replace_global: bool = True, name: str | None = None
) -> Any:
    r"""Each string with what matches a regular expression replaced.

    Args:
        input: A tensor of strings.
        pattern: The regular expression.
        rewrite: What stands there instead; ``\1`` is the first group, ``\0`` all that matched.
        replace_global: Replace all matches, not only the first.
        name: Of the operation.
    """
    tensor = as_string_tensor("regex_replace", input)
    found, count = re.compile(pattern.encode()), 0 if replace_global else 1
    instead = re.sub(rb"\\0", rb"\\g<0>", rewrite.encode())
    body = _each(lambda text: found.sub(instead, text, count), string)
    return in_python("RegexReplace", body, [tensor], [(string, known_sizes(tensor))], name)[0]


@example('tf.strings.regex_full_match(["ab", "b"], "a.*")', "[ True False]")
def regex_full_match(input: Any, pattern: str, name: str | None = None) -> Any:
    """Whether a regular expression matches the whole of each string."""
    tensor = as_string_tensor("regex_full_match", input)
    found = re.compile(pattern.encode())
    body = _each(lambda text: found.fullmatch(text) is not None, bool_)
    return in_python("RegexFullMatch", body, [tensor], [(bool_, known_sizes(tensor))], name)[0]


@example('tf.reduce_join([["a", "b"], ["c", "d"]], 1, separator="-")', "[b'a-b' b'c-d']")
def reduce_join(
    inputs: Any,
    axis: Any = None,
    keep_dims: bool | None = None,
    separator: str = "",
    name: str | None = None,
    reduction_indices: Any = None,
    keepdims: bool | None = None,
) -> Any:
    """The strings along ``axis`` joined, of several axes along the first one first; all in order unless one is given.

    Args:
        inputs: A tensor of strings.
        axis: An axis or several.
        keep_dims: Former name of ``keepdims``.
        separator: What stands between two strings.
        name: Of the operation.
        reduction_indices: Former name of ``axis``.
        keepdims: Keep the axes at size 1.
    """
    tensor = as_string_tensor("reduce_join", inputs)
    along = given_once(axis=axis, reduction_indices=reduction_indices)
    kept = bool(given_once(keepdims=keepdims, keep_dims=keep_dims))
    between = separator.encode()

    def joined(value: Any) -> Any:
        array = numpy.asarray(value, dtype=object)
        given = range(array.ndim)[::-1] if along is None else numpy.atleast_1d(along).tolist()
        axes = [one % array.ndim for one in given][::-1]  # along the first one first
        rest = [one for one in range(array.ndim) if one not in axes]
        shape = [array.shape[one] for one in rest]
        rows = array.transpose([*rest, *axes]).reshape(math.prod(shape), -1)
        found = numpy.empty(len(rows), object)
        found[:] = [between.join(row) for row in rows]
        return found.reshape(
            [1 if one in axes else n for one, n in enumerate(array.shape)] if kept else shape
        )

    dims = known_sizes(tensor)
    shape: Any = None
    if dims is not None:
        gone = {
            one % len(dims) for one in numpy.atleast_1d(range(len(dims)) if along is None else along).tolist()
        }
        shape = [1 if one in gone else size for one, size in enumerate(dims) if kept or one not in gone]
    return in_python("ReduceJoin", joined, [tensor], [(string, shape)], name)[0]


@example('tf.substr(["hello", "world"], 1, 3)', "[b'ell' b'orl']")
def substr(input: Any, pos: Any, len: Any, name: str | None = None, unit: str = "BYTE") -> Any:
    """``len`` bytes of each string from ``pos`` on; a negative ``pos`` counts from the end.

    With ``unit="UTF8_CHAR"`` characters are counted.
    """
    tensor, characters = as_string_tensor("substr", input), _counts_characters("substr", unit)

    def cut(value: bytes, start: int, count: int) -> bytes:
        text: Any = value.decode() if characters else value
        size = text.__len__()
        if not -size <= start <= size:
            raise failed(
                "substr", ArgumentError(f"pos {start} in a string of length {size}", "Stay inside it.")
            )
        start += size if start < 0 else 0
        found = text[start : start + count]
        return found.encode() if characters else found

    given = [tensor, convert_to_tensor(pos), convert_to_tensor(len)]
    return in_python("Substr", _each(cut, string), given, [(string, known_sizes(*given))], name)[0]


@example('tf.decode_raw(tf.constant(b"abc"), tf.uint8)', "[97 98 99]")
def decode_raw(
    input_bytes: Any = None,
    out_type: Any = None,
    little_endian: bool = True,
    name: str | None = None,
    bytes: Any = None,
) -> Any:
    """The bytes of strings as numbers: one more axis, whose size is the length over the size of a number.

    Args:
        input_bytes: a ``tf.string`` tensor of strings of one length.
        out_type: the dtype of the numbers.
        little_endian: the order of the bytes of a number.
        name: the name of the operation.
        bytes: an older name of ``input_bytes``.
    """
    given = given_once(input_bytes=input_bytes, bytes=bytes)
    tensor, dtype = as_string_tensor("decode_raw", given), as_dtype(out_type)
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


def write_file(filename: Any, contents: Any, name: str | None = None) -> Any:
    """The operation that writes the string ``contents`` to a file, with the folders that it lies in.

    >>> import os, tempfile
    >>> import twofold.static as tf
    >>> path = os.path.join(tempfile.mkdtemp(), "new", "note")
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     session.run(tf.write_file(path, "hello"))
    >>> open(path).read()
    'hello'
    """

    def write(path: bytes, text: bytes) -> Any:
        os.makedirs(os.path.dirname(path) or b".", exist_ok=True)
        with open(path, "wb") as file:
            file.write(text)
        return True

    given = [as_string_tensor("write_file", filename), as_string_tensor("write_file", contents)]
    return in_python("WriteFile", write, given, [(bool_, ())], name)[0].op


def matching_files(pattern: Any, name: str | None = None) -> Any:
    """The names of the files that match a pattern of the shell, or one of several, in order.

    >>> import os, tempfile
    >>> import twofold.static as tf
    >>> folder = tempfile.mkdtemp()
    >>> for one in "ab":
    ...     open(os.path.join(folder, one), "w").close()
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     print(len(session.run(tf.matching_files(folder + "/*"))))
    2
    """

    def matched(patterns: Any) -> Any:
        flat = numpy.asarray(patterns, dtype=object).ravel()
        return numpy.array(sorted({path for one in flat for path in glob.glob(one)}), dtype=object)

    return in_python(
        "MatchingFiles", matched, [as_string_tensor("matching_files", pattern)], [(string, [None])], name
    )[0]


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
        try:
            with open(path, "rb") as file:
                return file.read()
        except FileNotFoundError:
            what = f"read_file: {os.fsdecode(path)}; No such file or directory"
            raise NotFoundError(what, "Give the path of a file.") from None

    return in_python("ReadFile", read, [as_string_tensor("read_file", filename)], [(string, ())], name)[0]
