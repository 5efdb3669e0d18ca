"""Input pipelines: ``tf.data``.

Elements are made in Python, one by one, when a run asks an iterator for the next; the functions given to ``map``
and ``filter`` declare operations of a small graph of their own, which is compiled like any other. An element is
a tensor or a nested structure of tensors. A run raises OutOfRangeError after the last element.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Iterator as Elements
from typing import Any

import numpy

from twofold import _core
from twofold.dtypes import bool_, int32, int64, string
from twofold.errors import ArgumentError, DTypeError, GraphError, TwofoldError, at_operation
from twofold.ir.types import TensorType, tensor_type
from twofold.ir.unknown import UNKNOWN_RANK, new_unknown_size
from twofold.runtime.failures import end_at
from twofold.runtime.structure import flatten, unflatten
from twofold.runtime.tracing import here
from twofold.static.array import placeholder
from twofold.static.bodies import source_of
from twofold.static.define import array_of, as_dtype, convert_to_tensor, is_tensor_like, refuse, whole
from twofold.static.docstrings import example
from twofold.static.flow import common_type, failed
from twofold.static.graph import Graph, Operation, Tensor, at_once, get_default_graph
from twofold.static.random import next_key
from twofold.static.session import Session
from twofold.static.shapes import TensorShape, shape_of_sizes
from twofold.static.string_table import bytes_array, holds_strings, stack
from twofold.static.variables import is_nested

Element = list[Any]


class OutOfRangeError(GraphError):
    """An iterator has no more elements."""


Fed = dict[int, Any]
"""Arrays of the graph's tensors, by their identity, when an iterator is initialised."""


@example(
    "data = tf.data.Dataset.range(5).map(lambda x: x * x).batch(2)",
    "item = data.make_one_shot_iterator().get_next()",
    "print(session.run(item), session.run(item), session.run(item))",
    "[0 1] [4 9] [16]",
)
class _Typed:
    """What has elements of one structure and of one type each."""

    _types: list[TensorType]
    _structure: Any

    @property
    def output_types(self) -> Any:
        """The dtypes of an element."""
        return unflatten(self._structure, [type.dtype for type in self._types])

    @property
    def output_shapes(self) -> Any:
        """The shapes of an element, as far as they are known."""
        return unflatten(self._structure, [shape_of_sizes(type.shape) for type in self._types])


