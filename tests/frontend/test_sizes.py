"""Shapes keep their class: slices, sums with tuples, and multiples of a size are sizes."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import twofold as torch

SIZES = st.lists(st.integers(0, 9), max_size=6)
POSITIONS = st.none() | st.integers(-8, 8)


@given(SIZES, SIZES, POSITIONS, POSITIONS, st.none() | st.integers(-3, 3).filter(bool), st.integers(-1, 3))
def test_they_are_what_tuples_give(
    one: list[int], other: list[int], start: Any, stop: Any, step: Any, count: int
) -> None:
    size, plain, more = torch.Size(one), tuple(one), tuple(other)
    part = slice(start, stop, step)
    for found, wanted in (
        (size[part], plain[part]),
        (size + more, plain + more),
        (more + size, more + plain),
        (size + torch.Size(other), plain + more),
        (size * count, plain * count),
        (count * size, count * plain),
        (copy.deepcopy(size), plain),
        (pickle.loads(pickle.dumps(size)), plain),
    ):
        assert type(found) is torch.Size and found == wanted and hash(found) == hash(wanted)
    assert [size[k] for k in range(-len(one), len(one))] == one * 2


def test_they_stand_wherever_sizes_do() -> None:
    x = torch.arange(24).reshape(2, 3, 4)
    assert x.shape[1:].numel() == 12 and repr(x.shape[1:]) == "twofold.Size([3, 4])"
    assert x.view(x.shape[:1] + (12,)).shape == (2, 12)
    assert torch.zeros(x.shape[1:]).expand(x.shape[:1] + x.shape[1:]).shape == x.shape
    f = torch.vmap(lambda row: row.reshape(row.shape[::-1]).sum(0))
    assert f(x).shape == (2, 3)


@pytest.mark.parametrize("other", [[1], 1.5, "a", None])
def test_nothing_else_is_added(other: Any) -> None:
    with pytest.raises(TypeError):
        torch.Size((1, 2)) + other
    with pytest.raises(TypeError):
        torch.Size((1, 2)) * 1.5
    with pytest.raises(IndexError):
        torch.Size((1, 2))[2]
