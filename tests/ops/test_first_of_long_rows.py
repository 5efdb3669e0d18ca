"""The first elements of long rows, of which only a few are looked at, are those that sorting the rows gives."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import twofold as torch
from twofold.ops.indexing import sorting_routines
from twofold.ops.indexing.sorting_routines import first, order

LENGTH = 9001
RANDOM = numpy.random.default_rng(0)
ROWS: dict[str, Any] = {
    "normal": RANDOM.normal(size=(3, LENGTH)).astype(numpy.float32),
    "double": RANDOM.normal(size=(2, LENGTH)),
    "many equal": RANDOM.integers(0, 5, (3, LENGTH)),
    "all equal": numpy.zeros((2, LENGTH), numpy.float16),
    "both zeros": numpy.copysign(numpy.zeros((2, LENGTH), numpy.float32), RANDOM.normal(size=(2, LENGTH))),
    "truth": RANDOM.integers(0, 2, (2, LENGTH)).astype(bool),
    "ascending": numpy.arange(2 * LENGTH, dtype=numpy.int64).reshape(2, LENGTH),
    "missing": numpy.where(RANDOM.random((2, LENGTH)) < 0.001, numpy.nan, RANDOM.normal(size=(2, LENGTH))),
    "at the end": numpy.eye(2, LENGTH, LENGTH - 2, dtype=numpy.float32),  # behind the last whole column
}


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("count", [1, 8, 35])
@pytest.mark.parametrize("name", ROWS)
def test_the_first_are_those_of_the_order(name: str, count: int, descending: bool) -> None:
    rows = ROWS[name]
    found = first(rows, count, descending)
    numpy.testing.assert_array_equal(found, order(rows, descending)[:, :count])


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("count", [1, 3, 16, 17, 50, 64])
@pytest.mark.parametrize("name", ROWS)
def test_topk_gives_those_of_the_order(name: str, count: int, descending: bool) -> None:
    for length in (count, count + 1, 100, LENGTH):
        rows = ROWS[name][:, LENGTH - length :]
        expected = order(rows.astype(numpy.float32) if rows.dtype == numpy.float16 else rows, descending)
        for axis, x in ((1, rows), (0, rows.T)):
            found = torch.topk(torch.tensor(x), count, axis, descending).indices.numpy()
            numpy.testing.assert_array_equal(found if axis else found.T, expected[:, :count])


def test_few_elements_of_a_long_row_are_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    divided = []

    def partition(x: Any, *arguments: Any) -> Any:
        divided.append(x.size)
        return divide(x, *arguments)

    divide = numpy.partition
    monkeypatch.setattr(sorting_routines.numpy, "partition", partition)
    first(ROWS["normal"][:1], 8, True)
    assert 8 < sum(divided) < LENGTH / 8
