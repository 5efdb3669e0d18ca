"""Input pipelines: ``tf.data``.

Elements are made in Python, one by one, when a run asks an iterator for the next; the functions given to ``map``
and ``filter`` declare operations of a small graph of their own, which is compiled like any other. An element is
a tensor or a nested structure of tensors. A run raises OutOfRangeError after the last element.
"""

from __future__ import annotations

import functools
import glob
import itertools
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Iterator as Elements
from typing import Any

import numpy

from twofold import _core
from twofold.dtypes import bool_, int64, string
from twofold.errors import ArgumentError, DTypeError, InvalidArgumentError
from twofold.ir.shape_inference import UNKNOWN_RANK
from twofold.ir.types import TensorType, tensor_type
from twofold.runtime.calls import failed
from twofold.runtime.pytree import flatten, unflatten
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import as_dtype, convert_to_tensor, refuse
from twofold.static.control_flow.choice import common_type
from twofold.static.data.dataset_elements import (
    Count,
    Element,
    ElementFunction,
    Fed,
    Randomness,
    Typed,
    by_structure,
    declared_types,
    given_of,
    in_graph,
    pad_elements,
    sampled,
    size_of,
    stack_elements,
    stacked_type,
    type_of,
)
from twofold.static.data.iterators import Iterator
from twofold.static.data.options import Options
from twofold.static.graph.context import at_once
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import Tensor
from twofold.static.graph.string_table import bytes_array
from twofold.static.graph.tensor_shape import TensorShape, shape_text
from twofold.static.strings.string_functions import as_string_tensor


