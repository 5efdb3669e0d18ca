"""PyTorch's name for its functions without checks of arguments: the functions of ``twofold`` themselves."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__} has no attribute {name!r}", name=name)
    return getattr(import_module("twofold"), name)
