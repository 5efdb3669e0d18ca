"""Pipes of batches, and of a part of the samples."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from twofold.utils.data.datapipes.datapipe import DataChunk, IterDataPipe, functional_datapipe


@functional_datapipe("batch")
class Batcher(IterDataPipe):
    """Batches of samples.

    Args:
        datapipe: Samples.
        batch_size: Samples in a batch.
        drop_last: Whether to leave out a last batch of fewer.
        wrapper_class: What a batch is, of a list of samples.
    """

    def __init__(
        self, datapipe: Any, batch_size: int, drop_last: bool = False, wrapper_class: Any = DataChunk
    ) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe, self.batch_size, self.drop_last = datapipe, batch_size, drop_last
        self.wrapper_class = wrapper_class

    def __iter__(self) -> Iterator[Any]:
        source = iter(self.datapipe)
        while batch := list(islice(source, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield self.wrapper_class(batch)

    def __len__(self) -> int:
        given = len(self.datapipe)
        return given // self.batch_size if self.drop_last else -(-given // self.batch_size)


@functional_datapipe("unbatch")
class UnBatcher(IterDataPipe):
    """The samples of batches, ``unbatch_level`` deep; -1: of all batches inside."""

    def __init__(self, datapipe: Any, unbatch_level: int = 1) -> None:
        if unbatch_level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        self.datapipe, self.unbatch_level = datapipe, unbatch_level

    def __iter__(self) -> Iterator[Any]:
        for element in self.datapipe:
            yield from self._samples(element, self.unbatch_level)

    def _samples(self, element: Any, level: int) -> Iterator[Any]:
        is_batch = isinstance(element, (list, DataChunk))
        if level == 0 or (level < 0 and not is_batch):
            yield element
        elif not is_batch:
            raise IndexError(f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe")
        else:
            for item in element:
                yield from self._samples(item, level - 1 if level > 0 else level)


@functional_datapipe("sharding_filter")
class ShardingFilter(IterDataPipe):
    """Every n-th sample, after ``apply_sharding(n, first)``; all before.

    ``sharding_group_filter`` must be None: there is one group.
    """

    def __init__(self, source_datapipe: Any, sharding_group_filter: Any = None) -> None:
        if sharding_group_filter is not None:
            raise NotImplementedError("sharding_group_filter: there is one group of shards. Leave it out.")
        self.source_datapipe = source_datapipe
        self.num_of_instances, self.instance_id = 1, 0

    def is_shardable(self) -> bool:
        """Whether ``apply_sharding`` may be called."""
        return True

    def apply_sharding(self, num_of_instances: int, instance_id: int) -> None:
        """Keep the samples of one of several processes."""
        if instance_id >= num_of_instances:
            raise ValueError(
                f"instance_id({instance_id}) should be smaller than num_of_instances({num_of_instances})"
            )
        self.num_of_instances, self.instance_id = num_of_instances, instance_id

    def __iter__(self) -> Iterator[Any]:
        return islice(iter(self.source_datapipe), self.instance_id, None, self.num_of_instances)

    def __len__(self) -> int:
        return len(range(self.instance_id, len(self.source_datapipe), self.num_of_instances))
