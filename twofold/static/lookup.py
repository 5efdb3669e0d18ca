"""Tables from keys to values: ``tf.lookup`` and ``tf.contrib.lookup``; Python looks them up while the graph runs."""

from __future__ import annotations

from typing import Any

import numpy

from twofold.dtypes import DType, int64, string
from twofold.errors import ArgumentError, DTypeError, FailedPreconditionError
from twofold.runtime.calls import failed
from twofold.static.api.op_functions import as_dtype, convert_to_tensor
from twofold.static.control_flow.dependencies import group
from twofold.static.functions.host_calls import in_python
from twofold.static.graph.collection_keys import GraphKeys
from twofold.static.graph.context import at_once
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import Operation, get_default_graph
from twofold.static.sparse import SparseTensor
from twofold.static.strings.fingerprint import fingerprint64
from twofold.static.strings.string_functions import known_sizes


@example("print(tf.tables_initializer().name)", "init_all_tables")
def tables_initializer(name: str = "init_all_tables") -> Operation:
    """An operation that fills all tables declared so far."""
    return group(*get_default_graph().get_collection(GraphKeys.TABLE_INITIALIZERS), name=name)


initialize_all_tables = tables_initializer


class KeyValueTensorInitializer:
    """Keys, and the value of each in the same position; lists, arrays or tensors."""

    def __init__(
        self, keys: Any, values: Any, key_dtype: Any = None, value_dtype: Any = None, name: str | None = None
    ) -> None:
        self.keys = convert_to_tensor(keys, None if key_dtype is None else as_dtype(key_dtype))
        self.values = convert_to_tensor(values, None if value_dtype is None else as_dtype(value_dtype))
        self.key_dtype, self.value_dtype = self.keys.dtype, self.values.dtype
        self.inputs = [self.keys, self.values]

    def pairs(self, keys: Any, values: Any) -> dict[Any, Any]:
        """The table of arrays of keys and values."""
        return dict(zip(keys.tolist(), values.tolist(), strict=True))


class _Lines:
    """The lines of a file as keys with their numbers, or as values of their numbers."""

    def __init__(self, filename: str, vocab_size: int | None, to_numbers: bool) -> None:
        self._filename, self._size, self._to_numbers = filename, vocab_size, to_numbers
        self.key_dtype, self.value_dtype = (string, int64) if to_numbers else (int64, string)
        self.inputs: list[Any] = []

    def pairs(self) -> dict[Any, Any]:
        """The table of the file's lines."""
        with open(self._filename, "rb") as file:
            lines = [line.rstrip(b"\r\n") for line in file][: self._size]
        return {line: k for k, line in enumerate(lines)} if self._to_numbers else dict(enumerate(lines))


