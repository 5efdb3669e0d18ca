"""Losses of every element with one target: distances, margins, binary cross entropy, divergence."""

from __future__ import annotations

from typing import Any

import numpy

from twofold.errors import ArgumentError, DTypeError, ShapeError
from twofold.ir.sizes import real
from twofold.ops.base import (
    apply,
    broadcast,
    broadcast_shapes,
    composite,
    convert,
    ops,
    strong,
)
from twofold.ops.building_blocks import rounded_once
from twofold.ops.examples import example
from twofold.ops.loss.class_losses import REDUCTIONS, need_reduction, numpy_reduced, reduced, share
from twofold.ops.promotion import common_dtype
from twofold.ops.shape.movement import sum_to
from twofold.ops.signatures import keyword, shows


def _refused(name: str, x: Any, t: Any) -> DTypeError:
    return DTypeError(
        f"{name} does not take input of dtype {x.dtype.name} and target of dtype {t.dtype.name}",
        "Convert them, for example with .float().",
    )


def _pairwise(body: type) -> Any:
    """A loss of ``input`` and ``target`` element by element, from ``each(x, t, *numbers)`` and ``exact``."""
    rules: Any = body
    name, each, exact = body.__name__, rules.each, rules.exact
    defaults: tuple[tuple[str, Any], ...] = getattr(rules, "numbers", ())
    fits = getattr(rules, "fits", lambda number: True)
    kinds: str = getattr(rules, "kinds", "f")  # of the dtype that input and target meet in
    input_kinds: str = getattr(rules, "input_kinds", "biufc")

    rounded = rounded_once(lambda x, t, *rest: reduced(each(x, t, *rest[:-1]), rest[-1]))

    class entry:
        autograd_name = getattr(rules, "autograd_name", "")
        autocast = "float32"

        @staticmethod
        def call(input: Any, target: Any, *, reduction: str = "mean", **given: Any) -> Any:
            numbers = [given.pop(key, value) for key, value in defaults]
            if given:
                raise TypeError(f"{name}() got an unexpected keyword argument {next(iter(given))!r}")
            for (key, _), number in zip(defaults, numbers, strict=True):
                if isinstance(number, (int, float)) and not fits(number):
                    raise ArgumentError(f"{key} is {number}", "Use a positive number.")
            return apply(name, input, target, *numbers, attrs=(need_reduction(reduction),))

        @staticmethod
        def compute(x: Any, t: Any, *rest: Any) -> Any:
            x, t = strong(x), strong(t)
            kind = common_dtype([x.type, t.type])[0].kind
            mean_of_integers = kind in "iu" and rest[-1] == "mean"
            if kind not in kinds or x.dtype.kind not in input_kinds or mean_of_integers:
                raise _refused(name, x, t)
            if t.shape != x.shape:
                shape = broadcast_shapes(x.shape, t.shape)
                x, t = broadcast(x, shape), broadcast(t, shape)
            return rounded(x, t, *rest)

        reference = lambda x, t, *rest: numpy_reduced(exact(x, t, *rest[:-1]), rest[-1])

        @staticmethod
        def samples() -> Any:
            numbers = [numpy.array(float(value)) for _, value in defaults]
            made = [example((how,), (3, 17), (3, 17), *numbers) for how in REDUCTIONS]
            positive = getattr(rules, "positive", lambda sample: sample)
            return [positive(sample) for sample in made]

    entry.__name__, entry.__doc__ = name, body.__doc__
    shows(entry.call, entry.call, *[keyword(*one) for one in defaults], without=("given",))
    return composite(entry)


@_pairwise
class mse_loss:
    """``(input - target) ** 2``.

    >>> import twofold as torch
    >>> torch.nn.functional.mse_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 5.0]))
    tensor(4.5000)
    >>> torch.nn.functional.mse_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 5.0]), reduction="none")
    tensor([0., 9.])
    """

    each = staticmethod(lambda x, t: ops.square(x - t))
    exact = staticmethod(lambda x, t: (x - t) ** 2)


