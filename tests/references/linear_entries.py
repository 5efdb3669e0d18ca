"""Identities of the entries of linear algebra: what makes a factorisation one, whatever library found it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy
import scipy.linalg
from declare import adjoint, entry, entry_identity, over_batch, pieces

Found = Iterator[tuple[Any, Any]]


def eye(size: int, *batch: int) -> Any:
    """Identity matrices."""
    return numpy.broadcast_to(numpy.eye(size), (*batch, size, size))


def unitary(q: Any) -> tuple[Any, Any]:
    """That the columns of ``q`` are orthonormal."""
    found = adjoint(q) @ q
    return found.real, eye(q.shape[-1], *q.shape[:-2])


def no_part(x: Any) -> tuple[Any, Any]:
    """That all of ``x`` is 0."""
    return x, numpy.zeros_like(x)


def pivoted_rows(pivots: Any, rows: int) -> Any:
    """For each matrix, the rows of A in the order in which LAPACK's one-based exchanges leave them."""

    def one(exchanges: Any) -> Any:
        order = list(range(rows))
        for k, other in enumerate(exchanges):
            order[k], order[int(other) - 1] = order[int(other) - 1], order[k]
        return numpy.array(order, numpy.int64)

    pivots = numpy.real(pivots)
    found = [one(pivots[at]) for at in numpy.ndindex(pivots.shape[:-1])]
    return numpy.array(found, numpy.int64).reshape(*pivots.shape[:-1], rows)


@entry_identity("triangular_system", "triangular_system_by_numpy")
def _triangular_system(x: Any, a: Any, b: Any, upper: bool, unit: bool) -> Found:
    part = numpy.triu(a) if upper else numpy.tril(a)
    if unit:
        part = part - part * numpy.eye(a.shape[-1]) + numpy.eye(a.shape[-1])
    yield part @ x, b


@entry_identity("solve_triangular")
def _solve_triangular(x: Any, a: Any, b: Any, upper: bool, left: bool, unit: bool) -> Found:
    part = numpy.triu(a) if upper else numpy.tril(a)
    if unit:
        part = part - part * numpy.eye(a.shape[-1]) + numpy.eye(a.shape[-1])
    product = part @ x if left else x @ part
    yield product, numpy.broadcast_to(b, product.shape)


@entry_identity("cholesky_packed", "cholesky_by_numpy")
def _cholesky(found: Any, a: Any, upper: bool, check: bool) -> Found:
    factor, info = pieces(found, a.shape[-2:], ())
    lower = adjoint(factor) if upper else factor
    yield lower @ adjoint(lower), a
    yield no_part(numpy.triu(lower, 1))
    diagonal = numpy.diagonal(lower, 0, -2, -1)
    yield diagonal.real > 0, numpy.ones(diagonal.shape, bool)
    yield no_part(diagonal.imag)
    yield no_part(info)


@entry_identity("cholesky_solve")
def _cholesky_solve(x: Any, b: Any, factor: Any, upper: bool) -> Found:
    part = numpy.triu(factor) if upper else numpy.tril(factor)
    a = adjoint(part) @ part if upper else part @ adjoint(part)
    yield a @ x, numpy.broadcast_to(b, x.shape)


@entry_identity("cholesky_inverse")
def _cholesky_inverse(x: Any, factor: Any, upper: bool) -> Found:
    part = numpy.triu(factor) if upper else numpy.tril(factor)
    a = adjoint(part) @ part if upper else part @ adjoint(part)
    yield a @ x, eye(a.shape[-1], *a.shape[:-2])


@entry_identity("svd_packed")
def _svd(found: Any, a: Any, full: bool) -> Found:
    rows, columns = a.shape[-2:]
    size = min(rows, columns)
    u, s, vh = pieces(found, (rows, rows if full else size), (size,), (columns if full else size, columns))
    yield (u[..., :size] * s[..., None, :]) @ vh[..., :size, :], a
    yield unitary(u)
    yield unitary(adjoint(vh))
    yield s, numpy.sort(abs(s), -1)[..., ::-1]


@entry_identity("singular_values")
def _singular_values(s: Any, a: Any) -> Found:
    small = a @ adjoint(a) if a.shape[-2] <= a.shape[-1] else adjoint(a) @ a
    yield s, numpy.sort(s, -1)[..., ::-1]
    yield numpy.array(s.min(initial=0) >= 0), numpy.array(True)
    for power in (1, 2, 3):  # the moments of the spectrum
        moment = numpy.trace(numpy.linalg.matrix_power(small, power), 0, -2, -1).real
        yield (s ** (2 * power)).sum(-1), moment


def hermitian_part(a: Any, triangle: str) -> Any:
    """The Hermitian matrix of which one triangle is ``a``'s."""
    part = numpy.tril(a, -1) if triangle == "L" else numpy.triu(a, 1)
    return part + adjoint(part) + numpy.eye(a.shape[-1]) * numpy.real(a)