@example(
    'pairs = tf.contrib.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2])',
    "table = tf.contrib.lookup.HashTable(pairs, -1)",
    "session.run(tf.tables_initializer())",
    'table.lookup(tf.constant(["b", "none"]))',
    "[ 2 -1]",
)
class HashTable:
    """The values of keys; ``default_value`` for a key that is not there.

    The table is filled when ``tf.tables_initializer()`` or its own ``init`` runs; a look-up before that raises
    FailedPreconditionError. ``shared_name`` is for several processes and changes nothing.
    """

    def __init__(
        self, initializer: Any, default_value: Any, shared_name: str | None = None, name: str | None = None
    ) -> None:
        self.name = name or "hash_table"
        self._pairs: dict[Any, Any] | None = None
        self.key_dtype: DType = initializer.key_dtype
        self.value_dtype: DType = initializer.value_dtype
        self._default = default_value.encode() if isinstance(default_value, str) else default_value
        self._buckets = 0

        def fill(*arrays: Any) -> Any:
            self._pairs = initializer.pairs(*arrays)
            return numpy.int32(0)

        if at_once():
            fill(*[one.numpy() for one in initializer.inputs])
            return
        made = in_python(
            "InitializeTable", fill, initializer.inputs, [(as_dtype("int32"), ())], f"{self.name}_init"
        )
        self.init = self.initializer = made[0].op
        get_default_graph().add_to_collection(GraphKeys.TABLE_INITIALIZERS, self.init)

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The values of ``keys``, a tensor of any shape, or of the values of a sparse tensor."""
        if isinstance(keys, SparseTensor):
            return SparseTensor(keys.indices, self.lookup(keys.values, name), keys.dense_shape)
        given = convert_to_tensor(keys, None if hasattr(keys, "type_") else self.key_dtype)
        if given.dtype is not self.key_dtype and not (given.dtype.kind == self.key_dtype.kind == "i"):
            what = f"keys of {given.dtype.name} for a table of {self.key_dtype.name}"
            raise failed("lookup", DTypeError(what, "Cast the keys."))
        kinds = [(self.value_dtype, known_sizes(given))]
        return in_python("LookupTableFind", self._found, [given], kinds, name or f"{self.name}_Lookup")[0]

    def _found(self, keys: Any) -> Any:
        pairs = self._filled()
        flat = [pairs.get(key, self._value_of_other(key)) for key in numpy.asarray(keys).ravel().tolist()]
        kind = object if self.value_dtype is string else self.value_dtype.numpy
        made = numpy.empty(len(flat), kind)
        made[:] = flat
        return made.reshape(numpy.shape(keys))

    def _value_of_other(self, key: Any) -> Any:
        """The value of a key that is not there: the default, or a bucket by the fingerprint of the key."""
        if not self._buckets:
            return self._default
        text = key if isinstance(key, bytes) else str(key).encode()
        return len(self._filled()) + fingerprint64(text) % self._buckets

    def _filled(self) -> dict[Any, Any]:
        if self._pairs is None:
            what = f"table '{self.name}' is not initialised"
            raise FailedPreconditionError(what, "Run tf.tables_initializer() first.")
        return self._pairs

    def size(self, name: str | None = None) -> Any:
        """How many keys there are, as int64."""
        count = lambda: numpy.int64(len(self._filled()) + self._buckets)
        return in_python("LookupTableSize", count, [], [(int64, ())], name or f"{self.name}_Size")[0]


StaticHashTable = HashTable


def _numbered(mapping: Any, dtype: Any = None) -> KeyValueTensorInitializer:
    keys = convert_to_tensor(mapping, None if dtype is None else as_dtype(dtype))
    return KeyValueTensorInitializer(keys, numpy.arange(keys.type_.shape[0], dtype=numpy.int64))


@example(
    'table = tf.contrib.lookup.index_table_from_tensor(["a", "b"], num_oov_buckets=1)',
    "session.run(tf.tables_initializer())",
    'table.lookup(tf.constant(["b", "none"]))',
    "[1 2]",
)
def index_table_from_tensor(
    mapping: Any,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: Any = None,
    dtype: Any = None,
    name: str | None = None,
) -> HashTable:
    """The positions of keys in a vector; others get ``default_value`` or a number behind, one of ``num_oov_buckets``.

    Buckets are those of TensorFlow's ``FastHashSpec``. Raises ArgumentError for a ``hasher_spec``.
    """
    return _with_buckets(_numbered(mapping, dtype), num_oov_buckets, default_value, hasher_spec, name)


def index_table_from_file(
    vocabulary_file: str,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    hasher_spec: Any = None,
    key_dtype: Any = "string",
    name: str | None = None,
) -> HashTable:
    """The numbers of a file's lines; otherwise as ``index_table_from_tensor``."""
    if as_dtype(key_dtype) is not string:
        raise failed("index_table_from_file", ArgumentError("key_dtype is not string", "Leave it out."))
    return _with_buckets(
        _Lines(vocabulary_file, vocab_size, True), num_oov_buckets, default_value, hasher_spec, name
    )


def _with_buckets(pairs: Any, buckets: int, default: Any, hasher: Any, name: str | None) -> HashTable:
    if hasher is not None:
        raise failed("index_table", ArgumentError("hasher_spec is not offered", "Leave it out."))
    made = HashTable(pairs, default, name=name or "string_to_index")
    made._buckets = int(buckets)
    return made


def index_to_string_table_from_tensor(
    vocabulary_list: Any, default_value: Any = "UNK", name: str | None = None
) -> HashTable:
    """The strings at positions of a vector."""
    values = convert_to_tensor(vocabulary_list)
    keys = numpy.arange(values.type_.shape[0], dtype=numpy.int64)
    return HashTable(KeyValueTensorInitializer(keys, values), default_value, name=name or "index_to_string")


def index_to_string_table_from_file(
    vocabulary_file: str, vocab_size: int | None = None, default_value: Any = "UNK", name: str | None = None
) -> HashTable:
    """The lines of a file by their numbers."""
    return HashTable(
        _Lines(vocabulary_file, vocab_size, False), default_value, name=name or "index_to_string"
    )
