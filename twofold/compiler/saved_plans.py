"""The disk cache of plans, beside that of machine code.

The key of a plan is derived from the operation, its attributes and types. Calls with attributes that have no text form,
and operations that are not of this package, have no key: they are planned in each process. Plans are valid for the same
sources of this package and the same machine. Symbolic plans of common operations come with the package.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import pickle
import sys
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any

from twofold.compiler import jit
from twofold.compiler.disk_cache import Archive, DiskCache
from twofold.config import config
from twofold.dtypes import DType
from twofold.hashing import content_hash
from twofold.index import ENTRIES
from twofold.ir.attribute_numbers import numbers_in
from twofold.ir.node import Attributes
from twofold.ir.op import REGISTRY, Op
from twofold.ir.types import TensorType
from twofold.lazy import by_name

_HOME = os.path.dirname(os.path.dirname(__file__))
_own = frozenset(by_name(ENTRIES))
_parts = (bool, int, float, complex, bytes, type(None), type(...))


class _HasNoKey(Exception):
    """A value without a text form."""


_PLANNING = ("ir", "ops", "transforms", "compiler", "runtime")
"""The packages that plans depend on, together with the modules beside them."""


def _planning_files(*suffixes: str) -> Iterator[os.DirEntry[str]]:
    """These files in a fixed order."""
    folders = [_HOME]
    while folders:
        folder = folders.pop(0)
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.name.endswith(suffixes):
                    yield entry
                elif entry.is_dir(follow_symlinks=False) and (folder != _HOME or entry.name in _PLANNING):
                    folders.append(entry.path)


def _fingerprint() -> bytes:
    """A hash of the metadata of these files and of the core."""
    hashed = content_hash()
    for entry in _planning_files(".py", ".so"):
        status = entry.stat()
        written = f"{entry.path} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}\n"
        hashed.update(written.encode())
    return hashed.digest()


@functools.cache
def _planning_sources() -> bytes:
    """A hash of the contents of these sources, independent of their location."""
    hashed = content_hash()
    for entry in _planning_files(".py"):
        with open(entry.path, "rb", buffering=0) as file:
            content = file.read()
        hashed.update(f"{os.path.relpath(entry.path, _HOME)} {len(content)}\n".encode())
        hashed.update(content)
    return hashed.digest()


def _key_text(value: Any, any_numbers: bool = False) -> str:
    """A text that is unique to a value of attributes; with ``any_numbers`` it is the same for all integers.

    Raises:
        _HasNoKey: The value has no text form.
    """
    if isinstance(value, Op):
        if value.name not in _own:
            raise _HasNoKey
        return value.name
    if isinstance(value, str):
        # an operation may be named in the attributes of another
        if value not in _own and dict.__contains__(REGISTRY, value):
            raise _HasNoKey
        return repr(value)
    if type(value) in _parts:
        return "#" if any_numbers and numbers_in(value) else repr(value)
    if isinstance(value, TensorType):
        return f"{value.dtype.name}{_key_text(value.shape)}{value.weak}"
    if isinstance(value, DType):
        return value.name
    if isinstance(value, tuple):
        kind = type(value).__qualname__ if hasattr(value, "_fields") else ""
        return f"{kind}({','.join([_key_text(item, any_numbers) for item in value])})"
    if isinstance(value, Enum):
        return f"{type(value).__qualname__}.{value.name}"
    raise _HasNoKey


class SavedPlans:
    """Plans by key: those that earlier processes of this program have used, and new ones.

    The plans of a program are one file, which a process reads at its start, and writes at its end if it has made new
    ones.

    Args:
        disk: The disk cache.
        program: The name of the program.
        most_bytes: The size limit of the file.
        most_plans: The limit of plans under one key.
        archive: The plans that come with the package.
    """

    def __init__(
        self,
        disk: DiskCache,
        program: str,
        most_bytes: int = 16 << 20,
        most_plans: int = 32,
        archive: Archive | None = None,
    ) -> None:
        self.disk = disk
        self.found = 0
        self._archive = archive
        self._most_bytes = most_bytes
        self._most_plans = most_plans  # under one key
        found_in = b"" if archive is None else archive.identity
        self._made_by = content_hash(_fingerprint() + jit.shared().salt + found_in).digest()
        self._name = f"plans-{content_hash(program.encode()).hexdigest()}"
        self._read: dict[bytes, bytes] = self._on_disk()
        self._used: set[bytes] = set()
        self._new: dict[bytes, bytes] = {}
        self._made: set[bytes] = set()  # by this process
        self._new_bytes = 0
        atexit.register(self.flush)
        os.register_at_fork(after_in_child=self._forget)

    def _on_disk(self) -> dict[bytes, bytes]:
        payload = self.disk.read(self._name) or b""
        if not payload.startswith(self._made_by):
            return {}
        try:
            found = pickle.loads(payload[len(self._made_by) :])
        except Exception:  # of another version of Python
            return {}
        return found if isinstance(found, dict) else {}

    def _forget(self) -> None:
        """Drop new plans: they are written already, or the parent process writes them."""
        self._new, self._new_bytes = {}, 0

    def key(self, *parts: Any) -> bytes | None:
        """The key of a plan for some operations and values; None if one of them has no text form."""
        try:
            text = _key_text(parts)
        except _HasNoKey:
            return None
        return content_hash(text.encode()).digest()

    def key_for_sizes(
        self,
        calls: Sequence[tuple[Op, Attributes]],
        types: Sequence[TensorType],
        any_numbers: bool,
        *parts: Any,
    ) -> bytes | None:
        """The key of symbolic plans.

        Args:
            calls: Operations and their attributes.
            types: The types of the operands, whose sizes are symbols.
            any_numbers: Whether integers of the attributes are symbols, too.
            parts: What else the plans are for.
        """
        try:
            own = _key_text(tuple(calls), any_numbers)
        except _HasNoKey:
            return None
        return self.key(own, tuple([(type.dtype, len(type.shape), type.weak) for type in types]), *parts)

    def _of_package(self, key: bytes) -> bytes:
        """The plan of the package under a key; empty if there is none."""
        payload = None if self._archive is None else self._archive.read(_package_key(key))
        return payload or b""

    def _adopt(self, key: bytes, payload: bytes) -> None:
        """Add a plan of the package to those of the program."""
        self._new[key] = payload
        self._new_bytes += len(payload)

    def for_package(self) -> dict[str, bytes]:
        """The new plans, by their keys in an archive."""
        return {_package_key(key): payload for key, payload in self._new.items() if payload}

    def read(self, key: bytes | None) -> Any:
        """The plan under a key; None if there is none."""
        if key is None or config.verify:
            return None
        payload = self._payload(key)
        if payload is None:
            payload = self._of_package(key)
            self._adopt(key, payload)
        return self._found(key, payload)

    def read_own(self, key: bytes | None) -> Any:
        """The plan of the program under a key, without those of the package."""
        return None if key is None or config.verify else self._found(key, self._payload(key))

    def read_package(self, key: bytes | None) -> Any:
        """The plan of the package under a key; that there is none is remembered."""
        if key is None or config.verify or self._payload(key) == b"":
            return None
        payload = self._of_package(key)
        if not payload and self._payload(key) is None:
            self._adopt(key, payload)
        return self._found(key, payload)

    def _found(self, key: bytes, payload: bytes | None) -> Any:
        if not payload:
            return None
        try:
            found = pickle.loads(payload)
        except Exception:  # a module or name was removed
            return None
        if key not in self._made:
            self.found += 1
            self._used.add(key)
        return found

    def has(self, key: bytes | None) -> bool:
        """Whether there is a plan under a key."""
        if key is None or config.verify:
            return False
        payload = self._payload(key)
        if payload is None:
            payload = self._of_package(key)
            if not payload:
                self._adopt(key, payload)
        return bool(payload)

    def _payload(self, key: bytes) -> bytes | None:
        """The plan of the program; empty if neither it nor the package has one."""
        payload = self._new.get(key)
        return self._read.get(key) if payload is None else payload

    def keep(self, key: bytes | None, plan: Any) -> None:
        """Save a plan for later processes."""
        if key is None or self._new_bytes > self._most_bytes // 2:
            return
        with contextlib.suppress(pickle.PicklingError, TypeError, AttributeError):
            payload = self._new[key] = pickle.dumps(plan, pickle.HIGHEST_PROTOCOL)
            self._made.add(key)
            self._new_bytes += len(payload)

    def keep_last(self, key: bytes | None, plans: list[Any]) -> None:
        """Save several plans under one key; the oldest above the limit are dropped."""
        self.keep(key, plans[-self._most_plans :])

    def flush(self) -> None:
        """Write the file if there are new plans, without the least recently used above the size limit."""
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
        self.disk.write(self._name, self._made_by + pickle.dumps(plans, pickle.HIGHEST_PROTOCOL))


def _package_key(key: bytes) -> str:
    return content_hash(_planning_sources() + key).hexdigest()


def _program() -> str:
    """The name of the running program."""
    return os.path.abspath(getattr(sys.modules.get("__main__"), "__file__", None) or "interactive")


_saved: list[SavedPlans] = []


def saved_plans() -> SavedPlans:
    """The saved plans of this process."""
    if not _saved:
        _saved.append(SavedPlans(jit.shared().disk, _program(), archive=jit.shared().archive))
    return _saved[0]


def key_at_once(
    op: Op, attrs: Attributes, types: Sequence[TensorType], varies: Sequence[bool]
) -> bytes | None:
    """The key of symbolic plans from the first call on.

    Args:
        op: The operation.
        attrs: Its attributes.
        types: The types of its operands, all of whose sizes are symbols.
        varies: For each integer of the attributes, all or none, then each size, whether it is a symbol.
    """
    numbers = len(varies) - sum(len(type.shape) for type in types)
    return saved_plans().key_for_sizes([(op, attrs)], types, numbers > 0 and varies[0])
