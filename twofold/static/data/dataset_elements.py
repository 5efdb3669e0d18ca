"""What datasets hand on: elements, which are lists of arrays, their types, and functions of them."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy

from twofold import _core
from twofold.dtypes import string
from twofold.errors import ArgumentError, DTypeError, TwofoldError, at_operation
from twofold.ir.shape_inference import UNKNOWN_RANK, new_unknown_size
from twofold.ir.types import TensorType, tensor_type
from twofold.runtime.calls import failed
from twofold.runtime.failures import end_at, end_in
from twofold.runtime.pytree import flatten, unflatten
from twofold.static.api.op_functions import array_of, as_dtype, convert_to_tensor, is_tensor_like, whole
from twofold.static.arrays.shape_ops import placeholder
from twofold.static.control_flow.choice import common_type
from twofold.static.functions.bodies import source_of
from twofold.static.graph.context import at_once
from twofold.static.graph.graph import Graph, Operation, Tensor, describe, get_default_graph
from twofold.static.graph.string_table import bytes_array, holds_strings, stack
from twofold.static.graph.tensor_shape import TensorShape, shape_of_sizes
from twofold.static.random import is_seeded, next_key
from twofold.static.session.session import Session
from twofold.static.variables.variable import is_nested

Element = list[Any]

Fed = dict[int, Any]
"""What belongs to an iterator since it was initialised, by identity: arrays of the graph's tensors, random numbers."""


class Typed:
    """What has elements of one structure and of one type each."""

    _types: list[TensorType]
    _structure: Any
    _tensors: list[Tensor]

    @property
    def output_types(self) -> Any:
        """The dtypes of an element."""
        return unflatten(self._structure, [type.dtype for type in self._types])

    @property
    def output_shapes(self) -> Any:
        """The shapes of an element, as far as they are known."""
        return unflatten(self._structure, [shape_of_sizes(type.shape) for type in self._types])

    @property
    def output_classes(self) -> Any:
        """``tf.Tensor`` for each part of an element."""
        return unflatten(self._structure, [Tensor for _ in self._types])


class Count:
    """An integer argument of ``method``: known when it is declared, or told by the run that starts an iterator."""

    def __init__(self, method: str, name: str, value: Any, least: int | None = None) -> None:
        self._method, self._name, self._least = method, name, least
        declared = isinstance(value, Tensor) and not at_once()
        constant = value.op.constant if declared else value
        self.tensors = [value] if constant is None else []
        self.known = None if constant is None else self._checked(whole(constant))

    def _checked(self, value: int) -> int:
        if self._least is not None and value < self._least:
            what = f"{self._name} is {value}"
            raise failed(self._method, ArgumentError(what, f"Give at least {self._least}."))
        return value

    def __call__(self, fed: Fed) -> int:
        return self._checked(int(fed[id(self.tensors[0])])) if self.known is None else self.known


class Randomness:
    """Where a transformation takes random numbers from.

    With a seed an iterator that starts again takes the same, where operations are computed at once also without, as in
    TensorFlow.
    """

    def __init__(self, seed: int | None) -> None:
        fixed, key = is_seeded(seed) or at_once(), next_key(seed)
        self._key = key if fixed else None

    def _of(self, fed: Fed) -> tuple[int, numpy.random.Generator]:
        key = secrets.randbits(62) if self._key is None else self._key
        found: tuple[int, numpy.random.Generator] = fed.setdefault(
            id(self), (key, numpy.random.default_rng(key))
        )
        return found

    def going_on(self, fed: Fed) -> numpy.random.Generator:
        """Numbers that go on where the last pass of the iterator ended."""
        return self._of(fed)[1]

    def begun(self, fed: Fed) -> numpy.random.Generator:
        """Numbers that are the same in each pass of the iterator."""
        return numpy.random.default_rng(self._of(fed)[0])


