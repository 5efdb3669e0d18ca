"""Tables from keys to values: ``tf.lookup`` and ``tf.contrib.lookup``; Python looks them up while the graph runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy

from twofold.dtypes import DType, int32, int64, string
from twofold.errors import ArgumentError, DTypeError, FailedPreconditionError, InvalidArgumentError
from twofold.runtime.calls import failed
from twofold.static.api.op_functions import as_dtype, convert_to_tensor, is_tensor_like
from twofold.static.control_flow.dependencies import group
from twofold.static.functions.host_calls import in_python
from twofold.static.graph.collection_keys import GraphKeys
from twofold.static.graph.context import at_once
from twofold.static.graph.docstrings import example
from twofold.static.graph.eager_execution import call_python
from twofold.static.graph.graph import Operation, get_default_graph
from twofold.static.graph.resources import Resource
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
        return _table(keys.tolist(), values.tolist())


class TextFileIndex:
    """What a line of a file counts as in a table: the whole of it, or its number."""

    WHOLE_LINE = -2
    LINE_NUMBER = -1


_WHOLE, _NUMBER = TextFileIndex.WHOLE_LINE, TextFileIndex.LINE_NUMBER


class TextFileInitializer:
    """The lines of a file as keys and values: whole lines, their numbers, or columns of them.

    A run raises InvalidArgumentError for a file of fewer lines than ``vocab_size``.

    Args:
        filename: The path.
        key_dtype: The dtype of the keys: string for whole lines, int64 for their numbers.
        key_index: The column of the keys, or one of ``TextFileIndex``.
        value_dtype: As ``key_dtype``.
        value_index: As ``key_index``.
        vocab_size: How many lines are read; all unless given.
        delimiter: What separates columns.
        name: Of the operation that fills a table.
    """

    def __init__(
        self,
        filename: Any,
        key_dtype: Any,
        key_index: int,
        value_dtype: Any,
        value_index: int,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = None,
    ) -> None:
        self.key_dtype, self.value_dtype = as_dtype(key_dtype), as_dtype(value_dtype)
        self.key_index, self.value_index = key_index, value_index
        self.vocab_size, self.delimiter, self.name = vocab_size, delimiter, name
        self.inputs = [convert_to_tensor(filename, None if is_tensor_like(filename) else string)]
        for dtype, index in ((self.key_dtype, key_index), (self.value_dtype, value_index)):
            wanted = {_WHOLE: string, _NUMBER: int64}.get(index, dtype)
            if dtype is not wanted or index < _WHOLE:
                what = f"column {index} as {dtype.name}"
                raise failed(
                    "TextFileInitializer", DTypeError(what, "Whole lines are string, numbers int64.")
                )

    def pairs(self, filename: Any) -> dict[Any, Any]:
        """The table of a file."""
        with open(numpy.asarray(filename).item(), "rb") as file:
            lines = [line.rstrip(b"\r\n") for line in file][: self.vocab_size]
        if self.vocab_size is not None and len(lines) < self.vocab_size:
            what = f"the file has {len(lines)} lines, and vocab_size is {self.vocab_size}"
            raise InvalidArgumentError(what, "Give the number of lines.")
        keys, values = (
            [self._part(line, number, index, dtype) for number, line in enumerate(lines)]
            for index, dtype in ((self.key_index, self.key_dtype), (self.value_index, self.value_dtype))
        )
        return _table(keys, values)

    def _part(self, line: bytes, number: int, index: int, dtype: DType) -> Any:
        if index < 0:
            return line if index == _WHOLE else number
        columns = line.split(self.delimiter.encode())
        if index >= len(columns):
            what = f"line {number} has {len(columns)} columns, and column {index} is asked for"
            raise InvalidArgumentError(what, "Give the delimiter of the file.")
        return columns[index] if dtype is string else dtype.numpy.type(columns[index].decode()).item()


def TextFileIdTableInitializer(
    filename: Any,
    key_column_index: int = _WHOLE,
    value_column_index: int = _NUMBER,
    vocab_size: int | None = None,
    delimiter: str = "\t",
    name: str = "text_file_id_table_init",
    key_dtype: Any = string,
) -> TextFileInitializer:
    """The numbers (int64) of a file's lines, or those in a column; see ``TextFileInitializer``."""
    return TextFileInitializer(
        filename, key_dtype, key_column_index, int64, value_column_index, vocab_size, delimiter, name
    )


