"""Declared graphs step as the programs that declare them do where each operation is computed at once."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from tests.debug import stepped_graphs
from tests.debug.step_recorder import compare_declared, programs_of

LINES = inspect.getsource(stepped_graphs).splitlines()
HEADERS = {
    k for k, line in enumerate(LINES, 1) if "tf.while_loop" in line or "_fn(" in line or "tf.scan" in line
}
HEADERS |= {k for k, line in enumerate(LINES, 1) if "if n == 0" in line}
"""With the line of a recursion that also runs in a call that computes nothing, of which the graph does not know."""


@pytest.mark.parametrize(
    "program",
    [one for one in programs_of(stepped_graphs) if one.__name__ != "_dense"],
    ids=lambda one: one.__name__,
)
def test_a_declared_graph_steps_as_it_is_computed_at_once(program: Any) -> None:
    compare_declared(stepped_graphs, program, HEADERS)
