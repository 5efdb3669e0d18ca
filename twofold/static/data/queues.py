"""Queues that threads fill while others take from them, and what fills them: queue runners.

Elements are kept in Python; each session has its own.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy

from twofold import _core
from twofold.dtypes import DType, bool_, int32, string
from twofold.errors import ArgumentError, DTypeError, ShapeError
from twofold.ir.shape_inference import UNKNOWN_RANK, new_unknown_size
from twofold.ir.types import TensorType, tensor_type
from twofold.runtime.calls import failed
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import as_dtype, convert_to_tensor, refuse, whole
from twofold.static.api.signatures import takes
from twofold.static.arrays import shape_ops
from twofold.static.data.coordinator import Coordinator
from twofold.static.data.dataset_elements import pad_elements
from twofold.static.errors import CancelledError, OutOfRangeError
from twofold.static.functions.bodies import source_of
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import Operation, Tensor, describe, get_default_graph, need_session
from twofold.static.graph.resources import Resource
from twofold.static.graph.string_table import stack
from twofold.static.graph.tensor_shape import TensorShape, shape_of_sizes
from twofold.static.random import next_key

RUNNERS = "queue_runners"
"""The collection of all queue runners."""
_PATIENCE = 0.05  # seconds between looks at Ctrl-C and at coordinators


class _Held:
    """What a queue has in a session."""

    def __init__(self) -> None:
        self.elements: list[list[Any]] = []
        self.changed = threading.Condition()
        self.closed = self.cancelled = False

    def shut(self, cancel: bool) -> None:
        """Let nothing be put any more; with ``cancel`` not even by those who wait."""
        with self.changed:
            self.closed, self.cancelled = True, self.cancelled or cancel
            self.changed.notify_all()


@example(
    "queue = tf.FIFOQueue(3, [tf.float32], shapes=[[]])",
    "session.run(queue.enqueue_many([[1.0, 2.0, 3.0]]))",
    "print(session.run(queue.dequeue()), session.run(queue.size()))",
    "1.0 2",
)
class FIFOQueue:
    """Up to ``capacity`` elements, which leave in the order they came.

    ``shared_name`` is for several processes and changes nothing.

    A run that puts elements into a full queue, or takes some from an empty one, waits for other threads. After
    ``close`` the first raises CancelledError, the second OutOfRangeError.
    """

    def __init__(
        self,
        capacity: int,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        name: str = "fifo_queue",
    ) -> None:
        self._names = None if names is None else list(names)
        kinds = [as_dtype(dtype) for dtype in (dtypes if isinstance(dtypes, (list, tuple)) else [dtypes])]
        given = [None] * len(kinds) if shapes is None else _each_shape(shapes, len(kinds))
        self.name, self._capacity = name, capacity
        self._types = [_type(kind, shape) for kind, shape in zip(kinds, given)]
        self._held = Resource(_Held)

    @property
    def dtypes(self) -> list[Any]:
        """The dtypes of an element's parts."""
        return [type.dtype for type in self._types]

    @property
    def shapes(self) -> list[TensorShape]:
        """Their shapes."""
        return [shape_of_sizes(type.shape) for type in self._types]

    @property
    def names(self) -> list[str] | None:
        """Their names, by which dictionaries of them are put and taken."""
        return self._names

    def _operation(
        self,
        type: str,
        values: Sequence[Any],
        types: Sequence[TensorType],
        python: Callable[..., Any],
        name: Any,
    ) -> Operation:
        made = get_default_graph().add(type, name, types, [source_of(value) for value in values])
        made.python = python
        return made

    def _done(
        self, type: str, python: Callable[..., Any], name: Any, values: Sequence[Any] = ()
    ) -> Operation:
        """An operation whose result nobody wants."""

        def do(*arrays: Any) -> Any:
            python(*arrays)
            return numpy.int32(0)

        return self._operation(type, values, [tensor_type(int32)], do, name)

    def _structured(self, made: Operation) -> Any:
        """The parts of what an operation takes: a tensor, a list, or a dictionary where they have names."""
        if self._names is not None:
            return dict(zip(self._names, made.outputs))
        return made.outputs[0] if len(self._types) == 1 else list(made.outputs)

    def _converted(self, vals: Any, types: Sequence[TensorType]) -> list[Tensor]:
        if isinstance(vals, dict) != (self._names is not None):
            raise ValueError(f"enqueue: {vals!r} for parts named {self._names}, at {here()}.")
        if self._names is not None:
            if sorted(vals) != sorted(self._names):
                raise ValueError(f"enqueue: {sorted(vals)} for parts named {self._names}, at {here()}.")
            vals = [vals[name] for name in self._names]
        values = list(vals) if isinstance(vals, (list, tuple)) else [vals]
        if len(values) != len(self._types):
            what = f"{len(values)} values for elements of {len(self._types)}"
            raise failed("enqueue", ArgumentError(what, "Give one for each dtype."))
        found = [
            convert_to_tensor(value, None if isinstance(value, Tensor) else type.dtype)
            for value, type in zip(values, self._types)
        ]
        for value, type in zip(found, types):
            if value.dtype is not type.dtype:
                what = f"{describe(value)} where the queue has {type.dtype.name}"
                raise failed("enqueue", DTypeError(what, "Cast it with tf.cast."))
            given, wanted = shape_of_sizes(value.type_.shape), shape_of_sizes(type.shape)
            if not given.is_compatible_with(wanted):
                what = f"a value of shape {given} where the queue has {wanted}"
                raise failed("enqueue", ShapeError(what, "Give values of the queue's shapes."))
        return found

    def enqueue(self, vals: Any, name: str | None = None) -> Operation:
        """An operation that puts one element."""
        values = self._converted(vals, self._types)

        def put(*arrays: Any) -> None:
            self._check([numpy.shape(array) for array in arrays])
            self.put([list(arrays)])

        return self._done("QueueEnqueue", put, name, values)

    def enqueue_many(self, vals: Any, name: str | None = None) -> Operation:
        """An operation that puts the slices of arrays along their first axis."""

        def put(*arrays: Any) -> None:
            shapes = [numpy.shape(array) for array in arrays]
            counts = {shape[:1] for shape in shapes}
            if () in counts or len(counts) > 1:
                what = f"arrays of shapes {', '.join(map(str, shapes))}, whose slices are put"
                raise ShapeError(what, "Give arrays with a first axis of one size.")
            self._check([shape[1:] for shape in shapes])
            self.put([list(parts) for parts in zip(*arrays)])

        types = [_stacked(type, new_unknown_size()) for type in self._types]
        return self._done("QueueEnqueueMany", put, name, self._converted(vals, types))

    def _check(self, shapes: Sequence[tuple[int, ...]]) -> None:
        """Raise ShapeError for parts that do not have the shapes of the queue."""
        for given, type in zip(shapes, self._types):
            wanted = shape_of_sizes(type.shape)
            if not wanted.is_compatible_with(given):
                what = f"a value of shape {given} for queue '{self.name}' of shape {wanted}"
                raise ShapeError(what, "Give values of the queue's shapes.")

    def dequeue(self, name: str | None = None) -> Any:
        """The next element: a tensor, or a list of its parts."""
        return self._structured(self._operation("QueueDequeue", (), self._types, self.take, name))

    def dequeue_many(self, n: Any, name: str | None = None) -> Any:
        """The next ``n`` elements, stacked."""
        return self._dequeue(whole(n), False, name)

    def dequeue_up_to(self, n: Any, name: str | None = None) -> Any:
        """The next ``n`` elements, stacked; those that are left when the queue is closed."""
        return self._dequeue(whole(n), True, name)

    def _dequeue(self, count: int, fewer: bool, name: str | None) -> Any:
        size = new_unknown_size() if fewer else count
        types = [_stacked(type, size) for type in self._types]

        def take() -> list[Any]:
            return self._together(list(zip(*self._take(count, fewer))))

        return self._structured(self._operation("QueueDequeueMany", (), types, take, name))

    def _together(self, columns: Sequence[Sequence[Any]]) -> list[Any]:
        """The parts of several elements, stacked."""
        return [stack(parts) for parts in columns]

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """An operation after which nothing can be put any more."""
        return self._done("QueueClose", lambda: self._held.in_run().shut(cancel_pending_enqueues), name)

    def shut(self, states: dict[Any, Any], cancel: bool) -> None:
        """Let nothing be put any more in the session of these states; with ``cancel`` not even by those who wait."""
        self._held.of(states).shut(cancel)

    def is_closed(self, name: str | None = None) -> Any:
        """Whether nothing can be put any more."""
        closed = lambda: numpy.bool_(self._held.in_run().closed)
        return self._operation("QueueIsClosed", (), [tensor_type(bool_)], closed, name).outputs[0]

    def size(self, name: str | None = None) -> Any:
        """The number of elements."""
        count = lambda: numpy.int32(len(self._held.in_run().elements))
        return self._operation("QueueSize", (), [tensor_type(int32)], count, name).outputs[0]

    def put(self, elements: list[list[Any]]) -> None:
        """Put elements from Python, waiting where the queue is full."""
        held = self._held.in_run()
        for element in elements:
            with held.changed:
                if held.closed:
                    self._refuse()
                while len(held.elements) >= self._capacity:
                    if held.cancelled:
                        self._refuse()
                    held.changed.wait(_PATIENCE)
                held.elements.append(element)
                held.changed.notify_all()

    def _refuse(self) -> None:
        raise CancelledError(f"queue '{self.name}' is closed", "Put elements before it is closed.")

    _kept = 0
    """How many elements stay while the queue is open."""

    def _position(self, elements: list[list[Any]]) -> int:
        """Which of the elements is taken next."""
        return 0

    def take(self) -> list[Any]:
        """Take an element from Python, waiting where the queue is empty."""
        return self._take(1, False)[0]

    def _take(self, count: int, fewer: bool) -> list[list[Any]]:
        taken: list[list[Any]] = []
        held = self._held.in_run()
        elements = held.elements
        with held.changed:
            while not held.closed and len(elements) < count - len(taken) + self._kept:
                if count + self._kept > self._capacity:  # so many are never there at once
                    while len(taken) < count and len(elements) > self._kept:
                        taken.append(elements.pop(self._position(elements)))
                    held.changed.notify_all()
                if len(taken) < count:
                    held.changed.wait(_PATIENCE)
            have = len(taken) + len(elements)
            if have < count and not (fewer and have):
                elements[:0] = taken
                what = f"queue '{self.name}' is closed and has {have} of {count} elements"
                raise OutOfRangeError(what, "Catch this error to end.")
            left = min(count, have) - len(taken)
            taken += [elements.pop(self._position(elements)) for _ in range(left)]
            held.changed.notify_all()
        return taken


