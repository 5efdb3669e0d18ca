"""Loaders: samples of a data set, chosen by samplers and collected to batches."""

from __future__ import annotations

import contextlib
import itertools
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from twofold import _core
from twofold.frontend.options import check_device
from twofold.frontend.sampling import Generator, initial_seed
from twofold.tracebacks import Iteration
from twofold.utils.data.collation import default_collate, default_convert
from twofold.utils.data.datapipes.datapipe import IterDataPipe
from twofold.utils.data.dataset import Dataset as Dataset
from twofold.utils.data.dataset import IterableDataset, Subset, TensorDataset
from twofold.utils.data.graph_settings import apply_shuffle_settings
from twofold.utils.data.sampler import BatchSampler, RandomSampler, SequentialSampler
from twofold.utils.data.sampler import Sampler as Sampler

Tensor = _core.Tensor
_collate_fn_t = Callable[[list[Any]], Any]
_worker_init_fn_t = Callable[[int], None]


class DataLoader:
    """Iterates over a data set in batches.

    Samples are loaded in the calling thread, in order. The order under ``shuffle`` comes from ``generator``, or the
    default one, so ``manual_seed`` repeats it.

    Args:
        num_workers: 0, or more: then the calling thread counts as one worker with number 0, which ``get_worker_info``
            describes to the data set and to ``worker_init_fn``, called with 0 at the start of each iteration.
        pin_memory: Warns, as there is no device that memory is pinned for.
        timeout: Checked; there is no other thread to wait for. So are ``multiprocessing_context``,
            ``prefetch_factor`` and ``persistent_workers``. All of them need workers; ``in_order`` holds in any case.

    >>> import twofold as torch
    >>> data = torch.utils.data.TensorDataset(torch.arange(5))
    >>> [batch for (batch,) in torch.utils.data.DataLoader(data, batch_size=2)]
    [tensor([0, 1]), tensor([2, 3]), tensor([4])]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Any = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers, multiprocessing_context)
        check_device(pin_memory_device or None)
        if pin_memory:
            what = (
                "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory"
            )
            warnings.warn(f"{what} won't be used.", stacklevel=2)
        is_chained = isinstance(dataset, IterDataPipe)  # then its pipes shuffle
        if is_chained:
            dataset = apply_shuffle_settings(dataset, shuffle)
        self._iterable = isinstance(dataset, IterableDataset)
        _check_batches(
            self._iterable, batch_size, None if is_chained else shuffle, sampler, batch_sampler, drop_last
        )
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory, self.pin_memory_device = pin_memory, pin_memory_device
        self.timeout, self.multiprocessing_context = timeout, multiprocessing_context
        self.persistent_workers = persistent_workers
        self.worker_init_fn = worker_init_fn
        self.in_order = in_order
        self.generator = generator
        self.collate_fn = collate_fn or (
            default_convert if batch_size is None and batch_sampler is None else default_collate
        )
        if sampler is None and not self._iterable:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        self.sampler = sampler
        if batch_sampler is not None:
            batch_size, drop_last = None, False
        elif batch_size is not None and not self._iterable:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_sampler = batch_sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __class_getitem__(cls, item: Any) -> Any:
        return cls

    def _fetch(self, indices: Sequence[int]) -> Any:
        # Exactly these classes: one that overrides __getitem__ has samples of its own.
        dataset, positions = self.dataset, indices
        while type(dataset) is Subset:
            positions = [dataset.indices[k] for k in positions]
            dataset = dataset.dataset
        if self.collate_fn is default_collate and type(dataset) is TensorDataset:
            return dataset.collated(positions)
        several = getattr(self.dataset, "__getitems__", None)
        samples = several(indices) if several is not None else [self.dataset[k] for k in indices]
        return self.collate_fn(samples)

    def _iterated(self) -> Iterator[Any]:
        source = iter(self.dataset)
        if self.batch_size is None:
            yield from map(self.collate_fn, source)
            return
        while batch := list(itertools.islice(source, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield self.collate_fn(batch)

    def _batches(self) -> Iterator[Any]:
        if self._iterable:
            return self._iterated()
        if self.batch_sampler is None:
            return (self.collate_fn(self.dataset[index]) for index in self.sampler)
        return (self._fetch(indices) for indices in self.batch_sampler)

    def __iter__(self) -> Iterator[Any]:
        return _BaseDataLoaderIter(self)

    def _as_worker(self) -> Iterator[Any]:
        """The batches, loaded while ``get_worker_info`` tells of the one worker."""
        info = WorkerInfo(0, 1, initial_seed(), self.dataset)
        with _working(info):
            if self.worker_init_fn is not None:
                self.worker_init_fn(0)
            batches = self._batches()
        while True:
            with _working(info):
                try:
                    batch = next(batches)
                except StopIteration:
                    return
            yield batch

    def __len__(self) -> int:
        if self._iterable:
            count = len(self.dataset)
            if self.batch_size is None:
                return count
            return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
        return len(self.sampler if self.batch_sampler is None else self.batch_sampler)


class _BaseDataLoaderIter(Iteration):
    """An iteration over a loader. As in PyTorch, ``len`` gives the number of batches of the whole iteration."""

    def __init__(self, loader: DataLoader) -> None:
        super().__init__(loader._as_worker() if loader.num_workers else loader._batches())
        self._loader = loader

    def __len__(self) -> int:
        return len(self._loader)


class WorkerInfo(NamedTuple):
    """What ``get_worker_info`` tells."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


_worker: list[WorkerInfo | None] = [None]


@contextlib.contextmanager
def _working(info: WorkerInfo) -> Iterator[None]:
    before, _worker[0] = _worker[0], info
    try:
        yield
    finally:
        _worker[0] = before


def get_worker_info() -> WorkerInfo | None:
    """While a loader with ``num_workers`` loads a sample, its one worker: the calling thread. Otherwise None."""
    return _worker[0]


def _check_workers(
    num_workers: int,
    timeout: float,
    prefetch_factor: int | None,
    persistent_workers: bool,
    multiprocessing_context: Any,
) -> None:
    """Raise ValueError for settings of workers that do not fit, in PyTorch's words."""
    if num_workers < 0:
        raise ValueError(
            "num_workers option should be non-negative; use num_workers=0 to disable multiprocessing."
        )
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and timeout:
        raise AssertionError(
            f"DataLoader: timeout={timeout} waits for workers. Give num_workers, or leave it out."
        )
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing: let num_workers > 0."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")
    if multiprocessing_context is not None and num_workers == 0:
        raise ValueError(
            "multiprocessing_context can only be used with multi-process loading (num_workers > 0), "
            f"but got num_workers={num_workers}"
        )


def _check_batches(
    iterable: bool,
    batch_size: int | None,
    shuffle: bool | None,
    sampler: Any,
    batch_sampler: Any,
    drop_last: bool,
) -> None:
    """Raise ValueError for ways to take samples that exclude one another, in PyTorch's words."""
    given = {"shuffle": shuffle or None, "sampler": sampler, "batch_sampler": batch_sampler}
    for name, value in given.items():
        if iterable and value is not None:
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}"
            )
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
        raise ValueError(
            "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
        )
    if batch_size is None and drop_last:
        raise ValueError(
            "batch_size=None option disables auto-batching and is mutually exclusive with drop_last"
        )
