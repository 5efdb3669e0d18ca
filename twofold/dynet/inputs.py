"""Expressions of given numbers, of which some may be assigned others later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from twofold.dynet.elementwise import check_device
from twofold.dynet.expression import Expression
from twofold.dynet.graph import replayable, state
from twofold.dynet.noise import shape_of, tracked
from twofold.frontend.creation import from_numpy


def leaf(array: Any) -> Any:
    """A tensor of numbers that gradients are known for, row by row as ``array`` is."""
    return tracked(from_numpy(array))


def stored(array: Any) -> Any:
    """An array of DyNet's dimensions, the batch last, as it is stored."""
    return numpy.array(numpy.asarray(array).T, numpy.float32, order="C")


class Input(Expression):
    """An input whose numbers may be assigned."""

    __slots__ = ("_reusable",)
    _reusable: bool

    def set(self, data: Any) -> None:
        """Assign other numbers: what was computed from them is computed again when it is looked at.

        Raises RuntimeError in a graph that began without assignable inputs (``vecInput``, ``scalarInput``): its
        operations were not noted.

        >>> import twofold.dynet as dy
        >>> x = dy.vecInput(2)
        >>> y = x * 2
        >>> x.set([1, 3])
        >>> y.value()
        [2.0, 6.0]
        """
        watcher = state.watcher
        if not self._reusable or watcher is None or not watcher.replays:
            raise RuntimeError(
                "set: make inputs that are assigned by vecInput, scalarInput or reusable_expr=True"
            )
        numbers = numpy.asarray(data, numpy.float32)
        if numbers.size != self._tensor.numel():
            raise ValueError(
                f"set: {numbers.size} numbers for an input of dimensions {self.dim()}. Give {self._tensor.numel()}."
            )
        state.inputs.pop(id(self._tensor), None)
        self._tensor = leaf(numbers.reshape(tuple(self._tensor.shape)).copy())
        watcher.outdated = True


def _input(array: Any, batch: int = 1, reusable: bool = False, device: str = "") -> Input:
    check_device(device)
    made = Input(leaf(array), batch)
    made._reusable = reusable
    if reusable:
        replayable()
    return made


def scalarInput(s: float, device: str = "") -> Input:
    """A number, which may be assigned."""
    return _input(numpy.array([s], numpy.float32), 1, True, device)


def vecInput(dim: int, device: str = "") -> Input:
    """A vector of zeros until others are assigned.

    >>> import twofold.dynet as dy
    >>> x = dy.vecInput(2)
    >>> total = dy.sum_elems(x)
    >>> x.set([1, 2])
    >>> total.value()
    3.0
    """
    return _input(numpy.zeros(dim, numpy.float32), 1, True, device)


def inputVector(v: Any, device: str = "") -> Input:
    """A vector of the numbers of a list."""
    return _input(numpy.array(v, numpy.float32).reshape(-1), 1, _replays(), device)


def _replays() -> bool:
    return state.watcher is not None and state.watcher.replays


def matInput(d1: int, d2: int) -> Input:
    """A matrix of zeros until other numbers are assigned, column by column."""
    return _input(numpy.zeros((d2, d1), numpy.float32), 1, True)


def inputMatrix(v: Any, d: Any) -> Input:
    """A matrix of dimensions ``d`` from a list of its numbers, column by column."""
    return _input(numpy.array(v, numpy.float32).reshape(tuple(d)[::-1]), 1, _replays())


def inputTensor(arr: Any, batched: bool = False, device: str = "", reusable_expr: bool = False) -> Input:
    """An expression of an array.

    Args:
        arr: An array or nested lists; a list of arrays gives a batch of them.
        batched: Whether the last axis of ``arr`` is the batch.
        device: The name of the device: ``"CPU"``.
        reusable_expr: Whether other numbers may be assigned.

    >>> import numpy
    >>> import twofold.dynet as dy
    >>> dy.inputTensor(numpy.zeros((2, 3, 4)), batched=True).dim()
    ((2, 3), 4)
    """
    if isinstance(arr, list) and arr and all(isinstance(one, numpy.ndarray) for one in arr):
        arr, batched = numpy.stack(arr, -1), True
    if not isinstance(arr, (list, numpy.ndarray)):
        raise TypeError("inputTensor takes an array or a list of numbers. Give one of them.")
    array = stored(arr)
    if not batched:
        return _input(array, 1, reusable_expr, device)
    batch = array.shape[0]
    return _input(
        array if batch != 1 else array[0].reshape(array.shape[1:] or (1,)), batch, reusable_expr, device
    )


def inputTensorTranspose(val: Any, dim: Any = None, batch_size: int = 1, device: str = "") -> Input:
    """An expression of dimensions ``dim`` from a list of its numbers, column by column."""
    numbers = numpy.array(val, numpy.float32).reshape(-1)
    shape = shape_of((numbers.size,) if dim is None else dim, batch_size)
    if numpy.prod(shape) != numbers.size:
        raise ValueError(
            f"{numbers.size} numbers for dimensions {dim} and a batch of {batch_size}. Give as many as that."
        )
    return _input(numbers.reshape(shape), batch_size, False, device)


def sparse_inputTensor(
    idxs: Sequence[Any], values: Any, shape: Any, batched: bool = False, defval: float = 0, device: str = ""
) -> Input:
    """An expression that is ``defval`` but at some indices.

    Args:
        idxs: A list of indices for each dimension, the batch included.
        values: The numbers there.
        shape: The dimensions, the batch included.
        batched: Whether the last dimension is the batch.
        defval: The number elsewhere.
        device: The name of the device: ``"CPU"``.

    >>> import twofold.dynet as dy
    >>> dy.sparse_inputTensor([[0, 2]], [5, 7], (3,)).value()
    [5.0, 0.0, 7.0]
    """
    values = numpy.asarray(values, numpy.float32)
    if values.ndim != 1:
        raise TypeError("sparse_inputTensor: the values are a list of numbers")
    if len(idxs) != len(shape):
        raise ValueError(f"{len(idxs)} lists of indices for {len(shape)} dimensions. Give one list for each.")
    array = numpy.full(shape, defval, numpy.float32)
    array[tuple(numpy.asarray(one) for one in idxs)] = values
    return inputTensor(array, batched, device)
