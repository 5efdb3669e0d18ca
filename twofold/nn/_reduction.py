"""Reductions of losses as PyTorch's ``torch.nn._reduction`` has them: for losses that programs define themselves."""

from __future__ import annotations

from twofold.nn.reducing import reduction_of
from twofold.tracebacks import warn_user

_NUMBERS = {"none": 0, "mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """The number of a reduction: 0 for none, 1 for the mean, 2 for the sum.

    >>> import twofold as torch
    >>> torch.nn._reduction.get_enum("sum")
    2
    """
    known = reduction_of(None, None, reduction)
    if known not in _NUMBERS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return _NUMBERS[known]


def legacy_get_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """The reduction that PyTorch's two older flags mean.

    Args:
        size_average: Whether it is the mean and not the sum; None is True.
        reduce: Whether there is one; None is True.
        emit_warning: Whether a warning says what to write.

    >>> import twofold as torch
    >>> torch.nn._reduction.legacy_get_string(False, None, emit_warning=False)
    'sum'
    """
    found = reduction_of(size_average is not False, reduce is not False, "mean")
    if emit_warning:
        warn_user(f"size_average and reduce args will be deprecated, please use reduction='{found}' instead.")
    return found


def legacy_get_enum(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> int:
    """The number of the reduction that PyTorch's two older flags mean; see ``legacy_get_string``."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
