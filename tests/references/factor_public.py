"""Identities of the public factorisations and of what solves systems."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy
import scipy.linalg
from declare import (
    adjoint,
    call,
    complexes,
    dominant,
    normal,
    over_batch,
    positive,
    public,
    public_identity,
    symmetric,
)
from linear_entries import (
    determinants,
    eye,
    hermitian_part,
    ldl_product,
    no_part,
    pivoted_rows,
    reflections,
    unitary,
)

Found = Iterator[tuple[Any, ...]]


def hermitian(size: int) -> Any:
    """A Hermitian matrix."""
    x = complexes(size, size)
    return x + adjoint(x)


# Factorisations


def _svd(found: Any, a: Any, full: bool) -> Found:
    u, s, vh = found
    rows, columns = a.shape[-2:]
    size = min(rows, columns)
    yield u.shape[-1], rows if full else size
    yield vh.shape[-2], columns if full else size
    yield (u[..., :size] * s[..., None, :]) @ vh[..., :size, :], a
    yield unitary(u)
    yield unitary(adjoint(vh))
    yield s, numpy.sort(abs(s), -1)[..., ::-1]


MATRICES = [lambda: normal(4, 3), lambda: normal(2, 3, 4), lambda: complexes(3, 3), lambda: normal(3, 1)]

public_identity(
    "linalg.svd",
    lambda found, a, full_matrices=True: _svd(found, a, full_matrices),
    lambda: (
        [call(a(), full_matrices=full) for a in MATRICES for full in (True, False)] + [call(normal(3, 2))]
    ),
)


def _old_svd(found: Any, a: Any, some: bool = True, compute_uv: bool = True) -> Found:
    u, s, v = found
    if compute_uv:
        yield from _svd((u, s, adjoint(v)), a, not some)
        return
    yield no_part(u)
    yield no_part(v)
    yield u.shape[-1], a.shape[-2]
    yield v.shape[-1], a.shape[-1]
    yield s, numpy.sqrt(numpy.linalg.eigvalsh(adjoint(a) @ a))[..., ::-1]


public_identity(
    "svd",
    _old_svd,
    lambda: (
        [call(a(), some=some) for a in MATRICES for some in (True, False)]
        + [call(normal(4, 3)), call(normal(4, 3), compute_uv=False)]
    ),
)
public(
    "linalg.svdvals",
    lambda a: numpy.sqrt(numpy.linalg.eigvalsh(adjoint(a) @ a))[..., ::-1],
    lambda: [call(normal(4, 3)), call(normal(2, 5, 2)), call(complexes(3, 3))],
)


def _eigh(found: Any, a: Any, UPLO: str = "L") -> Found:
    values, vectors = found
    whole = hermitian_part(a, UPLO.upper())
    yield whole @ vectors, vectors * values[..., None, :]
    yield unitary(vectors)
    yield values, numpy.sort(values, -1)


HERMITIAN_CALLS = lambda: [
    call(symmetric(4)),
    call(normal(3, 3), "U"),
    call(normal(2, 3, 3), UPLO="l"),
    call(hermitian(3)),
]
public_identity("linalg.eigh", _eigh, HERMITIAN_CALLS)
public(
    "linalg.eigvalsh",
    lambda a, UPLO="L": over_batch(scipy.linalg.eigvalsh, hermitian_part(a, UPLO.upper())),
    HERMITIAN_CALLS,
)


def _eig(found: Any, a: Any) -> Found:
    values, vectors = found
    yield a @ vectors, vectors * values[..., None, :]
    yield (abs(vectors) ** 2).sum(-2), numpy.ones(a.shape[:-1])
    yield numpy.prod(values, -1), determinants(a).astype(complex)


GENERAL = lambda: [call(normal(4, 4)), call(normal(2, 3, 3)), call(complexes(3, 3))]
public_identity("linalg.eig", _eig, GENERAL)


def _eigvals(found: Any, a: Any) -> Found:
    for power in range(1, a.shape[-1] + 1):
        moment = numpy.trace(numpy.linalg.matrix_power(a, power), 0, -2, -1)
        yield (found**power).sum(-1), moment.astype(complex)


public_identity("linalg.eigvals", _eigvals, GENERAL)


def _cholesky(factor: Any, a: Any, upper: bool = False) -> Found:
    lower = adjoint(factor) if upper else factor
    yield lower @ adjoint(lower), a
    yield no_part(numpy.triu(lower, 1))
    yield numpy.diagonal(lower, 0, -2, -1).real > 0, numpy.ones(a.shape[:-1], bool)


def complex_positive() -> Any:
    """A Hermitian matrix with positive eigenvalues."""
    x = complexes(3, 3)
    return x @ adjoint(x) + numpy.eye(3)


public_identity(
    "cholesky linalg.cholesky",
    _cholesky,
    lambda: [call(positive(3)), call(positive(2, 4), upper=True), call(complex_positive(), upper=True)],
)


def _cholesky_ex(found: Any, a: Any, upper: bool = False) -> Found:
    factor, info = found
    if info.any():  # the samples' only matrix that is not definite fails at its second minor
        yield info, numpy.array(2, numpy.int32)
        return
    yield from _cholesky(factor, a, upper)


public_identity(
    "linalg.cholesky_ex",
    _cholesky_ex,
    lambda: [call(positive(3)), call(positive(3), upper=True), call(numpy.array([[1.0, 2.0], [2.0, 1.0]]))],
)


def _qr(found: Any, a: Any, mode: str = "reduced") -> Found:
    q, r = found
    rows, columns = a.shape[-2:]
    if mode == "r":
        yield adjoint(r) @ r, adjoint(a) @ a
        yield no_part(numpy.tril(r, -1))
        yield q.size, 0
        return
    yield q.shape[-1], rows if mode == "complete" else min(rows, columns)
    yield q @ r, a
    yield unitary(q)
    yield no_part(numpy.tril(r, -1))


public_identity(
    "linalg.qr",
    _qr,
    lambda: (
        [call(a()) for a in MATRICES] + [call(a(), mode=mode) for a in MATRICES for mode in ("complete", "r")]
    ),
)
public_identity(
    "qr",
    lambda found, a, some=True: _qr(found, a, "reduced" if some else "complete"),
    lambda: [call(normal(4, 3)), call(normal(4, 3), some=False), call(normal(3, 4), False)],
)


def _geqrf(found: Any, a: Any) -> Found:
    vectors, factors = found
    for at in numpy.ndindex(a.shape[:-2]):
        q = reflections(vectors[at], factors[at])
        yield q @ numpy.triu(vectors[at]), a[at]
        yield unitary(q)


public_identity("geqrf", _geqrf, lambda: [call(normal(4, 3)), call(normal(2, 3, 4))])


def _ldl(found: Any, a: Any, hermitian: bool = False, check_errors: bool = False) -> Found:
    packed, pivots, *info = found
    for at in numpy.ndindex(a.shape[:-2]):
        yield ldl_product(packed[at], pivots[at], hermitian), a[at]
    yield from (no_part(one) for one in info)


LDL_CALLS = lambda: [
    call(symmetric(4)),
    call(symmetric(3, 2)),
    call(hermitian(3), hermitian=True),
    call(numpy.array([[0.0, 1.0], [1.0, 0.0]])),
]
public_identity("linalg.ldl_factor linalg.ldl_factor_ex", _ldl, LDL_CALLS)


def packed_ldl(a: Any, hermitian: bool = False) -> Any:
    """The compact form of LAPACK, from SciPy's bindings to it."""
    name = "hetrf" if hermitian else "sytrf"
    (factor,) = scipy.linalg.get_lapack_funcs((name,), (a,))
    packed, pivots, info = factor(a, lower=1)
    assert info == 0
    return numpy.tril(packed), pivots


