"""A buffer between two steps of a pipeline: ``tf.contrib.staging``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from twofold.errors import ArgumentError
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import refuse
from twofold.static.data.queues import FIFOQueue
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import Operation, get_default_graph


@example(
    "area = tf.contrib.staging.StagingArea([tf.float32], shapes=[[]])",
    "put, get = area.put([tf.constant(2.0)]), area.get()",
    "session.run(put)",
    "print(session.run(get), session.run(area.size()))",
    "[np.float32(2.0)] 0",
)
class StagingArea:
    """Elements that leave in the order they came; ``get`` waits where there is none.

    Args:
        dtypes: The dtypes of an element's parts.
        shapes: Their shapes.
        names: Keys: elements are dicts then.
        shared_name: For several processes; changes nothing.
        capacity: How many elements there may be; any number with 0.
        memory_limit: Not offered; raises unless 0.
    """

    def __init__(
        self,
        dtypes: Sequence[Any],
        shapes: Sequence[Any] | None = None,
        names: Sequence[str] | None = None,
        shared_name: str | None = None,
        capacity: int = 0,
        memory_limit: int = 0,
    ) -> None:
        refuse("StagingArea", memory_limit=memory_limit or None)
        if names is not None and len(names) != len(dtypes):
            what = f"StagingArea: {len(names)} names for {len(dtypes)} dtypes, at {here()}"
            raise ArgumentError(what, "Give one for each.")
        self.name = shared_name or get_default_graph().unique_name("StagingArea")
        self.names, self.capacity = None if names is None else list(names), capacity
        self._queue = FIFOQueue(capacity or sys.maxsize, list(dtypes), shapes, name=self.name)
        self.dtypes = self._queue.dtypes

    def put(self, values: Any, name: str | None = None) -> Operation:
        """An operation that puts an element: a list of its parts, or a dict where there are names."""
        if (self.names is not None) != isinstance(values, dict):
            what = f"StagingArea.put: a {type(values).__name__}, at {here()}"
            raise ArgumentError(what, "Give a list." if self.names is None else "Give a dict.")
        given = values if self.names is None else [values[key] for key in self.names]
        return self._queue.enqueue(given, name)

    def get(self, index: Any = None, name: str | None = None) -> Any:
        """The next element, which leaves: a list of its parts, or a dict; ``index`` must be None."""
        refuse("StagingArea.get", index=index)
        found = self._queue.dequeue(name)
        parts = found if isinstance(found, list) else [found]
        return parts if self.names is None else dict(zip(self.names, parts))

    def size(self, name: str | None = None) -> Any:
        """The number of elements."""
        return self._queue.size(name)
