"""Settings, read from the environment once and changeable at run time.

>>> config.tier
'auto'
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from twofold import _core

TIERS = ("auto", "unfused", "fused")


class Config:
    """All settings in one object; ``scoped`` changes some of them for a while.

    Attributes:
        background_compile: Whether traces are compiled while the program goes on.
        target_cpu: LLVM's name of the processor to compile for; None: this one. Kernels are made for the processor that
            was set when the first of them was.
        verify: Whether graphs are verified before and after each pass.
        log: What is logged.
    """

    __slots__ = ("_cache_bytes", "_tier", "background_compile", "log", "target_cpu", "verify")

    def __init__(self) -> None:
        self.threads = int(os.environ.get("TWOFOLD_THREADS", "0")) or len(os.sched_getaffinity(0))
        tier = os.environ.get("TWOFOLD_TIER", "auto")
        if tier not in TIERS:
            raise ValueError(f"TWOFOLD_TIER is {tier!r}; use one of {', '.join(TIERS)}.")
        self.tier = tier
        self.background_compile = os.environ.get("TWOFOLD_BACKGROUND", "1") != "0"
        self.target_cpu = os.environ.get("TWOFOLD_TARGET_CPU") or None
        self.verify = os.environ.get("TWOFOLD_VERIFY", "0") == "1"
        self.log = frozenset(filter(None, os.environ.get("TWOFOLD_LOG", "").split(",")))
        self.cache_bytes = int(os.environ.get("TWOFOLD_CACHE_BYTES", str(256 << 20)))

    @property
    def threads(self) -> int:
        """How many threads kernels may use, see ``twofold.set_num_threads``."""
        return _core.threads()

    @threads.setter
    def threads(self, count: int) -> None:
        if count < 1:
            raise ValueError(f"threads is {count}; use a number from 1 on.")
        _core.set_threads(count)

    @property
    def tier(self) -> str:
        """How traces run: "unfused", "fused", or "auto", which measures."""
        return self._tier

    @tier.setter
    def tier(self, name: str) -> None:
        if name not in TIERS:
            raise ValueError(f"tier is {name!r}; use one of {', '.join(TIERS)}.")
        self._tier = name
        _core.set_tier(name)

    @property
    def cache_bytes(self) -> int:
        """Bytes of memory that all caches together may take; each has a part of it, see ``twofold.stats``.

        What programs compute of weights alone may take twice as much beside that.
        """
        return self._cache_bytes

    @cache_bytes.setter
    def cache_bytes(self, count: int) -> None:
        if count < 0:
            raise ValueError(f"cache_bytes is {count}; use a number of bytes from 0 on.")
        self._cache_bytes = count
        _core.set_cache_budget(count)

    @contextmanager
    def scoped(self, **settings: Any) -> Iterator[None]:
        """Set attributes for the length of a ``with`` block."""
        before = {name: getattr(self, name) for name in settings}
        try:
            for name, value in settings.items():
                setattr(self, name, value)
            yield
        finally:
            for name, value in before.items():
                setattr(self, name, value)


config = Config()
