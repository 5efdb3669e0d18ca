"""One run of a function from the starts of its gradients, and gradients through it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from twofold import _core
from twofold.frontend.transforms import derivatives, start_of, zeros_of
from twofold.func._trees import detached, split_aux, tensor_leaves

Tensor = _core.Tensor


class _Depth(threading.local):
    def __init__(self) -> None:
        self.levels = 0


_depth = _Depth()


def is_active() -> bool:
    """Whether a function runs on copies of its inputs from which gradients begin, in this thread."""
    return _depth.levels > 0


class Tape:
    """A function's run on ``starts``: copies of the inputs from which gradients begin, each time anew.

    ``alive``: gradients reach more than the starts (an enclosing transform, or leaves that require grad), so
    that what is computed here is differentiable once more.
    """

    def __init__(
        self, name: str, inputs: Sequence[Tensor], call: Callable[[list[Tensor]], Any], has_aux: bool
    ) -> None:
        enabled = _core.grad_enabled()
        levels = _depth.levels
        with _core.GradientMode(True):
            try:
                _depth.levels = levels + 1
                self.starts = [start_of(value) for value in inputs]
                result, self._aux = split_aux(call(self.starts), has_aux, name)
            finally:
                _depth.levels = levels
        self.outputs, self.spec = tensor_leaves(result, name)
        tracked = tuple(output for output in self.outputs if output.requires_grad)
        wanted = enabled or _depth.levels > 0
        self.alive = wanted and bool(tracked) and _core.depends_outside(tracked, tuple(self.starts))

    @property
    def values(self) -> list[Tensor]:
        """The outputs, without the gradient that starts here."""
        return [self.without_start(output) for output in self.outputs]

    @property
    def aux(self) -> Any:
        """What the function returned beside its outputs."""
        return self._aux if self.alive else detached(self._aux)

    def without_start(self, value: Tensor) -> Tensor:
        """``value`` as those see it who know nothing of this tape."""
        return value if self.alive or not value.requires_grad else value.detach()

    def pull(self, seeds: Sequence[Tensor], only: int | None = None) -> list[Tensor]:
        """Cotangents of the inputs, of all outputs or one; zeros where no path leads."""
        create = self.alive or any(seed.requires_grad for seed in seeds)
        outputs = self.outputs if only is None else [self.outputs[only]]
        found = self._differentiate(outputs, seeds, self.starts, create)
        return [
            zeros_of(start) if one is None else one if create else self.without_start(one)
            for one, start in zip(found, self.starts, strict=True)
        ]

    def linearized(self) -> Linear:
        """The derivative along directions of the inputs, as the transpose of the pullback.

        The pullback is linear in the cotangents, so its own pullback is the derivative itself. Source: Townsend
        2017, A new trick for calculating Jacobian vector products.
        """
        return Linear(self)

    @staticmethod
    def _differentiate(
        outputs: Sequence[Tensor], seeds: Sequence[Tensor], targets: Sequence[Tensor], create: bool
    ) -> list[Tensor | None]:
        with _core.GradientMode(True):
            return derivatives(outputs, seeds, targets, create)


class Linear:
    """Directions of a tape's inputs to directions of its outputs."""

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        with _core.GradientMode(True):
            pairs = [(k, output) for k, output in enumerate(tape.outputs) if output.dtype.is_differentiable]
            self.positions = [k for k, _ in pairs]
            self.seeds = [start_of(zeros_of(output)) for _, output in pairs]
            self.found = derivatives([output for _, output in pairs], self.seeds, tape.starts, True)

    def push(self, tangents: Sequence[Tensor]) -> list[Tensor]:
        """Tangents of the outputs; zeros where no path leads."""
        return self._push(list(zip(self.found, tangents, strict=True)))

    def push_one(self, position: int, tangent: Tensor) -> list[Tensor]:
        """Tangents of the outputs where only one input moves."""
        return self._push([(self.found[position], tangent)])

    def _push(self, moving: Sequence[tuple[Tensor | None, Tensor]]) -> list[Tensor]:
        tape = self.tape
        pairs = [(one, tangent) for one, tangent in moving if one is not None]
        create = tape.alive or any(tangent.requires_grad for _, tangent in pairs)
        pushed = tape._differentiate(
            [one for one, _ in pairs], [tangent for _, tangent in pairs], self.seeds, create
        )
        result = [zeros_of(output) for output in tape.outputs]
        for position, one in zip(self.positions, pushed, strict=True):
            if one is not None:
                result[position] = one if create else tape.without_start(one)
        return result
