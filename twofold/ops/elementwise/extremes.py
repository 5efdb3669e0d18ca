"""The larger and the smaller of two elements, and elements within limits."""

from __future__ import annotations

from typing import Any

import numpy

from twofold.errors import ArgumentError
from twofold.ops.autograd_names import beside_number
from twofold.ops.base import apply, composite, elementwise, ops
from twofold.ops.promotion import need_beside
from twofold.ops.samples import reals


def _tied(ct: Any, a: Any, b: Any) -> Any:
    """The gradient of an extreme for ``a`` where ``b`` does not beat it: half where they are equal."""
    return ops.where(ops.equal(a, b), ct * 0.5, ct)


@elementwise
class maximum:
    """The larger of the two; NaN if either is. Equal operands share the gradient.

    >>> import twofold as torch
    >>> torch.maximum(torch.tensor([1.0, 5.0, float("nan")]), torch.tensor([3.0, 2.0, 0.0]))
    tensor([3., 5., nan])
    """

    signature = "input, other"
    vjp = lambda ct, y, a, b: (
        ops.where(a < b, 0, _tied(ct, a, b)),
        ops.where(b < a, 0, _tied(ct, a, b)),
    )
    lower = lambda b, x, y: b.maximum(x, y)
    reference = numpy.maximum


@elementwise
class minimum:
    """The smaller of the two; NaN if either is. Equal operands share the gradient.

    >>> import twofold as torch
    >>> torch.minimum(torch.tensor([1.0, 5.0, float("nan")]), torch.tensor([3.0, 2.0, 0.0]))
    tensor([1., 2., nan])
    """

    signature = "input, other"
    vjp = lambda ct, y, a, b: (
        ops.where(a > b, 0, _tied(ct, a, b)),
        ops.where(b > a, 0, _tied(ct, a, b)),
    )
    lower = lambda b, x, y: b.minimum(x, y)
    reference = numpy.minimum


@elementwise
class first_maximum:
    """The larger of the two; NaN if either is. Of equal operands ``input`` has the gradient, as in TensorFlow."""

    functions = ()
    signature = "input, other"
    vjp = lambda ct, y, a, b: (ops.where(a >= b, ct, 0), ops.where(a >= b, 0, ct))
    lower = lambda b, x, y: b.maximum(x, y)
    reference = numpy.maximum


@elementwise
class first_minimum:
    """The smaller of the two; NaN if either is. Of equal operands ``input`` has the gradient, as in TensorFlow."""

    functions = ()
    signature = "input, other"
    vjp = lambda ct, y, a, b: (ops.where(a <= b, ct, 0), ops.where(a <= b, 0, ct))
    lower = lambda b, x, y: b.minimum(x, y)
    reference = numpy.minimum


@composite
class fmax:
    """The larger of the two; of a number and a NaN, the number. Of equal operands the first has the gradient.

    >>> import twofold as torch
    >>> torch.fmax(torch.tensor([1.0, 5.0, float("nan")]), torch.tensor([3.0, 2.0, 0.0]))
    tensor([3., 5., 0.])
    """

    promotes = True
    signature = "input, other"
    methods = ("fmax",)
    reference = numpy.fmax
    compute = lambda a, b: ops.where(ops.logical_or(ops.greater_equal(a, b), ops.isnan(b)), a, b)


@composite
class fmin:
    """The smaller of the two; of a number and a NaN, the number. Of equal operands the first has the gradient.

    >>> import twofold as torch
    >>> torch.fmin(torch.tensor([1.0, 5.0, float("nan")]), torch.tensor([3.0, 2.0, 0.0]))
    tensor([1., 2., 0.])
    """

    promotes = True
    signature = "input, other"
    methods = ("fmin",)
    reference = numpy.fmin
    compute = lambda a, b: ops.where(ops.logical_or(ops.less_equal(a, b), ops.isnan(b)), a, b)


@elementwise
class clamp:
    """``input`` limited to [``min``, ``max``]; inside, the limits included, the gradient passes, at NaN it does not.

    Limits are numbers or tensors. Raises ArgumentError where neither is given.

    >>> import twofold as torch
    >>> torch.clamp(torch.tensor([-2.0, 0.5, 3.0]), 0, 1)
    tensor([0.0000, 0.5000, 1.0000])
    >>> torch.clamp(torch.tensor([-2.0, 0.5, 3.0]), max=1)
    tensor([-2.0000,  0.5000,  1.0000])
    """

    autograd_name = beside_number("ClampBackward1", "ClampBackward0")
    signature = "input, min, max"
    functions = ("clamp", "clip")
    domain = (reals(-3, 3), reals(-1.5, -0.5), reals(0.5, 1.5))
    kinds = "iuf"
    arity = 3
    checks_numbers = True
    vjp = lambda ct, y, x, low, high: (
        ops.where(ops.logical_and(x >= low, x <= high), ct, 0),
        ops.where(ops.logical_and(x < low, low < high), ct, 0),
        ops.where(ops.logical_or(x > high, low > high), ct, 0),
    )
    lower = lambda b, x, low, high: b.minimum(b.maximum(x, low), high)
    reference = lambda x, low, high: numpy.minimum(numpy.maximum(x, low), high)

    @staticmethod
    def call(input: Any, min: Any = None, max: Any = None) -> Any:
        if min is None and max is None:
            raise ArgumentError("neither min nor max is given", "Give at least one limit.")
        need_beside(min, input)
        need_beside(max, input)
        if max is None:
            return apply("clamp_min", input, min)
        if min is None:
            return apply("clamp_max", input, max)
        return apply("clamp", input, min, max)


@elementwise
class clamp_min:
    """``input`` where it is not below ``min``, else ``min``.

    >>> import twofold as torch
    >>> torch.clamp_min(torch.tensor([-2, 0, 3]), 1)
    tensor([1, 1, 3])
    """

    signature = "input, min"
    arity = 2
    checks_numbers = True
    vjp = lambda ct, y, x, low: (ops.where(x >= low, ct, 0), ops.where(x < low, ct, 0))
    lower = lambda b, x, low: b.maximum(x, low)
    reference = numpy.maximum

    @staticmethod
    def call(input: Any, min: Any) -> Any:
        need_beside(min, input)
        return apply("clamp_min", input, min)


@elementwise
class clamp_max:
    """``input`` where it is not above ``max``, else ``max``.

    >>> import twofold as torch
    >>> torch.clamp_max(torch.tensor([-2, 0, 3]), 1)
    tensor([-2,  0,  1])
    """

    signature = "input, max"
    arity = 2
    checks_numbers = True
    vjp = lambda ct, y, x, high: (ops.where(x <= high, ct, 0), ops.where(x > high, ct, 0))
    lower = lambda b, x, high: b.minimum(x, high)
    reference = numpy.minimum

    @staticmethod
    def call(input: Any, max: Any) -> Any:
        need_beside(max, input)
        return apply("clamp_max", input, max)