@example(
    "pairs = tf.data.Dataset.from_tensor_slices([[1.0], [2.0], [3.0]]).map(lambda x: x * 10.0).batch(2)",
    "pairs.make_one_shot_iterator().get_next()",
    "[[10.]\n [20.]]",
)
class Dataset(Typed):
    """Elements of one structure and of one type each."""

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
        given, names, structure = given_of(tensors)
        types = []
        for value, name in zip(given, names):
            shape = value.type_.shape if isinstance(value, Tensor) else value.shape
            if not shape:
                what = f"{name} has no axis to go along"
                raise failed("from_tensor_slices", ArgumentError(what, "Give arrays, or use from_tensors."))
            types.append(type_of(value, shape[1:] if shape != UNKNOWN_RANK else shape))

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
        given, _, structure = given_of(tensors)
        types = [type_of(v, v.type_.shape if isinstance(v, Tensor) else v.shape) for v in given]

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
        """What ``generator(*args)`` yields, converted to ``output_types``; it is given arrays, of bytes for strings."""
        given, _, form = given_of(tuple(args))
        dtypes, _, structure = flatten(output_types, "output_types")
        kinds = [as_dtype(dtype) for dtype in dtypes]

        def make(fed: Fed) -> Elements[Element]:
            arrays = [numpy.asarray(fed.get(id(value), value)) for value in given]
            for item in generator(*unflatten(form, [array[()] for array in arrays])):
                values = by_structure(structure, item)
                yield [
                    bytes_array(value) if kind is string else numpy.asarray(value).astype(kind.numpy)
                    for value, kind in zip(values, kinds)
                ]

        tensors = [value for value in given if isinstance(value, Tensor)]
        return Dataset(make, declared_types(kinds, output_shapes, structure), structure, tensors)

    @staticmethod
    def range(*args: Any) -> Dataset:
        """The int64 numbers of Python's ``range``."""
        bounds = [Count("range", "an argument", value) for value in args]

        def make(fed: Fed) -> Elements[Element]:
            return ([numpy.int64(k)] for k in range(*[bound(fed) for bound in bounds]))

        tensors = [tensor for bound in bounds for tensor in bound.tensors]
        return Dataset(make, [tensor_type(int64)], flatten(0, "")[2], tensors)

    @staticmethod
    def list_files(file_pattern: Any, shuffle: bool | None = None, seed: int | None = None) -> Dataset:
        """The names of the files that fit one pattern or one of several, shuffled unless ``shuffle`` is False.

        A run raises InvalidArgumentError where no file fits.
        """
        patterns = as_string_tensor("list_files", file_pattern)

        def make(fed: Fed) -> Elements[Element]:
            given = [one.decode() for one in numpy.ravel(fed[id(patterns)])]
            names = sorted({name for pattern in given for name in glob.glob(pattern)})
            if not names:
                raise InvalidArgumentError(
                    f"no files fit {', '.join(given)}", "Give a pattern of files that are there."
                )
            return ([name.encode()] for name in names)

        made = Dataset(make, [tensor_type(string)], flatten(0, "")[2], [patterns])
        return made if shuffle is False else made.shuffle(2**31, seed)

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

    def _with(
        self,
        make: Callable[[Fed], Elements[Element]],
        types: Any = None,
        counts: Sequence[Count] = (),
        more: Sequence[Tensor] = (),
    ) -> Dataset:
        tensors = [*self._tensors, *(tensor for count in counts for tensor in count.tensors), *more]
        return self._next(Dataset(make, self._types if types is None else types, self._structure, tensors))

    def _next(self, made: Dataset) -> Dataset:
        made._options = self._options
        return made

    _options: Options | None = None

    def options(self) -> Options:
        """The settings of this dataset and of those that it is made of."""
        return self._options or Options()

    def with_options(self, options: Options) -> Dataset:
        """The same elements, with settings of how they are computed."""
        made = self._with(self._make)
        made._options = self.options().merge(options)
        return made

    def enumerate(self, start: Any = 0) -> Dataset:
        """Pairs of a number, from ``start`` on, and an element."""
        first = Count("enumerate", "start", start)

        def make(fed: Fed) -> Elements[Element]:
            return ([numpy.int64(k), *element] for k, element in enumerate(self._make(fed), first(fed)))

        structure = flatten((0, unflatten(self._structure, [0] * len(self._types))), "")[2]
        types = [tensor_type(int64), *self._types]
        return self._next(Dataset(make, types, structure, [*self._tensors, *first.tensors]))

    def unbatch(self) -> Dataset:
        """The rows of the elements one by one."""
        rows = lambda *parts: Dataset.from_tensor_slices(parts if len(parts) > 1 else parts[0])
        return self.flat_map(rows)

    def concatenate(self, dataset: Dataset) -> Dataset:
        """The elements of this dataset, then those of another one."""
        types = [common_type(a, b) for a, b in zip(self._types, dataset._types)]
        tensors = [*self._tensors, *dataset._tensors]
        both = (self._make, dataset._make)
        chained = lambda fed: itertools.chain(*[make(fed) for make in both])
        made = self._next(Dataset(chained, types, self._structure, tensors))
        made._options = self.options().merge(dataset.options())
        return made

    def repeat(self, count: Any = None) -> Dataset:
        """All elements ``count`` times; without end if it is None or -1."""
        times = Count("repeat", "count", -1 if count is None else count)

        def make(fed: Fed) -> Elements[Element]:
            for _ in itertools.count() if times(fed) < 0 else range(times(fed)):
                empty = True
                for element in self._make(fed):
                    empty = False
                    yield element
                if empty:
                    return

        return self._with(make, counts=[times])

    def take(self, count: Any) -> Dataset:
        """The first ``count`` elements; all if it is negative."""
        limit = Count("take", "count", count)

        def make(fed: Fed) -> Elements[Element]:
            return itertools.islice(self._make(fed), None if limit(fed) < 0 else limit(fed))

        return self._with(make, counts=[limit])

    def skip(self, count: Any) -> Dataset:
        """The elements after the first ``count``; none if it is negative."""
        first = Count("skip", "count", count)

        def make(fed: Fed) -> Elements[Element]:
            return iter(()) if first(fed) < 0 else itertools.islice(self._make(fed), first(fed), None)

        return self._with(make, counts=[first])

    def shard(self, num_shards: Any, index: Any) -> Dataset:
        """Every ``num_shards``-th element from ``index`` on.

        A run raises InvalidArgumentError for an index that is none of ``num_shards``.
        """
        step, first = Count("shard", "num_shards", num_shards, 1), Count("shard", "index", index)

        def make(fed: Fed) -> Elements[Element]:
            start, count = first(fed), step(fed)
            if not 0 <= start < count:
                what = f"Index must be between 0 and {count - 1} (currently index = {start})"
                raise InvalidArgumentError(what, "Give the number of a shard.")
            return itertools.islice(self._make(fed), start, None, count)

        return self._with(make, counts=[step, first])

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
        """Elements in random order: each is sampled from ``buffer_size`` that wait.

        The order is another in each pass of ``repeat`` unless ``reshuffle_each_iteration`` is False. With a seed, given
        here or of the graph, an iterator that starts again gives the same orders again.
        """
        size, random = Count("shuffle", "buffer_size", buffer_size, 1), Randomness(seed)

        def make(fed: Fed) -> Elements[Element]:
            source = random.begun(fed) if reshuffle_each_iteration is False else random.going_on(fed)
            waiting: list[Element] = []
            for element in self._make(fed):
                waiting.append(element)
                if len(waiting) == size(fed):
                    yield sampled(waiting, source)
            while waiting:
                yield sampled(waiting, source)

        return self._with(make, counts=[size])

    def batch(self, batch_size: Any, drop_remainder: bool = False) -> Dataset:
        """``batch_size`` elements at a time, stacked; the last batch may be smaller unless it is dropped."""
        size, location = Count("batch", "batch_size", batch_size, 1), _core.capture_location()
        types = [stacked_type(type, size.known if drop_remainder else None) for type in self._types]

        def make(fed: Fed) -> Elements[Element]:
            elements = self._make(fed)
            while rows := list(itertools.islice(elements, size(fed))):
                if len(rows) == size(fed) or not drop_remainder:
                    yield [stack_elements(column, location) for column in zip(*rows)]

        return self._with(make, types, [size])

    def padded_batch(
        self, batch_size: Any, padded_shapes: Any, padding_values: Any = None, drop_remainder: bool = False
    ) -> Dataset:
        """``batch`` of elements of different sizes, padded with zeros (or ``padding_values``) to one shape.

        An unknown size (None or -1) is that of the largest element of the batch.
        """
        shapes = [TensorShape(shape).as_list() for shape in by_structure(self._structure, padded_shapes)]
        fill: list[Any] = [b"" if type.dtype is string else 0 for type in self._types]
        if padding_values is not None:
            fill = given_of(tuple(flatten(padding_values, "")[0]))[0]
        size, location = Count("padded_batch", "batch_size", batch_size, 1), _core.capture_location()

        def make(fed: Fed) -> Elements[Element]:
            elements = self._make(fed)
            while rows := list(itertools.islice(elements, size(fed))):
                if len(rows) == size(fed) or not drop_remainder:
                    blank = [fed.get(id(value), value) for value in fill]
                    yield [pad_elements(c, s, v, location) for c, s, v in zip(zip(*rows), shapes, blank)]

        padded = [tensor_type(t.dtype, tuple(size_of(n) for n in s)) for t, s in zip(self._types, shapes)]
        types = [stacked_type(type, size.known if drop_remainder else None) for type in padded]
        return self._with(make, types, [size], [value for value in fill if isinstance(value, Tensor)])

    def map(self, map_func: Callable[..., Any], num_parallel_calls: Any = None) -> Dataset:
        """``map_func`` of each element (the parts of a tuple are its arguments), one after the other."""
        found = ElementFunction(map_func, self._types, self._structure)

        def make(fed: Fed) -> Elements[Element]:
            return map(functools.partial(found, fed=fed), self._make(fed))  # goes on after an error

        tensors = [*self._tensors, *found.tensors]
        return self._next(Dataset(make, found.types, found.structure, tensors))

    map_with_legacy_function = map

    def filter(self, predicate: Callable[..., Any]) -> Dataset:
        """The elements for which ``predicate`` is true."""
        found = ElementFunction(predicate, self._types, self._structure)
        if [type.dtype for type in found.types] != [bool_]:
            kinds = ", ".join(str(type) for type in found.types)
            raise failed(
                "filter",
                DTypeError(f"the predicate returns {kinds}", "Let it return one bool, as v > 0 does."),
            )

        def make(fed: Fed) -> Elements[Element]:
            return filter(lambda item: bool(found(item, fed)[0]), self._make(fed))

        return self._with(make, more=found.tensors)

    filter_with_legacy_function = filter

    def flat_map(self, map_func: Callable[..., Dataset]) -> Dataset:
        """The elements of the dataset that ``map_func`` makes of each element, one dataset after the other."""
        return self.interleave(map_func, 1)

    def interleave(
        self,
        map_func: Callable[..., Dataset],
        cycle_length: Any = -1,
        block_length: Any = 1,
        num_parallel_calls: Any = None,
    ) -> Dataset:
        """``flat_map`` that takes ``block_length`` elements at a time of ``cycle_length`` (-1: one) datasets in turn.

        ``num_parallel_calls`` changes nothing: the order is the same with any.
        """
        found = ElementFunction(map_func, self._types, self._structure)
        chosen = 1 if isinstance(cycle_length, int) and cycle_length == -1 else cycle_length
        cycle = Count("interleave", "cycle_length", chosen, 1)
        block = Count("interleave", "block_length", block_length, 1)
        if found.dataset is None:
            what = "map_func returns no dataset"
            raise failed("interleave", ArgumentError(what, "Let it return a tf.data.Dataset."))

        def make(fed: Fed) -> Elements[Element]:
            sources, turn = self._make(fed), 0
            open_ones: list[Elements[Element] | None] = [None] * cycle(fed)
            while True:
                if open_ones[turn] is None and (element := next(sources, None)) is not None:
                    open_ones[turn] = found.elements(element, fed)
                if (now := open_ones[turn]) is not None:
                    left = block(fed)
                    for item in itertools.islice(now, left):
                        yield item
                        left -= 1
                    open_ones[turn] = None if left else now
                elif not any(open_ones):
                    return
                turn = (turn + 1) % len(open_ones)

        tensors = [*self._tensors, *cycle.tensors, *block.tensors, *found.tensors]
        return self._next(Dataset(make, found.types, found.structure, tensors))

    def reduce(self, initial_state: Any, reduce_func: Callable[[Any, Any], Any]) -> Any:
        """What ``reduce_func(state, element)`` makes, element by element, of ``initial_state``.

        The function is declared again, with sizes left open, where it returns other sizes than the state has.
        Raises ArgumentError or DTypeError where it returns another structure or dtype.
        """
        values, names, structure = flatten(initial_state, "initial_state")
        states = [convert_to_tensor(value) for value in values]
        types = [state.type_ for state in states]
        pair = (structure, self._structure)
        while True:
            found = ElementFunction(reduce_func, [*types, *self._types], pair)
            wider = found.state_types(reduce_func, structure, names, types)
            if [shape_text(type.shape) for type in wider] == [shape_text(type.shape) for type in types]:
                break
            types = wider
        tensors = [*self._tensors, *found.tensors]

        def reduced(*arrays: Any) -> Element:
            state = list(arrays[: len(states)])
            fed = {id(tensor): array for tensor, array in zip(tensors, arrays[len(states) :])}
            for element in self._make(fed):
                state = found([*state, *element], fed)
            return state

        if at_once():
            return unflatten(
                structure, [convert_to_tensor(one) for one in reduced(*[one.numpy() for one in states])]
            )
        made = in_graph("ReduceDataset", [*states, *tensors], types, None)
        made.python = reduced
        return unflatten(structure, made.outputs)

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

    def arrays(self, values: Callable[[Sequence[Tensor]], Sequence[Any]]) -> Elements[Any]:
        """The elements as arrays, in their structure; ``values`` computes the tensors that the dataset is made of."""
        fed = {id(tensor): value for tensor, value in zip(self._tensors, values(self._tensors))}
        return (unflatten(self._structure, element) for element in self._make(fed))

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
