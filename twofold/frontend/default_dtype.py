"""The dtype that Python floats become in define-by-run programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold import _core
from twofold.dtypes import DType, as_dtype, float32

_default = [float32]


def set_default_dtype(d: Any) -> None:
    """Set the dtype that Python floats become, and that operations on integers and Python floats compute in.

    >>> import twofold as torch
    >>> torch.set_default_dtype(torch.float64)
    >>> torch.tensor(0.5).dtype
    twofold.float64
    >>> torch.tensor([1, 2]) / 3
    tensor([0.3333, 0.6667])
    >>> torch.set_default_dtype(torch.float32)

    Raises:
        TypeError: If ``d`` is no floating dtype.
    """
    default = as_dtype(d)
    if default.kind != "f":
        raise TypeError(f"set_default_dtype: {default.name} is no floating dtype. Use float32 or float64.")
    _default[0] = default
    _core.set_hook("in_default_dtype", None if default is float32 else _caster(default))
    _core.forget_calls_by_types()


def get_default_dtype() -> DType:
    """The dtype that Python floats become.

    >>> import twofold as torch
    >>> torch.get_default_dtype()
    twofold.float32
    """
    return _default[0]


def _caster(default: DType) -> Callable[..., Any]:
    from twofold.frontend.default_casts import caster

    return caster(default)
