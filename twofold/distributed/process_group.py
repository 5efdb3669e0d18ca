"""The group of processes: one process is a group, and there are no larger ones."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from twofold.frontend.options import check_device

_NONE = "Default process group has not been initialized, please make sure to call init_process_group."


class Backend(str):
    """The name of what processes are joined by, in small letters; ValueError for an unknown one.

    >>> import twofold as torch
    >>> torch.distributed.Backend("GLOO"), torch.distributed.Backend.NCCL
    ('gloo', 'nccl')
    """

    GLOO = "gloo"
    MPI = "mpi"
    NCCL = "nccl"
    UCC = "ucc"
    UNDEFINED = "undefined"
    XCCL = "xccl"

    def __new__(cls, name: str) -> Backend:
        """The name of a backend."""
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        if name.lower() not in _BACKENDS:
            raise ValueError(f"Invalid backend: '{name}'. Use 'gloo'.")
        return super().__new__(cls, name.lower())


_BACKENDS = (Backend.GLOO, Backend.MPI, Backend.NCCL, Backend.UCC, Backend.XCCL)


class ProcessGroup:
    """A group of one process; ``init_process_group`` makes one."""

    def __init__(self, backend: str) -> None:
        self._backend = backend

    def rank(self) -> int:
        """The number of this process: 0."""
        return 0

    def size(self) -> int:
        """How many processes there are: 1."""
        return 1

    def name(self) -> str:
        """What the processes are joined by."""
        return self._backend


class GroupMember:
    """The group of all processes, None before ``init_process_group``; and what stands for a group of others."""

    WORLD: ProcessGroup | None = None
    NON_GROUP_MEMBER = -100


group = GroupMember


class Work:
    """An operation of a group, which is done when it is called."""

    def wait(self, timeout: Any = None) -> bool:
        """True, at once."""
        return True

    def is_completed(self) -> bool:
        """Whether the operation is done: yes."""
        return True


def is_available() -> bool:
    """Whether processes can be joined in a group: one can.

    >>> import twofold as torch
    >>> torch.distributed.is_available(), torch.distributed.is_initialized()
    (True, False)
    """
    return True


def is_initialized() -> bool:
    """Whether ``init_process_group`` was called."""
    return GroupMember.WORLD is not None


def is_nccl_available() -> bool:
    """Whether NVIDIA's library of collective operations is there: no."""
    return False


is_mpi_available = is_torchelastic_launched = is_nccl_available


def is_gloo_available() -> bool:
    """Whether processes on CPUs can be joined: one can."""
    return True


def _environment(name: str) -> int:
    """A number that a launcher leaves in the environment; ValueError where there is none."""
    if name not in os.environ:
        raise ValueError(
            f"Error initializing torch.distributed using env:// rendezvous: environment variable {name} "
            "expected, but not set"
        )
    return int(os.environ[name])


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Make this process a group.

    Args:
        backend: "gloo", or None for it.
        init_method: Where processes would meet: an address, for which ``world_size`` and ``rank`` must be given.
            None and "env://" take numbers that are not given from the environment's WORLD_SIZE and RANK.
        timeout: How long to wait for others: there are none.
        world_size: How many processes there are. Raises NotImplementedError for more than 1.
        rank: The number of this one: 0.
        store: What processes would meet by; as an address.
        group_name: A name for messages, of which there are none.
        pg_options: Options of a library, such as NVIDIA's.
        device_id: The device of this process; RuntimeError for one that is not there.

    Raises ValueError for an unknown backend, a number that is missing, and a second call.

    >>> import twofold as torch
    >>> torch.distributed.init_process_group("gloo", rank=0, world_size=1)
    >>> torch.distributed.get_rank(), torch.distributed.get_world_size()
    (0, 1)
    >>> torch.distributed.destroy_process_group()
    """
    if is_initialized():
        raise ValueError("trying to initialize the default process group twice!")
    name = Backend((backend or "gloo").split(":")[-1])
    if store is None and init_method in (None, "env://"):
        rank = _environment("RANK") if rank < 0 else rank
        world_size = _environment("WORLD_SIZE") if world_size < 0 else world_size
    elif world_size < 0 or rank < 0:
        raise ValueError("init_process_group: rank and world_size are missing. Give both.")
    if world_size > 1:
        raise NotImplementedError(
            f"distributed.init_process_group({backend!r}): training over several processes is not supported, and "
            f"world_size is {world_size}. Run one process."
        )
    if rank != 0 or world_size != 1:
        raise ValueError(
            f"init_process_group: rank {rank} of {world_size} processes. One process has rank 0."
        )
    if name != "gloo":
        raise RuntimeError(f"init_process_group: {name!r} is not available. Use 'gloo'.")
    _check_device(device_id)
    GroupMember.WORLD = ProcessGroup(name)


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Forget a group, or all; ValueError where there is none."""
    if member(group) is GroupMember.WORLD:
        GroupMember.WORLD = None


def member(group: ProcessGroup | None) -> ProcessGroup:
    """A group, or that of all processes for None; ValueError where there is none, or this process is not in it."""
    found = group or GroupMember.WORLD
    if found is None:
        raise ValueError(_NONE)
    if not isinstance(found, ProcessGroup):
        raise ValueError("the group given does not hold this process")
    return found


def get_rank(group: ProcessGroup | None = None) -> int:
    """The number of this process in a group."""
    return member(group).rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """How many processes a group has."""
    return member(group).size()


def get_backend(group: ProcessGroup | None = None) -> str:
    """What the processes of a group are joined by."""
    return member(group).name()


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
) -> Any:
    """A group of the processes with some numbers, or of all; ``GroupMember.NON_GROUP_MEMBER`` without this one.

    Args:
        ranks: The numbers; ValueError for one that no process has.
        backend: "gloo", or None for that of the group of all.

    The others are as in ``init_process_group``, and notes.
    """
    world = member(None)
    _check_device(device_id)
    if backend not in (None, world.name()):
        raise RuntimeError(f"new_group: {backend!r} is not available. Use {world.name()!r}.")
    given = [0] if ranks is None else list(ranks)
    if any(one != 0 for one in given):
        raise ValueError(f"new_group: the new group's rank should be within the world_size of 1, not {given}")
    return ProcessGroup(world.name()) if given else GroupMember.NON_GROUP_MEMBER


def _check_device(device_id: Any) -> None:
    """Raise RuntimeError for the number of a card, or a device, that is not there."""
    check_device(f"cuda:{device_id}" if isinstance(device_id, int) else device_id)
