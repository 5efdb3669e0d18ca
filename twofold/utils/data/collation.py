"""Samples collected to batches."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy

from twofold import _core
from twofold.dtypes import float64
from twofold.frontend.creation import from_numpy, tensor
from twofold.ops.base import FUNCTIONS

Tensor = _core.Tensor
Functions = dict[Any, Callable[..., Any]]


def default_collate(batch: Sequence[Any]) -> Any:
    """Samples as one batch: tensors and numbers are stacked, tuples and dictionaries member by member.

    ``default_collate_fn_map`` says what is done with samples of a type; programs may add types of their own.

    >>> import twofold as torch
    >>> torch.utils.data.default_collate([{"x": 1, "y": "a"}, {"x": 2, "y": "b"}])
    {'x': tensor([1, 2]), 'y': ['a', 'b']}
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


def collate(batch: Sequence[Any], *, collate_fn_map: Functions | None = None) -> Any:
    """Samples as one batch, by functions for types; containers member by member.

    Args:
        batch: Samples of one type.
        collate_fn_map: A function for each type or tuple of types, called with the samples and ``collate_fn_map``.

    Raises TypeError for samples that are neither of such a type nor containers.
    """
    first, functions = batch[0], collate_fn_map or {}
    function = functions.get(type(first))
    if function is None:
        function = next((one for types, one in functions.items() if isinstance(first, types)), None)
    if function is not None:
        return function(batch, collate_fn_map=collate_fn_map)

    def joined(parts: Sequence[Any]) -> Any:
        return collate(parts, collate_fn_map=collate_fn_map)

    if isinstance(first, Mapping):
        return _like(first, {key: joined([sample[key] for sample in batch]) for key in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(joined(part) for part in zip(*batch, strict=True)))
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        return _sequence_like(first, [joined(part) for part in zip(*batch, strict=True)])
    raise _unknown(type(first))


def _unknown(kind: Any) -> TypeError:
    return TypeError(
        f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {kind}"
    )


def collate_tensor_fn(batch: Sequence[Tensor], *, collate_fn_map: Functions | None = None) -> Tensor:
    """Tensors along a new first axis."""
    return FUNCTIONS["stack"](list(batch))


def collate_numpy_array_fn(batch: Sequence[Any], *, collate_fn_map: Functions | None = None) -> Tensor:
    """Arrays along a new first axis; raises TypeError for those of texts and objects."""
    if batch[0].dtype.kind in "SUaO":
        raise _unknown(batch[0].dtype)
    return from_numpy(numpy.stack(batch))


def collate_numpy_scalar_fn(batch: Sequence[Any], *, collate_fn_map: Functions | None = None) -> Tensor:
    """NumPy's numbers as a vector of their dtype."""
    return from_numpy(numpy.array(batch))


def collate_float_fn(batch: Sequence[float], *, collate_fn_map: Functions | None = None) -> Tensor:
    """Numbers with fractions as a vector of float64."""
    return tensor(batch, dtype=float64)


def collate_int_fn(batch: Sequence[int], *, collate_fn_map: Functions | None = None) -> Tensor:
    """Integers as a vector."""
    return tensor(batch)


def collate_str_fn(batch: Sequence[Any], *, collate_fn_map: Functions | None = None) -> Any:
    """Texts as they are."""
    return batch


default_collate_fn_map: Functions = {
    Tensor: collate_tensor_fn,
    numpy.ndarray: collate_numpy_array_fn,
    (numpy.bool_, numpy.number): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def _sequence_like(sequence: Sequence[Any], made: list[Any]) -> Any:
    """``made`` as a sequence of the class of another one, where that can be made; a list for tuples."""
    if isinstance(sequence, tuple):
        return made
    try:
        if not isinstance(sequence, MutableSequence):
            return type(sequence)(made)  # type: ignore[call-arg]
        found = copy.copy(sequence)
        for position, value in enumerate(made):
            found[position] = value
        return found
    except TypeError:
        return made


def _like(mapping: Mapping[Any, Any], made: dict[Any, Any]) -> Any:
    """``made`` as a mapping of the class of another one, where that can be made of a dictionary."""
    try:
        if isinstance(mapping, MutableMapping):
            found = copy.copy(mapping)
            found.update(made)
            return found
        return type(mapping)(made)  # type: ignore[call-arg]
    except TypeError:
        return made


def default_convert(data: Any) -> Any:
    """A sample with tensors in place of NumPy's arrays and numbers; tuples become lists.

    >>> import numpy
    >>> from twofold.utils.data import default_convert
    >>> default_convert(({"x": numpy.array([1, 2])}, 3, "a"))
    [{'x': tensor([1, 2])}, 3, 'a']
    """
    if isinstance(data, numpy.ndarray):
        return data if data.dtype.kind in "SUaO" else from_numpy(data)
    if isinstance(data, numpy.generic):
        return data if isinstance(data, (numpy.str_, numpy.bytes_)) else tensor(data)
    if isinstance(data, Mapping):
        return _like(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(default_convert, data))
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return [default_convert(one) for one in data]
    return data
