"""Data pipes, against what PyTorch 2.13 gives."""

from __future__ import annotations

import numpy as np
import pytest

import twofold as torch
from twofold.utils.data import DataLoader, IterDataPipe, functional_datapipe
from twofold.utils.data.datapipes import iter as pipes
from twofold.utils.data.datapipes import map as indexed


@functional_datapipe("halved_in_a_test")
class Halved(IterDataPipe):
    def __init__(self, source):
        super().__init__()
        self.source = source

    def __iter__(self):
        for item in self.source:
            yield item / 2


def numbers(n=5):
    return pipes.IterableWrapper(range(n))


def test_chains():
    assert list(numbers().map(lambda x: x * x).filter(lambda x: x % 2 == 0)) == [0, 4, 16]
    assert list(numbers().batch(2)) == [[0, 1], [2, 3], [4]] and len(numbers().batch(2)) == 3
    assert list(numbers().batch(2, drop_last=True)) == [[0, 1], [2, 3]] and len(numbers().batch(2, True)) == 2
    assert (
        list(numbers(8).batch(2).batch(2).unbatch(2))
        == list(numbers(8).batch(2).batch(2).unbatch(-1))
        == [*range(8)]
    )
    assert list(numbers(2).concat(numbers(1))) == [0, 1, 0] and list(numbers(2).mux(numbers(3))) == [
        0,
        0,
        1,
        1,
    ]
    assert list(numbers(2).zip(numbers(3))) == [(0, 0), (1, 1)] and len(numbers(2).zip(numbers(3))) == 2
    (batch,) = numbers(2).batch(2).collate()
    np.testing.assert_array_equal(batch.numpy(), [0, 1])
    shuffled = numbers(20).shuffle(buffer_size=4)
    assert sorted(shuffled) == [*range(20)] and list(shuffled.set_seed(3)) == list(shuffled.set_seed(3))
    assert list(numbers(3).shuffle().set_shuffle(False)) == [0, 1, 2]
    part = numbers(5).sharding_filter()
    part.apply_sharding(2, 1)
    assert list(part) == [1, 3] and len(part) == 2


def test_columns_of_a_map():
    pairs = pipes.IterableWrapper([(1, 2, 3)])
    assert list(pairs.map(lambda x: -x, input_col=1)) == [(1, -2, 3)]
    assert list(pairs.map(lambda x: -x, input_col=1, output_col=-1)) == [(1, 2, 3, -2)]
    assert list(pairs.map(lambda x, y: x + y, input_col=[0, 2])) == [(4, 2)]
    assert list(pipes.IterableWrapper([{"a": 1}]).map(lambda x: x + 1, "a", "b")) == [{"a": 1, "b": 2}]
    assert list(pairs.filter(lambda x: x > 5, input_col=2)) == []
    with pytest.raises(ValueError, match="`output_col` must be None when `input_col` is None"):
        pairs.map(abs, output_col=1)
    with pytest.raises(ValueError, match="Boolean output is required"):
        list(numbers().filter(lambda x: x))


def test_files(tmp_path):
    for name in ("b.txt", "a.txt", "c.bin"):
        (tmp_path / name).write_text(name)
    paths = pipes.FileLister(str(tmp_path), masks="*.txt")
    assert [path.rsplit("/", 1)[1] for path in paths] == ["a.txt", "b.txt"]
    texts = []
    for _, file in paths.open_files():
        texts.append(file.read())
        file.close()
    assert texts == ["a.txt", "b.txt"]
    with pytest.raises(TypeError, match="FileLister instance doesn't have valid length"):
        len(paths)


def test_own_pipes_in_a_loader():
    batches = list(DataLoader(numbers(4).halved_in_a_test(), batch_size=3))
    assert [batch.tolist() for batch in batches] == [[0, 0.5, 1], [1.5]]
    assert isinstance(numbers().halved_in_a_test(), torch.utils.data.IterDataPipe)
    with pytest.raises(Exception, match="is already taken"):
        functional_datapipe("halved_in_a_test")(Halved)
    with pytest.raises(TypeError, match="can only decorate IterDataPipe or MapDataPipe"):
        functional_datapipe("something")(int)
    with pytest.raises(AttributeError, match="'IterableWrapper' object has no attribute 'something'"):
        numbers().something()


def test_a_loader_says_whether_pipes_shuffle():
    pipe = numbers(20).shuffle().map(lambda x: x)
    assert torch.cat(list(DataLoader(pipe, shuffle=False))).tolist() == [*range(20)]
    shuffled = torch.cat(list(DataLoader(pipe, shuffle=True))).tolist()
    assert shuffled != [*range(20)] and sorted(shuffled) == [*range(20)]
    with pytest.warns(UserWarning, match="does not contain a `Shuffler`. Adding one at the end"):
        loader = DataLoader(numbers(20), shuffle=True)
    assert sorted(one.item() for one in loader) == [*range(20)]


def test_indexed_pipes():
    pipe = indexed.SequenceWrapper([1, 2, 3])
    assert pipe.map(lambda x: -x)[2] == -3 and len(pipe.concat(pipe)) == 6 and pipe.concat(pipe)[4] == 2
    assert pipe.zip(pipe)[0] == (1, 1) and pipe.batch(2)[1] == [3] and len(pipe.batch(2, drop_last=True)) == 1
    assert indexed.SequenceWrapper({"a": 1})["a"] == 1
    assert sorted(one.item() for one in DataLoader(pipe, shuffle=True)) == [1, 2, 3]