def TextFileStringTableInitializer(
    filename: Any,
    key_column_index: int = _NUMBER,
    value_column_index: int = _WHOLE,
    vocab_size: int | None = None,
    delimiter: str = "\t",
    name: str = "text_file_string_table_init",
) -> TextFileInitializer:
    """The lines of a file, or a column of them, by their numbers (int64); see ``TextFileInitializer``."""
    return TextFileInitializer(
        filename, int64, key_column_index, string, value_column_index, vocab_size, delimiter, name
    )


def _table(keys: Iterable[Any], values: Iterable[Any]) -> dict[Any, Any]:
    """A dict; raises FailedPreconditionError where a key has several values."""
    found: dict[Any, Any] = {}
    for key, value in zip(keys, values, strict=True):
        if found.setdefault(key, value) != value:
            what = f"the key {key!r} has the values {found[key]!r} and {value!r}"
            raise FailedPreconditionError(what, "Give each key once.")
    return found


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

    initializer_of_pairs: Any

    def __init__(
        self, initializer: Any, default_value: Any, shared_name: str | None = None, name: str | None = None
    ) -> None:
        default = default_value.encode() if isinstance(default_value, str) else default_value
        self._begin(name or "hash_table", initializer.key_dtype, initializer.value_dtype, default)
        if at_once():
            (found,) = call_python(initializer.pairs, initializer.inputs)
            self._pairs.outside().append(found)
            return
        self.init = self.initializer = self.filled_by(
            initializer, getattr(initializer, "name", None) or f"{self.name}_init"
        )
        get_default_graph().add_to_collection(GraphKeys.TABLE_INITIALIZERS, self.init)

    def _begin(self, name: str, key_dtype: DType, value_dtype: DType, default: Any) -> None:
        self.name, self.key_dtype, self.value_dtype = name, key_dtype, value_dtype
        self.default_value, self.buckets = default, 0
        self._pairs: Resource[list[dict[Any, Any]]] = Resource(list)  # of one, once it is filled
        self.initializer_of_pairs = None

    @classmethod
    def unfilled(cls, name: str, key_dtype: DType, value_dtype: DType) -> HashTable:
        """A table for ``filled_by``; its look-ups are given what stands for other keys."""
        made = cls.__new__(cls)
        made._begin(name, key_dtype, value_dtype, None)
        return made

    def filled_by(self, initializer: Any, name: str) -> Operation:
        """The operation that fills the table."""
        self.initializer_of_pairs = initializer

        def fill(*arrays: Any) -> Any:
            self._pairs.in_run()[:] = [initializer.pairs(*arrays)]
            return numpy.int32(0)

        made = in_python("InitializeTable", fill, initializer.inputs, [(int32, ())], name, table=self)
        operation: Operation = made[0].op
        return operation

    def lookup(self, keys: Any, name: str | None = None, default_value: Any = None) -> Any:
        """The values of ``keys``, a tensor of any shape, or of the values of a sparse tensor.

        ``default_value`` is the value of other keys, where given, and else the table's own.
        """
        if isinstance(keys, SparseTensor):
            return keys.with_values(self.lookup(keys.values, name, default_value))
        given = convert_to_tensor(keys, None if hasattr(keys, "type_") else self.key_dtype)
        if given.dtype is not self.key_dtype and not (given.dtype.kind == self.key_dtype.kind == "i"):
            what = f"keys of {given.dtype.name} for a table of {self.key_dtype.name}"
            raise failed("lookup", DTypeError(what, "Cast the keys."))
        kinds = [(self.value_dtype, known_sizes(given))]
        label = name or f"{self.name}_Lookup"
        default = self.default_value if default_value is None else default_value
        attributes = {"table": self, "default_value": default}
        find = lambda keys: self._found(keys, default)
        return in_python("LookupTableFind", find, [given], kinds, label, **attributes)[0]

    def _found(self, keys: Any, default: Any) -> Any:
        pairs = self._filled()
        flat = [
            pairs[key] if key in pairs else self._value_of_other(key, default)
            for key in numpy.asarray(keys).ravel().tolist()
        ]
        kind = object if self.value_dtype is string else self.value_dtype.numpy
        made = numpy.empty(len(flat), kind)
        made[:] = flat
        return made.reshape(numpy.shape(keys))

    def _value_of_other(self, key: Any, default: Any) -> Any:
        """The value of a key that is not there: the default, or a bucket by the fingerprint of the key."""
        if not self.buckets:
            return default
        text = key if isinstance(key, bytes) else str(key).encode()
        return len(self._filled()) + fingerprint64(text) % self.buckets

    def _filled(self) -> dict[Any, Any]:
        filled = self._pairs.in_run() or self._pairs.outside()
        if not filled:
            what = f"table '{self.name}' is not initialised"
            raise FailedPreconditionError(what, "Run tf.tables_initializer() first.")
        return filled[0]

    def size(self, name: str | None = None) -> Any:
        """How many keys there are, as int64."""
        count = lambda: numpy.int64(len(self._filled()) + self.buckets)
        label = name or f"{self.name}_Size"
        return in_python("LookupTableSize", count, [], [(int64, ())], label, table=self)[0]


