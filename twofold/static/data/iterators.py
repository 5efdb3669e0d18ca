"""What hands out the elements of datasets, one in each run: ``tf.data.Iterator``."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Sequence
from collections.abc import Iterator as Elements
from typing import TYPE_CHECKING, Any

import numpy

from twofold.dtypes import int32, string
from twofold.errors import ArgumentError, FailedPreconditionError, InvalidArgumentError
from twofold.ir.types import TensorType, tensor_type
from twofold.runtime.calls import failed
from twofold.runtime.pytree import flatten, unflatten
from twofold.static.api.op_functions import as_dtype
from twofold.static.data.dataset_elements import Element, Typed, declared_types, in_graph
from twofold.static.errors import OutOfRangeError
from twofold.static.graph.context import at_once
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import Operation, Tensor
from twofold.static.graph.resources import Resource
from twofold.static.strings.string_functions import as_string_tensor

if TYPE_CHECKING:
    from twofold.static.data.datasets import Dataset


_numbers = itertools.count()
_by_handle: weakref.WeakValueDictionary[bytes, Iterator] = weakref.WeakValueDictionary()


class Iterator(Typed):
    """Hands out the elements of a dataset: one in each run that needs what ``get_next`` returned."""

    def __init__(self, types: Sequence[TensorType], structure: Any, dataset: Dataset | None = None) -> None:
        self._types, self._structure, self._dataset = list(types), structure, dataset
        self._started: Resource[list[Elements[Element]]] = Resource(list)  # of one, once it is initialised
        self.initializer: Operation | None = None
        self._handle = f"iterator_{next(_numbers)}".encode()
        _by_handle[self._handle] = self

    @staticmethod
    def from_structure(
        output_types: Any,
        output_shapes: Any = None,
        shared_name: str | None = None,
        output_classes: Any = None,
    ) -> Iterator:
        """An iterator for any dataset of these types; ``make_initializer`` says which one.

        ``shared_name`` is for several processes and changes nothing. All ``output_classes`` are ``tf.Tensor``.
        """
        return Iterator(*_declared("from_structure", output_types, output_shapes, output_classes))

    @staticmethod
    def from_string_handle(
        string_handle: Any, output_types: Any, output_shapes: Any = None, output_classes: Any = None
    ) -> Iterator:
        """An iterator that hands out the elements of another: of that whose ``string_handle`` each run is given."""
        made = _Feedable(*_declared("from_string_handle", output_types, output_shapes, output_classes))
        made.given = as_string_tensor("from_string_handle", string_handle)
        return made

    def string_handle(self, name: str | None = None) -> Tensor:
        """A string that stands for this iterator where ``from_string_handle`` takes one."""

        def handle(*arrays: Any) -> Any:
            if self._dataset is not None and not self._started.in_run():
                self._start(self._dataset, arrays)
            return [self._handle]

        tensors = () if self._dataset is None else self._dataset._tensors
        made = in_graph("IteratorToStringHandle", tensors, [tensor_type(string)], name)
        made.python = handle
        return made.outputs[0]

    def make_initializer(self, dataset: Dataset, name: str | None = None) -> Operation:
        """An operation that starts over with ``dataset``."""
        if [type.dtype for type in dataset._types] != [type.dtype for type in self._types]:
            what = f"a dataset of {dataset.output_types} for an iterator of {self._types}"
            raise failed("make_initializer", ArgumentError(what, "Give a dataset of the iterator's types."))

        def start(*arrays: Any) -> Any:
            self._start(dataset, arrays)
            return numpy.int32(0)

        made = in_graph("MakeIterator", dataset._tensors, [tensor_type(int32)], name)
        made.python = start
        return made

    def _start(self, dataset: Dataset, arrays: Sequence[Any]) -> None:
        fed = {id(tensor): array for tensor, array in zip(dataset._tensors, arrays)}
        self._started.in_run()[:] = [dataset._make(fed)]

    def get_next(self, name: str | None = None) -> Any:
        """The next element; a run raises OutOfRangeError after the last one."""
        first = self._dataset

        def element(*arrays: Any) -> Element:
            if first is not None and not self._started.in_run():
                self._start(first, arrays)
            return self._next()

        if at_once() and first is not None:
            return first._as_values(element())
        return self._declared_next(first._tensors if first else (), element, name)

    def _declared_next(
        self, tensors: Sequence[Tensor], element: Callable[..., Element], name: str | None
    ) -> Any:
        made = in_graph("IteratorGetNext", tensors, self._types, name)
        made.python = element
        return unflatten(self._structure, made.outputs)

    def _next(self) -> Element:
        started = self._started.in_run()
        if not started:
            raise FailedPreconditionError("the iterator is not initialised", "Run its initializer first.")
        try:
            return next(started[0])
        except StopIteration:
            raise OutOfRangeError(
                "End of sequence: the dataset has no more elements", "Catch this error to end."
            ) from None


class _Feedable(Iterator):
    """An iterator of another one's elements."""

    given: Tensor

    def get_next(self, name: str | None = None) -> Any:
        def element(handle: Any) -> Element:
            found = _by_handle.get(handle)
            if found is None:
                what = f"no iterator has the handle {handle!r}"
                raise InvalidArgumentError(what, "Feed what a run of its string_handle() returned.")
            if [type.dtype for type in found._types] != [type.dtype for type in self._types]:
                what = f"an iterator of {found.output_types} where {self.output_types} are expected"
                raise InvalidArgumentError(what, "Feed the handle of an iterator of these types.")
            return found._next()

        return self._declared_next([self.given], element, name)


def _declared(what: str, types: Any, shapes: Any, classes: Any) -> tuple[list[TensorType], Any]:
    """Types and structure of what an iterator hands out."""
    for one in [] if classes is None else flatten(classes, "output_classes")[0]:
        if one is not Tensor:
            raise failed(what, ArgumentError(f"output_classes holds {one}", "Use tf.Tensor."))
    dtypes, _, structure = flatten(types, "output_types")
    return declared_types([as_dtype(dtype) for dtype in dtypes], shapes, structure), structure


@example(
    "following = tf.data.make_one_shot_iterator(tf.data.Dataset.range(2)).get_next()",
    "print(session.run(following), session.run(following))",
    "0 1",
)
def make_one_shot_iterator(dataset: Dataset) -> Iterator:
    """``dataset.make_one_shot_iterator()``."""
    return dataset.make_one_shot_iterator()


@example(
    "iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(2))",
    "following = iterator.get_next()",
    "session.run(iterator.initializer)",
    "print(session.run(following), session.run(following))",
    "0 1",
)
def make_initializable_iterator(dataset: Dataset, shared_name: str | None = None) -> Iterator:
    """``dataset.make_initializable_iterator(shared_name)``."""
    return dataset.make_initializable_iterator(shared_name)


def get_output_types(dataset_or_iterator: Dataset | Iterator) -> Any:
    """The dtypes of an element, in its structure.

    >>> import twofold.static as tf
    >>> tf.data.get_output_types(tf.data.Dataset.range(2)).name
    'int64'
    """
    return dataset_or_iterator.output_types


def get_output_shapes(dataset_or_iterator: Dataset | Iterator) -> Any:
    """The shapes of an element, in its structure.

    >>> import twofold.static as tf
    >>> print(tf.data.get_output_shapes(tf.data.Dataset.range(4).batch(2)))
    (?,)
    """
    return dataset_or_iterator.output_shapes
