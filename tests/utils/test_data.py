"""Data sets, samplers and loaders."""

from __future__ import annotations

import collections
from typing import Any

import numpy
import pytest

import twofold as torch
from twofold.utils import data

T = data.TensorDataset(torch.arange(10), torch.arange(20).reshape(10, 2).float())


class Squares(data.Dataset):
    def __len__(self) -> int:
        return 5

    def __getitem__(self, index: int) -> Any:
        if index >= 5:
            raise IndexError(index)
        return {"x": index, "y": float(index**2), "name": str(index), "a": numpy.ones(2) * index}


def test_batches_of_tensors() -> None:
    loader = data.DataLoader(T, batch_size=4)
    assert len(loader) == 3
    sizes = [tuple(part.shape) for batch in loader for part in batch]
    assert sizes == [(4,), (4, 2), (4,), (4, 2), (2,), (2, 2)]
    assert len(data.DataLoader(T, batch_size=4, drop_last=True)) == 2
    found = torch.cat([x for x, _ in loader]).tolist()
    assert found == list(range(10))


def test_shuffling_repeats_with_the_seed() -> None:
    orders = []
    for _ in range(2):
        torch.manual_seed(5)
        loader = data.DataLoader(T, batch_size=3, shuffle=True)
        orders.append([torch.cat([x for x, _ in loader]).tolist() for _ in range(2)])
    assert orders[0] == orders[1] and orders[0][0] != orders[0][1]
    assert sorted(orders[0][0]) == list(range(10))
    for x, y in data.DataLoader(T, batch_size=3, shuffle=True):
        assert y[:, 0].tolist() == [2 * k for k in x.tolist()]


def test_collation() -> None:
    (batch,) = data.DataLoader(Squares(), batch_size=5)
    assert batch["x"].dtype is torch.int64 and batch["x"].tolist() == [0, 1, 2, 3, 4]
    assert batch["y"].dtype is torch.float64 and batch["y"].tolist() == [0, 1, 4, 9, 16]
    assert batch["name"] == ["0", "1", "2", "3", "4"]
    assert batch["a"].shape == (5, 2)
    (first, *_) = data.DataLoader(
        Squares(), batch_size=2, collate_fn=lambda samples: [s["x"] for s in samples]
    )
    assert first == [0, 1]
    assert [sample["x"] for sample in data.DataLoader(Squares(), batch_size=None)] == list(range(5))
    with pytest.raises(RuntimeError, match="each element in list of batch should be of equal size"):
        data.default_collate([[1], [1, 2]])
    with pytest.raises(TypeError, match="batch must contain tensors"):
        data.default_collate([object()])


def test_strings_of_numpy_stay_a_list():
    strings = [numpy.str_("a"), numpy.str_("b")]
    assert data.default_collate(strings) == strings
    assert data.default_collate([numpy.bytes_(b"a")]) == [b"a"]


def test_splitting() -> None:
    first, second = data.random_split(T, [7, 3], torch.Generator().manual_seed(1))
    assert sorted(x.item() for part in (first, second) for x, _ in part) == list(range(10))
    assert [len(part) for part in data.random_split(T, [0.5, 0.25, 0.25])] == [6, 2, 2]
    batches = list(data.DataLoader(first, batch_size=7))
    assert batches[0][0].tolist() == [int(k) for k in first.indices]
    with pytest.raises(ValueError, match="Sum of input lengths does not equal"):
        data.random_split(T, [1, 2])


def test_samplers() -> None:
    assert list(data.BatchSampler(data.SequentialSampler(range(5)), 2, False)) == [[0, 1], [2, 3], [4]]
    assert len(list(data.RandomSampler(range(4), replacement=True, num_samples=9))) == 9
    assert sorted(data.SubsetRandomSampler([3, 5])) == [3, 5]
    assert set(data.WeightedRandomSampler([0.0, 1.0, 0.0], 5)) == {1}
    joined = T + data.TensorDataset(torch.arange(3), torch.zeros(3, 2))
    assert len(joined) == 13 and joined[12][0].item() == 2 and joined[-13][0].item() == 0


