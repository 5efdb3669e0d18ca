"""How derivatives are declared: through all reads of a variable, and not through what the user stops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold import _core
from twofold.ir.sizes import current_sizes
from twofold.ops.base import apply
from twofold.static.functions.bodies import ARGUMENT, above, sources_of
from twofold.static.functions.lowering import Flow
from twofold.static.graph.graph import Operation
from twofold.static.graph.inference import Source, Unforeseen


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

    def compute(self, lowerer: Any, operation: Operation) -> list[Any]:
        if lowerer.depth and current_sizes() is not None:
            raise Unforeseen  # a body over symbols is closed at once, and calls over these have no gradients
        sources = operation.sources
        targets = sources[self.roots : self.roots + self.targets]
        others = sources[self.roots + self.targets :][: sum(self.weighted)]
        weights = iter([lowerer.read(operation, source) for source in others])
        seeds = [next(weights) if weighted else None for weighted in self.weighted]
        with lowerer.apart():
            self._cut(lowerer)
            ys = [lowerer.symbolic(lowerer.read(operation, source)) for source in sources[: self.roots]]
            xs = [lowerer.reads_of(source) for source in targets]
        return self._differentiated(ys, seeds, xs)

    def _cut(self, lowerer: Any) -> None:
        """Compute the operations between again, on constant values of what derivatives stop at."""
        for source in self.stops:
            _stop(lowerer, source)
        for operation in self.between:
            if lowerer.is_computed(operation) and not operation.updates and operation.python is None:
                for source in self.stops:
                    if source[0] is operation:
                        lowerer.inner.pop(source, None)
                lowerer.inner[operation] = lowerer.outputs_of(operation)
                for source in self.stops:
                    if source[0] is operation:
                        _stop(lowerer, source)

    def _differentiated(self, ys: Sequence[Any], seeds: Sequence[Any], xs: Sequence[list[Any]]) -> list[Any]:
        total: list[Any] = [None] * len(xs)
        for y, seed, reached in zip(ys, seeds, self.paths):
            positions = [k for k in reached for _ in xs[k]]
            if positions:
                parts = _core.gradients(y, seed, tuple(x for k in reached for x in xs[k]))
                for k, part in zip(positions, parts):
                    total[k] = part if total[k] is None else apply("add", total[k], part)
        return total


def _stop(lowerer: Any, source: Source) -> None:
    if lowerer.is_computed(source[0]):
        value = lowerer.symbolic(lowerer.value_of(source))
        lowerer.inner[source] = apply("stop_gradient", value)