class Dataset(_Typed):
    """Elements of one structure and of one type each.

    >>> import twofold.static as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     pairs = tf.data.Dataset.from_tensor_slices([[1.0], [2.0], [3.0]]).map(lambda x: x * 10.0).batch(2)
    ...     print(session.run(pairs.make_one_shot_iterator().get_next()))
    [[10.]
     [20.]]
    """

    def __init__(
        self,
        make: Callable[[Fed], Elements[Element]],
        types: Sequence[TensorType],
        structure: Any,
        tensors: Sequence[Tensor] = (),
    ) -> None:
        self._make, self._types, self._structure = make, list(types), structure
        self._tensors = list(tensors)

    @staticmethod
    def from_tensor_slices(tensors: Any) -> Dataset:
        """The slices of arrays along their first axis."""
        given, names, structure = _given(tensors)
        types = []
        for value, name in zip(given, names):
            shape = value.type_.shape if isinstance(value, Tensor) else value.shape
            if not shape:
                what = f"{name} has no axis to go along"
                raise failed("from_tensor_slices", ArgumentError(what, "Give arrays, or use from_tensors."))
            types.append(_type_of(value, shape[1:] if shape != UNKNOWN_RANK else shape))

        def length_of(arrays: Sequence[Any]) -> int:
            lengths = {len(array) for array in arrays}
            if len(lengths) != 1:
                what = f"arrays of lengths {sorted(lengths)}"
                raise failed("from_tensor_slices", ArgumentError(what, "Give arrays of one length."))
            return lengths.pop()

        def make(fed: Fed) -> Elements[Element]:
            arrays = [fed.get(id(value), value) for value in given]
            return ([array[k] for array in arrays] for k in range(length_of(arrays)))

        if known := [value for value in given if not isinstance(value, Tensor)]:
            length_of(known)

        return Dataset(make, types, structure, [value for value in given if isinstance(value, Tensor)])

    @staticmethod
    def from_tensors(tensors: Any) -> Dataset:
        """The tensors as the only element."""
        given, _, structure = _given(tensors)
        types = [_type_of(v, v.type_.shape if isinstance(v, Tensor) else v.shape) for v in given]

        def make(fed: Fed) -> Elements[Element]:
            return iter([[fed.get(id(value), value) for value in given]])

        return Dataset(make, types, structure, [value for value in given if isinstance(value, Tensor)])

    @staticmethod
    def from_generator(
        generator: Callable[..., Iterable[Any]],
        output_types: Any,
        output_shapes: Any = None,
        args: Sequence[Any] = (),
    ) -> Dataset:
        """What ``generator()`` yields, converted to ``output_types``."""
        dtypes, _, structure = flatten(output_types, "output_types")
        kinds = [as_dtype(dtype) for dtype in dtypes]

        def make(fed: Fed) -> Elements[Element]:
            for item in generator(*args):
                values = _by_structure(structure, item)
                yield [
                    bytes_array(value) if kind is string else numpy.asarray(value).astype(kind.numpy)
                    for value, kind in zip(values, kinds)
                ]

        return Dataset(make, _declared_types(kinds, output_shapes, structure), structure)

    @staticmethod
    def range(*args: Any) -> Dataset:
        """The int64 numbers of Python's ``range``."""
        found = range(*[whole(value) for value in args])
        types, structure = [tensor_type(int64)], flatten(0, "")[2]
        return Dataset(lambda fed: ([numpy.int64(k)] for k in found), types, structure)

    @staticmethod
    def zip(datasets: Any) -> Dataset:
        """Elements of several datasets side by side, until the first one ends."""
        parts, _, structure = flatten(datasets, "datasets")
        whole = unflatten(structure, [part._structure for part in parts])

        def make(fed: Fed) -> Elements[Element]:
            for items in zip(*[part._make(fed) for part in parts]):
                yield [value for item in items for value in item]

        types = [type for part in parts for type in part._types]
        return Dataset(make, types, whole, [tensor for part in parts for tensor in part._tensors])

    def _with(self, make: Callable[[Fed], Elements[Element]], types: Any = None) -> Dataset:
        return Dataset(make, self._types if types is None else types, self._structure, self._tensors)

    def concatenate(self, dataset: Dataset) -> Dataset:
        """The elements of this dataset, then those of another one."""
        types = [common_type(a, b) for a, b in zip(self._types, dataset._types)]
        tensors = [*self._tensors, *dataset._tensors]
        both = (self._make, dataset._make)
        return Dataset(
            lambda fed: itertools.chain(*[make(fed) for make in both]), types, self._structure, tensors
        )

    def repeat(self, count: Any = None) -> Dataset:
        """All elements ``count`` times; without end if it is None or -1."""
        times = -1 if count is None else whole(count)

        def make(fed: Fed) -> Elements[Element]:
            for _ in itertools.count() if times < 0 else range(times):
                empty = True
                for element in self._make(fed):
                    empty = False
                    yield element
                if empty:
                    return

        return self._with(make)

    def take(self, count: Any) -> Dataset:
        """The first ``count`` elements."""
        limit = whole(count)
        return self._with(lambda fed: itertools.islice(self._make(fed), None if limit < 0 else limit))

    def skip(self, count: Any) -> Dataset:
        """The elements after the first ``count``."""
        return self._with(lambda fed: itertools.islice(self._make(fed), whole(count), None))

    def shard(self, num_shards: int, index: int) -> Dataset:
        """Every ``num_shards``-th element from ``index`` on."""
        return self._with(lambda fed: itertools.islice(self._make(fed), index, None, num_shards))

    def prefetch(self, buffer_size: Any) -> Dataset:
        """The dataset itself: what waits ahead (``buffer_size``) does not change the elements."""
        return self

    def cache(self, filename: Any = "") -> Dataset:
        """The same elements, made once and kept in memory; raises ArgumentError for a ``filename``."""
        refuse("cache", filename=filename or None)
        kept: list[Element] = []

        def make(fed: Fed) -> Elements[Element]:
            if kept:
                yield from kept
                return
            found = []
            for element in self._make(fed):
                found.append(element)
                yield element
            kept[:] = found

        return self._with(make)

    def shuffle(
        self, buffer_size: Any, seed: int | None = None, reshuffle_each_iteration: bool | None = None
    ) -> Dataset:
        """Elements in an order that is new in each pass: each is sampled from ``buffer_size`` that wait."""
        size, key = whole(buffer_size), next_key(seed)
        if size < 1:
            raise failed("shuffle", ArgumentError(f"buffer_size is {size}", "Give at least 1."))
        random = numpy.random.default_rng(key)

        def make(fed: Fed) -> Elements[Element]:
            source = random if reshuffle_each_iteration is not False else numpy.random.default_rng(key)
            waiting: list[Element] = []
            for element in self._make(fed):
                waiting.append(element)
                if len(waiting) == size:
                    yield _sampled(waiting, source)
            while waiting:
                yield _sampled(waiting, source)

        return self._with(make)

    def batch(self, batch_size: Any, drop_remainder: bool = False) -> Dataset:
        """``batch_size`` elements at a time, stacked; the last batch may be smaller unless it is dropped."""
        size, location = whole(batch_size), _core.capture_location()
        types = [_stacked(type, size if drop_remainder else None) for type in self._types]

        def make(fed: Fed) -> Elements[Element]:
            elements = self._make(fed)
            while rows := list(itertools.islice(elements, size)):
                if len(rows) == size or not drop_remainder:
                    yield [_stack(column, location) for column in zip(*rows)]

        if size < 1:
            raise failed("batch", ArgumentError(f"batch_size is {size}", "Give at least 1."))
        return self._with(make, types)

    def padded_batch(
        self, batch_size: Any, padded_shapes: Any, padding_values: Any = None, drop_remainder: bool = False
    ) -> Dataset:
        """``batch`` of elements of different sizes, padded with zeros (or ``padding_values``) to one shape.

        An unknown size (None or -1) is that of the largest element of the batch.
        """
        shapes = [TensorShape(shape).as_list() for shape in _by_structure(self._structure, padded_shapes)]
        blank = [b"" if type.dtype is string else 0 for type in self._types]
        fill = blank if padding_values is None else flatten(padding_values, "")[0]
        size, location = whole(batch_size), _core.capture_location()

        def make(fed: Fed) -> Elements[Element]:
            elements = self._make(fed)
            while rows := list(itertools.islice(elements, size)):
                if len(rows) == size or not drop_remainder:
                    yield [_padded(c, s, v, location) for c, s, v in zip(zip(*rows), shapes, fill)]

        padded = [tensor_type(t.dtype, tuple(_size(n) for n in s)) for t, s in zip(self._types, shapes)]
        types = [_stacked(type, size if drop_remainder else None) for type in padded]
        return self._with(make, types)

    def map(self, map_func: Callable[..., Any], num_parallel_calls: Any = None) -> Dataset:
        """``map_func`` of each element (the parts of a tuple are its arguments), one after the other."""
        found = _Function(map_func, self._types, self._structure)

        def make(fed: Fed) -> Elements[Element]:
            return (found(element) for element in self._make(fed))

        return Dataset(make, found.types, found.structure, self._tensors)

    def filter(self, predicate: Callable[..., Any]) -> Dataset:
        """The elements for which ``predicate`` is true."""
        found = _Function(predicate, self._types, self._structure)
        if [type.dtype for type in found.types] != [bool_]:
            kinds = ", ".join(str(type) for type in found.types)
            raise failed(
                "filter",
                DTypeError(f"the predicate returns {kinds}", "Let it return one bool, as v > 0 does."),
            )
        return self._with(lambda fed: (item for item in self._make(fed) if bool(found(item)[0])))

    def flat_map(self, map_func: Callable[..., Dataset]) -> Dataset:
        """Not offered: datasets cannot be made from the values of elements."""
        raise NotImplementedError("flat_map is not offered. Make the elements with from_generator.")

    def apply(self, transformation_func: Callable[[Dataset], Dataset]) -> Dataset:
        """``transformation_func(self)``."""
        return transformation_func(self)

    def __iter__(self) -> Elements[Any]:
        """The elements, where operations are computed at once; RuntimeError where they are not."""
        if not at_once():
            raise RuntimeError(
                f"__iter__() is only supported when eager execution is enabled, at {here()}. Make an iterator."
            )
        return (self._as_values(element) for element in self._make({}))

    def _as_values(self, element: Element) -> Any:
        """An element as tensors, computed at once."""
        values = [convert_to_tensor(value, type.dtype) for value, type in zip(element, self._types)]
        return unflatten(self._structure, values)

    def make_one_shot_iterator(self) -> Iterator:
        """An iterator that starts by itself; raises ValueError for a dataset of tensors that are fed."""
        if any(tensor.op.type == "Placeholder" for tensor in self._tensors):
            raise ValueError(
                f"make_one_shot_iterator: the dataset needs what is fed, at {here()}. "
                "Use make_initializable_iterator and run its initializer."
            )
        return Iterator(self._types, self._structure, self)

    def make_initializable_iterator(self, shared_name: str | None = None) -> Iterator:
        """An iterator that starts (again) whenever its ``initializer`` runs.

        ``shared_name`` is for several processes and changes nothing.
        """
        made = Iterator(self._types, self._structure)
        made.initializer = made.make_initializer(self)
        return made


