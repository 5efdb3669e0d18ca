"""Memory shared with other libraries by the DLPack protocol."""

from __future__ import annotations

from typing import Any

from twofold import _core
from twofold.frontend.creation import check_device
from twofold.frontend.creation import from_dlpack as _from_protocol

Tensor = _core.Tensor


class _Capsule:
    """A bare DLPack capsule as an object that gives it."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def to_dlpack(tensor: Tensor) -> Any:
    """A DLPack capsule on the memory of ``tensor``.

    >>> import twofold as torch
    >>> capsule = torch.utils.dlpack.to_dlpack(torch.tensor([1, 2]))
    >>> torch.utils.dlpack.from_dlpack(capsule)
    tensor([1, 2])
    """
    return tensor.__dlpack__()


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor on the memory of an array with ``__dlpack__``, or of a capsule.

    Args:
        ext_tensor: The array, or a capsule, which can be used once.
        device: The CPU.
        copy: Whether to copy; by default, and with False, memory is shared.

    >>> import twofold as torch
    >>> import numpy
    >>> torch.utils.dlpack.from_dlpack(numpy.array([1.0, 2.0]))
    tensor([1., 2.], dtype=twofold.float64)
    """
    check_device(device)
    source = ext_tensor if hasattr(ext_tensor, "__dlpack__") else _Capsule(ext_tensor)
    made = _from_protocol(source)
    return made.clone() if copy else made