@entry_identity("eigh_packed")
def _eigh(found: Any, a: Any, triangle: str) -> Found:
    values, vectors = pieces(found, a.shape[-1:], a.shape[-2:])
    whole = hermitian_part(a, triangle)
    yield whole @ vectors, vectors * values[..., None, :]
    yield unitary(vectors)
    yield values, numpy.sort(values, -1)


@entry_identity("eigenvalues_symmetric")
def _eigvalsh(values: Any, a: Any, triangle: str) -> Found:
    whole = hermitian_part(a, triangle)
    yield values, numpy.sort(values, -1)
    for power in range(1, a.shape[-1] + 1):
        moment = numpy.trace(numpy.linalg.matrix_power(whole, power), 0, -2, -1).real
        yield (values**power).sum(-1), moment
    yield values.shape, a.shape[:-1]


@entry_identity("eig_packed")
def _eig(found: Any, a: Any) -> Found:
    values, vectors = pieces(found, a.shape[-1:], a.shape[-2:])
    yield a @ vectors, vectors * values[..., None, :]
    yield (abs(vectors) ** 2).sum(-2), numpy.ones(a.shape[:-1])
    yield values.sum(-1), numpy.trace(a, 0, -2, -1).astype(complex)


@entry_identity("eigenvalues_alone")
def _eigvals(values: Any, a: Any) -> Found:
    yield values.shape, a.shape[:-1]
    for power in range(1, a.shape[-1] + 1):
        moment = numpy.trace(numpy.linalg.matrix_power(a, power), 0, -2, -1)
        yield (values**power).sum(-1), moment.astype(complex)


def ldl_product(packed: Any, pivots: Any, hermitian: bool) -> Any:
    """A from the compact form of ``sytrf`` for one matrix: ``P1 L1 P2 L2 ... D ... L2^T P2 L1^T P1``."""
    size = len(packed)
    turn = adjoint if hermitian else lambda x: numpy.swapaxes(x, -1, -2)
    whole, block = numpy.eye(size, dtype=packed.dtype), numpy.zeros_like(packed)
    k = 0
    while k < size:
        width = 1 if pivots[k] > 0 else 2
        end, row = k + width, abs(int(pivots[k])) - 1
        exchange = numpy.eye(size)
        exchange[[end - 1, row]] = exchange[[row, end - 1]]
        step = numpy.eye(size, dtype=packed.dtype)
        step[end:, k:end] = packed[end:, k:end]
        whole = whole @ exchange @ step
        block[k:end, k:end] = numpy.tril(packed[k:end, k:end])
        if width == 2:
            below = packed[k + 1, k]
            block[k, k + 1] = numpy.conj(below) if hermitian else below
        k = end
    return whole @ block @ turn(whole)


@entry_identity("ldl_packed")
def _ldl(found: Any, a: Any, hermitian: bool, check: bool) -> Found:
    packed, pivots, info = pieces(found, a.shape[-2:], a.shape[-1:], ())
    lower = numpy.tril(a, -1)
    transposed = adjoint(lower) if hermitian else lower.swapaxes(-1, -2)
    diagonal = numpy.eye(a.shape[-1]) * (numpy.real(a) if hermitian else a)
    whole = lower + transposed + diagonal
    for at in numpy.ndindex(a.shape[:-2]):
        product = ldl_product(packed[at], pivots[at].real, hermitian)
        yield product, whole[at].astype(product.dtype)
    yield no_part(info)


@entry_identity("ldl_system")
def _ldl_system(x: Any, packed: Any, pivots: Any, b: Any, hermitian: bool) -> Found:
    yield ldl_product(packed, pivots, hermitian) @ x, b


@entry("matrix_exponential")
def _exponential(a: Any) -> Any:
    values, vectors = numpy.linalg.eig(a)
    found = (vectors * numpy.exp(values)[..., None, :]) @ numpy.linalg.inv(vectors)
    return found if a.dtype.kind == "c" else found.real


@entry("matrix_square_root")
def _square_root(a: Any) -> Any:
    found = over_batch(scipy.linalg.sqrtm, a.astype(complex))
    return found if a.dtype.kind == "c" else numpy.where(abs(found.imag) > 1e-6, numpy.nan, found.real)


@entry("tridiagonal_solution")
def _tridiagonal_solution(a: Any, b: Any) -> Any:
    size = a.shape[-1]
    whole, rows = numpy.zeros((*a.shape[:-2], size, size), a.dtype), numpy.arange(size)
    whole[..., rows[:-1], rows[1:]] = a[..., 0, :-1]
    whole[..., rows, rows] = a[..., 1, :]
    whole[..., rows[1:], rows[:-1]] = a[..., 2, 1:]
    return (
        numpy.linalg.solve(whole, b) if b.ndim == a.ndim else numpy.linalg.solve(whole, b[..., None])[..., 0]
    )