@example(
    "queue = tf.RandomShuffleQueue(4, 1, [tf.int32], shapes=[[]], seed=0)",
    "session.run(queue.enqueue_many([[1, 2, 3]]))",
    "print(session.run(queue.dequeue()) in (1, 2, 3), session.run(queue.size()))",
    "True 2",
)
class RandomShuffleQueue(FIFOQueue):
    """Elements leave in random order; while the queue is open, ``min_after_dequeue`` of them stay."""

    def __init__(
        self,
        capacity: int,
        min_after_dequeue: int,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        seed: int | None = None,
        shared_name: str | None = None,
        name: str = "random_shuffle_queue",
    ) -> None:
        super().__init__(capacity, dtypes, shapes, names, shared_name, name)
        key = next_key(seed)
        self._kept, self._random = min_after_dequeue, Resource(lambda: numpy.random.default_rng(key))

    def _position(self, elements: list[list[Any]]) -> int:
        return int(self._random.in_run().integers(len(elements)))


@example(
    "queue = tf.PaddingFIFOQueue(4, [tf.int32], shapes=[[None]])",
    "session.run(queue.enqueue([[1, 2]]))",
    "session.run(queue.enqueue([[3]]))",
    "queue.dequeue_many(2)",
    "[[1 2]\n [3 0]]",
)
class PaddingFIFOQueue(FIFOQueue):
    """A queue of elements with unknown sizes; those taken together are padded with zeros (or "") to the largest."""

    def _together(self, columns: Sequence[Sequence[Any]]) -> list[Any]:
        sizes = [shape_of_sizes(type.shape).as_list() for type in self._types]
        blank = [b"" if type.dtype is string else 0 for type in self._types]
        location = _core.capture_location()
        return [pad_elements(*part, location) for part in zip(columns, sizes, blank)]