def _ldl_solve_calls() -> Any:
    made = []
    for a, options in ((symmetric(4), {}), (hermitian(3), {"hermitian": True})):
        made.append(call(*packed_ldl(a, **options), a[:, :2] @ normal(2, 3).astype(a.dtype), **options))
    return made


public_identity(
    "linalg.ldl_solve",
    lambda x, packed, pivots, b, hermitian=False: [(ldl_product(packed, pivots, hermitian) @ x, b)],
    _ldl_solve_calls,
)


def lu_product(lu: Any, pivots: Any) -> Any:
    """A from its compact LU form."""
    rows, columns = lu.shape[-2:]
    size = min(rows, columns)
    lower = numpy.tril(lu[..., :size], -1) + numpy.eye(rows, size)
    product = lower @ numpy.triu(lu[..., :size, :])
    order = pivoted_rows(pivots, rows)
    found = numpy.zeros_like(product)
    for at in numpy.ndindex(order.shape):
        found[(*at[:-1], order[at])] = product[at]
    return found


def _lu(found: Any, a: Any, **options: Any) -> Found:
    lu, pivots, *info = found
    yield lu_product(lu, pivots), a
    yield abs(numpy.tril(lu, -1)).max() <= 1 + 1e-12, True
    yield from (no_part(one) for one in info)


