"""Tools that look into programs: what a graph computes, line by line of the program that declared it."""

from typing import TYPE_CHECKING

from twofold.lazy import attach as _attach
from twofold.tracebacks import prepared as _prepared

if TYPE_CHECKING:
    from twofold.debug.declarations import declaring
    from twofold.debug.stepping import run
    from twofold.debug.stops import breakpoint
    from twofold.debug.stories import Story, story
    from twofold.debug.values import record, value
    from twofold.debug.verification import verify

del TYPE_CHECKING

__getattr__, __dir__ = _attach(__name__, _prepared)
