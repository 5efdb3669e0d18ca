"""Helpers around programs: data sets and their loading, computing again instead of keeping, sharing memory."""

from twofold.utils import checkpoint, data, dlpack

__all__ = ["checkpoint", "data", "dlpack"]
