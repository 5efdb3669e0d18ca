"""Embedding tables, whose rows are gathered by index."""

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
from twofold.ops.base import apply, composite, convert, custom, filled, ops, strong
from twofold.ops.elementwise.checks import class_number
from twofold.ops.examples import example
from twofold.ops.indexing.gather import need_index


def _failure(self: Any, index: int, inputs: Sequence[TensorType], attrs: Attributes) -> tuple[str, str]:
    what = f"index {index} is outside a table of {attrs[0]} rows"
    return what, f"Use indices from 0 to {attrs[0] - 1}." if attrs[0] else "Use a table that has rows."


def _row_number() -> Any:
    """``class_number`` with the error messages of a table."""
    text = "``index`` itself, if each is the number of a row; inputs and attributes as of ``class_number``."
    body = {"failure": _failure, "__doc__": text, "functions": (), "returns_input": True}
    return custom(type("row_number", (type(class_number),), body))


row_number = _row_number()


def looked_up_numbers(index: Any, weight: Any) -> Any:
    """``index`` as int64; the kernel fails for an index outside the table."""
    if weight.ndim != 2:
        raise ShapeError(
            f"a weight with {weight.ndim} axes", "Use one of shape (num_embeddings, embedding_dim)."
        )
    return apply("row_number", need_index(index), constant(0, int64), attrs=(weight.shape[0],))


def _looked_up(index: Any, weight: Any) -> Any:
    """The rows of a table at ``index``."""
    return apply("index_select", weight, looked_up_numbers(index, weight), attrs=(0,))


def by_frequency(ct: Any, index: Any, size: Any) -> Any:
    """Cotangents ``[..., features]`` of rows that were looked up, divided by how often each index occurs."""
    flat = ops.reshape(need_index(index), (1, prod(index.shape), 1))
    ones = filled(1, ct.dtype.compute, flat.shape)
    counts = apply("scatter_sum", flat, ones, attrs=(size,))
    often = ops.reshape(apply("gather_block", counts, flat), (*ct.shape[:-1], 1))
    return convert(ct / often, ct.dtype)


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
        return by_frequency(ct, index, size), None


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
