"""The container of a checkpoint: a zip file of uncompressed records under one folder, as PyTorch writes it."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy

ALIGNMENT = 64
"""Data starts at a multiple of this, so that a reader may map it into memory."""

_LOCAL_HEADER = 30
_EXTRA_HEADER = 4
_PADDING = b"FB"
_CHUNK = 1 << 24


class _Counted:
    """A file that is only written to, from front to back, and knows how much was written."""

    def __init__(self, file: Any) -> None:
        self.file = file
        self.count = 0

    def write(self, data: Any) -> int:
        self.file.write(data)
        self.count += len(data)
        return len(data)

    def flush(self) -> None:
        getattr(self.file, "flush", lambda: None)()


class ArchiveWriter:
    """Writes records ``<root>/<name>`` one after the other."""

    def __init__(self, file: Any, root: str) -> None:
        self._out = _Counted(file)
        self._zip = zipfile.ZipFile(self._out, "w", zipfile.ZIP_STORED)  # type: ignore[call-overload]
        self._root = root

    def add(self, name: str, data: Any) -> None:
        """Write one record; its data is aligned."""
        data = memoryview(data).cast("B")
        info = zipfile.ZipInfo(f"{self._root}/{name}")
        large = len(data) * 1.05 > zipfile.ZIP64_LIMIT
        header = _LOCAL_HEADER + len(info.filename.encode()) + _EXTRA_HEADER + (20 if large else 0)
        padding = -(self._out.count + header) % ALIGNMENT
        info.extra = _PADDING + padding.to_bytes(2, "little") + b"Z" * padding
        with self._zip.open(info, "w", force_zip64=large) as file:
            for start in range(0, len(data), _CHUNK):
                file.write(data[start : start + _CHUNK])

    def close(self) -> None:
        """Write the directory of records."""
        self._zip.close()


@contextmanager
def _told(name: str) -> Iterator[None]:
    """Errors of a damaged container as one RuntimeError that names the file."""
    try:
        yield
    except (zipfile.BadZipFile, zipfile.LargeZipFile, EOFError, ValueError, KeyError, IndexError) as error:
        what = "its checksum does not fit" if "CRC" in str(error) else str(error) or type(error).__name__
        raise RuntimeError(
            f"load: {name} is corrupt: {what}. Save it again, or take an older copy."
        ) from None
    except (NotImplementedError, OverflowError, OSError, UnicodeError) as error:
        raise RuntimeError(
            f"load: {name} is damaged: {error}. Save it again, or take an older copy."
        ) from None


class ArchiveReader:
    """Reads records, whose checksums are compared; raises RuntimeError for whatever is not whole.

    Args:
        file: A seekable file that starts with the container.
        name: What errors call it.
    """

    def __init__(self, file: Any, name: str) -> None:
        self._name = name
        with _told(name):
            length = file.seek(0, io.SEEK_END)
            try:
                self._zip = zipfile.ZipFile(file)
            except zipfile.BadZipFile:
                raise RuntimeError(
                    f"load: {name} is truncated or corrupt: the directory at its end is missing. Save it again, "
                    "or take an older copy."
                ) from None
            entries = self._zip.infolist()
            self._records: dict[str, zipfile.ZipInfo] = {}
            for info in entries:
                if info.filename in self._records:
                    raise ValueError(f"record {info.filename!r} is there twice")
                self._records[info.filename] = info
            if sum(info.file_size for info in entries) > length:
                raise ValueError("its records are longer than the file")
            self._root = entries[0].filename.split("/", 1)[0] if entries else ""

    def __contains__(self, name: str) -> bool:
        return f"{self._root}/{name}" in self._records

    def count(self, folder: str) -> int:
        """How many records there are in a folder."""
        return sum(name.startswith(f"{self._root}/{folder}") for name in self._records)

    def _find(self, name: str) -> zipfile.ZipInfo:
        info = self._records.get(f"{self._root}/{name}")
        if info is None:
            raise ValueError(f"it has no record {name!r}")
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
            raise ValueError(f"record {name!r} is compressed, which a checkpoint's never are")
        if info.flag_bits & 1:
            raise ValueError(f"record {name!r} is encrypted")
        return info

    def read(self, name: str) -> bytes:
        """A small record."""
        with _told(self._name):
            return self._zip.read(self._find(name))

    def size(self, name: str) -> int:
        """Bytes of a record."""
        with _told(self._name):
            return self._find(name).file_size

    def array(self, name: str) -> numpy.ndarray:
        """The bytes of a record as a new array of uint8."""
        with _told(self._name):
            info = self._find(name)
            found = numpy.empty(info.file_size, numpy.uint8)
            view, position = found.data, 0
            with self._zip.open(info) as file:
                while block := file.read(_CHUNK):
                    view[position : position + len(block)] = block
                    position += len(block)
            if position != len(found):
                raise ValueError(f"record {name!r} is cut off")
            return found
