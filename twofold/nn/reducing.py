"""How a loss is reduced."""

from __future__ import annotations

from twofold import _core
from twofold.tracebacks import warn_user

Tensor = _core.Tensor


def reduction_of(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """The reduction, also from PyTorch's two older flags, and under the older name of the mean."""
    if size_average is None and reduce is None:
        if reduction == "elementwise_mean":
            warn_user("reduction='elementwise_mean' is deprecated. Use reduction='mean'.")
            return "mean"
        return reduction
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


def reduced(value: Tensor, reduction: str) -> Tensor:
    """``value`` averaged, summed, or as it is; raises ValueError for another reduction."""
    if reduction == "none":
        return value
    if reduction == "mean":
        return value.mean()
    if reduction == "sum":
        return value.sum()
    raise ValueError(f"{reduction} is not a valid value for reduction")
