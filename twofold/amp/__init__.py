"""Mixed precision under PyTorch's names; without a graphics card, what is meant for one changes nothing."""

from twofold.amp.autocast_mode import (
    autocast,
    custom_bwd,
    custom_fwd,
    get_autocast_dtype,
    is_autocast_available,
    is_autocast_enabled,
    set_autocast_dtype,
    set_autocast_enabled,
)
from twofold.amp.grad_scaler import GradScaler
from twofold.tracebacks import guard_namespace as _guard_namespace

__all__ = [
    "GradScaler",
    "autocast",
    "custom_bwd",
    "custom_fwd",
    "get_autocast_dtype",
    "is_autocast_available",
    "is_autocast_enabled",
    "set_autocast_dtype",
    "set_autocast_enabled",
]

_guard_namespace(globals())