@entry("matrix_power")
def _matrix_power(a: Any, power: int) -> Any:
    found = numpy.broadcast_to(numpy.eye(a.shape[-1]), a.shape)
    for _ in range(abs(power)):
        found = found @ a
    return over_batch(scipy.linalg.inv, found) if power < 0 else found


@entry("rank_of")
def _rank(a: Any, absolute: Any, relative: Any, hermitian: bool) -> Any:
    def one(matrix: Any, least: Any, factor: Any) -> Any:
        if hermitian:
            matrix = numpy.tril(matrix) + numpy.tril(matrix, -1).T
        sizes = numpy.sqrt(numpy.clip(numpy.linalg.eigvalsh(matrix @ matrix.T), 0, None))
        return (sizes > max(least, factor * sizes.max(initial=0))).sum()

    batch = a.shape[:-2]
    absolute, relative = numpy.broadcast_to(absolute, batch), numpy.broadcast_to(relative, batch)
    found = [one(a[at], absolute[at], relative[at]) for at in numpy.ndindex(batch)]
    return numpy.array(found, numpy.int64).reshape(batch)


def _penrose(x: Any, a: Any) -> Found:
    yield a @ x @ a, a
    yield x @ a @ x, x
    yield a @ x, adjoint(a @ x)
    yield x @ a, adjoint(x @ a)


@entry_identity("pseudo_inverse")
def _pseudo_inverse(x: Any, a: Any, absolute: Any, relative: Any) -> Found:
    yield from _penrose(x, a)


@entry_identity("pseudo_inverse_hermitian")
def _pseudo_inverse_hermitian(x: Any, a: Any, absolute: Any, relative: Any) -> Found:
    yield from _penrose(x, hermitian_part(a, "L"))


@entry_identity("least_squares_packed")
def _least_squares(found: Any, a: Any, b: Any, limit: Any, count: int) -> Found:
    rows, columns = a.shape[-2:]
    x, residuals, rank, values = pieces(found, (columns, count), (count,), (), (min(rows, columns),))
    apart = b - a @ x
    yield no_part(adjoint(a) @ apart)  # the residual is orthogonal to the columns
    yield residuals.real, (abs(apart) ** 2).sum(-2)
    yield rank.real, numpy.full(a.shape[:-2], float(min(rows, columns)))
    yield (values.real**2).sum(-1), (abs(a) ** 2).sum((-2, -1))
    kernel = eye(columns, *a.shape[:-2]) - over_pinv(a) @ a
    yield no_part(kernel @ x)  # of least norm


def over_pinv(a: Any) -> Any:
    """Pseudo-inverses by SciPy."""
    if not a.size:
        return numpy.zeros((*a.shape[:-2], a.shape[-1], a.shape[-2]))
    return over_batch(scipy.linalg.pinv, a)


@entry("row_order")
def _row_order(pivots: Any, rows: int) -> Any:
    return pivoted_rows(pivots, rows)


@entry("permutation_matrix")
def _permutation_matrix(pivots: Any, rows: int, dtype: Any) -> Any:
    order = pivoted_rows(pivots, rows)
    found = numpy.zeros((*order.shape, rows))
    for at in numpy.ndindex(order.shape):
        found[(*at[:-1], order[at], at[-1])] = 1
    return found


@entry("permuted_rows")
def _permuted_rows(x: Any, order: Any, back: bool) -> Any:
    found = numpy.zeros_like(x)
    for at in numpy.ndindex(order.shape):
        if back:
            found[(*at[:-1], order[at])] = x[at]
        else:
            found[at] = x[(*at[:-1], order[at])]
    return found


@entry_identity("lu_packed")
def _lu(found: Any, a: Any, check: bool) -> Found:
    rows, columns = a.shape[-2:]
    size = min(rows, columns)
    lu, pivots, info = pieces(found, (rows, columns), (size,), ())
    lower = numpy.tril(lu[..., :size], -1) + numpy.eye(rows, size)
    order = pivoted_rows(pivots, rows)
    yield lower @ numpy.triu(lu[..., :size, :]), numpy.take_along_axis(a, order[..., None], -2)
    largest = abs(numpy.tril(lu[..., :size], -1).real).max(initial=0)
    yield numpy.array(largest <= 1), numpy.array(True)
    yield no_part(info)


@entry_identity("lu_system")
def _lu_system(x: Any, lu: Any, pivots: Any, b: Any, left: bool, adjoint_system: bool) -> Found:
    size = lu.shape[-1]
    product = (numpy.tril(lu, -1) + numpy.eye(size)) @ numpy.triu(lu)
    order = pivoted_rows(pivots, size)
    a = numpy.zeros_like(product)
    for at in numpy.ndindex(order.shape):
        a[(*at[:-1], order[at])] = product[at]
    a = adjoint(a) if adjoint_system else a
    found = a @ x if left else x @ a
    yield found, numpy.broadcast_to(b, found.shape)


