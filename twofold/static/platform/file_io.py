"""Files by name: ``tf.gfile``."""

from __future__ import annotations

import glob
import os
import shutil
from types import SimpleNamespace
from typing import Any


class GFile:
    """A file, opened when it is first read or written."""

    def __init__(self, name: str, mode: str = "r") -> None:
        self.name, self.mode = name, mode
        self._opened: Any = None

    @property
    def _file(self) -> Any:
        if self._opened is None:
            encoding = None if "b" in self.mode else "utf-8"
            self._opened = open(self.name, self.mode, encoding=encoding)  # noqa: SIM115
        return self._opened

    def read(self, n: int = -1) -> Any:
        """The next ``n`` characters or bytes, all that is left with -1."""
        return self._file.read(n)

    def readline(self) -> Any:
        """The next line."""
        return self._file.readline()

    def readlines(self) -> list[Any]:
        """All lines that are left."""
        return list(self._file.readlines())

    def write(self, file_content: Any) -> None:
        """Write text or bytes, in each mode."""
        if isinstance(file_content, str) and "b" in self.mode:
            file_content = file_content.encode()
        elif isinstance(file_content, bytes) and "b" not in self.mode:
            file_content = file_content.decode()
        self._file.write(file_content)

    def seek(self, offset: int | None = None, whence: int = 0, position: int | None = None) -> None:
        """Go on at an offset from the beginning, from here (``whence=1``) or from the end (2).

        ``position`` is an older name of ``offset``.
        """
        self._file.seek(position if offset is None else offset, whence)

    def tell(self) -> int:
        """The offset of what is read or written next."""
        return int(self._file.tell())

    def size(self) -> int:
        """The size in bytes."""
        return os.path.getsize(self.name)

    def flush(self) -> None:
        """Hand over what was written."""
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def __enter__(self) -> GFile:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __iter__(self) -> Any:
        return iter(self._file)


def _copy(oldpath: str, newpath: str, overwrite: bool = False) -> None:
    """Copy a file; raises FileExistsError unless it may overwrite."""
    if os.path.exists(newpath) and not overwrite:
        raise FileExistsError(f"gfile.Copy: {newpath} is there. Give overwrite=True.")
    shutil.copyfile(oldpath, newpath)


def _rename(oldname: str, newname: str, overwrite: bool = False) -> None:
    """Rename a file; raises FileExistsError unless it may overwrite."""
    if os.path.exists(newname) and not overwrite:
        raise FileExistsError(f"gfile.Rename: {newname} is there. Give overwrite=True.")
    os.replace(oldname, newname)


def _glob(filename: Any) -> list[str]:
    """Sorted paths that match a pattern, or one of several."""
    patterns: list[str] = [filename] if isinstance(filename, str) else list(filename)
    return sorted({path for pattern in patterns for path in glob.glob(pattern)})


def _stat(filename: str) -> SimpleNamespace:
    """Length, time of the last change and kind of a file."""
    found = os.stat(filename)
    return SimpleNamespace(
        length=found.st_size, mtime_nsec=found.st_mtime_ns, is_directory=os.path.isdir(filename)
    )


def _walk(top: str, in_order: bool = True, topdown: bool | None = None, onerror: Any = None) -> Any:
    """For ``top`` and each directory below it its path, directories and files; without ``in_order`` the last first.

    ``topdown`` and ``onerror`` are those of ``tf.io.gfile.walk``.
    """
    return os.walk(top, in_order if topdown is None else topdown, onerror)


_FUNCTIONS = {
    "Exists": lambda filename: os.path.exists(filename),
    "exists": lambda path: os.path.exists(path),
    "IsDirectory": lambda dirname: os.path.isdir(dirname),
    "isdir": lambda path: os.path.isdir(path),
    "ListDirectory": lambda dirname: sorted(os.listdir(dirname)),
    "listdir": lambda path: sorted(os.listdir(path)),
    "MakeDirs": lambda dirname: os.makedirs(dirname, exist_ok=True),
    "makedirs": lambda path: os.makedirs(path, exist_ok=True),
    "MkDir": lambda dirname: os.mkdir(dirname),
    "mkdir": lambda path: os.mkdir(path),
    "Remove": lambda filename: os.remove(filename),
    "remove": lambda path: os.remove(path),
    "DeleteRecursively": lambda dirname: shutil.rmtree(dirname),
    "rmtree": lambda path: shutil.rmtree(path),
    "Glob": _glob,
    "glob": lambda pattern: _glob(pattern),
    "join": os.path.join,
    "Walk walk": _walk,
    "Stat": _stat,
    "stat": lambda path: _stat(path),
    "Copy": _copy,
    "copy": lambda src, dst, overwrite=False: _copy(src, dst, overwrite),
    "Rename": _rename,
    "rename": lambda src, dst, overwrite=False: _rename(src, dst, overwrite),
}
"""The functions of ``tf.gfile``, each with its name in ``tf.io.gfile``."""

gfile = SimpleNamespace(
    GFile=GFile,
    FastGFile=GFile,
    Open=GFile,
    **{name: function for names, function in _FUNCTIONS.items() for name in names.split()},
)
