"""What this namespace offers."""

from __future__ import annotations

from typing import Any

from twofold import dtypes
from twofold.array_api.data_types import isdtype
from twofold.dtypes import DType
from twofold.frontend.device import CPU
from twofold.frontend.options import check_device, get_default_dtype

_DTYPES = (
    dtypes.bool_, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.uint8, dtypes.uint16, dtypes.uint32,
    dtypes.uint64, dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128,
)  # fmt: skip


class Info:
    """Capabilities, default dtypes, dtypes and devices of the namespace."""

    def capabilities(self) -> dict[str, Any]:
        """What is there beyond the mandatory: boolean masks, data-dependent shapes, 64 axes at most."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Any:
        """The CPU."""
        return CPU

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        """The dtypes that Python numbers become."""
        check_device(device)
        real = get_default_dtype()
        return {
            "real floating": real,
            "complex floating": real.complex,
            "integral": dtypes.int64,
            "indexing": dtypes.int64,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DType]:
        """The dtypes of the standard by name, all or those of a kind."""
        check_device(device)
        return {dtype.name: dtype for dtype in _DTYPES if kind is None or isdtype(dtype, kind)}

    def devices(self) -> list[Any]:
        """The devices: the CPU."""
        return [CPU]


def __array_namespace_info__() -> Info:
    """The description of the namespace."""
    return Info()
