"""Regions in which operations choose the dtypes that they run in, and methods that heed them."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import numpy

from twofold import _core
from twofold.dtypes import DType, bfloat16, float16, float64
from twofold.errors import ArgumentError

Tensor = _core.Tensor
F = TypeVar("F", bound=Callable[..., Any])

_LOWER = {dtype.code: dtype for dtype in (bfloat16, float16)}


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


def is_autocast_cpu_enabled() -> bool:
    """Whether the calling thread is inside an enabled ``autocast`` region of the CPU.

    >>> import twofold as torch
    >>> torch.is_autocast_cpu_enabled()
    False
    """
    return is_autocast_enabled("cpu")


def get_autocast_cpu_dtype() -> DType:
    """The dtype that ``autocast`` casts to on the CPU.

    >>> import twofold as torch
    >>> torch.get_autocast_cpu_dtype()
    twofold.bfloat16
    """
    return get_autocast_dtype("cpu")


def get_autocast_gpu_dtype() -> DType:
    """The dtype that ``autocast`` would cast to on a graphics card.

    >>> import twofold as torch
    >>> torch.get_autocast_gpu_dtype()
    twofold.float16
    """
    return get_autocast_dtype("cuda")


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


def custom_fwd(fwd: Any = None, *, device_type: str, cast_inputs: DType | None = None) -> Any:
    """Decorate the ``forward`` of an ``autograd.Function`` for ``autocast`` regions of a device.

    Args:
        fwd: The method; None: return a decorator.
        device_type: "cpu", or the name of another device of PyTorch's.
        cast_inputs: Inside an enabled region, cast floating tensors among the arguments (not those of float64) to
            this dtype and run the method outside of the region; None: run it as the region says.

    >>> import twofold as torch
    >>> class Square(torch.autograd.Function):
    ...     @staticmethod
    ...     @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x @ x
    ...
    ...     @staticmethod
    ...     @torch.amp.custom_bwd(device_type="cpu")
    ...     def backward(ctx, cotangent):
    ...         (x,) = ctx.saved_tensors
    ...         return cotangent @ x.mT + x.mT @ cotangent
    >>> with torch.autocast("cpu"):
    ...     Square.apply(torch.ones(2, 2, dtype=torch.bfloat16)).dtype
    twofold.float32
    """
    _check_device(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def wrapped(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        enabled = is_autocast_enabled(device_type)
        ctx._dtype = get_autocast_dtype(device_type)
        ctx._fwd_used_autocast = enabled and cast_inputs is None
        if not enabled or cast_inputs is None:
            return fwd(ctx, *args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(ctx, *_cast(args, cast_inputs), **_cast(kwargs, cast_inputs))

    return wrapped


def custom_bwd(bwd: Any = None, *, device_type: str) -> Any:
    """Decorate the ``backward`` of an ``autograd.Function`` whose ``forward`` has ``custom_fwd``.

    It runs in the same state of ``autocast`` as ``forward`` did.

    Args:
        bwd: The method; None: return a decorator.
        device_type: "cpu", or the name of another device of PyTorch's.

    >>> import twofold as torch
    >>> callable(torch.amp.custom_bwd(device_type="cpu"))
    True
    """
    _check_device(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def wrapped(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, ctx._dtype, ctx._fwd_used_autocast):
            return bwd(ctx, *args, **kwargs)

    return wrapped


def _cast(value: Any, dtype: DType) -> Any:
    """``value`` with the floating tensors in nested containers cast, save those of float64."""
    if isinstance(value, Tensor):
        eligible = value.dtype.kind == "f" and value.dtype is not float64
        return value.to(dtype) if eligible else value
    if isinstance(value, Mapping):
        return {_cast(key, dtype): _cast(item, dtype) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_cast(item, dtype) for item in value)
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes, numpy.ndarray)):
        return (_cast(item, dtype) for item in value)
    return value
