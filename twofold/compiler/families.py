"""Programs of bounded loops: graphs with buffers for a maximal number of iterations, one plan for all bounds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from twofold import _core
from twofold.compiler.compile import compile_graph
from twofold.compiler.lower.mode import finite_checks
from twofold.compiler.planned import planned
from twofold.compiler.portable_program import Label
from twofold.compiler.portable_template import ProgramTemplate
from twofold.compiler.templates import unless_unplannable, with_restarts
from twofold.ir.graph import Graph
from twofold.ir.recording import Facts, Recording
from twofold.ir.sizes import Symbol
from twofold.ops.control_flow.bounded_loops import Family
from twofold.ops.control_flow.programs import parameters_of

_MAX_PLANS = 4


class Programs:
    """The programs of a family of graphs, by its parameters and by the maximal number of iterations.

    The parameters are the sizes that its symbols depend on. From the second program on, plans are symbolic.
    """

    def __init__(self, family: Family) -> None:
        self._family = family
        _, self._sizes_at, self.parameters = parameters_of(family.resized)
        own = [one.recording.least(one.terms) if isinstance(one, Symbol) else None for one in self.parameters]
        self._lowest = [*own, 1]
        self._plans: list[Any] = []
        self._tried = 0 if self.parameters else -1

    def program(self, numbers: Sequence[int], room: int) -> Any:
        """The program for some parameters, with buffers for ``room`` iterations."""
        with finite_checks(False):  # results of a host function are checked as a whole
            return self._program(numbers, room)

    def _program(self, numbers: Sequence[int], room: int) -> Any:
        values = [*numbers, room]
        labels = _Labels(partial(self._graph, numbers, room))
        for plan in self._plans:
            made = plan.instantiate(values, labels)
            if made is not None:
                return made
        self._tried += 1
        if 0 < self._tried <= _MAX_PLANS:
            found: ProgramTemplate | None = unless_unplannable(
                lambda: with_restarts(partial(self._planned, values), Facts())
            )
            if found is not None:
                self._plans.insert(0, _core.ProgramTemplate(found.encoded))
                return self._plans[0].instantiate(values, labels)
        return compile_graph(self._graph(numbers, room)).program()

    def _graph(self, numbers: Sequence[Any], room: Any) -> Graph:
        return self._family.resized(self._sizes_at(numbers)).graph(room)

    def _planned(self, values: Sequence[int], facts: Facts) -> ProgramTemplate:
        recording = Recording(values, self._lowest, facts, strict=True)
        *numbers, room = recording.inputs
        return planned(recording, partial(compile_graph, self._graph(numbers, room)))


class _Labels:
    """The labels of a program, which are made when one of its kernels reports an error."""

    def __init__(self, graph: Any) -> None:
        self._graph = graph

    def __getitem__(self, number: int) -> Label:
        return compile_graph(self._graph()).labels[number]
