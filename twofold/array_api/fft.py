"""The Fourier transform extension of the standard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold import _core
from twofold.array_api.functions import fourier
from twofold.dtypes import DType
from twofold.frontend.options import check_device

Tensor = _core.Tensor
Axes = int | Sequence[int] | None


def fft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The discrete Fourier transform along ``axis``, cut or padded to ``n`` elements."""
    return fourier.fft(x, n, axis, norm)


def ifft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The inverse of ``fft``."""
    return fourier.ifft(x, n, axis, norm)


def fftn(x: Tensor, /, *, s: Any = None, axes: Axes = None, norm: str = "backward") -> Tensor:
    """The discrete Fourier transform along several axes (None: the last of ``s``, or all)."""
    return fourier.fftn(x, s, axes, norm)


def ifftn(x: Tensor, /, *, s: Any = None, axes: Axes = None, norm: str = "backward") -> Tensor:
    """The inverse of ``fftn``."""
    return fourier.ifftn(x, s, axes, norm)


def rfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The half of the Fourier transform of real numbers that says all."""
    return fourier.rfft(x, n, axis, norm)


def irfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The inverse of ``rfft``."""
    return fourier.irfft(x, n, axis, norm)


def rfftn(x: Tensor, /, *, s: Any = None, axes: Axes = None, norm: str = "backward") -> Tensor:
    """The half of the Fourier transform of real numbers along several axes."""
    return fourier.rfftn(x, s, axes, norm)


def irfftn(x: Tensor, /, *, s: Any = None, axes: Axes = None, norm: str = "backward") -> Tensor:
    """The inverse of ``rfftn``."""
    return fourier.irfftn(x, s, axes, norm)


def hfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The real Fourier transform of a signal with Hermitian symmetry, of which one half is given."""
    return fourier.hfft(x, n, axis, norm)


def ihfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The inverse of ``hfft``."""
    return fourier.ihfft(x, n, axis, norm)


def fftfreq(n: int, /, *, d: float = 1.0, dtype: DType | None = None, device: Any = None) -> Tensor:
    """The frequencies of the elements of ``fft`` for samples ``d`` apart, in cycles per unit of ``d``."""
    check_device(device)
    return fourier.fftfreq(n, d, dtype=dtype)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: DType | None = None, device: Any = None) -> Tensor:
    """The frequencies of the elements of ``rfft`` for samples ``d`` apart, in cycles per unit of ``d``."""
    check_device(device)
    return fourier.rfftfreq(n, d, dtype=dtype)


def fftshift(x: Tensor, /, *, axes: Axes = None) -> Tensor:
    """Frequency 0 moved to the middle of ``axes`` (None: of all)."""
    return fourier.fftshift(x, axes)


def ifftshift(x: Tensor, /, *, axes: Axes = None) -> Tensor:
    """The inverse of ``fftshift``."""
    return fourier.ifftshift(x, axes)
