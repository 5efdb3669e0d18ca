"""The tier of what runs, for tests of profiles."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from twofold import _core


@contextmanager
def tier(name: str) -> Iterator[None]:
    """Everything inside runs on one tier."""
    _core.set_tier(name)
    try:
        yield
    finally:
        _core.set_tier("auto")
