"""Tools that look into programs: what a graph computes, line by line of the program that declared it."""

from twofold.lazy import attach as _attach

__getattr__, __dir__ = _attach(__name__)
