"""Symmetric indefinite factorisation on NumPy matrices, in the packed form of LAPACK's ``sytrf`` and ``hetrf``.

The strictly lower triangle holds the multipliers, the diagonal (and the subdiagonal inside a block of two) the
block-diagonal factor; row exchanges are not applied to the columns before them. A pivot ``p > 0`` says that
rows k and p (one-based) were exchanged, two equal pivots ``-p`` start a block of two and name its second row.
"""

from __future__ import annotations

from typing import Any

import numpy

from twofold.ops.linear_algebra.matrix_routines import magnitude

_GROWTH = (1 + 17**0.5) / 8

Array = Any


def factor(a: Array, hermitian: bool) -> tuple[Array, Array, Array]:
    """The packed factors, the pivots, and the number of the first zero block (0: none) of one matrix.

    Source: Bunch & Kaufman, Some stable methods for calculating inertia and solving symmetric linear
    systems (1977).
    """
    a = numpy.tril(a)
    size = len(a)
    if hermitian:  # imaginary parts of the diagonal are not read
        a[numpy.diag_indices(size)] = a.diagonal().real
    pivots, zero = numpy.zeros(size, numpy.int32), 0
    conjugate = numpy.conj if hermitian else numpy.asarray
    k = 0
    while k < size:
        row, width = _choose_pivot(a, k)
        if width == 0:
            zero = zero or k + 1
            pivots[k] = k + 1
            k += 1
            continue
        _exchange(a, k, k + width - 1, row, conjugate)
        end = k + width
        block, below = _block(a, k, width, conjugate), a[end:, k:end]
        if end < size:
            multipliers = numpy.linalg.solve(block.T, below.T).T
            a[end:, end:] -= numpy.tril(multipliers @ conjugate(below).T)
            a[end:, k:end] = multipliers
        pivots[k:end] = row + 1 if width == 1 else -(row + 1)
        k = end
    return a, pivots, numpy.int32(zero)


def _block(a: Array, k: int, width: int, conjugate: Any) -> Array:
    block = a[k : k + width, k : k + width].copy()
    if width == 2:
        block[0, 1] = conjugate(block[1, 0])
    return block


def _choose_pivot(a: Array, k: int) -> tuple[int, int]:
    """The row to bring to the front, and the size of the block (0: the column is zero)."""
    here = magnitude(a[k, k])
    column = magnitude(a[k + 1 :, k])
    largest = column.max(initial=0)
    if not max(here, largest) > 0:
        return k, 0
    if here >= _GROWTH * largest:
        return k, 1
    row = k + 1 + int(column.argmax())
    across = max(magnitude(a[row, k:row]).max(initial=0), magnitude(a[row + 1 :, row]).max(initial=0))
    if here >= _GROWTH * largest * (largest / across):
        return k, 1
    return row, 1 if magnitude(a[row, row]) >= _GROWTH * across else 2


def _exchange(a: Array, k: int, first: int, second: int, conjugate: Any) -> None:
    """Exchange rows and columns ``first < second`` of the lower triangle, from column ``k`` on."""
    if first == second:
        return
    after = slice(second + 1, None)
    a[after, first], a[after, second] = a[after, second].copy(), a[after, first].copy()
    between = slice(first + 1, second)
    upright, across = a[between, first].copy(), a[second, between].copy()
    a[between, first], a[second, between] = conjugate(across), conjugate(upright)
    a[second, first] = conjugate(a[second, first])
    a[first, first], a[second, second] = a[second, second], a[first, first]
    if first != k:
        a[first, k], a[second, k] = a[second, k], a[first, k]


def _blocks(pivots: Array) -> list[tuple[int, int, int]]:
    """Start, size and exchanged row of each diagonal block."""
    found, k = [], 0
    while k < len(pivots):
        width = 1 if pivots[k] > 0 else 2
        found.append((k, width, abs(int(pivots[k])) - 1))
        k += width
    return found


def solve(packed: Array, pivots: Array, b: Array, hermitian: bool) -> Array:
    """X with ``A X = B`` for one factored matrix."""
    conjugate = numpy.conj if hermitian else numpy.asarray
    x = numpy.array(b)
    blocks = _blocks(pivots)
    for k, width, row in blocks:
        end = k + width
        x[[end - 1, row]] = x[[row, end - 1]]
        x[end:] -= packed[end:, k:end] @ x[k:end]
        x[k:end] = numpy.linalg.solve(_block(packed, k, width, conjugate), x[k:end])
    for k, width, row in reversed(blocks):
        end = k + width
        x[k:end] -= conjugate(packed[end:, k:end]).T @ x[end:]
        x[[end - 1, row]] = x[[row, end - 1]]
    return x
