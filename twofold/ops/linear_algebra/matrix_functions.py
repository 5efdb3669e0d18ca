"""Powers, the exponential, the pseudo-inverse, rank and condition of matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy

from twofold.dtypes import DType, complex64, int64
from twofold.ops.base import apply, broadcast_shapes, composite, convert, host, ops, public
from twofold.ops.examples import example
from twofold.ops.linear_algebra import matrix_routines
from twofold.ops.linear_algebra.matrices import (
    MatrixOperation,
    adjoint,
    check_matrix,
    identity_like,
    linalg_function,
    real,
    safe_reciprocal,
    with_batch,
)
from twofold.ops.linear_algebra.norms import matrix_norm
from twofold.ops.linear_algebra.singular_values import eigh_packed, svd_packed
from twofold.ops.linear_algebra.triangular import well_conditioned
from twofold.ops.promotion import autocast
from twofold.ops.samples import Sample


@host
class matrix_exponential(MatrixOperation):
    """``exp(A) = I + A + A^2/2 + ...`` of square matrices.

    The gradient is the upper right block of ``exp([[A^H, ct], [0, A^H]])`` (Mathias, A chain rule for matrix
    functions and applications, 1996).
    """

    title = "linalg.matrix_exp"
    compute = staticmethod(matrix_routines.exponential)

    def gradient(self, ct: Any, y: Any, *rest: Any) -> Sequence[Any]:
        conjugated, size = adjoint(rest[0]), y.shape[-1]
        upper = ops.cat((conjugated, ct), -1)
        lower = ops.cat((conjugated * 0, conjugated), -1)
        whole = apply("matrix_exponential", ops.cat((upper, lower), -2))
        return (ops.narrow(ops.narrow(whole, -2, 0, size), -1, size, size),)

    def samples(self) -> Sequence[Sample]:
        large = numpy.array([[3.0, -9.0], [4.0, 1.0]], numpy.float32)
        return [example((), shape) for shape in ((3, 3), (2, 2, 2), (1, 1), (0, 0), (0, 2, 2))] + [
            example((), large),
            example((), (2, 2), dtype=complex64),
        ]


@linalg_function("matrix_exp", methods=("matrix_exp",))
def matrix_exp(A: Any) -> Any:
    """The exponential of square matrices; half types are computed in float32.

    >>> import twofold as torch
    >>> torch.linalg.matrix_exp(torch.tensor([[0.0, 1.0], [0.0, 0.0]])).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    if A.dtype.compute is not A.dtype:
        return ops.cast(apply("matrix_exponential", ops.cast(A, A.dtype.compute)), A.dtype)
    return apply("matrix_exponential", A)


@composite
class matrix_power:
    """The product of ``n`` equal matrices; n 0 gives the identity, a negative n the power of the inverse.

    >>> import twofold as torch
    >>> torch.matrix_power(torch.tensor([[1.0, 1.0], [0.0, 1.0]]), 3)
    tensor([[1., 3.],
            [0., 1.]])
    """

    functions = ("matrix_power", "linalg.matrix_power")
    signature = "A"
    autocast = "float32"
    call = staticmethod(lambda A, n: apply("matrix_power", A, attrs=(int(n),)))

    @staticmethod
    def compute(a: Any, n: int) -> Any:
        check_matrix(a, square=True, name="A")
        if n == 0:
            return with_batch(identity_like(a), a.shape[:-2])
        square = apply("inverse_matrix", a, attrs=(True,)) if n < 0 else a
        result, left = None, abs(n)
        while left:
            if left & 1:
                result = square if result is None else result @ square
            left >>= 1
            if left:
                square = square @ square
        return result

    samples = lambda: [
        example((n,), well_conditioned(shape))
        for n, shape in ((0, (3, 3)), (1, (2, 2)), (3, (2, 2, 2)), (-2, (3, 3)), (5, (0, 0)))
    ]


def _epsilon(dtype: DType) -> float:
    return float(numpy.finfo(dtype.numpy).eps)


