"""Seeds and states of the default generator, under the names of ``torch.random``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from twofold.frontend.drawing import (
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
def fork_rng(devices: Any = None, enabled: bool = True, **_: Any) -> Iterator[None]:
    """Inside, draws do not advance the default generator for what comes after.

    >>> import twofold as torch
    >>> before = torch.initial_seed()
    >>> with torch.random.fork_rng():
    ...     _ = torch.manual_seed(1)
    >>> torch.initial_seed() == before
    True
    """
    state = get_rng_state() if enabled else None
    try:
        yield
    finally:
        if state is not None:
            set_rng_state(state)