StaticHashTable = HashTable


class StaticVocabularyTable(HashTable):
    """The numbers of known keys, and for other keys numbers of ``num_oov_buckets`` buckets by their fingerprints.

    Without buckets other keys have -1.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     known = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([0, 1], tf.int64))
    ...     table = tf.lookup.StaticVocabularyTable(known, 1)
    ...     session.run(tf.tables_initializer())
    ...     print(session.run(table.lookup(tf.constant(["b", "none"]))))
    [1 2]
    """

    def __init__(
        self, initializer: Any, num_oov_buckets: int, lookup_key_dtype: Any = None, name: str | None = None
    ) -> None:
        if num_oov_buckets <= 0:
            raise ValueError(f"StaticVocabularyTable: num_oov_buckets is {num_oov_buckets}. Give at least 1.")
        super().__init__(initializer, -1, name=name)
        self.buckets = int(num_oov_buckets)
        if lookup_key_dtype is not None:
            self.key_dtype = as_dtype(lookup_key_dtype)


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
    vocabulary_file: Any,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    hasher_spec: Any = None,
    key_dtype: Any = "string",
    name: str | None = None,
    key_column_index: int = _WHOLE,
    value_column_index: int = _NUMBER,
    delimiter: str = "\t",
) -> HashTable:
    """The numbers of a file's lines, or those in a column; otherwise as ``index_table_from_tensor``."""
    if as_dtype(key_dtype) is not string:
        raise failed("index_table_from_file", ArgumentError("key_dtype is not string", "Leave it out."))
    columns = (key_column_index, value_column_index, vocab_size, delimiter)
    lines = TextFileIdTableInitializer(vocabulary_file, *columns)
    return _with_buckets(lines, num_oov_buckets, default_value, hasher_spec, name)


def _with_buckets(pairs: Any, buckets: int, default: Any, hasher: Any, name: str | None) -> HashTable:
    if hasher is not None:
        raise failed("index_table", ArgumentError("hasher_spec is not offered", "Leave it out."))
    made = HashTable(pairs, default, name=name or "string_to_index")
    made.buckets = int(buckets)
    return made


def index_to_string_table_from_tensor(
    vocabulary_list: Any, default_value: Any = "UNK", name: str | None = None
) -> HashTable:
    """The strings at positions of a vector."""
    values = convert_to_tensor(vocabulary_list)
    keys = numpy.arange(values.type_.shape[0], dtype=numpy.int64)
    return HashTable(KeyValueTensorInitializer(keys, values), default_value, name=name or "index_to_string")


def index_to_string_table_from_file(
    vocabulary_file: Any,
    vocab_size: int | None = None,
    default_value: Any = "UNK",
    name: str | None = None,
    key_column_index: int = _NUMBER,
    value_column_index: int = _WHOLE,
    delimiter: str = "\t",
) -> HashTable:
    """The lines of a file, or a column of them, by their numbers."""
    columns = (key_column_index, value_column_index, vocab_size, delimiter)
    lines = TextFileStringTableInitializer(vocabulary_file, *columns)
    return HashTable(lines, default_value, name=name or "index_to_string")