class Iterator(_Typed):
    """Hands out the elements of a dataset: one in each run that needs what ``get_next`` returned."""

    def __init__(self, types: Sequence[TensorType], structure: Any, dataset: Dataset | None = None) -> None:
        self._types, self._structure, self._dataset = list(types), structure, dataset
        self._elements: Elements[Element] | None = None
        self.initializer: Operation | None = None

    @staticmethod
    def from_structure(
        output_types: Any, output_shapes: Any = None, shared_name: str | None = None
    ) -> Iterator:
        """An iterator for any dataset of these types; ``make_initializer`` says which one.

        ``shared_name`` is for several processes and changes nothing.
        """
        dtypes, _, structure = flatten(output_types, "output_types")
        return Iterator(
            _declared_types([as_dtype(dtype) for dtype in dtypes], output_shapes, structure), structure
        )

    def make_initializer(self, dataset: Dataset, name: str | None = None) -> Operation:
        """An operation that starts over with ``dataset``."""
        if [type.dtype for type in dataset._types] != [type.dtype for type in self._types]:
            what = f"a dataset of {dataset.output_types} for an iterator of {self._types}"
            raise failed("make_initializer", ArgumentError(what, "Give a dataset of the iterator's types."))

        def start(*arrays: Any) -> Any:
            self._start(dataset, arrays)
            return numpy.int32(0)

        made = _in_graph("MakeIterator", dataset._tensors, [tensor_type(int32)], name)
        made.python = start
        return made

    def _start(self, dataset: Dataset, arrays: Sequence[Any]) -> None:
        self._elements = dataset._make({id(tensor): array for tensor, array in zip(dataset._tensors, arrays)})

    def get_next(self, name: str | None = None) -> Any:
        """The next element; a run raises OutOfRangeError after the last one."""
        first = self._dataset

        def element(*arrays: Any) -> Element:
            if self._elements is None and first is not None:
                self._start(first, arrays)
            if self._elements is None:
                raise GraphError("the iterator is not initialised", "Run its initializer first.")
            try:
                return next(self._elements)
            except StopIteration:
                raise OutOfRangeError(
                    "the dataset has no more elements", "Catch this error to end."
                ) from None

        if at_once() and first is not None:
            return first._as_values(element())
        made = _in_graph("IteratorGetNext", first._tensors if first else (), self._types, name)
        made.python = element
        return unflatten(self._structure, made.outputs)


