"""Pipes of several pipes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from twofold.utils.data.datapipes.datapipe import IterDataPipe, functional_datapipe


class _Combined(IterDataPipe):
    def __init__(self, *datapipes: IterDataPipe) -> None:
        if not datapipes:
            raise ValueError(
                f"Expected at least one DataPipe, but got nothing. Give {type(self).__name__} pipes."
            )
        if not all(isinstance(one, IterDataPipe) for one in datapipes):
            raise TypeError(f"Expected all inputs to be `IterDataPipe`. Give {type(self).__name__} such.")
        self.datapipes = datapipes


@functional_datapipe("concat")
class Concater(_Combined):
    """The samples of several pipes, one pipe after the other."""

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(self.datapipes)

    def __len__(self) -> int:
        return sum(len(one) for one in self.datapipes)


@functional_datapipe("zip")
class Zipper(_Combined):
    """Tuples of a sample of each pipe, until one ends."""

    def __iter__(self) -> Iterator[Any]:
        return zip(*self.datapipes, strict=False)

    def __len__(self) -> int:
        return min(len(one) for one in self.datapipes)


@functional_datapipe("mux")
class Multiplexer(_Combined):
    """A sample of each pipe in turn, until one ends."""

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(zip(*self.datapipes, strict=False))

    def __len__(self) -> int:
        return min(len(one) for one in self.datapipes) * len(self.datapipes)
