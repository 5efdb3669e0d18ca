"""Processes under PyTorch's names: Python's ``multiprocessing``, and ``spawn``.

A tensor whose memory is shared (``Tensor.share_memory_``, ``Module.share_memory``) is one tensor in all processes
that are forked afterwards, or that it is given or sent to: what one writes in place, the others read. Other tensors
in queues and pipes are copied.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing import *  # noqa: F403
from typing import Any

from twofold.errors import ArgumentError

_STRATEGY = "file_descriptor"


def get_all_sharing_strategies() -> set[str]:
    """The ways in which processes share memory: one."""
    return {_STRATEGY}


def get_sharing_strategy() -> str:
    """How processes share memory.

    >>> import twofold as torch
    >>> torch.multiprocessing.get_sharing_strategy()
    'file_descriptor'
    """
    return _STRATEGY


def set_sharing_strategy(new_strategy: str) -> None:
    """Choose how processes share memory, of which results do not depend: "file_descriptor" or "file_system"."""
    if new_strategy not in (_STRATEGY, "file_system"):
        raise ArgumentError(f"set_sharing_strategy: {new_strategy!r}", f"Use {_STRATEGY!r}.")


class SpawnContext:
    """Processes that ``spawn`` has started."""

    def __init__(self, processes: Any) -> None:
        self.processes = processes

    def pids(self) -> list[int]:
        """Their numbers."""
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None) -> bool:
        """Wait for all, and say whether all have ended; raises RuntimeError if one failed."""
        for process in self.processes:
            process.join(timeout)
        for rank, process in enumerate(self.processes):
            if process.exitcode not in (0, None):
                raise RuntimeError(f"process {rank} terminated with exit code {process.exitcode}")
        return all(process.exitcode == 0 for process in self.processes)


ProcessContext = SpawnContext


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> SpawnContext | None:
    """Call ``fn(rank, *args)`` in ``nprocs`` processes; with ``join`` wait for them, else return them."""
    context: Any = multiprocessing.get_context(start_method)
    processes = []
    for rank in range(nprocs):
        process = context.Process(target=fn, args=(rank, *args), daemon=daemon)
        process.start()
        processes.append(process)
    made = SpawnContext(processes)
    if not join:
        return made
    made.join()
    return None


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> SpawnContext | None:
    """``start_processes``."""
    return start_processes(fn, args, nprocs, join, daemon, start_method)