def in_graph(
    type: str, tensors: Sequence[Tensor], types: Sequence[TensorType], name: str | None
) -> Operation:
    return get_default_graph().add(type, name, types, [source_of(tensor) for tensor in tensors])


class _FunctionGraph(Graph):
    """A graph whose operations may read tensors of the graph around it, which are arguments of the function then."""

    def __init__(self) -> None:
        super().__init__()
        self.captures: dict[tuple[Operation, int], Tensor] = {}

    def captured(self, source: tuple[Operation, int]) -> tuple[Operation, int]:
        """The output itself, or what is fed for one of another graph."""
        owner, index = source
        if owner.graph is self:
            return source
        if source not in self.captures:
            type = owner.outputs[index].type_
            if owner.constant is not None:
                made = self.add("Const", owner.type, [type], (), constant=owner.constant).outputs[0]
            else:
                with self.as_default():
                    made = placeholder(type.dtype, shape_of_sizes(type.shape))
            self.captures[source] = made
        return source_of(self.captures[source])


class ElementFunction:
    """A function of elements as a graph of its own; ``dataset`` is what it makes, if it makes one.

    ``tensors`` are those of the graph around it that it reads; they are given when an iterator is initialised.
    """

    def __init__(self, function: Callable[..., Any], types: Sequence[TensorType], structure: Any) -> None:
        graph = _FunctionGraph()
        with graph.as_default():
            self._given = [placeholder(type.dtype, shape_of_sizes(type.shape)) for type in types]
            element = unflatten(structure, self._given)
            result = function(*element) if isinstance(element, tuple) else function(element)
            self.dataset: Any = result if isinstance(result, Typed) else None
            if self.dataset is None:
                self._found, _, self.structure = flatten(result, "result")
            else:
                self._found, self.structure = self.dataset._tensors, self.dataset._structure
            sources = [source_of(value) for value in self._found]
            self._results = [owner.outputs[index] for owner, index in sources]
            self._session = Session(graph=graph)
            self._session.belongs_to_run = True
        held = [(source, inner) for source, inner in graph.captures.items() if source[0].constant is None]
        self.tensors = [owner.outputs[index] for (owner, index), _ in held]
        self._captured = [inner for _, inner in held]
        self.types = [value.type_ for value in self._results] if self.dataset is None else self.dataset._types

    def state_types(
        self, function: Callable[..., Any], structure: Any, names: Sequence[str], types: Sequence[TensorType]
    ) -> list[TensorType]:
        """The types of a state before and after the function; an error ends at the line that returns another state."""
        if repr(self.structure) != repr(structure):
            what = f"the function returns the structure {self.structure!r} for a state of {structure!r}"
            error = failed("reduce", ArgumentError(what, "Return the new state in its structure."))
            raise end_in(error, function, None)
        found = []
        for name, type, value in zip(names, types, self._results):
            if value.dtype is not type.dtype:
                what = f"{name} is of {type.dtype.name}, and the function returns {describe(value)}"
                fix = f"Return the dtype of the state, with tf.cast(..., tf.{type.dtype.name})."
                raise end_in(failed("reduce", DTypeError(what, fix)), function, value)
            found.append(type if value.type_.shape == type.shape else common_type(type, value.type_))
        return found

    def __call__(self, element: Element, fed: Fed) -> Element:
        captured = [fed[id(tensor)] for tensor in self.tensors]
        return self._session.run(
            self._results, dict(zip([*self._given, *self._captured], [*element, *captured]))
        )

    def elements(
        self, element: Element, fed: Fed, more: Mapping[int, Any] | None = None
    ) -> Iterator[Element]:
        """The elements of the dataset that the function makes of one, given ``more`` of what it is made of."""
        made = {id(given): array for given, array in zip(self._found, self(element, fed))}
        return self.dataset._make({**made, **(more or {})})


