"""Losses of rows of classes.

Class targets are compared with class numbers instead of gathered, so that one pass over a row does it all.
"""

from __future__ import annotations

import math
from math import prod
from typing import Any

import numpy

from twofold.dtypes import int64
from twofold.errors import ArgumentError, DTypeError, ShapeError
from twofold.ir.sizes import real
from twofold.ops.base import (
    apply,
    broadcast,
    broadcast_shapes,
    composite,
    convert,
    iota,
    normalize_axis,
    ops,
    public,
    restore_axes,
    strong,
)
from twofold.ops.examples import example
from twofold.ops.promotion import need_constant
from twofold.ops.reduction.softmax import floating, shifted, total

REDUCTIONS = ("mean", "sum", "none")


def need_reduction(reduction: str) -> str:
    """``reduction`` if it is one; raises ArgumentError."""
    if reduction not in REDUCTIONS:
        raise ArgumentError(f"reduction {reduction!r}", "Use 'mean', 'sum' or 'none'.")
    return reduction


def reduced(x: Any, reduction: str) -> Any:
    """``x`` averaged, summed, or as it is."""
    if reduction == "none":
        return x
    added = apply("sum", x, attrs=(tuple(range(x.ndim)), False))
    return added / real(prod(x.shape)) if reduction == "mean" else added


def numpy_reduced(x: Any, reduction: str) -> Any:
    return x if reduction == "none" else numpy.mean(x) if reduction == "mean" else numpy.sum(x)


def share(ct: Any, shape: tuple[int, ...], reduction: str) -> Any:
    """The cotangent of every element of what ``reduced`` reduces."""
    return broadcast(ct / real(prod(shape)) if reduction == "mean" else ct, shape)


# Cross entropy


class Classes:
    """The operands of cross entropy: scores ``[N, C, ...]`` and int64 targets without the class axis.

    The kernel fails for a target that is neither a class nor ``ignore``.
    """

    def __init__(self, x: Any, target: Any, weight: Any, ignore: Any) -> None:
        self.x = x
        self.axis = 0 if x.ndim == 1 else 1
        if not x.ndim:
            raise ShapeError("scores without a class axis", "Use (classes,) or (batch, classes, ...).")
        self.count = x.shape[self.axis]
        kept = x.shape[: self.axis] + x.shape[self.axis + 1 :]
        if target.shape != kept:
            raise ShapeError(
                f"targets of shape {target.shape} for scores of shape {x.shape}",
                f"Give one class number for each row: shape {kept}.",
            )
        if target.dtype.kind not in "iu":
            raise DTypeError(
                f"class targets of {target.dtype.name}",
                "Cast them with .to(int64), or give probabilities of the scores' shape.",
            )
        self.ignore = convert(ignore, int64)
        self.target = apply("class_number", convert(target, int64), self.ignore, attrs=(self.count,))
        tail = (1,) * (x.ndim - self.axis - 1)
        numbers = broadcast(ops.reshape(iota((self.count,)), (self.count, *tail)), x.shape)
        self.hit = ops.equal(broadcast(restore_axes(self.target, (self.axis,), x.shape), x.shape), numbers)
        self.weight = None
        if weight is not None:
            if weight.shape != (self.count,):
                raise ShapeError(
                    f"weights of shape {weight.shape} for {self.count} classes", "Give one per class."
                )
            self.weight = broadcast(ops.reshape(convert(weight, x.dtype), (self.count, *tail)), x.shape)

    def pick(self, values: Any) -> Any:
        """The element of ``values`` at the target of each row."""
        return apply("sum", ops.where(self.hit, values, 0), attrs=((self.axis,), False))

    def ignored(self) -> Any:
        """Which rows do not count."""
        return ops.equal(self.target, self.ignore)

    def row_weights(self) -> Any:
        """The weight of each row, 0 where ignored."""
        if self.weight is None:
            return convert(ops.logical_not(self.ignored()), self.x.dtype)
        return ops.where(self.ignored(), 0, self.pick(self.weight))


def _divided(rows: Any, weights: Any, reduction: str) -> Any:
    """Weighted rows summed, over the sum of the weights, or as they are."""
    if reduction == "none":
        return rows
    axes = tuple(range(rows.ndim))
    added = apply("sum", rows, attrs=(axes, False))
    return added / apply("sum", weights, attrs=(axes, False)) if reduction == "mean" else added


