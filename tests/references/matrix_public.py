"""References and identities of functions, norms and products of matrices."""

from __future__ import annotations

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
)

Found = Iterator[tuple[Any, ...]]

# Functions of matrices

public(
    "det linalg.det",
    determinants,
    lambda: [call(normal(3, 3)), call(normal(2, 4, 4)), call(complexes(3, 3)), call(normal(0, 0))],
)
public(
    "slogdet linalg.slogdet",
    lambda a: (determinants(a) / abs(determinants(a)), numpy.log(abs(determinants(a)))),
    lambda: [call(normal(3, 3)), call(normal(2, 4, 4)), call(complexes(3, 3))],
)
public(
    "logdet",
    lambda a: numpy.log(determinants(a)),
    lambda: [call(positive(3)), call(positive(2, 3)), call(numpy.diag([1.0, -1.0]))],
)
public(
    "matrix_exp linalg.matrix_exp",
    lambda a: over_batch(scipy.linalg.expm, a),
    lambda: [call(normal(3, 3)), call(5 * normal(2, 4, 4)), call(complexes(3, 3)), call(numpy.zeros((2, 2)))],
)


def low_rank(rank: int, rows: int = 4, columns: int = 3) -> Any:
    """A matrix of the given rank."""
    return normal(rows, rank) @ normal(rank, columns)


def _rank(a: Any, tol: Any = None, hermitian: bool = False, atol: Any = None, rtol: Any = None) -> Any:
    def one(matrix: Any) -> int:
        sizes = scipy.linalg.svdvals(matrix)
        eps = numpy.finfo(float).eps * max(matrix.shape)
        least = 0.0 if atol is None else atol
        relative = (eps if atol is None else 0.0) if rtol is None else rtol
        if tol is not None:
            least, relative = tol, 0.0
        return int((sizes > max(least, relative * sizes.max())).sum())

    return over_batch(one, a)


public(
    "linalg.matrix_rank",
    _rank,
    lambda: (
        [call(low_rank(k)) for k in (1, 2, 3)]
        + [
            call(numpy.stack([low_rank(1), low_rank(2)])),
            call(symmetric(3), hermitian=True),
            call(numpy.diag([1.0, 0.1, 0.01]), 0.05),
            call(numpy.diag([4.0, 0.3, 0.01]), rtol=0.05),
            call(numpy.diag([4.0, 0.3, 0.01]), atol=0.2),
        ]
    ),
)


def _pinv(x: Any, a: Any, *rest: Any, **options: Any) -> Found:
    yield a @ x @ a, a
    yield x @ a @ x, x
    yield a @ x, adjoint(a @ x)
    yield x @ a, adjoint(x @ a)


public_identity(
    "linalg.pinv",
    _pinv,
    lambda: [
        call(normal(4, 3)),
        call(low_rank(2)),
        call(normal(2, 3, 5)),
        call(complexes(3, 2)),
        call(symmetric(3), hermitian=True),
    ],
)
public(
    "linalg.pinv", lambda a, **_: numpy.diag([0.25, 0.0]), lambda: [call(numpy.diag([4.0, 0.3]), rtol=0.1)]
)
public(
    "linalg.pinv", lambda a, **_: numpy.diag([0.25, 0.0]), lambda: [call(numpy.diag([4.0, 0.3]), atol=0.5)]
)
public_identity("pinverse", _pinv, lambda: [call(normal(4, 3)), call(normal(2, 3))])


def _cond(a: Any, p: Any = None) -> Any:
    if p in (None, 2, -2):
        sizes = over_batch(scipy.linalg.svdvals, a)
        return sizes[..., -1] / sizes[..., 0] if p == -2 else sizes[..., 0] / sizes[..., -1]
    inverse = over_batch(scipy.linalg.inv, a)
    return _matrix_norm(a, p) * _matrix_norm(inverse, p)


public(
    "linalg.cond",
    _cond,
    lambda: (
        [call(dominant(3)), call(normal(2, 4, 3))]
        + [call(dominant(3), p) for p in (1, -1, 2, -2, numpy.inf, -numpy.inf, "fro", "nuc")]
    ),
)

# Norms


def _vector_norm(x: Any, p: float) -> float:
    x = numpy.abs(x).reshape(-1)
    if p == numpy.inf:
        return float(x.max())
    if p == -numpy.inf:
        return float(x.min())
    if p == 0:
        return float((x != 0).sum())
    return float((x**p).sum() ** (1 / p))


def _matrix_norm_of(a: Any, p: Any) -> float:
    if p == "fro":
        return float(numpy.sqrt((abs(a) ** 2).sum()))
    if p in ("nuc", 2, -2):
        sizes = scipy.linalg.svdvals(a)
        return float({"nuc": sizes.sum(), 2: sizes.max(), -2: sizes.min()}[p])
    sums = abs(a).sum(0 if abs(p) == 1 else 1)
    return float(sums.max() if p > 0 else sums.min())


