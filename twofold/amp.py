"""Mixed precision under PyTorch's names: what programs for graphics cards call, as it behaves without one."""

from __future__ import annotations

import contextlib
from typing import Any

from twofold.errors import ArgumentError

_FIX = "Convert the model and its inputs with .bfloat16(), or leave autocast out."


class autocast(contextlib.ContextDecorator):
    """A region, or a function, whose operations on ``device_type`` would run in a half type.

    On "cuda" that changes nothing, as no tensor is there. Raises ArgumentError where it is enabled for the CPU:
    here each operation runs in the dtype of its operands.

    >>> import twofold as torch
    >>> with torch.autocast("cuda"):
    ...     (torch.ones(2) * 2).dtype
    twofold.float32
    """

    def __init__(
        self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        if enabled and device_type == "cpu":
            raise ArgumentError("autocast on the CPU", _FIX)
        self.device = device_type

    def __enter__(self) -> autocast:
        return self

    def __exit__(self, *exception: Any) -> None:
        pass


class GradScaler:
    """Scales losses against underflow of half gradients; without a graphics card it is switched off, as in PyTorch.

    >>> import twofold as torch
    >>> scaler = torch.amp.GradScaler()
    >>> scaler.scale(torch.tensor(2.0)), scaler.is_enabled()
    (tensor(2.), False)
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self.device = device

    def scale(self, outputs: Any) -> Any:
        """``outputs`` themselves."""
        return outputs

    def unscale_(self, optimizer: Any) -> None:
        """Gradients are not scaled."""

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """A step of the optimizer."""
        return optimizer.step(*args, **kwargs)

    def update(self, new_scale: Any = None) -> None:
        """There is no scale to change."""

    def get_scale(self) -> float:
        """1."""
        return 1.0

    def is_enabled(self) -> bool:
        """False."""
        return False

    def state_dict(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Nothing to load."""