LU_CALLS = lambda: [call(normal(4, 4)), call(normal(2, 3, 5)), call(normal(4, 2))]
public_identity("linalg.lu_factor linalg.lu_factor_ex lu", _lu, LU_CALLS)
public_identity("lu", _lu, lambda: [call(normal(3, 3), get_infos=True)])


def _plu(found: Any, a: Any) -> Found:
    p, lower, upper = found
    yield p @ lower @ upper, a
    yield no_part(numpy.triu(lower, 1))
    yield no_part(numpy.tril(upper, -1))
    yield numpy.diagonal(lower, 0, -2, -1), numpy.ones((*a.shape[:-2], min(a.shape[-2:])))
    yield unitary(p)
    yield numpy.isin(p, (0, 1)), numpy.ones(p.shape, bool)


public_identity("linalg.lu", _plu, LU_CALLS)


def _lu_unpack(
    found: Any, lu: Any, pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True
) -> Found:
    p, lower, upper = found
    if unpack_data and unpack_pivots:
        yield from _plu(found, lu_product(lu, pivots))
    elif unpack_data:
        yield p.size, 0
        yield (
            lower @ upper,
            lu_product(lu, numpy.broadcast_to(numpy.arange(1, 1 + pivots.shape[-1]), pivots.shape)),
        )
    else:
        yield lower.size + upper.size, 0
        yield unitary(p)


def lu_pair(a: Any) -> Any:
    """The compact form by SciPy, with one-based pivots."""
    lu, pivots = scipy.linalg.lu_factor(a)
    return lu, (pivots + 1).astype(numpy.int32)


public_identity(
    "lu_unpack",
    _lu_unpack,
    lambda: [
        call(*lu_pair(normal(4, 4))),
        call(*lu_pair(normal(3, 5))),
        call(*lu_pair(normal(3, 3)), unpack_data=False),
        call(*lu_pair(normal(3, 3)), unpack_pivots=False),
    ],
)


def _lu_solve(x: Any, lu: Any, pivots: Any, b: Any, left: bool = True, adjoint: bool = False) -> Found:
    a = lu_product(lu, pivots)
    a = a.conj().T if adjoint else a
    yield (a @ x if left else x @ a), b


public_identity(
    "linalg.lu_solve",
    _lu_solve,
    lambda: [
        call(*lu_pair(dominant(3)), normal(3, 2)),
        call(*lu_pair(dominant(3)), normal(2, 3), left=False),
        call(*lu_pair(normal(3, 3)), normal(3, 2), adjoint=True),
        call(*lu_pair(normal(3, 3)), normal(4, 3), left=False, adjoint=True),
    ],
)
public_identity(
    "lu_solve",
    lambda x, b, lu, pivots: _lu_solve(x, lu, pivots, b),
    lambda: [call(normal(3, 2), *lu_pair(normal(3, 3)))],
)

