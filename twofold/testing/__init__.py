"""Comparisons for tests, with PyTorch's tolerances and messages."""

from twofold.testing.comparison import assert_allclose, assert_close

__all__ = ["assert_allclose", "assert_close"]
