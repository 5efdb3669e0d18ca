"""The LU factorisation with partial pivoting, and what is solved with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy

from twofold.dtypes import complex64, float32, float64, int64
from twofold.errors import ArgumentError, ShapeError
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.types import Shape, tensor_type
from twofold.ops.base import Host, apply, broadcast, composite, convert, host, iota, ops, public
from twofold.ops.examples import example
from twofold.ops.linear_algebra import matrix_routines
from twofold.ops.linear_algebra.matrices import (
    Packed,
    Pieces,
    adjoint,
    as_int32,
    check_matrix,
    check_same_dtype,
    common_batch,
    eye_like,
    linalg_function,
    observed,
    raise_first,
    with_batch,
)
from twofold.ops.linear_algebra.triangular import solve_left, solve_right, well_conditioned
from twofold.ops.promotion import autocast
from twofold.ops.return_types import return_type
from twofold.ops.samples import Sample


class LUFactor(NamedTuple):
    """L below and U above the diagonal of one matrix, and the one-based rows exchanged with each row."""

    LU: Any
    pivots: Any


_LINALG_LU_FACTOR = return_type("linalg_lu_factor", LUFactor)


class LUFactorInfo(NamedTuple):
    """LU and pivots, and for each matrix the number of the first zero pivot (0: none)."""

    LU: Any
    pivots: Any
    info: Any


_LINALG_LU_FACTOR_EX = return_type("linalg_lu_factor_ex", LUFactorInfo)


class PLU(NamedTuple):
    """The permutation, the unit lower and the upper triangular factor."""

    P: Any
    L: Any
    U: Any


_LINALG_LU = return_type("linalg_lu", PLU)


@host
class row_order(Host):
    """The position in A of each row of ``P^T A``, from one-based pivots; attributes ``(number of rows,)``."""

    functions = ()
    differentiable = False

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        pivots = convert(inputs[0], int64)
        if not pivots.ndim or pivots.shape[-1] > attrs[0]:
            given = f"{pivots.shape[-1]} pivots" if pivots.ndim else "a single pivot"
            raise ShapeError(f"{given} of {attrs[0]} rows", "Give a vector of at most one for each row.")
        return make_node(self, attrs, (pivots,), tensor_type(int64, (*pivots.shape[:-1], attrs[0])))

    def host(self, attrs: Attributes, *arrays: Any) -> Any:
        return matrix_routines.row_order(arrays[0], attrs[0])

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        return self.host(attrs, *arrays)

    def samples(self) -> Sequence[Sample]:
        return [
            example((3,), numpy.array([3, 3, 3])),
            example((4,), numpy.array([[2, 4], [1, 2]])),
            example((2,), numpy.zeros((0, 2), numpy.int64)),
        ]


@composite
class permuted_rows:
    """The rows of matrices in an order; attributes ``(back,)``: put at the positions that the order names instead."""

    functions = ()
    methods = ()
    complex_rule = True
    signature = "input, order"

    @staticmethod
    def compute(x: Any, order: Any, back: bool) -> Any:
        order = ops.argsort(order, -1) if back else order
        return ops.gather(x, -2, broadcast(ops.unsqueeze(order, -1), (*order.shape, x.shape[-1])))

    vjp = lambda ct, y, x, order, back: (permuted(ct, order, not back), None)
    samples = lambda: [
        example((back,), (2, 3, 2), numpy.array([[1, 2, 0], [0, 2, 1]])) for back in (True, False)
    ]


def permuted(x: Any, order: Any, back: bool = False) -> Any:
    """The rows of matrices in ``order``; ``back``: the rows put at the positions that ``order`` names."""
    return apply("permuted_rows", x, order, attrs=(back,))


@host
class lu_packed(Packed):
    """LU, pivots and info; attributes ``(whether a zero pivot is an error,)``.

    The gradient follows de Hoog, Anderssen and Lukas, Differentiation of matrix functionals using triangular
    factorization (2011), the rows or columns beyond the square part being solutions with it.
    """

    autograd_name = "LinalgLuFactorExBackward0"
    title = "linalg.lu_factor"
    square = False

    def pieces(self, attrs: Any, shape: Shape) -> Pieces:
        return (shape[-2:], (min(shape[-2:]),), ())

    @staticmethod
    def compute(a: Any, check: bool) -> Any:
        lu, pivots, info = matrix_routines.lu_factor(a)
        if check:
            raise_first(
                info,
                lambda which, order: f"{which} has a zero pivot, number {order}",
                "Use linalg.lu, or linalg.lu_factor_ex and look at info.",
            )
        return lu, pivots, info

    def gradient(self, ct: Any, y: Any, *rest: Any) -> Sequence[Any]:
        rows, columns = rest[0].shape[-2:]
        (g, _, _), (lu, pivots, _) = ct, y
        order = apply("row_order", pivots, attrs=(rows,))
        if rows > columns:
            share = _tall_gradient(lu, g, columns)
        else:
            share = _wide_gradient(lu, g, rows)
        return (permuted(share, order, back=True),)

    def samples(self) -> Sequence[Sample]:
        shapes = ((3, 3), (2, 2, 2), (4, 2), (2, 4), (1, 1), (0, 0), (0, 3), (3, 0), (0, 2, 2))
        return [example((False,), shape) for shape in shapes] + [
            example((False,), shape, dtype=complex64) for shape in ((3, 3), (3, 2), (2, 3))
        ]


def _square_gradient(low: Any, up: Any, g_low: Any, g_up: Any) -> Any:
    """The cotangent of ``L U`` from what L and U get; only their triangles are read."""
    lower = ops.tril(low, -1) + eye_like(low, low.shape[-1], low.shape[-1])
    upper = ops.triu(up)
    inner = ops.tril(adjoint(lower) @ g_low, -1) + ops.triu(g_up @ adjoint(upper))
    return solve_right(adjoint(upper), solve_left(adjoint(lower), inner, True, True), False)


def _tall_gradient(lu: Any, g: Any, size: int) -> Any:
    extra = lu.shape[-2] - size
    top, below = ops.narrow(lu, -2, 0, size), ops.narrow(lu, -2, size, extra)
    g_top, g_below = ops.narrow(g, -2, 0, size), ops.narrow(g, -2, size, extra)
    upper = ops.triu(top)
    beyond = solve_right(adjoint(upper), g_below, False)
    square = _square_gradient(top, upper, ops.tril(g_top, -1), ops.triu(g_top) - adjoint(below) @ beyond)
    return ops.cat((square, beyond), -2)


def _wide_gradient(lu: Any, g: Any, size: int) -> Any:
    extra = lu.shape[-1] - size
    left, g_left = ops.narrow(lu, -1, 0, size), ops.narrow(g, -1, 0, size)
    if not extra:
        return _square_gradient(left, left, ops.tril(g_left, -1), ops.triu(g_left))
    right, g_right = ops.narrow(lu, -1, size, extra), ops.narrow(g, -1, size, extra)
    lower = ops.tril(left, -1)
    beyond = solve_left(adjoint(lower), g_right, True, True)
    square = _square_gradient(left, left, ops.tril(g_left, -1) - beyond @ adjoint(right), ops.triu(g_left))
    return ops.cat((square, beyond), -1)


def _need_pivot(pivot: bool) -> None:
    if not pivot:
        raise ArgumentError(
            "pivot=False", "Leave it out: rows are always exchanged, so that errors stay small."
        )


@linalg_function()
def lu_factor_ex(A: Any, *, pivot: bool = True, check_errors: bool = False) -> LUFactorInfo:
    """LU and pivots of ``lu_factor``, and info: 0, or the number of the first zero pivot.

    >>> import twofold as torch
    >>> torch.linalg.lu_factor_ex(torch.tensor([[1.0, 2.0], [2.0, 4.0]])).info
    tensor(2, dtype=twofold.int32)
    """
    _need_pivot(pivot)
    lu, pivots, info = lu_packed.results(A, attrs=(bool(check_errors),))
    return _LINALG_LU_FACTOR_EX(lu, as_int32(pivots), as_int32(info))


@linalg_function()
@observed
def lu_factor(A: Any, *, pivot: bool = True) -> LUFactor:
    """The LU factorisation in the compact form that ``lu_solve`` takes; raises LinAlgError for a zero pivot.

    >>> import twofold as torch
    >>> torch.linalg.lu_factor(torch.tensor([[2.0, 4.0], [1.0, 5.0]]))
    twofold.return_types.linalg_lu_factor(
    LU=tensor([[2.0000, 4.0000],
            [0.5000, 3.0000]]),
    pivots=tensor([1, 2], dtype=twofold.int32))
    """
    _need_pivot(pivot)
    lu, pivots, _ = lu_packed.results(A, attrs=(True,))
    return _LINALG_LU_FACTOR(lu, as_int32(pivots))


@public("lu", methods=("lu",))
@autocast("float32")
def lu_(A: Any, pivot: bool = True, get_infos: bool = False) -> tuple[Any, ...]:
    """LU and pivots, with ``get_infos`` also info; see ``linalg.lu_factor_ex``.

    >>> import twofold as torch
    >>> torch.lu(torch.tensor([[2.0, 4.0], [1.0, 5.0]]))
    (tensor([[2.0000, 4.0000],
            [0.5000, 3.0000]]), tensor([1, 2], dtype=twofold.int32))
    """
    found = lu_factor_ex(A, pivot=pivot)
    return tuple(found) if get_infos else tuple(found[:2])


@linalg_function()
def lu(A: Any, *, pivot: bool = True) -> PLU:
    """P, L and U with ``A = P L U``: a permutation, a unit lower and an upper triangular matrix.

    >>> import twofold as torch
    >>> P, L, U = torch.linalg.lu(torch.tensor([[1.0, 2.0], [4.0, 4.0]]))
    >>> U.tolist()
    [[4.0, 4.0], [0.0, 1.0]]
    """
    _need_pivot(pivot)
    factors, pivots, _ = lu_packed.results(A, attrs=(False,))
    return lu_unpack(factors, pivots)


@composite
class permutation_matrix:
    """P with ``A = P L U`` from one-based pivots; attributes ``(number of rows, dtype)``."""

    functions = ()
    methods = ()
    signature = "pivots"
    differentiable = False

    @staticmethod
    def compute(pivots: Any, rows: int, dtype: Any) -> Any:
        order = apply("row_order", pivots, attrs=(rows,))
        position = ops.unsqueeze(iota((rows,)), -1)
        return convert(ops.equal(position, ops.unsqueeze(order, -2)), dtype)

    samples = lambda: [
        example((3, float32), numpy.array([3, 3, 3])),
        example((4, float64), numpy.array([[2, 4], [1, 2]])),
    ]


@public(methods=("lu_unpack",))
def lu_unpack(LU_data: Any, LU_pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True) -> PLU:
    """P, L and U from the compact form; what is not asked for is empty.

    >>> import twofold as torch
    >>> P, L, U = torch.lu_unpack(*torch.linalg.lu_factor(torch.tensor([[1.0, 5.0], [2.0, 4.0]])))
    >>> L
    tensor([[1.0000, 0.0000],
            [0.5000, 1.0000]])
    >>> U
    tensor([[2., 4.],
            [0., 3.]])
    """
    rows, columns = LU_data.shape[-2:]
    size, nothing = min(rows, columns), ops.zeros(0, dtype=LU_data.dtype)
    p, low, up = nothing, nothing, nothing
    if unpack_pivots:
        p = apply("permutation_matrix", LU_pivots, attrs=(rows, LU_data.dtype))
    if unpack_data:
        left, top = ops.narrow(LU_data, -1, 0, size), ops.narrow(LU_data, -2, 0, size)
        low = ops.add(ops.tril(left, -1), ops.eye(rows, size, dtype=LU_data.dtype))
        up = ops.triu(top)
    return _LINALG_LU(p, low, up)


@composite
class lu_system:
    """X with ``A X = B`` from the compact LU of A; attributes ``(left, adjoint)``: ``X A = B``, by ``A^H``."""

    memory = (2.5, "values in between are stored")

    functions = ()
    methods = ()
    title = "linalg.lu_solve"
    signature = "LU, pivots, B"

    @staticmethod
    def compute(lu: Any, pivots: Any, b: Any, left: bool, transposed: bool) -> Any:
        check_matrix(lu, square=True, name="LU")
        check_matrix(b, name="B")
        check_same_dtype(lu, b)
        if tuple(pivots.shape) != tuple(lu.shape[:-1]):
            raise ShapeError(
                f"pivots of shape {tuple(pivots.shape)} for LU of shape {tuple(lu.shape)}",
                "Pass both as lu_factor returned them.",
            )
        if not left:
            return adjoint(apply("lu_system", lu, pivots, adjoint(b), attrs=(True, not transposed)))
        size = lu.shape[-1]
        if b.shape[-2] != size:
            raise ShapeError(f"B has {b.shape[-2]} rows, A {size}", f"Give B {size} rows.")
        batch = common_batch(lu, b)
        order = broadcast(apply("row_order", pivots, attrs=(size,)), (*batch, size))
        lu, b = with_batch(lu, batch), with_batch(b, batch)
        if transposed:
            middle = solve_left(adjoint(lu), b, False)
            return permuted(solve_left(adjoint(lu), middle, True, True), order, back=True)
        return solve_left(lu, solve_left(lu, permuted(b, order), False, True), True)

    samples = lambda: [
        example((left, transposed), well_conditioned((2, 3, 3)), pivots, (3, 2) if left else (2, 3))
        for left in (True, False)
        for transposed in (True, False)
        for pivots in (numpy.array([[3, 2, 3], [2, 3, 3]]),)
    ]


@linalg_function()
def lu_solve(LU: Any, pivots: Any, B: Any, *, left: bool = True, adjoint: bool = False) -> Any:
    """X with ``A X = B`` from ``lu_factor(A)``; not ``left``: ``X A = B``; ``adjoint``: with ``A^H`` in A's position.

    >>> import twofold as torch
    >>> factor = torch.linalg.lu_factor(torch.tensor([[2.0, 4.0], [1.0, 5.0]]))
    >>> torch.linalg.lu_solve(*factor, torch.tensor([[6.0], [6.0]]))
    tensor([[1.],
            [1.]])
    """
    return apply("lu_system", LU, pivots, B, attrs=(bool(left), bool(adjoint)))


@public("lu_solve", methods=("lu_solve",))
@autocast("float32")
def lu_solve_(b: Any, LU_data: Any, LU_pivots: Any) -> Any:
    """X with ``A X = b`` from the compact LU of A.

    >>> import twofold as torch
    >>> factor = torch.linalg.lu_factor(torch.tensor([[2.0, 4.0], [1.0, 5.0]]))
    >>> torch.lu_solve(torch.tensor([[6.0], [6.0]]), *factor)
    tensor([[1.],
            [1.]])
    """
    return apply("lu_system", LU_data, LU_pivots, b, attrs=(True, False))