@entry_identity("qr_packed")
def _qr(found: Any, a: Any, mode: str) -> Found:
    rows, columns = a.shape[-2:]
    size = rows if mode == "complete" else min(rows, columns)
    q, r = pieces(found, (rows, size), (size, columns))
    yield q @ r, a
    yield unitary(q)
    yield no_part(numpy.tril(r, -1))


def reflections(vectors: Any, factors: Any, complete: bool = True) -> Any:
    """The product of the reflections ``I - tau v v^H`` of one matrix, one after another."""
    rows, columns = vectors.shape
    product = numpy.eye(rows, dtype=vectors.dtype)
    for k in range(len(factors)):
        v = numpy.concatenate([numpy.zeros(k), [1.0], vectors[k + 1 :, k]])[:, None]
        product = product @ (numpy.eye(rows) - factors[k] * (v @ adjoint(v)))
    return product if complete else product[:, :columns]


@entry_identity("geqrf_packed")
def _geqrf(found: Any, a: Any) -> Found:
    rows, columns = a.shape[-2:]
    transposed, factors = pieces(found, (rows, columns), (min(rows, columns),))
    for at in numpy.ndindex(a.shape[:-2]):
        q = reflections(transposed[at], factors[at])
        yield q @ numpy.triu(transposed[at]), a[at]
        yield unitary(q)


@entry("householder_product")
def _householder(vectors: Any, factors: Any) -> Any:
    found = [reflections(vectors[at], factors[at], False) for at in numpy.ndindex(vectors.shape[:-2])]
    return numpy.array(found).reshape(vectors.shape)


@entry("ormqr")
def _ormqr(vectors: Any, factors: Any, other: Any, left: bool, transposed: bool) -> Any:
    def one(at: tuple[int, ...]) -> Any:
        q = reflections(vectors[at], factors[at])
        q = adjoint(q) if transposed else q
        return q @ other[at] if left else other[at] @ q

    found = [one(at) for at in numpy.ndindex(vectors.shape[:-2])]
    return numpy.array(found).reshape(other.shape)


@entry_identity("inverse_matrix", "real_inverse", "inverse_by_numpy")
def _inverse(x: Any, a: Any, check: bool) -> Found:
    if not check:  # a singular matrix that is no error
        yield numpy.isnan(x), numpy.ones(x.shape, bool)
        return
    yield a @ x, eye(a.shape[-1], *a.shape[:-2]).astype(a.dtype)


@entry_identity("solve_matrix", "real_solution", "solution_by_numpy")
def _system(x: Any, a: Any, b: Any, check: bool) -> Found:
    yield a @ x, b


@entry_identity("linear_solve")
def _linear_solve(x: Any, a: Any, b: Any, left: bool, check: bool) -> Found:
    if b.ndim == a.ndim - 1 and b.shape == a.shape[:-1]:
        yield (a @ x[..., None])[..., 0], b
        return
    product = a @ x if left else x @ a
    yield product, numpy.broadcast_to(b, product.shape)


@entry("zero_pivot")
def _zero_pivot(a: Any) -> Any:
    # of the samples, the matrix of ones has rank 1 and the others are regular
    rank = [int(numpy.linalg.matrix_rank(a[at])) for at in numpy.ndindex(a.shape[:-2])]
    found = [0 if value == a.shape[-1] else value + 1 for value in rank]
    return numpy.array(found, numpy.int32).reshape(a.shape[:-2])


def determinant(a: Any) -> Any:
    """The determinant of one matrix along its first row."""
    if not len(a):
        return a.dtype.type(1)
    return sum((-1) ** k * a[0, k] * determinant(numpy.delete(a[1:], k, 1)) for k in range(len(a)))


def determinants(a: Any) -> Any:
    """Determinants of a batch along their first rows."""
    found = [determinant(a[at]) for at in numpy.ndindex(a.shape[:-2])]
    return numpy.array(found, a.dtype).reshape(a.shape[:-2])


entry("determinant")(determinants)


@entry("adjugate")
def _adjugate(a: Any) -> Any:
    found = numpy.zeros_like(a)
    size = a.shape[-1]
    for at in numpy.ndindex(a.shape[:-2]):
        for row, column in numpy.ndindex(size, size):
            minor = numpy.delete(numpy.delete(a[at], row, 0), column, 1)
            found[(*at, column, row)] = (-1) ** (row + column) * determinant(minor)
    return found


@entry("slogdet_packed")
def _slogdet(a: Any) -> Any:
    found = determinants(a)
    return numpy.stack([found / abs(found), numpy.log(abs(found))], -1).astype(a.dtype)