def _row_share(ct: Any, weights: Any, reduction: str) -> Any:
    """The cotangent of each row, times nothing yet; 0 where no row counts, although the mean is then NaN."""
    if reduction == "mean":
        whole = apply("sum", weights, attrs=(tuple(range(weights.ndim)), False))
        ct = ct / ops.where(ops.equal(whole, 0), math.inf, whole)
    return broadcast(ct, weights.shape)


def _operands(rest: tuple[Any, ...]) -> tuple[Any, ...]:
    *values, reduction, weighted, smooth = rest
    values = list(values)
    x, target = values[:2]
    weight = values[2] if weighted else None
    ignore, smoothing = values[-2], values[-1]
    return x, target, weight, ignore, smoothing, reduction, smooth


def _cross_entropy(*rest: Any) -> Any:
    x, target, weight, ignore, smoothing, reduction, smooth = _operands(rest)
    classes = Classes(floating(x), target, weight, ignore)
    axis = classes.axis
    z, s = shifted(classes.x, axis)
    log_sum = ops.reshape(ops.log(s), classes.target.shape)
    weights = classes.row_weights()
    rows = weights * (log_sum - classes.pick(z))
    if smooth:
        log_p = ops.log(s) - z
        weighted = log_p if classes.weight is None else log_p * classes.weight
        even = apply("sum", weighted, attrs=((axis,), False))
        even = ops.where(classes.ignored(), 0, even)
        rows = rows * (1 - smoothing) + even * (smoothing / real(classes.count))
    # a row whose score at the target is -inf and that is ignored must not give NaN
    rows = ops.where(classes.ignored(), 0, rows)
    return convert(_divided(rows, weights, reduction), strong(x).dtype)


def _cross_entropy_gradient(ct: Any, y: Any, *rest: Any) -> Any:
    """``(softmax - target distribution)`` times the weight of the row and its share of the result."""
    x, target, weight, ignore, smoothing, reduction, smooth = _operands(rest)
    classes = Classes(floating(x), target, weight, ignore)
    axis, shape = classes.axis, classes.x.shape
    z, s = shifted(classes.x, axis)
    p = ops.exp(z) / s
    weights = classes.row_weights()
    part = _row_share(convert(ct, classes.x.dtype), weights, reduction)

    def column(value: Any) -> Any:
        return restore_axes(value, (axis,), shape)

    if not smooth:
        result = (p - convert(classes.hit, p.dtype)) * column(weights * part)
    else:
        even = convert(smoothing, p.dtype) / real(classes.count)
        wanted = ops.where(classes.hit, column(weights), 0) * (1 - smoothing)
        flat = even if classes.weight is None else classes.weight * even
        wanted = wanted + ops.where(column(classes.ignored()), 0, flat)
        result = (p * total(wanted, axis) - wanted) * column(part)
    inputs = len(rest) - 3
    return (convert(result, strong(x).dtype), *[None] * (inputs - 1))


def _cross_entropy_reference(*rest: Any) -> Any:
    x, target, weight, ignore, smoothing, reduction, smooth = _operands(rest)
    axis = 0 if x.ndim == 1 else 1
    log_p = numpy.moveaxis(x - numpy.log(numpy.exp(x).sum(axis, keepdims=True)), axis, -1)
    weight = numpy.ones(log_p.shape[-1]) if weight is None else weight
    safe = numpy.where(target == ignore, 0, target)
    weights = numpy.where(target == ignore, 0, weight[safe])
    rows = -numpy.take_along_axis(log_p, safe[..., None], -1)[..., 0] * weights
    if smooth:
        even = numpy.where(target == ignore, 0, -(log_p * weight).sum(-1))
        rows = rows * (1 - smoothing) + even * smoothing / log_p.shape[-1]
    return rows.sum() / weights.sum() if reduction == "mean" else numpy_reduced(rows, reduction)


def _class_samples(logits: bool = True) -> Any:
    plain = (numpy.array(-100), numpy.array(0.0)) if logits else (numpy.array(-100),)
    some = numpy.array([1, -100, 0, 4])
    calls = [
        (("mean", False), ((4, 17), numpy.array([1, 16, 0, 4]), *plain)),
        (("sum", True), ((4, 5), some, (5,), *plain)),
        (("mean", True), ((4, 5), some, numpy.array([0.5, 1, 2, 1, 0.25], numpy.float32), *plain)),
        (("none", False), ((2, 3, 2), numpy.array([[0, 1], [2, 0]]), *plain)),
        (("mean", False), ((5,), numpy.array(3), *plain)),
    ]
    if not logits:
        return [example(attrs, *operands) for attrs, operands in calls]
    smooth = (numpy.array(-100), numpy.array(0.1))
    return [example((*attrs, False), *operands) for attrs, operands in calls] + [
        example(("mean", False, True), (4, 5), some, *smooth),
        example(
            ("mean", True, True), (4, 5), some, numpy.array([0.5, 1, 2, 1, 0.25], numpy.float32), *smooth
        ),
    ]