def _matrix_norm(a: Any, p: Any) -> Any:
    return over_batch(lambda one: _matrix_norm_of(one, p), a)


def _along(x: Any, dims: Any, keepdim: bool, rule: Any) -> Any:
    """``rule`` of the elements over some axes (given in their order)."""
    dims = tuple(range(x.ndim)) if dims is None else (dims,) if isinstance(dims, int) else tuple(dims)
    dims = tuple(axis % x.ndim for axis in dims)
    rest = [axis for axis in range(x.ndim) if axis not in dims]
    moved = x.transpose(*rest, *dims)
    shape = moved.shape[: len(rest)]
    found = numpy.array([rule(moved[at]) for at in numpy.ndindex(*shape)]).reshape(shape)
    if keepdim:
        found = found.reshape([1 if axis in dims else size for axis, size in enumerate(x.shape)])
    return found


ORDERS = (2, 1, 0, 3.5, numpy.inf, -numpy.inf, -1)
public(
    "linalg.vector_norm",
    lambda x, ord=2, dim=None, keepdim=False: _along(x, dim, keepdim, lambda part: _vector_norm(part, ord)),
    lambda: (
        [call(normal(3, 4), ord) for ord in ORDERS]
        + [
            call(normal(3, 4)),
            call(normal(2, 3, 4), 3, dim=(0, 2)),
            call(normal(2, 3, 4), dim=1, keepdim=True),
            call(complexes(4), 2),
        ]
    ),
)
public(
    "linalg.matrix_norm",
    lambda a, ord="fro", dim=(-2, -1), keepdim=False: _along(
        a, dim, keepdim, lambda part: _matrix_norm_of(part, ord)
    ),
    lambda: (
        [call(normal(3, 4), ord) for ord in ("fro", "nuc", 2, -2, 1, -1, numpy.inf, -numpy.inf)]
        + [
            call(normal(2, 3, 4)),
            call(normal(2, 3, 4), 1, dim=(0, 1)),
            call(normal(2, 3, 4), 1, dim=(1, 0), keepdim=True),
            call(complexes(3, 3), "nuc"),
        ]
    ),
)


def _norm(a: Any, ord: Any = None, dim: Any = None, keepdim: bool = False) -> Any:
    matrix = isinstance(ord, str) or (ord is not None and (dim is None and a.ndim == 2))
    matrix = matrix or (isinstance(dim, tuple) and len(dim) == 2 and ord is not None)
    if matrix:
        return _along(a, dim, keepdim, lambda part: _matrix_norm_of(part, ord))
    return _along(a, dim, keepdim, lambda part: _vector_norm(part, 2 if ord is None else ord))


public(
    "linalg.norm",
    _norm,
    lambda: [
        call(normal(3, 4)),
        call(normal(2, 3, 4)),
        call(normal(3, 4), 1),
        call(normal(5), 3),
        call(normal(3, 4), "nuc"),
        call(normal(3, 4), -2),
        call(normal(2, 3, 4), 1, dim=(0, 2)),
        call(normal(2, 3, 4), 2, dim=1, keepdim=True),
        call(normal(5), numpy.inf),
        call(normal(3, 4), -numpy.inf, (0, 1), True),
    ],
)


def _old_norm(x: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False) -> Any:
    if p == "nuc":
        return _along(x, dim, keepdim, lambda part: _matrix_norm_of(part, p))
    return _along(x, dim, keepdim, lambda part: _vector_norm(part, 2 if p == "fro" else p))


public(
    "norm",
    _old_norm,
    lambda: [
        call(normal(3, 4)),
        call(normal(3, 4), 1),
        call(normal(3, 4), 3.0, 0),
        call(normal(3, 4), "nuc"),
        call(normal(2, 3, 4), "fro", (0, 1), True),
        call(normal(3, 4), numpy.inf, dim=1),
    ],
)

# Products


def _product(a: Any, b: Any) -> Any:
    return numpy.array([[sum(x * y for x, y in zip(row, column)) for column in b.T] for row in a])


public("mm", _product, lambda: [call(normal(3, 4), normal(4, 2)), call(complexes(2, 2), complexes(2, 3))])
public(
    "bmm",
    lambda a, b: numpy.stack([_product(x, y) for x, y in zip(a, b)]),
    lambda: [call(normal(2, 3, 4), normal(2, 4, 5))],
)
public("mv", lambda a, b: _product(a, b[:, None])[:, 0], lambda: [call(normal(3, 4), normal(4))])
public(
    "dot",
    lambda a, b: numpy.array(sum(x * y for x, y in zip(a, b))),
    lambda: [call(normal(5), normal(5, seed=1)), call(complexes(4), complexes(4, seed=1))],
)
public(
    "vdot",
    lambda a, b: numpy.array(sum(numpy.conj(x) * y for x, y in zip(a, b))),
    lambda: [call(normal(5), normal(5, seed=1)), call(complexes(4), complexes(4, seed=1))],
)
public(
    "linalg.matmul",
    lambda a, b: numpy.einsum("...ij,...jk->...ik", a, b),
    lambda: [call(normal(2, 1, 3, 4), normal(5, 4, 2)), call(complexes(2, 3), complexes(3, 2))],
)


