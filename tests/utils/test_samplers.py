"""Samplers of many samples, and of several processes."""

from __future__ import annotations

import itertools

import pytest

import twofold as torch
from twofold.utils.data import (
    DataLoader,
    DistributedSampler,
    RandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)


def test_a_sampler_may_be_asked_for_more_than_memory_holds() -> None:
    data = TensorDataset(torch.arange(5))
    sampler = RandomSampler(data, replacement=True, num_samples=10**10)
    assert len(sampler) == 10**10
    found = list(itertools.islice(sampler, 100))
    assert set(found) == set(range(5))
    (batch,) = next(iter(DataLoader(data, sampler=sampler, batch_size=8)))
    assert batch.shape == (8,)


def test_the_same_seed_gives_the_same_samples() -> None:
    first, second = (
        list(RandomSampler(range(9), True, 100, torch.Generator().manual_seed(3))) for _ in range(2)
    )
    assert first == second and len(first) == 100


def test_shares_of_a_data_set() -> None:
    data = range(10)
    for drop_last, sizes in ((False, 4), (True, 3)):
        samplers = [DistributedSampler(data, 3, rank, drop_last=drop_last, seed=1) for rank in range(3)]
        shares = [list(sampler) for sampler in samplers]
        assert [len(share) for share in shares] == [len(sampler) for sampler in samplers] == [sizes] * 3
        seen = {index for share in shares for index in share}
        assert seen == set(data) if not drop_last else len(seen) == 9
    before = list(samplers[0])
    assert list(samplers[0]) == before
    samplers[0].set_epoch(1)
    assert list(samplers[0]) != before
    with pytest.raises(ValueError, match="Invalid rank 3"):
        DistributedSampler(data, 3, 3)
    with pytest.raises(ValueError, match="group has not been initialized"):
        DistributedSampler(data)


def test_numbers_of_samples_that_make_no_sense():
    for wrong in (0, -1, 2.0, True):
        with pytest.raises(ValueError, match="num_samples should be a positive integer"):
            RandomSampler(range(5), num_samples=wrong)
        with pytest.raises(ValueError, match="num_samples should be a positive integer"):
            WeightedRandomSampler([0.5, 0.5], wrong)
    with pytest.raises(TypeError, match="replacement should be a boolean"):
        RandomSampler(range(5), replacement=1)
    with pytest.raises(ValueError, match="replacement should be a boolean"):
        WeightedRandomSampler([0.5, 0.5], 1, replacement=1)
    with pytest.raises(ValueError, match="1d sequence"):
        WeightedRandomSampler([[0.5], [0.5]], 1)