def _each_shape(shapes: Any, count: int) -> list[Any]:
    if (
        isinstance(shapes, (list, tuple))
        and len(shapes) == count
        and count
        and not isinstance(shapes[0], int)
    ):
        return list(shapes)
    return [shapes] * count


def _type(dtype: Any, shape: Any) -> TensorType:
    dims = TensorShape(shape).dims
    if dims is None:
        return tensor_type(dtype, UNKNOWN_RANK)
    return tensor_type(dtype, tuple(new_unknown_size() if d.value is None else d.value for d in dims))


def _stacked(type: TensorType, size: int) -> TensorType:
    return tensor_type(type.dtype, UNKNOWN_RANK if type.shape == UNKNOWN_RANK else (size, *type.shape))


class QueueRunner:
    """Operations that fill a queue, each run again and again in a thread of its own.

    A thread ends at an error among ``queue_closed_exception_types`` (OutOfRangeError and CancelledError unless
    given). Raises ArgumentError for ``close_op`` and ``cancel_op``: the runner closes the queue itself.
    """

    def __init__(
        self,
        queue: FIFOQueue,
        enqueue_ops: Sequence[Any],
        close_op: Any = None,
        cancel_op: Any = None,
        queue_closed_exception_types: Any = None,
        queue_runner_def: Any = None,
        import_scope: Any = None,
    ) -> None:
        refuse(
            "QueueRunner",
            close_op=close_op,
            cancel_op=cancel_op,
            queue_runner_def=queue_runner_def,
            import_scope=import_scope,
        )
        self.queue, self.enqueue_ops = queue, list(enqueue_ops)
        self.queue_closed_exception_types = tuple(
            queue_closed_exception_types or (OutOfRangeError, CancelledError)
        )

    @property
    def name(self) -> str:
        """The name of the queue."""
        return self.queue.name

    def create_threads(
        self, sess: Any, coord: Coordinator | None = None, daemon: bool = False, start: bool = False
    ) -> list[threading.Thread]:
        """One thread for each operation, and one that closes the queue when ``coord`` wants all to stop."""
        working, states, lock = [len(self.enqueue_ops)], sess._resources, threading.Lock()

        def end() -> None:
            with lock:
                working[0] -= 1
                if not working[0]:
                    self.queue.shut(states, False)

        works: list[Any] = [(self._fill, (sess, operation, coord, end)) for operation in self.enqueue_ops]
        if coord is not None:
            works.append((self._close_on_stop, (states, coord, working)))
        threads = [threading.Thread(target=work, args=given, daemon=daemon) for work, given in works]
        for thread in threads:
            if coord is not None:
                coord.register_thread(thread)
            if start:
                thread.start()
        return threads

    def _fill(self, session: Any, operation: Any, coord: Coordinator | None, end: Callable[[], None]) -> None:
        try:
            while coord is None or not coord.should_stop():
                session.run(operation)
        except self.queue_closed_exception_types:
            pass
        except Exception as error:
            if coord is None:
                raise
            coord.request_stop(error)
        finally:
            end()

    def _close_on_stop(self, states: dict[Any, Any], coord: Coordinator, working: list[int]) -> None:
        while not coord.wait_for_stop(_PATIENCE) and working[0]:
            pass
        if coord.should_stop():
            self.queue.shut(states, True)


