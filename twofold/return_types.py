"""The classes of named results: ``max`` of ``max`` along an axis, ``linalg_svd`` of ``linalg.svd``, ..."""

from __future__ import annotations

from typing import Any

from twofold.ops.base import FUNCTIONS
from twofold.ops.return_types import RETURN_TYPES


def __getattr__(name: str) -> Any:
    if name not in RETURN_TYPES:
        for function in (name, name.replace("linalg_", "linalg.", 1), name.removeprefix("linalg_")):
            if function in FUNCTIONS:
                FUNCTIONS[function]
    if name in RETURN_TYPES:
        return RETURN_TYPES[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
