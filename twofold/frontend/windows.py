"""Windows under their older names, which count periods instead of symmetry."""

from __future__ import annotations

from typing import Any

from twofold import _core
from twofold.frontend.creation import CREATION
from twofold.frontend.options import OPTIONS
from twofold.ops.signatures import shows

Tensor = _core.Tensor


def _window(name: str, length: int, periodic: bool, **options: Any) -> Tensor:
    return CREATION["signal.windows." + name](length, sym=not periodic, **options)


def bartlett_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """A triangle of ``window_length`` elements; see ``signal.windows.bartlett``.

    >>> import twofold as torch
    >>> torch.bartlett_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window("bartlett", window_length, periodic, **options)


def blackman_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """Three cosines; see ``signal.windows.blackman``.

    >>> import twofold as torch
    >>> torch.blackman_window(4)[1:]
    tensor([0.3400, 1.0000, 0.3400])
    """
    return _window("blackman", window_length, periodic, **options)


def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, **options: Any
) -> Tensor:
    """``alpha - beta * cos(2 pi n / steps)``; see ``signal.windows.general_cosine``.

    >>> import twofold as torch
    >>> torch.hamming_window(4)
    tensor([0.0800, 0.5400, 1.0000, 0.5400])
    """
    return _window("general_cosine", window_length, periodic, a=(alpha, beta), **options)


def hann_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """``0.5 - 0.5 * cos(2 pi n / steps)``; see ``signal.windows.hann``.

    >>> import twofold as torch
    >>> torch.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window("hann", window_length, periodic, **options)


def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, **options: Any) -> Tensor:
    """Kaiser's window of shape ``beta``; see ``signal.windows.kaiser``.

    >>> import twofold as torch
    >>> torch.kaiser_window(4, beta=4.0)
    tensor([0.0885, 0.6334, 1.0000, 0.6334])
    """
    return _window("kaiser", window_length, periodic, beta=beta, **options)


for _made in (bartlett_window, blackman_window, hamming_window, hann_window, kaiser_window):
    shows(_made, _made, *OPTIONS, without=("options",))
