"""Mixed precision on graphics cards, under PyTorch's older names."""

from __future__ import annotations

from typing import Any

from twofold import amp
from twofold.lazy import other_files


class autocast(amp.autocast):
    """``amp.autocast`` on "cuda".

    >>> import twofold as torch
    >>> with torch.cuda.amp.autocast():
    ...     torch.ones(2).dtype
    twofold.float32
    """

    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool | None = None) -> None:
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """``amp.GradScaler`` on "cuda".

    >>> import twofold as torch
    >>> torch.cuda.amp.GradScaler(enabled=False).get_scale()
    1.0
    """

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


def custom_fwd(fwd: Any = None, *, cast_inputs: Any = None) -> Any:
    """``amp.custom_fwd`` on "cuda".

    >>> import twofold as torch
    >>> callable(torch.cuda.amp.custom_fwd(cast_inputs=torch.float32))
    True
    """
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Any) -> Any:
    """``amp.custom_bwd`` on "cuda".

    >>> import twofold as torch
    >>> callable(torch.cuda.amp.custom_bwd(lambda ctx, cotangent: cotangent))
    True
    """
    return amp.custom_bwd(bwd, device_type="cuda")


other_files(__name__, {"autocast_mode": "autocast custom_bwd custom_fwd", "grad_scaler": "GradScaler"})
