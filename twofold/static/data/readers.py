"""Records of files as ``tf.string`` tensors: lines, whole files, those of ``tf.python_io``; and the fields in lines."""

from __future__ import annotations

import csv
import glob
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy

from twofold.dtypes import int64, string
from twofold.errors import ArgumentError, DTypeError
from twofold.ir.types import tensor_type
from twofold.runtime.calls import failed
from twofold.static.api.op_functions import array_of, as_dtype, convert_to_tensor, refuse, whole
from twofold.static.api.signatures import takes
from twofold.static.data.queues import EPOCHS, FIFOQueue, filled_in_epochs
from twofold.static.errors import OutOfRangeError
from twofold.static.functions.host_calls import in_python
from twofold.static.graph.collection_keys import GraphKeys
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import Tensor, get_default_graph
from twofold.static.graph.resources import Resource
from twofold.static.graph.string_table import bytes_array
from twofold.static.python_io import tf_record_iterator
from twofold.static.strings.string_functions import as_string_tensor, known_sizes
from twofold.static.variables.variable import Variable


def match_filenames_once(pattern: Any, name: str | None = None) -> Variable:
    """A local variable of the names of the files that fit a pattern, or one of several, when it is initialised.

    >>> import os, tempfile
    >>> import twofold.static as tf
    >>> folder = tempfile.mkdtemp()
    >>> _ = open(os.path.join(folder, "a.txt"), "w").write("hello")
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     names = tf.train.match_filenames_once(folder + "/*.txt")
    ...     session.run(tf.local_variables_initializer())
    ...     print([os.path.basename(one) for one in session.run(names)])
    [b'a.txt']
    """

    def find(patterns: Any) -> Any:
        given = [one.decode() for one in numpy.ravel(patterns)]
        return bytes_array(sorted({name for one in given for name in glob.glob(one)}))

    patterns = as_string_tensor("match_filenames_once", pattern)
    first = in_python("MatchingFiles", find, [patterns], [(string, (None,))], None)[0]
    keys = [GraphKeys.LOCAL_VARIABLES]
    return Variable(first, False, keys, validate_shape=False, name=name or "matching_filenames")


@takes(f"{EPOCHS}, cancel_op=None")
def string_input_producer(string_tensor: Any, **options: Any) -> FIFOQueue:
    """A queue of strings, such as names of files: a vector of them in a new order in each epoch.

    Args:
        string_tensor: a vector of strings.
        num_epochs: how often each string comes (None: without end).
        shuffle: whether each epoch has an order of its own.
        seed: of the orders.
        capacity: of the queue.
        shared_name: not used within one process.
        name: the name of the operation.
        cancel_op: not offered; raises unless None.
    """
    if options["cancel_op"] is not None:
        raise failed("string_input_producer", ArgumentError("cancel_op is given", "Close the queue instead."))
    if isinstance(string_tensor, (list, tuple)) and not string_tensor:
        raise failed("string_input_producer", ArgumentError("there are no strings", "Give at least one."))
    strings = convert_to_tensor(string_tensor)
    if strings.dtype is not string:
        what = f"the values are of {strings.dtype.name}"
        raise failed("string_input_producer", DTypeError(what, "Give a list of strings."))
    return filled_in_epochs(strings, lambda values: values, string, options)


class _Reading:
    """How far a reader is in a session."""

    def __init__(self) -> None:
        self.records: Iterator[tuple[str, bytes | str]] = iter(())
        self.lock = threading.Lock()
        self.produced = self.finished = 0


