"""Losses.

Class targets are compared with class numbers instead of gathered, so that one pass over a row does it all.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy

from twofold.dtypes import int64
from twofold.errors import ArgumentError, DTypeError, ShapeError
from twofold.ops.base import (
    apply,
    broadcast,
    broadcast_shapes,
    composite,
    convert,
    iota,
    ops,
    public,
    restore_axes,
    strong,
)
from twofold.ops.composite import floating, shifted, total
from twofold.ops.examples import example
from twofold.ops.movement import sum_to

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
    return added / float(prod(x.shape)) if reduction == "mean" else added


def numpy_reduced(x: Any, reduction: str) -> Any:
    return x if reduction == "none" else numpy.mean(x) if reduction == "mean" else numpy.sum(x)


def share(ct: Any, shape: tuple[int, ...], reduction: str) -> Any:
    """The cotangent of every element of what ``reduced`` reduces."""
    return broadcast(ct / float(prod(shape)) if reduction == "mean" else ct, shape)


# Cross entropy


class Classes:
    """The operands of cross entropy: scores ``[N, C, ...]`` and int64 targets without the class axis.

    With ``checked`` the kernel fails for a target that is neither a class nor ``ignore``.
    """

    def __init__(self, x: Any, target: Any, weight: Any, ignore: Any, checked: bool = True) -> None:
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
        self.target = convert(target, int64)
        self.ignore = convert(ignore, int64)
        if checked:
            self.target = apply("class_number", self.target, self.ignore, attrs=(self.count,))
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
    """The cotangent of each row, times nothing yet."""
    if reduction == "mean":
        ct = ct / apply("sum", weights, attrs=(tuple(range(weights.ndim)), False))
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
        spread = log_p if classes.weight is None else log_p * classes.weight
        even = apply("sum", spread, attrs=((axis,), False))
        even = ops.where(classes.ignored(), 0, even)
        rows = rows * (1 - smoothing) + even * (smoothing / float(classes.count))
    # a row whose score at the target is -inf and that is ignored must not give NaN
    rows = ops.where(classes.ignored(), 0, rows)
    return convert(_divided(rows, weights, reduction), strong(x).dtype)


def _cross_entropy_gradient(ct: Any, y: Any, *rest: Any) -> Any:
    """``(softmax - target distribution)`` times the weight of the row and its share of the result."""
    x, target, weight, ignore, smoothing, reduction, smooth = _operands(rest)
    classes = Classes(floating(x), target, weight, ignore, checked=False)
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
        even = smoothing / float(classes.count)
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
    """

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
        smooth = not (isinstance(label_smoothing, (int, float)) and label_smoothing == 0)
        attrs = (need_reduction(reduction), weight is not None, smooth)
        weights = () if weight is None else (weight,)
        if target.dtype.kind == "f":
            return apply("soft_cross_entropy", input, target, *weights, label_smoothing, attrs=attrs)
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
        wanted = wanted * (1 - smoothing) + smoothing / float(x.shape[axis])
    weights = None
    if weighted:
        weights = broadcast(
            ops.reshape(convert(rest[2], x.dtype), (x.shape[axis], *[1] * (x.ndim - axis - 1))), x.shape
        )
        wanted = wanted * weights
    return x, axis, wanted, weights, reduction, smooth, smoothing


@composite
class soft_cross_entropy:
    """Cross entropy of the softmax of ``input`` with target probabilities; the mean is over the rows."""

    functions = ()
    call = staticmethod(lambda *inputs, attrs: apply("soft_cross_entropy", *inputs, attrs=attrs))

    @staticmethod
    def compute(*rest: Any) -> Any:
        x, axis, wanted, _, reduction, _, _ = _soft_parts(*rest)
        z, s = shifted(x, axis)
        rows = apply("sum", wanted * (ops.log(s) - z), attrs=((axis,), False))
        return convert(reduced(rows, reduction), strong(rest[0]).dtype)

    @staticmethod
    def vjp(ct: Any, y: Any, *rest: Any) -> Any:
        x, axis, wanted, weights, reduction, smooth, smoothing = _soft_parts(*rest)
        z, s = shifted(x, axis)
        rows = x.shape[:axis] + x.shape[axis + 1 :]
        part = restore_axes(share(convert(ct, x.dtype), rows, reduction), (axis,), x.shape)
        scores = ops.exp(z) / s * total(wanted, axis) - wanted
        target = ops.log(s) - z if weights is None else (ops.log(s) - z) * weights
        target = target * (1 - smoothing) if smooth else target
        shares = [
            convert(value * part, strong(node).dtype)
            for value, node in ((scores, rest[0]), (target, rest[1]))
        ]
        return (*shares, *[None] * (len(rest) - 5))

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


@composite
class nll_loss:
    """Minus ``input`` (log-probabilities) at the target class; see ``cross_entropy``."""

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


