"""Data sets, and ways to join and part them."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

from twofold import _core
from twofold.frontend.creation import tensor
from twofold.frontend.sampling import Generator, randperm
from twofold.ops.base import FUNCTIONS

Tensor = _core.Tensor


class Dataset:
    """Base of data sets: ``__getitem__(index)`` gives a sample, ``__len__`` their number."""

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __class_getitem__(cls, item: Any) -> Any:
        return cls

    def __add__(self, other: Dataset) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """Base of data sets that are only iterated over."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError("Subclasses of IterableDataset should implement __iter__.")


class TensorDataset(Dataset):
    """Samples are the rows of tensors with equal first sizes; raises AssertionError where these differ."""

    def __init__(self, *tensors: Tensor) -> None:
        if any(tensors[0].shape[0] != other.shape[0] for other in tensors):
            sizes = ", ".join(str(tensor.shape[0]) for tensor in tensors)
            raise AssertionError(
                f"Size mismatch between tensors: their first sizes are {sizes}. Give tensors of as many rows."
            )
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].shape[0]

    def collated(self, indices: Sequence[int]) -> list[Tensor]:
        """The batch of the samples at ``indices``: one selection of rows for each tensor."""
        rows = tensor(indices)
        return [FUNCTIONS["index_select"](one, 0, rows) for one in self.tensors]


class ConcatDataset(Dataset):
    """Data sets one after the other."""

    def __init__(self, datasets: Sequence[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        self.cumulative_sizes = list(itertools.accumulate(len(one) for one in self.datasets))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> Any:
        if index < 0:
            if -index > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            index += len(self)
        position = bisect.bisect_right(self.cumulative_sizes, index)
        return self.datasets[position][index - (self.cumulative_sizes[position - 1] if position else 0)]


class ChainDataset(IterableDataset):
    """Several iterable data sets one after the other."""

    def __init__(self, datasets: Any) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(self.datasets)

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self.datasets)


class StackDataset(Dataset):
    """Samples are tuples, or dictionaries, of the samples of several data sets."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if bool(args) == bool(kwargs):
            raise ValueError("Give either data sets or named data sets.")
        self.datasets: Any = args or kwargs
        sizes = {len(one) for one in (args or kwargs.values())}
        if len(sizes) != 1:
            raise ValueError("Size mismatch between datasets")
        (self._length,) = sizes

    def __getitem__(self, index: int) -> Any:
        if isinstance(self.datasets, dict):
            return {name: one[index] for name, one in self.datasets.items()}
        return tuple(one[index] for one in self.datasets)

    def __len__(self) -> int:
        return self._length


class Subset(Dataset):
    """The samples of a data set at some indices."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[k] for k in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """The samples at several indices, by ``__getitem__`` of a subclass that has its own."""
        if type(self).__getitem__ is not Subset.__getitem__:
            return [self[k] for k in indices]
        rows = [self.indices[k] for k in indices]
        several = getattr(self.dataset, "__getitems__", None)
        return several(rows) if callable(several) else [self.dataset[k] for k in rows]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Any, lengths: Sequence[float], generator: Generator | None = None) -> list[Subset]:
    """Split at random into parts of given sizes, or of given fractions that add up to 1.

    Raises ValueError where the sizes do not add up to that of the data set.
    """
    count = len(dataset)
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        for index, fraction in enumerate(lengths):
            if fraction < 0 or fraction > 1:
                raise ValueError(f"Fraction at index {index} is not between 0 and 1")
        sizes = [math.floor(count * fraction) for fraction in lengths]
        for k in range(count - sum(sizes)):
            sizes[k % len(sizes)] += 1
    else:
        sizes = [int(size) for size in lengths]
    if sum(sizes) != count:
        raise ValueError(
            f"Sum of input lengths does not equal the length of the input dataset! These are {sum(sizes)} and {count}. "
            "Give lengths that add up to it, or fractions that add up to 1."
        )
    order = randperm(count, generator=generator).tolist()
    ends = itertools.accumulate(sizes)
    return [Subset(dataset, order[end - size : end]) for end, size in zip(ends, sizes, strict=True)]