def _kron(a: Any, b: Any) -> Any:
    ndim = max(a.ndim, b.ndim)
    a, b = (x.reshape((1,) * (ndim - x.ndim) + x.shape) for x in (a, b))
    found = numpy.zeros([m * n for m, n in zip(a.shape, b.shape)])
    for at in numpy.ndindex(*a.shape):
        found[tuple(slice(k * n, (k + 1) * n) for k, n in zip(at, b.shape))] = a[at] * b
    return found


public("kron", _kron, lambda: [call(normal(2, 3), normal(3, 2)), call(normal(2), normal(2, 2))])
public(
    "trace",
    lambda a: numpy.array(sum(a[k, k] for k in range(min(a.shape)))),
    lambda: [call(normal(3, 4)), call(numpy.arange(6).reshape(3, 2))],
)


def _cross(a: Any, b: Any, axis: int) -> Any:
    a, b = numpy.broadcast_arrays(a, b)
    a, b = numpy.moveaxis(a, axis, 0), numpy.moveaxis(b, axis, 0)
    rows = [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    return numpy.stack(rows, axis if axis >= 0 else axis % (a.ndim))


public(
    "linalg.cross",
    lambda a, b, dim=-1: _cross(a, b, dim),
    lambda: [
        call(normal(4, 3), normal(4, 3, seed=1)),
        call(normal(3, 4), normal(3, 1), dim=0),
    ],
)
public(
    "cross",
    lambda a, b, dim=None: _cross(a, b, a.shape.index(3) if dim is None else dim),
    lambda: [
        call(normal(3, 4), normal(3, 4, seed=1)),
        call(normal(3, 3), normal(3, 3, seed=1)),
        call(normal(3, 3), normal(3, 3, seed=1), dim=1),
    ],
)


def _chain(*matrices: Any) -> Any:
    matrices = matrices[0] if len(matrices) == 1 else matrices
    first, *rest = matrices
    for matrix in rest:
        first = numpy.tensordot(first, matrix, 1)
    return first


public(
    "linalg.multi_dot",
    _chain,
    lambda: [
        call([normal(2, 3), normal(3, 5), normal(5, 1)]),
        call([normal(3), normal(3, 4), normal(4)]),
        call([normal(2, 3), normal(3, 5), normal(5, 2), normal(2, 4)]),
        call([normal(2, 3), normal(3)]),
    ],
)
public("chain_matmul", _chain, lambda: [call(normal(2, 3), normal(3, 5), normal(5, 1))])


def _vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    count = x.shape[-1] if N is None else N
    powers = range(count) if increasing else range(count - 1, -1, -1)
    return numpy.stack([x**k for k in powers], -1)


public(
    "vander",
    _vander,
    lambda: [
        call(normal(4)),
        call(normal(4), 3),
        call(normal(3), increasing=True),
        call(numpy.arange(4), N=5),
    ],
)
public(
    "linalg.vander",
    lambda x, N=None: _vander(x, N, True),
    lambda: [call(normal(4)), call(normal(2, 3), N=2)],
)


def _tensorinv(found: Any, a: Any, ind: int = 2) -> Found:
    size = int(numpy.prod(a.shape[:ind]))
    yield found.shape, (*a.shape[ind:], *a.shape[:ind])
    yield a.reshape(size, size) @ found.reshape(size, size), numpy.eye(size)


public_identity(
    "linalg.tensorinv",
    _tensorinv,
    lambda: [call(normal(2, 3, 6)), call(normal(6, 3, 2), ind=1)],
)


def _tensorsolve(x: Any, a: Any, b: Any, dims: Any = None) -> Found:
    if dims is not None:
        rest = [axis for axis in range(a.ndim) if axis not in dims]
        a = a.transpose(*rest, *dims)
    yield numpy.tensordot(a, x, x.ndim), b


public_identity(
    "linalg.tensorsolve",
    _tensorsolve,
    lambda: [
        call(normal(2, 3, 6), normal(2, 3)),
        call(normal(6, 2, 3), normal(6)),
        call(normal(2, 6, 3), normal(2, 3), dims=(1,)),
    ],
)
public(
    "linalg.diagonal",
    lambda a, offset=0, dim1=-2, dim2=-1: numpy.diagonal(a, offset, dim1, dim2),
    lambda: [call(normal(2, 3, 4)), call(normal(2, 3, 4), offset=1), call(normal(2, 3, 4), dim1=0, dim2=2)],
)
