"""What planning found, kept on disk beside the machine code, so that a later process finds it again.

A key says what was planned: the operation, its attributes and types, the sources of this package and the machine.
Attributes that cannot be written down, and operations that are not of this package, have none; their plans are made
in each process.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import pickle
import sys
from enum import Enum
from pathlib import Path
from typing import Any

from twofold.compiler import jit
from twofold.compiler.disk_cache import DiskCache
from twofold.config import config
from twofold.dtypes import DType
from twofold.index import ENTRIES
from twofold.ir.op import REGISTRY, Op
from twofold.ir.types import TensorType
from twofold.lazy import by_name

_DERIVED = ("pullback", "each_sample")

_own = frozenset((*by_name(ENTRIES), *_DERIVED))
_parts = (bool, int, float, complex, bytes, type(None))


class _Unwritten(Exception):
    """A value that no key can hold."""


def _fingerprint() -> bytes:
    """What changes with every change of a source file of this package, or of the core."""
    hashed = hashlib.sha256()
    folders = [Path(__file__).parents[1]]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.is_dir(follow_symlinks=False):
                    if entry.name != "__pycache__":
                        folders.append(Path(entry.path))
                elif entry.name.endswith((".py", ".so")):
                    status = entry.stat()
                    written = f"{entry.path} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}\n"
                    hashed.update(written.encode())
    return hashed.digest()


def _written(value: Any) -> str:
    """A text that tells a value of attributes from all others; raises _Unwritten."""
    if isinstance(value, Op):
        if value.name not in _own:
            raise _Unwritten
        return value.name
    if isinstance(value, str):
        # an operation may be named in the attributes of another
        if value not in _own and dict.__contains__(REGISTRY, value):
            raise _Unwritten
        return repr(value)
    if type(value) in _parts:
        return repr(value)
    if isinstance(value, TensorType):
        return f"{value.dtype.name}{_written(value.shape)}{value.weak}"
    if isinstance(value, DType):
        return value.name
    if isinstance(value, tuple):
        kind = "" if type(value) is tuple else type(value).__qualname__
        return f"{kind}({','.join(map(_written, value))})"
    if isinstance(value, Enum):
        return f"{type(value).__qualname__}.{value.name}"
    raise _Unwritten


class SavedPlans:
    """Plans by key: those that earlier processes of this program have used, and new ones.

    The plans of a program are one file, so that a process reads them at once; it is written again when a process ends
    that has made new ones.
    """

    def __init__(self, disk: DiskCache, program: str, most_bytes: int = 16 << 20) -> None:
        self.disk = disk
        self.found = 0
        self._most_bytes = most_bytes
        self._salt = hashlib.sha256(_fingerprint() + jit.shared().salt)
        self._name = f"plans-{hashlib.sha256(program.encode()).hexdigest()}"
        self._read: dict[bytes, bytes] = self._on_disk()
        self._used: set[bytes] = set()
        self._new: dict[bytes, bytes] = {}
        self._new_bytes = 0
        atexit.register(self.flush)
        os.register_at_fork(after_in_child=self._forget)

    def _on_disk(self) -> dict[bytes, bytes]:
        payload = self.disk.read(self._name)
        if payload is None:
            return {}
        try:
            found = pickle.loads(payload)
        except Exception:  # whatever a file of another Python raises
            return {}
        return found if isinstance(found, dict) else {}

    def _forget(self) -> None:
        """Write none of the new plans: they are written, or a parent process writes them."""
        self._new, self._new_bytes = {}, 0

    def key(self, *parts: Any) -> bytes | None:
        """The key of a plan for these operations and values; None where one of them has no written form."""
        try:
            text = _written(parts)
        except _Unwritten:
            return None
        hashed = self._salt.copy()
        hashed.update(text.encode())
        return hashed.digest()

    def read(self, key: bytes | None) -> Any:
        """What was kept under a key; None if there is nothing."""
        if key is None or config.verify:
            return None
        payload = self._new.get(key) or self._read.get(key)
        if payload is None:
            return None
        try:
            found = pickle.loads(payload)
        except Exception:  # a module or a name that is gone
            return None
        if key not in self._new:
            self.found += 1
            self._used.add(key)
        return found

    def keep(self, key: bytes | None, plan: Any) -> None:
        """Keep a plan for later processes."""
        if key is None or self._new_bytes > self._most_bytes // 2:
            return
        with contextlib.suppress(pickle.PicklingError, TypeError, AttributeError):
            payload = self._new[key] = pickle.dumps(plan, pickle.HIGHEST_PROTOCOL)
            self._new_bytes += len(payload)

    def flush(self) -> None:
        """Write the file again if there are new plans; what was used least recently is left out where it is long."""
        if not self._new:
            return
        plans = self._on_disk()
        for key in self._used & plans.keys():
            plans[key] = plans.pop(key)
        plans.update(self._new)
        self._forget()
        size = sum(map(len, plans.values()))
        for key in list(plans):
            if size <= self._most_bytes:
                break
            size -= len(plans.pop(key))
        self.disk.write(self._name, pickle.dumps(plans, pickle.HIGHEST_PROTOCOL))


def _program() -> str:
    """What tells the program that runs from others."""
    return os.path.abspath(getattr(sys.modules.get("__main__"), "__file__", None) or "interactive")


_saved: list[SavedPlans] = []


def saved_plans() -> SavedPlans:
    """Those of this process."""
    if not _saved:
        _saved.append(SavedPlans(jit.shared().disk, _program()))
    return _saved[0]