@composite
class cross_entropy:
    """Minus the logarithm of the softmax of ``input`` at the target class.

    ``target`` holds class numbers, or probabilities in the shape of ``input``. The mean is over the weights
    of the targets that are not ``ignore_index``. Raises IndexError for a number that is no class.

    >>> import twofold as torch
    >>> scores, target = torch.tensor([[2.0, 0.0], [0.0, 2.0]]), torch.tensor([0, 0])
    >>> torch.nn.functional.cross_entropy(scores, target, reduction="none")
    tensor([0.1269, 2.1269])
    >>> torch.nn.functional.cross_entropy(scores, target)
    tensor(1.1269)
    """

    autograd_name = "NllLossBackward0"
    autocast = "float32"

    @staticmethod
    def call(
        input: Any,
        target: Any,
        weight: Any = None,
        *,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: Any = 0.0,
    ) -> Any:
        if isinstance(label_smoothing, (int, float)) and not 0 <= label_smoothing <= 1:
            what = f"label_smoothing must be between 0.0 and 1.0, got {label_smoothing}"
            raise ArgumentError(what, "Give the share of the probability that goes to all classes.")
        smooth = not (isinstance(label_smoothing, (int, float)) and label_smoothing == 0)
        attrs = (need_reduction(reduction), weight is not None, smooth)
        weights = () if weight is None else (weight,)
        need_constant("cross_entropy", label_smoothing=label_smoothing)
        if target.dtype.kind == "f":
            if ignore_index >= 0:
                raise ArgumentError(
                    f"ignore_index {ignore_index} for target probabilities", "Use it for class numbers."
                )
            return apply("soft_cross_entropy", input, target, *weights, label_smoothing, attrs=attrs)
        need_constant("cross_entropy", weight=weight)
        return apply("cross_entropy", input, target, *weights, ignore_index, label_smoothing, attrs=attrs)

    compute = _cross_entropy
    vjp = _cross_entropy_gradient
    reference = _cross_entropy_reference
    samples = _class_samples


def _soft_parts(*rest: Any) -> tuple[Any, ...]:
    """Scores, their class axis, the wanted distribution, and the class weights over the scores' shape."""
    x, target, smoothing = floating(rest[0]), floating(rest[1]), rest[-4]
    reduction, weighted, smooth = rest[-3:]
    if target.shape != x.shape:
        raise ShapeError(
            f"target probabilities of shape {target.shape} for scores of shape {x.shape}",
            "Make the shapes equal.",
        )
    axis = 0 if x.ndim == 1 else 1
    wanted = convert(target, x.dtype)
    if smooth:
        wanted = wanted * (1 - smoothing) + smoothing / real(x.shape[axis])
    weights = None
    if weighted:
        weights = broadcast(
            ops.reshape(convert(rest[2], x.dtype), (x.shape[axis], *[1] * (x.ndim - axis - 1))), x.shape
        )
    return x, axis, wanted, weights, reduction, smooth, smoothing


