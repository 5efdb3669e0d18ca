"""The public functions of the package as attributes, which the standard's functions are written with."""

from __future__ import annotations

from typing import Any

from twofold.frontend.creation import CREATION
from twofold.frontend.install import PUBLIC


class Functions:
    """The public functions whose names start with ``prefix``, by the rest; those that make arrays first."""

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        whole = self._prefix + name
        function = CREATION.get(whole) or PUBLIC.get(whole)
        if function is None:
            raise AttributeError(f"no function named {whole!r}")
        setattr(self, name, function)
        return function


functions: Any = Functions()
linear_algebra: Any = Functions("linalg.")
fourier: Any = Functions("fft.")
