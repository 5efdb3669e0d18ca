"""Random expressions, noise and dropout."""

from __future__ import annotations

from typing import Any

from twofold.dynet.elementwise import check_device
from twofold.dynet.expression import Expression, batched, of_rank
from twofold.dynet.graph import operation, state
from twofold.frontend.creation import CREATION
from twofold.frontend.sampling import RANDOM_FUNCTIONS

_rand, _randn = RANDOM_FUNCTIONS["rand"], RANDOM_FUNCTIONS["randn"]


def shape_of(dim: Any, batch: int) -> list[int]:
    """The shape that dimensions, or one number, and a batch are stored with."""
    dims = list(dim) if isinstance(dim, (tuple, list)) else [int(dim)]
    return [batch, *dims[::-1]] if batch != 1 else dims[::-1]


def bernoulli(shape: Any, p: float, scale: float) -> Any:
    """A tensor of ``scale`` with probability ``p`` and of 0 else."""
    return (_rand(*shape) < p) * float(scale)


def tracked(tensor: Any) -> Any:
    """A tensor that depends on no other one, as one that gradients are known for until the next ``backward``."""
    tensor.requires_grad = True
    state.inputs[id(tensor)] = tensor
    return tensor


@operation
def zeros(dim: Any, batch_size: int = 1) -> Expression:
    """An expression of zeros."""
    return Expression(tracked(CREATION["zeros"](shape_of(dim, batch_size))), batch_size)


zeroes = zeros


@operation
def ones(dim: Any, batch_size: int = 1) -> Expression:
    """An expression of ones."""
    return Expression(tracked(CREATION["ones"](shape_of(dim, batch_size))), batch_size)


@operation
def constant(dim: Any, val: float, batch_size: int = 1) -> Expression:
    """An expression of which all elements are ``val``."""
    return Expression(tracked(CREATION["full"](shape_of(dim, batch_size), float(val))), batch_size)


@operation
def random_normal(dim: Any, mean: float = 0.0, stddev: float = 1.0, batch_size: int = 1) -> Expression:
    """Normally distributed elements."""
    return Expression(tracked(_randn(*shape_of(dim, batch_size)) * stddev + mean), batch_size)


@operation
def random_bernoulli(dim: Any, p: float, scale: float = 1.0, batch_size: int = 1) -> Expression:
    """Elements that are ``scale`` with probability ``p`` and 0 else."""
    return Expression(tracked(bernoulli(shape_of(dim, batch_size), p, scale)), batch_size)


@operation
def random_uniform(dim: Any, left: float, right: float, batch_size: int = 1) -> Expression:
    """Elements evenly distributed from ``left`` to ``right``."""
    return Expression(tracked(_rand(*shape_of(dim, batch_size)) * (right - left) + left), batch_size)


@operation
def random_gumbel(dim: Any, mu: float = 0.0, beta: float = 1.0, batch_size: int = 1) -> Expression:
    """Elements of a Gumbel distribution: ``mu - beta * log(-log(u))`` of uniform ``u``."""
    uniform = _rand(*shape_of(dim, batch_size)).clamp(1e-7, 1 - 1e-7)
    return Expression(tracked(mu - (-uniform.log()).log() * beta), batch_size)


@operation
def noise(x: Expression, stddev: float) -> Expression:
    """``x`` with normally distributed noise added."""
    return Expression(x._tensor + _randn(*x._tensor.shape) * stddev, x._batch)


def _check(p: float) -> None:
    if not 0 <= p <= 1:
        raise ValueError(f"a probability of dropout lies between 0 and 1; this is {p}")


def _masked(x: Expression, tensor: Any, shape: Any, p: float) -> Expression:
    _check(p)
    if p == 0:
        return x
    scale = 1 / (1 - p) if p < 1 else 0.0
    return Expression(tensor * bernoulli(shape, 1 - p, scale), x._batch)


@operation
def dropout(x: Expression, p: float) -> Expression:
    """``x`` with elements set to 0 with probability ``p``, the others divided by ``1 - p``."""
    return _masked(x, x._tensor, x._tensor.shape, p)


@operation
def dropout_dim(x: Expression, d: int, p: float) -> Expression:
    """``dropout`` with one decision for all elements along dimension ``d``."""
    tensor = of_rank(x, d + 1)
    shape = list(tensor.shape)
    shape[-1 - d] = 1
    return _masked(x, tensor, shape, p)


@operation
def dropout_batch(x: Expression, p: float) -> Expression:
    """``dropout`` with one decision for each element of the batch."""
    rank = x._tensor.ndim - (x._batch != 1)
    return _masked(x, x._tensor, ([x._batch] if x._batch != 1 else []) + [1] * rank, p)


@operation
def block_dropout(x: Expression, p: float) -> Expression:
    """``dropout`` with one decision for all."""
    return _masked(x, x._tensor, [1] * x._tensor.ndim, p)


@operation
def one_hot(d: int, idx: Any, device: str = "") -> Expression:
    """A vector of ``d`` elements that is 1 at ``idx`` and 0 elsewhere; a list of indices gives a batch."""
    check_device(device)
    rows = CREATION["eye"](d)
    if isinstance(idx, (list, tuple)):
        return batched(rows[list(idx)])
    return Expression(rows.index_select(0, int(idx)))
