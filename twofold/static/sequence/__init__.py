"""Sequences of different lengths, with the names of CNTK's ``sequence`` functions: nothing is padded.

A placeholder with a sequence axis is fed a list with one array for each sequence, and what is computed from it on
this axis is fetched as such a list. For all other functions it is one tensor with the steps of all sequences one after
another on its first axis: ``x`` of ``shape=[features]`` is of shape (steps of all, features). So layers, losses and
look-ups in tables are computed for each step; a mean over the first axis is one over all steps. Here stand the
functions that tell the sequences apart. Two different sequence axes do not go together in one operation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from twofold.lazy import attach as _attach
from twofold.tracebacks import prepared as _prepared

if TYPE_CHECKING:
    from twofold.static.recurrent.sequences import Fold, Recurrence
    from twofold.static.sequence.axes import Axis
    from twofold.static.sequence.operations import *  # noqa: F403

__getattr__, __dir__ = _attach(__name__, _prepared)
