"""Tables that are bounded in bytes: what was made once and is looked up again, least recently used out first.

The caches of the core (``csrc/cache.h``) and these share one budget, ``config.cache_bytes``, of which each has a part.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, Generic, TypeVar
from weakref import WeakValueDictionary

from twofold.config import config

Value = TypeVar("Value")

_PARTS = 32


class Cache(Generic[Value]):
    """A table of at most ``parts`` of the 32 parts of the budget; ``cost`` estimates the bytes of a key and its value.

    Threads need no lock: each access is one operation of a dict, which is atomic even while Python code compares keys.
    Those of an ``OrderedDict`` are not.

    >>> squares = Cache("squares", 1, lambda key, value: 100)
    >>> squares.get(3), squares.keep(3, 9), squares.get(3)
    (None, 9, 9)
    >>> squares.numbers()[:2]
    (1, 100)
    """

    known: WeakValueDictionary[str, Cache[Any]] = WeakValueDictionary()

    def __init__(self, name: str, parts: int, cost: Callable[[Any, Value], int]) -> None:
        self.name = name
        self.parts = parts
        self._cost = cost
        self._items: dict[Any, list[Any]] = {}  # value, bytes, last use, key
        self._uses = count()
        self._bytes = self._hits = self._misses = self._evictions = 0
        self.known[name] = self

    @classmethod
    def all(cls) -> list[Cache[Any]]:
        """The caches that there are. Another thread may make one meanwhile."""
        found = (reference() for reference in cls.known.valuerefs())  # a list, which is made at once
        return [cache for cache in found if cache is not None]

    @property
    def budget(self) -> int:
        """Bytes that this cache may take."""
        return config.cache_bytes * self.parts // _PARTS

    def get(self, key: Any) -> Value | None:
        """What is kept under ``key``, or None."""
        found = self._items.get(key)
        if found is None:
            self._misses += 1
            return None
        self._hits += 1
        found[2] = next(self._uses)
        return found[0]

    def keep(self, key: Any, value: Value) -> Value:
        """Keep ``value`` under ``key``, unless something is kept there; what is kept then."""
        made = [value, self._cost(key, value), next(self._uses), key]
        found = self._items.setdefault(key, made)
        if found is made:
            self._bytes += made[1]
            if self._bytes > self.budget:
                self._shrink(made)
        return found[0]

    def replace(self, key: Any, value: Value) -> None:
        """Keep ``value`` under ``key`` in place of what is kept there."""
        found = self._items.pop(key, None)
        if found is not None:
            self._bytes -= found[1]
        self.keep(key, value)

    def _shrink(self, newest: list[Any]) -> None:
        """Down to three quarters of the budget, but for ``newest``."""
        items = list(self._items.values())
        total = sum(item[1] for item in items)
        for item in sorted(items, key=lambda item: item[2]):
            if total <= self.budget // 4 * 3:
                break
            if item is not newest and self._items.pop(item[3], None) is not None:
                total -= item[1]
                self._evictions += 1
        self._bytes = total

    def numbers(self) -> tuple[int, int, int, int, int, int]:
        """Count, bytes, budget, hits, misses and evictions, as ``_core.caches`` tells them."""
        return len(self._items), self._bytes, self.budget, self._hits, self._misses, self._evictions
