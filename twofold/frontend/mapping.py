"""Which functions are being declared for every sample right now, and what that means for random samples."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

from twofold import _core

Tensor = _core.Tensor

RANDOMNESS = ("error", "different", "same")
_DRAWS = 2**32
"""Random samples of one element of the batch before its counters would meet those of the next."""


class Mapping(NamedTuple):
    """A function declared for every sample: how it may sample, and the number of its sample."""

    randomness: str
    sample: Tensor
    size: int


class _Active(threading.local):
    def __init__(self) -> None:
        self.mappings: list[Mapping] = []


_active = _Active()


def active_mappings() -> list[Mapping]:
    """The calls of ``vmap`` that are running in this thread, outermost first."""
    return _active.mappings


def is_batchedtensor(tensor: Tensor) -> bool:
    """Whether a tensor stands for one sample of each inside of a function that ``vmap`` runs.

    >>> import twofold as torch
    >>> from twofold._C._functorch import is_batchedtensor
    >>> is_batchedtensor(torch.ones(2)), torch.vmap(lambda x: x + is_batchedtensor(x))(torch.zeros(2))
    (False, tensor([1., 1.]))
    """
    return bool(_active.mappings) and tensor._is_symbolic


def sample_counter(counter: int) -> Any:
    """The counter of a random sample, made different for every sample where that was asked for.

    Raises RuntimeError inside ``vmap(randomness="error")``.
    """
    index: Any = 0
    for mapping in _active.mappings:
        if mapping.randomness == "error":
            raise RuntimeError(
                "vmap: a random operation was called, and randomness is 'error'. Pass randomness='different' or "
                "'same' to vmap, or draw outside of it."
            )
        if mapping.randomness == "different":
            index = index * (mapping.size + 1) + (mapping.sample + 1)
    return counter + index * _DRAWS
