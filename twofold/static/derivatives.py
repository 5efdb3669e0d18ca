"""How a replay computes derivatives: through all reads of a variable, and not through what the user stops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold import _core
from twofold.ops.base import apply
from twofold.static.bodies import ARGUMENT, above, sources_of
from twofold.static.flows import Flow
from twofold.static.graph import Operation
from twofold.static.values import Source, read_of


def operations_between(roots: Sequence[Source], stops: set[Source]) -> list[Operation]:
    """The operations that ``roots`` depend on and that themselves depend on one of ``stops``, in order."""
    found: set[Operation] = set()
    for operation in sorted(above(owner for owner, _ in roots), key=lambda operation: operation.number):
        if any(source in stops or source[0] in found for source in sources_of(operation)):
            found.add(operation)
    return sorted(found, key=lambda operation: operation.number)


def rules_above(roots: Sequence[Source]) -> list[Operation]:
    """The operations with gradients of the program's that ``roots`` depend on, also in bodies of loops and choices."""
    found = above([owner for owner, _ in roots], inside=True)
    return [operation for operation in found if operation.gradient is not None]


def depends_on_argument(operation: Operation) -> bool:
    """Whether an operation has a value only inside the body of a loop."""
    return any(found.type == ARGUMENT for found in above([operation]))


class Derivative(Flow):
    """The inputs are ``roots``, ``targets`` and weights of the roots (not for all); see ``gradients``.

    ``paths`` says for each root which targets it reaches, ``weighted`` which roots have weights. ``rules`` are the
    operations whose gradients are the program's.
    """

    def __init__(
        self,
        roots: int,
        targets: int,
        weighted: Sequence[bool],
        paths: Any,
        stops: Sequence[Source],
        between: Any,
        rules: Sequence[Operation] = (),
    ) -> None:
        super().__init__([])
        self.rules = list(rules)
        self.roots, self.targets, self.weighted, self.paths = roots, targets, weighted, paths
        self.stops, self.between = list(stops), between

    def compute(self, replay: Any, operation: Operation) -> list[Any]:
        sources = operation.sources
        targets = sources[self.roots : self.roots + self.targets]
        others = sources[self.roots + self.targets :][: sum(self.weighted)]
        weights = iter([replay.read(operation, source) for source in others])
        seeds = [next(weights) if weighted else None for weighted in self.weighted]
        restore = _cut(replay, self.stops, self.between)
        ys = [replay.symbolic(replay.read(operation, source)) for source in sources[: self.roots]]
        xs = [_reads(replay, operation, source) for source in targets]
        restore()
        replay.differentiated += ys
        return self._differentiated(ys, seeds, xs)

    def _differentiated(self, ys: Sequence[Any], seeds: Sequence[Any], xs: Sequence[list[Any]]) -> list[Any]:
        total: list[Any] = [None] * len(xs)
        for y, seed, reached in zip(ys, seeds, self.paths):
            positions = [k for k in reached for _ in xs[k]]
            if positions:
                parts = _core.gradients(y, seed, tuple(x for k in reached for x in xs[k]))
                for k, part in zip(positions, parts):
                    total[k] = part if total[k] is None else apply("add", total[k], part)
        return total


def _reads(replay: Any, operation: Operation, source: Source) -> list[Any]:
    """The values of a target; of a variable all that were read."""
    variable = read_of(source)
    if variable is None or source in replay.fed:
        return [replay.read(operation, source)]
    return list({id(value): value for value in replay.reads_of(variable)}.values())


def _cut(replay: Any, stops: Sequence[Source], between: Sequence[Operation]) -> Any:
    """Compute the operations ``between`` again on constant values of ``stops``; returns what undoes it."""
    if not stops:
        return lambda: None
    values, fed, before, started = replay.values, replay.fed, replay.before, replay.started
    replay.values, replay.fed, replay.before, replay.started = (
        dict(values),
        dict(fed),
        dict(before),
        dict(started),
    )
    for source in stops:
        _stop(replay, source)
    for operation in between:
        if operation in values and not operation.updates and operation.python is None:
            replay.values[operation] = replay.outputs_of(operation)
            for source in stops:
                if source[0] is operation:
                    _stop(replay, source)

    def undo() -> None:
        replay.values, replay.fed, replay.before, replay.started = values, fed, before, started

    return undo


def _stop(replay: Any, source: Source) -> None:
    def stopped(value: Any) -> Any:
        return apply("stop_gradient", replay.symbolic(value))

    owner, index = source
    variable = read_of(source)
    if source in replay.fed:
        replay.fed[source] = stopped(replay.fed[source])
    elif owner in replay.values:
        made = list(replay.values[owner])
        made[index] = stopped(made[index])
        replay.values[owner] = made
        if variable is not None and variable in replay.before:
            replay.before[variable] = made[index]
