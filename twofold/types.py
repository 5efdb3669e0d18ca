"""Types that annotations of programs name: ``torch.types``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, TypeAlias

from twofold import _core
from twofold.dtypes import DType as _dtype  # noqa: F401 (programs name it)
from twofold.dtypes import Size
from twofold.frontend.checks import SymBool, SymFloat, SymInt
from twofold.frontend.device import Device as _device
from twofold.frontend.options import layout as _layout  # noqa: F401

Tensor = _core.Tensor
Number: TypeAlias = int | float | bool
Device: TypeAlias = _device | str | int | None
Storage: TypeAlias = Any
FileLike: TypeAlias = str | os.PathLike[str] | Any
IntLikeType: TypeAlias = int | SymInt
FloatLikeType: TypeAlias = float | SymFloat
BoolLikeType: TypeAlias = bool | SymBool
PySymType: TypeAlias = SymInt | SymFloat | SymBool
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
_TensorOrOptionalTensors: TypeAlias = Tensor | Sequence[Tensor | None]
_int, _float, _bool, _complex, _str, _bytes = int, float, bool, complex, str, bytes
_Number = (int, float, bool)
_size: TypeAlias = Size | list[int] | tuple[int, ...]