@_pairwise
class l1_loss:
    """``|input - target|``.

    >>> import twofold as torch
    >>> torch.nn.functional.l1_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 5.0]))
    tensor(1.5000)
    """

    autograd_name = lambda attrs, types: {"mean": "Mean", "sum": "Sum"}.get(attrs[0], "Abs") + "Backward0"
    kinds = "iufc"
    each = staticmethod(lambda x, t: ops.abs(x - t))
    exact = staticmethod(lambda x, t: abs(x - t))


@_pairwise
class huber_loss:
    """``d**2 / 2`` for ``d = |input - target|`` up to ``delta``, then ``delta * (d - delta / 2)``.

    >>> import twofold as torch
    >>> x, target = torch.tensor([0.5, 4.0]), torch.zeros(2)
    >>> torch.nn.functional.huber_loss(x, target, delta=2.0, reduction="none")
    tensor([0.1250, 6.0000])
    """

    input_kinds = "f"
    numbers = (("delta", 1.0),)
    fits = staticmethod(lambda delta: delta > 0)
    each = staticmethod(lambda x, t, k: _huber(ops.abs(x - t), k))
    exact = staticmethod(
        lambda x, t, k: numpy.where(abs(x - t) <= k, (x - t) ** 2 / 2, k * (abs(x - t) - k / 2))
    )


def _huber(d: Any, k: Any) -> Any:
    return ops.where(ops.less_equal(d, k), d * d * 0.5, (d - k * 0.5) * k)


@_pairwise
class smooth_l1_loss:
    """``d**2 / (2 * beta)`` for ``d = |input - target|`` below ``beta``, then ``d - beta / 2``.

    >>> import twofold as torch
    >>> torch.nn.functional.smooth_l1_loss(torch.tensor([0.5, 4.0]), torch.zeros(2), reduction="none")
    tensor([0.1250, 3.5000])
    """

    numbers = (("beta", 1.0),)
    fits = staticmethod(lambda beta: beta >= 0)
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
    """``log(1 + exp(-target * input))``.

    >>> import twofold as torch
    >>> x, target = torch.tensor([0.0, 2.0]), torch.tensor([1.0, -1.0])
    >>> torch.nn.functional.soft_margin_loss(x, target, reduction="none")
    tensor([0.6931, 2.1269])
    """

    input_kinds = "f"
    each = staticmethod(lambda x, t: ops.softplus(-(t * x)))
    exact = staticmethod(lambda x, t: numpy.log1p(numpy.exp(-t * x)))


def _need_fitting_weights(x: Any, **given: Any) -> None:
    """Raise ShapeError for weights that would repeat the elements of ``x``."""
    for name, weight in given.items():
        if weight is not None and broadcast_shapes(x.shape, weight.shape) != x.shape:
            raise ShapeError(
                f"{name} of shape {weight.shape} for input of shape {x.shape}",
                "Use one that broadcasts to the input.",
            )


def _between_0_and_1(input: Any, target: Any) -> Any:
    """Both as they are; the kernel fails for a value outside."""
    return (
        apply("within", value, attrs=(name, 0.0, 1.0))
        for name, value in (("input", input), ("target", target))
    )


def _limited_logs(x: Any) -> tuple[Any, Any]:
    return ops.maximum(ops.log(x), -100.0), ops.maximum(ops.log1p(-x), -100.0)


def _probabilities(*shapes: Any) -> list[Any]:
    generator = numpy.random.default_rng(3)
    return [generator.uniform(0.05, 0.95, shape).astype(numpy.float32) for shape in shapes]


@rounded_once
def _rounded_cross_entropy(x: Any, t: Any, *rest: Any) -> Any:
    yes, no = _limited_logs(x)
    each = (t - 1) * no - t * yes
    return reduced(each * rest[0] if len(rest) > 1 else each, rest[-1])


