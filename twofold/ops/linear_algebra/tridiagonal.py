"""Systems of equations whose matrices have three diagonals, which are all that is stored of them.

``[..., 3, n]`` holds what is above the middle (its last element is not read), the middle, and what is below (its first
element is not read).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from twofold.dtypes import complex64
from twofold.errors import ShapeError
from twofold.ir.node import Attributes, Node
from twofold.ir.types import TensorType
from twofold.ops.base import apply, composite, host, ops
from twofold.ops.examples import example
from twofold.ops.linear_algebra.matrices import MatrixOperation, check_same_dtype, raise_first
from twofold.ops.samples import Sample


def _conjugated(x: Any) -> Any:
    return ops.conj(x) if x.dtype.kind == "c" else x


def shifted(x: Any, by: int, axis: int) -> Any:
    """``x`` moved along an axis by 1 or -1, with 0 behind it."""
    zero = ops.narrow(x, axis, 0, 1) * 0
    kept = ops.narrow(x, axis, 0 if by > 0 else 1, x.shape[axis] - 1)
    return ops.cat((zero, kept) if by > 0 else (kept, zero), axis)


def _transposed(diagonals: Any) -> Any:
    """The diagonals of the adjoint matrices."""
    above, middle, below = (ops.select(_conjugated(diagonals), -2, k) for k in range(3))
    return ops.stack((shifted(below, -1, -1), middle, shifted(above, 1, -1)), -2)


def _text(which: str, order: int) -> str:
    return f"{which} is singular: pivot {order} is 0"


def _solved(diagonals: Any, right: Any) -> Any:
    """Elimination with row exchanges, of which each fills in one more diagonal (LAPACK's ``gtsv``)."""
    if right.ndim < diagonals.ndim:  # vectors
        return _solved(diagonals, right[..., None])[..., 0]
    above, middle, below = (numpy.array(diagonals[..., k, :]) for k in range(3))
    x, count = numpy.array(right), middle.shape[-1]
    second = numpy.zeros_like(above)  # the diagonal two above the middle
    above[..., -1:] = 0
    zero = numpy.zeros(middle.shape[:-1], numpy.int32)
    for row in range(count - 1):
        under = below[..., row + 1]
        swap = abs(under) > abs(middle[..., row])
        first = [middle[..., row], above[..., row], second[..., row]]
        other = [under, middle[..., row + 1], above[..., row + 1]]
        kept = [numpy.where(swap, b, a) for a, b in zip(first, other)]
        rest = [numpy.where(swap, a, b) for a, b in zip(first, other)]
        zero = numpy.where((kept[0] == 0) & (zero == 0), row + 1, zero)
        factor = rest[0] / kept[0]
        middle[..., row], above[..., row], second[..., row] = kept
        middle[..., row + 1] = rest[1] - factor * kept[1]
        above[..., row + 1] = rest[2] - factor * kept[2]
        rows = x[..., row, :].copy(), x[..., row + 1, :].copy()
        wide = swap[..., None]
        x[..., row, :] = numpy.where(wide, rows[1], rows[0])
        x[..., row + 1, :] = numpy.where(wide, rows[0], rows[1]) - factor[..., None] * x[..., row, :]
    zero = numpy.where((middle[..., -1:].sum(-1) == 0) & (zero == 0), count, zero) if count else zero
    raise_first(zero, _text, "Give a regular matrix.")
    for row in reversed(range(count)):
        for ahead, line in ((1, above), (2, second)):
            if row + ahead < count:
                x[..., row, :] -= line[..., row, None] * x[..., row + ahead, :]
        x[..., row, :] /= middle[..., row, None]
    return x


def _check(diagonals: Any, right: Any) -> None:
    check_same_dtype(diagonals, right)
    given, wanted = diagonals.shape, right.shape
    if diagonals.ndim < 2 or given[-2] != 3 or (*given[:-2], given[-1]) not in (wanted, wanted[:-1]):
        raise ShapeError(
            f"diagonals {tuple(given)} for right sides {tuple(wanted)}",
            "Give diagonals [..., 3, n] and right sides [..., n, k] or [..., n] with equal axes before them.",
        )


@host
class tridiagonal_solution(MatrixOperation):
    """X with ``A X = B`` for tridiagonal A; B holds matrices or vectors."""

    square = False
    signature = "A, B"
    title = "tridiagonal_solve"
    compute = staticmethod(_solved)

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        _check(*inputs)
        return super().build(attrs, inputs)

    def type_of(self, attrs: Attributes, types: Sequence[TensorType]) -> TensorType:
        return types[1]

    def gradient(self, ct: Any, y: Any, *rest: Any) -> Sequence[Any]:
        right, found = apply("tridiagonal_solution", _transposed(rest[0]), ct), _conjugated(y)
        vectors = y.ndim < rest[0].ndim
        axis = -1 if vectors else -2
        shares = [right * one for one in (shifted(found, -1, axis), found, shifted(found, 1, axis))]
        return -ops.stack(shares if vectors else [ops.sum(share, -1) for share in shares], -2), right

    def samples(self) -> Sequence[Sample]:
        diagonals = numpy.array([[1.0, -2.0, 9.0], [0.5, 4.0, 5.0], [9.0, 2.0, -1.0]], numpy.float32)
        return [
            example((), diagonals, (3, 2)),
            example((), numpy.stack([diagonals, diagonals + 1]), (2, 3, 1)),
            example((), diagonals[:, :1], (1, 2)),
            example((), numpy.stack([diagonals, diagonals + 1]), (2, 3)),
            example((), diagonals + 1j * diagonals[:, ::-1], (3, 2), dtype=complex64),
        ]


@composite
class tridiagonal_product:
    """``A B`` for tridiagonal A."""

    functions = ()
    kinds = "fc"
    signature = "A, B"

    def compute(a: Any, b: Any) -> Any:
        _check(a, b)
        above, middle, below = (ops.unsqueeze(ops.select(a, -2, k), -1) for k in range(3))
        return above * shifted(b, -1, -2) + middle * b + below * shifted(b, 1, -2)

    samples = lambda: [example((), (3, 4), (4, 2)), example((), (2, 3, 1), (2, 1, 3))]

    def reference(a: Any, b: Any) -> Any:
        whole = numpy.zeros((*a.shape[:-2], a.shape[-1], a.shape[-1]), a.dtype)
        for row in range(a.shape[-1]):
            for k in range(3):
                if 0 <= row + 1 - k < a.shape[-1]:
                    whole[..., row, row + 1 - k] = a[..., k, row]
        return whole @ b
