"""LU decompositions, pseudo-inverses, ranks and norms under the names of ``tf.linalg``."""

from __future__ import annotations

from typing import Any

from twofold.dtypes import finfo, int32
from twofold.ops.base import FUNCTIONS, apply, ops
from twofold.ops.linear_algebra.lu import lu_packed
from twofold.static.api.op_functions import Dtype, Number, axis_of, convert_to_tensor, operation, refuse
from twofold.static.api.result_tuples import Lu
from twofold.static.arrays import creation, shape_ops
from twofold.static.arrays.reordering import argsort
from twofold.static.graph.docstrings import example
from twofold.static.graph.scopes import name_scope
from twofold.static.linalg import matmul, matrix_triangular_solve, norm


@operation("Lu", several=Lu._make)
@example("lu, p = tf.linalg.lu([[0.0, 2.0], [1.0, 3.0]])", "p", "[1 0]")
def lu(input: Any, output_idx_type: Dtype = int32) -> Any:
    """``L`` without its ones and ``U`` in one matrix, and the permutation ``p`` of rows with ``input[p] = L U``."""
    factors, pivots, _ = lu_packed.results(input, attrs=(False,))
    return [factors, ops.cast(apply("row_order", pivots, attrs=(input.shape[-2],)), output_idx_type)]


def _permuted(values: Any, perm: Any) -> Any:
    """The rows of matrices in an order; of a batch of matrices with an order for each."""
    order = convert_to_tensor(perm)
    if order.type_.ndim == 1:
        return shape_ops.gather(values, order)
    return shape_ops.gather(values, order, axis=-2, batch_dims=order.type_.ndim - 1)


@example(
    "lower_upper, perm = tf.linalg.lu([[0.0, 2.0], [1.0, 3.0]])",
    "tf.linalg.lu_reconstruct(lower_upper, perm)",
    "[[0. 2.]\n [1. 3.]]",
)
def lu_reconstruct(lower_upper: Any, perm: Any, validate_args: bool = False, name: str | None = None) -> Any:
    """The matrices that ``lu`` has decomposed."""
    refuse("lu_reconstruct", validate_args=validate_args)
    with name_scope(name, "lu_reconstruct"):
        both = convert_to_tensor(lower_upper)
        ones = creation.eye(shape_ops.shape(both)[-1], dtype=both.dtype)
        lower = creation.matrix_band_part(both, -1, 0) - creation.matrix_band_part(both, 0, 0) + ones
        product = matmul(lower, creation.matrix_band_part(both, 0, -1))
        return _permuted(product, _inverse(perm))


def _inverse(perm: Any) -> Any:
    return argsort(convert_to_tensor(perm), axis=-1)


@example(
    "lower_upper, perm = tf.linalg.lu([[0.0, 2.0], [1.0, 3.0]])",
    "tf.linalg.lu_solve(lower_upper, perm, [[2.0], [4.0]])",
    "[[1.]\n [1.]]",
)
def lu_solve(
    lower_upper: Any, perm: Any, rhs: Any, validate_args: bool = False, name: str | None = None
) -> Any:
    """X with ``matrix X = rhs`` of the matrices that ``lu`` has decomposed."""
    refuse("lu_solve", validate_args=validate_args)
    with name_scope(name, "lu_solve"):
        both = convert_to_tensor(lower_upper)
        right = convert_to_tensor(rhs, both.dtype)
        ones = creation.eye(shape_ops.shape(both)[-1], dtype=both.dtype)
        lower = creation.matrix_band_part(both, -1, 0) - creation.matrix_band_part(both, 0, 0) + ones
        found = matrix_triangular_solve(lower, _permuted(right, perm))
        return matrix_triangular_solve(both, found, lower=False)


@example(
    "tf.linalg.lu_matrix_inverse(*tf.linalg.lu([[0.0, 2.0], [1.0, 0.0]]))",
    "[[0.  1. ]\n [0.5 0. ]]",
)
def lu_matrix_inverse(
    lower_upper: Any, perm: Any, validate_args: bool = False, name: str | None = None
) -> Any:
    """The inverses of the matrices that ``lu`` has decomposed."""
    both = convert_to_tensor(lower_upper)
    ones = creation.eye(shape_ops.shape(both)[-1], dtype=both.dtype)
    ones = ones + creation.zeros_like(both)
    return lu_solve(both, perm, ones, validate_args, name or "lu_matrix_inverse")


@operation("Pinv", default="pinv")
def _pseudo_inverse(a: Any, rcond: Number = None) -> Any:
    largest = 10.0 * max(a.shape[-2:]) * _epsilon(a.dtype) if rcond is None else rcond
    return FUNCTIONS["linalg.pinv"](a, rtol=largest)


def _epsilon(dtype: Any) -> float:
    return float(finfo(dtype).eps)


@example("tf.linalg.pinv([[2.0, 0.0], [0.0, 4.0], [0.0, 0.0]])", "[[0.5  0.   0.  ]\n [0.   0.25 0.  ]]")
def pinv(a: Any, rcond: Any = None, validate_args: bool = False, name: str | None = None) -> Any:
    """The pseudo-inverses of Moore and Penrose; singular values up to ``rcond`` times the largest count as 0."""
    refuse("pinv", validate_args=validate_args)
    return _pseudo_inverse(convert_to_tensor(a), rcond, name=name)


@operation("MatrixRank", default="matrix_rank")
def _rank(a: Any, tol: Any) -> Any:
    values = FUNCTIONS["linalg.svdvals"](a)
    least = tol
    if tol is None:
        largest = ops.max(values, -1, True)[0]
        least = ops.multiply(largest, max(a.shape[-2:]) * _epsilon(a.dtype))
    return ops.cast(ops.sum(ops.cast(ops.greater(values, least), int32), -1), int32)


@example("tf.linalg.matrix_rank([[1.0, 2.0], [2.0, 4.0]])", "1")
def matrix_rank(a: Any, tol: Any = None, validate_args: bool = False, name: str | None = None) -> Any:
    """How many singular values are above ``tol``, or above rounding."""
    refuse("matrix_rank", validate_args=validate_args)
    return _rank(convert_to_tensor(a), tol, name=name)


@example("unit, length = tf.linalg.normalize([3.0, 4.0])", "unit", "[0.6 0.8]")
def normalize(
    tensor: Any, ord: Any = "euclidean", axis: Any = None, name: str | None = None
) -> tuple[Any, Any]:
    """A tensor over its norm, and the norm with axes of size 1."""
    with name_scope(name, "normalize"):
        value = convert_to_tensor(tensor)
        length = norm(value, ord, axis_of(axis), keepdims=True)
        return value / length, length
