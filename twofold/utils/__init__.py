"""Helpers around programs: data sets and their loading, and computing again instead of keeping."""

from twofold.utils import checkpoint, data

__all__ = ["checkpoint", "data"]
