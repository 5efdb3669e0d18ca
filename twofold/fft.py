"""Discrete Fourier transforms under the names of ``torch.fft``; each is a function called ``fft.<name>``."""

from twofold.frontend.creation import CREATION
from twofold.frontend.install import guard as _guard
from twofold.frontend.install import namespace as _namespace

_FUNCTIONS = _namespace("fft")
_FUNCTIONS.update({name: CREATION["fft." + name] for name in _FUNCTIONS if "fft." + name in CREATION})
_guard(_FUNCTIONS)

__all__ = list(_FUNCTIONS)

globals().update(_FUNCTIONS)