def test_streams() -> None:
    class Stream(data.IterableDataset):
        def __iter__(self) -> Any:
            return iter(range(5))

    assert [batch.tolist() for batch in data.DataLoader(Stream(), batch_size=2)] == [[0, 1], [2, 3], [4]]
    with pytest.raises(ValueError, match="expected unspecified shuffle option"):
        data.DataLoader(Stream(), shuffle=True)


def test_errors() -> None:
    with pytest.raises(AssertionError, match="Size mismatch between tensors"):
        data.TensorDataset(torch.ones(2), torch.ones(3))
    with pytest.raises(ValueError, match="sampler option is mutually exclusive with shuffle"):
        data.DataLoader(T, sampler=data.SequentialSampler(T), shuffle=True)
    with pytest.raises(
        ValueError, match="batch_size should be a positive integer value, but got batch_size=0"
    ):
        data.DataLoader(T, batch_size=0)


def test_chained_data_and_the_names_of_files():
    class Some(data.IterableDataset):
        def __init__(self, *values):
            self.values = values

        def __iter__(self):
            return iter(self.values)

        def __len__(self):
            return len(self.values)

    chained = data.ChainDataset([Some(1, 2), Some(3)])
    assert len(chained) == 3 and [x.item() for x in data.DataLoader(chained)] == [1, 2, 3]
    assert data.dataloader.DataLoader is data.DataLoader and data.sampler.Sampler is data.Sampler
    assert data.dataset.Dataset is data.Dataset and data.get_worker_info() is None


class Counting(data.IterableDataset):
    def __iter__(self):
        return iter(range(4))


def test_without_batches_samples_are_converted_or_go_through_collate_fn():
    pairs = [(1.5, numpy.array([1, 2])), ("a", numpy.float32(2))]
    found = list(data.DataLoader(pairs, batch_size=None))
    assert found[0][0] == 1.5 and found[0][1].tolist() == [1, 2] and isinstance(found[0], list)
    assert found[1][0] == "a" and found[1][1].dtype is torch.float32
    for source in (Counting(), range(4)):
        assert list(data.DataLoader(source, batch_size=None, collate_fn=lambda x: x * 2)) == [0, 2, 4, 6]
    named = collections.OrderedDict(x=numpy.array(1))
    for made in (data.default_convert(named), data.default_collate([named, named])):
        assert isinstance(made, collections.OrderedDict) and isinstance(made["x"], torch.Tensor)
    strings = numpy.array(["a"])
    assert data.default_convert(strings) is strings


def test_options_that_a_loader_has_no_use_for_are_refused():
    for options in ({"sampler": [1]}, {"batch_sampler": [[1]]}, {"shuffle": True}):
        with pytest.raises(ValueError, match=f"expected unspecified {next(iter(options))} option"):
            data.DataLoader(Counting(), **options)
    with pytest.raises(AssertionError, match="timeout=3"):
        data.DataLoader([1, 2], timeout=3)
    assert len(data.DataLoader([1, 2], timeout=3, num_workers=1)) == 2


def test_an_iteration_has_the_length_of_its_loader():
    data = torch.utils.data
    batches = iter(data.DataLoader(data.TensorDataset(torch.arange(5)), batch_size=2))
    assert len(batches) == 3 and isinstance(batches, data.dataloader._BaseDataLoaderIter)
    next(batches)
    assert len(batches) == 3


def test_a_subset_with_samples_of_its_own_is_asked_for_them():
    class Scaled(data.Subset):
        def __getitem__(self, index):
            return super().__getitem__(index)[0] * 10

    for source in (T, [T[k] for k in range(10)]):
        batches = list(data.DataLoader(Scaled(source, [4, 2, 7]), batch_size=2))
        assert [batch.tolist() for batch in batches] == [[40, 20], [70]]

    class Several(Scaled):
        def __getitems__(self, indices):
            return [one + 1 for one in super().__getitems__(indices)]

    assert next(iter(data.DataLoader(Several(T, [4, 2, 7]), batch_size=3))).tolist() == [41, 21, 71]


def test_a_loader_with_a_batch_sampler_has_no_batch_size_of_its_own():
    loader = data.DataLoader(T, batch_sampler=[[1, 2], [3]])
    assert (loader.batch_size, loader.drop_last, len(loader)) == (None, False, 2)
    assert [batch[0].tolist() for batch in loader] == [[1, 2], [3]]
