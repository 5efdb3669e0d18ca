"""The arguments of a run: nested fetches, and values that are fed, checked against what they are fed for.

What functions of the host return is checked as values that are fed are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy

from twofold import _core
from twofold.dtypes import bfloat16, string
from twofold.errors import GraphError, InvalidArgumentError, TwofoldError, invalid
from twofold.ir.types import TensorType, tensor_type
from twofold.runtime.failures import end_at, note
from twofold.runtime.tracing import here
from twofold.static.graph.graph import Operation, describe, operation_of, owner_of
from twofold.static.graph.inference import Source
from twofold.static.graph.string_table import encode, holds_strings
from twofold.static.graph.tensor_shape import fits, shape_text, sizes_of_shape
from twofold.static.session.conversions import conversion_of
from twofold.tracebacks import ends_in_callback

if TYPE_CHECKING:
    from twofold.static.session.session import BaseSession

Tensor = _core.Tensor


def check_feed(tensor: Tensor, type: TensorType) -> None:
    """Raise GraphError if a value of ``type`` cannot be fed for ``tensor``."""
    declared = tensor.type_
    if type.dtype is declared.dtype and fits(type.shape, declared.shape):
        return
    if tensor.op.python is not None:
        raise _wrong_shape(tensor, type.dtype, type.shape)
    fix = (
        "Feed values of its dtype."
        if type.dtype is not declared.dtype
        else "Feed an array of its shape, or declare it with None where sizes vary."
    )
    raise GraphError(
        f"feed: a value {type.dtype.name}{shape_text(type.shape)} does not fit {describe(tensor)}, at {here()}",
        fix,
    )


def feed_type(tensor: Tensor, shape: Any, what: str = "compile") -> TensorType:
    """The type of a feed of a shape (None: as declared); raises GraphError if it does not fit or leaves sizes open.

    ``what`` is what asks for it.
    """
    declared = tensor.type_
    type = declared if shape is None else tensor_type(declared.dtype, sizes_of_shape(shape))
    if any(size < 0 for size in type.shape):
        raise GraphError(
            f"{what}: the shape {shape_text(type.shape)} for {describe(tensor)} leaves sizes open, at {here()}",
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
    if dtype is bfloat16:
        return _core.from_array(array.astype(numpy.float32), False).to(dtype)
    return array.astype(dtype.numpy)


def fed_tensor(tensor: Tensor, value: Any) -> Tensor:
    """What a run computes with where ``value`` is fed for ``tensor``."""
    found = feed_value(tensor, value)
    return found if isinstance(found, Tensor) else _core.from_array(found, False, tensor.dtype.code)


def kept_feeds(feeds: Mapping[Any, Any], most: int) -> dict[Any, Any]:
    """Feeds, with copies of arrays of up to ``most`` bytes, which the program may write to."""
    return {
        key: value.copy() if isinstance(value, numpy.ndarray) and value.nbytes <= most else value
        for key, value in feeds.items()
    }


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
    error = InvalidArgumentError(f"{operation.name} ({operation.where}): {what}", fix)
    return end_at(error, _core.location_of(operation.outputs[0])) if operation.outputs else error


def _of_the_run(operation: Operation, error: Exception) -> Exception:
    """An error of a function of the package, as the InvalidArgumentError of a run, at the line that declares it."""
    if isinstance(error, TwofoldError) and not isinstance(error, GraphError):
        # what the function raised names the line of the run
        what = error.what.removesuffix(f", at {here()}")
        error = invalid(type(error))(f"{what}, at {operation.where}", error.fix)
    elif type(error) is ValueError:  # of NumPy or the standard library, about the values
        what = str(error).removesuffix(".")
        error = InvalidArgumentError(f"{operation.name} ({operation.where}): {what}", "Give other values.")
    if operation.outputs:
        end_at(error, _core.location_of(operation.outputs[0]))
    return error


def _wrong_shape(tensor: Tensor, dtype: Any, shape: Any) -> BaseException:
    what = f"the function returned {dtype.name}{shape_text(shape)} for {describe(tensor)}"
    return _wrong_result(tensor.op, what, "Return what is declared, or set another shape.")


def call_python(operation: Operation, arrays: Sequence[Any]) -> list[numpy.ndarray]:
    """The outputs of a ``py_func``; raises InvalidArgumentError if they are not what was declared."""
    assert operation.python is not None
    try:
        made = operation.python(*arrays)
    except Exception as error:
        wrong = error if ends_in_callback(error) else _of_the_run(operation, error)
        note(wrong, f"in the function of {operation.name}, declared at {operation.where}")
        raise wrong from None
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
        if not fits(array.shape, tensor.type_.shape):
            raise _wrong_shape(tensor, tensor.dtype, array.shape)
        found.append(array)
    return found


class Fetches:
    """The leaves of a nested fetch, and how the results are put together again."""

    def __init__(self, session: BaseSession, fetches: Any) -> None:
        self.session = session
        self.sources: list[Source] = []
        self.operations: list[Operation] = []
        self.key: list[Any] = []
        self.rebuild = self._structure(fetches)

    def _structure(self, item: Any) -> Callable[[Sequence[Any]], Any]:
        if isinstance(item, Mapping):
            parts = {key: self._structure(value) for key, value in item.items()}
            kind: Any = type(item)
            return lambda arrays: kind((key, part(arrays)) for key, part in parts.items())
        if isinstance(item, (list, tuple)):
            nested = [self._structure(value) for value in item]
            if hasattr(item, "_fields"):
                return lambda arrays: type(item)(*[part(arrays) for part in nested])
            kind_ = tuple if isinstance(item, tuple) else list
            return lambda arrays: kind_(part(arrays) for part in nested)
        if (registered := conversion_of(item)) is not None:
            inner, contract = registered.fetch(item)
            rebuilt = self._structure(inner)
            return lambda arrays: contract(rebuilt(arrays))
        if hasattr(item, "parts"):
            each = [self._leaf(part, False) for part in item.parts]
            return lambda arrays: item.fetched([part(arrays) for part in each])
        return self._leaf(item)

    def _leaf(self, item: Any, apart: bool = True) -> Callable[[Sequence[Any]], Any]:
        element = self.session._element(item, "fetch")
        if isinstance(element, Operation):
            self.operations.append(element)
            return lambda arrays: None
        operation, index = operation_of(element), owner_of(element)[1]  # type: ignore[index]
        self.sources.append((operation, index))
        offset = len(self.sources) - 1
        axes = operation.graph.sequence_axes
        lengths = axes.lengths_of(element) if axes and apart else None
        if lengths is None:
            return lambda arrays: arrays[offset]
        self.sources.append(lengths)
        return lambda arrays: axes.apart(arrays[offset], arrays[offset + 1])


NESTED = (list, tuple, dict)


def leaves(fetches: Any) -> Iterator[Any]:
    """What is fetched by nested lists, tuples and dicts."""
    if type(fetches) in NESTED:
        for item in fetches.values() if type(fetches) is dict else fetches:
            yield from leaves(item)
    else:
        yield fetches


def nested_key(fetches: Any) -> Any:
    """Equal for equal structures of the very same tensors."""
    kind = type(fetches)
    if kind is dict:
        return (kind, *fetches, *map(nested_key, fetches.values()))
    return (kind, *map(nested_key, fetches)) if kind in NESTED else id(fetches)