def _in_graph(
    type: str, tensors: Sequence[Tensor], types: Sequence[TensorType], name: str | None
) -> Operation:
    return get_default_graph().add(type, name, types, [source_of(tensor) for tensor in tensors])


class _Function:
    """A function of elements as a graph of its own."""

    def __init__(self, function: Callable[..., Any], types: Sequence[TensorType], structure: Any) -> None:
        with Graph().as_default() as graph:
            self._given = [placeholder(type.dtype, shape_of_sizes(type.shape)) for type in types]
            element = unflatten(structure, self._given)
            result = function(*element) if isinstance(element, tuple) else function(element)
            found, _, self.structure = flatten(result, "result")
            self._results = [convert_to_tensor(value) for value in found]
            self._session = Session(graph=graph)
        self.types = [value.type_ for value in self._results]

    def __call__(self, element: Element) -> Element:
        return self._session.run(self._results, dict(zip(self._given, element)))


def _sampled(waiting: list[Element], random: Any) -> Element:
    position = int(random.integers(len(waiting)))
    waiting[position], waiting[-1] = waiting[-1], waiting[position]
    return waiting.pop()


def _given(values: Any) -> tuple[list[Any], list[str], Any]:
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


def _type_of(value: Any, shape: Sequence[int]) -> TensorType:
    if isinstance(value, Tensor):
        dtype = value.dtype
    else:
        dtype = string if value.dtype == object else as_dtype(value.dtype)
    return tensor_type(dtype, tuple(shape))