# Systems


def _triangular(
    found: Any, b: Any, a: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Found:
    x, given = found
    part = numpy.triu(a) if upper else numpy.tril(a)
    if unitriangular:
        part = part - part * numpy.eye(len(a)) + numpy.eye(len(a))
    yield (part.T if transpose else part) @ x, b
    yield given, a


public_identity(
    "triangular_solve",
    _triangular,
    lambda: (
        [
            call(normal(3, 2), dominant(3), **dict(zip(("upper", "transpose", "unitriangular"), flags)))
            for flags in itertools.product((True, False), repeat=3)
        ]
        + [call(normal(3, 2), dominant(3))]
    ),
)


def _inverse(found: Any, a: Any) -> Found:
    yield a @ found, eye(a.shape[-1], *a.shape[:-2]).astype(a.dtype)


public_identity(
    "inverse linalg.inv", _inverse, lambda: [call(dominant(3)), call(normal(2, 4, 4)), call(complexes(3, 3))]
)


def _inv_ex(found: Any, a: Any, check_errors: bool = False) -> Found:
    x, info = found
    if info.any():
        yield info, numpy.array(2, numpy.int32)  # of the matrix of ones
        return
    yield from _inverse(x, a)


public_identity("linalg.inv_ex", _inv_ex, lambda: [call(dominant(3)), call(numpy.ones((2, 2)))])


def _solve(x: Any, a: Any, b: Any, left: bool = True) -> Found:
    if b.ndim == 1 or b.shape == a.shape[:-1]:
        x = (a @ x[..., None])[..., 0]
        yield x, numpy.broadcast_to(b, x.shape)
        return
    product = a @ x if left else x @ a
    yield product, numpy.broadcast_to(b, product.shape)


SOLVE_CALLS = lambda: [
    call(dominant(3), normal(3, 2)),
    call(dominant(3), normal(3)),
    call(dominant(3, 2), normal(2, 3)),
    call(dominant(3, 2), normal(3, 4)),
    call(dominant(3), normal(2, 1, 3), left=False),
    call(complexes(3, 3), complexes(3, 1)),
]
public_identity("linalg.solve", _solve, SOLVE_CALLS)


def _solve_ex(found: Any, a: Any, b: Any, left: bool = True) -> Found:
    x, info = found
    yield no_part(info)
    yield from _solve(x, a, b, left)


public_identity("linalg.solve_ex", _solve_ex, SOLVE_CALLS)


def _lstsq(found: Any, a: Any, b: Any, driver: str = "gelsy") -> Found:
    x, residuals, rank, values = found
    rows, columns = a.shape[-2:]
    right, x = (b[..., None], x[..., None]) if b.ndim < a.ndim else (b, x)
    apart = right - a @ x
    yield no_part(adjoint(a) @ apart)
    if driver != "gelsy" and rows > columns:
        yield residuals, (abs(apart) ** 2).sum(-2)
    else:
        yield residuals.size, 0
    yield (rank, numpy.full(a.shape[:-2], min(rows, columns))) if driver != "gels" else (rank.size, 0)
    if driver in ("gelsd", "gelss"):
        yield values, numpy.sqrt(numpy.linalg.eigvalsh(adjoint(a) @ a))[..., ::-1][..., : min(rows, columns)]
    else:
        yield values.size, 0
    kernel = numpy.eye(columns) - over_batch(scipy.linalg.pinv, a) @ a
    yield no_part(kernel @ x)


public_identity(
    "linalg.lstsq",
    _lstsq,
    lambda: (
        [call(normal(5, 3), normal(5, 2), driver=name) for name in ("gels", "gelsy", "gelsd", "gelss")]
        + [
            call(normal(2, 4), normal(2, 1)),
            call(normal(2, 5, 3), normal(2, 5, 2)),
            call(normal(5, 3), normal(5)),
        ]
    ),
)
