"""Variance and standard deviation over axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from twofold.errors import ArgumentError
from twofold.ops.axes import given_once
from twofold.ops.base import (
    apply,
    composite,
    convert,
    normalize_axes,
    ops,
    public,
)
from twofold.ops.building_blocks import rounded_once
from twofold.ops.elementwise import complex_functions
from twofold.ops.reduction.reductions import Axes, broadcast_back, count_over, mean_over
from twofold.ops.samples import Sample, reals, reduction_samples


def _centered(x: Any, axes: Axes) -> Any:
    return x - mean_over(x, axes, True)


def _divisor(x: Any, axes: Axes, correction: float) -> float:
    return max(count_over(x.shape, axes) - correction, 0.0)


def _var(x: Any, axes: Axes, keepdims: bool, correction: float) -> Any:
    """Two passes: the mean first, so that no digits cancel."""
    wide = convert(x, x.dtype.compute)
    squares = apply("sum", ops.square(_centered(wide, axes)), attrs=(axes, keepdims))
    return convert(squares / _divisor(x, axes, correction), x.dtype)


def _complex_var(z: Any, *attrs: Any) -> Any:
    """Real: the mean squared distance from the mean, which is the sum over the parts."""
    return ops.add(*[apply("var", part, attrs=attrs) for part in complex_functions.parts(z)])


def _complex_std(z: Any, *attrs: Any) -> Any:
    variance = _complex_var(z, *attrs)
    constant = ops.equal(variance, 0)
    return ops.where(constant, 0, ops.sqrt(ops.where(constant, 1, variance)))


def _var_gradient(ct: Any, y: Any, x: Any, axes: Axes, keepdims: bool, correction: float) -> tuple[Any]:
    """What flows through the mean sums to zero."""
    wide = convert(x, x.dtype.compute)
    scale = convert(ct, wide.dtype) * 2.0 / _divisor(x, axes, correction)
    return (convert(broadcast_back(scale, axes, x) * _centered(wide, axes), x.dtype),)


def _spread_call(name: str) -> Callable[..., Any]:
    def call(
        input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = 1,
        axis: Any = None, keepdims: bool = False,
    ) -> Any:  # fmt: skip
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        if unbiased is not None and correction not in (1, None):
            raise ArgumentError(
                "unbiased and correction were both given", "They say the same: give one of them."
            )
        axes = normalize_axes(given_once(dim=dim, axis=axis), input.ndim)
        taken = float((1 if correction is None else correction) if unbiased is None else bool(unbiased))
        return apply(name, input, attrs=(axes, bool(keepdim or keepdims), taken))

    call.empty_dim_is_all = True  # type: ignore[attr-defined]
    return call


def _spread_samples() -> list[Sample]:
    made = reduction_samples("fc", reals(-3, 3), True)
    calls = [
        (s, correction) for s in made for correction in ((0.0, 1.0) if s.arrays[0].ndim == 3 else (1.0,))
    ]
    return [
        Sample((*s.attrs, c), s.arrays, s.dtypes, s.smooth and count_over(s.arrays[0].shape, s.attrs[0]) > 1)
        for s, c in calls
    ]


def _spread_reference(x: Any, axes: Axes, keepdims: bool, correction: float) -> Any:
    mean = numpy.sum(x, axis=axes, keepdims=True) / numpy.float64(count_over(x.shape, axes))
    squares = numpy.square(numpy.abs(x - mean))
    return numpy.sum(squares, axis=axes, keepdims=keepdims) / numpy.float64(_divisor(x, axes, correction))


@composite
class var:
    """Variance over ``dim``: squared distances from the mean, summed, over count - ``correction``.

    >>> import twofold as torch
    >>> torch.var(torch.tensor([1.0, 2.0, 3.0, 6.0]))
    tensor(4.6667)
    >>> torch.var(torch.tensor([1.0, 2.0, 3.0, 6.0]), correction=0)
    tensor(3.5000)
    """

    signature = "input"
    kinds = "f"
    on_complex = _complex_var
    samples = _spread_samples
    reference = _spread_reference
    compute = _var
    vjp = _var_gradient
    call = _spread_call("var")


def _std_gradient(ct: Any, y: Any, x: Any, axes: Axes, keepdims: bool, correction: float) -> tuple[Any]:
    """0 where all elements are equal, where the square root alone would give NaN."""
    wide = convert(x, x.dtype.compute)
    scale = convert(ct, wide.dtype) / (convert(y, wide.dtype) * _divisor(x, axes, correction))
    scale = ops.where(ops.equal(y, 0), 0, scale)
    return (convert(broadcast_back(scale, axes, x) * _centered(wide, axes), x.dtype),)


@composite
class std:
    """Standard deviation over ``dim``: the square root of the variance; its gradient at 0 is 0.

    >>> import twofold as torch
    >>> torch.std(torch.tensor([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]]), dim=1)
    tensor([1., 2.])
    """

    signature = "input"
    kinds = "f"
    on_complex = _complex_std
    samples = _spread_samples
    reference = lambda x, axes, keepdims, c: numpy.sqrt(_spread_reference(x, axes, keepdims, c))
    compute = rounded_once(lambda x, *attrs: ops.sqrt(_var(x, *attrs)))
    vjp = _std_gradient
    call = _spread_call("std")


@public(methods=("var_mean",))
def var_mean(
    input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = 1
) -> tuple[Any, Any]:
    """The variance and the mean over ``dim``.

    >>> import twofold as torch
    >>> torch.var_mean(torch.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    center = ops.mean(input, None if isinstance(dim, bool) else dim, keepdim)
    return ops.var(input, dim, unbiased, keepdim, correction=correction), center


@public(methods=("std_mean",))
def std_mean(
    input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = 1
) -> tuple[Any, Any]:
    """The standard deviation and the mean over ``dim``.

    >>> import twofold as torch
    >>> torch.std_mean(torch.tensor([2.0, 4.0, 6.0]))
    (tensor(2.), tensor(4.))
    """
    center = ops.mean(input, None if isinstance(dim, bool) else dim, keepdim)
    return ops.std(input, dim, unbiased, keepdim, correction=correction), center


var_mean.empty_dim_is_all = std_mean.empty_dim_is_all = True  # type: ignore[attr-defined]
