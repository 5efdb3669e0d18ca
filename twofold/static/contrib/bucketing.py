"""Batches of elements that are alike: ``tf.contrib.training.bucket`` and ``bucket_by_sequence_length``."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from twofold.dtypes import int32
from twofold.runtime.tracing import here
from twofold.static import math
from twofold.static.api.op_functions import convert_to_tensor
from twofold.static.api.signatures import takes
from twofold.static.control_flow.conditional import cond
from twofold.static.control_flow.dependencies import group, no_op
from twofold.static.data.queues import FIFOQueue, PaddingFIFOQueue, QueueRunner, add_queue_runner
from twofold.static.graph.graph import Tensor
from twofold.static.graph.scopes import name_scope
from twofold.static.graph.tensor_shape import TensorShape

BUCKETS = (
    "num_threads=1, capacity=32, bucket_capacities=None, shapes=None, dynamic_pad=False, "
    "allow_smaller_final_batch=False, keep_input=True, shared_name=None, name=None"
)


class _Buckets:
    """The queues that a runner closes together."""

    def __init__(self, queues: Sequence[FIFOQueue]) -> None:
        self.name, self._queues = queues[0].name, queues

    def shut(self, states: dict[Any, Any], cancel: bool) -> None:
        for queue in self._queues:
            queue.shut(states, cancel)


def _as_list(tensors: Any) -> list[Tensor]:
    if isinstance(tensors, Mapping):
        tensors = list(tensors.values())
    given = tensors if isinstance(tensors, (list, tuple)) else [tensors]
    if not given:
        raise ValueError(f"Expected at least one tensor in bucket(), at {here()}.")
    return [convert_to_tensor(value) for value in given]


def _as_given(tensors: Any, found: list[Tensor]) -> Any:
    return dict(zip(tensors, found)) if isinstance(tensors, Mapping) else found


def _for_each(value: Any, count: int, what: str) -> list[Any]:
    """One value for each bucket; raises ValueError for a list of another length."""
    each = list(value) if isinstance(value, (list, tuple)) else [value] * count
    if len(each) != count:
        raise ValueError(f"bucket: {what} has {len(each)} elements for {count} buckets, at {here()}.")
    return each


@takes(f"which_bucket, batch_size, num_buckets, {BUCKETS}")
def bucket(tensors: Any, **options: Any) -> Any:
    """Batches of values of ``tensors`` that have the same ``which_bucket``, and which it is.

    Queue runners compute them ahead. ``batch_size`` and ``bucket_capacities`` may be lists, one for each bucket; where
    ``keep_input`` is false a value is left out. The rest is as in ``tf.train.batch``; ``shared_name`` is for several
    processes and changes nothing.

    Raises:
        ValueError: If there are no tensors, or a list has not an element for each bucket.

    >>> import twofold.static as tf
    >>> number, made = tf.contrib.training.bucket(tf.zeros([2]), which_bucket=1, batch_size=3, num_buckets=2)
    >>> print(number.shape, made.shape)
    () (3, 2)
    """
    count, capacity = options["num_buckets"], options["capacity"]
    sizes = _for_each(options["batch_size"], count, "batch_size")
    capacities = _for_each(options["bucket_capacities"] or capacity, count, "bucket_capacities")
    given = _as_list(tensors)
    with name_scope(options["name"], "bucket", given):
        dtypes = [tensor.dtype for tensor in given]
        shapes = options["shapes"] or [tensor.get_shape() for tensor in given]
        kind = PaddingFIFOQueue if options["dynamic_pad"] else FIFOQueue
        queues = [
            kind(max(most, size), dtypes, shapes, name=f"bucket_queue_{k}")
            for k, (most, size) in enumerate(zip(capacities, sizes, strict=True))
        ]
        fixed = not (options["allow_smaller_final_batch"] or isinstance(options["batch_size"], (list, tuple)))
        batches = [TensorShape([sizes[0] if fixed else None]).concatenate(shape) for shape in shapes]
        top = PaddingFIFOQueue(capacity, [int32, *dtypes], [[], *batches], name="top_queue")
        _fill(given, queues, options)
        _collect(queues, top, sizes, options["allow_smaller_final_batch"])
        number, *found = top.dequeue(name="dequeue_top")
    is_one = len(found) == 1 and not isinstance(tensors, Mapping)
    return number, found[0] if is_one else _as_given(tensors, found)


def _fill(given: list[Tensor], queues: Sequence[FIFOQueue], options: Mapping[str, Any]) -> None:
    """Have a runner put the values into the queue of their bucket."""
    number = convert_to_tensor(options["which_bucket"], int32)

    def put() -> Any:
        chosen = [
            cond(math.equal(number, k), functools.partial(queue.enqueue, given), no_op)
            for k, queue in enumerate(queues)
        ]
        return group(*chosen, name="group_enqueues")

    keep = options["keep_input"]
    fills = (put() if keep else no_op()) if isinstance(keep, bool) else cond(keep, put, no_op)
    closes: Any = _Buckets(queues)
    add_queue_runner(QueueRunner(closes, [fills] * options["num_threads"]))


def _collect(queues: Sequence[FIFOQueue], top: FIFOQueue, sizes: Sequence[Any], fewer: bool) -> None:
    """Have a runner move batches of each bucket to the queue that they are read from."""
    moves = []
    for k, (queue, size) in enumerate(zip(queues, sizes, strict=True)):
        take = queue.dequeue_up_to if fewer else queue.dequeue_many
        found = take(size, name=f"read_bucket_{k}")
        each = found if isinstance(found, list) else [found]
        moves.append(top.enqueue([convert_to_tensor(k, int32), *each], name=f"enqueue_from_bucket_{k}"))
    add_queue_runner(QueueRunner(top, moves))


@takes(f"tensors, batch_size, bucket_boundaries, {BUCKETS}")
def bucket_by_sequence_length(input_length: Any, **options: Any) -> Any:
    """Lengths and batches of values of ``tensors`` whose ``input_length`` lies between the same boundaries.

    A bucket begins at its boundary. The rest is as in ``bucket``.

    Raises:
        TypeError: If the boundaries are no list of whole numbers.
        ValueError: If there are none, or they do not grow.

    >>> import twofold.static as tf
    >>> lengths, made = tf.contrib.training.bucket_by_sequence_length(
    ...     tf.constant(2), [tf.zeros([2])], batch_size=3, bucket_boundaries=[2, 4]
    ... )
    >>> print(lengths.shape, made[0].shape)
    (3,) (3, 2)
    """
    boundaries, tensors = options.pop("bucket_boundaries"), options.pop("tensors")
    if not isinstance(boundaries, (list, tuple)) or not all(isinstance(one, int) for one in boundaries):
        raise TypeError(
            f"bucket_boundaries must be a list or tuple of integers, not {boundaries!r}, at {here()}."
        )
    if not boundaries:
        raise ValueError(f"bucket_boundaries must not be empty, at {here()}.")
    for one, other in itertools.pairwise(boundaries):
        if one >= other:
            raise ValueError(
                f"Buckets must contain sequential increasing lengths, but saw: {one} before {other}."
            )
    given = _as_list(tensors)
    with name_scope(options.pop("name"), "bucket_by_sequence_length", given):
        length = convert_to_tensor(input_length, int32)
        which = math.reduce_sum(math.cast(math.greater_equal(length, list(boundaries)), int32))
        shapes = options.pop("shapes")
        shapes = None if shapes is None else [TensorShape([]), *shapes]
        _, found = bucket([length, *given], which, num_buckets=len(boundaries) + 1, shapes=shapes, **options)
    lengths, *values = found
    return lengths, _as_given(tensors, values)