def add_queue_runner(qr: QueueRunner, collection: str = RUNNERS) -> None:
    """Have ``start_queue_runners`` start a runner."""
    get_default_graph().add_to_collection(collection, qr)


def start_queue_runners(
    sess: Any = None,
    coord: Coordinator | None = None,
    daemon: bool = True,
    start: bool = True,
    collection: str = RUNNERS,
) -> list[threading.Thread]:
    """The threads of all queue runners of the session's graph."""
    session = sess or need_session("start_queue_runners")
    runners = session.graph.get_collection(collection)
    return [thread for runner in runners for thread in runner.create_threads(session, coord, daemon, start)]


EPOCHS = "num_epochs=None, shuffle=True, seed=None, capacity=32, shared_name=None, name=None"
"""Parameters of what fills a queue in epochs."""


@takes(EPOCHS)
def range_input_producer(limit: Any, **options: Any) -> FIFOQueue:
    """A queue of the numbers below ``limit``, in another order in each of ``num_epochs`` epochs (None: for ever).

    ``shared_name`` is for several processes and changes nothing.
    """
    numbers = lambda count: numpy.arange(int(count), dtype=numpy.int32)
    return filled_in_epochs(convert_to_tensor(limit), numbers, int32, options)


def filled_in_epochs(
    source: Tensor, elements: Callable[[Any], Any], dtype: DType, options: Mapping[str, Any], shape: Any = ()
) -> FIFOQueue:
    """A queue and a runner that puts the ``elements`` of the value of ``source`` into it, once in each epoch.

    Each is of ``shape``.
    """
    key, count = next_key(options["seed"]), options["num_epochs"]
    orders = Resource(lambda: numpy.random.default_rng(key))
    epochs = Resource(lambda: itertools.count() if count is None else iter(range(count)))
    queue = FIFOQueue(options["capacity"], [dtype], [shape], name=options["name"] or "input_producer")

    def put(value: Any) -> None:
        if next(epochs.in_run(), None) is None:
            raise OutOfRangeError("all rounds are done", "Catch this error to end.")
        found = elements(value)
        order = orders.in_run().permutation(len(found)) if options["shuffle"] else range(len(found))
        queue.put([[found[k]] for k in order])

    fill = queue._done("InputProducer", put, options["name"], [source])
    add_queue_runner(QueueRunner(queue, [fill]))
    return queue