@composite
class soft_cross_entropy:
    """Cross entropy of the softmax of ``input`` with target probabilities; the mean is over the rows."""

    autograd_name = "DivBackward1"
    autocast = "float32"
    functions = ()
    title = "cross_entropy"

    @staticmethod
    def compute(input: Any, target: Any, *rest: Any) -> Any:
        x, axis, wanted, weights, reduction, _, _ = _soft_parts(input, target, *rest)
        wanted = wanted if weights is None else wanted * weights
        z, s = shifted(x, axis)
        rows = apply("sum", wanted * (ops.log(s) - z), attrs=((axis,), False))
        return convert(reduced(rows, reduction), strong(input).dtype)

    @staticmethod
    def vjp(ct: Any, y: Any, *rest: Any) -> Any:
        x, axis, wanted, weights, reduction, smooth, smoothing = _soft_parts(*rest)
        z, s = shifted(x, axis)
        rows = x.shape[:axis] + x.shape[axis + 1 :]
        part = restore_axes(share(convert(ct, x.dtype), rows, reduction), (axis,), x.shape)
        surprise, weighed = ops.log(s) - z, wanted if weights is None else wanted * weights
        scores = ops.exp(z) / s * total(weighed, axis) - weighed
        target = surprise if weights is None else surprise * weights
        found = [scores, target * (1 - smoothing) if smooth else target]
        if weights is not None:
            others = tuple(k for k in range(x.ndim) if k != axis)
            found.append(apply("sum", wanted * surprise * part, attrs=(others, False)))
        scaled = [found[0] * part, found[1] * part, *found[2:]]
        shares = [convert(value, strong(node).dtype) for value, node in zip(scaled, rest, strict=False)]
        return (*shares, None)

    @staticmethod
    def reference(*rest: Any) -> Any:
        x, target, smoothing = rest[0], rest[1], rest[-4]
        reduction, weighted, _ = rest[-3:]
        axis = 0 if x.ndim == 1 else 1
        log_p = numpy.moveaxis(x - numpy.log(numpy.exp(x).sum(axis, keepdims=True)), axis, -1)
        wanted = numpy.moveaxis(target, axis, -1) * (1 - smoothing) + smoothing / x.shape[axis]
        rows = -(log_p * wanted * (rest[2] if weighted else 1)).sum(-1)
        return numpy_reduced(rows, reduction)

    samples = lambda: [
        example(("mean", False, False), (4, 17), (4, 17), numpy.array(0.0)),
        example(("none", True, True), (4, 3, 2), (4, 3, 2), (3,), numpy.array(0.2)),
        example(("sum", False, False), (5,), (5,), numpy.array(0.0)),
    ]


def _distributions(rows: int, classes: int) -> Any:
    """Rows that sum to 1."""
    values = numpy.random.default_rng(3).uniform(0.05, 0.95, (rows, classes))
    return (values / values.sum(1, keepdims=True)).astype(numpy.float32)


@composite
class distribution_cross_entropy:
    """Cross entropy of the softmax of each row of ``logits`` with a row of ``labels``, a distribution.

    The gradient of the logits is ``softmax(logits) - labels``, that of TensorFlow, also for labels that do not sum
    to 1, where the derivative is another one.
    """

    autocast = "float32"
    functions = ()

    @staticmethod
    def compute(logits: Any, labels: Any) -> Any:
        x = floating(logits)
        z, s = shifted(x, x.ndim - 1)
        each = convert(floating(labels), x.dtype) * (ops.log(s) - z)
        return convert(apply("sum", each, attrs=((x.ndim - 1,), False)), strong(logits).dtype)

    @staticmethod
    def vjp(ct: Any, y: Any, logits: Any, labels: Any) -> Any:
        x, wanted = floating(logits), floating(labels)
        z, s = shifted(x, x.ndim - 1)
        part = restore_axes(convert(ct, x.dtype), (x.ndim - 1,), x.shape)
        scores = (ops.exp(z) / s - convert(wanted, x.dtype)) * part
        return convert(scores, strong(logits).dtype), convert((ops.log(s) - z) * part, strong(labels).dtype)

    @staticmethod
    def reference(logits: Any, labels: Any) -> Any:
        return -(labels * (logits - numpy.log(numpy.exp(logits).sum(-1, keepdims=True)))).sum(-1)

    samples = lambda: [example((), (4, 17), _distributions(4, 17)), example((), (3, 5), _distributions(3, 5))]


@composite
class nll_loss:
    """Minus ``input`` (log-probabilities) at the target class; see ``cross_entropy``.

    >>> import twofold as torch
    >>> torch.nn.functional.nll_loss(torch.tensor([[-1.0, -2.0], [-3.0, -4.0]]), torch.tensor([0, 1]))
    tensor(2.5000)
    """

    autocast = "float32"

    @staticmethod
    def call(
        input: Any, target: Any, weight: Any = None, *, ignore_index: int = -100, reduction: str = "mean"
    ) -> Any:
        weights = () if weight is None else (weight,)
        return apply(
            "nll_loss",
            input,
            target,
            *weights,
            ignore_index,
            attrs=(need_reduction(reduction), weight is not None),
        )

    @staticmethod
    def compute(*rest: Any) -> Any:
        *values, reduction, weighted = rest
        x, target, ignore = values[0], values[1], values[-1]
        classes = Classes(floating(x), target, values[2] if weighted else None, ignore)
        weights = classes.row_weights()
        rows = ops.where(classes.ignored(), 0, -classes.pick(classes.x) * weights)
        return convert(_divided(rows, weights, reduction), strong(x).dtype)

    @staticmethod
    def reference(*rest: Any) -> Any:
        *values, reduction, weighted = rest
        x, target, ignore = values[0], values[1], values[-1]
        log_p = numpy.moveaxis(x, 0 if x.ndim == 1 else 1, -1)
        weight = values[2] if weighted else numpy.ones(log_p.shape[-1])
        safe = numpy.where(target == ignore, 0, target)
        weights = numpy.where(target == ignore, 0, weight[safe])
        rows = -numpy.take_along_axis(log_p, safe[..., None], -1)[..., 0] * weights
        return rows.sum() / weights.sum() if reduction == "mean" else numpy_reduced(rows, reduction)

    samples = lambda: _class_samples(logits=False)


