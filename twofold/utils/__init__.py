"""Helpers around programs: data sets and their loading, computing again instead of keeping, sharing memory."""

from twofold.tracebacks import guard_namespace as _guard_namespace
from twofold.utils import checkpoint, data, dlpack

__all__ = ["checkpoint", "data", "dlpack"]

_guard_namespace(globals())
