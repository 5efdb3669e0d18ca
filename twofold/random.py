"""Seeds and states of the default generator, under the names of ``torch.random``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from twofold.frontend.options import check_device
from twofold.frontend.sampling import (
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)

__all__ = [
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]


@contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, device_type: str = "cuda") -> Iterator[None]:
    """Inside, samples do not advance the default generator for what comes after.

    ``devices`` of the type ``device_type`` must be none, as there are none. Raises RuntimeError for others.

    >>> import twofold as torch
    >>> before = torch.initial_seed()
    >>> with torch.random.fork_rng():
    ...     _ = torch.manual_seed(1)
    >>> torch.initial_seed() == before
    True
    """
    for device in devices or ():
        check_device(f"{device_type}:{device}" if isinstance(device, int) else device)
    state = get_rng_state() if enabled else None
    try:
        yield
    finally:
        if state is not None:
            set_rng_state(state)
