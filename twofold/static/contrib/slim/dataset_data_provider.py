"""Items of the records of a data set, one record a run: ``slim.dataset_data_provider``."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from typing import Any

from twofold.dtypes import string
from twofold.errors import ArgumentError
from twofold.runtime.tracing import here
from twofold.static.contrib.slim.dataset import Dataset
from twofold.static.data.queues import FIFOQueue, QueueRunner, RandomShuffleQueue, add_queue_runner
from twofold.static.data.readers import string_input_producer
from twofold.static.graph.scopes import name_scope


def _files(sources: Any) -> list[str]:
    """The files of names and patterns; raises ValueError where there are none."""
    patterns = [sources] if isinstance(sources, (str, bytes, os.PathLike)) else list(sources)
    found = [name for one in patterns for name in sorted(glob.glob(os.fsdecode(one)))]
    if not found:
        raise ArgumentError(f"no data files found in {sources}, at {here()}", "Give names of files.")
    return found


def parallel_read(
    data_sources: Any,
    reader_class: Any,
    num_epochs: int | None = None,
    num_readers: int = 4,
    reader_kwargs: Any = None,
    shuffle: bool = True,
    dtypes: Any = None,
    capacity: int = 256,
    min_after_dequeue: int = 128,
    seed: int | None = None,
    scope: str | None = None,
) -> list[Any]:
    """The key and the value of a record, which several readers put into one queue.

    Args:
        data_sources: Names of files, or a pattern of them.
        reader_class: A class of readers.
        num_epochs: How often each file is read; without end for None.
        num_readers: How many readers there are.
        reader_kwargs: Their arguments.
        shuffle: Whether files and records come in random order.
        dtypes: Of key and value: strings unless given.
        capacity: Of the queue.
        min_after_dequeue: How many records stay in a queue that shuffles.
        seed: Of the orders.
        scope: Of the operations.

    Raises:
        ArgumentError: There are no files.
    """
    kinds = list(dtypes or [string, string])
    with name_scope(scope, "parallel_read"):
        names = string_input_producer(_files(data_sources), num_epochs, shuffle, seed=seed, name="filenames")
        shapes: Any = [[], []]
        if shuffle:
            queue: FIFOQueue = RandomShuffleQueue(
                capacity, min_after_dequeue, kinds, shapes, seed=seed, name="common_queue"
            )
        else:
            queue = FIFOQueue(capacity, kinds, shapes, name="common_queue")
        readers = [reader_class(**(reader_kwargs or {})) for _ in range(num_readers)]
        add_queue_runner(QueueRunner(queue, [queue.enqueue(list(one.read(names))) for one in readers]))
        return list(queue.dequeue(name="parallel_read"))


class DatasetDataProvider:
    """The items of records of a ``Dataset``, which queues give in a run.

    Args:
        dataset: The ``Dataset``.
        num_readers: How many readers there are.
        reader_kwargs: Their arguments.
        shuffle: Whether records come in random order.
        num_epochs: How often each comes; without end for None.
        common_queue_capacity: How many records wait.
        common_queue_min: How many stay in a queue that shuffles.
        record_key: The name of the item that is the key of a record.
        seed: Of the order.
        scope: Of the operations.

    Raises:
        ValueError: An item of the decoder has the name ``record_key``.
    """

    def __init__(
        self,
        dataset: Dataset,
        num_readers: int = 1,
        reader_kwargs: Any = None,
        shuffle: bool = True,
        num_epochs: int | None = None,
        common_queue_capacity: int = 256,
        common_queue_min: int = 128,
        record_key: str = "record_key",
        seed: int | None = None,
        scope: str | None = None,
    ) -> None:
        key, data = parallel_read(
            dataset.data_sources,
            dataset.reader,
            num_epochs,
            num_readers,
            reader_kwargs,
            shuffle,
            None,
            common_queue_capacity,
            common_queue_min,
            seed,
            scope,
        )
        names = dataset.decoder.list_items()
        if record_key in names:
            raise ArgumentError(f"an item is called {record_key}, at {here()}", "Give another record_key.")
        self._items = dict(zip(names, dataset.decoder.decode(data, names)))
        self._items[record_key] = key
        self._count = dataset.num_samples

    def get(self, items: Sequence[str]) -> list[Any]:
        """The tensors of items; raises ValueError for one that there is not."""
        unknown = [one for one in items if one not in self._items]
        if unknown:
            what = f"get: there is no {', '.join(unknown)} at {here()}"
            raise ArgumentError(what, f"There are {', '.join(self._items)}.")
        return [self._items[one] for one in items]

    def list_items(self) -> list[str]:
        """The names of the items."""
        return list(self._items)

    def num_samples(self) -> int | None:
        """How many records there are."""
        return self._count
