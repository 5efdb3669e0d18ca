"""Singular values, principal components and eigenvalues: few of those that large matrices have."""

from __future__ import annotations

from typing import Any

from twofold import _core
from twofold.errors import ArgumentError
from twofold.frontend.install import PUBLIC
from twofold.frontend.sampling import randn
from twofold.ops.linear_algebra.singular_values import SVDColumns

Tensor = _core.Tensor


def _basis(A: Tensor, q: int, niter: int) -> Tensor:
    """Orthonormal columns that nearly span the range of A."""
    qr, conjugated = PUBLIC["linalg.qr"], A.mH
    found = qr(A @ randn(A.shape[-1], q, dtype=A.dtype.real).to(A.dtype)).Q
    for _ in range(niter):
        found = qr(A @ qr(conjugated @ found).Q).Q
    return found


def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None) -> SVDColumns:
    """U, S and V with ``A - M`` near ``U diag(S) V^H``, ``q`` (at most 6 by default) columns each.

    ``niter`` power iterations sharpen the random subspace. Raises ArgumentError for a negative niter or a q
    that the matrix has not. Source: Halko, Martinsson and Tropp, Finding structure with randomness (2009),
    algorithms 4.4 and 5.1.

    >>> import twofold as torch
    >>> torch.svd_lowrank(torch.eye(4) * 2, 4).S.shape
    twofold.Size([4])
    """
    rows, columns = A.shape[-2:]
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    if not 0 <= q <= min(rows, columns):
        raise ArgumentError(
            f"svd_lowrank: q={q} for matrices of {rows} by {columns}", "Use at most the smaller size."
        )
    if niter < 0:
        raise ArgumentError(f"svd_lowrank: niter={niter}", "Use 0 or more.")
    A = A if M is None else A - M
    A = A.mH if rows < columns else A
    basis = _basis(A, q, niter)
    u, s, vh = PUBLIC["linalg.svd"](basis.mH @ A, full_matrices=False)
    u, v = basis @ u, vh.mH
    return SVDColumns(v, s, u) if rows < columns else SVDColumns(u, s, v)


def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> SVDColumns:
    """The first ``q`` principal components (V), their weights (S) and the scores (U) of the rows of A.

    With ``center`` the mean row is taken off first; q is by default 6 or the smaller size. As ``svd_lowrank``.

    >>> import twofold as torch
    >>> rows = torch.tensor([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]])
    >>> U, S, V = torch.pca_lowrank(rows, q=1)
    >>> torch.allclose(U * S @ V.T, rows - rows.mean(0), atol=1e-5)
    True
    """
    q = min(6, *A.shape[-2:]) if q is None else q
    return svd_lowrank(A - A.mean(-2, True) if center else A, q, niter)


def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Any = None,
    ortho_iparams: Any = None,
    ortho_fparams: Any = None,
    ortho_bparams: Any = None,
) -> tuple[Tensor, Tensor]:
    """The ``k`` largest (or smallest) eigenvalues of symmetric A, or of ``A x = e B x``, and their vectors as columns.

    All eigenvalues are computed, to the last digits: there is no iteration that ``iK``, ``niter``, ``tol``, ``method``
    and the parameters of its orthogonalisation would steer, so they have no effect, and of ``X`` only the number of
    columns counts, where k is not given. Raises ArgumentError for more eigenvalues than there are, an unknown method
    and a ``tracker``, which would never be called. B, positive definite, is taken apart by Cholesky's factorisation.

    >>> import twofold as torch
    >>> values, vectors = torch.lobpcg(torch.diag(torch.tensor([1.0, 3.0, 2.0])), k=2)
    >>> values
    tensor([3., 2.])
    """
    if tracker is not None:
        raise ArgumentError("lobpcg: a tracker of iterations that do not happen", "Leave it out.")
    if method not in (None, "basic", "ortho"):
        raise ArgumentError(f"lobpcg: method {method!r}", "Use 'basic' or 'ortho'.")
    size = A.shape[-1]
    count = k if k is not None else n if n is not None else 1 if X is None else X.shape[-1]
    if not 0 <= count <= size:
        raise ArgumentError(
            f"lobpcg: {count} eigenvalues of matrices of size {size}", "Ask for at most the size."
        )
    solve = PUBLIC["linalg.solve_triangular"]
    factor = None if B is None else PUBLIC["linalg.cholesky"](B)
    if factor is not None:
        A = solve(factor, solve(factor, A, upper=False).mH, upper=False)
    values, vectors = PUBLIC["linalg.eigh"](A)
    if factor is not None:
        vectors = solve(factor.mH, vectors, upper=True)
    if largest is None or largest:
        values, vectors = values.flip(-1), vectors.flip(-1)
    return values[..., :count], vectors[..., :count]