@takes(EPOCHS)
def slice_input_producer(tensor_list: Sequence[Any], **options: Any) -> list[Any]:
    """The next slices of tensors along their first axis, one of each.

    ``shared_name`` is for several processes and changes nothing.
    """
    tensors = [convert_to_tensor(value) for value in tensor_list]
    count = shape_ops.shape(tensors[0])[0]
    position = range_input_producer(count, **options).dequeue()
    return [shape_ops.gather(tensor, position) for tensor in tensors]


def _batched(
    lists: Sequence[Any], make: Callable[[list[Any], list[Any]], FIFOQueue], options: dict[str, Any]
) -> Any:
    """Batches of what several lists of tensors, one kind in each position, are put into a queue."""
    many, shapes, size, first = options["enqueue_many"], options["shapes"], options["batch_size"], lists[0]
    named, alone = isinstance(first, Mapping), not isinstance(first, (list, tuple, Mapping))
    rows = []
    for tensors in lists:
        values = [tensors[key] for key in first] if named else [tensors] if alone else tensors
        rows.append([convert_to_tensor(value) for value in values])  # a list among them is stacked
    dtypes = [tensor.dtype for tensor in rows[0]]
    if any([tensor.dtype for tensor in row] != dtypes for row in rows):
        raise TypeError(f"batch_join: lists of different dtypes, at {here()}. Make them equal.")
    known = [_common([tensor.get_shape() for tensor in column], many) for column in zip(*rows, strict=True)]
    queue = make(dtypes, known if shapes is None else _each_shape(shapes, len(dtypes)))
    fills = [queue.enqueue_many(row) if many else queue.enqueue(row) for row in rows]
    add_queue_runner(QueueRunner(queue, fills * options.get("num_threads", 1)))
    found = queue.dequeue_up_to(size) if options["allow_smaller_final_batch"] else queue.dequeue_many(size)
    results = found if isinstance(found, list) else [found]
    if named:
        return dict(zip(first, results))
    return results[0] if len(results) == 1 else results


