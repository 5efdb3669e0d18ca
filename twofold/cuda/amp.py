"""Mixed precision on graphics cards, under PyTorch's older names."""

from __future__ import annotations

from typing import Any

from twofold import amp
from twofold.amp import GradScaler as GradScaler


class autocast(amp.autocast):
    """``amp.autocast`` on "cuda".

    >>> import twofold as torch
    >>> with torch.cuda.amp.autocast():
    ...     torch.ones(2).dtype
    twofold.float32
    """

    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool | None = None) -> None:
        super().__init__("cuda", dtype, enabled, cache_enabled)