class Reader:
    """Reads the files that a queue names; a subclass says what the records of a file are.

    >>> import twofold.static as tf
    >>> isinstance(tf.TextLineReader(), tf.ReaderBase)
    True
    """

    def __init__(self, name: str | None = None) -> None:
        self._name = name
        self._reading = Resource(_Reading)

    def read(self, queue: FIFOQueue, name: str | None = None) -> tuple[Tensor, Tensor]:
        """The key of the next record, and the record; a run raises OutOfRangeError after the last file."""

        def record() -> list[Any]:
            with self._reading.in_run().lock:
                return list(self._next(queue))

        made = get_default_graph().add("ReaderRead", name or self._name, [tensor_type(string)] * 2, ())
        made.python = record
        return made.outputs[0], made.outputs[1]

    def read_up_to(self, queue: FIFOQueue, num_records: Any, name: str | None = None) -> tuple[Any, Any]:
        """The keys of up to ``num_records`` records, and the records: fewer only where the files have ended."""
        most = whole(num_records)

        def records() -> list[Any]:
            found: list[tuple[str, bytes | str]] = []
            with self._reading.in_run().lock:
                try:
                    while len(found) < most:
                        found.append(self._next(queue))
                except OutOfRangeError:
                    if not found:
                        raise
            return [bytes_array(list(column)) for column in zip(*found)]

        kinds = [(string, (None,))] * 2
        keys, values = in_python("ReaderReadUpTo", records, [], kinds, name or self._name)
        return keys, values

    def num_records_produced(self, name: str | None = None) -> Tensor:
        """How many records were read, as int64."""
        return self._count(
            "ReaderNumRecordsProduced", lambda: numpy.int64(self._reading.in_run().produced), name
        )

    def num_work_units_completed(self, name: str | None = None) -> Tensor:
        """How many files were read to their ends, as int64."""
        return self._count(
            "ReaderNumWorkUnitsCompleted", lambda: numpy.int64(self._reading.in_run().finished), name
        )

    def _count(self, type: str, count: Callable[[], Any], name: str | None) -> Tensor:
        made = get_default_graph().add(type, name or self._name, [tensor_type(int64)], ())
        made.python = count
        return made.outputs[0]

    def _next(self, queue: FIFOQueue) -> tuple[str, bytes | str]:
        reading = self._reading.in_run()
        while (found := next(reading.records, None)) is None:
            (path,) = queue.take()
            reading.records = self._whole_file(path.decode(), reading)
        reading.produced += 1
        return found

    def _whole_file(self, path: str, reading: _Reading) -> Iterator[tuple[str, bytes | str]]:
        yield from self._read(path)
        reading.finished += 1

    def _read(self, path: str) -> Iterator[tuple[str, bytes | str]]:
        raise NotImplementedError


class TextLineReader(Reader):
    """Reads the files that a queue names line by line, each without its first ``skip_header_lines`` lines.

    A key is ``file:line``.

    >>> import os, tempfile
    >>> import twofold.static as tf
    >>> path = os.path.join(tempfile.mkdtemp(), "points.csv")
    >>> _ = open(path, "w").write("x,y\\n1,2.5\\n3,4.5\\n")
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     queue = tf.train.string_input_producer([path])
    ...     key, line = tf.TextLineReader(skip_header_lines=1).read(queue)
    ...     x, y = tf.decode_csv(line, [[0], [0.0]])
    ...     coordinator = tf.train.Coordinator()
    ...     threads = tf.train.start_queue_runners(session, coordinator)
    ...     print(*session.run([x, y]), *session.run([x, y]))
    ...     coordinator.request_stop()
    ...     coordinator.join(threads)
    1 2.5 3 4.5
    """

    def __init__(self, skip_header_lines: int | None = None, name: str | None = None) -> None:
        super().__init__(name)
        self._skipped = skip_header_lines or 0

    def _read(self, path: str) -> Iterator[tuple[str, bytes | str]]:
        with open(path) as file:
            for number, line in enumerate(file, 1):
                if number > self._skipped:
                    yield f"{path}:{number}", line.rstrip("\r\n")


class WholeFileReader(Reader):
    """Reads the files that a queue names, each as one record whose key is the file's name."""

    def _read(self, path: str) -> Iterator[tuple[str, bytes | str]]:
        with open(path, "rb") as file:
            yield path, file.read()


def fixed_records(
    path: str, record_bytes: int, header_bytes: int = 0, footer_bytes: int = 0, hop_bytes: int = 0
) -> Iterator[bytes]:
    """The records of equal length of a file; a rest that is shorter than one is left out."""
    with open(path, "rb") as file:
        content = file.read()
    last = len(content) - footer_bytes - record_bytes
    for start in range(header_bytes, last + 1, hop_bytes or record_bytes):
        yield content[start : start + record_bytes]


class FixedLengthRecordReader(Reader):
    """Reads records of ``record_bytes`` bytes of the files that a queue names; a key is ``file:number``.

    The first ``header_bytes`` and the last ``footer_bytes`` bytes of a file are left out. A record begins ``hop_bytes``
    (0: ``record_bytes``) after the one before. ``encoding`` is ""; others
    raise ArgumentError.

    >>> import os, tempfile
    >>> import twofold.static as tf
    >>> path = os.path.join(tempfile.mkdtemp(), "numbers")
    >>> _ = open(path, "w").write("onetwo")
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     _, record = tf.FixedLengthRecordReader(3).read(tf.train.string_input_producer([path]))
    ...     coordinator = tf.train.Coordinator()
    ...     threads = tf.train.start_queue_runners(session, coordinator)
    ...     print(session.run(record), session.run(record))
    ...     coordinator.request_stop()
    ...     coordinator.join(threads)
    b'one' b'two'
    """

    def __init__(
        self,
        record_bytes: int,
        header_bytes: int | None = None,
        footer_bytes: int | None = None,
        hop_bytes: int | None = None,
        name: str | None = None,
        encoding: str | None = None,
    ) -> None:
        super().__init__(name)
        refuse("FixedLengthRecordReader", encoding=encoding or None)
        self._sizes = record_bytes, header_bytes or 0, footer_bytes or 0, hop_bytes or 0

    def _read(self, path: str) -> Iterator[tuple[str, bytes | str]]:
        for number, record in enumerate(fixed_records(path, *self._sizes)):
            yield f"{path}:{number}", record


