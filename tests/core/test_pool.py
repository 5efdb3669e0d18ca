"""The memory pool gives back what programs of changing sizes leave behind."""

from __future__ import annotations

import pytest

import twofold as torch
from tests.core.in_child import UNDER_ADDRESS_SANITIZER
from twofold import _core

divides = pytest.mark.skipif(UNDER_ADDRESS_SANITIZER, reason="with it no block is divided")


@divides
def test_blocks_of_other_sizes_go_before_more_than_ever_was_in_use_is_held() -> None:
    step = 16 << 20
    _core.reset_peak()
    most = 0
    for k in range(1, 13):
        torch.zeros(k * step // 4).add(1.0).numpy()  # alone in its size class
        found = _core.statistics()
        most = max(most, found["pool_in_use_bytes"] + found["pool_cached_bytes"])
    peak = _core.statistics()["pool_peak_bytes"]
    assert most <= peak + peak // 4 + (80 << 20), (most, peak)


def test_a_repeated_program_keeps_its_blocks() -> None:
    def program() -> None:
        (torch.ones(3 << 20) * 2.0).numpy()

    for _ in range(3):
        program()
    before = _core.statistics()
    for _ in range(5):
        program()
        after = _core.statistics()
        assert after["pool_in_use_bytes"] == before["pool_in_use_bytes"]
        assert after["pool_cached_bytes"] == before["pool_cached_bytes"]


@divides
def test_a_freed_block_is_divided_and_joined_again() -> None:
    def program(count: int, size: int) -> int:
        made = [torch.full((size // 4,), float(k)) for k in range(count)]
        for one in made:
            one.numpy()
        found = _core.statistics()
        return int(found["pool_in_use_bytes"] + found["pool_cached_bytes"])

    _core.clear_caches()
    whole = program(1, 64 << 20)
    assert program(16, 4 << 20) <= whole + (1 << 20)
    assert program(1, 64 << 20) <= whole + (1 << 20)
