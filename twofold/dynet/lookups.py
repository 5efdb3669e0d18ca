"""Tables of parameters: rows are looked up as leaves of the graph, so that gradients and updates touch no others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy

from twofold import _core
from twofold.dynet.expression import Expression, batched, to_array
from twofold.dynet.graph import operation, replayable, state
from twofold.dynet.parameters import Parameter
from twofold.frontend.creation import CREATION, from_numpy
from twofold.frontend.install import PUBLIC

Rows = tuple[numpy.ndarray[Any, Any], Any]
"""Indices of rows, and their gradients."""

_row_of, _rows_of, _gradients_of_rows = _core.row_of, _core.rows_of, _core.gradients_of_rows
_cat = PUBLIC["cat"]


class LookupParameters(Parameter):
    """A table of vectors, or of expressions of more dimensions, by number.

    >>> import twofold.dynet as dy
    >>> table = dy.ParameterCollection().add_lookup_parameters((5, 2), init=3)
    >>> table[1].value(), table.batch([0, 4]).dim()
    ([3.0, 3.0], ((2,), 2))
    """

    __slots__ = ("_count", "_leaf", "_leaves", "_numbers", "_pieces", "_table")
    kind = "LookupParameter"

    def __init__(self, values: Any, name: str, collection: Any) -> None:
        # memory of its own, in which rows are written
        self._table = from_numpy(numpy.array(values.numpy()))
        self._name, self._updated, self.collection, self._batch = name, True, collection, 1
        self._count = int(self._table.shape[0])
        self._numbers: list[Any] = []
        self._leaves: list[Any] = []
        self._pieces: list[Rows] = []
        self._leaf: Any = None

    def __repr__(self) -> str:
        return f"LookupParameter {self._name}"

    @property
    def _tensor(self) -> Any:
        """The whole table as a leaf, for those who use it as an expression."""
        if self._leaf is None:
            self._leaf = self._table.detach()
            self._leaf.requires_grad = True
        return self._leaf

    def _stored(self) -> Any:
        return self._table

    def _arranged(self, axes: tuple[int, ...]) -> tuple[int, ...]:
        return (axes[0], *axes[:0:-1])

    def _tracked(self, numbers: Any, leaf: Any) -> Any:
        """The copy of one row or several as a leaf whose gradient is that of the rows."""
        if not self._leaves:
            state.dependents.append(self)
        self._numbers.append(numbers)
        self._leaves.append(leaf)
        return leaf

    def _forget(self) -> None:
        """Keep the gradients of a graph, and forget its other leaves."""
        found = [one for one in zip(self._numbers, self._leaves) if one[1].grad is not None]
        self._numbers, self._leaves = [one[0] for one in found], [one[1] for one in found]

    def _gathered(self) -> list[Rows]:
        found = _gradients_of_rows(self._table, self._leaves) if self._leaves else None
        if found is None:
            return self._pieces
        which, gradients = found
        numbers = self._numbers
        if len(which) < len(numbers):
            numbers = [numbers[k] for k in which]
        if len(which) < len(gradients):  # several rows in a leaf
            return [*self._pieces, (numpy.concatenate([numpy.atleast_1d(one) for one in numbers]), gradients)]
        return [*self._pieces, (numpy.array(numbers, numpy.int64).reshape(-1), gradients)]

    def _gradient_of_rows(self) -> Rows | None:
        """The rows with a gradient, each once, and their gradients."""
        pieces = self._gathered()
        if not pieces:
            return None
        positions, gradients = pieces[0]
        if len(pieces) > 1:
            positions = numpy.concatenate([one for one, _ in pieces])
            gradients = _cat([one for _, one in pieces])
        found, order = numpy.unique(positions, return_inverse=True)
        if len(found) == len(positions):
            return positions, gradients
        sums = CREATION["zeros"]((len(found), *gradients.shape[1:]))
        return found, sums.index_add(0, from_numpy(order.reshape(-1)), gradients)

    def _read_whole(self) -> bool:
        """Whether a gradient arrived at the whole table."""
        return self._leaf is not None and self._leaf.grad is not None

    def _gradient(self) -> Any:
        whole = None if self._leaf is None else self._leaf.grad
        if whole is None:
            whole = CREATION["zeros_like"](self._table)
        rows = self._gradient_of_rows()
        return whole if rows is None else whole.detach().index_add(0, from_numpy(rows[0]), rows[1])

    def scale_gradient(self, s: float) -> None:
        """Multiply the gradient by ``s``."""
        self._pieces = [(positions, gradient * s) for positions, gradient in self._gathered()]
        self._numbers, self._leaves = [], []
        if self._leaf is not None and self._leaf.grad is not None:
            self._leaf.grad = self._leaf.grad.detach() * s

    def _clear(self) -> None:
        """Forget gradients and leaves."""
        self._numbers, self._leaves, self._pieces, self._leaf = [], [], [], None

    def _set(self, value: Any) -> None:
        state.updates += 1
        self._forget()
        with _core.GradientMode(False):
            self._table._assign(from_numpy(numpy.array(value.numpy())))

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> Expression:
        if state.watcher is None and index.__class__ is int and 0 <= index < self._count:
            return Expression(self._tracked(index, _row_of(self._table, index, True)))
        return lookup(self, index)

    def __iter__(self) -> Iterator[Expression]:
        return (lookup(self, i) for i in range(len(self)))

    def batch(self, i: Sequence[int]) -> Expression:
        """A batch of rows."""
        return lookup_batch(self, i)

    def expr(self) -> LookupParameters:
        """The whole table, which is an expression itself."""
        return self

    def init_from_array(self, arr: Any) -> None:
        """Assign the first rows."""
        array = numpy.asarray(arr, numpy.float32)
        if len(array) > len(self):
            raise ValueError(f"{len(array)} rows for {self} of {len(self)}")
        values = self.as_array()
        values[: len(array)] = array
        self._assign_array(values)

    def init_row(self, i: int, row: Any) -> None:
        """Assign a row, from a list of its numbers column by column."""
        values = self._table.numpy().copy()
        values[i] = numpy.asarray(row, numpy.float32).reshape(values[i].shape)
        self._set(from_numpy(values))

    def row_as_array(self, row: int) -> numpy.ndarray[Any, Any]:
        """The values of a row."""
        return to_array(self._table[row], 1)

    def rows_as_array(self, rows: Sequence[int]) -> numpy.ndarray[Any, Any]:
        """The values of some rows."""
        return self.as_array()[list(rows)]

    def row_grad_as_array(self, row: int) -> numpy.ndarray[Any, Any]:
        """The gradient of a row."""
        return to_array(self._gradient()[row], 1)

    def rows_grad_as_array(self, rows: Sequence[int]) -> numpy.ndarray[Any, Any]:
        """The gradients of some rows."""
        return self.grad_as_array()[list(rows)]


class LookedUp(Expression):
    """A row of a table whose index may be assigned."""

    __slots__ = ("index",)

    def set(self, i: Any) -> None:
        """Look up another row when a value is next looked at."""
        self.index = i
        replayable().outdated = True


def lookup(p: LookupParameters, index: int | None = None, update: bool = True) -> Expression:
    """The row of a table at ``index``; without an index the first, until another is assigned by ``set``.

    With ``update=False`` it is a constant, through which no gradient flows.

    >>> import twofold.dynet as dy
    >>> table = dy.Model().add_lookup_parameters((3, 2), init=1)
    >>> dy.lookup(table, 2).value()
    [1.0, 1.0]
    """
    if index is not None:
        return _row(p, index, update)
    replayable()
    made = LookedUp(p._table)
    made.index = 0
    return _assigned_row(made, p, update)


@operation
def _row(p: LookupParameters, index: int, update: bool) -> Expression:
    index = int(index)
    if not 0 <= index < len(p):
        raise IndexError(f"row {index} of {p}, which has {len(p)} rows. Use one from 0 to {len(p) - 1}.")
    row = _row_of(p._table, index, update)
    return Expression(p._tracked(index, row) if update else row)


@operation
def _assigned_row(made: LookedUp, p: LookupParameters, update: bool) -> Expression:
    made._tensor = _row(p, made.index, update)._tensor
    return made


@operation
def lookup_batch(p: LookupParameters, indices: Sequence[int], update: bool = True) -> Expression:
    """A batch of the rows of a table at ``indices``."""
    positions = numpy.fromiter(indices, numpy.int64)
    if positions.size and not 0 <= positions.min() <= positions.max() < len(p):
        raise IndexError(f"rows {positions.min()} to {positions.max()} of a table of {len(p)}")
    rows = _rows_of(p._table, positions, update)
    return batched(p._tracked(positions, rows) if update else rows)
