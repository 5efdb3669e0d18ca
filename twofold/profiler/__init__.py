"""Profiles with PyTorch's names, over ``twofold.profile``.

Differs from PyTorch: an operation is counted with its part of the kernels that computed it, whichever others these
computed too, and backward operations are called ``linear backward``. Operations run when their values are observed, so
a range of ``record_function`` holds the time of what ran inside it.
"""

from typing import TYPE_CHECKING

from twofold.lazy import attach as _attach
from twofold.tracebacks import prepared as _prepared

if TYPE_CHECKING:
    from twofold.profiler.averages import FunctionEvent, FunctionEventAvg
    from twofold.profiler.profiler import (
        ProfilerAction,
        ProfilerActivity,
        profile,
        record_function,
        schedule,
        supported_activities,
        tensorboard_trace_handler,
    )

del TYPE_CHECKING

__getattr__, __dir__ = _attach(__name__, _prepared)