def _scores(x: Any, target: Any) -> tuple[Any, Any, Any]:
    """Shifted scores, the sum of their exponentials, and where the target is."""
    if not x.ndim or target.shape:
        raise ShapeError(
            f"scores of shape {x.shape} and a target of shape {target.shape}", "Give rows and one number."
        )
    z, s = shifted(floating(x), x.ndim - 1)
    return z, s, ops.equal(broadcast(iota((x.shape[-1],)), x.shape), convert(target, int64))


@composite
class class_loss:
    """``-log_softmax(x)[..., target]`` of rows with one class number, which the caller has checked."""

    functions = ()

    def compute(x: Any, target: Any) -> Any:
        z, s, hit = _scores(x, target)
        picked = apply("sum", ops.where(hit, z, 0), attrs=((x.ndim - 1,), False))
        return convert(ops.log(ops.reshape(s, x.shape[:-1])) - picked, strong(x).dtype)

    def vjp(ct: Any, y: Any, x: Any, target: Any) -> Any:
        z, s, hit = _scores(x, target)
        part = restore_axes(convert(ct, z.dtype), (x.ndim - 1,), x.shape)
        return convert((ops.exp(z) / s - convert(hit, z.dtype)) * part, strong(x).dtype), None

    samples = lambda: [example((), (5,), numpy.array(3)), example((), (3, 17), numpy.array(16))]
    reference = lambda x, target: numpy.log(numpy.exp(x).sum(-1)) - x[..., int(target)]


@public()
def sparse_softmax_cross_entropy_with_logits(labels: Any, logits: Any) -> Any:
    """Cross entropy of each row of ``logits`` (classes on the last axis) with a class number.

    >>> import twofold as torch
    >>> logits = torch.tensor([[2.0, 0.0], [0.0, 2.0]])
    >>> torch.sparse_softmax_cross_entropy_with_logits(torch.tensor([0, 0]), logits)
    tensor([0.1269, 2.1269])
    """
    count = logits.shape[-1]
    flat = ops.cross_entropy(ops.reshape(logits, (-1, count)), ops.reshape(labels, (-1,)), reduction="none")
    return ops.reshape(flat, tuple(labels.shape))


@public()
def softmax_cross_entropy_with_logits(labels: Any, logits: Any, axis: int = -1) -> Any:
    """Cross entropy of each row of ``logits`` with a row of probabilities.

    The gradient of ``logits`` is ``softmax(logits) - labels`` as in TensorFlow, whatever the labels sum to.

    >>> import twofold as torch
    >>> torch.softmax_cross_entropy_with_logits(torch.tensor([[0.5, 0.5]]), torch.tensor([[2.0, 0.0]]))
    tensor([1.1269])
    """
    ndim = len(logits.shape)
    if not ndim:
        raise ShapeError("logits without axes", "Give rows of logits.")
    if labels.shape != logits.shape:
        shape = broadcast_shapes(tuple(labels.shape), tuple(logits.shape))
        labels, logits = ops.broadcast_to(labels, shape), ops.broadcast_to(logits, shape)
        ndim = len(shape)
    position = normalize_axis(axis, ndim)
    if position != ndim - 1:
        labels, logits = ops.movedim(labels, position, -1), ops.movedim(logits, position, -1)
    count, kept = logits.shape[-1], tuple(logits.shape[:-1])
    rows = [ops.reshape(value, (prod(kept), count)) for value in (logits, labels)]
    return ops.reshape(apply("distribution_cross_entropy", *rows), kept)


# Losses of single elements
