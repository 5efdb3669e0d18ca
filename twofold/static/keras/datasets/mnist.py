"""Handwritten digits from the file that Keras keeps them in."""

from __future__ import annotations

import os
from typing import Any

import numpy

_Part = tuple[numpy.ndarray, numpy.ndarray]


def load_data(path: Any = "mnist.npz") -> tuple[_Part, _Part]:
    """Images of bytes ``[count, 28, 28]`` and class numbers, for training and for testing.

    A relative ``path`` is one in ``~/.keras/datasets``; with ``KERAS_HOME`` set, in ``datasets`` there. Raises
    FileNotFoundError for a missing file: nothing is downloaded.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     parts = {f"{kind}_{part}": numpy.zeros(2) for kind in "xy" for part in ("train", "test")}
    ...     numpy.savez(f"{folder}/mnist.npz", **parts)
    ...     (images, labels), _ = load_data(f"{folder}/mnist.npz")
    >>> labels.tolist()
    [0.0, 0.0]
    """
    home = os.environ.get("KERAS_HOME") or os.path.join(os.path.expanduser("~"), ".keras")
    file = os.path.join(home, "datasets", os.fspath(path))
    if not os.path.exists(file):
        raise FileNotFoundError(f"load_data: {file} is missing. Put the file there; nothing is downloaded.")
    with numpy.load(file, allow_pickle=False) as held:
        return (held["x_train"], held["y_train"]), (held["x_test"], held["y_test"])
