"""Functions under the name of PyTorch's file ``functional.py``."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_NAMES = (
    "atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod cdist "
    "chain_matmul einsum istft lu meshgrid norm pca_lowrank split stft svd_lowrank tensordot unique "
    "unique_consecutive unravel_index"
)


def __getattr__(name: str) -> Any:
    if name not in _NAMES.split():
        raise AttributeError(f"module {__name__} has no attribute {name!r}", name=name)
    return getattr(import_module("twofold"), name)


def __dir__() -> list[str]:
    return _NAMES.split()
