"""``explain()``: which kernels compute a program, what is in one and why not more, and where the memory goes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from importlib import import_module
from typing import Any, NamedTuple

from twofold import _core
from twofold.compiler.schedule.fused_expressions import FusedExpression
from twofold.compiler.schedule.fusion_groups import (
    MOST_BUFFERS,
    MOST_INSTRUCTIONS,
    FusionGroup,
    Grouping,
    refine,
)
from twofold.compiler.schedule.schedule import Schedule
from twofold.debug.draw import recorded
from twofold.debug.machine import machine
from twofold.debug.picture import Recorded, Step
from twofold.errors import ArgumentError
from twofold.ir.graph import called
from twofold.ir.text import format_calls
from twofold.runtime.attribution import KernelShare, ProgramBody, bodies_of, kernel_shares, outlined_graph
from twofold.runtime.tracing import here


class Explained(NamedTuple):
    """One kernel: what it computes, for which lines, what it costs at least, and why its readers are others."""

    number: int
    name: str
    operations: tuple[str, ...]
    lines: tuple[str, ...]
    nbytes: int
    flops: int
    floor: float
    apart: tuple[str, ...]


class Body(NamedTuple):
    """A part of the program that is compiled once: how often it runs, its kernels, and the memory by line in bytes."""

    calls: int
    kernels: tuple[Explained, ...]
    memory: dict[str, int]
    arena: int


class Explanation:
    """The bodies of a program, and the texts of graphs of their calls, by number; prints as text."""

    def __init__(self, title: str, bodies: Sequence[Body], calls: Sequence[str]) -> None:
        self.title = title
        self.bodies = tuple(bodies)
        self.calls = tuple(calls)

    def __str__(self) -> str:
        count = sum(body.calls * len(body.kernels) for body in self.bodies)
        lines = [f"{self.title}: {count} kernel{'s' * (count != 1)} a run"]
        lines += self.calls
        for number, body in enumerate(self.bodies):
            if len(self.bodies) > 1 or body.calls > 1:
                lines.append(f"\nbody {number}, which runs {body.calls} time{'s' * (body.calls != 1)}")
            for kernel in body.kernels:
                lines += _written(kernel)
            lines.append(f"memory between kernels: {body.arena:,} bytes")
            for line, nbytes in sorted(body.memory.items(), key=lambda item: -item[1]):
                lines.append(f"  {nbytes:>14,}  {line}")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def _written(kernel: Explained) -> Iterator[str]:
    names = ", ".join(kernel.operations) or "copies"
    yield f"kernel {kernel.number} ({kernel.name}): {names}"
    if kernel.lines:
        yield f"  lines: {', '.join(kernel.lines)}"
    yield f"  {kernel.nbytes:,} bytes, {kernel.flops:,} flops: {kernel.floor * 1e6:.2f} us at least"
    for reason in kernel.apart:
        yield f"  {reason}"


def explain(thing: Any, *inputs: Any, backward: bool = False) -> Explanation:
    """The kernels that a program is compiled to: what was fused, why not more, and memory by line.

    Nothing is compiled. What a function looks at or updates is computed, and no other result. What was compiled again,
    and why, is in ``profile().compiled`` and in the lines of ``TWOFOLD_LOG=compile``.

    Args:
        thing: A module or function; a tensor or list of tensors that was not observed; fetches of a session; a
            session, for its last run; or a ``debug.record`` block.
        inputs: What a module or function is called with; of fetches the feed_dict, if sizes of placeholders are open
            or the shape of something depends on the values of placeholders, which are computed then.
        backward: Whether to take the gradients of the sum of the result, too.

    Raises ArgumentError for what cannot be explained so.

    >>> import twofold as torch
    >>> found = torch.explain(lambda x: (x * 2.0).exp(), torch.ones(4))
    >>> [sorted(kernel.operations) for body in found.bodies for kernel in body.kernels]
    [['cast', 'exp', 'multiply']]
    """
    declared = None if callable(thing) else _declared(thing, inputs, backward)
    title, found = recorded(thing, inputs, backward, "explain")[:2] if declared is None else declared
    bodies: list[Body] = []
    calls, first = [], 0
    runs = Counter(_key(*trace) for trace in found.traces)
    for trace in found.traces:
        description = trace[0]
        steps = found.view.steps[first : first + len(description[1])]
        first += len(steps)
        times = runs.pop(_key(*trace), 0)  # a loop of the program may run one again and again
        if not times:
            continue
        parts = bodies_of(description)
        graph = outlined_graph(description)
        if graph is not None:
            numbers = {part.body: f"@{len(bodies) + k}" for k, part in enumerate(parts) if part.body}
            copies = [body for node in graph.nodes() if (body := called(node)) and body not in numbers]
            calls.append(format_calls(graph, numbers | dict.fromkeys(copies, "@copies")))
        bodies += [_body(part, steps, times) for part in parts]
    return Explanation(title, bodies, calls)


def _key(description: Any, lines: Sequence[tuple[int, int]], _: Any) -> Any:
    """What is equal for traces of the same calls at the same lines."""
    inputs, entries, outputs, *_ = description
    calls = [(id(op), attrs, tuple(refs), tuple(types)) for _, refs, op, attrs, _, types in entries]
    return tuple(inputs), tuple(calls), tuple(outputs), tuple(lines)


def _declared(thing: Any, inputs: Sequence[Any], backward: bool) -> tuple[str, Recorded] | None:
    """What to call fetches of a declared graph, and what a run of them computes; None for anything else."""
    planned = import_module("twofold.debug.planned_runs").planned_run(thing, inputs, "explain")
    if planned is None:
        return None
    if backward:
        raise ArgumentError(
            f"explain: backward of fetches, at {here()}", "Fetch what tf.gradients or an optimizer declares."
        )
    title, parts = planned
    found = Recorded([], {})
    for closed in parts:
        found.add(closed.describe(), closed.provenance, closed.leaves, [])
    return title, found


def _body(part: ProgramBody, steps: Sequence[Step], times: int) -> Body:
    schedule, origins = part.scheduled
    lines = {number: _line(steps[entry]) for number, entry in enumerate(part.entries)}
    on, kernels = machine(), []
    for number, share in enumerate(kernel_shares(schedule, origins)):
        own = tuple(dict.fromkeys(lines[entry] for entry, _ in share.shares if lines.get(entry)))
        floor = on.floor(share.flops, share.nbytes)
        apart = tuple(_reasons(schedule, number))
        kernels.append(_explained(number, share, own, floor, apart))
    memory: dict[str, int] = {}
    for (kind, node), nbytes in schedule.sizes.items():
        entries = sorted(origins.get(node, ())) if kind == "value" else []
        line = (lines.get(entries[0]) if entries else None) or "scratch memory"
        memory[line] = memory.get(line, 0) + nbytes
    uses = [[number for number, _ in _arena(schedule, k)] for k in range(len(schedule.instructions))]
    arena = _core.plan_arena(uses, list(schedule.sizes.values()), True)[1]
    return Body(part.calls * times, tuple(kernels), memory, arena)


def _explained(
    number: int, share: KernelShare, lines: tuple[str, ...], floor: float, apart: tuple[str, ...]
) -> Explained:
    names = tuple(dict.fromkeys(share.operations))
    return Explained(number, share.name, names, lines, share.nbytes, share.flops, floor, apart)


def _line(step: Step) -> str:
    backward = " (backward)" if step.backward else ""
    return step.lines[0] + backward if step.lines else ""


def _arena(schedule: Schedule, instruction: int) -> list[tuple[int, Any]]:
    """The numbers of the buffers of an instruction that lie in the arena."""
    numbers = {key: number for number, key in enumerate(schedule.sizes)}
    return [(numbers[key], key) for key in schedule.instructions[instruction].buffers if key in numbers]


def _reasons(schedule: Schedule, number: int) -> list[str]:
    """Why the kernels that read what this one makes are others."""
    grouping, found = schedule.grouping, []
    if schedule.instructions[number].name == "pack":  # of an operand of the product that comes next
        return []
    mine = {
        node.id: grouping.home[node.id]
        for node in schedule.instructions[number].nodes
        if node.id in grouping.home
    }
    for value, group in mine.items():
        for expression in schedule.analysis.users.get(value, ()):
            other = grouping.of_expression[expression.number]
            if other is not group:
                found.append(
                    f"{expression.root.op.name} is apart: {why_apart(grouping, group, other, expression, value)}"
                )
    return list(dict.fromkeys(found))


def why_apart(
    grouping: Grouping, group: FusionGroup, other: FusionGroup, expression: FusedExpression, value: int
) -> str:
    """Why ``expression``, which reads a value of ``group``, is in another kernel."""
    if not expression.is_loop:
        return (
            f"a {'product' if expression.kind == 'contraction' else expression.kind} has kernels of its own"
        )
    if group.kind not in ("loop", "contraction"):
        return "what it reads has a kernel of its own"
    if group.cost + expression.cost > MOST_INSTRUCTIONS:
        return f"more than {MOST_INSTRUCTIONS} instructions in one kernel"
    if group.buffers + expression.buffers > MOST_BUFFERS:
        return f"more than {MOST_BUFFERS} buffers in one kernel"
    if refine(group.sizes, expression.domain) is None:
        return f"it goes over {list(expression.domain)}, what it reads was made over {group.sizes}"
    if group.kind == "contraction" and expression.kind == "reduction":
        return "a reduction of a product waits for whole rows"
    if any(term.node.id == value and (term.offset or term.dynamic) for term in expression.loads()):
        return "it reads other elements than those that are being made"
    if other.level > group.level + 1:
        return "it waits for other kernels, too"
    return "it needs values that the loop has not made yet where it would read them"
