"""Systems of equations with tridiagonal matrices: ``tf.linalg.tridiagonal_solve`` and ``tridiagonal_matmul``."""

from __future__ import annotations

from typing import Any

from twofold.errors import ArgumentError
from twofold.ops.base import apply, ops
from twofold.runtime.tracing import here
from twofold.static.api.op_functions import Number, convert_to_tensor, operation, refuse
from twofold.static.arrays import creation, shape_ops
from twofold.static.graph.docstrings import example
from twofold.static.graph.graph import describe
from twofold.static.graph.graph_elements import check_same_dtype
from twofold.static.graph.scopes import name_scope


def _padded(name: str, diagonal: Any, length: Any, before: int) -> Any:
    """A diagonal beside the middle, with one more element where its matrix has none."""
    value = convert_to_tensor(diagonal)
    own = value.type_.shape[-1]
    if own == length or own < 0 or length < 0:  # a run tells
        return value
    if own != length - 1:
        what = f"{name}: a diagonal of {own} elements beside {length} in the middle, at {here()}"
        raise ValueError(f"{what}. Give as many, or one less.")
    inner = [[0, 0]] * (value.type_.ndim - 1)
    return creation.pad(value, [*inner, [before, 1 - before]])


def _compact(name: str, diagonals: Any, form: str) -> Any:
    """The three diagonals as rows of one tensor."""
    if form == "compact":
        return convert_to_tensor(diagonals)
    if form == "sequence":
        above, middle, below = diagonals
        centre = convert_to_tensor(middle)
        length = centre.type_.shape[-1]
        rows = [_padded(name, above, length, 0), centre, _padded(name, below, length, 1)]
        return shape_ops.stack(rows, -2)
    if form != "matrix":
        raise ValueError(
            f"Unrecognized diagonals_format: {form}, at {here()}. Use compact, sequence or matrix."
        )
    matrix = convert_to_tensor(diagonals)
    if matrix.type_.ndim < 2 or matrix.type_.shape[-1] != matrix.type_.shape[-2]:
        what = f"{name}: {describe(matrix)} holds no square matrices, at {here()}"
        raise ArgumentError(what, "Give as many rows as columns.")
    return _diagonals(matrix)


@operation("TridiagonalPart")
def _diagonals(matrix: Any) -> Any:
    above, middle, below = (ops.diagonal(matrix, offset, -2, -1) for offset in (1, 0, -1))
    zero = ops.narrow(middle, -1, 0, 1) * 0
    return ops.stack((ops.cat((above, zero), -1), middle, ops.cat((zero, below), -1)), -2)


@operation("TridiagonalSolve")
def _solution(diagonals: Any, rhs: Any, transposes: Number, conjugates: Number) -> Any:
    diagonals, right = check_same_dtype(diagonals, rhs)
    if conjugates and right.dtype.kind == "c":
        right = ops.conj(right)
    if transposes and right.ndim == diagonals.ndim:
        right = ops.transpose(right, -2, -1)
    return apply("tridiagonal_solution", diagonals, right)


@example(
    "tf.linalg.tridiagonal_solve([[1.0, 1.0, 0.0], [2.0, 2.0, 2.0], [0.0, 1.0, 1.0]], [3.0, 4.0, 3.0])",
    "[1. 1. 1.]",
)
def tridiagonal_solve(
    diagonals: Any,
    rhs: Any,
    diagonals_format: str = "compact",
    transpose_rhs: bool = False,
    conjugate_rhs: bool = False,
    name: str | None = None,
    partial_pivoting: bool = True,
    perturb_singular: bool = False,
) -> Any:
    """X with ``A X = rhs`` for tridiagonal matrices A, of which only the diagonals are stored and computed with.

    Args:
        diagonals: ``[..., 3, n]``, above the middle (the last element is not read), the middle, and below (the first is
            not read).
        rhs: ``[..., n, k]``, or ``[..., n]`` for one right side each.
        diagonals_format: "compact"; "sequence" for a list of the three, those beside the middle also without the
            element that is not read; "matrix" for the whole matrices.
        transpose_rhs: Whether ``rhs`` is ``[..., k, n]``.
        conjugate_rhs: Whether its conjugate is meant.
        name: Of the operations.
        partial_pivoting: Rows are exchanged either way, as they are where it is True.
        perturb_singular: Not offered.

    Raises:
        LinAlgError: In a run, for a singular matrix.
    """
    refuse("tridiagonal_solve", perturb_singular=perturb_singular)
    with name_scope(name, "tridiagonal_solve"):
        rows = _compact("tridiagonal_solve", diagonals, diagonals_format)
        right = convert_to_tensor(rhs, rows.dtype)
        return _solution(rows, right, transpose_rhs, conjugate_rhs)


@operation("TridiagonalMatMul")
def _product(diagonals: Any, rhs: Any) -> Any:
    return apply("tridiagonal_product", *check_same_dtype(diagonals, rhs))


@example(
    "tf.linalg.tridiagonal_matmul([[1.0, 1.0, 0.0], [2.0, 2.0, 2.0], [0.0, 1.0, 1.0]], tf.ones([3, 1]))",
    "[[3.]\n [4.]\n [3.]]",
)
def tridiagonal_matmul(
    diagonals: Any, rhs: Any, diagonals_format: str = "compact", name: str | None = None
) -> Any:
    """``A rhs`` for tridiagonal matrices A, with ``diagonals`` as of ``tridiagonal_solve``; ``rhs`` is [..., n, k]."""
    with name_scope(name, "tridiagonal_matmul"):
        rows = _compact("tridiagonal_matmul", diagonals, diagonals_format)
        return _product(rows, convert_to_tensor(rhs, rows.dtype))
