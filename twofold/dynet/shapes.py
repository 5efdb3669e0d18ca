"""What moves elements: picks, ranges, reshapes, concatenations, and the elements of a batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy

from twofold import _core
from twofold.dynet.expression import Expression, batched, element, of_rank, rank_of, sliced
from twofold.dynet.graph import operation, replayable, state
from twofold.errors import ShapeError, describe_operand
from twofold.frontend.creation import from_numpy
from twofold.frontend.install import PUBLIC
from twofold.ir.op import REGISTRY

_cat, _stack = PUBLIC["cat"], PUBLIC["stack"]
_record, _SLICE = _core.record, REGISTRY["slice"]


def indices_of(values: Iterable[int]) -> Any:
    """A tensor of indices."""
    return from_numpy(numpy.fromiter(values, numpy.int64))


class PickedElement(Expression):
    """An element whose index may be assigned later."""

    __slots__ = ("index",)

    def set_index(self, i: int) -> None:
        """Pick another element when a value is next looked at."""
        self.index = i
        replayable().outdated = True


def pick(e: Expression, index: int | None = None, dim: int = 0) -> Expression:
    """The element at ``index`` along ``dim``, which disappears; without an index the first, until ``set_index``.

    >>> import twofold.dynet as dy
    >>> dy.pick(dy.inputVector([5, 6, 7]), 2).value()
    7.0
    """
    if index is not None:
        return _picked(e, int(index), dim)
    replayable()
    made = PickedElement(e._tensor, e._batch)
    made.set_index(0)
    found = _assigned_element(made, e, dim)
    made._tensor, made._batch = found._tensor, found._batch
    return made


@operation
def _picked(e: Expression, index: int, dim: int) -> Expression:
    return element(e, index, dim)


@operation
def _assigned_element(made: PickedElement, e: Expression, dim: int) -> Expression:
    found = element(e, made.index, dim)
    made._tensor, made._batch = found._tensor, found._batch
    return made


def along_batch(e: Expression, indices: Sequence[int], dim: int) -> Expression:
    """The element at ``indices[i]`` along ``dim`` of the ``i``-th element of the batch."""
    count = len(indices)
    tensor = of_rank(e, dim + 1)
    if e._batch == 1:
        if count == 1:
            return element(e, int(indices[0]), dim)
        picked = tensor.index_select(tensor.ndim - 1 - dim, indices_of(indices))
        return Expression(PUBLIC["movedim"](picked, tensor.ndim - 1 - dim, 0), count)
    if count != e._batch:
        raise ValueError(
            f"{count} indices for a batch of {e._batch} elements of dimensions {e.dim()[0]}. Give one for each element."
        )
    shape = list(tensor.shape)
    axis = tensor.ndim - 1 - dim
    shape[axis] = 1
    positions = indices_of(indices).reshape(count, *[1] * (tensor.ndim - 1)).expand(*shape)
    return Expression(tensor.gather(axis, positions).squeeze(axis), count)


@operation
def pick_batch(e: Expression, indices: Sequence[int], dim: int = 0) -> Expression:
    """One element along ``dim`` for each element of the batch.

    >>> import twofold.dynet as dy
    >>> x = dy.inputTensor([[1, 2], [3, 4]], batched=True)
    >>> dy.pick_batch(x, [0, 1]).value()
    [1.0, 4.0]
    """
    return along_batch(e, indices, dim)


def pick_range(x: Expression, s: int, e: int, d: int = 0) -> Expression:
    """The elements from ``s`` to before ``e`` along dimension ``d``.

    >>> import twofold.dynet as dy
    >>> dy.pick_range(dy.inputVector([5, 6, 7]), 1, 3).value()
    [6.0, 7.0]
    """
    if state.watcher is None and x._batch == 1 and d == 0:
        tensor = x._tensor
        if tensor.ndim == 1 and 0 <= s < e <= len(tensor):
            return Expression(_record(_SLICE, ((e - s,), (1,), (0,)), (tensor, s)))
    return _picked_range(x, s, e, d)


@operation
def _picked_range(x: Expression, s: int, e: int, d: int) -> Expression:
    tensor = of_rank(x, d + 1)
    size = tensor.shape[-1 - d]
    if not 0 <= s < e <= size:
        raise ValueError(f"pick_range: {s} to {e} of dimension {d} of size {size}. Use 0 <= s < e <= {size}.")
    return Expression(tensor.narrow(tensor.ndim - 1 - d, s, e - s), x._batch)


@operation
def pickrange(x: Expression, s: int, e: int) -> Expression:
    """The older name of ``pick_range`` along the first dimension."""
    return pick_range(x, s, e)


@operation
def pick_batch_elem(x: Expression, v: int) -> Expression:
    """The element ``v`` of the batch."""
    if not 0 <= v < x._batch:
        raise ValueError(f"pick_batch_elem: element {v} of a batch of {x._batch}")
    return Expression(x._tensor.index_select(0, int(v)), 1) if x._batch != 1 else x


@operation
def pick_batch_elems(x: Expression, vs: Sequence[int]) -> Expression:
    """The elements ``vs`` of the batch as a new one."""
    return batched(_with_batch(x).index_select(0, indices_of(vs)))


def _with_batch(x: Expression) -> Any:
    return x._tensor if x._batch != 1 else x._tensor.unsqueeze(0)


@operation
def strided_select(
    x: Expression, strides: Sequence[int], range_from: Sequence[int], range_to: Sequence[int]
) -> Expression:
    """Every ``strides[i]``-th element from ``range_from[i]`` to before ``range_to[i]`` of dimension ``i``.

    What is left out is the whole dimension; the one after the last is the batch.
    """
    count = max(len(strides), len(range_from), len(range_to))
    parts = [[*given, *[None] * (count - len(given))] for given in (range_from, range_to, strides)]
    return sliced(x, tuple(slice(*one) for one in zip(*parts)))


@operation
def reshape(x: Expression, d: Any, batch_size: int = 1) -> Expression:
    """The same numbers, column by column, with dimensions ``d`` and a batch of ``batch_size``.

    A batch stays where ``d`` is as large as an element of it.

    >>> import twofold.dynet as dy
    >>> dy.reshape(dy.inputVector([1, 2, 3, 4]), (2, 2)).value()
    array([[1., 3.],
           [2., 4.]])
    """
    dims = list(d) if isinstance(d, (tuple, list)) else [d]
    size = int(numpy.prod(dims))
    tensor = x._tensor
    if x._batch != 1 and batch_size == 1 and size * x._batch == tensor.numel():
        batch_size = x._batch
    if size * batch_size != tensor.numel():
        raise ValueError(f"reshape: {x.dim()} cannot become {tuple(dims)} with a batch of {batch_size}")
    shape = dims[::-1]
    return Expression(tensor.reshape([batch_size, *shape] if batch_size != 1 else shape), batch_size)


@operation
def transpose(x: Expression, dims: Sequence[int] = (1, 0)) -> Expression:
    """Dimension ``dims[i]`` of ``x`` as dimension ``i``; without ``dims`` the transposed matrix."""
    rank = max(len(dims), rank_of(x))
    tensor = of_rank(x, rank)
    order = [*dims, *range(len(dims), rank)]
    axes = [tensor.ndim - 1 - dim for dim in reversed(order)]
    return Expression(tensor.permute([0, *axes] if x._batch != 1 else axes), x._batch)


@operation
def select_rows(x: Expression, rs: Sequence[int]) -> Expression:
    """The rows ``rs`` of a matrix."""
    tensor = of_rank(x, 1)
    return Expression(tensor.index_select(tensor.ndim - 1, indices_of(rs)), x._batch)


@operation
def select_cols(x: Expression, cs: Sequence[int]) -> Expression:
    """The columns ``cs`` of a matrix."""
    tensor = of_rank(x, 2)
    return Expression(tensor.index_select(tensor.ndim - 2, indices_of(cs)), x._batch)


def _of_one_batch(what: str, xs: Sequence[Expression], rank: int) -> tuple[list[Any], int]:
    """The tensors with one rank and one size of the batch."""
    if not xs:
        raise ValueError(f"{what}: the list of expressions is empty")
    batch = max(x._batch for x in xs)
    rank = max(rank, *[rank_of(x) for x in xs]) if len(xs) > 1 else max(rank, rank_of(xs[0]))
    tensors = [of_rank(x, rank) for x in xs]
    if batch != 1:
        for position, (x, tensor) in enumerate(zip(xs, tensors)):
            if x._batch == 1:
                tensors[position] = tensor.expand(batch, *tensor.shape)
            elif x._batch != batch:
                raise ValueError(f"{what}: batches of {x._batch} and {batch}. Give all the same, or 1.")
    return tensors, batch


def concatenate(xs: Iterable[Expression], d: int = 0) -> Expression:
    """Expressions one after the other along dimension ``d``.

    >>> import twofold.dynet as dy
    >>> dy.concatenate([dy.inputVector([1, 2]), dy.scalarInput(3)]).value()
    [1.0, 2.0, 3.0]
    """
    items = xs if isinstance(xs, list) else list(xs)
    if state.watcher is None and d == 0 and len(items) > 1:
        tensors = [x._tensor for x in items if x._batch == 1 and x._tensor.ndim == 1]
        if len(tensors) == len(items):
            return Expression(_joined("concatenate", items, 0, _cat, tensors))
    return _concatenated(items, d)


@operation
def _concatenated(items: list[Expression], d: int) -> Expression:
    tensors, batch = _of_one_batch("concatenate", items, d + 1)
    if len(tensors) == 1:
        return Expression(tensors[0], batch)
    return Expression(_joined("concatenate", items, d, _cat, tensors, -1 - d), batch)


def _joined(what: str, items: Sequence[Expression], d: int | None, join: Any, *given: Any) -> Any:
    """What ``join`` gives, with errors of shapes in the dimensions of DyNet, of which ``d`` may differ."""
    try:
        return join(*given)
    except ShapeError as error:
        dims = [list(x.dim()[0]) for x in items]
        count = max(len(one) for one in dims)
        full = [[*one, *[1] * (count - len(one))] for one in dims]
        rest = [[size for k, size in enumerate(one) if k != d] for one in full]
        k = next(k for k, one in enumerate(rest) if one != rest[0])
        first, other = (
            describe_operand(name, f"{tuple(dims[j])}", items[j]._tensor._where)
            for name, j in (("beside", 0), ("of dimensions", k))
        )
        besides = "" if d is None else f" besides dimension {d}"
        worded = ShapeError(
            f"{what}: expression {k} {other} {first}",
            f"Give expressions of the same dimensions{besides}.",
        )
        worded.__traceback__ = error.__traceback__
        raise worded from None


@operation
def concatenate_cols(xs: Iterable[Expression]) -> Expression:
    """Columns, or matrices, beside one another."""
    items = list(xs)
    if items and all(x._batch == 1 and x._tensor.ndim == 1 for x in items):
        return Expression(_joined("concatenate_cols", items, 1, _stack, [x._tensor for x in items]))
    tensors, batch = _of_one_batch("concatenate_cols", items, 2)
    return Expression(_joined("concatenate_cols", items, 1, _cat, tensors, -2), batch)


@operation
def concatenate_to_batch(xs: Iterable[Expression]) -> Expression:
    """Expressions as the elements of a batch."""
    items = list(xs)
    if not items:
        raise ValueError("concatenate_to_batch: the list of expressions is empty")
    rank = max(rank_of(x) for x in items)
    tensors = [of_rank(x, rank) for x in items]
    rows = [t if x._batch != 1 else t.unsqueeze(0) for x, t in zip(items, tensors)]
    return batched(_joined("concatenate_to_batch", items, None, _cat, rows, 0))


@operation
def fold_rows(x: Expression, nrows: int = 2) -> Expression:
    """The sums of ``nrows`` rows each."""
    tensor = of_rank(x, 2)
    rows = tensor.shape[-1]
    if rows % nrows:
        raise ValueError(f"fold_rows: {rows} rows cannot be added up by {nrows}")
    return Expression(tensor.reshape(*tensor.shape[:-1], rows // nrows, nrows).sum(-1), x._batch)


@operation
def kmh_ngram(x: Expression, v: int) -> Expression:
    """The sums of ``v`` neighbouring columns each."""
    tensor = of_rank(x, 2)
    count = tensor.shape[-2] - v + 1
    if count < 1:
        raise ValueError(f"kmh_ngram: {v} columns of {tensor.shape[-2]}")
    parts = [tensor.narrow(tensor.ndim - 2, start, count) for start in range(v)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return Expression(total, x._batch)
