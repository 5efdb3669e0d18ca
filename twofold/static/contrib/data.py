"""Transformations of datasets for ``Dataset.apply``: ``tf.contrib.data`` and ``tf.data.experimental``."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from collections.abc import Iterator as Elements
from typing import Any

import numpy

from twofold.dtypes import int64
from twofold.errors import ArgumentError, TwofoldError
from twofold.runtime.calls import failed
from twofold.runtime.pytree import flatten, unflatten
from twofold.static import math
from twofold.static.api.op_functions import convert_to_tensor, refuse
from twofold.static.arrays import shape_ops
from twofold.static.data import AUTOTUNE as AUTOTUNE
from twofold.static.data import Dataset as Dataset
from twofold.static.data import FixedLengthRecordDataset as FixedLengthRecordDataset
from twofold.static.data import Iterator as Iterator
from twofold.static.data import TextLineDataset as TextLineDataset
from twofold.static.data import TFRecordDataset as TFRecordDataset
from twofold.static.data.dataset_elements import Element, ElementFunction, Fed, Randomness
from twofold.static.graph.docstrings import example
from twofold.static.graph.tensor_shape import TensorShape
from twofold.static.platform import logs

_Change = Callable[[Dataset], Dataset]


def _shown(call: str, result: str, start: str = "Dataset.range(4)") -> Callable[[Any], Any]:
    return example(
        f"dataset = tf.data.{start}.apply(tf.contrib.data.{call})",
        "print([session.run(one).tolist() for one in [dataset.make_one_shot_iterator().get_next()] for _ in range(2)])",
        result,
    )


@_shown("map_and_batch(lambda x: x * 10, 2)", "[[0, 10], [20, 30]]")
def map_and_batch(
    map_func: Callable[..., Any],
    batch_size: Any,
    num_parallel_batches: Any = None,
    drop_remainder: bool = False,
    num_parallel_calls: Any = None,
) -> _Change:
    """``map``, then ``batch``. ``num_parallel_batches`` and ``num_parallel_calls`` change no elements."""
    return lambda dataset: dataset.map(map_func).batch(batch_size, drop_remainder)


@_shown("batch_and_drop_remainder(2)", "[[0, 1], [2, 3]]", "Dataset.range(5)")
def batch_and_drop_remainder(batch_size: Any) -> _Change:
    """``batch`` without a last batch that is smaller."""
    return lambda dataset: dataset.batch(batch_size, True)


def padded_batch_and_drop_remainder(
    batch_size: Any, padded_shapes: Any, padding_values: Any = None
) -> _Change:
    """``padded_batch`` without a last batch that is smaller."""
    return lambda dataset: dataset.padded_batch(batch_size, padded_shapes, padding_values, True)


@_shown("shuffle_and_repeat(1)", "[0, 1]")
def shuffle_and_repeat(buffer_size: Any, count: Any = None, seed: int | None = None) -> _Change:
    """``shuffle``, then ``repeat``."""
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


@_shown("parallel_interleave(lambda x: tf.data.Dataset.range(x), 2)", "[0, 0]")
def parallel_interleave(
    map_func: Callable[..., Dataset],
    cycle_length: int,
    block_length: int = 1,
    sloppy: bool = False,
    buffer_output_elements: Any = None,
    prefetch_input_elements: Any = None,
) -> _Change:
    """``interleave``; ``sloppy`` and what waits ahead change nothing here: the order is always the same."""
    return lambda dataset: dataset.interleave(map_func, cycle_length, block_length)


@_shown("unbatch()", "[0, 1]", "Dataset.range(4).batch(2)")
def unbatch() -> _Change:
    """The rows of the elements one by one."""
    return lambda dataset: dataset.unbatch()


@example(
    "pairs = tf.data.Dataset.range(5, 8).apply(tf.contrib.data.enumerate_dataset())",
    "pairs.batch(3).make_one_shot_iterator().get_next()[0]",
    "[0 1 2]",
)
def enumerate_dataset(start: Any = 0) -> _Change:
    """Pairs of a number, from ``start`` on, and an element."""
    return lambda dataset: dataset.enumerate(start)


@_shown("take_while(lambda x: x < 2)", "[0, 1]")
def take_while(predicate: Callable[..., Any]) -> _Change:
    """The elements before the first for which ``predicate`` is false."""

    def change(dataset: Dataset) -> Dataset:
        found = ElementFunction(predicate, dataset._types, dataset._structure)

        def make(fed: Fed) -> Elements[Element]:
            return itertools.takewhile(lambda element: bool(found(element, fed)[0]), dataset._make(fed))

        return dataset._with(make, more=found.tensors)

    return change


@_shown("unique()", "[2, 1]", "Dataset.from_tensor_slices([2, 2, 1, 2])")
def unique() -> _Change:
    """Each element once."""

    def change(dataset: Dataset) -> Dataset:
        def make(fed: Fed) -> Elements[Element]:
            seen: set[Any] = set()
            for element in dataset._make(fed):
                key = tuple(str(numpy.asarray(part).tolist()) for part in element)
                if key not in seen:
                    seen.add(key)
                    yield element

        return dataset._with(make)

    return change


@_shown("scan(tf.constant(0, tf.int64), lambda total, x: (total + x, total + x))", "[0, 1]")
def scan(initial_state: Any, scan_func: Callable[[Any, Any], tuple[Any, Any]]) -> _Change:
    """The second parts of ``scan_func(state, element)``, whose first parts are the next states."""

    def change(dataset: Dataset) -> Dataset:
        values, _, structure = flatten(initial_state, "initial_state")
        states = [convert_to_tensor(value) for value in values]
        types = [*[state.type_ for state in states], *dataset._types]
        found = ElementFunction(scan_func, types, (structure, dataset._structure))
        count = len(states)

        def make(fed: Fed) -> Elements[Element]:
            state = [fed[id(one)] for one in states]
            for element in dataset._make(fed):
                made = found([*state, *element], fed)
                state = made[:count]
                yield made[count:]

        whole = unflatten(found.structure, list(range(len(found.types))))
        output = flatten(whole[1], "")[2]
        tensors = [*dataset._tensors, *states, *found.tensors]
        return dataset._next(Dataset(make, found.types[count:], output, tensors))

    return change


def _mixed(
    datasets: Sequence[Dataset], choices: Callable[[Fed], Elements[int]], tensors: Sequence[Any], skips: bool
) -> Dataset:
    """Elements of several datasets by numbers; a dataset that has ended is skipped or left out of the choice."""
    first = datasets[0]

    def make(fed: Fed) -> Elements[Element]:
        left: dict[int, Elements[Element]] = {k: one._make(fed) for k, one in enumerate(datasets)}
        for number in choices(fed):
            if number in left and (element := next(left[number], None)) is not None:
                yield element
            elif not left or not skips:
                return
            else:
                left.pop(number, None)
                if not left:
                    return

    own = [tensor for one in datasets for tensor in one._tensors]
    return Dataset(make, first._types, first._structure, [*own, *tensors])


@example(
    "both = [tf.data.Dataset.range(2), tf.data.Dataset.range(10, 12)]",
    "choice = tf.data.Dataset.from_tensor_slices(tf.constant([1, 0, 1], tf.int64))",
    "following = tf.data.experimental.choose_from_datasets(both, choice).batch(3).make_one_shot_iterator().get_next()",
    "following",
    "[10  0 11]",
)
def choose_from_datasets(datasets: Sequence[Dataset], choice_dataset: Dataset) -> Dataset:
    """The next element of the dataset that the next number of ``choice_dataset`` names."""
    numbers = lambda fed: (int(element[0]) for element in choice_dataset._make(fed))
    return _mixed(list(datasets), numbers, choice_dataset._tensors, True)


@example(
    "one = tf.data.Dataset.range(3)",
    "following = tf.data.experimental.sample_from_datasets([one], [1.0]).batch(3).make_one_shot_iterator().get_next()",
    "following",
    "[0 1 2]",
)
def sample_from_datasets(
    datasets: Sequence[Dataset], weights: Any = None, seed: int | None = None
) -> Dataset:
    """The next element of one of the datasets, chosen at random by ``weights`` (all the same unless given)."""
    given = list(datasets)
    shares = numpy.asarray([1.0] * len(given) if weights is None else weights, numpy.float64)
    if len(shares) != len(given) or (shares < 0).any() or not shares.sum():
        what = f"weights {shares.tolist()} for {len(given)} datasets"
        raise failed("sample_from_datasets", ArgumentError(what, "Give one for each, not all 0."))
    random = Randomness(seed)

    def numbers(fed: Fed) -> Elements[int]:
        source = random.going_on(fed)
        while True:
            yield int(source.choice(len(given), p=shares / shares.sum()))

    return _mixed(given, numbers, (), True)


@_shown("ignore_errors()", "[0, 1]")
def ignore_errors(log_warning: bool = False) -> _Change:
    """The elements that can be computed; with ``log_warning`` each error is logged."""

    def change(dataset: Dataset) -> Dataset:
        def make(fed: Fed) -> Elements[Element]:
            elements = dataset._make(fed)
            while True:
                try:
                    yield next(elements)
                except StopIteration:
                    return
                except TwofoldError as error:
                    if log_warning:
                        logs.warning("ignore_errors: %s", error)

        return dataset._with(make)

    return change


def prefetch_to_device(device: str, buffer_size: Any = None) -> _Change:
    """The dataset itself: there is one device, and what waits ahead changes no elements."""
    return lambda dataset: dataset


@_shown("group_by_window(lambda x: x % 2, lambda key, group: group.batch(2), 2)", "[[0, 2], [1, 3]]")
def group_by_window(
    key_func: Callable[..., Any],
    reduce_func: Callable[[Any, Dataset], Dataset],
    window_size: Any = None,
    window_size_func: Callable[[Any], Any] | None = None,
) -> _Change:
    """Elements of one key together: ``reduce_func`` makes a dataset of each ``window_size`` of them.

    Args:
        key_func: The key of an element, an int64.
        reduce_func: A dataset of a key and a dataset of elements.
        window_size: How many elements of a key come together; the last may be fewer.
        window_size_func: The number for a key, instead of ``window_size``.
    """
    if (window_size is None) == (window_size_func is None):
        what = (
            "both window_size and window_size_func are given"
            if window_size is not None
            else "no size is given"
        )
        raise failed("group_by_window", ArgumentError(what, "Give one of them."))
    size = window_size_func or (lambda key: convert_to_tensor(window_size, int64))
    return lambda dataset: _grouped(dataset, key_func, reduce_func, size, False)


def _grouped(
    dataset: Dataset, key_func: Any, reduce_func: Any, size_func: Callable[[Any], Any], drop_remainder: bool
) -> Dataset:
    key_of = ElementFunction(key_func, dataset._types, dataset._structure)
    size_of = ElementFunction(size_func, key_of.types, key_of.structure)
    window = Dataset(lambda fed: iter(fed[id(held)]), dataset._types, dataset._structure)
    held: list[Any] = []
    reduced = ElementFunction(lambda key: reduce_func(key, window), key_of.types, key_of.structure)
    if reduced.dataset is None:
        raise failed("group_by_window", ArgumentError("reduce_func returns no dataset", "Let it return one."))

    def make(fed: Fed) -> Elements[Element]:
        groups: dict[int, list[Element]] = {}
        for element in dataset._make(fed):
            key = key_of(element, fed)[0]
            group = groups.setdefault(int(key), [])
            group.append(element)
            if len(group) == int(size_of([key], fed)[0]):
                yield from reduced.elements([key], fed, {id(held): groups.pop(int(key))})
        for number, group in () if drop_remainder else sorted(groups.items()):
            yield from reduced.elements([numpy.int64(number)], fed, {id(held): group})

    tensors = [tensor for function in (key_of, size_of, reduced) for tensor in function.tensors]
    return Dataset(make, reduced.types, reduced.dataset._structure, [*dataset._tensors, *tensors])


def bucket_by_sequence_length(
    element_length_func: Callable[..., Any],
    bucket_boundaries: Sequence[int],
    bucket_batch_sizes: Sequence[int],
    padded_shapes: Any = None,
    padding_values: Any = None,
    pad_to_bucket_boundary: bool = False,
    no_padding: bool = False,
    drop_remainder: bool = False,
) -> _Change:
    """Batches of elements of similar lengths, padded to the largest of each.

    Args:
        element_length_func: The length of an element.
        bucket_boundaries: The lengths at which buckets begin, after the first one.
        bucket_batch_sizes: The size of batches for each bucket, one more than boundaries.
        padded_shapes: As for ``padded_batch``; unless given, all sizes are those of the largest element.
        padding_values: As for ``padded_batch``.
        pad_to_bucket_boundary: Not offered; raises if true.
        no_padding: Whether elements are stacked as they are.
        drop_remainder: Whether the last batch of a bucket is dropped if it is smaller.

    >>> import twofold.static as tf
    >>> rows = tf.data.Dataset.from_generator(lambda: iter([[1], [1, 2, 3], [4]]), tf.int64, [None])
    >>> change = tf.data.experimental.bucket_by_sequence_length(lambda row: tf.shape(row)[0], [2], [2, 2])
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     print(session.run(rows.apply(change).make_one_shot_iterator().get_next()).tolist())
    [[1], [4]]
    """
    refuse("bucket_by_sequence_length", pad_to_bucket_boundary=pad_to_bucket_boundary)
    if len(bucket_batch_sizes) != len(bucket_boundaries) + 1:
        what = f"{len(bucket_batch_sizes)} batch sizes for {len(bucket_boundaries)} boundaries"
        raise failed("bucket_by_sequence_length", ArgumentError(what, "Give one more size than boundaries."))

    def bucket(*parts: Any) -> Any:
        length = math.cast(element_length_func(*parts), int64)
        above = math.greater_equal(length, convert_to_tensor(list(bucket_boundaries), int64))
        return math.reduce_sum(math.cast(above, int64))

    def size(key: Any) -> Any:
        return shape_ops.gather(convert_to_tensor(list(bucket_batch_sizes), int64), key)

    def change(dataset: Dataset) -> Dataset:
        shapes = dataset.output_shapes if padded_shapes is None else padded_shapes

        def reduce(key: Any, group: Dataset) -> Dataset:
            most = max(bucket_batch_sizes)
            return group.batch(most) if no_padding else group.padded_batch(most, shapes, padding_values)

        return _grouped(dataset, bucket, reduce, size, drop_remainder)

    return change


@example(
    "following = tf.contrib.data.Counter(3, 2).make_one_shot_iterator().get_next()",
    "[following, following]",
    "[np.int64(3), np.int64(3)]",
)
def Counter(start: int = 0, step: int = 1, dtype: Any = int64) -> Dataset:
    """Numbers without end."""
    kind = convert_to_tensor(0, dtype).dtype
    return Dataset.from_generator(
        lambda: (kind.numpy.type(n) for n in itertools.count(start, step)), kind, TensorShape([])
    )


@example("tf.contrib.data.get_single_element(tf.data.Dataset.range(5).batch(5))", "[0 1 2 3 4]")
def get_single_element(dataset: Dataset) -> Any:
    """The only element of a dataset."""
    return dataset.make_one_shot_iterator().get_next()
