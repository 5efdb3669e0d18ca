"""Which of PyTorch's backends of attention a program allows: there is one here, whose results do not depend on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from twofold import _core

enabled = {"math": True, "flash": True, "mem_efficient": True, "cudnn": True}
"""By PyTorch's names; on a CPU PyTorch computes with the first two."""

fused_encoders = True
"""Whether encoders may leave padding out, where PyTorch would compute them by fused kernels."""


def allow(changes: Mapping[str, bool]) -> None:
    """Set which backends are allowed."""
    enabled.update({name: bool(value) for name, value in changes.items()})
    _core.forget_calls_by_types()  # calls that are repeated without Python would not raise


@contextmanager
def only(allowed: Mapping[str, bool]) -> Iterator[None]:
    """Inside, these are what is allowed."""
    before = dict(enabled)
    allow(allowed)
    try:
        yield
    finally:
        allow(before)


def need_backend(query: Any, key: Any, value: Any, mask: Any, rate: float, grouped: bool) -> None:
    """Raise RuntimeError, as PyTorch does, where no backend is allowed, or "flash" alone and it does not take these."""
    if enabled["math"]:
        return
    if not enabled["flash"]:
        raise RuntimeError(
            "No viable backend for scaled_dot_product_attention was found. This is likely due to turning off both the "
            "math kernel and the fused kernels."
        )
    heads = grouped or query.shape[1:2] == key.shape[1:2] == value.shape[1:2]
    fixed = mask is None or not mask.requires_grad
    if query.ndim != 4 or query.dtype.kind != "f" or rate or not heads or not fixed:
        raise RuntimeError("No available kernel. Aborting execution. Allow the backend MATH.")
