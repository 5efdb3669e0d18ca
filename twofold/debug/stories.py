"""``story()``: a run step by step, each operation with its values, forward and then backward; for teaching."""

from __future__ import annotations

from html import escape
from importlib import import_module
from typing import Any

from twofold.debug.draw import recorded, session_of
from twofold.debug.picture import Datum, Recorded, Step, View
from twofold.errors import ArgumentError
from twofold.runtime.tracing import here


class Story:
    """The steps of a run in order; prints as text."""

    def __init__(self, title: str, view: View) -> None:
        self.title = title
        self.view = view

    def __str__(self) -> str:
        lines, backward, source = [self.title], None, ""
        for step in self.view.steps:
            if step.backward is not backward:
                backward = step.backward
                lines += ["", "backward" if backward else "forward"]
                source = ""
            where = f"{step.lines[0] if step.lines else 'an unknown line'}: {step.source}"
            if where != source:
                source = where
                lines.append(f"  {where}")
            lines.append(f"    {self._name(step.outputs[0])} = {self._called(step)}")
            made = self.view.data[step.outputs[0]]
            lines.append(f"        {made.type} {made.shown}{'   NOT FINITE' if made.bad else ''}")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def _name(self, number: int) -> str:
        datum: Datum = self.view.data[number]
        return datum.name or (f"v{datum.producer + 1}" if datum.producer >= 0 else datum.kind)

    def _called(self, step: Step) -> str:
        gradient = "gradient of " if step.is_gradient else ""
        return f"{gradient}{step.name}({', '.join(self._name(number) for number in step.inputs)})"


def story(thing: Any, *inputs: Any, backward: bool = False) -> Story:
    """The run of a tensor's trace, a module or a function, one operation after the other, with all values.

    Args:
        thing: A tensor or list of tensors, a module or function, a session, for its last run, or a ``debug.record``
            block.
        inputs: What a module or function is called with.
        backward: Whether to go on to the gradients of the sum of the result.

    Raises ArgumentError for what nothing stands above.

    >>> import twofold as torch
    >>> told = str(torch.debug.story(lambda x: (x * 3.0).sum(), torch.tensor([1.0, 2.0])))
    >>> print("\\n".join(told.splitlines()[-4:]))
        v1 = multiply(input 0, 3.0)
            float32[2] [3., 6.], from 3 to 6
        output = sum(v1)
            float32[] [9.], from 9 to 9
    """
    if (session := session_of(thing)) is not None:
        title, found = "session", _of_session(session, inputs, backward)
    else:
        title, found, _ = recorded(thing, inputs, backward, "story")
    found.compute()
    return Story(title, found.view)


def _of_session(session: Any, inputs: tuple[Any, ...], backward: bool) -> Recorded:
    """What a session computed last."""
    if backward:
        raise ArgumentError(
            f"story: backward of a session, at {here()}", "Fetch what tf.gradients or an optimizer declares."
        )
    found = Recorded([], {})
    for closed, given, names in import_module("twofold.debug.planned_runs").last_run(
        session, inputs, "story"
    ):
        found.names.update(names)
        leaves = [given[leaf] if isinstance(leaf, int) else leaf[0] for leaf in closed.leaves]
        found.add(closed.describe(), closed.provenance, leaves, [])
    found.begin_backward()
    return found
