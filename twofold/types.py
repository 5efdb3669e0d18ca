"""Types that annotations of programs name: ``torch.types``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, TypeAlias

from twofold import _core
from twofold.frontend.device import Device as _device

Tensor = _core.Tensor
Number: TypeAlias = int | float | bool
Device: TypeAlias = _device | str | int | None
Storage: TypeAlias = Any
FileLike: TypeAlias = str | os.PathLike[str] | Any
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
_int, _float, _bool, _complex = int, float, bool, complex
_size: TypeAlias = Sequence[int]