def _by_structure(structure: Any, item: Any) -> list[Any]:
    """The parts of ``item`` in the positions of a structure; lists stay whole where a tensor is expected."""
    if isinstance(structure, dict):
        return [part for key, inner in structure.items() for part in _by_structure(inner, item[key])]
    if isinstance(structure, (tuple, list)):
        if len(structure) != len(item):
            what = f"{len(item)} values for {len(structure)}"
            raise failed("tf.data", ArgumentError(what, "Give one for each, in their structure."))
        return [part for inner, value in zip(structure, item) for part in _by_structure(inner, value)]
    return [item]


def _declared_types(dtypes: Sequence[Any], shapes: Any, structure: Any) -> list[TensorType]:
    """Types of dtypes and shapes, which may be unknown in part."""
    given = [None] * len(dtypes) if shapes is None else _by_structure(structure, shapes)
    found = []
    for dtype, shape in zip(dtypes, given):
        dims = TensorShape(shape).dims
        sizes = UNKNOWN_RANK if dims is None else tuple(_size(dim.value) for dim in dims)
        found.append(tensor_type(dtype, sizes))
    return found


def _size(size: int | None) -> int:
    return new_unknown_size() if size is None or size < 0 else size


def _stacked(type: TensorType, count: int | None) -> TensorType:
    return tensor_type(
        type.dtype, UNKNOWN_RANK if type.shape == UNKNOWN_RANK else (_size(count), *type.shape)
    )


def _stack(column: Sequence[Any], location: int) -> Any:
    """One array of those that ``batch``, called at a location, puts together."""
    shapes = {numpy.shape(value) for value in column}
    if len(shapes) > 1:
        error = ArgumentError(f"elements of shapes {sorted(shapes)} in one batch", "Use padded_batch.")
        raise _at("batch", error, location)
    return stack(column)


def _at(method: str, error: TwofoldError, location: int) -> BaseException:
    """An error of an element, at the line that called a method of the data set."""
    return end_at(at_operation(error, method, [], _core.location_text(location)), location)


def _padded(column: Sequence[Any], shape: Sequence[int | None], value: Any, location: int) -> Any:
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
            raise _at("padded_batch", ArgumentError(what, "Give larger sizes, or None."), location)
        made[(k, *[slice(n) for n in array.shape])] = array
    return made
