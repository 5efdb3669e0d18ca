"""Breakpoints of a program, in what runs at once and in declared graphs."""

from __future__ import annotations

import builtins
from threading import get_ident

from twofold import _core
from twofold.debug.stepping import untraced
from twofold.frontend.breakpoints import stopping
from twofold.static.eager.gradient_tape import executing_eagerly
from twofold.static.graph.context import note_declared
from twofold.static.graph.graph import get_default_graph


@untraced
def breakpoint() -> None:
    """Stop here: at once where tensors are computed, and in each run where a graph is declared.

    Where the default graph of ``twofold.static`` has operations, the breakpoint is declared in it. Each run of a
    session that computes something in the same call of the function stops at the line, in frames with the values of
    that run. Elsewhere this is Python's ``breakpoint()``. ``PYTHONBREAKPOINT`` means the same for both: a debugger,
    or 0 for none.

    >>> import twofold as torch
    >>> def f(x):
    ...     y = x * 2
    ...     if y.isnan().any():
    ...         torch.debug.breakpoint()
    ...     return y + 1
    >>> f(torch.tensor([1.0, 2.0]))
    tensor([3., 5.])
    """
    graph = get_default_graph()
    if executing_eagerly() or get_ident() in graph.calling or not graph.get_operations():
        if stopping():
            builtins.breakpoint()
    else:
        graph.stops.append(_core.capture_location())
        note_declared(graph.stops[-1])
