"""``torch.device``: names of devices, of which only the CPU is there."""

from __future__ import annotations

import re
from typing import Any

from twofold.frontend.options import check_device
from twofold.ops.axes import whole_number

_TYPES = (
    "cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia", "xla", "lazy",
    "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone",
)  # fmt: skip
_INDEXED = re.compile(r"(.*):(0|[1-9]\d*)")


class Device:
    """Where tensors lie: a type and, where there are several of it, an index.

    Any device can be named. Only the CPU is there: what is made on another, moved there, or made inside its ``with``
    block raises RuntimeError.

    Args:
        type: One of the names of PyTorch, such as ``"cpu"``, with an index as in ``"cuda:1"`` or without; or a device.
        index: The index, from 0 on; not beside one in ``type``.

    Raises:
        RuntimeError: An unknown type, or an index that is negative or given twice.
        TypeError: Arguments of other types.

    >>> import twofold as torch
    >>> torch.device("cuda", 1), torch.tensor([1.0]).device == torch.device("cpu")
    (device(type='cuda', index=1), True)
    """

    type: str
    index: int | None

    def __init__(self, type: Any, index: int | None = None) -> None:
        if isinstance(type, Device) and index is None:
            self.type, self.index = type.type, type.index
            return
        if not isinstance(type, str):
            raise TypeError(f"device: the type is a name such as 'cpu', not {type!r}")
        found = _INDEXED.fullmatch(type)
        self.type = found[1] if found else type
        if self.type not in _TYPES:
            raise RuntimeError(f"device: {type!r} names no device. Use one of {', '.join(_TYPES)}.")
        if found and index is not None:
            raise RuntimeError(f"device: two indices, in {type!r} and {index}. Give one.")
        self.index = int(found[2]) if found else None
        if index is not None:
            self.index = whole_number(index, "the index of a device")
            if self.index < 0:
                raise RuntimeError(f"device: index {self.index} is negative. Count from 0, or leave it out.")

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type={self.type!r}{index})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if isinstance(other, (Device, str)) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))

    def __enter__(self) -> Device:
        check_device(self)
        return self

    def __exit__(self, *error: object) -> None:
        pass


CPU = Device("cpu")
