"""Files that are written whole or not at all, whatever ends the writer.

The content goes to a temporary file beside the target, which is renamed over it when complete. The writer holds
a lock on its temporary file; a temporary file that nobody holds was left by a process that was killed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import time
from types import TracebackType
from typing import BinaryIO
from zlib import crc32

_PREFIX = ".twofold-"
_DAY = 86400.0
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LOOK = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def _prefix_of(name: str) -> str:
    """What the names of temporary files of a target start with; short, as the target's name may be long."""
    return f"{_PREFIX}{crc32(os.fsencode(name)):08x}-"


class atomic_write:
    """A ``with`` block that writes a file whole or not at all; what earlier writers left behind goes first.

    Args:
        path: The target. An existing file keeps its permissions, a symbolic link stays one, and a device or
            a pipe is written directly.
        private: Whether the file is for this user alone, and replaces whatever stands there, a link too.
        durable: Whether the content is on the disk, not only with the operating system, when the block ends.
        clean: Whether to look for temporary files that killed writers of the same target left.

    Raises OSError where the file cannot be written, and then leaves the target as it was.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "state")
    ...     with atomic_write(path) as file:
    ...         _ = file.write(b"content")
    ...     os.listdir(folder)
    ['state']
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        private: bool = False,
        durable: bool = True,
        clean: bool = True,
    ) -> None:
        self._path = os.path.abspath(path) if private else os.path.realpath(path)
        self._private = private
        self._durable = durable
        self._clean = clean
        self._temporary: str | None = None

    def __enter__(self) -> BinaryIO:
        before = None
        if not self._private:
            with contextlib.suppress(FileNotFoundError):
                before = os.stat(self._path).st_mode
        if before is not None and not stat.S_ISREG(before):
            self._file: BinaryIO = open(self._path, "wb")
            return self._file
        if self._clean:
            remove_stale(self._path)
        self._temporary, handle = _open_locked(self._path, 0o600 if self._private else 0o666)
        self._file = os.fdopen(handle, "wb")
        if before is not None:
            with contextlib.suppress(OSError):
                os.fchmod(handle, stat.S_IMODE(before))
        return self._file

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._temporary is None:
            self._file.close()
            return
        try:
            if kind is None:
                self._file.flush()
                if self._durable:
                    os.fsync(self._file.fileno())
                os.replace(self._temporary, self._path)
                self._temporary = None
        finally:
            if self._temporary is not None:
                with contextlib.suppress(OSError):
                    os.unlink(self._temporary)
            with contextlib.suppress(OSError):
                self._file.close()


def _open_locked(path: str, mode: int) -> tuple[str, int]:
    """A new temporary file beside ``path``, and its descriptor, which holds its lock."""
    start = os.path.join(os.path.dirname(path), _prefix_of(os.path.basename(path)))
    while True:
        temporary = start + os.urandom(8).hex()
        handle = os.open(temporary, _CREATE, mode)
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        # somebody who cleans up may have been quicker than the lock
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.lstat(temporary), os.fstat(handle)):
                return temporary, handle
        os.close(handle)


def is_temporary(name: str) -> bool:
    """Whether a name is that of a temporary file, which a writer may hold."""
    return name.startswith(_PREFIX)


def remove_stale(path: str | os.PathLike[str]) -> None:
    """Delete the temporary files that killed writers of ``path`` left; none that is still written to.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     remove_stale(os.path.join(folder, "state"))
    """
    real = os.path.realpath(path)
    remove_stale_in(os.path.dirname(real), _prefix_of(os.path.basename(real)))


def remove_stale_in(directory: str, prefix: str = _PREFIX) -> None:
    """As ``remove_stale``, for all targets in a directory; a directory that cannot be read is left alone."""
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.startswith(prefix):
                with contextlib.suppress(OSError):
                    _remove_if_stale(entry.path)


def _remove_if_stale(path: str) -> None:
    handle = os.open(path, _LOOK)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        except OSError:  # a file system without locks
            if time.time() - os.fstat(handle).st_mtime < _DAY:
                return
        os.unlink(path)
    finally:
        os.close(handle)
