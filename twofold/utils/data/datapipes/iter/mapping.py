"""Pipes of the samples of another one: changed, chosen, reordered."""

from __future__ import annotations

import contextlib
import copy
import random
from collections.abc import Callable, Iterator
from typing import Any

from twofold.frontend.sampling import randint
from twofold.utils.data.collation import default_collate
from twofold.utils.data.datapipes.datapipe import IterDataPipe, functional_datapipe
from twofold.utils.data.sampler import SequentialSampler


def length_of(pipe: IterDataPipe, length: int) -> int:
    """A length that was given; raises TypeError if none was."""
    if length < 0:
        raise TypeError(f"{type(pipe).__name__} instance doesn't have valid length")
    return length


class IterableWrapper(IterDataPipe):
    """The elements of an iterable, of a deep copy for each iteration unless ``deepcopy`` is false."""

    def __init__(self, iterable: Any, deepcopy: bool = True) -> None:
        self.iterable, self.deepcopy = iterable, deepcopy

    def __iter__(self) -> Iterator[Any]:
        source = self.iterable
        if self.deepcopy:
            with contextlib.suppress(TypeError):  # generators and open files have no copy
                source = copy.deepcopy(source)
        yield from source

    def __len__(self) -> int:
        return len(self.iterable)


@functional_datapipe("map")
class Mapper(IterDataPipe):
    """A function of each sample.

    Args:
        datapipe: Samples.
        fn: The function.
        input_col: Which element of a sample it is given; a list: which are its arguments.
        output_col: Which element its result replaces, ``input_col`` by default; -1 appends it.
    """

    def __init__(
        self, datapipe: Any, fn: Callable[..., Any], input_col: Any = None, output_col: Any = None
    ) -> None:
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        if isinstance(output_col, (list, tuple)):
            if len(output_col) > 1:
                raise ValueError("`output_col` must be a single-element list or tuple")
            output_col = output_col[0]
        self.datapipe, self.fn, self.input_col, self.output_col = datapipe, fn, input_col, output_col

    def __iter__(self) -> Iterator[Any]:
        return map(self._apply, self.datapipe)

    def _apply(self, data: Any) -> Any:
        columns = self.input_col
        if columns is None:
            return self.fn(data)
        several = isinstance(columns, (list, tuple))
        result = self.fn(*(data[one] for one in columns)) if several else self.fn(data[columns])
        is_tuple = isinstance(data, tuple)
        made = list(data) if is_tuple else copy.copy(data)
        if self.output_col == -1:
            made.append(result)
        elif self.output_col is not None:
            made[self.output_col] = result
        elif several:
            made[columns[0]] = result
            for one in sorted(columns[1:], reverse=True):
                del made[one]
        else:
            made[columns] = result
        return tuple(made) if is_tuple else made

    def __len__(self) -> int:
        return len(self.datapipe)


@functional_datapipe("collate")
class Collator(Mapper):
    """Batches with their samples stacked.

    Args:
        datapipe: Batches.
        conversion: A function of a batch; ``default_collate`` by default.
        collate_fn: The same, by its former name.
    """

    def __init__(
        self, datapipe: Any, conversion: Any = default_collate, collate_fn: Callable[..., Any] | None = None
    ) -> None:
        if isinstance(conversion, dict):
            raise NotImplementedError("conversion: there are no data frames. Give a function of a batch.")
        super().__init__(datapipe, conversion if collate_fn is None else collate_fn)


@functional_datapipe("filter")
class Filter(IterDataPipe):
    """The samples of which ``filter_fn`` is true: of the elements that ``input_col`` names, if it is given."""

    def __init__(self, datapipe: Any, filter_fn: Callable[..., Any], input_col: Any = None) -> None:
        self.datapipe, self.filter_fn, self.input_col = datapipe, filter_fn, input_col

    def __iter__(self) -> Iterator[Any]:
        return filter(self._is_kept, self.datapipe)

    def _is_kept(self, data: Any) -> bool:
        column = self.input_col
        if column is None:
            result = self.filter_fn(data)
        elif isinstance(column, (list, tuple)):
            result = self.filter_fn(*(data[one] for one in column))
        else:
            result = self.filter_fn(data[column])
        if not isinstance(result, bool):
            raise ValueError(
                f"Boolean output is required for `filter_fn` of FilterIterDataPipe, got {type(result)}. Return a bool."
            )
        return result


@functional_datapipe("sampler")
class Sampler(IterDataPipe):
    """The samples of a data set with a length, at the indices that a sampler of it gives."""

    def __init__(
        self,
        datapipe: Any,
        sampler: Any = SequentialSampler,
        sampler_args: tuple[Any, ...] | None = None,
        sampler_kwargs: dict[str, Any] | None = None,
    ) -> None:
        self.sampler = sampler(*(sampler_args or ()), data_source=datapipe, **(sampler_kwargs or {}))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.sampler)

    def __len__(self) -> int:
        return len(self.sampler)


@functional_datapipe("shuffle")
class Shuffler(IterDataPipe):
    """Samples in random order: each is taken from a buffer of the next ``buffer_size``.

    Args:
        datapipe: Samples.
        buffer_size: Samples that may change their order.
        unbatch_level: How many levels of batches are taken apart first.
    """

    def __init__(self, datapipe: Any, *, buffer_size: int = 10000, unbatch_level: int = 0) -> None:
        if buffer_size <= 0:
            raise ValueError("buffer_size should be larger than 0")
        self.datapipe = datapipe.unbatch(unbatch_level=unbatch_level) if unbatch_level else datapipe
        self.buffer_size, self._enabled = buffer_size, True
        self._seed: int | None = None

    def set_shuffle(self, shuffle: bool = True) -> Shuffler:
        """Whether the order is random."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> Shuffler:
        """The seed of the next iteration."""
        self._seed = seed
        return self

    def __iter__(self) -> Iterator[Any]:
        if not self._enabled:
            yield from self.datapipe
            return
        seed, self._seed = self._seed, None
        rng = random.Random(int(randint(0, 2**62, ()).item()) if seed is None else seed)
        buffer: list[Any] = []
        for sample in self.datapipe:
            if len(buffer) < self.buffer_size:
                buffer.append(sample)
                continue
            index = rng.randint(0, len(buffer) - 1)
            yield buffer[index]
            buffer[index] = sample
        while buffer:
            yield buffer.pop(rng.randint(0, len(buffer) - 1))

    def __len__(self) -> int:
        return len(self.datapipe)
