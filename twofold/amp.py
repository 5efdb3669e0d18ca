"""Mixed precision under PyTorch's names: what programs for graphics cards call, as it behaves without one."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from twofold import _core
from twofold.dtypes import DType, bfloat16, float16
from twofold.errors import ArgumentError

F = TypeVar("F", bound=Callable[..., Any])

_LOWER = {dtype.code: dtype for dtype in (bfloat16, float16)}
_FIX = "Leave it out: float32 gradients of bfloat16 regions need no scaling."


class autocast(_core.AutocastMode):
    """A region, or a function, whose operations on ``device_type`` choose the dtypes that they run in.

    On "cpu" products of matrices and convolutions cast their floating operands to ``dtype``; losses, Fourier
    transforms and linear algebra cast them to float32; all others run in the dtypes that they are given, and
    nothing of float64 is cast. Each entry says what it does in its attribute ``autocast``. Casts are recorded
    operations, so that float32 parameters get float32 gradients. On "cuda" a region changes nothing, as no tensor
    is there.

    Args:
        device_type: "cpu", or the name of another device of PyTorch's.
        dtype: bfloat16 or float16; None: ``get_autocast_dtype(device_type)``. For any other the region is disabled,
            with a warning.
        enabled: False: operations inside run in the dtypes of their operands, also within another region.
        cache_enabled: Without effect on results: equal casts in one trace are computed once in any case.

    >>> import twofold as torch
    >>> x = torch.ones(2, 2)
    >>> with torch.autocast("cpu", dtype=torch.bfloat16):
    ...     (x @ x).dtype, (x + x).dtype
    (twofold.bfloat16, twofold.float32)
    """

    def __init__(
        self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        _check_device(device_type)
        self.device = device_type
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        lower = _LOWER.get(getattr(self.fast_dtype, "code", -1))
        if enabled and lower is None:
            warnings.warn(
                f"In {device_type.upper()} autocast, but the target dtype {self.fast_dtype} is not supported. "
                "Disabling autocast. Use bfloat16 or float16.",
                stacklevel=2,
            )
        enabled = bool(enabled) and lower is not None
        mode = int(enabled) if device_type == "cpu" else -1
        super().__init__(mode, _core.autocast_state()[1] if lower is None else lower.code)

    def __call__(self, function: F) -> F:
        """``function`` with every call inside such a region."""

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return wrapped  # type: ignore[return-value]


def _check_device(device_type: Any) -> None:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if not is_autocast_available(device_type):
        raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")


def is_autocast_available(device_type: str) -> bool:
    """Whether ``autocast`` takes this device.

    >>> import twofold as torch
    >>> torch.amp.is_autocast_available("cpu")
    True
    """
    return device_type in ("cpu", "cuda", "mps", "xpu")


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether the calling thread is inside an enabled ``autocast`` region of this device.

    >>> import twofold as torch
    >>> with torch.autocast("cpu"):
    ...     torch.is_autocast_enabled("cpu")
    True
    """
    _check_device(device_type)
    return device_type == "cpu" and _core.autocast_state()[0]


def get_autocast_dtype(device_type: str) -> DType:
    """The dtype of the region of this device, or outside of one the default: bfloat16, float16 off the CPU.

    >>> import twofold as torch
    >>> torch.get_autocast_dtype("cpu")
    twofold.bfloat16
    """
    _check_device(device_type)
    return _LOWER[_core.autocast_state()[1]] if device_type == "cpu" else float16


def set_autocast_enabled(device_type: str, enabled: bool) -> None:
    """Begin or end what an ``autocast`` region does, for the calling thread; "cpu" alone can begin.

    >>> import twofold as torch
    >>> torch.set_autocast_enabled("cpu", False)
    """
    _check_device(device_type)
    if device_type == "cpu":
        _core.set_autocast_state(enabled, _core.autocast_state()[1])
    elif enabled:
        raise ArgumentError(f"autocast on {device_type!r}, which is not available", "Use 'cpu'.")


def set_autocast_dtype(device_type: str, dtype: DType) -> None:
    """Set the dtype of regions of the CPU that name none, for the calling thread: bfloat16 or float16.

    >>> import twofold as torch
    >>> torch.set_autocast_dtype("cpu", torch.bfloat16)
    """
    _check_device(device_type)
    if device_type != "cpu" or getattr(dtype, "code", -1) not in _LOWER:
        raise ArgumentError(f"autocast to {dtype} on {device_type!r}", "Use 'cpu' with bfloat16 or float16.")
    _core.set_autocast_state(_core.autocast_state()[0], dtype.code)


class GradScaler:
    """Scales losses against underflow of half gradients; without a graphics card it is switched off, as in PyTorch.

    So ``init_scale``, ``growth_factor``, ``backoff_factor`` and ``growth_interval`` have no effect. Raises
    ArgumentError where it is enabled for the CPU.

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
        if enabled and device == "cpu":
            raise ArgumentError("GradScaler on the CPU", _FIX)
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
