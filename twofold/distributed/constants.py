"""How long groups of processes wait for others where a program does not say."""

from datetime import timedelta

__all__ = ["default_pg_nccl_timeout", "default_pg_timeout"]

default_pg_timeout: timedelta = timedelta(minutes=30)
"""PyTorch's default of ``init_process_group``. A group of one process never waits."""
default_pg_nccl_timeout: timedelta | None = None
"""None, as in PyTorch without the backend NCCL."""
