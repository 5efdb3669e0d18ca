"""The device beside the CPU that programs would compute on: there is none."""

from __future__ import annotations

from typing import Any


def is_available() -> bool:
    """Whether there is one: no.

    >>> import twofold as torch
    >>> torch.accelerator.is_available()
    False
    """
    return False


def device_count() -> int:
    """How many there are: 0."""
    return 0


def current_accelerator(check_available: bool = False) -> None:
    """The device, or None."""


def synchronize(device: Any = None) -> None:
    """Nothing to wait for."""