def sampled(waiting: list[Element], random: Any) -> Element:
    position = int(random.integers(len(waiting)))
    waiting[position], waiting[-1] = waiting[-1], waiting[position]
    return waiting.pop()


def given_of(values: Any) -> tuple[list[Any], list[str], Any]:
    """Arrays and tensors of a nested structure of tuples and dicts; a list is an array."""
    return flatten(_as_arrays(values), "tensors")


def _as_arrays(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _as_arrays(item) for key, item in value.items()}
    if isinstance(value, tuple):
        parts = [_as_arrays(item) for item in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if is_nested(value) or is_tensor_like(value):
        if at_once():
            return convert_to_tensor(value).numpy()
        return convert_to_tensor(value)
    return bytes_array(value) if holds_strings(value) else array_of(value)


def type_of(value: Any, shape: Sequence[int]) -> TensorType:
    if isinstance(value, Tensor):
        dtype = value.dtype
    else:
        dtype = string if value.dtype == object else as_dtype(value.dtype)
    return tensor_type(dtype, tuple(shape))


def by_structure(structure: Any, item: Any) -> list[Any]:
    """The parts of ``item`` in the positions of a structure; lists stay whole where a tensor is expected."""
    if isinstance(structure, dict):
        return [part for key, inner in structure.items() for part in by_structure(inner, item[key])]
    if isinstance(structure, (tuple, list)):
        if len(structure) != len(item):
            what = f"{len(item)} values for {len(structure)}"
            raise failed("tf.data", ArgumentError(what, "Give one for each, in their structure."))
        return [part for inner, value in zip(structure, item) for part in by_structure(inner, value)]
    return [item]


def declared_types(dtypes: Sequence[Any], shapes: Any, structure: Any) -> list[TensorType]:
    """Types of dtypes and shapes, which may be unknown in part."""
    given = [None] * len(dtypes) if shapes is None else by_structure(structure, shapes)
    found = []
    for dtype, shape in zip(dtypes, given):
        dims = TensorShape(shape).dims
        sizes = UNKNOWN_RANK if dims is None else tuple(size_of(dim.value) for dim in dims)
        found.append(tensor_type(dtype, sizes))
    return found


def size_of(size: int | None) -> int:
    return new_unknown_size() if size is None or size < 0 else size


def stacked_type(type: TensorType, count: int | None) -> TensorType:
    return tensor_type(
        type.dtype, UNKNOWN_RANK if type.shape == UNKNOWN_RANK else (size_of(count), *type.shape)
    )


def stack_elements(column: Sequence[Any], location: int) -> Any:
    """One array of those that ``batch``, called at a location, puts together."""
    shapes = {numpy.shape(value) for value in column}
    if len(shapes) > 1:
        error = ArgumentError(f"elements of shapes {sorted(shapes)} in one batch", "Use padded_batch.")
        raise error_at("batch", error, location)
    return stack(column)


def error_at(method: str, error: TwofoldError, location: int) -> BaseException:
    """An error of an element, at the line that called a method of the data set."""
    return end_at(at_operation(error, method, [], _core.location_text(location)), location)


def pad_elements(column: Sequence[Any], shape: Sequence[int | None], value: Any, location: int) -> Any:
    """One array of those that ``padded_batch``, called at a location, puts together."""
    arrays = [numpy.asarray(item, object if isinstance(item, bytes) else None) for item in column]
    sizes = [
        max(array.shape[axis] for array in arrays) if size is None or size < 0 else size
        for axis, size in enumerate(shape)
    ]
    made: Any = numpy.full((len(arrays), *sizes), value, arrays[0].dtype)
    for k, array in enumerate(arrays):
        if any(n > size for n, size in zip(array.shape, sizes)):
            what = f"an element of shape {array.shape} for padded_shapes {sizes}"
            raise error_at("padded_batch", ArgumentError(what, "Give larger sizes, or None."), location)
        made[(k, *[slice(n) for n in array.shape])] = array[()]
    return made
