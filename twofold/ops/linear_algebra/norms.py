"""Norms of vectors and matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy

from twofold.dtypes import as_dtype, float32
from twofold.errors import ArgumentError, DTypeError, ShapeError
from twofold.ops.base import apply, composite, convert, normalize_axes, ops, public
from twofold.ops.linear_algebra.matrices import linalg_function, matrix_axes, real, to_dtype
from twofold.ops.reduction.reductions import Axes, broadcast_back
from twofold.ops.samples import Sample, reals, reduction_samples

_NUMBERS = (int, float)


def _vector_norm(x: Any, p: float, axes: Axes, keepdims: bool) -> Any:
    x = convert(x, x.dtype if x.dtype.kind in "fc" else float32)
    if x.dtype.kind == "f" and x.dtype.compute is not x.dtype:
        # powers of half types would overflow where their sum's root does not
        return convert(_vector_norm(convert(x, x.dtype.compute), p, axes, keepdims), x.dtype)
    if p == 0:
        nonzero = convert(ops.not_equal(x, 0), real(x).dtype)
        return apply("sum", nonzero, attrs=(axes, keepdims))
    size = ops.abs(x)
    if math.isinf(p):
        return apply("amax" if p > 0 else "amin", size, attrs=(axes, keepdims))
    if p == 1:
        return apply("sum", size, attrs=(axes, keepdims))
    if p == 2:
        return ops.sqrt(apply("sum", ops.square(size), attrs=(axes, keepdims)))
    return ops.pow(apply("sum", ops.pow(size, p), attrs=(axes, keepdims)), 1 / p)


def _vector_norm_gradient(ct: Any, y: Any, x: Any, p: float, axes: Axes, keepdims: bool) -> tuple[Any]:
    """``sgn(x) |x|**(p - 1) y**(1 - p)``; 0 where x is 0; shared evenly among elements that reach an extreme."""
    if x.dtype.kind not in "fc" or p == 0:
        return (None,)
    if x.dtype.kind == "f" and x.dtype.compute is not x.dtype:
        ct, y, wide = (convert(value, x.dtype.compute) for value in (ct, y, x))
        return (convert(_vector_norm_gradient(ct, y, wide, p, axes, keepdims)[0], x.dtype),)
    size, sign = ops.abs(x), ops.sgn(x) if x.dtype.kind == "c" else ops.sign(x)
    if p == 1:
        return (sign * broadcast_back(ct, axes, x),)
    if p == 2:
        return (x * broadcast_back(ops.where(ops.equal(y, 0), 0, ct / y), axes, x),)
    if math.isinf(p):
        reached = convert(ops.equal(size, broadcast_back(y, axes, x)), size.dtype)
        reached = ops.where(ops.isnan(size), 1, reached)
        count = apply("sum", reached, attrs=(axes, keepdims))
        return (sign * reached * broadcast_back(ct / count, axes, x),)
    none = ops.equal(size, 0)
    power = ops.where(none, 0, ops.pow(ops.where(none, 1, size), p - 1))
    scale = ops.where(ops.equal(y, 0), 0, ct * ops.pow(ops.where(ops.equal(y, 0), 1, y), 1 - p))
    return (sign * power * broadcast_back(scale, axes, x),)


_NORMS = (1.0, 2.0, 3.0, 0.5, 0.0, math.inf, -math.inf)


def _samples() -> list[Sample]:
    made = list(reduction_samples("f", reals(0.5, 3), False))
    # every order over some axes of three, and one after the other over all else
    chosen = [_NORMS if s.arrays[0].ndim == 3 else (_NORMS[k % len(_NORMS)],) for k, s in enumerate(made)]
    return [
        Sample((p, *s.attrs), s.arrays, s.dtypes, s.smooth and p != 0)
        for s, orders in zip(made, chosen)
        for p in orders
    ]


def _reference(x: Any, p: float, axes: Axes, keepdims: bool) -> Any:
    x = abs(x)
    if math.isinf(p):
        return (numpy.max if p > 0 else numpy.min)(x, axis=axes, keepdims=keepdims)
    if p == 0:
        return numpy.sum(x != 0, axis=axes, keepdims=keepdims)
    return numpy.sum(x**p, axis=axes, keepdims=keepdims) ** (1 / p)


@composite
class p_norm:
    """``sum(|x|**p)**(1/p)`` over some axes: attributes ``(p, axes, keepdims)``; p may be 0 or an infinity."""

    autograd_name = "LinalgVectorNormBackward0"
    functions = ()
    methods = ()
    title = "linalg.vector_norm"
    signature = "input"
    compute = _vector_norm
    vjp = _vector_norm_gradient
    samples = _samples
    reference = _reference


def _in_dtype(x: Any, dtype: Any, name: str) -> Any:
    """``x`` as the floating values that a norm is taken of."""
    if dtype is None:
        return x
    wanted = as_dtype(dtype)
    if wanted.kind not in "fc" or (x.dtype.kind == "c" and wanted.kind != "c"):
        raise DTypeError(f"{name} of {x.dtype.name} in {wanted.name}", "Name a wider floating dtype.")
    return to_dtype(x, wanted)


def _norm_over(x: Any, p: Any, dim: Any, keepdim: bool) -> Any:
    """The p-norm over ``dim`` (None: all axes)."""
    ndim = len(x.shape)
    axes = normalize_axes(None if isinstance(dim, (tuple, list)) and not dim else dim, ndim)
    p = float(p)
    if (p < 0 or math.isinf(p)) and any(x.shape[axis] == 0 for axis in axes):
        raise ShapeError(f"the norm of order {p:g} of no elements", "Use an order from 0 up, or elements.")
    return apply("p_norm", x, attrs=(p, axes, bool(keepdim)))


@linalg_function()
def vector_norm(x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """``sum(|x|**ord)**(1/ord)`` over ``dim`` (None: all elements as one vector); ord 0 counts non-zeros.

    Its gradient at the origin is 0. Raises ArgumentError for an ``ord`` that is not a number.

    >>> import twofold as torch
    >>> torch.linalg.vector_norm(torch.tensor([3.0, 4.0])).item()
    5.0
    """
    if not isinstance(ord, _NUMBERS):
        raise ArgumentError(f"ord={ord!r} is not a number", "Use a number, inf or -inf.")
    if x.dtype.kind not in "fc":
        raise DTypeError(f"x is {x.dtype.name}", "Cast it with .to() to float32 first.")
    return _norm_over(_in_dtype(x, dtype, "the norm"), ord, dim, keepdim)


def _matrix_last(x: Any, rows: int, columns: int) -> Any:
    others = [axis for axis in range(len(x.shape)) if axis not in (rows, columns)]
    return ops.permute(x, (*others, rows, columns))


def _extreme_length(lengths: Any, largest: bool, axis: int, keepdim: bool = False) -> Any:
    """The largest or smallest of lengths along an axis; the largest of none is 0, the smallest does not exist."""
    if largest and not lengths.shape[axis]:
        return ops.sum(lengths, axis, keepdim)
    return (ops.amax if largest else ops.amin)(lengths, axis, keepdim)


@linalg_function()
def matrix_norm(
    A: Any, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None
) -> Any:
    """The norm of matrices: "fro" (root of the sum of squares), "nuc" (sum of singular values), 2 and -2 (the
    largest and smallest singular value), 1 and -1 (sums of columns), inf and -inf (sums of rows).

    Raises ArgumentError for another ``ord``.

    >>> import twofold as torch
    >>> torch.linalg.matrix_norm(torch.tensor([[1.0, -2.0], [3.0, 4.0]]), 1).item()
    6.0
    """
    ndim = len(A.shape)
    if ndim < 2:
        raise ShapeError(f"A has {ndim} axes, a matrix at least 2", "Use linalg.vector_norm.")
    rows, columns = matrix_axes(dim, ndim)
    A = _in_dtype(A, dtype, "the norm")
    if ord == "fro":
        return _norm_over(A, 2, (rows, columns), keepdim)
    if ord == "nuc" or (isinstance(ord, _NUMBERS) and abs(ord) == 2):
        values = apply("singular_values", _matrix_last(A, rows, columns))
        found = ops.sum(values, -1) if ord == "nuc" else _extreme_length(values, ord > 0, -1)
        if not keepdim:
            return found
        shape = [1 if axis in (rows, columns) else size for axis, size in enumerate(A.shape)]
        return ops.reshape(found, tuple(shape))
    if isinstance(ord, _NUMBERS) and abs(ord) in (1, math.inf):
        first, second = (rows, columns) if abs(ord) == 1 else (columns, rows)
        sums = _norm_over(A, 1, first, True)
        found = _extreme_length(sums, ord > 0, second, True)
        return found if keepdim else ops.squeeze(found, (rows, columns))
    raise ArgumentError(f"ord={ord!r} is no norm of matrices", "Use 'fro', 'nuc', 1, -1, 2, -2, inf or -inf.")


@linalg_function()
def norm(A: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """A norm of vectors (one axis in ``dim``) or matrices (two axes), as ``vector_norm`` and ``matrix_norm``.

    Without ``ord`` the root of the sum of squares over ``dim``; without ``dim`` the tensor is one vector or matrix.

    >>> import twofold as torch
    >>> torch.linalg.norm(torch.tensor([[3.0, 0.0], [0.0, 4.0]]))
    tensor(5.)
    >>> torch.linalg.norm(torch.tensor([[3.0, 0.0], [0.0, 4.0]]), 1)
    tensor(4.)
    """
    if ord is None:
        return _norm_over(_in_dtype(A, dtype, "the norm"), 2, dim, keepdim)
    if dim is None:
        if len(A.shape) not in (1, 2):
            raise ShapeError(f"a norm of order {ord!r} of {len(A.shape)} axes", "Say which with dim.")
        dim = 0 if len(A.shape) == 1 else (0, 1)
    if isinstance(dim, (tuple, list)) and len(dim) == 2:
        return matrix_norm(A, ord, dim, keepdim, dtype=dtype)
    return vector_norm(A, ord, dim, keepdim, dtype=dtype)


@public("norm", methods=("norm",))
def norm_(
    input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, out: Any = None, dtype: Any = None
) -> Any:
    """The ``p``-norm over ``dim`` (None: all elements) as one vector; "nuc": the sum of singular values.

    >>> import twofold as torch
    >>> torch.norm(torch.tensor([[3.0, 0.0], [0.0, 4.0]]))
    tensor(5.)
    >>> torch.norm(torch.tensor([[3.0, 0.0], [0.0, 4.0]]), p=1, dim=1)
    tensor([3., 4.])
    """
    if out is not None:  # the public function sees to the keyword
        raise ArgumentError("out is given by its position", "Give it by name: out=...")
    if isinstance(p, numpy.generic) or getattr(p, "shape", None) == ():
        p = p.item()
    if p == "nuc":
        return matrix_norm(input, "nuc", (0, 1) if dim is None else dim, keepdim, dtype=dtype)
    if p is not None and p != "fro" and not isinstance(p, _NUMBERS):
        raise ArgumentError(f"p={p!r} is not a number", "Use a number, inf, 'fro' or 'nuc'.")
    order = 2 if p in (None, "fro") else p
    return _norm_over(_in_dtype(input, dtype, "the norm"), order, dim, keepdim)
