"""Writes functions that do again what the functions of a program did as they declared a graph."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from twofold.debug.declared_lines import Bodies
from twofold.debug.line_trace import Step
from twofold.debug.names import Held
from twofold.debug.recording import Call
from twofold.debug.replay import ReplayWriter
from twofold.ops.control_flow.programs import LoopSpec


class DeclaredWriter(ReplayWriter):
    """Writes one stretch of a function; what a run has not computed is not shown."""

    def variables(self, names: dict[str, Held]) -> dict[str, Held]:
        return {name: held for name, held in names.items() if self.frames.is_there(held)}

    def kind(self, one: Any) -> str:
        is_backward = isinstance(one, Call) and one.forward is not None
        return "backward" if is_backward else "alone"

    def one(self, one: Any, step: Step, kind: str) -> None:
        if isinstance(one, Bodies):
            self._bodies(one, step)
        else:
            super().one(one, step, kind)

    def _bodies(self, one: Bodies, step: Step) -> None:
        """A loop as a loop, a branch as a branch."""
        for number in range(len(one.call.parts)):
            self.frames.note_done("chosen", (one.call, number))
        if not one.bodies:
            self.put(ast.Expr(self.do("quietly", one.call)))
            return
        bodies = [self._body(items, step) for items in one.bodies]
        if isinstance(one.call.content, LoopSpec):
            self.put(ast.While(self.do("more", one.call), bodies[0], []))
            return
        rest: list[ast.stmt] = []
        for number in reversed(range(len(bodies))):
            rest = [self.at(ast.If(self.do("chosen", (one.call, number)), bodies[number], rest))]
        self.body += rest

    def _body(self, items: Sequence[Any], step: Step) -> list[ast.stmt]:
        outside, self.body = self.body, []
        for item in items:
            self.one(item, step, "call")
        made, self.body = self.body, outside
        return made or [self.at(ast.Pass())]