@public()
def sparse_softmax_cross_entropy_with_logits(labels: Any, logits: Any) -> Any:
    """Cross entropy of each row of ``logits`` (classes on the last axis) with a class number."""
    count = logits.shape[-1]
    flat = ops.cross_entropy(ops.reshape(logits, (-1, count)), ops.reshape(labels, (-1,)), reduction="none")
    return ops.reshape(flat, tuple(labels.shape))


@public()
def softmax_cross_entropy_with_logits(labels: Any, logits: Any, axis: int = -1) -> Any:
    """Cross entropy of each row of ``logits`` with a row of probabilities."""
    ndim = len(logits.shape)
    place = axis % ndim
    if place != ndim - 1:
        labels, logits = ops.movedim(labels, place, -1), ops.movedim(logits, place, -1)
    count, kept = logits.shape[-1], tuple(logits.shape[:-1])
    rows = [ops.reshape(value, (prod(kept), count)) for value in (logits, labels)]
    flat = apply("soft_cross_entropy", *rows, 0.0, attrs=("none", False, False))
    return ops.reshape(flat, kept)


# Losses of single elements


def _pairwise(body: type) -> Any:
    """A loss of ``input`` and ``target`` element by element, from ``each(x, t, *numbers)`` and ``exact``."""
    rules: Any = body
    name, each, exact = body.__name__, rules.each, rules.exact
    defaults: tuple[tuple[str, Any], ...] = getattr(rules, "numbers", ())

    class entry:
        @staticmethod
        def call(input: Any, target: Any, *, reduction: str = "mean", **given: Any) -> Any:
            numbers = [given.pop(key, value) for key, value in defaults]
            if given:
                raise TypeError(f"{name}() got an unexpected keyword argument {next(iter(given))!r}")
            return apply(name, input, target, *numbers, attrs=(need_reduction(reduction),))

        @staticmethod
        def compute(x: Any, t: Any, *rest: Any) -> Any:
            x, t = strong(x), strong(t)
            if t.shape != x.shape:
                shape = broadcast_shapes(x.shape, t.shape)
                x, t = broadcast(x, shape), broadcast(t, shape)
            return reduced(each(x, t, *rest[:-1]), rest[-1])

        reference = lambda x, t, *rest: numpy_reduced(exact(x, t, *rest[:-1]), rest[-1])

        @staticmethod
        def samples() -> Any:
            numbers = [numpy.array(float(value)) for _, value in defaults]
            made = [example((how,), (3, 17), (3, 17), *numbers) for how in REDUCTIONS]
            positive = getattr(rules, "positive", lambda sample: sample)
            return [positive(sample) for sample in made]

    entry.__name__, entry.__doc__ = name, body.__doc__
    return composite(entry)


@_pairwise
class mse_loss:
    """``(input - target) ** 2``."""

    each = staticmethod(lambda x, t: ops.square(x - t))
    exact = staticmethod(lambda x, t: (x - t) ** 2)


@_pairwise
class l1_loss:
    """``|input - target|``."""

    each = staticmethod(lambda x, t: ops.abs(x - t))
    exact = staticmethod(lambda x, t: abs(x - t))


@_pairwise
class huber_loss:
    """``d**2 / 2`` for ``d = |input - target|`` up to ``delta``, then ``delta * (d - delta / 2)``."""

    numbers = (("delta", 1.0),)
    each = staticmethod(lambda x, t, k: _huber(ops.abs(x - t), k))
    exact = staticmethod(
        lambda x, t, k: numpy.where(abs(x - t) <= k, (x - t) ** 2 / 2, k * (abs(x - t) - k / 2))
    )


def _huber(d: Any, k: Any) -> Any:
    return ops.where(ops.less_equal(d, k), d * d * 0.5, (d - k * 0.5) * k)


@_pairwise
class smooth_l1_loss:
    """``d**2 / (2 * beta)`` for ``d = |input - target|`` below ``beta``, then ``d - beta / 2``."""

    numbers = (("beta", 1.0),)
    each = staticmethod(lambda x, t, k: _smooth(ops.abs(x - t), k))
    exact = staticmethod(
        lambda x, t, k: numpy.where(abs(x - t) < k, (x - t) ** 2 / 2 / k, abs(x - t) - k / 2)
    )


def _smooth(d: Any, k: Any) -> Any:
    # the quotient is taken of 1 where beta is 0, so that its gradient is not 0 * inf
    k = convert(k, d.dtype)
    safe = ops.where(ops.greater(k, 0), k, 1.0)
    return ops.where(ops.less(d, k), d * d * 0.5 / safe, d - k * 0.5)


@_pairwise
class soft_margin_loss:
    """``log(1 + exp(-target * input))``."""

    each = staticmethod(lambda x, t: ops.softplus(-(t * x)))
    exact = staticmethod(lambda x, t: numpy.log1p(numpy.exp(-t * x)))


def _limited_logs(x: Any) -> tuple[Any, Any]:
    return ops.maximum(ops.log(x), -100.0), ops.maximum(ops.log1p(-x), -100.0)


def _probabilities(*shapes: Any) -> list[Any]:
    generator = numpy.random.default_rng(3)
    return [generator.uniform(0.05, 0.95, shape).astype(numpy.float32) for shape in shapes]


