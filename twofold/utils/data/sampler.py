"""Samplers: the order in which the samples of a data set are taken."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy

from twofold.dtypes import float64
from twofold.frontend.creation import as_tensor
from twofold.frontend.sampling import Generator, randint, randperm

_BLOCK = 32


def _check_count(num_samples: Any, least: int = 1) -> None:
    """Raise ValueError, in PyTorch's words, for what is no number of samples."""
    if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples < least:
        raise ValueError(f"num_samples should be a positive integer value, but got num_samples={num_samples}")


class Sampler:
    """Base of samplers: iterating gives indices."""

    def __init__(self, data_source: Any = None) -> None:
        self.data_source = data_source

    def __class_getitem__(cls, item: Any) -> Any:
        return cls

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError


class SequentialSampler(Sampler):
    """The indices in order."""

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler):
    """The indices in random order, or sampled with ``replacement``."""

    def __init__(
        self,
        data_source: Any,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        super().__init__(data_source)
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.replacement = replacement
        self.generator = generator
        self._num_samples = num_samples
        _check_count(self.num_samples, 0 if num_samples is None else 1)

    @property
    def num_samples(self) -> int:
        """How many indices one pass gives."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        count, wanted = len(self.data_source), self.num_samples
        if self.replacement:
            # in blocks, as a caller may ask for far more than it takes
            for start in range(0, wanted, _BLOCK):
                size = (min(_BLOCK, wanted - start),)
                yield from randint(0, count, size, generator=self.generator).tolist()
            return
        while wanted > 0:
            indices = randperm(count, generator=self.generator).tolist()[:wanted]
            wanted -= len(indices)
            yield from indices

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """Given indices in random order."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        super().__init__()
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        return iter([self.indices[k] for k in randperm(len(self.indices), generator=self.generator).tolist()])

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """Indices sampled with probabilities in proportion to ``weights``."""

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        _check_count(num_samples)
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.weights = as_tensor(weights, dtype=float64)
        if self.weights.ndim != 1:
            raise ValueError(
                f"weights should be a 1d sequence but given weights have shape {tuple(self.weights.shape)}"
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        weights = self.weights.numpy()
        wrong = numpy.flatnonzero(~(numpy.isfinite(weights) & (weights >= 0)))
        if wrong.size:
            raise RuntimeError(
                f"WeightedRandomSampler: weight {wrong[0]} is {weights[wrong[0]]}. "
                "Give finite weights that are not negative."
            )
        possible = int(numpy.count_nonzero(weights))
        if possible < (1 if self.replacement else self.num_samples):
            raise RuntimeError(
                f"WeightedRandomSampler: {possible} weights are above 0, for {self.num_samples} samples"
                f"{'' if self.replacement else ' without replacement'}. Give more such weights, or take fewer samples."
            )
        random = numpy.random.default_rng(randint(0, 2**31, (1,), generator=self.generator).item())
        chances = weights / weights.sum()
        return iter(random.choice(len(weights), self.num_samples, self.replacement, chances).tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler):
    """The indices of another sampler in lists of ``batch_size``."""

    def __init__(self, sampler: Any, batch_size: int, drop_last: bool) -> None:
        super().__init__()
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(
                f"batch_size should be a positive integer value, but got batch_size={batch_size}"
            )
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        source = iter(self.sampler)
        while batch := list(itertools.islice(source, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        count = len(self.sampler)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
