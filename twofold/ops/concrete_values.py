"""Values that a result's shape depends on: they are observed, so they must be known when a call is made."""

from __future__ import annotations

from typing import Any

import numpy

from twofold.errors import ArgumentError
from twofold.ir.node import Node


def known_value(value: Any, what: str) -> Any:
    """``value`` as a NumPy array; ``what`` names it in the ArgumentError for one inside a graph."""
    if isinstance(value, Node):
        raise ArgumentError(f"{what} decides the shape of the result", "Call this where values are known.")
    return value.detach().numpy() if hasattr(value, "detach") else numpy.asarray(value)
