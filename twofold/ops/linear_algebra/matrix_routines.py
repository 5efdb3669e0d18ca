"""Matrix computations that ``numpy.linalg`` lacks, on batches of NumPy arrays ``[*batch, rows, columns]``."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy

_BLOCK = 32

Array = Any


def flat_batch(a: Array, kept: int = 2) -> Array:
    """``a`` with all axes but the last ``kept`` merged into one."""
    batch = a.ndim - kept
    return a.reshape((prod(a.shape[:batch]), *a.shape[batch:]))


def magnitude(a: Array) -> Array:
    """What pivots are chosen by: absolute values, of complex numbers the sum of those of both parts, as in LAPACK."""
    return abs(a.real) + abs(a.imag) if a.dtype.kind == "c" else abs(a)


def solve_triangular(a: Array, b: Array, upper: bool, unit: bool) -> Array:
    """X with ``A X = B`` for triangular A, of which the other triangle (``unit``: also the diagonal) is not read.

    Source: forward substitution in blocks, Golub & Van Loan, Matrix Computations (2013), section 3.1.
    """
    if upper:  # numbered from the end an upper triangle is a lower one
        lower = numpy.ascontiguousarray(a[..., ::-1, ::-1])
        return solve_triangular(lower, b[..., ::-1, :], False, unit)[..., ::-1, :]
    size = a.shape[-1]
    x = numpy.array(b, numpy.result_type(a, b))
    for start in range(0, size, _BLOCK):
        end = min(start + _BLOCK, size)
        if start:
            x[..., start:end, :] -= a[..., start:end, :start] @ x[..., :start, :]
        for row in range(start, end):
            if row > start:
                known = a[..., row, None, start:row] @ x[..., start:row, :]
                x[..., row, :] -= known[..., 0, :]
            if not unit:
                x[..., row, :] /= a[..., row, row, None]
    return x


def lu_factor(a: Array) -> tuple[Array, Array, Array]:
    """L and U in one matrix, one-based pivot rows, and for each matrix the first zero pivot (0: none).

    Source: blocked outer-product elimination with partial pivoting, Golub & Van Loan (2013), section 3.4.
    """
    lu = flat_batch(numpy.array(a))
    count, rows, columns = lu.shape
    size = min(rows, columns)
    pivots = numpy.zeros((count, size), numpy.int32)
    first_zero = numpy.zeros(count, numpy.int32)
    for start in range(0, size, _BLOCK):
        end = min(start + _BLOCK, size)
        _eliminate_panel(lu, pivots, first_zero, start, end)
        if end < columns:
            right = lu[:, start:end, end:]
            right[...] = solve_triangular(lu[:, start:end, start:end], right, False, True)
            lu[:, end:, end:] -= lu[:, end:, start:end] @ right
    batch = a.shape[:-2]
    return lu.reshape(a.shape), pivots.reshape(*batch, size), first_zero.reshape(batch)


def _eliminate_panel(lu: Array, pivots: Array, first_zero: Array, start: int, end: int) -> None:
    every = numpy.arange(len(lu))
    for k in range(start, end):
        row = k + numpy.argmax(magnitude(lu[:, k:, k]), 1)
        pivots[:, k] = row + 1
        lu[every, k], lu[every, row] = lu[every, row], lu[every, k]
        pivot = lu[:, k, k]
        zero = pivot == 0
        first_zero[zero & (first_zero == 0)] = k + 1
        lu[:, k + 1 :, k] /= numpy.where(zero, 1, pivot)[:, None]
        lu[:, k + 1 :, k + 1 : end] -= lu[:, k + 1 :, k, None] * lu[:, k, None, k + 1 : end]


def row_order(pivots: Array, rows: int) -> Array:
    """The order of the rows after the exchanges that one-based ``pivots`` name one after another."""
    flat = flat_batch(pivots, 1).astype(numpy.int64) - 1
    order = numpy.tile(numpy.arange(rows), (len(flat), 1))
    every = numpy.arange(len(flat))
    for k in range(flat.shape[1]):
        order[every, k], order[every, flat[:, k]] = order[every, flat[:, k]], order[every, k]
    return order.reshape(*pivots.shape[:-1], rows)


def cholesky(a: Array) -> tuple[Array, Array]:
    """The lower factors, and for each matrix the order of the first leading minor that is not positive (0: none).

    A matrix that has one gets what was computed before it was met.
    """
    try:
        return numpy.linalg.cholesky(a), numpy.zeros(a.shape[:-2], numpy.int32)
    except numpy.linalg.LinAlgError:
        pass
    flat = flat_batch(a)
    factors, orders = numpy.zeros_like(flat), numpy.zeros(len(flat), numpy.int32)
    for k, matrix in enumerate(flat):
        try:
            factors[k] = numpy.linalg.cholesky(matrix)
        except numpy.linalg.LinAlgError:
            factors[k], orders[k] = _cholesky_until_it_fails(matrix)
    return factors.reshape(a.shape), orders.reshape(a.shape[:-2])


def _cholesky_until_it_fails(a: Array) -> tuple[Array, int]:
    lower = numpy.tril(a)
    for k in range(len(a)):
        square = (lower[k, k] - (abs(lower[k, :k]) ** 2).sum()).real
        if not square > 0:
            return lower, k + 1
        lower[k, k] = numpy.sqrt(square)
        lower[k + 1 :, k] -= lower[k + 1 :, :k] @ lower[k, :k].conj()
        lower[k + 1 :, k] /= lower[k, k]
    return lower, 0


_PADE = (
    64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0,
    10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0,
)  # fmt: skip
_PADE_RADIUS = 5.371920351148152


def exponential(a: Array) -> Array:
    """``exp(A)`` by scaling, the [13/13] Padé approximant, and squaring.

    Source: Higham, The scaling and squaring method for the matrix exponential revisited (2005), table 2.3.
    """
    flat = flat_batch(a)
    if not flat.size:
        return a.copy()
    length = abs(flat).sum(1).max(1)
    finite = numpy.isfinite(length)
    steps = numpy.zeros(len(flat), numpy.int64)
    large = finite & (length > _PADE_RADIUS)
    steps[large] = numpy.ceil(numpy.log2(length[large] / _PADE_RADIUS)).astype(numpy.int64)
    x = flat * (0.5**steps).astype(length.dtype)[:, None, None]
    x[~finite] = 0
    result = _pade(x)
    result[~finite] = numpy.nan
    for step in range(int(steps.max())):
        more = steps > step
        result[more] = result[more] @ result[more]
    return result.reshape(a.shape)


def _pade(a: Array) -> Array:
    b = _PADE
    one = numpy.eye(a.shape[-1], dtype=a.dtype)
    a2 = a @ a
    a4 = a2 @ a2
    a6 = a2 @ a4
    odd = a @ (a6 @ (b[13] * a6 + b[11] * a4 + b[9] * a2) + b[7] * a6 + b[5] * a4 + b[3] * a2 + b[1] * one)
    even = a6 @ (b[12] * a6 + b[10] * a4 + b[8] * a2) + b[6] * a6 + b[4] * a4 + b[2] * a2 + b[0] * one
    return numpy.linalg.solve(even - odd, even + odd)


def each(function: Any, *arrays: Array) -> list[Any]:
    """``function`` of each matrix of a batch (further arrays go along), as stacked results."""
    batch = arrays[0].shape[:-2]
    flat = [flat_batch(array, array.ndim - len(batch)) for array in arrays]
    found = [function(*parts) for parts in zip(*flat, strict=True)]
    return [numpy.stack(part).reshape((*batch, *part[0].shape)) for part in zip(*found, strict=True)]