def _tolerances(a: Any, atol: Any, rtol: Any) -> tuple[Any, Any]:
    """Both tolerances as numbers or tensors of one number per matrix.

    Without both, rtol is the larger size times the rounding unit; with an atol above 0 alone it is 0.
    """
    automatic = _epsilon(a.dtype.real) * max(a.shape[-2:])
    if rtol is None and atol is None:
        rtol = automatic
    elif rtol is None and hasattr(atol, "dtype"):
        rtol = ops.where(ops.greater(atol, 0), 0.0, automatic)
    elif rtol is None:
        rtol = 0.0 if atol > 0 else automatic
    return 0.0 if atol is None else atol, rtol


def _counted(values: Any, atol: Any, rtol: Any) -> Any:
    """Which magnitudes are above ``max(atol, rtol * largest)``."""
    if not values.shape[-1]:
        return ops.greater(values, 0)
    largest = ops.amax(values, -1, True)
    absolute, relative = (ops.unsqueeze(convert(x, values.dtype), -1) for x in (atol, rtol))
    return ops.greater(values, ops.maximum(relative * largest, absolute))


def _magnitudes(a: Any, hermitian: bool) -> Any:
    if hermitian:
        return ops.abs(apply("eigenvalues_symmetric", a, attrs=("L",)))
    return apply("singular_values", a)


@composite
class rank_of:
    """How many singular values are above a tolerance; attributes ``(hermitian,)``."""

    functions = ()
    methods = ()
    title = "linalg.matrix_rank"
    signature = "A, atol, rtol"
    differentiable = False

    @staticmethod
    def compute(a: Any, atol: Any, rtol: Any, hermitian: bool) -> Any:
        counted = _counted(real(_magnitudes(a, hermitian)), atol, rtol)
        return ops.sum(convert(counted, int64), -1)

    samples = lambda: [
        example((False,), (3, 4), numpy.array(0.0, numpy.float32), numpy.array(1e-4, numpy.float32)),
        example((False,), numpy.ones((2, 3, 3), numpy.float32), *[numpy.full(2, 1e-3, numpy.float32)] * 2),
        example((True,), numpy.ones((2, 2), numpy.float32), *[numpy.array(1e-3, numpy.float32)] * 2),
    ]


