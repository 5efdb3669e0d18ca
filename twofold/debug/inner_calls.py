"""Which call inside of a loop, branch or gradient of the program goes wrong, and on what.

The bodies of a forward call run once more, call by call. A gradient is evaluated up to the primitive operation that
fails; its operands are those of the program's line as far as that only reshapes and casts them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from twofold import _core
from twofold.debug.bodies import Bodies
from twofold.debug.recording import Call, Recording
from twofold.errors import TwofoldError
from twofold.ir.graph import Graph, has_symbols
from twofold.ir.interpret import evaluate, narrow
from twofold.ir.node import Attributes, Node
from twofold.ir.op import Op
from twofold.ir.types import TensorType, type_from_code
from twofold.ir.views import input_below
from twofold.runtime.closure_conversion import BODY_CALLS, as_tensor
from twofold.transforms.derived import Pullback, pullback_nodes, pullbacks_of, stable_graph

_MOST_BYTES = 1 << 24  # of the operands of a gradient that is evaluated again


class InnerCall(NamedTuple):
    """A call of a body: what it computes, where, and of which values; None stands for one that is not known."""

    op: Any
    attrs: tuple[Any, ...]
    location: int
    operands: tuple[Any, ...]
    types: tuple[TensorType, ...]


class _Wrong(Exception):
    def __init__(self, call: Call, operands: Sequence[Any]) -> None:
        super().__init__(call.op.name)
        self.call = InnerCall(call.op, call.attrs, call.location, tuple(operands), call.types)


class _Watched(Bodies):
    """Stops at the first call that raises or gives what is wrong."""

    def __init__(self, recording: Recording, is_wrong: Callable[[Any], bool]) -> None:
        super().__init__(recording)
        self.is_wrong = is_wrong

    def _computed(self, call: Call) -> Any:
        try:
            value = super()._computed(call)
        except TwofoldError:
            raise _Wrong(call, [self.values[number] for number in call.operands]) from None
        if call.loop is None and self.is_wrong(value):
            raise _Wrong(call, [self.values[number] for number in call.operands])
        return value


def first_wrong(
    op: Any, attrs: tuple[Any, ...], operands: Sequence[Any], location: int, is_wrong: Callable[[Any], bool]
) -> InnerCall | None:
    """The first call that goes wrong inside of the loop or branch that was called at a location; None if none does."""
    recording = Recording()
    call = recording.add_call(op, attrs, [recording.give(value) for value in operands], location)
    if call.loop is None:
        return None
    try:
        for _ in _Watched(recording, is_wrong).run_quietly(call):
            pass
    except _Wrong as found:
        return found.call
    return None


def operands_inside(
    op: Op, attrs: Attributes, operands: Sequence[Any], failed: Op, location: int, line: int
) -> InnerCall | None:
    """The call at ``line`` in the bodies that the call at ``location`` runs, where its gradient fails at ``failed``.

    ``op`` with ``attrs`` on ``operands`` is what the backward pass computes. None where nothing is known of it.
    """
    found = _failing(op, attrs, operands)
    if found is None or found[0].op is not failed:
        return None
    for one in _calls_at(location, line):
        values = _operands_of(one, *found)
        if any(value is not None for value in values):
            return InnerCall(one.op, one.attrs, line, tuple(values), tuple(one.types))
    return None


def differentiated_at(
    steps: Sequence[tuple[Node, Sequence[Any], Any]], failed: Op, location: int, line: int
) -> InnerCall | None:
    """The call at ``line`` in the bodies that the call at ``location`` runs, of whose gradient ``failed`` is a part.

    Args:
        steps: What the backward pass evaluated, which computes the bodies anew: operations, operands and results.
        failed: The operation in it that failed.
        location: Of the call that was differentiated.
        line: The location of the line in its body.
    """
    for one in _calls_at(location, line):
        if any(node.op is failed for node in pullback_nodes(one.op, one.attrs, tuple(one.types))):
            return InnerCall(one.op, one.attrs, line, tuple(_operands_among(one, steps)), tuple(one.types))
    return None


def _operands_among(call: _CallAt, steps: Sequence[tuple[Node, Sequence[Any], Any]]) -> list[Any]:
    """The operands of a call where what reads them was evaluated once alone; None for the others."""
    found: list[Any] = [None] * len(call.types)
    for node in stable_graph(call.op, call.attrs, call.types).nodes():
        read = [value.type for value in node.inputs]
        alike = {
            tuple(map(id, arrays)): arrays
            for one, arrays, _ in steps
            if one.op is node.op and one.attrs == node.attrs and [value.type for value in one.inputs] == read
        }
        if len(alike) != 1:
            continue
        (arrays,) = alike.values()
        for value, array in zip(node.inputs, arrays):
            slot = _number_of_input(value)
            if slot is not None and found[slot] is None:
                found[slot] = call.operand(slot, array)
    return found


def _failing(op: Op, attrs: Attributes, operands: Sequence[Any]) -> tuple[Node, Sequence[Any]] | None:
    """The primitive operation of a call that raises, and the arrays of its operands."""
    given = [as_tensor(value) for value in operands]
    if sum(value.type_.nbytes for value in given) > _MOST_BYTES:
        return None
    arrays = [narrow(value.detach().numpy(), value.dtype) for value in given]
    try:
        evaluate(stable_graph(op, attrs, [value.type_ for value in given]), arrays)
    except Exception as error:
        return getattr(error, "evaluating", None)
    return None


class _CallAt(NamedTuple):
    """A call of a body, with the types of its operands and where these were made."""

    op: Op
    attrs: Attributes
    types: list[TensorType]
    made_at: list[int]

    def operand(self, slot: int, array: Any) -> Any:
        """An operand with the elements of an array."""
        type, before = self.types[slot], _core.declare_at(self.made_at[slot])
        try:
            return _core.from_array(array.astype(type.dtype.numpy).reshape(type.shape), False)
        finally:
            _core.declare_at(before)


def _calls_at(location: int, line: int) -> Iterator[_CallAt]:
    """What is called at ``line`` in the bodies that the call at ``location`` runs.

    Calls of a body over symbols are left out: what its sizes were in the call that fails is not known.
    """
    for parts in (BODY_CALLS.get(location) or {}).values():
        for part in parts:
            for entry, (own, _) in zip(part.entries, part.provenance):
                types = [type_from_code(*type) for type in entry[5]]
                sizes = [size for type in types for size in type.shape]
                if own == line and min(sizes, default=0) >= 0 and not has_symbols(entry[3]):
                    made_at = [part.provenance[ref][0] if ref >= 0 else location for ref in entry[1]]
                    yield _CallAt(entry[2], entry[3], types, made_at)
                elif own != location:
                    yield from _calls_at(own, line)


def _operands_of(call: _CallAt, failed: Node, arrays: Sequence[Any]) -> list[Any]:
    """The operands of a call of which the failed node is a part, or a part of its gradients; None for unknown ones."""
    found: list[Any] = [None] * len(call.types)
    for graph, slots in _graphs_of(call.op, call.attrs, call.types):
        for node in graph.nodes():
            if node.op is not failed.op or [value.type for value in node.inputs] != [
                value.type for value in failed.inputs
            ]:
                continue
            for value, array in zip(node.inputs, arrays):
                position = _number_of_input(value)
                slot = slots[position] if position is not None else -1
                if slot >= 0 and found[slot] is None:
                    found[slot] = call.operand(slot, array)
    return found


def _graphs_of(op: Op, attrs: Attributes, types: list[TensorType]) -> Iterator[tuple[Graph, Sequence[int]]]:
    """What a call computes and what its gradients do, with the operands that their inputs are: below 0 none."""
    yield stable_graph(op, attrs, types), range(len(types))
    wanted = tuple(k for k, type in enumerate(types) if type.dtype.is_differentiable)
    for one in pullbacks_of(op, attrs, tuple(types), wanted).values():
        if isinstance(one, Pullback):
            yield one.graph, [slot if slot < len(types) else -1 for slot in one.slots]


def _number_of_input(value: Node) -> int | None:
    """The number of the input that a node is in another shape or dtype, None for others and for Python numbers."""
    below = input_below(value)
    return None if below is None or below.type.weak else below.attrs[0]
