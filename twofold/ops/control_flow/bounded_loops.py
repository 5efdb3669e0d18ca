"""``sized``: graphs that differ in how many iterations they have room for, of which a run takes the one it needs."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from twofold.ir.bind import input_node
from twofold.ir.graph import Graph, interned
from twofold.ir.interpret import evaluate
from twofold.ir.node import Attributes, Node
from twofold.ir.op import ControlFlowOp, register
from twofold.ir.text import format_graph
from twofold.ir.types import TensorType
from twofold.ops.control_flow.programs import (
    Backward,
    LoopSpec,
    TextualAttribute,
    is_differentiable,
    resized_type,
    run,
    zeros,
)


class Family(TextualAttribute):
    """Closed graphs with the same types, one for each number of iterations to reserve rows for."""

    __slots__ = ("_types",)

    def resized(self, size: Callable[[Any], Any]) -> Family:
        raise NotImplementedError

    def graph(self, limit: int) -> Graph:
        """The graph for at most ``limit`` iterations."""
        raise NotImplementedError

    def text(self) -> str:
        return format_graph(self.graph(1))


class LimitedLoop(Family):
    """The results of a loop without limit, given one."""

    __slots__ = ("spec",)

    def __init__(self, spec: LoopSpec, types: Sequence[TensorType]) -> None:
        self.spec = spec
        self._types = tuple(types)

    def parts(self) -> tuple[Any, ...]:
        return (self.spec, self._types)

    def resized(self, size: Callable[[Any], Any]) -> LimitedLoop:
        types = [resized_type(type, size) for type in self._types]
        made: LimitedLoop = interned(LimitedLoop(self.spec.resized(size), types))
        return made

    def graph(self, limit: int) -> Graph:
        inputs = [input_node(k, type) for k, type in enumerate(self._types)]
        return Graph(self._types, run("loop", (self.spec.with_body(self.spec.body, limit=limit),), inputs))


class Gradients(Family):
    """The cotangents of inputs ``wanted`` from those of the outputs ``given`` of another family."""

    __slots__ = ("_backward", "base", "given", "wanted")

    def __init__(self, base: Family, given: Sequence[int], wanted: Sequence[int], backward: Backward) -> None:
        self.base, self.given, self.wanted, self._backward = base, tuple(given), tuple(wanted), backward

    def parts(self) -> tuple[Any, ...]:
        return (self.base, self.given, self.wanted)

    def resized(self, size: Callable[[Any], Any]) -> Gradients:
        base = self.base.resized(size)
        made: Gradients = interned(Gradients(base, self.given, self.wanted, self._backward))
        return made

    def found(self, limit: int) -> tuple[list[TensorType], list[Node | None]]:
        """The input types of the graph, and the cotangents that exist."""
        base = self.base.graph(limit)
        inputs = [input_node(k, type) for k, type in enumerate(base.input_types)]
        outputs = [base.outputs[k] for k in self.given]
        seeds = [input_node(len(inputs) + position, node.type) for position, node in enumerate(outputs)]
        shares = self._backward(outputs, seeds, [inputs[k] for k in self.wanted], {})
        return [*base.input_types, *[seed.type for seed in seeds]], [share.total() for share in shares]

    def graph(self, limit: int) -> Graph:
        types, shares = self.found(limit)
        return Graph(
            types, [zeros(types[k]) if node is None else node for k, node in zip(self.wanted, shares)]
        )


def sized_gradient(
    family: Family,
    iterations: Node,
    values: Sequence[Node],
    cotangents: Sequence[Node | None],
    backward: Backward,
) -> list[Node | None]:
    given = [k for k, cotangent in enumerate(cotangents) if cotangent is not None]
    wanted = [k for k, value in enumerate(values) if is_differentiable(value.type)]
    _, found = Gradients(family, given, wanted, backward).found(1)
    reached = [k for k, share in zip(wanted, found) if share is not None]
    shares: list[Node | None] = [None] * len(values)
    if reached:
        made = interned(Gradients(family, given, reached, backward))
        seeds: list[Any] = [cotangents[k] for k in given]
        for k, result in zip(reached, run("sized", (made,), [iterations, *values, *seeds])):
            shares[k] = result
    return shares


class Sized(ControlFlowOp):
    """The outputs of the graph of a family that has room for a number of iterations (int64, the first input)."""

    name = "sized"
    runs_on_host = True

    def results(self, attrs: Attributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        return tuple(node.type for node in attrs[0].graph(1).outputs)

    def on_addresses(self, inputs: int, programs: Callable[[int], Any]) -> Callable[..., None]:
        ready: dict[int, Any] = {}

        def call(*addresses: int) -> None:
            room = reserved(ctypes.c_int64.from_address(addresses[0]).value)
            if room not in ready:
                ready[room] = programs(room)
            ready[room].run(list(addresses[1:inputs]), list(addresses[inputs:]))

        return call

    def results_vjp(
        self, node: Node, cotangents: Sequence[Node | None], backward: Backward
    ) -> Sequence[Node | None]:
        iterations, *values = node.inputs
        return [None, *sized_gradient(node.attrs[0], iterations, values, cotangents, backward)]

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        return evaluate(attrs[0].graph(reserved(int(arrays[0]))), arrays[1:])


def reserved(iterations: int) -> int:
    """Iterations to reserve rows for: few different numbers, so that few graphs are compiled, and not much too many.

    >>> [reserved(n) for n in (0, 8, 9, 13, 1000)]
    [8, 8, 12, 16, 1024]
    """
    room = 8
    while room < iterations:
        room = room * 3 // 2 if room & (room - 1) == 0 else room // 3 * 4
    return room


register(Sized())
