"""``TensorArray``: tensors of one shape by number, written once each, mostly in loops.

The elements are the rows of one tensor, the *flow*, which every write replaces; loops write their rows in place.
Before the first write the shape of the elements is not known: the flow is then an array of empty rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from twofold.errors import ArgumentError, GraphError, InvalidArgumentError, ShapeError
from twofold.ir.shape_inference import UNKNOWN_RANK, new_unknown_size
from twofold.ir.types import TensorType, tensor_type
from twofold.ops.base import ops
from twofold.runtime.calls import failed
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import (
    Number,
    Slot,
    as_dtype,
    convert_to_tensor,
    numbers,
    operation,
    refuse,
)
from twofold.static.arrays.creation import range as numbers_from
from twofold.static.arrays.shape_ops import gather as rows_at
from twofold.static.arrays.shape_ops import identity
from twofold.static.arrays.shape_ops import size as size_of
from twofold.static.control_flow.array_elements import (
    GROWING,
    all_elements,
    all_replaced,
    chosen_elements,
    element_count,
    equal_parts,
    filled_up,
    grown,
    joined_elements,
    no_elements,
    read_element,
    scattered,
    scattered_grown,
    write_element,
)
from twofold.static.functions.bodies import source_of
from twofold.static.functions.written_elements import first_marks, mark, marks_of
from twofold.static.graph.context import at_once
from twofold.static.graph.docstrings import example
from twofold.static.graph.eager_execution import compute
from twofold.static.graph.graph import Operation, Tensor, describe, get_default_graph
from twofold.static.graph.tensor_shape import TensorShape
from twofold.static.python.tensor_util import constant_value


@example(
    "def body(i, array):",
    "    return i + 1, array.write(i, tf.cast(i * i, tf.float32))",
    "_, array = tf.while_loop(lambda i, _: i < 4, body, (0, tf.TensorArray(tf.float32, 4)))",
    "array.stack()",
    "[0. 1. 4. 9.]",
)
class TensorArray:
    """``size`` tensors of one dtype and shape; every change returns the array after it.

    An element is written once; a second write raises InvalidArgumentError.

    ``dynamic_size`` lets writes make it larger; how large a loop makes it is found by running the loop for its indices
    alone first. ``element_shape`` is checked. With ``infer_shape=False`` an array may be split into parts of different
    lengths. ``clear_after_read`` and ``colocate_with_first_write_call`` change nothing: elements may be read as often
    as wanted.
    """

    _lengths: Tensor | None = None  # of elements that have different ones

    def __init__(
        self,
        dtype: Any,
        size: Any = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        handle: Any = None,
        flow: Any = None,
        infer_shape: bool = True,
        element_shape: Any = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ) -> None:
        self.dtype = as_dtype(dtype)
        self.dynamic_size = bool(dynamic_size)
        refuse("TensorArray", handle=handle)
        self._element, self._infers = TensorShape(element_shape), bool(infer_shape)
        self._size = int(size) if isinstance(size, int) and not self.dynamic_size else None
        name = tensor_array_name if name is None else name
        self.flow = self._empty(0 if size is None else size, name) if flow is None else flow
        self._written: frozenset[int] | None = frozenset()  # the elements known to be written; None: all
        self._is_inside = False  # the body of a loop, whose runs note what is written if they must
        self._is_noted = False  # whether runs note what is written
        self._loop: tuple[Operation, int] | None = None  # that gives the elements, as which result

    def _empty(self, size: Any, name: str | None) -> Tensor:
        dtype = self.dtype
        given = convert_to_tensor(size)
        if at_once():
            return no_elements(given, dtype)
        made = get_default_graph().add(
            "TensorArray",
            name,
            [tensor_type(dtype, UNKNOWN_RANK)],
            [source_of(given)],
            body=no_elements,
            arguments=(Slot(0),),
            keywords={"dtype": dtype},
            host=frozenset({0}),
        )
        return made.outputs[0]

    def with_flow(self, flow: Tensor) -> TensorArray:
        """The same array with other elements."""
        made = TensorArray.__new__(TensorArray)
        made.dtype, made.dynamic_size, made.flow = self.dtype, self.dynamic_size, flow
        made._element, made._infers = self._element, self._infers
        made._size, made._written = self._size, self._written
        made._is_inside, made._is_noted, made._loop = self._is_inside, self._is_noted, None
        return made

    def inside(self, flow: Tensor) -> TensorArray:
        """The same array as the body of a loop is given it."""
        made = self.with_flow(flow)
        made._is_inside = True
        return made

    def after(self, loop: Operation, position: int, flow: Tensor) -> TensorArray:
        """The same array as a loop leaves it."""
        made = self.with_flow(flow)
        made._loop = loop, position
        return made

    def need_same_parts(self, arrays: Sequence[Any]) -> None:
        """Raise ArgumentError for arrays whose elements have other lengths: a choice or a loop returns only flows."""
        if any(getattr(array, "_lengths", None) is not self._lengths for array in arrays):
            what = "a branch or loop returns an array that was split there into parts of different lengths"
            raise failed("TensorArray.split", ArgumentError(what, "Split behind it."))

    def chosen(self, flow: Tensor, arrays: Sequence[Any]) -> TensorArray:
        """One of several arrays of one kind, of which a run tells."""
        self.need_same_parts(arrays)
        made = self.with_flow(flow)
        known = [array._written for array in arrays if array._written is not None]
        made._written, made._is_noted = frozenset.intersection(*known) if known else None, True
        return made

    def written_before(self) -> frozenset[int] | None:
        """The elements that are written, None: all or those that only a run tells."""
        return self._written if self._loop is None and not self._is_noted else None

    def known_written(self) -> frozenset[int] | None:
        """The elements that are known to be written, None: all; from now on runs note all that a loop writes."""
        if self._loop is not None:
            loop, position = self._loop
            flow: Any = loop.flow or loop.hosted
            flow.checked.setdefault(position, self._written)
        return self._written

    def _once(self, what: str, index: Any) -> frozenset[int] | None:
        """What is written once known indices are; raises InvalidArgumentError for one that is written again."""
        before, found = self.known_written(), constant_value(index)
        if found is None:
            return before
        indices = numpy.ravel(found).tolist()
        new = frozenset(indices)
        again = sorted(new if before is None else new & before)
        again += [index for k, index in enumerate(indices) if index in indices[:k]]
        if again:
            message = f"{what}: index {again[0]} has already been written to, at {here()}"
            raise InvalidArgumentError(message, "Write each element once.")
        return None if before is None else before | new

    def _need_unwritten(self, what: str) -> None:
        written = self.known_written()
        if written is None or written:
            message = f"{what}: index {min(written or (0,))} has already been written to, at {here()}"
            raise InvalidArgumentError(message, "Write each element once.")

    def _if_unwritten(self, elements: Tensor) -> Tensor:
        """Elements that replace those of the array, where a run finds none of these written."""
        if at_once() or self._size is None or (self._loop is None and not self._is_noted):
            return elements
        return self._declare(
            "TensorArrayUnwritten", all_replaced, elements.type_, [self.flow, elements], None
        )

    def _need_shape(self, what: str, value: Any, element: TensorShape) -> None:
        if not self._element.is_compatible_with(element):
            wrong = f"{describe(value)} for elements of shape {self._element}"
            raise failed(what, ShapeError(wrong, "Write values of that shape."))

    def _marking(self, body: Any, index: Any) -> Any:
        """The body of a write outside of loops of which only a run tells the index: it notes what is written."""
        if self._is_inside or at_once() or self.dynamic_size or constant_value(index) is not None:
            return body
        known = self._written

        def marked(flow: Any, *rest: Any) -> Any:
            if marks_of(flow) is None:
                mark(flow, first_marks(flow.shape[0], known))
            return body(flow, *rest)

        return marked

    @property
    def handle(self) -> Tensor:
        """The flow."""
        return self.flow

    @property
    def element_shape(self) -> TensorShape:
        """The shape of the elements, as far as it is known."""
        return self._element

    def _declare(
        self, type: str, body: Any, result: TensorType, tensors: Sequence[Tensor], name: str | None
    ) -> Tensor:
        if at_once():
            return compute(type, body, tensors, {}, name).outputs[0]
        graph = source_of(self.flow)[0].graph
        parts = {"body": body, "arguments": tuple(Slot(k) for k in range(len(tensors)))}
        made = graph.add(type, name, [result], [source_of(tensor) for tensor in tensors], **parts)
        if self.dynamic_size and body in GROWING:
            made.wished = frozenset({2})
        return made.outputs[0]

    def _rows(self) -> int:
        """The number of elements, as far as it is known."""
        shape = self.flow.type_.shape
        if self._size is not None:
            return self._size
        return new_unknown_size() if self.dynamic_size or shape == UNKNOWN_RANK else shape[0]

    def _element_type(self) -> TensorType:
        shape = self.flow.type_.shape
        return tensor_type(self.dtype, UNKNOWN_RANK if shape == UNKNOWN_RANK else shape[1:])

    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        """The array with ``value`` as element ``index``."""
        tensor = convert_to_tensor(value)
        if tensor.dtype is not self.dtype:
            what = f"{describe(tensor)} for an array of {self.dtype.name}"
            raise failed("TensorArray.write", GraphError(what, "Cast it with tf.cast."))
        known = tensor.type_.shape
        self._need_shape("TensorArray.write", tensor, tensor.get_shape())
        result = tensor_type(self.dtype, UNKNOWN_RANK if known == UNKNOWN_RANK else (self._rows(), *known))
        position = convert_to_tensor(index)
        written = self._once("TensorArray.write", position)
        body = self._marking(grown if self.dynamic_size else write_element, position)
        made = self.with_flow(
            self._declare("TensorArrayWrite", body, result, [self.flow, tensor, position], name)
        )
        made._written, made._is_noted = written, made._is_noted or constant_value(position) is None
        return made

    def read(self, index: Any, name: str | None = None) -> Tensor:
        """Element ``index``; a run raises IndexError for one that is not there."""
        position = convert_to_tensor(index)
        return self._looked(
            "TensorArrayRead", read_element, self._element_type(), [self.flow, position], name
        )

    def stack(self, name: str | None = None) -> Tensor:
        """All elements along a new first axis."""
        return self._looked("TensorArrayStack", all_elements, self.flow.type_, [self.flow], name)

    def gather(self, indices: Any, name: str | None = None) -> Tensor:
        """The elements of ``indices`` along a new first axis."""
        positions, shape = convert_to_tensor(indices), self.flow.type_.shape
        count = positions.type_.shape[0]
        result = tensor_type(self.dtype, shape if shape == UNKNOWN_RANK else (count, *shape[1:]))
        return self._looked("TensorArrayGather", chosen_elements, result, [self.flow, positions], name)

    def concat(self, name: str | None = None) -> Tensor:
        """The elements behind each other along their own first axis."""
        shape = self.flow.type_.shape
        rest = UNKNOWN_RANK if shape == UNKNOWN_RANK else (new_unknown_size(), *shape[2:])
        result = tensor_type(self.dtype, rest)
        return self._looked("TensorArrayConcat", joined_elements, result, [self.flow], name)

    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """The array of the slices of ``value`` along its first axis; elements behind them are zeros.

        Raises InvalidArgumentError where an element is written already, and for more slices than elements.
        """
        self._need_unwritten("TensorArray.unstack")
        tensor = convert_to_tensor(value, self.dtype)
        self._need_shape("TensorArray.unstack", tensor, tensor.get_shape()[1:])
        shape, size = tensor.type_.shape, self._size
        if size is None or (shape != UNKNOWN_RANK and shape[:1] == (size,)):
            flow = identity(tensor, name=name)
        else:
            flow = filled_up(tensor, size, name=name)
        made = self.with_flow(self._if_unwritten(flow))
        made._size, made._written = size, None
        return made

    def pack(self, name: str | None = None) -> Tensor:
        """``stack``, as it was named before TensorFlow 1."""
        return self.stack(name)

    def unpack(self, value: Any, name: str | None = None) -> TensorArray:
        """``unstack``, as it was named before TensorFlow 1."""
        return self.unstack(value, name)

    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        """The array of the parts of ``value`` along its first axis.

        Raises ArgumentError unless all ``lengths`` are equal or the array has ``infer_shape=False``, and they are as
        many as it has elements if it cannot grow, InvalidArgumentError where an element is written already.
        """
        self._need_unwritten("TensorArray.split")
        tensor, known = convert_to_tensor(value, self.dtype), constant_value(convert_to_tensor(lengths))
        for length in [None] if known is None else numpy.unique(known).tolist():
            self._need_shape(
                "TensorArray.split", tensor, TensorShape([length]).concatenate(tensor.get_shape()[1:])
            )
        if _has_parts(known, self._infers):
            return PartsArray.of(self, tensor, lengths, name)
        parts = equal_parts(tensor, lengths, self._size, name=name)
        made = self.with_flow(self._if_unwritten(parts))
        made._size, made._written = None, None
        return made

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """The array with the slices of ``value`` as elements ``indices``."""
        positions, rows = convert_to_tensor(indices), convert_to_tensor(value)
        if rows.dtype is not self.dtype:
            what = f"{describe(rows)} for an array of {self.dtype.name}"
            raise failed("TensorArray.scatter", GraphError(what, "Cast it with tf.cast."))
        self._need_shape("TensorArray.scatter", rows, rows.get_shape()[1:])
        found = rows.type_.shape
        result = tensor_type(
            self.dtype, UNKNOWN_RANK if found == UNKNOWN_RANK else (self._rows(), *found[1:])
        )
        written = self._once("TensorArray.scatter", positions)
        body = self._marking(scattered_grown if self.dynamic_size else scattered, positions)
        made = self.with_flow(
            self._declare("TensorArrayScatter", body, result, [self.flow, rows, positions], name)
        )
        made._written, made._is_noted = written, made._is_noted or constant_value(positions) is None
        return made

    def size(self, name: str | None = None) -> Tensor:
        """The number of elements."""
        found = self._declare("TensorArraySize", element_count, _SIZE, [self.flow], name)
        if not at_once():
            source_of(found)[0].looks = "size" if self.dynamic_size else None
        return found

    def _looked(
        self, type: str, body: Any, result: TensorType, tensors: Sequence[Tensor], name: str | None
    ) -> Tensor:
        found = self._declare(type, body, result, tensors, name)
        if not at_once():
            source_of(found)[0].looks = "elements" if self.dynamic_size else None
        return found

    def identity(self) -> TensorArray:
        """The array itself."""
        return self

    def close(self, name: str | None = None) -> Any:
        """An operation that does nothing."""
        return get_default_graph().add("NoOp", name, (), ())


_SIZE = tensor_type(as_dtype("int32"))


class PartsArray(TensorArray):
    """An array whose elements have different first sizes, as ``split`` makes it.

    They are the parts of one tensor along its first axis, which is the flow.
    """

    _lengths: Tensor
    _starts: Tensor

    @classmethod
    def of(cls, array: TensorArray, value: Any, lengths: Any, name: str | None) -> PartsArray:
        """The parts of a value as the elements of an array that holds none yet."""
        made = cls.__new__(cls)
        vars(made).update(vars(array))
        made.flow = _split_apart(value, lengths, array._size, name=name)
        made._lengths, made._starts = convert_to_tensor(lengths), _starts_of(lengths)
        made._size, made._written = None, None
        return made

    def with_flow(self, flow: Tensor) -> TensorArray:
        """The same array with other elements."""
        made, plain = PartsArray.__new__(PartsArray), super().with_flow(flow)
        vars(made).update(vars(plain))
        made._lengths, made._starts = self._lengths, self._starts
        return made

    def _once(self, what: str, index: Any) -> frozenset[int] | None:
        """Raises InvalidArgumentError: whatever the index is, the flow has no elements of one shape to write."""
        message = f"{what}: the array was split into parts of different lengths, at {here()}"
        raise InvalidArgumentError(message, "Give split all parts, each element once.")

    def read(self, index: Any, name: str | None = None) -> Tensor:
        """Element ``index``; a run raises IndexError for one that is not there."""
        start, length = rows_at(self._starts, index), rows_at(self._lengths, index)
        found: Tensor = rows_at(self.flow, numbers_from(start, start + length), name=name)
        return found

    def stack(self, name: str | None = None) -> Tensor:
        """All elements along a new first axis; a run raises InvalidArgumentError unless they have one shape."""
        found: Tensor = _stacked(self.flow, self._lengths, name=name)
        return found

    def gather(self, indices: Any, name: str | None = None) -> Tensor:
        """The elements of ``indices`` along a new first axis; see ``stack``."""
        found: Tensor = rows_at(self.stack(), indices, name=name)
        return found

    def concat(self, name: str | None = None) -> Tensor:
        """The elements behind each other along their own first axis."""
        found: Tensor = identity(self.flow, name=name)
        return found

    def size(self, name: str | None = None) -> Tensor:
        """The number of elements."""
        found: Tensor = size_of(self._lengths, name=name)
        return found


def _has_parts(lengths: Any, infer_shape: bool) -> bool:
    """Whether an array that is split may hold parts of different lengths, which ``infer_shape`` refuses."""
    return not infer_shape and (lengths is None or len(set(numpy.ravel(lengths).tolist())) > 1)


@operation("TensorArraySplit")
def _split_apart(value: Any, lengths: Number, size: int | None) -> Any:
    found = numbers(lengths)
    if size is not None and len(found) != size:
        raise InvalidArgumentError(
            f"{len(found)} parts for an array of size {size}",
            "Give a length for each element, or make the array with dynamic_size=True.",
        )
    if sum(found) != value.shape[0] or min(found, default=0) < 0:
        raise InvalidArgumentError(f"parts of lengths {found} of {value.shape[0]} rows", "Split all rows.")
    return ops.copied(value)


@operation("TensorArrayStarts")
def _starts_of(lengths: Any) -> Any:
    return ops.subtract(ops.cast(ops.cumsum(lengths, 0), lengths.dtype), lengths)


@operation("TensorArrayStack")
def _stacked(flow: Any, lengths: Number) -> Any:
    found = numbers(lengths)
    if len(set(found)) > 1:
        raise InvalidArgumentError(
            f"elements of lengths {found}", "Stack elements of one shape, or use concat."
        )
    return ops.reshape(flow, (len(found), *found[:1], *tuple(flow.shape)[1:]))
