"""Losses that want the scores of the right classes above those of the others by a margin."""

from __future__ import annotations

from typing import Any

import numpy

from twofold.dtypes import int64
from twofold.errors import ArgumentError, ShapeError
from twofold.ir.bind import constant
from twofold.ir.sizes import real
from twofold.ops.base import apply, broadcast, composite, convert, iota, ops, strong
from twofold.ops.examples import example
from twofold.ops.indexing.gather import need_index
from twofold.ops.loss.class_losses import need_reduction, numpy_reduced, reduced
from twofold.ops.reduction.softmax import floating


def _rows(x: Any) -> Any:
    """The scores as a matrix, one row for each sample."""
    wide = floating(x)
    if wide.ndim > 2:
        raise ShapeError(f"scores with {wide.ndim} axes", "Use (classes,) or (batch, classes).")
    return wide if wide.ndim == 2 else ops.reshape(wide, (1, wide.shape[0] if wide.ndim else 1))


def _result(x: Any, losses: Any, shape: tuple[int, ...], reduction: str) -> Any:
    """The losses of the rows in the shape that PyTorch gives them."""
    return convert(reduced(ops.reshape(losses, shape), reduction), strong(x).dtype)


def _checked(target: Any, count: int, ignore: int) -> Any:
    """Class numbers that exist, or fail in the kernel."""
    return apply("class_number", need_index(target), constant(ignore, int64), attrs=(count,))


@composite
class multi_margin_loss:
    """The sum over other classes of ``max(0, margin - input[target] + input[i]) ** p``, over their count.

    ``target`` holds a class number for each row. Raises RuntimeError for a ``p`` other than 1 and 2.

    >>> import twofold as torch
    >>> torch.nn.functional.multi_margin_loss(torch.tensor([[0.5, 1.0, -2.0]]), torch.tensor([0]))
    tensor(0.5000)
    """

    autocast = "float32"

    def call(
        input: Any,
        target: Any,
        p: int = 1,
        margin: float = 1.0,
        weight: Any = None,
        *,
        reduction: str = "mean",
    ) -> Any:
        if p not in (1, 2):
            raise ArgumentError(f"p is {p}", "Use 1 or 2.")
        weights = () if weight is None else (weight,)
        attrs = (int(p), weight is not None, need_reduction(reduction))
        return apply("multi_margin_loss", input, target, *weights, float(margin), attrs=attrs)

    def compute(x: Any, target: Any, *rest: Any) -> Any:
        *values, p, weighted, reduction = rest
        rows, margin = _rows(x), values[-1]
        batch, count = rows.shape
        if target.shape not in ((), (1,)) if x.ndim < 2 else target.shape != (batch,):
            raise ShapeError(
                f"targets of shape {target.shape} for scores of shape {x.shape}", "Give one a row."
            )
        wanted = ops.reshape(_checked(target, count, 0), (batch, 1))
        hit = ops.equal(broadcast(wanted, rows.shape), broadcast(iota((count,)), rows.shape))
        right = apply("sum", ops.where(hit, rows, 0), attrs=((1,), True))
        each = ops.maximum(margin - right + rows, 0)
        each = each if p == 1 else each * each
        if weighted:
            weight = broadcast(convert(values[0], rows.dtype), rows.shape)
            each = each * apply("sum", ops.where(hit, weight, 0), attrs=((1,), True))
        losses = apply("sum", ops.where(hit, 0, each), attrs=((1,), False)) / real(max(count, 1))
        return _result(x, losses, target.shape, reduction)

    def reference(x: Any, target: Any, *rest: Any) -> Any:
        *values, p, weighted, reduction = rest
        rows, wanted = x.reshape(-1, x.shape[-1]), target.reshape(-1, 1)
        each = numpy.maximum(values[-1] - numpy.take_along_axis(rows, wanted, 1) + rows, 0) ** p
        numpy.put_along_axis(each, wanted, 0, 1)
        each = each * values[0][wanted] if weighted else each
        losses = (each.sum(1) / rows.shape[1]).reshape(target.shape)
        return numpy_reduced(losses, reduction)

    samples = lambda: [
        example((1, False, "mean"), (3, 5), numpy.array([0, 4, 2]), numpy.array(1.0)),
        example((2, True, "none"), (3, 5), numpy.array([0, 4, 2]), (5,), numpy.array(0.7)),
        example((1, False, "sum"), (17,), numpy.array(3), numpy.array(1.0)),
    ]


@composite
class multilabel_margin_loss:
    """The sum over right classes j and others i of ``max(0, 1 - input[j] + input[i])``, over their count.

    A row of ``target`` holds the right classes, up to the first -1.

    >>> import twofold as torch
    >>> x, target = torch.tensor([[0.5, 1.0, 0.0]]), torch.tensor([[0, 1, -1]])
    >>> torch.nn.functional.multilabel_margin_loss(x, target)
    tensor(0.1667)
    """

    autocast = "float32"
    memory = (2.5, "values in between are stored")

    def call(input: Any, target: Any, *, reduction: str = "mean") -> Any:
        return apply("multilabel_margin_loss", input, target, attrs=(need_reduction(reduction),))

    def compute(x: Any, target: Any, reduction: str) -> Any:
        if target.shape != x.shape:
            raise ShapeError(
                f"targets of shape {target.shape} for input of shape {x.shape}", "Make the shapes equal."
            )
        rows = _rows(x)
        batch, count = rows.shape
        wanted = ops.reshape(_checked(target, count, -1), rows.shape)
        listed = ops.equal(ops.cumprod(convert(ops.greater_equal(wanted, 0), int64), 1), 1)
        cube = (batch, count, count)
        numbers = broadcast(iota((count,)), cube)
        named = broadcast(ops.unsqueeze(ops.where(listed, wanted, -1), 2), cube)
        right = apply("any", ops.equal(named, numbers), attrs=((1,), True))
        score = ops.gather(rows, 1, ops.where(listed, wanted, 0))
        each = ops.maximum(1.0 - ops.unsqueeze(score, 2) + ops.unsqueeze(rows, 1), 0)
        counts = ops.logical_and(broadcast(ops.unsqueeze(listed, 2), cube), ops.logical_not(right))
        losses = apply("sum", ops.where(counts, each, 0), attrs=((1, 2), False)) / real(max(count, 1))
        return _result(x, losses, x.shape[: max(x.ndim - 1, 0)], reduction)

    def reference(x: Any, target: Any, reduction: str) -> Any:
        losses = []
        for row, classes in zip(x.reshape(-1, x.shape[-1]), target.reshape(-1, x.shape[-1]), strict=True):
            right = [int(j) for j in classes[: list(classes).index(-1) if -1 in classes else None]]
            others = [i for i in range(len(row)) if i not in right]
            losses.append(sum(max(0, 1 - row[j] + row[i]) for j in right for i in others) / len(row))
        found = numpy.array(losses).reshape(x.shape[:-1])
        return numpy_reduced(found, reduction)

    samples = lambda: [
        example(("mean",), (2, 4), numpy.array([[3, 0, -1, 1], [-1, 0, 1, 2]])),
        example(("none",), (3,), numpy.array([1, -1, 0])),
        example(("sum",), (2, 3), numpy.array([[0, 1, 2], [2, 2, -1]])),
    ]
