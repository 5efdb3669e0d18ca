"""Parametrisations of weights: by length and direction, by a largest singular value of 1, orthogonal ones."""

from __future__ import annotations

from twofold import _core
from twofold.frontend.creation import CREATION
from twofold.frontend.sampling import randn
from twofold.nn.module import Module
from twofold.nn.utils.parametrize import register_parametrization
from twofold.ops.base import FUNCTIONS, normalize_axis

Tensor = _core.Tensor


def norm_except_dim(v: Tensor, dim: int | None) -> Tensor:
    """The length of every slice along ``dim`` (None: of everything), with the axes of ``v``."""
    if dim is None or dim == -1:
        return FUNCTIONS["norm"](v)
    kept = normalize_axis(dim, v.ndim)
    axes = tuple(axis for axis in range(v.ndim) if axis != kept)
    return FUNCTIONS["norm"](v, 2, axes, True)


class WeightNorm(Module):
    """``magnitude * direction / |direction|``; lengths are taken of the slices along ``dim``."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, magnitude: Tensor, direction: Tensor) -> Tensor:
        """The weight."""
        return direction * (magnitude / norm_except_dim(direction, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Length and direction of a weight."""
        return norm_except_dim(weight, self.dim), weight.clone()


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Learn the length and the direction of a weight apart: ``parametrizations.<name>.original0`` and ``1``.

    Source: Salimans, Kingma, Weight Normalization, 2016.

    >>> import twofold as torch
    >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(3, 2))
    >>> [name for name, _ in layer.named_parameters()]
    ['bias', 'parametrizations.weight.original0', 'parametrizations.weight.original1']
    """
    return register_parametrization(module, name, WeightNorm(dim), unsafe=True)


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """``weight`` with one row per position along ``dim``."""
    first = weight.movedim(dim, 0) if dim else weight
    return first.reshape((first.shape[0], -1))


def power_iteration(matrix: Tensor, u: Tensor, v: Tensor, iterations: int, eps: float) -> None:
    """Bring ``u`` and ``v`` closer to the singular vectors of the largest singular value, in place."""
    with _core.GradientMode(False):
        for _ in range(iterations):
            u.copy_(FUNCTIONS["normalize"](matrix.detach() @ v, 2.0, 0, eps))
            v.copy_(FUNCTIONS["normalize"](matrix.detach().mT @ u, 2.0, 0, eps))


class SpectralNorm(Module):
    """A weight over its largest singular value, which a power iteration follows in training."""

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        if n_power_iterations <= 0:
            raise ValueError(f"Expected n_power_iterations to be positive, but got {n_power_iterations}")
        if weight.ndim and not -weight.ndim <= dim < weight.ndim:
            raise IndexError(f"dim {dim} is outside a weight with {weight.ndim} axes")
        self.dim = dim % max(weight.ndim, 1)
        self.eps = eps
        self.n_power_iterations = n_power_iterations
        if weight.ndim > 1:
            matrix = as_matrix(weight.detach(), self.dim)
            u, v = (
                FUNCTIONS["normalize"](randn(size, dtype=weight.dtype), 2.0, 0, eps) for size in matrix.shape
            )
            self.register_buffer("_u", u)
            self.register_buffer("_v", v)
            power_iteration(matrix, u, v, 15, eps)

    def forward(self, weight: Tensor) -> Tensor:
        """The weight divided; a vector by its length."""
        if weight.ndim == 1:
            return FUNCTIONS["normalize"](weight, 2.0, 0, self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            power_iteration(matrix, self._u, self._v, self.n_power_iterations, self.eps)
        # copies, as the iteration changes both in place before a gradient may read them
        u, v = self._u.clone(), self._v.clone()
        return weight / (u * (matrix @ v)).sum()

    def right_inverse(self, value: Tensor) -> Tensor:
        """The weight itself."""
        return value


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divide a weight by its largest singular value; ``dim`` is the axis of the outputs.

    Source: Miyato, Kataoka, Koyama, Yoshida, Spectral Normalization for Generative Adversarial Networks, 2018.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    made = SpectralNorm(weight, n_power_iterations, output_axis(module, dim), eps)
    return register_parametrization(module, name, made)


def output_axis(module: Module, dim: int | None) -> int:
    """The axis of a weight that counts outputs."""
    return dim if dim is not None else int(bool(getattr(module, "transposed", False)))


def _eye(like: Tensor) -> Tensor:
    return CREATION["eye"](like.shape[-2], like.shape[-1], dtype=like.dtype)


class Orthogonal(Module):
    """A matrix with orthonormal columns (or rows, where it is wide), times the ``base`` it started from."""

    base: Tensor | None

    def __init__(self, weight: Tensor, how: str, trivialize: bool) -> None:
        super().__init__()
        self.how = how
        if trivialize:
            self.register_buffer("base", self._nearest(weight.detach()))
        else:
            self.register_buffer("base", None)

    @staticmethod
    def _nearest(weight: Tensor) -> Tensor:
        """An orthogonal square matrix (or a tall one of orthonormal columns) with the span of ``weight``."""
        tall = weight if weight.shape[-2] >= weight.shape[-1] else weight.mT
        q, r = FUNCTIONS["linalg.qr"](tall)
        return q * r.diagonal(0, -2, -1).sign().unsqueeze(-2)

    def forward(self, x: Tensor) -> Tensor:
        """The orthogonal matrix of any matrix ``x``."""
        wide = x.shape[-2] < x.shape[-1]
        tall = x.mT if wide else x
        n, k = tall.shape[-2:]
        if self.how == "householder":
            lower = tall.tril(-1)
            tau = 2.0 / (1.0 + (lower * lower).sum(-2))
            signs = tall.diagonal(0, -2, -1).detach().sign()
            q = FUNCTIONS["linalg.householder_product"](lower, tau) * (signs + (signs == 0)).unsqueeze(-2)
        else:
            lower = tall.tril()
            if n != k:
                rest = CREATION["zeros"]((*tall.shape[:-2], n, n - k), dtype=x.dtype)
                lower = FUNCTIONS["cat"]([lower, rest], -1)
            skew = lower - lower.mT
            if self.how == "matrix_exp":
                q = FUNCTIONS["linalg.matrix_exp"](skew)
            else:
                eye = _eye(skew)
                q = FUNCTIONS["linalg.solve"](eye - 0.5 * skew, eye + 0.5 * skew)
            q = q.narrow(-1, 0, k)
        q = q if self.base is None else self.base @ q
        return q.mT if wide else q

    def right_inverse(self, value: Tensor) -> Tensor:
        """What gives the orthogonal matrix nearest to ``value``, where there is a ``base`` to hold it."""
        if self.base is None:
            return value
        self.base = self._nearest(value.detach())
        return value.detach() * 0


def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Module:
    """Keep a matrix (or a batch of them) orthogonal: by ``matrix_exp``, ``cayley`` or ``householder``.

    The default is ``matrix_exp`` for a square matrix and ``householder`` for another; with
    ``use_trivialization`` square maps start from an orthogonal matrix near the present weight.
    Source: Lezcano-Casado, Trivializations for Gradient-Based Optimization on Manifolds, 2019.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    square = weight.shape[-2] == weight.shape[-1]
    how = orthogonal_map or ("matrix_exp" if square else "householder")
    if how not in ("matrix_exp", "cayley", "householder"):
        raise ValueError(f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {how}')
    return register_parametrization(
        module, name, Orthogonal(weight, how, use_trivialization and square and how != "householder")
    )
