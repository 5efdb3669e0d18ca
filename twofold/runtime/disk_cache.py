"""Machine code kept on disk between processes: content-keyed, checked, bounded and safe to share.

A file is a header (magic, SHA-256 of the payload) and the payload. It appears under its name only when
complete (temporary file, then rename), so readers and writers need no lock. A file that fails its check is
deleted.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import time
from pathlib import Path

_MAGIC = b"TWOFOLD1"
_HEADER = len(_MAGIC) + hashlib.sha256().digest_size
_BLOCK = 4096
_DAY = 86400.0


def default_directory() -> Path:
    """``TWOFOLD_CACHE_DIR``, else ``twofold`` in the user's cache directory of the XDG specification."""
    chosen = os.environ.get("TWOFOLD_CACHE_DIR")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "twofold"


class DiskCache:
    """Byte strings by key in one directory; a failure of the file system only means a miss.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     cache = DiskCache(Path(directory))
    ...     cache.write("ab12", b"code")
    ...     cache.read("ab12"), cache.read("cd34")
    (b'code', None)
    """

    def __init__(self, directory: Path, limit: int = 512 << 20) -> None:
        self.directory = directory
        self.limit = limit
        self._path = str(directory)
        self._writable = True
        self._writes = 0

    def read(self, key: str) -> bytes | None:
        """The payload kept under ``key``, or None."""
        path = os.path.join(self._path, key)
        try:
            with open(path, "rb", buffering=0) as file:
                status = os.fstat(file.fileno())
                # machine code from somebody else's file would run with this user's rights
                if status.st_uid not in (os.geteuid(), 0):
                    return None
                content = file.read()
                if time.time() - status.st_mtime > _DAY:
                    with contextlib.suppress(OSError):
                        os.utime(file.fileno())
        except OSError:
            return None
        payload = content[_HEADER:]
        if content[:_HEADER] != _MAGIC + hashlib.sha256(payload).digest():
            self.delete(key)
            return None
        return payload

    def write(self, key: str, payload: bytes) -> None:
        """Keep ``payload`` under ``key``; after the first failure nothing more is tried."""
        if not self._writable:
            return
        temporary = os.path.join(self._path, f"tmp.{os.getpid()}.{self._writes}.{key}")
        try:
            if self._writes % 64 == 0:
                os.makedirs(self._path, mode=0o700, exist_ok=True)
                self._shrink()
            self._writes += 1
            try:
                with open(temporary, "wb") as file:
                    file.write(_MAGIC + hashlib.sha256(payload).digest() + payload)
                os.replace(temporary, os.path.join(self._path, key))
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
                raise
        except OSError:
            self._writable = False

    def delete(self, key: str) -> None:
        """Forget ``key``."""
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(self._path, key))

    def _shrink(self) -> None:
        """Above the limit delete the oldest files, down to three quarters of it, and what crashes left."""
        files: list[tuple[float, int, str]] = []
        with os.scandir(self._path) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    if entry.name.startswith("tmp.") and time.time() - status.st_mtime > _DAY:
                        os.unlink(entry.path)
                    elif stat.S_ISREG(status.st_mode):
                        # small files take a whole block
                        files.append((status.st_mtime, -(-status.st_size // _BLOCK) * _BLOCK, entry.path))
        total = sum(size for _, size, _ in files)
        if total <= self.limit:
            return
        for _, size, path in sorted(files):
            with contextlib.suppress(OSError):
                os.unlink(path)
            total -= size
            if total <= self.limit * 3 // 4:
                return
