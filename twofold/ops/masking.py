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
from twofold.ops.base import FUNCTIONS, ops, public


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


def _publish(name: str, words: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Publish ``masked.<name>``."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        function.__name__ = name
        function.__doc__ = f"{words}, of the elements where ``mask`` is true."
        return public(f"masked.{name}")(function)

    return decorate


def _total(name: str, blank: int, words: str) -> None:
    @_publish(name, words)
    def reduced(
        input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
    ) -> Any:
        wanted = as_dtype(dtype) if dtype is not None else input.dtype if input.dtype.kind in "fc" else int64
        value = _converted(kept(_converted(input, wanted), mask, blank), wanted)
        axes = [dim] if isinstance(dim, int) else range(len(input.shape)) if dim is None else dim
        found = value
        for axis in sorted((axis % max(len(input.shape), 1) for axis in axes), reverse=True):
            found = FUNCTIONS[name](found, axis, keepdim)
        return _converted(found, wanted)


_total("sum", 0, "The sum over ``dim``")
_total("prod", 1, "The product over ``dim``")


def _running(name: str, blank: int, words: str) -> None:
    @_publish(name, words)
    def running(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
        wanted = as_dtype(dtype) if dtype is not None else input.dtype if input.dtype.kind in "fc" else int64
        return FUNCTIONS[name](kept(_converted(input, wanted), mask, blank), dim)


_running("cumsum", 0, "The sums up to each place along ``dim``")
_running("cumprod", 1, "The products up to each place along ``dim``")


def _extreme(name: str, largest: bool, words: str) -> None:
    @_publish(name, words)
    def extreme(
        input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
    ) -> Any:
        value = kept(input, mask, _limit(input.dtype, not largest))
        return _converted(FUNCTIONS[name](value, None if dim == () else dim, keepdim), dtype or input.dtype)


for _name, _largest, _words in (
    ("amax", True, "The largest over ``dim``"),
    ("amin", False, "The smallest over ``dim``"),
    ("argmax", True, "The place of the largest over ``dim``, in the input's dtype"),
    ("argmin", False, "The place of the smallest over ``dim``, in the input's dtype"),
):
    _extreme(_name, _largest, _words)


def _count(input: Any, dim: Any, keepdim: bool, mask: Any) -> Any:
    """How many elements take part."""
    ones = ops.ones_like(input, dtype=int64)
    return FUNCTIONS["masked.sum"](ones, dim, keepdim=keepdim, mask=mask)


@_publish("mean", "The average over ``dim``")
def mean(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    wanted = as_dtype(dtype or input.dtype)
    if wanted.kind not in "fc":
        raise DTypeError(f"takes floating dtypes, not {wanted.name}", "Give dtype=float32.")
    total = FUNCTIONS["masked.sum"](input, dim, keepdim=keepdim, dtype=wanted, mask=mask)
    return ops.divide(total, _count(input, dim, keepdim, mask))


@_publish("median", "The lower median along ``dim``")
def median(input: Any, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    value = input if input.dtype.kind == "f" else ops.cast(input, float32)
    found = ops.nanmedian(kept(value, mask, math.nan), dim, keepdim).values
    return found if input.dtype.kind == "f" else _converted(found, dtype or input.dtype)


def _deviation(name: str, words: str) -> None:
    @_publish(name, words)
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
        spread = total(squares, dim, keepdim=keepdim, dtype=wanted.real, mask=mask)
        divisor = ops.maximum(ops.subtract(ops.reshape(count, tuple(spread.shape)), taken), 0.0)
        found = _converted(ops.divide(spread, divisor), wanted)
        return ops.sqrt(found) if name == "std" else found


_deviation("var", "The variance over ``dim``")
_deviation("std", "The standard deviation over ``dim``")


@_publish("norm", "The ``ord``-norm over ``dim``")
def norm(
    input: Any, ord: Any = 2.0, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Any:
    value = kept(input, mask, math.inf if ord == -math.inf else 0)
    found = FUNCTIONS["linalg.vector_norm"](value, 2.0 if ord is None else ord, dim, keepdim)
    return _converted(found, dtype or input.dtype)


@_publish("normalize", "The input over its ``ord``-norm along ``dim`` (at least ``eps``)")
def normalize(
    input: Any, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None, mask: Any = None
) -> Any:
    if dtype is None and input.dtype.kind == "c":
        dtype = input.dtype.real
    length = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return ops.divide(kept(input, mask, 0), ops.maximum(length, eps))


def _exponential(name: str, blank: float, words: str) -> None:
    @_publish(name, words)
    def normalized(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
        return FUNCTIONS[name](kept(_converted(input, dtype or input.dtype), mask, blank), dim)


_exponential("softmax", -math.inf, "The softmax along ``dim``")
_exponential("log_softmax", -math.inf, "The logarithm of the softmax along ``dim``")
_exponential("softmin", math.inf, "The softmax of the negative input along ``dim``")


@_publish("logsumexp", "``log(sum(exp(input)))`` over ``dim``")
def logsumexp(
    input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Any:
    found = ops.logsumexp(kept(input, mask, _limit(input.dtype, False)), dim, keepdim)
    return _converted(found, dtype or input.dtype)


@public("masked.logaddexp")
def logaddexp(
    input: Any, other: Any, *, dtype: Any = None, input_mask: Any = None, other_mask: Any = None
) -> Any:
    """``log(exp(input) + exp(other))``, in which each takes part only where its mask is true."""
    sides = kept(input, input_mask, -math.inf), kept(other, other_mask, -math.inf)
    return _converted(ops.logaddexp(*sides), dtype or input.dtype)
