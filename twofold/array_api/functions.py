"""The public functions of the package as attributes, which the standard's functions are written with."""

from __future__ import annotations

from typing import Any

from twofold.frontend.creation import CREATION
from twofold.frontend.install import PUBLIC


class Functions:
    """Every public function by name; those that make arrays first."""

    def __getattr__(self, name: str) -> Any:
        function = CREATION.get(name) or PUBLIC.get(name)
        if function is None:
            raise AttributeError(f"no function named {name!r}")
        setattr(self, name, function)
        return function


functions: Any = Functions()