@composite
class binary_cross_entropy:
    """``-(t * log(x) + (1 - t) * log(1 - x))`` for probabilities ``x``, with logarithms of at least -100."""

    @staticmethod
    def call(input: Any, target: Any, weight: Any = None, *, reduction: str = "mean") -> Any:
        weights = () if weight is None else (weight,)
        return apply("binary_cross_entropy", input, target, *weights, attrs=(need_reduction(reduction),))

    @staticmethod
    def compute(x: Any, t: Any, *rest: Any) -> Any:
        x, t = strong(x), convert(strong(t), strong(x).dtype)
        if x.shape != t.shape:
            raise ShapeError(
                f"targets of shape {t.shape} for input of shape {x.shape}", "Make the shapes equal."
            )
        yes, no = _limited_logs(x)
        each = (t - 1) * no - t * yes
        return reduced(each * rest[0] if len(rest) > 1 else each, rest[-1])

    @staticmethod
    def vjp(ct: Any, y: Any, x: Any, t: Any, *rest: Any) -> Any:
        part = share(ct, x.shape, rest[-1])
        part = part * rest[0] if len(rest) > 1 else part
        yes, no = _limited_logs(x)
        slope = (x - t) / ops.maximum((1 - x) * x, 1e-12)
        weight = []
        if len(rest) > 1:
            each = share(ct, x.shape, rest[-1]) * ((t - 1) * no - t * yes)
            weight = [sum_to(each, rest[0].shape)]
        return (part * slope, part * (no - yes), *weight)

    @staticmethod
    def reference(x: Any, t: Any, *rest: Any) -> Any:
        each = -(t * numpy.log(x) + (1 - t) * numpy.log1p(-x))
        return numpy_reduced(each * rest[0] if len(rest) > 1 else each, rest[-1])

    samples = lambda: [
        example(("mean",), *_probabilities((3, 17), (3, 17))),
        example(("none",), *_probabilities((3, 4), (3, 4), (4,))),
    ]


@composite
class binary_cross_entropy_with_logits:
    """Binary cross entropy of the sigmoid of ``input``, without overflow.

    ``pos_weight`` weighs positive targets.
    """

    @staticmethod
    def call(
        input: Any, target: Any, weight: Any = None, *, reduction: str = "mean", pos_weight: Any = None
    ) -> Any:
        more = [value for value in (weight, pos_weight) if value is not None]
        attrs = (need_reduction(reduction), weight is not None, pos_weight is not None)
        return apply("binary_cross_entropy_with_logits", input, target, *more, attrs=attrs)

    @staticmethod
    def compute(x: Any, t: Any, *rest: Any) -> Any:
        *more, reduction, weighted, positive = rest
        x, t = strong(x), convert(strong(t), strong(x).dtype)
        if x.shape != t.shape:
            raise ShapeError(
                f"targets of shape {t.shape} for input of shape {x.shape}", "Make the shapes equal."
            )
        factor = 1 + (more[-1] - 1) * t if positive else 1
        tail = ops.softplus(-x)
        each = (1 - t) * x + (tail * factor if positive else tail)
        return reduced(each * more[0] if weighted else each, reduction)

    @staticmethod
    def reference(x: Any, t: Any, *rest: Any) -> Any:
        *more, reduction, weighted, positive = rest
        p = 1 / (1 + numpy.exp(-x))
        each = -((more[-1] if positive else 1) * t * numpy.log(p) + (1 - t) * numpy.log(1 - p))
        return numpy_reduced(each * more[0] if weighted else each, reduction)

    samples = lambda: [
        example(("mean", False, False), (3, 17), *_probabilities((3, 17))),
        example(("sum", True, True), (3, 4), *_probabilities((3, 4), (3, 4), (4,))),
    ]


@composite
class kl_div:
    """``target * (log(target) - input)`` for log-probabilities ``input``.

    The reduction ``"batchmean"`` divides the sum by the first size.
    """

    @staticmethod
    def call(input: Any, target: Any, *, reduction: str = "mean", log_target: bool = False) -> Any:
        if reduction != "batchmean":
            need_reduction(reduction)
        return apply("kl_div", input, target, attrs=(reduction, log_target))

    @staticmethod
    def compute(x: Any, t: Any, reduction: str, log_target: bool) -> Any:
        each = ops.exp(t) * (t - x) if log_target else ops.xlogy(t, t) - t * x
        if reduction == "batchmean":
            return reduced(each, "sum") / float(each.shape[0] if each.ndim else 1)
        return reduced(each, reduction)

    @staticmethod
    def reference(x: Any, t: Any, reduction: str, log_target: bool) -> Any:
        each = numpy.exp(t) * (t - x) if log_target else t * (numpy.log(t) - x)
        return each.sum() / len(each) if reduction == "batchmean" else numpy_reduced(each, reduction)

    samples = lambda: [
        example(("batchmean", False), (3, 17), *_probabilities((3, 17))),
        example(("mean", True), (3, 17), (3, 17)),
    ]
