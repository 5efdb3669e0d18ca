"""The CPU under PyTorch's names."""

from __future__ import annotations

from typing import Any

from twofold import _core
from twofold.cpu import amp as amp
from twofold.frontend.options import check_device


def is_available() -> bool:
    """Whether there is a CPU: yes."""
    return True


is_initialized = is_available


def device_count() -> int:
    """How many CPUs there are: 1, as they are one device."""
    return 1


def current_device() -> str:
    """The device that computes.

    >>> import twofold as torch
    >>> torch.cpu.current_device(), torch.cpu.device_count()
    ('cpu', 1)
    """
    return "cpu"


def synchronize(device: Any = None) -> None:
    """Run what was recorded and is still to be computed."""
    check_device(device)
    _core.flush()
