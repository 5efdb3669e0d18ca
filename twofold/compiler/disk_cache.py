"""The disk cache, bounded and safe to share between processes, and the archive of prebuilt code of the package.

In the cache a file is a header (magic, BLAKE2b of its own name and the payload) and the payload. It appears under its
name only when complete (temporary file, then rename), so readers and writers need no lock. A file that fails its
check is deleted. Machine code runs with the user's rights, so a file is read only if nobody else could have
written it: it belongs to the user or to root, is a regular file, and others may not write to it.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import stat
import struct
import time
import zlib
from collections.abc import Iterable, Sequence
from itertools import islice

from twofold.files import atomic_write, is_temporary, remove_stale_in
from twofold.hashing import content_hash

_ARCHIVE = b"TWOFOLDA"
_COUNT = struct.Struct("<Q")
_ENTRY = struct.Struct("<32sQQ")
_MAGIC = b"TWOFOLD2"
_HEADER = len(_MAGIC) + content_hash().digest_size
_BLOCK = 4096
_DAY = 86400.0
_FEW = 1024
"""So many files are listed in no time."""
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def default_directory() -> str:
    """``TWOFOLD_CACHE_DIR``, else ``twofold`` in the user's cache directory of the XDG specification."""
    chosen = os.environ.get("TWOFOLD_CACHE_DIR")
    if chosen:
        return chosen
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "twofold")


