"""Plans: what a session keeps about one kind of run, so that the next one is a single call into the core."""

from __future__ import annotations

import functools
from collections.abc import Container, Sequence
from importlib import import_module
from math import prod
from typing import Any

import numpy

from twofold import _core
from twofold.dtypes import int64, string
from twofold.errors import AnomalyError, GraphError, as_invalid
from twofold.ir.types import TensorType, tensor_type
from twofold.runtime.failures import end_at, note
from twofold.runtime.tracing import here
from twofold.static.graph import Graph, Operation, describe
from twofold.static.shapes import fits, shape_text, sizes_of_shape
from twofold.static.string_table import decode, encode, holds_strings
from twofold.static.subgraph import NUMBER, Subgraph
from twofold.static.values import Source
from twofold.tracebacks import ends_in_callback

Tensor = _core.Tensor
CHECK_NUMERICS = "CheckNumerics"
"""Type of the operations whose runs look for the first value that is not finite."""


class Plan:
    """What a goal needs, made ready: ``fetch(feeds, arrays)`` runs it on feeds followed by the variables in ``reads``.

    ``kept`` are results beside those of the goal. Running it on values of types not met before raises Needed for what
    must be computed first.
    """

    def __init__(self, graph: Graph, subgraph: Subgraph, kept: Sequence[Source]) -> None:
        self._graph, self.subgraph, self._kept = graph, subgraph, kept
        self.is_random, self.numbers = subgraph.is_random, subgraph.numbers
        self.reads, self.states = tuple(subgraph.reads), tuple(subgraph.states)
        self.written, self.observers = subgraph.written, subgraph.observers
        seen = [source for operation in self.observers for source in operation.sources]
        shown = [*subgraph.goal.fetches, *kept, *seen]
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
        if any(operation.type == CHECK_NUMERICS for operation in self.observers):
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
        declared = import_module("twofold.static.declared")
        inputs = declared.inputs_of(self._inputs, types)
        self._graph.declared = graphs = self._graph.declared or declared.DeclaredGraphs()
        found = graphs.for_all_sizes(self.subgraph, self._kept, inputs) if may_be_open else None
        return found or graphs.for_one_size(self.subgraph, self._kept, inputs)

    def calls(
        self, types: Sequence[TensorType], differentiated: bool = False
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The graph for inputs of ``types`` on its own; with ``differentiated`` also what derivatives are taken of."""
        declared = import_module("twofold.static.declared")
        linked = declared.DeclaredGraph(None).link(declared.inputs_of(self._inputs, types))
        return linked.inputs, linked.outputs(self.subgraph, self._kept, differentiated)

    def compile(self, types: Sequence[TensorType], variables: Sequence[TensorType]) -> None:
        """Compile for feeds and variables of these types, before any are there."""
        inputs = [*types, *variables, *[operation.outputs[0].type_ for operation in self.numbers]]
        self.function.prepare((*inputs, *[tensor_type(int64)] * self.is_random))

    def observe(self, arrays: Sequence[Any], done: Container[Operation] = ()) -> None:
        """Give the observers what they asked to see, except those ``done`` before; they may raise."""
        position = len(self.subgraph.goal.fetches) + len(self._kept)
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


def check_feed(tensor: Tensor, type: TensorType) -> None:
    """Raise GraphError if a value of ``type`` cannot be fed for ``tensor``."""
    declared = tensor.type_
    if type.dtype is declared.dtype and fits(type.shape, declared.shape):
        return
    if tensor.op.python is not None:
        what = f"the function returned {type.dtype.name}{shape_text(type.shape)} for {describe(tensor)}"
        raise _wrong_result(tensor.op, what, "Return what is declared, or set another shape.")
    fix = (
        "Feed values of its dtype."
        if type.dtype is not declared.dtype
        else "Feed an array of its shape, or declare it with None where sizes vary."
    )
    raise GraphError(
        f"feed: a value {type.dtype.name}{shape_text(type.shape)} does not fit {describe(tensor)}, at {here()}",
        fix,
    )


def feed_type(tensor: Tensor, shape: Any) -> TensorType:
    """The type of a feed of a shape (None: as declared); raises GraphError if it does not fit or leaves sizes open."""
    declared = tensor.type_
    type = declared if shape is None else tensor_type(declared.dtype, sizes_of_shape(shape))
    if any(size < 0 for size in type.shape):
        raise GraphError(
            f"compile: the shape {shape_text(type.shape)} for {describe(tensor)} leaves sizes open, at {here()}",
            "Give every size a number.",
        )
    check_feed(tensor, type)
    return type


def feed_value(tensor: Tensor, value: Any) -> Any:
    """``value`` as an array that may be fed; raises GraphError where that loses something."""
    dtype = tensor.dtype
    if isinstance(value, Tensor):
        return value
    if dtype is string and (holds_strings(value) or not numpy.size(value)):
        return encode(value)
    try:
        array = numpy.asarray(value)
    except ValueError:
        array = numpy.asarray(None)
    if array.dtype.kind not in "biufc":
        raise GraphError(
            f"feed: a value of type {type(value).__name__} ({array.dtype}) does not become "
            f"numbers for {describe(tensor)}, at {here()}",
            f"Feed numbers that fit {dtype.name}{shape_text(tensor.type_.shape)}; lists must "
            "have rows of equal length.",
        )
    if array.dtype.kind == "f" and dtype.kind in "iub":
        whole = array.astype(dtype.numpy)
        if not numpy.array_equal(whole, array):
            raise GraphError(
                f"feed: values {array.dtype}{shape_text(array.shape)} have fractions that "
                f"{describe(tensor)} would lose, at {here()}",
                "Convert them yourself, or declare the placeholder with a floating dtype.",
            )
        array = whole
    return array.astype(dtype.numpy)


def repaired(feeds: Sequence[Source], values: Sequence[Any]) -> tuple[Any, ...]:
    """The values of feeds as arrays of the right dtypes; raises what is wrong with the first bad one."""
    found = []
    for (owner, index), value in zip(feeds, values):
        tensor = owner.outputs[index]
        array = feed_value(tensor, value)
        if not isinstance(array, Tensor):
            check_feed(tensor, _core.from_array(array, False).type_)
        found.append(array)
    return tuple(found)


def _wrong_result(operation: Operation, what: str, fix: str) -> BaseException:
    """The error of a ``py_func`` whose declaration does not fit its function, at the line that declares it."""
    error = GraphError(f"{operation.name} ({operation.where}): {what}", fix)
    return end_at(error, _core.location_of(operation.outputs[0])) if operation.outputs else error


def call_python(operation: Operation, arrays: Sequence[Any]) -> list[numpy.ndarray]:
    """The outputs of a ``py_func``; raises GraphError if they are not what was declared."""
    assert operation.python is not None
    try:
        made = operation.python(*arrays)
    except Exception as error:
        note(error, f"in the function of {operation.name}, declared at {operation.where}")
        if operation.outputs and not ends_in_callback(error):
            end_at(error, _core.location_of(operation.outputs[0]))
        raise
    results = list(made) if isinstance(made, (list, tuple)) else [made]
    if len(results) != len(operation.outputs):
        what = f"the function returned {len(results)} values for {len(operation.outputs)} dtypes"
        raise _wrong_result(operation, what, "Return one value for each dtype in Tout.")
    found = []
    for tensor, value in zip(operation.outputs, results):
        if tensor.dtype is string and (holds_strings(value) or not numpy.size(value)):
            found.append(encode(value))
            continue
        array = numpy.asarray(value)
        if array.dtype != tensor.dtype.numpy or tensor.dtype is string:
            what = f"the function returned {array.dtype} where Tout says {tensor.dtype.name}"
            raise _wrong_result(operation, what, "Convert the result, or change Tout.")
        found.append(array)
    return found
