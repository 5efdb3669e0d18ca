"""Plans: what a session keeps about one kind of run, so that the next one is a single call into the core."""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Sequence
from importlib import import_module
from math import prod
from typing import Any

from twofold import _core
from twofold.dtypes import int64, string
from twofold.errors import AnomalyError, as_invalid
from twofold.ir.types import TensorType, tensor_type
from twofold.static.graph.graph import Graph, Operation
from twofold.static.graph.inference import Source
from twofold.static.graph.string_table import decode
from twofold.static.session.run_arguments import check_feed
from twofold.static.session.subgraph import NUMBER, Subgraph

Tensor = _core.Tensor
CHECK_NUMERICS = "CheckNumerics"
"""Type of the operations whose runs look for the first value that is not finite."""


class Executable:
    """What a request needs, made ready: ``fetch(feeds, arrays)`` runs it on feeds and the variables in ``reads``.

    ``kept`` are results beside those of the request. Running it on values of types not met before raises Needed for
    what must be computed first.
    """

    def __init__(self, graph: Graph, subgraph: Subgraph, kept: Sequence[Source]) -> None:
        self.graph, self.subgraph, self._kept = graph, subgraph, kept
        self.is_random, self.numbers = subgraph.is_random, subgraph.numbers
        self.reads, self.states = tuple(subgraph.reads), tuple(subgraph.states)
        self.written, self.observers = subgraph.written, subgraph.observers
        seen = [source for operation in self.observers for source in operation.sources]
        shown = [*subgraph.request.fetches, *kept, *seen]
        self.arrays = len(shown)
        self._inputs = self._declared_inputs()
        self.function = _core.function(
            tuple([_core.placeholder(type) for _, type, _ in self._inputs]), (), False, self._declared
        )
        self.fetch = self.function.fetch
        self.strings = [
            k for k, (owner, index) in enumerate(shown) if owner.outputs[index].type_.dtype is string
        ]
        if self.strings:
            self.fetch = self._fetch_strings
        self.checks_numerics = any(operation.type == CHECK_NUMERICS for operation in self.observers)
        if self.checks_numerics:
            self.fetch = functools.partial(_fetch_finite, self.fetch)

    def _fetch_strings(self, feeds: Sequence[Any], arrays: int) -> list[Any]:
        """``fetch`` where some of the arrays are of strings."""
        found = list(self.function.fetch(tuple(feeds), arrays))
        for k in self.strings:
            found[k] = decode(found[k])
        return found

    @property
    def needs_nothing(self) -> bool:
        """Whether a run is no more than feeds in and arrays out."""
        return not (
            self.reads or self.states or self.numbers or self.written or self.observers or self.is_random
        )

    def _declared_inputs(self) -> list[tuple[Any, TensorType, Any]]:
        """What the inputs are values of, with the types and the lines that declare them."""
        position = self.subgraph.position
        lines = [(source, source[0].outputs[source[1]]) for source in position.feeds]
        found: list[tuple[Any, TensorType, Any]] = [(source, line.type_, line) for source, line in lines]
        found += [
            ((source, shape, k), NUMBER, 0)
            for source, shape in position.sizes.items()
            for k in range(prod(shape))
        ]
        found += [(variable, variable.type_, 0) for variable in self.reads]
        found += [(("state", variable), variable.type_, 0) for variable in self.states]
        found += [(operation, operation.outputs[0].type_, 0) for operation in self.numbers]
        return found + [("run", tensor_type(int64), 0)] * self.is_random

    def _declared(self, types: tuple[TensorType, ...], may_be_open: bool) -> tuple[Any, ...]:
        """The graph for inputs of ``types``, or for all sizes; raises GraphError for a feed that does not fit."""
        for (owner, index), type in zip(self.subgraph.position.feeds, types):
            check_feed(owner.outputs[index], type)
        declared = import_module("twofold.static.session.lowered_graphs")
        inputs = declared.inputs_of(self._inputs, types)
        self.graph.declared = graphs = self.graph.declared or declared.DeclaredGraphs()
        found = graphs.for_all_sizes(self.subgraph, self._kept, inputs) if may_be_open else None
        return found or graphs.for_one_size(self.subgraph, self._kept, inputs)

    def calls(
        self,
        types: Sequence[TensorType],
        differentiated: bool = False,
        values: dict[Operation, Any] | None = None,
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The graph for inputs of ``types`` on its own; with ``differentiated`` also what derivatives are taken of.

        ``values`` is filled with what the operations give.
        """
        declared = import_module("twofold.static.session.lowered_graphs")
        linked = declared.DeclaredGraph(None).link(declared.inputs_of(self._inputs, types))
        return linked.inputs, linked.outputs(self.subgraph, self._kept, differentiated, values)

    def input_types(
        self, fed: Sequence[TensorType], type_of: Callable[[Any], TensorType]
    ) -> tuple[TensorType, ...]:
        """The types of all inputs, before any are there: of what is fed, and of variables."""
        variables = [type_of(variable) for variable in (*self.reads, *self.states)]
        numbers = [operation.outputs[0].type_ for operation in self.numbers]
        return (*fed, *variables, *numbers, *[tensor_type(int64)] * self.is_random)

    def observe(self, arrays: Sequence[Any], done: Container[Operation] = ()) -> None:
        """Give the observers what they asked to see, except those ``done`` before; they may raise."""
        position = len(self.subgraph.request.fetches) + len(self._kept)
        for operation in self.observers:
            assert operation.observe is not None
            if operation not in done:
                operation.observe(*arrays[position : position + len(operation.sources)])
            position += len(operation.sources)


def _fetch_finite(fetch: Any, feeds: Sequence[Any], arrays: int) -> list[Any]:
    """What ``fetch`` returns; raises at what first made a value of it that is not finite."""
    before = _core.set_anomaly("everywhere")
    try:
        return list(fetch(feeds, arrays))
    except AnomalyError as error:
        raise as_invalid(error) from None
    finally:
        _core.set_anomaly(before)
