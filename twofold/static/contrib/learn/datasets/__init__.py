"""Small data sets by name: ``tf.contrib.learn.datasets``."""

from __future__ import annotations

from typing import Any

from twofold.errors import ArgumentError
from twofold.runtime.tracing import here
from twofold.static.contrib.learn.datasets import base as base
from twofold.static.contrib.learn.python.learn.datasets import mnist as mnist

load_iris, load_boston = base.load_iris, base.load_boston
DATASETS = {"iris": load_iris, "boston": load_boston, "mnist": mnist.load_mnist}


def load_dataset(name: str, size: str = "small", test_with_fake_data: bool = False) -> Any:
    """The data set "iris", "boston" or "mnist"; raises ValueError for another one."""
    if name not in DATASETS or size != "small" or test_with_fake_data:
        what = f"load_dataset: there is no {name!r} of size {size!r}, at {here()}"
        raise ArgumentError(what, f"There are {', '.join(DATASETS)}, small ones.")
    return DATASETS[name]()
