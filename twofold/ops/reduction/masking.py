"""Reductions and normalisations in which only the elements take part where a mask is true.

An element that is left out is replaced by what changes nothing: 0 in a sum, 1 in a product, an infinity in an
extreme. The mask broadcasts to the input.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy

from twofold.dtypes import DType, as_dtype, bool_, float32, int64
from twofold.errors import DTypeError
from twofold.ops.base import FUNCTIONS, normalize_axis, ops, public
from twofold.ops.docstrings import shown


def _limit(dtype: DType, largest: bool) -> Any:
    if dtype.kind in "fc":
        return math.inf if largest else -math.inf
    if dtype is bool_:
        return largest
    limits = numpy.iinfo(dtype.numpy)
    return int(limits.max if largest else limits.min)


def kept(input: Any, mask: Any, blank: Any) -> Any:
    """``input`` where the mask is true (None: everywhere), ``blank`` elsewhere."""
    if mask is None:
        return input
    if mask.dtype is not bool_:
        mask = ops.not_equal(mask, 0)
    return ops.where(mask, input, ops.full_like(input, blank))


def _converted(value: Any, dtype: Any) -> Any:
    wanted = as_dtype(dtype)
    return value if value.dtype is wanted else ops.cast(value, wanted)


def _publish(
    name: str, description: str, result: str, arguments: str = ""
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Publish ``masked.<name>``, with an example that has such further ``arguments`` and prints ``result``."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        function.__name__ = name
        function.__doc__ = shown(
            f"{description}, of the elements where ``mask`` is true.",
            ">>> x, mask = torch.tensor([4.0, 2.0, 1.0]), torch.tensor([True, False, True])",
            f">>> torch.masked.{name}(x, {arguments}mask=mask)",
            result,
        )
        return public(f"masked.{name}")(function)

    return decorate


def _total(name: str, blank: int, description: str, result: str) -> None:
    @_publish(name, description, result)
    def reduced(
        input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
    ) -> Any:
        wanted = as_dtype(dtype) if dtype is not None else input.dtype if input.dtype.kind in "fc" else int64
        value = _converted(kept(_converted(input, wanted), mask, blank), wanted)
        axes = [dim] if isinstance(dim, int) else range(len(input.shape)) if dim is None else dim
        found = value
        for axis in sorted((normalize_axis(axis, len(input.shape)) for axis in axes), reverse=True):
            found = FUNCTIONS[name](found, axis, keepdim)
        return _converted(found, wanted)


_total("sum", 0, "The sum over ``dim``", "tensor(5.)")
_total("prod", 1, "The product over ``dim``", "tensor(4.)")


def _running(name: str, blank: int, description: str, result: str) -> None:
    @_publish(name, description, result, "dim=0, ")
    def running(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
        wanted = as_dtype(dtype) if dtype is not None else input.dtype if input.dtype.kind in "fc" else int64
        return FUNCTIONS[name](kept(_converted(input, wanted), mask, blank), dim)


_running("cumsum", 0, "The sums up to each position along ``dim``", "tensor([4., 4., 5.])")
_running("cumprod", 1, "The products up to each position along ``dim``", "tensor([4., 4., 4.])")


def _extreme(name: str, largest: bool, description: str, result: str) -> None:
    @_publish(name, description, result)
    def extreme(
        input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
    ) -> Any:
        value = kept(input, mask, _limit(input.dtype, not largest))
        return _converted(FUNCTIONS[name](value, None if dim == () else dim, keepdim), dtype or input.dtype)


_extreme("amax", True, "The largest over ``dim``", "tensor(4.)")
_extreme("amin", False, "The smallest over ``dim``", "tensor(1.)")
_extreme("argmax", True, "The position of the largest over ``dim``, in the input's dtype", "tensor(0.)")
_extreme("argmin", False, "The position of the smallest over ``dim``, in the input's dtype", "tensor(2.)")


def _count(input: Any, dim: Any, keepdim: bool, mask: Any) -> Any:
    """How many elements take part."""
    ones = ops.ones_like(input, dtype=int64)
    return FUNCTIONS["masked.sum"](ones, dim, keepdim=keepdim, mask=mask)


@_publish("mean", "The average over ``dim``", "tensor(2.5000)")
def mean(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    wanted = as_dtype(dtype or input.dtype)
    if wanted.kind not in "fc":
        raise DTypeError(f"takes floating dtypes, not {wanted.name}", "Give dtype=float32.")
    total = FUNCTIONS["masked.sum"](input, dim, keepdim=keepdim, dtype=wanted, mask=mask)
    return ops.divide(total, _count(input, dim, keepdim, mask))


@_publish("median", "The lower median along ``dim``", "tensor(1.)", "dim=0, ")
def median(input: Any, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    value = input if input.dtype.kind == "f" else input * 1.0
    found = ops.nanmedian(kept(value, mask, math.nan), dim, keepdim).values
    return found if input.dtype.kind == "f" else _converted(found, dtype or input.dtype)


def _deviation(name: str, description: str, result: str) -> None:
    @_publish(name, description, result)
    def deviation(
        input: Any,
        dim: Any = None,
        unbiased: bool | None = None,
        *,
        correction: Any = None,
        keepdim: bool = False,
        dtype: Any = None,
        mask: Any = None,
    ) -> Any:
        taken = float(correction) if correction is not None else 1.0 if unbiased is None else float(unbiased)
        wanted = (
            as_dtype(dtype) if dtype is not None else input.dtype if input.dtype.kind in "fc" else float32
        )
        total = FUNCTIONS["masked.sum"]
        count = _count(input, dim, True, mask)
        center = ops.divide(total(input, dim, keepdim=True, dtype=wanted, mask=mask), count)
        apart = ops.subtract(input, center)
        squares = ops.square(ops.abs(apart) if wanted.kind == "c" else apart)
        squared = total(squares, dim, keepdim=keepdim, dtype=wanted.real, mask=mask)
        divisor = ops.maximum(ops.subtract(ops.reshape(count, tuple(squared.shape)), taken), 0.0)
        found = _converted(ops.divide(squared, divisor), wanted)
        return ops.sqrt(found) if name == "std" else found


_deviation("var", "The variance over ``dim``", "tensor(4.5000)")
_deviation("std", "The standard deviation over ``dim``", "tensor(2.1213)")


@_publish("norm", "The ``ord``-norm over ``dim``", "tensor(5.)", "ord=1, ")
def norm(
    input: Any, ord: Any = 2.0, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Any:
    value = kept(input, mask, math.inf if ord == -math.inf else 0)
    found = FUNCTIONS["linalg.vector_norm"](value, 2.0 if ord is None else ord, dim, keepdim)
    return _converted(found, dtype or input.dtype)


@_publish(
    "normalize",
    "The input over its ``ord``-norm along ``dim`` (at least ``eps``)",
    "tensor([0.8000, 0.0000, 0.2000])",
    "ord=1, dim=0, ",
)
def normalize(
    input: Any, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None, mask: Any = None
) -> Any:
    if dtype is None and input.dtype.kind == "c":
        dtype = input.dtype.real
    length = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return ops.divide(kept(input, mask, 0), ops.maximum(length, eps))


def _exponential(name: str, blank: float, description: str, result: str) -> None:
    @_publish(name, description, result, "dim=0, ")
    def normalized(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
        return FUNCTIONS[name](kept(_converted(input, dtype or input.dtype), mask, blank), dim)


_exponential("softmax", -math.inf, "The softmax along ``dim``", "tensor([0.9526, 0.0000, 0.0474])")
_exponential(
    "log_softmax",
    -math.inf,
    "The logarithm of the softmax along ``dim``",
    "tensor([-0.0486,    -inf, -3.0486])",
)
_exponential(
    "softmin",
    math.inf,
    "The softmax of the negative input along ``dim``",
    "tensor([0.0474, 0.0000, 0.9526])",
)


@_publish("logsumexp", "``log(sum(exp(input)))`` over ``dim``", "tensor(4.0486)", "dim=0, ")
def logsumexp(
    input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Any:
    found = ops.logsumexp(kept(input, mask, _limit(input.dtype, False)), dim, keepdim)
    return _converted(found, dtype or input.dtype)


@public("masked.logaddexp")
def logaddexp(
    input: Any, other: Any, *, dtype: Any = None, input_mask: Any = None, other_mask: Any = None
) -> Any:
    """``log(exp(input) + exp(other))``, in which each takes part only where its mask is true.

    >>> import twofold as torch
    >>> torch.masked.logaddexp(torch.zeros(2), torch.zeros(2), other_mask=torch.tensor([True, False]))
    tensor([0.6931, 0.0000])
    """
    sides = kept(input, input_mask, -math.inf), kept(other, other_mask, -math.inf)
    return _converted(ops.logaddexp(*sides), dtype or input.dtype)
