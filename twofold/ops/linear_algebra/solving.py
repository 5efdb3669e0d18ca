"""Inverses, linear systems and determinants."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy

from twofold.dtypes import complex64, int32
from twofold.errors import ArgumentError, ShapeError
from twofold.ir.types import Shape, TensorType, tensor_type
from twofold.ops.base import apply, composite, host, ops, public
from twofold.ops.examples import example
from twofold.ops.linear_algebra.elimination import regular, singular
from twofold.ops.linear_algebra.matrices import (
    MatrixOperation,
    Packed,
    Pieces,
    adjoint,
    by_kernel,
    check_matrix,
    check_same_dtype,
    common_batch,
    conjugate,
    diagonal_matrix,
    diagonal_of,
    identity_like,
    linalg_function,
    observed,
    real,
    with_batch,
)
from twofold.ops.linear_algebra.singular_values import svd
from twofold.ops.linear_algebra.triangular import complex_matrices, well_conditioned
from twofold.ops.promotion import autocast
from twofold.ops.reduction.scan import products_of_others
from twofold.ops.return_types import return_type
from twofold.ops.samples import Sample
from twofold.ops.shape.movement import axis_numbers


class InverseInfo(NamedTuple):
    """The inverses, and for each matrix the number of the first zero pivot (0: none)."""

    inverse: Any
    info: Any


_LINALG_INV_EX = return_type("linalg_inv_ex", InverseInfo)


class SolveInfo(NamedTuple):
    """The solutions, and for each matrix the number of the first zero pivot (0: none)."""

    result: Any
    info: Any


_LINALG_SOLVE_EX = return_type("linalg_solve_ex", SolveInfo)


class SignAndLogarithm(NamedTuple):
    """The sign of the determinant (a number of magnitude 1, or 0), and the logarithm of its magnitude."""

    sign: Any
    logabsdet: Any


_LINALG_SLOGDET = return_type("linalg_slogdet", SignAndLogarithm)


@composite
class inverse_matrix:
    """The inverses; attributes ``(whether a singular matrix is an error,)``, else it gives NaN."""

    autograd_name = "LinalgInvExBackward0"
    functions = ()
    methods = ()
    title = "linalg.inv"
    signature = "A"
    complex_rule = True

    @staticmethod
    def compute(a: Any, check: bool) -> Any:
        check_matrix(a, square=True)
        return apply("real_inverse" if by_kernel(a) else "inverse_by_numpy", a, attrs=(check,))

    samples = lambda: [
        example((False,), numpy.ones((2, 2, 2), numpy.float32), smooth=False),
        example((True,), well_conditioned((2, 3, 3))),
    ]


@composite
class solve_matrix:
    """X with ``A X = B``; equal batch axes; attributes ``(whether a singular matrix is an error,)``."""

    functions = ()
    methods = ()
    title = "linalg.solve"
    signature = "A, B"
    complex_rule = True

    @staticmethod
    def compute(a: Any, b: Any, check: bool) -> Any:
        check_matrix(a, square=True, name="A")
        return apply("real_solution" if by_kernel(a) else "solution_by_numpy", a, b, attrs=(check,))

    samples = lambda: [example((True,), well_conditioned((3, 3)), (3, 2))]


@host
class inverse_by_numpy(MatrixOperation):
    """The inverses by NumPy: of complex and of large matrices."""

    autograd_name = "LinalgInvExBackward0"
    title = "linalg.inv"

    @staticmethod
    def compute(a: Any, check: bool) -> Any:
        return regular(numpy.linalg.inv, a, check)

    def gradient(self, ct: Any, y: Any, *rest: Any) -> Sequence[Any]:
        conjugated = adjoint(y)
        return (-(conjugated @ ct @ conjugated),)

    def samples(self) -> Sequence[Sample]:
        return [example((True,), complex_matrices((2, 2))), example((True,), well_conditioned((3, 3)))]


@host
class solution_by_numpy(MatrixOperation):
    """X with ``A X = B`` by NumPy: for complex and for large A; equal batch axes."""

    signature = "A, B"
    title = "linalg.solve"

    @staticmethod
    def compute(a: Any, b: Any, check: bool) -> Any:
        return regular(numpy.linalg.solve, a, check, b)

    def type_of(self, attrs: Any, types: Sequence[TensorType]) -> TensorType:
        return types[1]

    def gradient(self, ct: Any, y: Any, *rest: Any) -> Sequence[Any]:
        a, _, check = rest
        right = apply("solution_by_numpy", adjoint(a), ct, attrs=(check,))
        return -(right @ adjoint(y)), right

    def samples(self) -> Sequence[Sample]:
        return [example((True,), complex_matrices((3, 3)), (3, 2), dtype=complex64)]


@host
class zero_pivot(MatrixOperation):
    """For each matrix the number of the first zero pivot, 0 if it is regular."""

    title = "linalg.inv_ex"
    differentiable = False
    compute = staticmethod(singular)

    def type_of(self, attrs: Any, types: Sequence[TensorType]) -> TensorType:
        return tensor_type(int32, types[0].shape[:-2])

    def samples(self) -> Sequence[Sample]:
        return [
            example((), well_conditioned((2, 3, 3))),
            example((), numpy.ones((2, 2), numpy.float32)),
            example((), (0, 0)),
        ]


@linalg_function("inverse", methods=("inverse",))
@observed
@autocast("float32")
def inv(A: Any) -> Any:
    """The inverses of square matrices.

    Raises LinAlgError for a singular matrix. The gradient is ``-Y^H ct Y^H`` with Y the inverse (Giles,
    Collected matrix derivative results, 2008).

    >>> import twofold as torch
    >>> torch.linalg.inv(torch.tensor([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    return apply("inverse_matrix", A, attrs=(True,))


@linalg_function()
@autocast("float32")
def inv_ex(A: Any, *, check_errors: bool = False) -> InverseInfo:
    """The inverses, and info: 0, or the number of the zero pivot of a singular matrix, which gives NaN.

    >>> import twofold as torch
    >>> torch.linalg.inv_ex(torch.tensor([[2.0, 0.0], [0.0, 4.0]]))
    twofold.return_types.linalg_inv_ex(
    inverse=tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]]),
    info=tensor(0, dtype=twofold.int32))
    """
    return _LINALG_INV_EX(apply("inverse_matrix", A, attrs=(bool(check_errors),)), apply("zero_pivot", A))


def _is_vector(a: Any, b: Any) -> bool:
    """Whether the right-hand sides are vectors: one axis, or the batch of A and one axis."""
    return len(b.shape) == 1 or (len(b.shape) == len(a.shape) - 1 and tuple(b.shape) == tuple(a.shape[:-1]))


@composite
class linear_solve:
    """X with ``A X = B``, or ``X A = B``; attributes ``(left, whether a singular matrix is an error)``."""

    autograd_name = "LinalgSolveExBackward0"
    memory = (3.5, "values in between are stored")

    functions = ()
    methods = ()
    title = "linalg.solve"
    signature = "A, B"

    @staticmethod
    def compute(a: Any, b: Any, left: bool, check: bool) -> Any:
        check_matrix(a, square=True, name="A")
        vector = _is_vector(a, b)
        if not left:
            if vector:
                raise ArgumentError(
                    "left=False with vectors as right-hand sides", "Give B rows: unsqueeze it."
                )
            return adjoint(apply("linear_solve", adjoint(a), adjoint(b), attrs=(True, check)))
        if vector:
            b = ops.unsqueeze(b, -1)
        check_matrix(b, name="B")
        check_same_dtype(a, b)
        if b.shape[-2] != a.shape[-1]:
            raise ShapeError(
                f"B has {b.shape[-2]} rows, A is {a.shape[-2]} by {a.shape[-1]}",
                f"Give B {a.shape[-1]} rows.",
            )
        batch = common_batch(a, b)
        x = apply("solve_matrix", with_batch(a, batch), with_batch(b, batch), attrs=(check,))
        return ops.reshape(x, x.shape[:-1]) if vector else x

    samples = lambda: [
        example((True, True), well_conditioned((3, 3)), (3,)),
        example((True, True), well_conditioned((2, 3, 3)), (2, 3)),
        example((True, True), well_conditioned((2, 3, 3)), (3, 2)),
        example((False, True), well_conditioned((3, 3)), (2, 1, 3)),
    ]


@linalg_function()
@observed
@autocast("float32")
def solve(A: Any, B: Any, *, left: bool = True) -> Any:
    """X with ``A X = B`` (not ``left``: ``X A = B``) for square matrices; batch axes broadcast.

    B of one axis, or of the shape of A without its last axis, holds vectors. Raises LinAlgError for a singular
    matrix and ShapeError where the sizes differ.

    >>> import twofold as torch
    >>> torch.linalg.solve(torch.tensor([[2.0, 0.0], [0.0, 4.0]]), torch.tensor([2.0, 2.0])).tolist()
    [1.0, 0.5]
    """
    return apply("linear_solve", A, B, attrs=(bool(left), True))


@linalg_function()
@autocast("float32")
def solve_ex(A: Any, B: Any, *, left: bool = True, check_errors: bool = False) -> SolveInfo:
    """The solution, and info: 0, or the number of the zero pivot of a singular matrix, which gives NaN.

    >>> import twofold as torch
    >>> torch.linalg.solve_ex(torch.tensor([[2.0, 0.0], [0.0, 0.0]]), torch.tensor([2.0, 4.0])).info
    tensor(2, dtype=twofold.int32)
    """
    x = apply("linear_solve", A, B, attrs=(bool(left), bool(check_errors)))
    return _LINALG_SOLVE_EX(x, apply("zero_pivot", A))


@host
class determinant(MatrixOperation):
    """The determinants; the gradient is that of Jacobi, the transposed adjugate, also of singular matrices."""

    autograd_name = "LinalgDetBackward0"
    title = "linalg.det"
    compute = staticmethod(numpy.linalg.det)

    def type_of(self, attrs: Any, types: Sequence[TensorType]) -> TensorType:
        return tensor_type(types[0].dtype, types[0].shape[:-2])

    def gradient(self, ct: Any, y: Any, *rest: Any) -> Sequence[Any]:
        return (_each_matrix(ct) * adjoint(apply("adjugate", rest[0])),)

    def samples(self) -> Sequence[Sample]:
        shapes = ((3, 3), (2, 2, 2), (1, 1), (0, 0), (2, 0, 0), (0, 2, 2))
        return [example((), shape) for shape in shapes] + [example((), (3, 3), dtype=complex64)]


def _each_matrix(numbers: Any) -> Any:
    return ops.unsqueeze(ops.unsqueeze(numbers, -1), -1)


def _products_without_two(s: Any) -> Any:
    """The products of all numbers but those of a row and of a column, with zeros on the diagonal."""
    size = s.shape[-1]
    shape = (*s.shape, size)
    row, column = (axis_numbers(len(shape) - k, shape) for k in (2, 1))
    same = ops.equal(row, column)
    without_one = ops.where(same, 1, ops.unsqueeze(s, -2))
    found = products_of_others(ops.reshape(without_one, (prod(s.shape), size, 1)))
    return ops.where(same, 0, ops.reshape(found, shape))


def _adjugate_gradient(ct: Any, u: Any, s: Any, vh: Any) -> Any:
    """The gradient of the adjugate by the singular value decomposition, in which nothing is divided.

    Of a diagonal matrix S + E the adjugate has the products of all but one diagonal element on its diagonal, and
    beside it, to first order, minus E times the products of all but two.
    """
    sign = apply("determinant", u) * apply("determinant", vh)
    moved = (vh @ ct @ u) * conjugate(_each_matrix(sign))
    others = _products_without_two(s)
    along = ops.sum(others * ops.unsqueeze(diagonal_of(moved), -2), -1)
    return u @ (diagonal_matrix(along) - others * moved) @ vh


@host
class adjugate(MatrixOperation):
    """``det(A) inv(A)``, which singular matrices have, too.

    Source: from the singular value decomposition, Stewart, On the adjugate matrix (1998).
    """

    title = "linalg.det"

    @staticmethod
    def compute(a: Any) -> Any:
        u, s, vh = numpy.linalg.svd(a)
        size = a.shape[-1]
        others = numpy.where(numpy.eye(size, dtype=bool), 1, s[..., None, :]).prod(-1)
        sign = numpy.linalg.det(u) * numpy.linalg.det(vh)
        conjugated = vh.swapaxes(-1, -2).conj() * others[..., None, :]
        return sign[..., None, None] * (conjugated @ u.swapaxes(-1, -2).conj())

    def gradient(self, ct: Any, y: Any, *rest: Any) -> Sequence[Any]:
        """By the inverse; where that loses more than half of the digits, by the singular value decomposition.

        The latter alone would not do, as its own gradient is wrong where singular values are equal.
        """
        (a,) = rest
        if not a.shape[-1]:
            return (ct,)
        u, s, vh = svd(a, False)
        least, most = (_each_matrix(ops.select(s, -1, k)) for k in (-1, 0))
        singular = least <= most * float(numpy.finfo(s.dtype.numpy).eps) ** 0.5
        inverse = adjoint(apply("inverse_matrix", ops.where(singular, identity_like(a), a), attrs=(False,)))
        conjugated = adjoint(y)
        overlap = ops.sum(conjugate(ct) * adjoint(inverse), (-2, -1), True)
        regular = conjugate(overlap) * conjugated - inverse @ ct @ conjugated
        return (ops.where(singular, _adjugate_gradient(ct, u, s, vh), regular),)

    def samples(self) -> Sequence[Sample]:
        rank_one = numpy.ones((3, 3), numpy.float32)
        return [example((), shape) for shape in ((3, 3), (2, 2, 2), (1, 1), (0, 0))] + [
            example((), rank_one, smooth=False),
            example((), (2, 2), dtype=complex64),
        ]


@host
class slogdet_packed(Packed):
    """The sign of each determinant and the logarithm of its magnitude."""

    autograd_name = "LinalgSlogdetBackward0"
    title = "linalg.slogdet"

    def pieces(self, attrs: Any, shape: Shape) -> Pieces:
        return ((), ())

    @staticmethod
    def compute(a: Any) -> Any:
        return numpy.linalg.slogdet(a)

    def gradient(self, ct: Any, y: Any, *rest: Any) -> Sequence[Any]:
        (g_sign, g_log), (sign, _) = ct, y
        factor = real(g_log)
        if sign.dtype.kind == "c":
            factor = ops.complex(factor, ops.imag(g_sign * conjugate(sign)))
        return (_each_matrix(factor) * adjoint(apply("inverse_matrix", rest[0], attrs=(False,))),)

    def samples(self) -> Sequence[Sample]:
        shapes = ((3, 3), (2, 2, 2), (1, 1), (0, 0), (0, 2, 2))
        return [example((), shape) for shape in shapes] + [example((), (3, 3), dtype=complex64)]


@linalg_function("det", methods=("det",))
@autocast("float32")
def det(A: Any) -> Any:
    """The determinants of square matrices; that of an empty matrix is 1.

    >>> import twofold as torch
    >>> torch.linalg.det(torch.tensor([[2.0, 0.0], [0.0, 4.0]])).item()
    8.0
    """
    return apply("determinant", A)


@linalg_function("slogdet", methods=("slogdet",))
@autocast("float32")
def slogdet(A: Any) -> SignAndLogarithm:
    """The sign and the logarithm of the magnitude of the determinant; a singular matrix gives 0 and -inf.

    >>> import twofold as torch
    >>> torch.linalg.slogdet(torch.tensor([[0.0, 1.0], [2.0, 0.0]]))
    twofold.return_types.linalg_slogdet(
    sign=tensor(-1.),
    logabsdet=tensor(0.6931))
    """
    sign, logarithm = slogdet_packed.results(A)
    return _LINALG_SLOGDET(sign, real(logarithm))


@public(methods=("logdet",))
@autocast("float32")
def logdet(input: Any) -> Any:
    """The logarithm of the determinant; NaN where that is negative, -inf where it is 0.

    >>> import twofold as torch
    >>> torch.logdet(torch.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor(2.0794)
    """
    sign, logarithm = slogdet_packed.results(input)
    if sign.dtype.kind == "c":
        return logarithm + ops.log(sign)
    return ops.where(ops.less(sign, 0), float("nan"), logarithm)
