"""Parametrisations of weights: by length and direction, by a largest singular value of 1, orthogonal ones."""

from __future__ import annotations

from twofold import _core
from twofold.dtypes import finfo
from twofold.frontend.creation import CREATION
from twofold.frontend.sampling import randn
from twofold.nn.module import Module
from twofold.nn.utils.parametrize import register_parametrization
from twofold.ops.base import FUNCTIONS

Tensor = _core.Tensor


class WeightNorm(Module):
    """``magnitude * direction / |direction|``; lengths are taken of the slices along ``dim``."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, magnitude: Tensor, direction: Tensor) -> Tensor:
        """The weight."""
        return FUNCTIONS["_weight_norm"](direction, magnitude, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Length and direction of a weight."""
        return FUNCTIONS["norm_except_dim"](weight, 2, self.dim), weight.clone()


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


def _is_orthogonal(q: Tensor) -> bool:
    eps = 10.0 * q.shape[-2] * float(finfo(q.dtype).eps)
    return bool(((q.mH @ q - _eye(q.narrow(-2, 0, q.shape[-1]))).abs() <= eps).all())


def _orthonormal(tall: Tensor) -> Tensor:
    """The orthonormal columns of a QR factorisation whose other factor has a diagonal of positive numbers."""
    factors, tau = FUNCTIONS["geqrf"](tall)
    q = FUNCTIONS["linalg.householder_product"](factors, tau)
    return q * factors.diagonal(0, -2, -1).sgn().unsqueeze(-2)


class Orthogonal(Module):
    """A matrix with orthonormal columns (or rows, where it is wide), times the square ``base`` that it starts from."""

    base: Tensor | None

    def __init__(self, weight: Tensor, how: str, trivialize: bool) -> None:
        super().__init__()
        if how == "householder" and weight.dtype.kind == "c":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.how, self.shape = how, weight.shape
        if trivialize:
            self.register_buffer("base", None)

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
            skew = lower - lower.mH
            if self.how == "matrix_exp":
                q = FUNCTIONS["linalg.matrix_exp"](skew)
            else:
                eye = _eye(skew)
                q = FUNCTIONS["linalg.solve"](eye - 0.5 * skew, eye + 0.5 * skew)
            q = q.narrow(-1, 0, k)
        base = getattr(self, "base", None)
        q = q if base is None else base @ q
        return q.mT if wide else q

    def right_inverse(self, value: Tensor) -> Tensor:
        """What gives ``value``, or where it is not orthogonal the factor of its QR factorisation.

        Raises NotImplementedError where that is not known: for ``matrix_exp`` and ``cayley`` without a ``base``.
        """
        if value.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got {value.shape}."
            )
        wide = value.shape[-2] < value.shape[-1]
        tall = value.detach().mT if wide else value.detach()
        n, k = tall.shape[-2:]
        if not hasattr(self, "base"):
            return self._reflections(tall, wide)
        if n != k:
            tall = FUNCTIONS["cat"]([tall, randn((*tall.shape[:-1], n - k), dtype=tall.dtype)], -1)
        self.base = tall.clone() if n == k and _is_orthogonal(tall) else _orthonormal(tall)
        return FUNCTIONS["zeros_like"](value.detach()) - _eye(value)  # of which each map makes the identity

    def _reflections(self, tall: Tensor, wide: bool) -> Tensor:
        if self.how != "householder":
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                "use_trivialization=False."
            )
        factors, tau = FUNCTIONS["geqrf"](tall)
        signs = factors.diagonal(0, -2, -1).sign()
        signs = FUNCTIONS["where"](tau == 0, -signs, signs)  # the reflection is none, which has another sign
        found = FUNCTIONS["diagonal_scatter"](factors, signs, 0, -2, -1)
        return found.mT if wide else found


def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Module:
    """Keep a matrix (or a batch of them) orthogonal: by ``matrix_exp``, ``cayley`` or ``householder``.

    The default is ``matrix_exp`` for a square or complex matrix and ``householder`` for another. With
    ``use_trivialization`` they start from the present weight, made orthogonal where it is not.
    Source: Lezcano-Casado, Trivializations for Gradient-Based Optimization on Manifolds, 2019.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    square = weight.shape[-2] == weight.shape[-1] or weight.dtype.kind == "c"
    how = orthogonal_map or ("matrix_exp" if square else "householder")
    if how not in ("matrix_exp", "cayley", "householder"):
        raise ValueError(f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {how}')
    return register_parametrization(module, name, Orthogonal(weight, how, use_trivialization), unsafe=True)
