"""What all distributions use: parameters of one shape, samples of base noise, probabilities and their logarithms."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from math import isqrt
from typing import Any

from twofold import _core
from twofold.dtypes import DType, Size, finfo
from twofold.errors import ArgumentError
from twofold.frontend.creation import tensor
from twofold.frontend.options import get_default_dtype
from twofold.frontend.sampling import RANDOM_FUNCTIONS, stream
from twofold.ops.base import FUNCTIONS, broadcast_shapes, ops
from twofold.ops.random import distributions, sampling

Tensor = _core.Tensor

EULER = euler_constant = 0.57721566490153286060


def broadcast_all(*values: Any) -> tuple[Any, ...]:
    """Tensors and numbers as tensors of one shape; numbers take the dtype of the first tensor, else the default one.

    Raises TypeError for anything else.
    """
    for value in values:
        if not isinstance(value, (Tensor, int, float)):
            raise TypeError(f"a parameter of type {type(value).__name__}. Give a number or a tensor.")
    found = [value for value in values if isinstance(value, Tensor)]
    dtype = next((value.dtype for value in found if value.dtype.kind == "f"), get_default_dtype())
    tensors = [value if isinstance(value, Tensor) else tensor(value, dtype=dtype) for value in values]
    shape = broadcast_shapes(*[tuple(value.shape) for value in tensors])
    return tuple(value if tuple(value.shape) == shape else value.expand(shape) for value in tensors)


def as_size(shape: Any) -> Size:
    """Sizes as a shape; one number is a shape of one axis."""
    return Size((shape,)) if isinstance(shape, int) else Size(shape)


def sample_noise(name: str, shape: Any, like: Tensor, *parameters: Any) -> Tensor:
    """Numbers of a distribution of ``ops.random`` or ``random_families`` in the dtype of ``like``."""
    found = {"uniform": sampling.sample_uniform, "normal": sampling.sample_normal}.get(name)
    if found is not None:
        return found(*stream(None), tuple(shape), like.dtype, *parameters)
    return distributions.sample(name, *stream(None), tuple(shape), like.dtype, *parameters)


def exponential(shape: Any, like: Tensor) -> Tensor:
    """Exponential numbers of rate 1, none of them 0."""
    return sample_noise("exponential", shape, like, 1.0)


def without_gradients(function: Callable[..., Any], *arguments: Any) -> Any:
    """What ``function`` returns, computed without recording gradients."""
    with _core.GradientMode(False):
        return function(*arguments)


def sum_rightmost(value: Tensor, count: int) -> Tensor:
    """``value`` summed over its last ``count`` axes."""
    return value.sum(tuple(range(-count, 0))) if count else value


_sum_rightmost = sum_rightmost


def _standard_normal(shape: Any, dtype: DType, device: Any) -> Tensor:
    """Samples of the standard normal distribution."""
    return RANDOM_FUNCTIONS["randn"](tuple(shape), dtype=dtype, device=device)


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Lower triangular matrices from their elements along the last axis, row by row.

    >>> import twofold as torch
    >>> torch.distributions.utils.vec_to_tril_matrix(torch.tensor([1.0, 2.0, 3.0]))
    tensor([[1., 0.],
            [2., 3.]])
    """
    count = vec.shape[-1]
    size = (isqrt((1 + 2 * diag) ** 2 + 8 * count + 4 * abs(diag) * (diag + 1)) - 1 - 2 * diag) // 2
    rows, columns = FUNCTIONS["tril_indices"](size, size, diag)
    if len(rows) != count:
        raise ValueError(
            f"The size of last dimension is {count} which cannot be expressed as the lower triangular "
            f"part of a square D x D matrix."
        )
    matrix = FUNCTIONS["zeros"]((*vec.shape[:-1], size, size), dtype=vec.dtype)
    matrix[..., rows, columns] = vec
    return matrix


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The elements of lower triangular matrices along one axis, row by row.

    >>> import twofold as torch
    >>> torch.distributions.utils.tril_matrix_to_vec(torch.tensor([[1.0, 0.0], [2.0, 3.0]]))
    tensor([1., 2., 3.])
    """
    size = mat.shape[-1]
    if not -size <= diag < size:
        raise ValueError(f"diag ({diag}) provided is outside [{-size}, {size - 1}].")
    rows, columns = FUNCTIONS["tril_indices"](size, size, diag)
    return mat[..., rows, columns]


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities away from 0 and 1 by the relative distance of neighbouring numbers."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(eps, 1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """log(p), or for ``is_binary`` log(p / (1 - p)), kept finite."""
    held = clamp_probs(probs)
    return held.log() - (-held).log1p() if is_binary else held.log()


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities of classes along the last axis, or for ``is_binary`` of each element."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def one_of(name: str, probs: Any, logits: Any) -> None:
    """Raise ArgumentError unless exactly one of probs and logits is given."""
    if (probs is None) == (logits is None):
        raise ArgumentError(
            f"{name}: {'neither' if probs is None else 'both'} of probs and logits", "Give one of the two."
        )


class lazy_property(cached_property):
    """A property that is computed when first asked for, with gradients even where that is under ``no_grad``."""

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        with _core.GradientMode(True):
            return super().__get__(instance, owner)


class Chances:
    """``probs`` and ``logits``, of which one is given and the other computed when asked for."""

    _binary = True

    @lazy_property
    def probs(self) -> Tensor:
        """Probabilities."""
        return logits_to_probs(self.logits, self._binary)

    @lazy_property
    def logits(self) -> Tensor:
        """Logarithms of the odds; for classes, normalised logarithms of the probabilities."""
        return probs_to_logits(self.probs, self._binary)

    @property
    def _parameter(self) -> Tensor:
        return self.__dict__["probs"] if "probs" in self.__dict__ else self.__dict__["logits"]


def where(condition: Any, value: Any, other: Any) -> Tensor:
    """``value`` where ``condition`` holds, else ``other``."""
    return ops.where(condition, value, other)