def _on_disk(size: int) -> int:
    """The disk usage of a file of ``size`` bytes: whole blocks."""
    return -(-size // _BLOCK) * _BLOCK


def _is_trusted(status: os.stat_result) -> bool:
    """Whether only this user or root may write a file."""
    mine = status.st_uid in (os.geteuid(), 0)
    return mine and stat.S_ISREG(status.st_mode) and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _header(key: str, payload: bytes) -> bytes:
    return _MAGIC + content_hash(key.encode() + b"\0" + payload).digest()


class DiskCache:
    """Byte strings by key in one directory; a failure of the file system is a miss.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     cache = DiskCache(directory)
    ...     cache.write("ab12", b"code")
    ...     cache.read("ab12"), cache.read("cd34")
    (b'code', None)
    """

    def __init__(self, directory: str | os.PathLike[str], limit: int = 512 << 20) -> None:
        self.limit = limit
        self.path = os.path.abspath(directory)
        self._writable = True
        self._room = 0
        self._has_measured = False

    def read(self, key: str) -> bytes | None:
        """The payload under ``key``, or None."""
        try:
            with open(os.open(os.path.join(self.path, key), _READ), "rb", buffering=0) as file:
                status = os.fstat(file.fileno())
                if not _is_trusted(status):
                    return None
                content = file.read()
                if time.time() - status.st_mtime > _DAY:
                    with contextlib.suppress(OSError):
                        os.utime(file.fileno())
        except OSError:
            return None
        payload = content[_HEADER:]
        if content[:_HEADER] != _header(key, payload):
            self.delete(key)
            return None
        return payload

    def write(self, key: str, payload: bytes) -> None:
        """Write ``payload`` under ``key``; after the first failure nothing is written any more."""
        if not self._writable:
            return
        try:
            taken = _on_disk(_HEADER + len(payload))
            if self._room < taken:
                self._room = self._more_room(taken)
            self._room -= taken
            path = os.path.join(self.path, key)
            with atomic_write(path, private=True, durable=False, clean=False) as file:
                file.write(_header(key, payload) + payload)
        except OSError:
            self._writable = False

    def delete(self, key: str) -> None:
        """Delete ``key``."""
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(self.path, key))

    def keys(self) -> list[str]:
        """All keys, without those that are being written."""
        try:
            with os.scandir(self.path) as entries:
                files = [one.name for one in entries if one.is_file(follow_symlinks=False)]
        except OSError:
            return []
        return sorted(name for name in files if not is_temporary(name))

    def size(self) -> int:
        """The disk usage of all files, in bytes."""
        total = 0
        for key in self.keys():
            with contextlib.suppress(OSError):
                total += _on_disk(os.stat(os.path.join(self.path, key), follow_symlinks=False).st_size)
        return total

    def clear(self) -> int:
        """Delete all files but those that are being written; returns the number of keys."""
        remove_stale_in(self.path)
        keys = self.keys()
        for key in keys:
            self.delete(key)
        return len(keys)

    def verify(self) -> list[str]:
        """Check every file; returns the keys of corrupt files, which are deleted, and of those of other users."""
        return [key for key in self.keys() if self.read(key) is None]

    def _more_room(self, wanted: int) -> int:
        """The number of bytes that this process may write until it measures disk usage again."""
        os.makedirs(self.path, mode=0o700, exist_ok=True)
        if not self._has_measured:
            self._has_measured = True
            room = self._room_unmeasured()
            if room >= wanted:
                return room
        # other processes write too, so this one measures long before it could have filled the rest
        return max((self.limit - self._shrink()) // 8, 64 * _BLOCK)

    def _room_unmeasured(self) -> int:
        """The number of bytes that may be written until the first measurement; 0 if there are few files.

        With many files measuring takes long, and most processes write little. So the number is random: of all that
        processes write together, a sixteenth of the limit goes unmeasured on average.
        """
        with os.scandir(self.path) as entries:
            if sum(1 for _ in islice(entries, _FEW)) < _FEW:
                return 0
        return int.from_bytes(os.urandom(8), "little") % max(self.limit // 16, 1)

    def _shrink(self) -> int:
        """Delete the least recently used files if the limit is exceeded, down to three quarters of it.

        Also deletes temporary files of killed writers. Returns the disk usage in bytes.
        """
        remove_stale_in(self.path)
        files: list[tuple[float, int, str]] = []
        with os.scandir(self.path) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(status.st_mode):
                        files.append((status.st_mtime, _on_disk(status.st_size), entry.path))
        total = sum(size for _, size, _ in files)
        if total <= self.limit:
            return total
        for _, size, path in sorted(files):
            with contextlib.suppress(OSError):
                os.unlink(path)
            total -= size
            if total <= self.limit * 3 // 4:
                break
        return total


class Archive:
    """Object files that were compiled when the package was built, by the keys of their kernels.

    Kernels are keyed by content, so an archive is never stale: kernels that it lacks are compiled when needed. The file
    is mapped into memory.

    >>> import tempfile
    >>> key = "ab" * 32
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_archive(f"{folder}/kernels", [([key], b"code")])
    ...     archive = Archive(f"{folder}/kernels")
    ...     archive.read(key), archive.read("cd" * 32)
    (b'code', None)
    """

    def __init__(self, path: str) -> None:
        """Open an archive.

        Raises:
            OSError: There is no such file.
            ValueError: The file is no archive.
            struct.error: The file is truncated.
        """
        with open(path, "rb") as file:
            self._content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if self._content[: len(_ARCHIVE)] != _ARCHIVE:
            raise ValueError(f"{path} holds no kernels.")
        (count,) = _COUNT.unpack_from(self._content, len(_ARCHIVE))
        start = len(_ARCHIVE) + _COUNT.size
        table = self._content[start : start + count * _ENTRY.size]
        self.identity = content_hash(table).digest()
        self._entries = {key: (offset, length) for key, offset, length in _ENTRY.iter_unpack(table)}

    def __len__(self) -> int:
        return len(self._entries)

    def read(self, key: str) -> bytes | None:
        """The object file with a kernel, and its header; None if there is none, or it is corrupt."""
        found = self._entries.get(bytes.fromhex(key))
        if found is None:
            return None
        try:
            return zlib.decompress(self._content[found[0] : sum(found)])
        except zlib.error:
            return None


def write_archive(path: str, objects: Iterable[tuple[Sequence[str], bytes]]) -> None:
    """Write an archive of pairs of keys and an object file; processes that have mapped the old file keep it."""
    made = [(keys, zlib.compress(payload, 9)) for keys, payload in objects]
    offset = len(_ARCHIVE) + _COUNT.size + _ENTRY.size * sum(len(keys) for keys, _ in made)
    table = []
    for keys, payload in made:
        table += [_ENTRY.pack(bytes.fromhex(key), offset, len(payload)) for key in keys]
        offset += len(payload)
    with atomic_write(path) as file:
        file.write(b"".join([_ARCHIVE, _COUNT.pack(len(table)), *table, *[payload for _, payload in made]]))


def archive_path(level: str, folder: str = os.path.dirname(__file__)) -> str:
    """The path of the archive for a processor level, such as LLVM's ``x86-64-v3``."""
    return os.path.join(folder, f"{level}.kernels")


def archive_of(level: str) -> Archive | None:
    """The archive of the package for a processor level; None if it was built without, or the file is corrupt."""
    try:
        return Archive(archive_path(level))
    except (OSError, ValueError, struct.error):
        return None
