"""Pipes that are indexed, of sequences and of other pipes."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from twofold.utils.data.datapipes.datapipe import DataChunk, MapDataPipe, functional_datapipe
from twofold.utils.data.dataset import ConcatDataset


class SequenceWrapper(MapDataPipe):
    """The elements of a sequence or dictionary, of a deep copy unless ``deepcopy`` is false."""

    def __init__(self, sequence: Any, deepcopy: bool = True) -> None:
        self.sequence = copy.deepcopy(sequence) if deepcopy else sequence

    def __getitem__(self, index: Any) -> Any:
        return self.sequence[index]

    def __len__(self) -> int:
        return len(self.sequence)


def _same(data: Any) -> Any:
    return data


@functional_datapipe("map")
class Mapper(MapDataPipe):
    """A function of each sample, computed when it is indexed."""

    def __init__(self, datapipe: Any, fn: Callable[..., Any] = _same) -> None:
        self.datapipe, self.fn = datapipe, fn

    def __getitem__(self, index: Any) -> Any:
        return self.fn(self.datapipe[index])

    def __len__(self) -> int:
        return len(self.datapipe)


@functional_datapipe("concat")
class Concater(MapDataPipe):
    """The samples of several pipes, one pipe after the other."""

    def __init__(self, *datapipes: Any) -> None:
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing. Give Concater pipes.")
        self.datapipes = datapipes

    def __getitem__(self, index: int) -> Any:
        if not 0 <= index < len(self):
            raise IndexError(f"Index {index} is out of range.")
        return ConcatDataset(self.datapipes)[index]

    def __len__(self) -> int:
        return sum(len(one) for one in self.datapipes)


@functional_datapipe("zip")
class Zipper(MapDataPipe):
    """Tuples of the samples that several pipes have at an index."""

    def __init__(self, *datapipes: Any) -> None:
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing. Give Zipper pipes.")
        self.datapipes = datapipes

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple(one[index] for one in self.datapipes)

    def __len__(self) -> int:
        return min(len(one) for one in self.datapipes)


@functional_datapipe("batch")
class Batcher(MapDataPipe):
    """Batches of samples whose indices follow each other; ``drop_last`` leaves out one of fewer."""

    def __init__(
        self, datapipe: Any, batch_size: int, drop_last: bool = False, wrapper_class: Any = DataChunk
    ) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe, self.batch_size, self.drop_last = datapipe, batch_size, drop_last
        self.wrapper_class = wrapper_class

    def __getitem__(self, index: int) -> Any:
        if not 0 <= index < len(self):
            raise IndexError(f"Index {index} is out of bound.")
        first = index * self.batch_size
        last = min(first + self.batch_size, len(self.datapipe))
        return self.wrapper_class([self.datapipe[one] for one in range(first, last)])

    def __len__(self) -> int:
        given = len(self.datapipe)
        return given // self.batch_size if self.drop_last else -(-given // self.batch_size)