@example(
    "queue = tf.FIFOQueue(1, tf.string)",
    "session.run(queue.enqueue(['a.txt']))",
    "print(*session.run(tf.IdentityReader().read(queue)))",
    "b'a.txt' b'a.txt'",
)
class IdentityReader(Reader):
    """Reads the names that a queue holds: each is key and record."""

    def _read(self, path: str) -> Iterator[tuple[str, bytes | str]]:
        yield path, path


class TFRecordReader(Reader):
    """Reads the records of the files that a queue names (see ``tf.python_io``); a key is ``file:number``.

    ``options`` is a ``TFRecordOptions``.
    """

    def __init__(self, name: str | None = None, options: Any = None) -> None:
        super().__init__(name)
        self._options = options

    def _read(self, path: str) -> Iterator[tuple[str, bytes | str]]:
        for number, record in enumerate(tf_record_iterator(path, self._options)):
            yield f"{path}:{number}", record


@example('print(*session.run(tf.decode_csv(tf.constant("1,a,2.5"), [[0], [""], [0.0]])))', "1 b'a' 2.5")
def decode_csv(
    records: Any,
    record_defaults: Sequence[Any],
    field_delim: str = ",",
    use_quote_delim: bool = True,
    name: str | None = None,
    na_value: str = "",
    select_cols: Sequence[int] | None = None,
) -> list[Tensor]:
    """The fields of lines: tensors of the dtypes of ``record_defaults``, which stand for empty fields.

    Args:
        records: a ``tf.string`` tensor; each field has its shape.
        record_defaults: for each field a list of one value, or of none, which makes the field necessary.
        field_delim: the character between fields.
        use_quote_delim: whether quotation marks keep delimiters inside a field.
        name: the name of the operation.
        na_value: a further string that counts as empty.
        select_cols: the columns to return, in ascending order (None: all).

    Raises:
        ValueError: in a run, for too few or too many fields, an empty one without a default, and a string where a
            number is expected.
    """
    defaults = [_default(value) for value in record_defaults]
    lines = as_string_tensor("decode_csv", records)
    results: list[Any] = [(dtype, known_sizes(lines)) for dtype, _ in defaults]

    quoting = (
        {"quotechar": '"', "quoting": csv.QUOTE_MINIMAL} if use_quote_delim else {"quoting": csv.QUOTE_NONE}
    )

    def decode(line: bytes) -> list[Any]:
        text = line.decode()
        fields: list[str] = next(csv.reader([text], delimiter=field_delim, **quoting), [])
        chosen = fields if select_cols is None else [fields[k] for k in select_cols]
        if len(chosen) != len(defaults):
            what = f"{len(chosen)} fields for {len(defaults)} defaults in {text!r}"
            raise failed("decode_csv", ArgumentError(what, "Give one default for each field."))
        return [_field(field.strip(), *default, na_value) for field, default in zip(chosen, defaults)]

    def decode_all(given: Any) -> list[Any]:
        array = numpy.asarray(given, dtype=object)
        rows = [decode(line) for line in array.flat]
        kinds = [object if dtype is string else dtype.numpy for dtype, _ in defaults]
        columns = [numpy.array([row[k] for row in rows], kind) for k, kind in enumerate(kinds)]
        return [column.reshape(array.shape) for column in columns]

    return in_python("DecodeCSV", decode_all, [lines], results, name)


def _default(value: Any) -> tuple[Any, Any]:
    """The dtype of a field, and what it is where it is empty (None: an error)."""
    if isinstance(value, Tensor):
        return (
            (value.dtype, None) if value.op.constant is None else _default(value.op.constant.detach().numpy())
        )
    if isinstance(value, (str, bytes)):
        return string, value
    items = list(numpy.ravel(value)) if isinstance(value, numpy.ndarray) else list(value)
    if items and isinstance(items[0], (str, bytes)):
        return string, items[0]
    if not isinstance(value, (numpy.ndarray, list, tuple)) or len(items) > 1:
        what = f"a default is {value!r}"
        raise failed("decode_csv", ArgumentError(what, "Give a list of one number or string."))
    array = array_of(value)
    return as_dtype(array.dtype), (items[0] if items else None)


def _field(field: str, dtype: Any, default: Any, missing: str) -> Any:
    if field in ("", missing):
        if default is None:
            raise failed("decode_csv", ArgumentError("an empty field has no default", "Give one."))
        return default if dtype is string else dtype.numpy.type(default)
    if dtype is string:
        return field
    try:
        return dtype.numpy.type(int(field) if dtype.kind in "iu" else float(field))
    except ValueError:
        what = f"{field!r} is no {dtype.name}"
        raise failed("decode_csv", ArgumentError(what, "Give the field a string as its default.")) from None
