"""Reading MNIST: right files in both forms, and a clear error for each way a file can be wrong."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy
import pytest

from twofold.data import load_mnist
from twofold.data.mnist import IMAGE_MAGIC, LABEL_MAGIC, DataFileError, MissingDataError

FILES = {
    "train-images-idx3-ubyte": (IMAGE_MAGIC, (5, 28, 28)),
    "train-labels-idx1-ubyte": (LABEL_MAGIC, (5,)),
    "t10k-images-idx3-ubyte": (IMAGE_MAGIC, (3, 28, 28)),
    "t10k-labels-idx1-ubyte": (LABEL_MAGIC, (3,)),
}


def idx(magic: int, array: numpy.ndarray) -> bytes:
    return b"".join(number.to_bytes(4, "big") for number in (magic, *array.shape)) + array.tobytes()


def arrays() -> dict[str, numpy.ndarray]:
    random = numpy.random.default_rng(0)
    return {
        name: random.integers(0, 256 if magic == IMAGE_MAGIC else 10, shape, dtype=numpy.uint8)
        for name, (magic, shape) in FILES.items()
    }


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    for name, array in arrays().items():
        (tmp_path / name).write_bytes(idx(FILES[name][0], array))
    return tmp_path


def compress(directory: Path) -> None:
    for path in list(directory.iterdir()):
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()


@pytest.mark.parametrize("gzipped", [False, True])
def test_reads_the_four_files(directory: Path, gzipped: bool) -> None:
    if gzipped:
        compress(directory)
    (images, labels), (test_images, test_labels) = load_mnist(directory)
    assert images.shape == (5, 784) and images.dtype == numpy.float32
    assert labels.shape == (5,) and labels.dtype == numpy.int64
    assert test_images.shape == (3, 784) and test_labels.shape == (3,)
    source = arrays()
    assert (numpy.rint(images * 255) == source["train-images-idx3-ubyte"].reshape(5, 784)).all()
    assert (test_labels == source["t10k-labels-idx1-ubyte"]).all()
    assert images.max() <= 1


def test_missing_file(directory: Path) -> None:
    (directory / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(FileNotFoundError, match="neither t10k-labels-idx1-ubyte nor") as caught:
        load_mnist(str(directory))
    assert isinstance(caught.value, MissingDataError) and str(directory) in str(caught.value)


def test_wrong_magic(directory: Path) -> None:
    path = directory / "train-images-idx3-ubyte"
    path.write_bytes((directory / "train-labels-idx1-ubyte").read_bytes())
    with pytest.raises(DataFileError, match="starts with the number 2049, not 2051"):
        load_mnist(directory)


@pytest.mark.parametrize("size", [0, 3, 4, 9, 15, 16, 100])
def test_truncated(directory: Path, size: int) -> None:
    path = directory / "train-images-idx3-ubyte"
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(ValueError, match=f"is truncated: {size} bytes, its header needs"):
        load_mnist(directory)


def test_too_long(directory: Path) -> None:
    path = directory / "train-labels-idx1-ubyte"
    path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(DataFileError, match="is too long: 14 bytes, its header needs 13"):
        load_mnist(directory)


def test_broken_gzip(directory: Path) -> None:
    compress(directory)
    path = directory / "train-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataFileError, match="is not a whole gzip file"):
        load_mnist(directory)


def test_images_and_labels_must_fit(directory: Path) -> None:
    (directory / "train-labels-idx1-ubyte").write_bytes(idx(LABEL_MAGIC, numpy.zeros(4, numpy.uint8)))
    with pytest.raises(DataFileError, match=r"holds 5 images, .* 4 labels"):
        load_mnist(directory)
