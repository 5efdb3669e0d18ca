"""Tables of numbers in files: ``tf.contrib.learn.datasets.base``."""

from __future__ import annotations

import csv
import os
from collections import namedtuple
from typing import Any

import numpy

from twofold.errors import ArgumentError
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import as_dtype

Dataset = namedtuple("Dataset", ["data", "target"])
Datasets = namedtuple("Datasets", ["train", "validation", "test"])


def _numbers(dtype: Any) -> Any:
    return numpy.dtype(dtype) if isinstance(dtype, type) else as_dtype(dtype).numpy


def _table(rows: list[list[str]], target_column: int, target_dtype: Any, features_dtype: Any) -> Dataset:
    target = numpy.array([row.pop(target_column) for row in rows], dtype=_numbers(target_dtype))
    return Dataset(numpy.array(rows, dtype=_numbers(features_dtype)), target)


def load_csv_with_header(
    filename: Any, target_dtype: Any, features_dtype: Any, target_column: int = -1
) -> Dataset:
    """The numbers of a file whose first line has how many rows and features there are.

    Args:
        filename: The file.
        target_dtype: Of the labels.
        features_dtype: Of the features.
        target_column: Which column the labels are in.

    Raises:
        ArgumentError: The file has another number of rows or features.

    >>> import os, tempfile
    >>> import twofold.static as tf
    >>> path = os.path.join(tempfile.mkdtemp(), "table.csv")
    >>> _ = open(path, "w").write("2,3,none,one\\n1.5,2,0,1\\n3,4,5,0\\n")
    >>> tf.contrib.learn.datasets.base.load_csv_with_header(path, int, float).target
    array([1, 0])
    """
    with open(filename, newline="") as file:
        header, *rows = list(csv.reader(file))
    count, features = int(header[0]), int(header[1])
    if len(rows) != count or any(len(row) != features + 1 for row in rows):
        what = f"{filename} has {len(rows)} rows of {sorted({len(row) for row in rows})} numbers"
        raise ArgumentError(f"{what}, at {here()}", f"Its first line says {count} rows, {features} features.")
    return _table(rows, target_column, target_dtype, features_dtype)


def load_csv_without_header(
    filename: Any, target_dtype: Any, features_dtype: Any, target_column: int = -1
) -> Dataset:
    """The numbers of a file without a first line of its own; arguments are those of ``load_csv_with_header``."""
    with open(filename, newline="") as file:
        return _table([row for row in csv.reader(file) if row], target_column, target_dtype, features_dtype)


def _given(name: str, path: Any) -> Any:
    if path is None:
        what = f"load_{name}: the file {name}.csv does not come with this package, at {here()}"
        raise ArgumentError(what, "Give its path as data_path.")
    return os.fspath(path)


def maybe_download(filename: Any, work_directory: Any, source_url: Any) -> str:
    """The path of a file in a directory, which must be there: nothing is downloaded from ``source_url``.

    >>> import os, tempfile
    >>> import twofold.static as tf
    >>> directory = tempfile.mkdtemp()
    >>> _ = open(os.path.join(directory, "table.csv"), "w").write("1,2")
    >>> path = tf.contrib.learn.datasets.base.maybe_download("table.csv", directory, "https://example.org/table.csv")
    >>> open(path).read()
    '1,2'
    """
    path = os.path.join(os.fspath(work_directory), os.fspath(filename))
    if not os.path.exists(path):
        what = f"maybe_download: {path} is not there, and nothing is downloaded, at {here()}"
        raise ArgumentError(what, f"Get it from {source_url} first.")
    return path


def load_iris(data_path: Any = None) -> Dataset:
    """Fisher's iris data of a file ``iris.csv``; raises ArgumentError without one."""
    return load_csv_with_header(_given("iris", data_path), int, float)


def load_boston(data_path: Any = None) -> Dataset:
    """The Boston housing data of a file ``boston_house_prices.csv``; raises ArgumentError without one."""
    return load_csv_with_header(_given("boston", data_path), float, float)


def shrink_csv(filename: Any, ratio: int) -> None:
    """Write every ``ratio``-th line of a file to one beside it, ``_small`` behind its name."""
    with open(filename) as file:
        lines = file.readlines()
    with open(os.fspath(filename).replace(".", "_small."), "w") as file:
        file.writelines(lines[::ratio])
