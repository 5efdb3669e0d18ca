"""The backward pass of loops and branches, call by call: what one step of it in the program computes as a whole."""

from __future__ import annotations

from math import prod
from typing import Any

from twofold import _core
from twofold.debug.evaluation import computed
from twofold.debug.recording import Call, Part
from twofold.ir.op import REGISTRY
from twofold.ops.control_flow.programs import LoopSpec
from twofold.transforms.derived import PULLBACK, Pullback, pullbacks_of

Tensor = _core.Tensor
_LAST_BIT = 63  # of a mask of operands, which stands for all behind it, too


def add_gradient(gradients: dict[int, Any], number: int, share: Any) -> None:
    """Add a contribution to the gradient of a value."""
    before = gradients.get(number)
    gradients[number] = share if before is None else computed(REGISTRY["add"], (), [before, share])


def pull(values: dict[int, Any], gradients: dict[int, Any], call: Call) -> None:
    """Add what a call passes on of its result's gradient to the gradients of its operands."""
    cotangent = gradients.get(call.result)
    if cotangent is None:
        return
    count, wanted = len(call.types), _wanted(call)
    found = pullbacks_of(call.op, call.attrs, call.types, wanted) if wanted else {}
    shared: dict[int, Any] = {}

    def value_of(slot: int) -> Any:
        if slot < 0:
            return cotangent if slot == -1 else values[call.result]
        return shared[slot] if slot >= count else values[call.operands[slot]]

    for position, one in found.items():  # what others read stands in front of them
        if isinstance(one, Pullback):
            share = computed(PULLBACK, one.attrs, [value_of(slot) for slot in one.slots], call.location)
            if position >= count:
                shared[position] = share
            else:
                add_gradient(gradients, call.operands[position], share)


def differentiated(part: Part) -> list[Call]:
    """The calls of a body that a gradient flows through, from the last to the first."""
    reached, found = set(part.results), []
    for call in reversed(part.calls):
        if call.result in reached and getattr(call.op, "differentiable", True) and _wanted(call):
            found.append(call)
            reached.update(call.operands[k] for k in _wanted(call))
    return found


def _wanted(call: Call) -> tuple[int, ...]:
    """The operands of a call to which a gradient flows."""
    return tuple(
        k
        for k, type in enumerate(call.types)
        if type.dtype.is_differentiable and not type.weak and call.mask >> min(k, _LAST_BIT) & 1
    )


class BackwardLoop:
    """One backward pass through a loop, iteration by iteration, or through the branch that was chosen."""

    def __init__(self, interpreter: Any, loop: Call, result: int) -> None:
        self.values, self.gradients, self.loop = interpreter.values, interpreter.gradients, loop
        self.spec = loop.content
        self.row: int | None = None
        """The row of the iteration that is gone through, or the number of the branch."""
        self.is_loop = isinstance(self.spec, LoopSpec)
        self._history: list[tuple[int, dict[int, Any]]] = []
        self._cotangents: dict[int, Any] = {}
        self._before = {number: self.gradients.get(number) for number in loop.operands}
        cotangent = self.gradients.get(result)
        if cotangent is not None:
            self._cotangents = _blocks(cotangent, loop.result_types)
            for row in interpreter.run_quietly(loop):
                numbers = interpreter.numbers_of(self._part(row))
                self._history.append((row, {one: self.values[one] for one in numbers}))

    def _part(self, row: int | None) -> Part:
        return self.loop.parts[0 if self.is_loop else row or 0]

    def go_back(self) -> bool:
        """Go to the iteration before; False where there is none, and the gradients around are as they were."""
        if self.row is not None:
            self._pass_on()
        if not self._history:
            for number, before in self._before.items():
                self.gradients.pop(number, None)
                if before is not None:
                    self.gradients[number] = before
            return False
        self.row, known = self._history.pop()
        self.values.update(known)
        for number in known:
            self.gradients.pop(number, None)
        for k, share in self._cotangents.items():
            if not self.is_loop or k < self.spec.carry:
                add_gradient(self.gradients, self._part(self.row).results[k], share)
            elif k < self.spec.carry + self.spec.ys:
                add_gradient(self.gradients, self._part(self.row).results[k], share[self.row])
        return True

    def _pass_on(self) -> None:
        """Hand the gradients of what the body was given to the iteration before, or to the program around."""
        part = self._part(self.row)
        carried = self.spec.carry if self.is_loop else 0
        fixed = carried + self.spec.xs if self.is_loop else 0
        first = self.spec.first if self.is_loop else 1
        for k, number in enumerate(part.inputs):
            share = self.gradients.get(number)
            if k < carried:
                self._cotangents.pop(k, None)
                if share is not None:
                    self._cotangents[k] = share
            elif k >= fixed and share is not None:
                add_gradient(self.gradients, self.loop.operands[first + k], share)


def _blocks(flat: Any, types: list[Any]) -> dict[int, Any]:
    """The parts of the gradient of all results of one dtype, by the number of the result."""
    positions = [k for k, type in enumerate(types) if type.dtype is flat.dtype]
    if len(positions) == 1:
        return {positions[0]: flat}
    found, start = {}, 0
    for k in positions:
        size = prod(types[k].shape)
        found[k] = computed(REGISTRY["result_block"], (start, types[k].shape), [flat])
        start += size
    return found
