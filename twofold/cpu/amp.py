"""Mixed precision on the CPU, under PyTorch's older names."""

from __future__ import annotations

from typing import Any

from twofold import amp
from twofold.dtypes import bfloat16


class autocast(amp.autocast):
    """``amp.autocast`` on "cpu".

    >>> import twofold as torch
    >>> with torch.cpu.amp.autocast():
    ...     torch.linalg.vecdot(torch.ones(2), torch.ones(2)).dtype
    twofold.bfloat16
    """

    def __init__(self, enabled: bool = True, dtype: Any = bfloat16, cache_enabled: bool = True) -> None:
        super().__init__("cpu", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """``amp.GradScaler`` on "cpu".

    >>> import twofold as torch
    >>> torch.cpu.amp.GradScaler(1024.0).scale(torch.ones(1))
    tensor([1024.])
    """

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
