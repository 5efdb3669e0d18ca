"""Copies larger than caches, which are written past these, have all bytes, whatever their number and alignment."""

from __future__ import annotations

import numpy
import pytest

import twofold as torch

LARGE = 1 << 24


@pytest.mark.parametrize("offset", [0, 1, 16])
@pytest.mark.parametrize("count", [LARGE - 1, LARGE, LARGE + 1, LARGE + 63, LARGE + 4096 * 3 + 17])
def test_all_bytes_are_copied(count: int, offset: int) -> None:
    whole = numpy.random.default_rng(count).integers(0, 256, count + offset, dtype=numpy.uint8)
    shared = torch.from_numpy(whole[offset:])
    expected = whole[offset:].copy()
    taken = shared + 0  # recorded: it holds what was there
    whole[:] = 7
    assert numpy.array_equal(taken.numpy(), expected)
    target = torch.from_numpy(whole[offset:])
    target.copy_(taken)
    assert numpy.array_equal(whole[offset:], expected) and (whole[:offset] == 7).all()
