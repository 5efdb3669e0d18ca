"""Serialised examples as tensors: ``tf.parse_example`` and the kinds of features that it reads."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy

from twofold.dtypes import DType, float32, int64, string
from twofold.errors import ArgumentError, InvalidArgumentError
from twofold.runtime.calls import failed
from twofold.static.api.op_functions import as_dtype
from twofold.static.functions.host_calls import in_python
from twofold.static.graph.string_table import bytes_array
from twofold.static.graph.tensor_shape import TensorShape
from twofold.static.protobuf.example import Example, Feature
from twofold.static.sparse import SparseTensor
from twofold.static.strings.string_functions import as_string_tensor


class FixedLenFeature(NamedTuple):
    """A feature of one shape in every example, as a dense tensor; without a ``default_value`` it must be there.

    >>> import twofold.static as tf
    >>> tf.FixedLenFeature([], tf.int64).default_value is None
    True
    """

    shape: Any
    dtype: Any
    default_value: Any = None


class VarLenFeature(NamedTuple):
    """A feature of any number of values, as a ``SparseTensor``.

    >>> import twofold.static as tf
    >>> tf.VarLenFeature(tf.int64).dtype.name
    'int64'
    """

    dtype: Any


class FixedLenSequenceFeature(NamedTuple):
    """A feature of any number of values of one shape, padded with ``default_value`` (None: zero) to the longest.

    ``allow_missing`` must be true.

    >>> import twofold.static as tf
    >>> tf.FixedLenSequenceFeature([], tf.int64, allow_missing=True).shape
    []
    """

    shape: Any
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None


_LISTS = {string: "bytes_list", float32: "float_list", int64: "int64_list"}
_OFFERED = (FixedLenFeature, VarLenFeature, FixedLenSequenceFeature)


def _array(values: Sequence[Any], dtype: DType) -> Any:
    return bytes_array(values) if dtype is string else numpy.asarray(values, dtype.numpy)


class Column:
    """How one feature is read: a table of the values of each example becomes arrays."""

    def __init__(self, what: str, name: str, feature: Any) -> None:
        self.what, self.name, self.feature = what, name, feature
        self.dtype: DType = as_dtype(feature.dtype)
        if self.dtype not in _LISTS:
            raise self._refused(f"a dtype of {self.dtype.name}", "Use string, float32 or int64, and tf.cast.")
        self.fixed = isinstance(feature, FixedLenFeature)
        self.sparse = isinstance(feature, VarLenFeature)
        self.shape = [] if self.sparse else TensorShape(feature.shape).as_list()
        if isinstance(feature, FixedLenSequenceFeature) and not feature.allow_missing:
            raise self._refused("allow_missing=False", "Set it: missing values are the default value.")
        if None in self.shape:
            raise self._refused(f"the shape {self.shape}", "Give sizes that are known.")
        self.size = math.prod(size or 0 for size in self.shape)

    def _refused(self, problem: str, fix: str) -> Exception:
        return failed(self.what, InvalidArgumentError(f"the feature {self.name!r} has {problem}", fix))

    def types(self, rows: Sequence[int | None]) -> list[tuple[DType, Sequence[int | None]]]:
        """The dtypes and shapes of the arrays."""
        if self.sparse:
            return [(int64, (None, len(rows) + 1)), (self.dtype, (None,)), (int64, (len(rows) + 1,))]
        return [(self.dtype, (*rows, *([] if self.fixed else [None]), *self.shape))]

    def values(self, example: Any) -> list[Any] | None:
        """The values of the feature in an example; None where it is missing."""
        return self.values_of(example.features.feature.get(self.name))

    def values_of(self, found: Any) -> list[Any] | None:
        """The values of a feature, which may be missing."""
        kind = None if found is None else Feature.WhichOneof(found, "kind")
        if found is None or kind is None:
            return None
        if kind != _LISTS[self.dtype]:
            problem = f"values in {kind}, and {self.dtype.name} is asked for"
            raise self._refused(problem, "Ask for the dtype that was written.")
        return list(getattr(found, kind).value)

    def arrays(self, rows: Sequence[list[Any] | None], single: bool) -> list[Any]:
        """The arrays of all examples; of a single one without the axis of examples."""
        if self.sparse:
            return self._sparse([row or [] for row in rows], single)
        made = self._whole(rows) if self.fixed else self._padded([list(row or []) for row in rows])
        return [made[0] if single else made]

    def _whole(self, rows: Sequence[list[Any] | None]) -> Any:
        blank = self.feature.default_value
        given = [] if blank is None else list(numpy.ravel(blank))
        flat: list[Any] = []
        for k, row in enumerate(rows):
            values = row if row is not None else given * self.size if len(given) == 1 else given
            if len(values) != self.size or (row is None and blank is None):
                found = "no values" if row is None else f"{len(values)} values"
                problem = f"{found} in example {k}, and the shape {self.shape}"
                raise self._refused(problem, "Give the shape that was written, or a default value.")
            flat += values
        return _array(flat, self.dtype).reshape(len(rows), *self.shape)

    def _padded(self, rows: list[list[Any]]) -> Any:
        blank = self.feature.default_value
        fill = blank if blank is not None else (b"" if self.dtype is string else 0)
        steps = max((len(row) for row in rows), default=0) // max(self.size, 1)
        for k, row in enumerate(rows):
            if len(row) % max(self.size, 1):
                problem = f"{len(row)} values in example {k}, which are no whole steps of shape {self.shape}"
                raise self._refused(problem, "Give the shape that was written.")
            row.extend([fill] * (steps * self.size - len(row)))
        flat = _array([value for row in rows for value in row], self.dtype)
        return flat.reshape(len(rows), steps, *self.shape)

    def _sparse(self, rows: Sequence[Sequence[Any]], single: bool) -> list[Any]:
        positions = [[k, j] for k, row in enumerate(rows) for j in range(len(row))]
        indices = numpy.asarray(positions, numpy.int64).reshape(-1, 2)
        sizes = [len(rows), max((len(row) for row in rows), default=0)]
        flat = _array([value for row in rows for value in row], self.dtype)
        if single:
            return [indices[:, 1:], flat, numpy.asarray(sizes[1:], numpy.int64)]
        return [indices, flat, numpy.asarray(sizes, numpy.int64)]


def _parsed(what: str, serialized: Any, features: Any, name: str | None, single: bool) -> dict[str, Any]:
    if not isinstance(features, Mapping) or not features:
        fix = "Give a dict of FixedLenFeature, VarLenFeature or FixedLenSequenceFeature."
        raise failed(what, ArgumentError("there are no features", fix))
    columns = []
    for key in sorted(features):
        if not isinstance(features[key], _OFFERED):
            fix = "Use FixedLenFeature, VarLenFeature or FixedLenSequenceFeature."
            raise failed(what, ArgumentError(f"the feature {key!r} is {features[key]!r}", fix))
        columns.append(Column(what, key, features[key]))
    texts = as_string_tensor(what, serialized)
    dims = texts.get_shape().dims
    if dims is not None and len(dims) != (0 if single else 1):
        raise failed(what, ArgumentError(f"the examples are of shape {texts.get_shape()}", _WANTED[single]))
    rows: list[int | None] = [] if single or dims is None else [dims[0].value]
    rows = rows if single else rows or [None]

    sparse, dense = ([one for one in columns if one.sparse is kind] for kind in (True, False))

    def in_order(parts: Mapping[Column, Sequence[Any]]) -> list[Any]:
        """The indices of all sparse features, then their values, then their shapes, then the dense features."""
        return [parts[one][k] for k in range(3) for one in sparse] + [parts[one][0] for one in dense]

    def read(given: Any) -> list[Any]:
        examples = [Example.FromString(text) for text in ([given] if single else list(given))]
        return in_order(
            {one: one.arrays([one.values(example) for example in examples], single) for one in columns}
        )

    kinds = in_order({one: one.types(rows) for one in columns})
    made = in_python("ParseExample", read, [texts], kinds, name, sparse=sparse, dense=dense)
    count = len(sparse)
    found: dict[str, Any] = dict(zip((one.name for one in dense), made[3 * count :]))
    for k, column in enumerate(sparse):
        found[column.name] = SparseTensor(*made[k : 3 * count : count])
    return {key: found[key] for key in sorted(features)}


_WANTED = {True: "Give one string, or use parse_example.", False: "Give a vector of strings."}


def parse_example(
    serialized: Any, features: Mapping[str, Any], name: str | None = None, example_names: Any = None
) -> dict[str, Any]:
    """The features of a vector of serialised ``tf.train.Example``, as tensors by name.

    Args:
        serialized: a vector of strings.
        features: for each name a ``FixedLenFeature`` (a tensor ``[examples, *shape]``), ``VarLenFeature`` (a
            ``SparseTensor``) or ``FixedLenSequenceFeature`` (a tensor ``[examples, longest, *shape]``).
        name: the name of the operation.
        example_names: names for messages; they change nothing else.

    Raises:
        InvalidArgumentError: in a run, where a feature is missing or of another dtype or size.

    >>> import twofold.static as tf
    >>> def row(*numbers):
    ...     values = tf.train.Feature(int64_list=tf.train.Int64List(value=numbers))
    ...     return tf.train.Example(features=tf.train.Features(feature={"n": values})).SerializeToString()
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     read = tf.parse_example([row(1, 2), row(3, 4)], {"n": tf.FixedLenFeature([2], tf.int64)})
    ...     print(session.run(read["n"]).tolist())
    [[1, 2], [3, 4]]
    """
    return _parsed("parse_example", serialized, features, name, False)


def parse_single_example(
    serialized: Any, features: Mapping[str, Any], name: str | None = None, example_names: Any = None
) -> dict[str, Any]:
    """The features of one serialised ``tf.train.Example``: ``parse_example`` without the axis of examples.

    >>> import twofold.static as tf
    >>> label = tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"cat"]))
    >>> row = tf.train.Example(features=tf.train.Features(feature={"label": label}))
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     read = tf.parse_single_example(row.SerializeToString(), {"label": tf.FixedLenFeature([], tf.string)})
    ...     print(session.run(read["label"]))
    b'cat'
    """
    return _parsed("parse_single_example", serialized, features, name, True)
