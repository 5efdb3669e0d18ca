"""Settings have an effect when they are changed, and wrong ones raise."""

from __future__ import annotations

import pytest

import twofold as torch
from twofold.config import config


def runs_of(tier: str) -> int:
    """How many programs are fused while a trace repeats on a tier."""
    before = torch.stats().fused
    with config.scoped(tier=tier, background_compile=False):
        x = torch.arange(7.0) + len(tier)
        for _ in range(4):
            (torch.tanh(x) * 3 + x - 1).sum().item()
    return torch.stats().fused - before


def test_the_tier_is_that_of_the_settings() -> None:
    before = config.tier
    assert runs_of("unfused") == 0
    assert runs_of("fused") > 0
    assert config.tier == before


def test_threads_are_those_of_the_settings() -> None:
    before = torch.get_num_threads()
    with config.scoped(threads=before + 1):
        assert torch.get_num_threads() == before + 1
        torch.set_num_threads(before + 2)
        assert config.threads == before + 2
    assert torch.get_num_threads() == before


@pytest.mark.parametrize(("name", "value"), [("tier", "quick"), ("threads", 0), ("cache_bytes", -1)])
def test_wrong_settings_raise(name: str, value: object) -> None:
    before = getattr(config, name)
    with pytest.raises(ValueError, match=f"{name} is {value!r}; use"):
        setattr(config, name, value)
    assert getattr(config, name) == before


def test_a_setting_that_does_not_exist_raises() -> None:
    with pytest.raises(AttributeError):
        config.tyre = "fused"  # type: ignore[attr-defined]


def test_no_threads_raise() -> None:
    before = torch.get_num_threads()
    with pytest.raises(RuntimeError, match="positive integer"):
        torch.set_num_threads(0)
    assert torch.get_num_threads() == before
