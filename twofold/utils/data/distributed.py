"""The share of one process in a data set."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from twofold.distributed.process_group import get_rank, get_world_size
from twofold.frontend.sampling import Generator, randperm
from twofold.utils.data.sampler import Sampler


class DistributedSampler(Sampler):
    """Every ``num_replicas``-th index, starting with ``rank``; all replicas get as many.

    Args:
        dataset: What is divided.
        num_replicas: How many shares there are; None for as many as the process group has processes.
        rank: Which share this is; None for the number of this process.
        shuffle: Whether indices are in random order, another in each epoch that ``set_epoch`` names.
        seed: Of the random order, the same in every replica.
        drop_last: Whether the last samples are left out to make shares equal; otherwise the first come twice.

    Raises:
        ValueError: A number is missing, and there is no process group.
        ValueError: ``rank`` is no share.

    >>> import twofold as torch
    >>> data = range(5)
    >>> [list(torch.utils.data.DistributedSampler(data, 2, rank, shuffle=False)) for rank in range(2)]
    [[0, 2, 4], [1, 3, 0]]
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        super().__init__(dataset)
        num_replicas = get_world_size() if num_replicas is None else num_replicas
        rank = get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.shuffle = shuffle
        self.seed = seed
        self.drop_last = drop_last
        count = len(dataset)
        uneven = count % num_replicas
        self.num_samples = count // num_replicas if drop_last and uneven else math.ceil(count / num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        count = len(self.dataset)
        if self.shuffle:
            generator = Generator()
            generator.manual_seed(self.seed + self.epoch)
            indices = randperm(count, generator=generator).tolist()
        else:
            indices = list(range(count))
        if not self.drop_last and indices:
            indices = indices * math.ceil(self.total_size / count)
        return iter(indices[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Choose the random order of the next pass."""
        self.epoch = epoch