def _common(shapes: Sequence[TensorShape], many: bool) -> TensorShape:
    """The sizes that are the same in all shapes; without the first one where this counts elements."""
    each = [shape.dims for shape in shapes]
    if any(dims is None or len(dims) != len(each[0] or []) for dims in each):
        return TensorShape(None)
    sizes = [{size.value for size in column} for column in zip(*(dims or [] for dims in each))]
    merged = [column.pop() if len(column) == 1 else None for column in sizes]
    return TensorShape(merged[1:] if many else merged)


@takes(
    "batch_size, num_threads=1, capacity=32, enqueue_many=False, shapes=None, dynamic_pad=False, "
    "allow_smaller_final_batch=False, shared_name=None, name=None"
)
def batch(tensors: Any, **options: Any) -> Any:
    """``batch_size`` values of ``tensors`` at a time, which a queue runner computes ahead.

    With ``dynamic_pad`` those of different sizes are padded with zeros to the largest.

    ``shared_name`` is for several processes and changes nothing.
    """

    return _batched([tensors], _in_order(options, "batch"), options)


def _in_order(options: Mapping[str, Any], name: str) -> Callable[[list[Any], list[Any]], FIFOQueue]:
    kind = PaddingFIFOQueue if options["dynamic_pad"] else FIFOQueue
    capacity = max(options["capacity"], options["batch_size"])
    return lambda dtypes, known: kind(capacity, dtypes, known, name=options["name"] or name)


@example("made = tf.train.batch_join([[tf.zeros([2])], [tf.ones([2])]], 4)", "print(made.shape)", "(4, 2)")
@takes(
    "batch_size, capacity=32, enqueue_many=False, shapes=None, dynamic_pad=False, allow_smaller_final_batch=False, "
    "shared_name=None, name=None"
)
def batch_join(tensors_list: Sequence[Any], **options: Any) -> Any:
    """``batch`` of several lists of tensors, each of which a thread of its own computes ahead.

    ``shared_name`` is for several processes and changes nothing.
    """
    return _batched(list(tensors_list), _in_order(options, "batch_join"), options)


@takes(
    "batch_size, capacity, min_after_dequeue, num_threads=1, seed=None, enqueue_many=False, shapes=None, "
    "allow_smaller_final_batch=False, shared_name=None, name=None"
)
def shuffle_batch(tensors: Any, **options: Any) -> Any:
    """``batch`` in random order: ``min_after_dequeue`` elements wait to be sampled from.

    ``shared_name`` is for several processes and changes nothing.
    """

    return _batched([tensors], _at_random(options, "shuffle_batch"), options)


def _at_random(options: Mapping[str, Any], name: str) -> Callable[[list[Any], list[Any]], FIFOQueue]:
    counts, label = (options["capacity"], options["min_after_dequeue"]), options["name"] or name
    return lambda dtypes, known: RandomShuffleQueue(*counts, dtypes, known, seed=options["seed"], name=label)


@example(
    "made = tf.train.shuffle_batch_join([[tf.zeros([2])], [tf.ones([2])]], 4, 20, 8)",
    "print(made.shape)",
    "(4, 2)",
)
@takes(
    "batch_size, capacity, min_after_dequeue, seed=None, enqueue_many=False, shapes=None, "
    "allow_smaller_final_batch=False, shared_name=None, name=None"
)
def shuffle_batch_join(tensors_list: Sequence[Any], **options: Any) -> Any:
    """``batch_join`` in random order: ``min_after_dequeue`` elements wait to be sampled from.

    ``shared_name`` is for several processes and changes nothing.
    """
    return _batched(list(tensors_list), _at_random(options, "shuffle_batch_join"), options)
