"""The operations: one entry each, from which functions, methods, gradients, code and tests are derived.

They stand in folders by family, and what they share beside these. A module is imported when one of its entries or
functions is first looked up; ``twofold.index`` says which. A new module needs no mention anywhere: ``make generated``
finds it.
"""

from importlib import import_module as _import_module
from typing import Any as _Any


def __getattr__(name: str) -> _Any:
    """The namespaces of operators of the package's own, ``torch.ops.aten`` and ``torch.ops.profiler``."""
    if name == "aten":
        return _import_module("twofold.library.aten").namespace
    if name == "profiler":
        return _import_module("twofold.profiler.operators").namespace
    raise AttributeError(f"module 'twofold.ops' has no attribute {name!r}")
