"""Batches made ahead of the steps that take them: ``slim.prefetch_queue``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twofold.dtypes import float32
from twofold.errors import ArgumentError
from twofold.runtime.tracing import here
from twofold.static import math, summary
from twofold.static.api.op_functions import convert_to_tensor
from twofold.static.data.queues import FIFOQueue, PaddingFIFOQueue, QueueRunner, add_queue_runner
from twofold.static.graph.docstrings import example


@example(
    "queue = tf.contrib.slim.prefetch_queue.prefetch_queue([tf.ones([2]), tf.constant(3)])",
    "with tf.contrib.slim.queues.QueueRunners(session):",
    "    print([value.tolist() for value in session.run(queue.dequeue())])",
    "[[1.0, 1.0], 3]",
)
def prefetch_queue(
    tensors: Any,
    capacity: int = 8,
    num_threads: int = 1,
    dynamic_pad: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> FIFOQueue:
    """A queue that ``num_threads`` threads fill with values of ``tensors``; ``dynamic_pad`` admits unknown sizes.

    Raises ArgumentError for a dict: parts of an element have no names.
    """
    if isinstance(tensors, Mapping):
        raise ArgumentError(f"prefetch_queue: a dict of tensors, at {here()}", "Give a list.")
    parts = [convert_to_tensor(one) for one in (tensors if isinstance(tensors, (list, tuple)) else [tensors])]
    kind = PaddingFIFOQueue if dynamic_pad else FIFOQueue
    dtypes, shapes = [one.dtype for one in parts], [one.get_shape() for one in parts]
    queue = kind(capacity, dtypes, shapes, None, shared_name, name or "prefetch_queue")
    add_queue_runner(QueueRunner(queue, [queue.enqueue(parts)] * num_threads))
    share = math.cast(queue.size(), float32) * (1.0 / capacity)
    summary.scalar(f"fraction_of_{capacity}_full", share)
    return queue
