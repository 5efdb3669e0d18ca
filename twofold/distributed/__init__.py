"""Programs over several processes under PyTorch's names: importable, and not available."""

from __future__ import annotations

from enum import Enum
from typing import Any, NoReturn

_FIX = "Run one process, and leave the process group out where is_available() is False."


def is_available() -> bool:
    """Whether processes can be joined in a group: no.

    >>> import twofold as torch
    >>> torch.distributed.is_available(), torch.distributed.is_initialized()
    (False, False)
    """
    return False


def is_initialized() -> bool:
    """Whether there is a group of processes: no."""
    return False


def is_nccl_available() -> bool:
    """Whether NVIDIA's library of collective operations is there: no."""
    return False


is_gloo_available = is_mpi_available = is_torchelastic_launched = is_nccl_available


def init_process_group(backend: str | None = None, *args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError: processes are not joined in groups.

    >>> import twofold as torch
    >>> torch.distributed.init_process_group("gloo")
    Traceback (most recent call last):
        ...
    NotImplementedError: distributed.init_process_group('gloo'): training over several processes is not supported. \
Run one process, and leave the process group out where is_available() is False.
    """
    raise NotImplementedError(
        f"distributed.init_process_group({backend!r}): training over several processes is not supported. {_FIX}"
    )


def _no_group(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise ValueError: there is no group of processes."""
    raise ValueError(f"Default process group has not been initialized. {_FIX}")


class ProcessGroup:
    """A group of processes, as annotations name it; ValueError where one is made."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _no_group()


class group:
    """``WORLD``, the group of all processes: there is none."""

    WORLD: ProcessGroup | None = None


GroupMember = group


class ReduceOp(Enum):
    """How values of several processes are joined."""

    SUM, PRODUCT, MIN, MAX, BAND, BOR, BXOR, AVG = range(8)


all_gather_object = broadcast_object_list = gather_object = all_to_all = isend = irecv = _no_group
get_rank = get_world_size = get_backend = new_group = barrier = destroy_process_group = _no_group
all_reduce = all_gather = reduce = reduce_scatter = broadcast = gather = scatter = send = recv = _no_group
