"""Blocks in which queues are filled: ``slim.queues``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from twofold.static.data.coordinator import Coordinator
from twofold.static.data.queues import start_queue_runners


@contextmanager
def QueueRunners(session: Any) -> Iterator[None]:  # a function in TensorFlow, too
    """A block in which the queue runners of the graph work; they stop at its end."""
    coordinator = Coordinator()
    threads = start_queue_runners(session, coordinator)
    try:
        yield
    finally:
        coordinator.request_stop()
        coordinator.join(threads, stop_grace_period_secs=120)
