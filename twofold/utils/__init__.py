"""Helpers around programs: data sets and their loading."""

from twofold.utils import data

__all__ = ["data"]
