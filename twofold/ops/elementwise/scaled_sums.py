"""Sums with a scaled term: ``add`` and ``sub`` with ``alpha``, interpolation, sums of products and quotients."""

from __future__ import annotations

from typing import Any

from twofold.ops.base import apply, composite, ops
from twofold.ops.building_blocks import rounded_once
from twofold.ops.promotion import factor_beside
from twofold.ops.samples import nonzero, reals
from twofold.ops.signatures import scales_first


@composite
class add_scaled:
    """``input + alpha * other``."""

    autograd_name = "AddBackward0"
    title = "add"
    promotes = True
    signature = "input, other, alpha"
    reference = lambda x, y, alpha: x + alpha * y
    compute = rounded_once(lambda x, y, alpha: x + y * alpha)


@composite
class subtract_scaled:
    """``input - alpha * other``."""

    autograd_name = "SubBackward0"
    title = "subtract"
    promotes = True
    signature = "input, other, alpha"
    reference = lambda x, y, alpha: x - alpha * y
    compute = rounded_once(lambda x, y, alpha: x - y * alpha)


@composite
class lerp:
    """Linear interpolation ``input + weight * (end - input)``, exact at the weights 0 and 1.

    >>> import twofold as torch
    >>> torch.lerp(torch.tensor([0.0, 10.0]), torch.tensor([4.0, 20.0]), 0.25)
    tensor([ 1.0000, 12.5000])
    """

    inplace = promotes = True
    signature = "input, end, weight"
    methods = ("lerp",)
    reference = lambda a, b, w: a + w * (b - a)
    compute = rounded_once(
        lambda a, b, w: ops.where(ops.abs(w) < 0.5, a + w * (b - a), b - (b - a) * (1 - w))
    )


@composite
class addcmul:
    """``input + value * tensor1 * tensor2``.

    >>> import twofold as torch
    >>> torch.addcmul(torch.tensor([1.0, 1.0]), torch.tensor([2.0, 3.0]), torch.tensor([4.0, 5.0]), value=10)
    tensor([ 81., 151.])
    """

    inplace = promotes = True
    signature = "input, tensor1, tensor2, value"
    methods = ("addcmul",)
    reference = lambda x, a, b, value: x + value * a * b
    compute = rounded_once(lambda x, a, b, value: x + value * a * b)

    @staticmethod
    @scales_first("value")
    def call(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
        return apply("addcmul", input, tensor1, tensor2, factor_beside(value, input, tensor1, tensor2))


@composite
class addcdiv:
    """``input + value * tensor1 / tensor2``.

    >>> import twofold as torch
    >>> torch.addcdiv(torch.tensor([1.0, 1.0]), torch.tensor([2.0, 3.0]), torch.tensor([4.0, 2.0]), value=10)
    tensor([ 6., 16.])
    """

    inplace = promotes = True
    signature = "input, tensor1, tensor2, value"
    methods = ("addcdiv",)
    domain = (reals(-3, 3), reals(-3, 3), nonzero(-3, 3, 0.5), reals(-3, 3))
    reference = lambda x, a, b, value: x + value * a / b
    compute = rounded_once(lambda x, a, b, value: x + value * a / b)

    @staticmethod
    @scales_first("value")
    def call(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
        return apply("addcdiv", input, tensor1, tensor2, value)