@composite
class binary_cross_entropy:
    """``-(t * log(x) + (1 - t) * log(1 - x))`` for probabilities ``x``, with logarithms of at least -100.

    >>> import twofold as torch
    >>> x, target = torch.tensor([0.5, 0.9]), torch.tensor([1.0, 0.0])
    >>> torch.nn.functional.binary_cross_entropy(x, target, reduction="none")
    tensor([0.6931, 2.3026])
    """

    autocast = "float32"

    @staticmethod
    def call(input: Any, target: Any, weight: Any = None, *, reduction: str = "mean") -> Any:
        weights = () if weight is None else (weight,)
        return apply("binary_cross_entropy", input, target, *weights, attrs=(need_reduction(reduction),))

    @staticmethod
    def compute(x: Any, t: Any, *rest: Any) -> Any:
        x, t = strong(x), strong(t)
        if x.dtype is not t.dtype:
            raise DTypeError(f"Found dtype {t.dtype.name} but expected {x.dtype.name}", "Convert the target.")
        if x.shape != t.shape:
            raise ShapeError(
                f"targets of shape {t.shape} for input of shape {x.shape}", "Make the shapes equal."
            )
        _need_fitting_weights(x, weight=rest[0] if len(rest) > 1 else None)
        x, t = _between_0_and_1(x, t)
        return _rounded_cross_entropy(x, t, *rest)

    @staticmethod
    def vjp(ct: Any, y: Any, x: Any, t: Any, *rest: Any) -> Any:
        x, t = _between_0_and_1(x, t)
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

    ``pos_weight`` weighs positive targets. The result has the dtype of ``target``, which is floating.

    >>> import twofold as torch
    >>> x = torch.tensor([0.0, 1000.0])
    >>> torch.nn.functional.binary_cross_entropy_with_logits(x, torch.ones(2), reduction="none")
    tensor([0.6931, 0.0000])
    """

    autocast = "float32"

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
        x, t = strong(x), strong(t)
        for role, value in (("input", x), ("target", t)):
            if value.dtype.kind != "f":
                raise DTypeError(
                    f"{role} of dtype {value.dtype.name}: binary_cross_entropy_with_logits takes floating dtypes",
                    f"Convert it, for example {role}.float().",
                )
        if x.shape != t.shape:
            raise ShapeError(
                f"targets of shape {t.shape} for input of shape {x.shape}", "Make the shapes equal."
            )
        _need_fitting_weights(
            x, weight=more[0] if weighted else None, pos_weight=more[-1] if positive else None
        )
        factor = 1 + (more[-1] - 1) * t if positive else 1
        tail = ops.softplus(-x)
        each = (1 - t) * x + (tail * factor if positive else tail)
        each = each * more[0] if weighted else each
        return reduced(convert(each, t.dtype), reduction)

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

    The reduction ``"batchmean"`` divides the sum by the first size of ``input``.

    >>> import twofold as torch
    >>> x, target = torch.tensor([[0.5, 0.5]]), torch.tensor([[0.25, 0.75]])
    >>> torch.nn.functional.kl_div(x.log(), target, reduction="batchmean")
    tensor(0.1308)
    """

    autocast = "float32"

    @staticmethod
    def call(input: Any, target: Any, *, reduction: str = "mean", log_target: bool = False) -> Any:
        if reduction != "batchmean":
            need_reduction(reduction)
        for name, value in (("input", input), ("target", target)):
            if not value.dtype.is_differentiable:
                raise DTypeError(f"{name} is {value.dtype.name}, not floating", "Cast it with .float().")
        return apply("kl_div", input, target, attrs=(reduction, log_target))

    @staticmethod
    def compute(x: Any, t: Any, reduction: str, log_target: bool) -> Any:
        each = ops.exp(t) * (t - x) if log_target else ops.xlogy(t, t) - t * x
        if reduction == "batchmean":
            return reduced(each, "sum") / real(x.shape[0] if x.ndim else 1)
        return reduced(each, reduction)

    @staticmethod
    def reference(x: Any, t: Any, reduction: str, log_target: bool) -> Any:
        each = numpy.exp(t) * (t - x) if log_target else t * (numpy.log(t) - x)
        return each.sum() / len(x) if reduction == "batchmean" else numpy_reduced(each, reduction)

    samples = lambda: [
        example(("batchmean", False), (3, 17), *_probabilities((3, 17))),
        example(("mean", True), (3, 17), (3, 17)),
    ]
