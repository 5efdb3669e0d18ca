"""Where in the program something was called: instructions of its functions."""

from __future__ import annotations

from types import CodeType
from typing import NamedTuple

from twofold import _core


class Site(NamedTuple):
    """An instruction of the program: a code object and the offset in it (before Python 3.11 the line)."""

    code: CodeType
    offset: int


Chain = tuple[Site, ...]
"""The call in each function of the program that was running, outermost first."""


def chain_of(location: int) -> Chain:
    """The chain that a location stands for."""
    return tuple(Site(*site) for site in reversed(_core.location_codes(location)))
