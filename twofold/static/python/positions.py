"""Modules under the names that TensorFlow's files have, with the names of public modules."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any

from twofold.lazy import submodules

_PUBLIC = "twofold.static"


def enter(package: str, table: Mapping[str, str]) -> None:
    """Enter files of ``package``, of which several share a row: where their names are looked for before ``tf``.

    A row may name several modules. A file may stand in packages inside of ``package``, which are made.

    >>> from twofold.static.python.ops import math_ops, nn_ops
    >>> from twofold import static as tf
    >>> math_ops.reduce_sum is tf.reduce_sum and nn_ops.conv2d is tf.nn.conv2d
    True
    """
    for names, module in table.items():
        modules = [f"{_PUBLIC}.{one}" for one in module.split()]
        for name in names.split():
            above, _, file = name.rpartition(".")
            holder = _inside(package, above)
            found = {"__getattr__": _finder(file, [*modules, _PUBLIC]), "__dir__": partial(_names, modules)}
            submodules(holder, {file: found})


def _names(modules: list[str]) -> list[str]:
    """The public names of modules."""
    return sorted({name for one in modules for name in dir(import_module(one)) if not name.startswith("_")})


def _inside(package: str, path: str) -> str:
    """The name of a package inside of another one, made if it is missing."""
    for part in filter(None, path.split(".")):
        if f"{package}.{part}" not in sys.modules:
            submodules(package, {part: {}})
        package = f"{package}.{part}"
    return package


def _finder(file: str, modules: list[str]) -> Callable[[str], Any]:
    def find(name: str) -> Any:
        for module in modules:
            if not name.startswith("__") and hasattr(found := import_module(module), name):
                return getattr(found, name)
        raise AttributeError(f"module {file!r} has no attribute {name!r}", name=name)

    return find
