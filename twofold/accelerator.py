"""The device beside the CPU that programs would compute on: there is none."""

from __future__ import annotations

from typing import Any

from twofold.frontend.options import check_device


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
    """None, whether or not ``check_available``: there is none."""


def synchronize(device: Any = None) -> None:
    """Nothing to wait for; raises RuntimeError for a ``device`` that is not there."""
    check_device(device)
