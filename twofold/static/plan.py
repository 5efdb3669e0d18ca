"""Plans: what a session keeps about one kind of run, so that the next one is a single call into the core."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from twofold import _core
from twofold.dtypes import int64
from twofold.errors import GraphError
from twofold.ir.types import Shape, TensorType, tensor_type
from twofold.runtime.tracing import here
from twofold.runtime.unknown import UNKNOWN_RANK
from twofold.static.graph import Operation, describe
from twofold.static.infer import Source
from twofold.static.replay import Demand, Replay, Request, Walk
from twofold.static.shapes import shape_text

Tensor = _core.Tensor


class Plan:
    """One request made ready: ``fetch(feeds, arrays)`` runs it on feeds followed by the variables in ``reads``."""

    __slots__ = (
        "arrays",
        "demand",
        "draws",
        "fetch",
        "function",
        "keep",
        "numbers",
        "observers",
        "reads",
        "request",
        "walk",
        "written",
    )

    def __init__(self, request: Request, known: dict[Source, Any]) -> None:
        self.request = request
        self.demand: Demand | None = None
        self.keep: Any = None
        try:
            self.walk = Walk(request, known)
        except Demand as demand:
            self.demand = demand
            return
        operations = self.walk.operations
        self.draws = self.walk.draws
        self.reads = tuple(self.walk.reads)
        self.numbers = self.walk.numbers
        self.written = tuple(dict.fromkeys(variable for op in operations for variable in op.updates))
        self.observers = [operation for operation in operations if operation.observe is not None]
        self.arrays = len(request.fetches) + sum(len(operation.sources) for operation in self.observers)
        types = [owner.outputs[index].type_ for owner, index in request.feeds]
        types += [variable.type_ for variable in self.reads]
        types += [operation.outputs[0].type_ for operation in self.numbers]
        types += [tensor_type(int64)] if self.draws else []
        self.function = _core.function(
            tuple(_core.placeholder(type) for type in types), (), False, self.specialise
        )
        self.fetch = self.function.fetch

    @property
    def needs_nothing(self) -> bool:
        """Whether a run is no more than feeds in and arrays out."""
        return not (self.reads or self.numbers or self.written or self.observers or self.draws)

    def specialise(self, types: tuple[TensorType, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The graph for inputs of ``types``; raises GraphError for a feed that does not fit its tensor."""
        for (owner, index), type in zip(self.request.feeds, types):
            check_feed(owner.outputs[index], type)
        return Replay(self.walk, self.reads, self.written, types).run()

    def observe(self, arrays: Sequence[Any]) -> None:
        """Give the observers what they asked to see; they may raise."""
        place = len(self.request.fetches)
        for operation in self.observers:
            assert operation.observe is not None
            operation.observe(*arrays[place : place + len(operation.sources)])
            place += len(operation.sources)


def fits(sizes: Shape, declared: Shape) -> bool:
    """Whether real sizes fit declared ones, of which some may be unknown."""
    if declared == UNKNOWN_RANK:
        return True
    return len(sizes) == len(declared) and all(b < 0 or a == b for a, b in zip(sizes, declared))


def check_feed(tensor: Tensor, type: TensorType) -> None:
    """Raise GraphError if a value of ``type`` cannot be fed for ``tensor``."""
    declared = tensor.type_
    if type.dtype is declared.dtype and fits(type.shape, declared.shape):
        return
    fix = (
        "Feed values of its dtype."
        if type.dtype is not declared.dtype
        else "Feed an array of its shape, or declare it with None where sizes vary."
    )
    raise GraphError(
        f"feed: a value {type.dtype.name}{shape_text(type.shape)} does not fit {describe(tensor)}, at {here()}",
        fix,
    )


def feed_value(tensor: Tensor, value: Any) -> Any:
    """``value`` as an array that may be fed; raises GraphError where that loses something."""
    dtype = tensor.dtype
    if isinstance(value, Tensor):
        return value
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


def repaired(plan: Plan, values: Sequence[Any]) -> tuple[Any, ...]:
    """The feeds as arrays of the right dtypes; raises what is wrong with the first bad one."""
    found = []
    for (owner, index), value in zip(plan.request.feeds, values):
        tensor = owner.outputs[index]
        array = feed_value(tensor, value)
        if not isinstance(array, Tensor):
            check_feed(tensor, _core.from_array(array, False).type_)
        found.append(array)
    return tuple(found)


def call_python(operation: Operation, arrays: Sequence[Any]) -> list[numpy.ndarray]:
    """The outputs of a ``py_func``; raises GraphError if they are not what was declared."""
    assert operation.python is not None
    made = operation.python(*arrays)
    results = list(made) if isinstance(made, (list, tuple)) else [made]
    if len(results) != len(operation.outputs):
        raise GraphError(
            f"{operation.name} ({operation.where}): the function returned {len(results)} values "
            f"for {len(operation.outputs)} dtypes",
            "Return one value for each dtype in Tout.",
        )
    found = []
    for tensor, value in zip(operation.outputs, results):
        array = numpy.asarray(value)
        if array.dtype != tensor.dtype.numpy:
            raise GraphError(
                f"{operation.name} ({operation.where}): the function returned {array.dtype} "
                f"where Tout says {tensor.dtype.name}",
                "Convert the result, or change Tout.",
            )
        found.append(array)
    return found
