"""Tables of rows that are looked up by number: single rows, and sums, means and maxima of bags of rows."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy

from twofold.dtypes import int32, int64
from twofold.errors import DTypeError, ShapeError
from twofold.ir.bind import constant
from twofold.ir.node import Attributes
from twofold.ir.types import TensorType
from twofold.ops.base import apply, broadcast, composite, convert, custom, filled, iota, ops, strong
from twofold.ops.elementwise.checks import class_number
from twofold.ops.examples import example
from twofold.ops.indexing.gather import need_index
from twofold.ops.reduction.softmax import floating
from twofold.ops.shape.movement import slice_axis


def _failure(self: Any, index: int, inputs: Sequence[TensorType], attrs: Attributes) -> tuple[str, str]:
    what = f"index {index} is outside a table of {attrs[0]} rows"
    return what, f"Use indices from 0 to {attrs[0] - 1}." if attrs[0] else "Use a table that has rows."


def _row_number() -> Any:
    """``class_number`` with the error messages of a table."""
    text = "``index`` itself, if each is the number of a row; inputs and attributes as of ``class_number``."
    body = {"failure": _failure, "__doc__": text, "functions": (), "returns_input": True}
    return custom(type("row_number", (type(class_number),), body))


row_number = _row_number()


def _looked_up(index: Any, weight: Any) -> Any:
    """The rows of a table at ``index``; the kernel fails for an index outside it."""
    if weight.ndim != 2:
        raise ShapeError(
            f"a weight with {weight.ndim} axes", "Use one of shape (num_embeddings, embedding_dim)."
        )
    known = apply("row_number", need_index(index), constant(0, int64), attrs=(weight.shape[0],))
    return apply("index_select", weight, known, attrs=(0,))


@composite
class embedding:
    """The rows of ``weight`` at ``input``; the row ``padding_idx`` receives no gradient.

    Raises IndexError for an index outside the table.

    >>> import twofold as torch
    >>> torch.nn.functional.embedding(torch.tensor([1, 0]), torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[3., 4.],
            [1., 2.]])
    """

    @staticmethod
    def sparse_gradient(attrs: Attributes) -> bool:
        return attrs == (True,)

    @staticmethod
    def call(input: Any, weight: Any, padding_idx: int | None = None) -> Any:
        if padding_idx is None:
            return apply("embedding", input, weight)
        return apply("embedding", input, weight, padding_idx % weight.shape[0])

    @staticmethod
    def compute(index: Any, weight: Any, *rest: Any) -> Any:
        padding = next((one for one in rest if not isinstance(one, bool)), None)
        if not index.type.weak and index.dtype not in (int32, int64):
            raise DTypeError(f"an index of {index.dtype.name}", "Cast it with .to(int64) first.")
        rows = _looked_up(index, weight)
        if padding is None:
            return rows
        silent = ops.unsqueeze(ops.equal(index, padding), -1)
        return ops.where(silent, ops.stop_gradient(rows), rows)

    reference = lambda index, weight, *rest: weight[index]
    samples = lambda: [
        example((), numpy.array([[1, 4], [0, 1]]), (5, 3)),
        example((), numpy.array([2, 0]), (5, 17), 2),
        example((True,), numpy.array([2, 0]), (5, 3)),
        example((), numpy.array(1), (5, 2)),
        example((), numpy.zeros((0, 2), numpy.int64), (5, 2)),
    ]


@composite
class frequency_scaled:
    """The rows that were looked up, whose gradient is divided by how often each index occurs.

    Inputs ``(rows, index)``, attributes ``(rows of the table,)``.
    """

    functions = ()
    compute = lambda rows, index, size: strong(rows)

    def vjp(ct: Any, y: Any, rows: Any, index: Any, size: int) -> Any:
        flat = ops.reshape(need_index(index), (1, prod(index.shape), 1))
        ones = filled(1, ct.dtype.compute, flat.shape)
        counts = apply("scatter_sum", flat, ones, attrs=(size,))
        often = ops.reshape(apply("gather_block", counts, flat), index.shape)
        return convert(ct / ops.unsqueeze(often, -1), ct.dtype), None


@composite
class embedding_renorm:
    """The table with every row that is looked up shrunk to a ``p``-norm of at most ``max_norm``.

    Inputs ``(weight, index, max_norm)``, attributes ``(p,)``.
    """

    functions = ()
    differentiable = False

    def compute(weight: Any, index: Any, most: Any, p: float) -> Any:
        flat = ops.reshape(need_index(index), (prod(index.shape),))
        rows = _looked_up(flat, weight)
        length = ops.norm(rows, p, 1, True)
        # of equal indices all write the same row
        shrunk = ops.where(length > most, rows * (most / (length + 1e-7)), rows)
        return ops.index_copy(weight, 0, flat, convert(shrunk, weight.dtype))

    def reference(weight: Any, index: Any, most: Any, p: float) -> Any:
        result = weight.copy()
        for row in set(index.ravel().tolist()):
            length = numpy.linalg.norm(weight[row], p)
            result[row] = weight[row] * (most / (length + 1e-7) if length > most else 1)
        return result

    samples = lambda: [
        example((2.0,), (5, 3), numpy.array([[1, 4], [1, 1]]), numpy.array(0.5)),
        example((1.0,), (5, 3), numpy.array([0, 3]), numpy.array(1.0)),
    ]


class _Bags:
    """Rows ``[count, features]`` and the bag that each belongs to; the last bag of all holds what is in none."""

    def __init__(self, index: Any, weight: Any, offsets: Any, last: bool, padding: int | None) -> None:
        count = prod(index.shape)
        self.index = ops.reshape(need_index(index), (count,))
        self.length = None if index.ndim == 1 else index.shape[1]
        self.rows = floating(_looked_up(self.index, weight))
        if offsets is None:
            self.bags = index.shape[0]
            bag = ops.floor_divide(iota((count,)), max(index.shape[1], 1))
        else:
            self.bags = offsets.shape[0] - (1 if last else 0)
            starts = convert(offsets, int64)
            bag = ops.searchsorted(starts, iota((count,)), right=True) - 1
        self.kept = None
        if padding is not None:
            self.kept = ops.not_equal(self.index, padding)
            bag = ops.where(self.kept, bag, self.bags)
        self.bag = bag

    def sums(self, values: Any) -> Any:
        """The sums of ``values [count, features]`` over the bags."""
        count, width = values.shape
        if self.length is not None and self.kept is None:
            return apply("sum", ops.reshape(values, (self.bags, self.length, width)), attrs=((1,), False))
        cube = ops.reshape(values, (1, count, width))
        added = apply("scatter_sum", ops.reshape(self.bag, (1, count, 1)), cube, attrs=(self.bags + 1,))
        return slice_axis(ops.reshape(added, (self.bags + 1, width)), 0, constant(0, int64), self.bags)

    def largest(self) -> Any:
        """The largest elements of each bag, 0 for an empty one; the first of equal ones has the gradient."""
        count, width = self.rows.shape
        if not count:
            return filled(0, self.rows.dtype, (self.bags, width))
        shape, positions = (count, width), (self.bags + 1, width)
        rows, bag = ops.stop_gradient(self.rows), broadcast(ops.unsqueeze(self.bag, 1), (count, width))
        lowest = filled(-numpy.inf, rows.dtype, positions)
        best = apply("scatter_reduce", lowest, bag, rows, attrs=(0, "amax", True))
        number = broadcast(ops.unsqueeze(iota((count,)), 1), shape)
        candidate = ops.where(ops.equal(rows, ops.gather(best, 0, bag)), number, count)
        first = apply(
            "scatter_reduce", filled(count, int64, positions), bag, candidate, attrs=(0, "amin", True)
        )
        first = slice_axis(first, 0, constant(0, int64), self.bags)
        found = ops.gather(self.rows, 0, ops.minimum(first, count - 1))
        return ops.where(ops.equal(first, count), 0, found)


@composite
class embedding_bags:
    """Sums, means or maxima of bags of rows of a table.

    Inputs ``(index, weight, [offsets], [weight of each index])``; ``index`` is a vector with ``offsets`` of the
    bags, or a matrix with a bag in each row. Attributes ``(mode, whether there are offsets, whether there are
    weights, whether the last offset is an end, padding or None, whether gradients are over frequencies, whether that of
    the table is sparse)``.
    """

    memory = (4.5, "the rows of all bags are gathered first")

    functions = ()

    sparse_gradient = lambda attrs: attrs[-1]

    def compute(index: Any, weight: Any, *rest: Any) -> Any:
        *values, mode, cut, weighted, last, padding, scaled, _ = rest
        bags = _Bags(index, weight, values[0] if cut else None, last, padding)
        if scaled:
            bags.rows = apply("frequency_scaled", bags.rows, bags.index, attrs=(weight.shape[0],))
        if mode == "max":
            return convert(bags.largest(), strong(weight).dtype)
        if weighted:
            bags.rows = bags.rows * ops.unsqueeze(ops.reshape(values[-1], bags.index.shape), 1)
        added = bags.sums(bags.rows)
        if mode == "mean":
            counts = bags.sums(filled(1, added.dtype, (bags.index.shape[0], 1)))
            added = added / ops.maximum(counts, 1)
        return convert(added, strong(weight).dtype)

    def reference(index: Any, weight: Any, *rest: Any) -> Any:
        *values, mode, cut, weighted, last, padding, _, _ = rest
        flat, weights = index.ravel(), values[-1].ravel() if weighted else numpy.ones(index.size)
        starts = list(values[0]) if cut else list(range(0, index.size, index.shape[1]))
        ends = starts[1:] if cut and last else [*starts[1:], index.size]
        result = []
        for start, end in zip(starts, ends, strict=False):
            positions = [k for k in range(start, end) if flat[k] != padding]
            rows = weight[flat[positions]] * weights[positions, None]
            result.append(getattr(rows, mode)(0) if positions else numpy.zeros(weight.shape[1]))
        return numpy.array(result).reshape(-1, weight.shape[1])

    @staticmethod
    def samples() -> Any:
        plain, index = (True, False, False, None, False, False), numpy.array([1, 4, 0, 1, 2])
        offsets, matrix = numpy.array([0, 2, 2]), numpy.array([[1, 4], [0, 1]])
        made = [example((mode, *plain), index, (5, 3), offsets) for mode in ("sum", "mean", "max")]
        made += [
            example((mode, False, False, False, 1, False, False), matrix, (5, 3))
            for mode in ("sum", "mean", "max")
        ]
        return [
            *made,
            example(
                ("sum", True, True, True, None, False, True), index, (5, 3), numpy.array([0, 1, 4]), (5,)
            ),
            example(("sum", False, True, False, None, False, False), matrix, (5, 17), (2, 2)),
        ]
