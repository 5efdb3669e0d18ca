"""Values carried from PyTorch to this library and back, by way of NumPy."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import twofold

torch: Any = pytest.importorskip("torch", reason="compares with PyTorch")


class NoCounterpart(Exception):
    """An argument of a kind that this library does not have."""


def name_of(thing: Any) -> str:
    """The last part of a name such as ``torch.float32``."""
    return str(thing).rpartition(".")[2]


class Arguments:
    """Arguments for this library; tensors that want gradients are kept, in order."""

    def __init__(self) -> None:
        self.leaves: list[Any] = []

    def tensor(self, value: Any) -> Any:
        """A tensor of the same elements and dtype."""
        dtype = getattr(twofold, name_of(value.dtype), None)
        if dtype is None or value.layout is not torch.strided:
            raise NoCounterpart(f"{value.dtype} {value.layout}")
        made = twofold.tensor(to_array(value).copy(), dtype=dtype)
        if value.requires_grad:
            made.requires_grad = True
            self.leaves.append(made)
        return made

    def __call__(self, value: Any) -> Any:
        """``value`` with all tensors and dtypes in it exchanged."""
        if isinstance(value, torch.Tensor):
            return self.tensor(value)
        if isinstance(value, dict):
            return {key: self(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self(item) for item in value] if isinstance(value, list) else tuple(map(self, value))
        if isinstance(value, (torch.dtype, torch.memory_format, torch.layout)):
            if not hasattr(twofold, name_of(value)):
                raise NoCounterpart(str(value))
            return getattr(twofold, name_of(value))
        if isinstance(value, torch.device):
            return str(value)
        if value is None or isinstance(value, (bool, int, float, complex, str, slice, type(...))):
            return value
        raise NoCounterpart(type(value).__name__)


def to_array(value: Any) -> Any:
    """A tensor of either library, or a Python value, as a NumPy array (bfloat16: as float32)."""
    if isinstance(value, torch.Tensor):
        return (value.float() if value.dtype is torch.bfloat16 else value).numpy(force=True)
    return numpy.asarray(value.detach().numpy() if isinstance(value, twofold.Tensor) else value)


def tensors(value: Any) -> list[Any]:
    """All results of a call in one list."""
    if isinstance(value, dict):
        value = list(value.values())
    return [one for item in value for one in tensors(item)] if isinstance(value, (list, tuple)) else [value]


def wanting_gradients(value: Any) -> list[Any]:
    """The tensors among PyTorch's arguments that want gradients, in the order of ``Arguments.leaves``."""
    return [item for item in tensors(value) if isinstance(item, torch.Tensor) and item.requires_grad]


def difference(want: Any, got: Any, dtype: Any) -> str:
    """What differs between two arrays; empty if the results agree.

    Floating numbers may differ in the last half of the digits of ``dtype``, against the largest element (or 1).
    """
    if want.shape != got.shape:
        return f"shape {got.shape}, not {want.shape}"
    if want.dtype != got.dtype:
        return f"dtype {got.dtype}, not {want.dtype}"
    if want.dtype.kind not in "fc":
        return "" if numpy.array_equal(want, got) else f"{got}, not {want}"
    half = torch.finfo(dtype if dtype.is_floating_point or dtype.is_complex else torch.float32).eps ** 0.5
    largest = float(numpy.abs(want[numpy.isfinite(want)]).max(initial=1))
    if numpy.allclose(got, want, rtol=half, atol=half * largest, equal_nan=True):
        return ""
    return f"{got}, not {want}"
