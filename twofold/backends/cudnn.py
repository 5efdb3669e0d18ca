"""Switches of NVIDIA's library for neural networks, which is not used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

enabled = True
benchmark = False
benchmark_limit = 10
deterministic = False
allow_tf32 = True


def is_available() -> bool:
    """Whether the library is there: no.

    >>> import twofold as torch
    >>> torch.backends.cudnn.benchmark = True
    >>> torch.backends.cudnn.is_available()
    False
    """
    return False


def version() -> None:
    """Which version is there: none."""


def is_acceptable(tensor: Any) -> bool:
    """Whether the library can compute with a tensor: no."""
    return False


@contextmanager
def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
) -> Iterator[None]:
    """A ``with`` block in which the switches are others.

    >>> import twofold as torch
    >>> with torch.backends.cudnn.flags(enabled=False):
    ...     torch.backends.cudnn.enabled
    False
    """
    given = dict(locals())
    space = globals()
    before = {name: space[name] for name in given}
    space.update(given)
    try:
        yield
    finally:
        space.update(before)
