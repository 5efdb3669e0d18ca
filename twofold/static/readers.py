"""Lines of text files, and the numbers in them.

A text inside a graph is an int64 that numbers it: the core knows numbers only. Texts can be compared with
``tf.equal``, also with ``tf.constant("text")``, and taken apart with ``decode_csv``.
"""

from __future__ import annotations

import csv
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy

from twofold.dtypes import int32, int64
from twofold.errors import ArgumentError
from twofold.ir.types import tensor_type
from twofold.static.datasets import OutOfRangeError
from twofold.static.define import array_of, as_dtype
from twofold.static.flow import failed
from twofold.static.graph import Tensor, get_default_graph
from twofold.static.queues import FIFOQueue, QueueRunner, add_queue_runner
from twofold.static.random import next_key
from twofold.static.selection import in_python
from twofold.static.texts import TEXTS


def string_input_producer(
    string_tensor: Sequence[str],
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
    cancel_op: Any = None,
) -> FIFOQueue:
    """A queue of texts, such as names of files, in another order in each of ``num_epochs`` rounds (None: for ever)."""
    texts = list(string_tensor)
    if not texts or not all(isinstance(text, (str, bytes)) for text in texts):
        what = f"the texts are {texts!r}"
        raise failed("string_input_producer", ArgumentError(what, "Give a list of at least one text."))
    queue = FIFOQueue(capacity, [int64], [[]], name=name or "input_producer")
    random, left = numpy.random.default_rng(next_key(seed)), num_epochs

    def put() -> Any:
        nonlocal left
        if left is not None and left <= 0:
            raise OutOfRangeError("all rounds are done", "Catch this error to end.")
        left = None if left is None else left - 1
        order = random.permutation(len(texts)) if shuffle else range(len(texts))
        queue.put([[TEXTS.number_of(texts[k])] for k in order])
        return numpy.int32(0)

    made = get_default_graph().add("InputProducer", name, [tensor_type(int32)], ())
    made.python = put
    add_queue_runner(QueueRunner(queue, [made]))
    return queue


class TextLineReader:
    """Reads the files that a queue names line by line, each without its first ``skip_header_lines`` lines.

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
        self._skipped = skip_header_lines or 0
        self._lines: Iterator[tuple[str, str]] = iter(())
        self._lock = threading.Lock()

    def read(self, queue: FIFOQueue, name: str | None = None) -> tuple[Tensor, Tensor]:
        """``file:line`` and the text of the next line; a run raises OutOfRangeError after the last file."""

        def line() -> list[Any]:
            with self._lock:
                while (found := next(self._lines, None)) is None:
                    (number,) = queue.take()
                    self._lines = self._numbered(TEXTS.text_of(number))
            return [TEXTS.number_of(text) for text in found]

        made = get_default_graph().add("ReaderRead", name, [tensor_type(int64)] * 2, ())
        made.python = line
        return made.outputs[0], made.outputs[1]

    def _numbered(self, path: str) -> Iterator[tuple[str, str]]:
        with open(path) as file:
            for number, line in enumerate(file, 1):
                if number > self._skipped:
                    yield f"{path}:{number}", line.rstrip("\r\n")


def decode_csv(
    records: Any,
    record_defaults: Sequence[Any],
    field_delim: str = ",",
    use_quote_delim: bool = True,
    name: str | None = None,
    na_value: str = "",
    select_cols: Sequence[int] | None = None,
) -> list[Tensor]:
    """The fields of a line: numbers of the dtypes of ``record_defaults``, which stand for empty fields, or texts.

    An empty default makes a field necessary. A run raises ValueError for too few or too many fields, an empty one
    without a default, and text where a number is expected.
    """
    defaults = [_default(value) for value in record_defaults]
    results: list[Any] = [(int64 if dtype is None else dtype, ()) for dtype, _ in defaults]

    def decode(number: Any) -> list[Any]:
        text = TEXTS.text_of(number)
        quote = '"' if use_quote_delim else None
        rows = csv.reader(
            [text],
            delimiter=field_delim,
            quotechar=quote,
            quoting=csv.QUOTE_MINIMAL if use_quote_delim else csv.QUOTE_NONE,
        )
        fields = next(rows, [])
        chosen = fields if select_cols is None else [fields[k] for k in select_cols]
        if len(chosen) != len(defaults):
            what = f"{len(chosen)} fields for {len(defaults)} defaults in {text!r}"
            raise failed("decode_csv", ArgumentError(what, "Give one default for each field."))
        return [_field(field.strip(), *default, na_value) for field, default in zip(chosen, defaults)]

    return in_python("DecodeCSV", decode, [records], results, name)


def _default(value: Any) -> tuple[Any, Any]:
    """The dtype (None: text) of a field, and what it is where it is empty."""
    if isinstance(value, Tensor):
        return (
            (value.dtype, None) if value.op.constant is None else _default(value.op.constant.detach().numpy())
        )
    if isinstance(value, (str, bytes)):
        return None, value
    items = list(numpy.ravel(value)) if isinstance(value, numpy.ndarray) else list(value)
    if items and isinstance(items[0], (str, bytes)):
        return None, items[0]
    if not isinstance(value, (numpy.ndarray, list, tuple)) or len(items) > 1:
        what = f"a default is {value!r}"
        raise failed("decode_csv", ArgumentError(what, "Give a list of one number or text."))
    array = array_of(value)
    return as_dtype(array.dtype), (items[0] if items else None)


def _field(field: str, dtype: Any, default: Any, missing: str) -> Any:
    if field in ("", missing):
        if default is None:
            raise failed("decode_csv", ArgumentError("an empty field has no default", "Give one."))
        return TEXTS.number_of(default) if dtype is None else dtype.numpy.type(default)
    if dtype is None:
        return TEXTS.number_of(field)
    try:
        return dtype.numpy.type(int(field) if dtype.kind in "iu" else float(field))
    except ValueError:
        what = f"{field!r} is no {dtype.name}"
        raise failed("decode_csv", ArgumentError(what, "Give the field a default of text.")) from None