@linalg_function()
@autocast("float32")
def matrix_rank(
    A: Any, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Any:
    """How many singular values (``hermitian``: magnitudes of eigenvalues) are above ``max(atol, rtol * largest)``.

    ``rtol`` is by default the larger size times the rounding unit, or 0 where ``atol`` is given; ``tol`` is an
    atol with rtol 0.

    >>> import twofold as torch
    >>> torch.linalg.matrix_rank(torch.ones(3, 3)).item()
    1
    """
    check_matrix(A, square=hermitian, name="A")
    if tol is not None:
        atol, rtol = tol, 0.0
    return apply("rank_of", A, *_tolerances(A, atol, rtol), attrs=(bool(hermitian),))


def pseudo_inverse_gradient(ct: Any, y: Any, a: Any) -> Any:
    """The cotangent of A from that of its pseudo-inverse Y.

    Source: Golub and Pereyra, The differentiation of pseudo-inverses and nonlinear least squares problems whose
    variables separate (1973), equation 4.12.
    """
    conjugated, back = adjoint(y), adjoint(ct)
    left = back @ y @ conjugated
    right = conjugated @ y @ back
    return -(conjugated @ ct @ conjugated) + left - a @ (y @ left) + right - (right @ y) @ a


@composite
class pseudo_inverse:
    """The pseudo-inverse from the singular values above a tolerance."""

    memory = (3.5, "the singular vectors are unpacked and scaled")

    functions = ()
    methods = ()
    title = "linalg.pinv"
    signature = "A, atol, rtol"
    complex_rule = True

    @staticmethod
    def compute(a: Any, atol: Any, rtol: Any) -> Any:
        if 0 in a.shape:
            return adjoint(a)
        u, s, vh = svd_packed.results(a, attrs=(False,))
        s = real(s)
        inverse = ops.where(_counted(s, atol, rtol), safe_reciprocal(s), 0)
        return (adjoint(vh) * ops.unsqueeze(inverse, -2)) @ adjoint(u)

    vjp = lambda ct, y, a, atol, rtol: (pseudo_inverse_gradient(ct, y, a), None, None)
    samples = lambda: (
        [example((), shape, *[numpy.array(1e-5, numpy.float32)] * 2) for shape in ((3, 3), (4, 2), (2, 2, 4))]
        + [example((), (3, 2), *[numpy.array(1e-5, numpy.float32)] * 2, dtype=complex64)]
    )


@composite
class pseudo_inverse_hermitian:
    """The pseudo-inverse of symmetric matrices from the eigenvalues above a tolerance."""

    memory = (3, "the eigenvectors are unpacked and scaled")

    functions = ()
    methods = ()
    title = "linalg.pinv"
    signature = "A, atol, rtol"
    complex_rule = True

    @staticmethod
    def compute(a: Any, atol: Any, rtol: Any) -> Any:
        if 0 in a.shape:
            return adjoint(a)
        values, vectors = eigh_packed.results(a, attrs=("L",))
        values = real(values)
        inverse = ops.where(_counted(ops.abs(values), atol, rtol), safe_reciprocal(values), 0)
        return (vectors * ops.unsqueeze(inverse, -2)) @ adjoint(vectors)

    vjp = lambda ct, y, a, atol, rtol: (pseudo_inverse_gradient(ct, y, a), None, None)
    samples = lambda: [
        example((), numpy.eye(3, dtype=numpy.float32), *[numpy.array(1e-5, numpy.float32)] * 2, smooth=False)
    ]


@linalg_function()
def pinv(A: Any, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Any:
    """The Moore-Penrose inverse: singular values up to ``max(atol, rtol * largest)`` count as 0.

    Defaults of the tolerances as in ``matrix_rank``; ``rcond`` is another name of ``rtol``. ``hermitian`` says that
    the matrices are, and that only their lower triangles are to be read.

    >>> import twofold as torch
    >>> torch.linalg.pinv(torch.tensor([[2.0], [0.0]])).tolist()
    [[0.5, 0.0]]
    """
    check_matrix(A, square=hermitian, name="A")
    name = "pseudo_inverse_hermitian" if hermitian else "pseudo_inverse"
    tolerances = _tolerances(A, atol, rcond if rtol is None else rtol)
    shapes = [tuple(getattr(one, "shape", ())) for one in tolerances]
    if any(shapes):  # one matrix for each tolerance, so that gradients are summed over them
        A = ops.broadcast_to(A, (*broadcast_shapes(tuple(A.shape[:-2]), *shapes), *A.shape[-2:]))
    return apply(name, A, *tolerances)


@public(methods=("pinverse",))
@autocast("float32")
def pinverse(input: Any, rcond: float = 1e-15) -> Any:
    """The pseudo-inverse; singular values up to ``rcond`` times the largest count as 0.

    >>> import twofold as torch
    >>> torch.pinverse(torch.tensor([[2.0, 0.0], [0.0, 0.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.0000]])
    """
    return pinv(input, rtol=rcond)


@linalg_function()
@autocast("float32")
def cond(A: Any, p: Any = None) -> Any:
    """The condition number ``norm(A, p) * norm(inv(A), p)``; infinite for a singular matrix.

    Without ``p`` the largest singular value over the smallest, of matrices of any shape.

    >>> import twofold as torch
    >>> torch.linalg.cond(torch.tensor([[2.0, 0.0], [0.0, 4.0]])).item()
    2.0
    """
    check_matrix(A, name="A")
    if 0 in tuple(A.shape[-2:]):
        return ops.zeros(*A.shape[:-2], dtype=A.dtype.real)
    if p is None or (not isinstance(p, str) and abs(p) == 2):
        values = apply("singular_values", A)
        largest, smallest = ops.select(values, -1, 0), ops.select(values, -1, values.shape[-1] - 1)
        return ops.divide(smallest, largest) if p == -2 else ops.divide(largest, smallest)
    check_matrix(A, square=True, name="A")
    inverse = apply("inverse_matrix", A, attrs=(False,))
    product = ops.multiply(matrix_norm(A, p), matrix_norm(inverse, p))
    return ops.where(ops.not_equal(apply("zero_pivot", A), 0), math.inf, product)
