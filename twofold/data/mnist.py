"""MNIST from its four original files (Y. LeCun, C. Cortes, C. J. C. Burges), gzipped or not.

The IDX format: a big-endian int32 magic number, whose third byte names the element type (8: unsigned
byte) and whose last the number of axes, one int32 for each axis, then the elements in row-major order.
"""

from __future__ import annotations

import gzip
import zlib
from os import PathLike
from pathlib import Path

import numpy

from twofold.errors import ArgumentError

IMAGE_MAGIC = 2051
LABEL_MAGIC = 2049
_FILES = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}

Arrays = tuple[numpy.ndarray, numpy.ndarray]


class DataFileError(ArgumentError):
    """A data file does not hold what its name says."""


class MissingDataError(DataFileError, FileNotFoundError):
    """A data file is not there; caught as FileNotFoundError too."""


def _find(directory: Path, name: str) -> Path:
    for path in (directory / name, directory / f"{name}.gz"):
        if path.is_file():
            return path
    raise MissingDataError(
        f"neither {name} nor {name}.gz is in {directory}",
        "Give the directory that holds the four MNIST files, gzipped or not",
    )


def _content(path: Path) -> bytes:
    data = path.read_bytes()
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        return gzip.decompress(data)
    except (EOFError, OSError, zlib.error) as error:
        raise DataFileError(f"{path} is not a whole gzip file ({error})", "Copy the file again") from error


def read_idx(path: Path, magic: int) -> numpy.ndarray:
    """The unsigned bytes of one IDX file as an array.

    Raises DataFileError if the file starts with another magic number, or is shorter or longer than its
    header says.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "labels"
    >>> _ = path.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 2, 1]))
    >>> read_idx(path, LABEL_MAGIC).tolist()
    [7, 2, 1]
    """
    data = _content(path)
    axes = magic & 0xFF
    header = 4 * (1 + axes)
    if len(data) >= 4 and (found := int.from_bytes(data[:4], "big")) != magic:
        raise DataFileError(
            f"{path} starts with the number {found}, not {magic}",
            "Images (2051) and labels (2049) may be exchanged, or the file is not in the IDX format",
        )
    shape = tuple(int(size) for size in numpy.frombuffer(data[4:header], ">i4", len(data[4:header]) // 4))
    expected = header + int(numpy.prod(shape, dtype=numpy.int64)) if len(shape) == axes else header
    if len(data) != expected:
        state = "truncated" if len(data) < expected else "too long"
        raise DataFileError(
            f"{path} is {state}: {len(data)} bytes, its header needs {expected}", "Copy the file again"
        )
    return numpy.frombuffer(data, numpy.uint8, offset=header).reshape(shape)


def _part(directory: Path, part: str) -> Arrays:
    image_path, label_path = (_find(directory, name) for name in _FILES[part])
    images, labels = read_idx(image_path, IMAGE_MAGIC), read_idx(label_path, LABEL_MAGIC)
    if len(images) != len(labels):
        raise DataFileError(
            f"{image_path} holds {len(images)} images, {label_path} {len(labels)} labels",
            "Take both files from the same data set",
        )
    scaled = images.reshape(len(images), -1).astype(numpy.float32) / numpy.float32(255)
    return scaled, labels.astype(numpy.int64)


def load_mnist(directory: str | PathLike[str]) -> tuple[Arrays, Arrays]:
    """``(train images, train labels), (test images, test labels)`` from the four IDX files in ``directory``.

    Images are float32 [count, 784] with values 0 to 1 (the stored byte over 255), labels int64 [count].
    Raises MissingDataError (a FileNotFoundError) if a file is missing and DataFileError (a ValueError) if
    one has the wrong magic number, is truncated, or does not fit its partner.

    >>> load_mnist("no such directory")
    Traceback (most recent call last):
        ...
    twofold.data.mnist.MissingDataError: neither train-images-idx3-ubyte nor train-images-idx3-ubyte.gz is in
    no such directory. Give the directory that holds the four MNIST files, gzipped or not
    """
    root = Path(directory)
    return _part(root, "train"), _part(root, "test")
