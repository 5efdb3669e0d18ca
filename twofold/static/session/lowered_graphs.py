"""Declared graphs: what the operations of a graph are to the core, each declared once for all sets of fetches.

The body of an operation runs on declared values and adds its calls to the core's graph, as the define-by-run twin of
the program would. Sizes that are not known are symbols then: what a body computes from them is an expression of those
that are fed, and what it decides is a guard, see ``csrc/open_graph.h``. So a graph is declared once for all sizes that
meet its guards; what a set of fetches takes of it is a function of the core.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from twofold import _core
from twofold.config import config
from twofold.ir.attribute_numbers import numbers_in, with_examples
from twofold.ir.named_sizes import NamedSizes, NamedType
from twofold.ir.shape_inference import UNKNOWN_RANK
from twofold.ir.size_program import SizeProgram
from twofold.ir.sizes import declared_over, is_symbolic
from twofold.ir.types import TensorType
from twofold.static.graph.graph import Operation, Tensor
from twofold.static.graph.inference import Source
from twofold.static.session.lowering import Lowerer, Result
from twofold.static.session.subgraph import Needed, Subgraph

_MOST_OPEN, _MOST_OF_ONE_SIZE = 16, 2  # declared graphs that a graph keeps
_lock = threading.RLock()


Axis = tuple[Any, int]
"""An axis of an input: what this is a value of, and the number of the axis."""


class Input(NamedTuple):
    """An input of a function: what it is a value of, the type that is given, and which of its sizes are open."""

    key: Any
    type: TensorType
    varies: tuple[bool, ...]
    line: Any  # the tensor that declares it, or 0


def inputs_of(declared: Sequence[tuple[Any, TensorType, Any]], types: Sequence[TensorType]) -> list[Input]:
    """Inputs of some types, given what they are values of, with the types and lines that declare them."""
    return [Input(key, type, _open_sizes(own, type), line) for (key, own, line), type in zip(declared, types)]


def _open_sizes(declared: TensorType, type: TensorType) -> tuple[bool, ...]:
    """Which sizes of a type its declaration leaves open; a size of 1, which broadcasts, is one of its own."""
    known = declared.shape if declared.shape != UNKNOWN_RANK else (-1,) * len(type.shape)
    return tuple([own < 0 and size != 1 for own, size in zip(known, type.shape)])


class DeclaredGraph:
    """One declaration of operations: for the sizes that meet the guards of ``sizes``, or for those of its inputs.

    ``apart`` are the sizes that are symbols of their own, even where they are equal to others.
    """

    def __init__(self, sizes: NamedSizes | None, apart: Collection[Axis] = ()) -> None:
        self.sizes = sizes
        self._apart = apart
        self.results: dict[Operation, list[Result]] = {}
        self.numbers: dict[Any, Any] = {}
        """Arrays of numbers that inputs have as sizes, by what they are the numbers of."""
        self._inputs: dict[Any, tuple[Tensor, NamedType]] = {}

    def link(self, inputs: Sequence[Input]) -> Linked | None:
        """These inputs, those that are new added; None where types or sizes do not fit."""
        now: dict[int, int] = {}
        for key, type, varies, _ in inputs:
            known = self._inputs.get(key)
            found = {} if known is None else known[1].sizes_in(type, self._open(varies))
            if found is None:
                return None
            now.update(found)
        if self.sizes is not None and not self.sizes.holds(now):
            return None
        linked = [self._input(one, now) for one in inputs]
        positions = [k for _, type in linked for k in type.positions if k is not None]
        tensors = tuple([tensor for tensor, _ in linked])
        return Linked(
            self, tensors, {one.key: tensor for one, tensor in zip(inputs, tensors)}, positions, now
        )

    def _open(self, varies: tuple[bool, ...]) -> tuple[bool, ...]:
        return varies if self.sizes is not None else (False,) * len(varies)

    def _input(self, given: Input, now: dict[int, int]) -> tuple[Tensor, NamedType]:
        found = self._inputs.get(given.key)
        if found is None:
            type = given.type
            if self.sizes is None:
                named = NamedType(type, type, (None,) * len(type.shape))
            else:
                apart = [axis for axis in range(len(type.shape)) if (given.key, axis) in self._apart]
                named = self.sizes.add_input(type, given.varies, now, apart)
            before = _core.declare_at(given.line)
            try:
                found = self._inputs[given.key] = _core.placeholder(named.named), named
            finally:
                _core.declare_at(before)
        return found


class Linked(NamedTuple):
    """A declared graph with inputs, also by key, the positions of their open sizes in order, and what these are now."""

    graph: DeclaredGraph
    inputs: tuple[Tensor, ...]
    given: dict[Any, Tensor]
    positions: list[int]
    now: dict[int, int]

    def outputs(
        self,
        subgraph: Subgraph,
        kept: Sequence[Source],
        differentiated: bool = False,
        values: dict[Operation, Any] | None = None,
    ) -> tuple[Tensor, ...]:
        """What a set of fetches needs, declared as far as it is not yet.

        With ``differentiated`` also what derivatives are taken of. ``values`` is filled with what the operations give.
        """
        with declared_over(self.graph.sizes):
            lowerer = Lowerer(self.graph, subgraph, kept, self.given)
            found = lowerer.run(differentiated)
        if values is not None:
            values.update(lowerer.values)
        return found

    def encoded(self, outputs: tuple[Tensor, ...]) -> tuple[Any, ...]:
        """What the core takes of the graph above ``outputs`` for all sizes that meet the guards."""
        sizes = self.graph.sizes
        assert sizes is not None
        registers = sizes.registers(self.positions)
        parts: list[tuple[Any, Any, int]] = []
        numbers: list[Any] = []
        for _, tensor, _, attrs, *_ in _core.calls_above(outputs, False):
            if attrs is not None and is_symbolic(attrs):
                own = numbers_in(attrs)
                parts.append((tensor, with_examples(attrs), len(own)))
                numbers += own
        for tensor, symbol in sizes.operands:
            if sizes.follows(symbol, registers):
                parts.append((tensor, None, 1))
                numbers.append(symbol)
        guards = sizes.guards_over(registers)
        program = SizeProgram(sizes, numbers, guards, registers, len(self.positions))
        return self.inputs, outputs, program.encoded(), parts


class DeclaredGraphs:
    """The declared graphs of a graph: for classes of sizes, and for single ones; those used last come first."""

    def __init__(self) -> None:
        self._open: list[DeclaredGraph] = []
        self._of_one_size: list[DeclaredGraph] = []
        self._last: dict[Axis, int] = {}  # the open sizes of the last graphs that were declared for all sizes
        # those that were equal to another one in one declaration and not in the next
        self._apart: set[Axis] = set()

    def for_all_sizes(
        self, subgraph: Subgraph, kept: Sequence[Source], inputs: Sequence[Input]
    ) -> tuple[Any, ...] | None:
        """What the core takes of a set of fetches for all sizes that meet some guards, which those of inputs do.

        None where no size is open, and where a body needs the numbers in a way that symbols do not offer.
        """
        if not any(any(one.varies) for one in inputs):
            return None
        with _lock:
            fitting = next(filter(None, (graph.link(inputs) for graph in self._open)), None)
            found = None if fitting is None else self._tried(fitting, subgraph, kept)
            if found is None:
                self._set_apart(inputs)
                found = self._tried(DeclaredGraph(NamedSizes(), self._apart).link(inputs), subgraph, kept)
            return found

    def _set_apart(self, inputs: Sequence[Input]) -> None:
        """Note the sizes that are equal by chance: to others now, but not before, or before, but not now."""
        now = {
            (one.key, axis): size
            for one in inputs
            for axis, (size, varies) in enumerate(zip(one.type.shape, one.varies))
            if varies
        }
        before = {axis: self._last[axis] for axis in now if axis in self._last}
        for one, other in ((before, now), (now, before)):
            alike: dict[int, list[Axis]] = {}
            for axis in before:
                alike.setdefault(one[axis], []).append(axis)
            for axes in alike.values():
                if len({other[axis] for axis in axes}) > 1:
                    self._apart.update(axes)
        self._last.update(now)

    def _tried(
        self, linked: Linked | None, subgraph: Subgraph, kept: Sequence[Source]
    ) -> tuple[Any, ...] | None:
        """What the core takes of a declared graph; None where it cannot be declared for the sizes at hand."""
        assert linked is not None and linked.graph.sizes is not None
        try:
            outputs = linked.outputs(subgraph, kept)
        except (Needed, MemoryError):
            raise
        except Exception as error:
            if "templates" in config.log:
                log = import_module("twofold.compiler.log").log
                log("templates", f"no graph for all sizes: {error!r}")
            return None
        if not linked.graph.sizes.holds(linked.now):
            return None
        _use(self._open, linked.graph, _MOST_OPEN)
        return linked.encoded(outputs)

    def for_one_size(
        self, subgraph: Subgraph, kept: Sequence[Source], inputs: Sequence[Input]
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The inputs and outputs of a set of fetches for the sizes of ``inputs`` alone."""
        with _lock:
            fitting = next(filter(None, (graph.link(inputs) for graph in self._of_one_size)), None)
            linked = fitting or DeclaredGraph(None).link(inputs)
            assert linked is not None
            _use(self._of_one_size, linked.graph, _MOST_OF_ONE_SIZE)
            return linked.inputs, linked.outputs(subgraph, kept)


def _use(graphs: list[DeclaredGraph], graph: DeclaredGraph, most: int) -> None:
    """Put a graph before all others, of which at most so many are kept."""
    graphs[:] = [graph, *[other for other in graphs if other is not graph]][:most]
