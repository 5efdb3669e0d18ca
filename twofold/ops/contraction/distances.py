"""Distances between points: of all pairs of two sets, of all pairs of one set, of two tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy

from twofold.errors import ArgumentError, ShapeError
from twofold.ops.base import (
    apply,
    broadcast,
    broadcast_shapes,
    composite,
    convert,
    filled,
    ops,
    public,
    strong,
)
from twofold.ops.contraction.matrix_products import need_axes, transposed
from twofold.ops.examples import example
from twofold.ops.promotion import need_one_dtype
from twofold.ops.reduction.softmax import floating
from twofold.ops.shape.movement import sum_to


def _norm(apart: Any, p: float, no_zeros: bool = False) -> Any:
    """The ``p``-norm along the last axis; with ``no_zeros`` 1 where a root is 0, at which it has no derivative."""
    axes = (apart.ndim - 1,)

    def root(total: Any) -> Any:
        total = ops.where(ops.greater(total, 0), total, 1) if no_zeros else total
        return ops.sqrt(total) if p == 2 else ops.pow(total, 1 / p)

    def add_up(x: Any) -> Any:
        return apply("sum", x, attrs=(axes, False))

    size = ops.abs(apart)
    if p == 0:
        return add_up(convert(ops.not_equal(apart, 0), apart.dtype))
    if p == 1:
        return add_up(size)
    if p == 2:
        return root(add_up(apart * apart))
    if math.isinf(p):
        return apply("amax", size, attrs=(axes,))
    return root(add_up(ops.pow(size, p)))


def _slope(apart: Any, distance: Any, p: float) -> Any:
    """The gradient of the norm of ``apart`` with regard to it; 0 where there is none."""
    size, sign = ops.abs(apart), ops.sign(apart)
    if p == 1:
        return sign
    if math.isinf(p):
        return ops.where(ops.equal(size, distance), sign, 0)
    inside = ops.logical_and(ops.greater(size, 0), ops.greater(distance, 0))
    if p == 2:
        return ops.where(inside, apart / ops.where(inside, distance, 1), 0)
    share = ops.where(inside, size, 1) / ops.where(inside, distance, 1)
    return ops.where(inside, sign * ops.pow(share, p - 1), 0)


def _points(x1: Any, x2: Any) -> tuple[Any, Any]:
    """Both sets in a float type, checked."""
    a, b = floating(x1), floating(x2)
    for name, x in (("x1", a), ("x2", b)):
        if x.ndim < 2:
            raise ShapeError(f"{name} has {x.ndim} axes", "Use (..., points, features).")
    if a.shape[-1] != b.shape[-1]:
        raise ShapeError(
            f"x1 has {a.shape[-1]} columns, x2 {b.shape[-1]}", "Use points of one number of features."
        )
    return a, b


def _pairs(a: Any, b: Any) -> tuple[Any, Any]:
    """Both sets as ``[..., rows of the first, rows of the second, features]``."""
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    shape = (*batch, a.shape[-2], b.shape[-2], a.shape[-1])
    return broadcast(ops.unsqueeze(a, -2), shape), broadcast(ops.unsqueeze(b, -3), shape)


_IF_NECESSARY = "use_mm_for_euclid_dist_if_necessary"
_ALWAYS = "use_mm_for_euclid_dist"
_NEVER = "donot_use_mm_for_euclid_dist"
_MANY = 25
"""PyTorch's number of points above which ``use_mm_for_euclid_dist_if_necessary`` takes the product."""


def _by_product(a: Any, b: Any, p: float, mode: str) -> bool:
    if p != 2 or mode == _NEVER:
        return False
    return mode == _ALWAYS or a.shape[-2] > _MANY or b.shape[-2] > _MANY


def _squares(a: Any) -> Any:
    """The sums of the squares of rows, each a product of a row and itself, as in the product of all pairs.

    So the distance of two equal points is exactly 0.
    """
    return ops.matmul(ops.unsqueeze(a, -2), ops.unsqueeze(a, -1))


def _euclidean(a: Any, b: Any) -> Any:
    """The distances of all pairs by ``(a - b)**2 = a**2 + b**2 - 2 a b``."""
    lengths = ops.squeeze(_squares(a), -1) + transposed(ops.squeeze(_squares(b), -1))
    return ops.sqrt(ops.clamp_min(lengths - 2 * ops.matmul(a, transposed(b)), 0))


def _euclidean_slopes(ct: Any, distance: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """The gradients of ``_euclidean``; a pair at distance 0 has none."""
    apart = ops.greater(distance, 0)
    share = ops.where(apart, ct / ops.where(apart, distance, 1), 0)
    axis = share.ndim - 1
    of_first = ops.unsqueeze(apply("sum", share, attrs=((axis,), False)), -1)
    of_second = ops.unsqueeze(apply("sum", share, attrs=((axis - 1,), False)), -1)
    return a * of_first - ops.matmul(share, b), b * of_second - ops.matmul(transposed(share), a)


@composite
class cdist:
    """The ``p``-norms of the differences of all rows of ``x1`` and all rows of ``x2``.

    Args:
        x1: ``(..., points, features)``.
        x2: ``(..., points, features)``, of the same number of features.
        p: Not negative.
        compute_mode: How Euclidean distances (``p=2``) are computed. ``use_mm_for_euclid_dist`` goes through
            a matrix product, ``sqrt(max(|a|**2 + |b|**2 - 2 a b, 0))``, which is several times faster and loses
            digits where a distance is small beside the lengths of its points; ``donot_use_mm_for_euclid_dist`` takes
            the norm of each difference; ``use_mm_for_euclid_dist_if_necessary`` goes through the product where a
            set has more than 25 points.

    Returns:
        ``(..., points of x1, points of x2)``. The distance of two equal points is exactly 0 (in PyTorch not where
        it goes through a product), and so is its gradient.

    Raises:
        RuntimeError: For a negative ``p`` or unequal numbers of features.
        ValueError: For another ``compute_mode``.

    >>> import twofold as torch
    >>> torch.cdist(torch.zeros(1, 2), torch.tensor([[3.0, 4.0], [0.0, 1.0]]))
    tensor([[5., 1.]])
    """

    autocast = "float32"
    signature = "x1, x2"
    methods = ()

    def call(x1: Any, x2: Any, p: float = 2.0, compute_mode: str = _IF_NECESSARY) -> Any:
        if not p >= 0:
            raise ArgumentError(f"p is {p}", "Use a p that is not negative.")
        if compute_mode not in (_IF_NECESSARY, _ALWAYS, _NEVER):
            raise ArgumentError(f"{compute_mode} is not a valid value for compute_mode", "Leave it out.")
        return apply("cdist", x1, x2, attrs=(float(p), compute_mode))

    def compute(x1: Any, x2: Any, p: float, mode: str) -> Any:
        need_one_dtype(x1=x1.type, x2=x2.type)
        a, b = _points(x1, x2)
        if _by_product(a, b, p, mode):
            return convert(_euclidean(a, b), strong(x1).dtype)
        a, b = _pairs(a, b)
        if not a.shape[-1]:
            return filled(0, strong(x1).dtype, a.shape[:-1])
        return convert(_norm(a - b, p), strong(x1).dtype)

    def vjp(ct: Any, y: Any, x1: Any, x2: Any, p: float, mode: str) -> Any:
        a, b = _points(x1, x2)
        if _by_product(a, b, p, mode):
            first, second = _euclidean_slopes(convert(ct, a.dtype), convert(y, a.dtype), a, b)
            return [
                convert(sum_to(part, x.shape), strong(x).dtype) for part, x in ((first, x1), (second, x2))
            ]
        a, b = _pairs(a, b)
        if p == 0 or not a.shape[-1]:
            return None, None
        apart = a - b
        distance = ops.unsqueeze(_norm(apart, p, no_zeros=True), -1)
        share = ops.unsqueeze(convert(ct, apart.dtype), -1) * _slope(apart, distance, p)
        axis = share.ndim - 3
        first = apply("sum", share, attrs=((axis + 1,), False))
        second = apply("sum", share, attrs=((axis,), False))
        return [
            convert(sum_to(part, x.shape), strong(x).dtype)
            for part, x in ((first, x1), (ops.negative(second), x2))
        ]

    def reference(x1: Any, x2: Any, p: float, mode: str) -> Any:
        apart = abs(x1[..., :, None, :] - x2[..., None, :, :])
        if p == 0:
            return (apart != 0).sum(-1).astype(x1.dtype)
        if math.isinf(p):
            return apart.max(-1, initial=0)
        return (apart**p).sum(-1) ** (1 / p)

    samples = lambda: [
        *(example((p, _IF_NECESSARY), (3, 4), (2, 4)) for p in (0.0, 1.0, 2.0, 3.0, 1.5, math.inf)),
        example((2.0, _NEVER), (2, 1, 3, 4), (3, 2, 4)),
        example((2.0, _ALWAYS), (2, 1, 3, 4), (3, 2, 4)),
        example((2.0, _IF_NECESSARY), (26, 2), (3, 2)),
        example((2.0, _ALWAYS), (0, 4), (2, 4)),
        example((2.0, _IF_NECESSARY), (0, 4), (2, 4)),
        example((2.0, _ALWAYS), (2, 0), (3, 0)),
        example((2.0, _IF_NECESSARY), (2, 0), (3, 0)),
        example((2.0, _IF_NECESSARY), (5, 1), (17, 1)),
    ]


@public()
def pdist(input: Any, p: float = 2.0) -> Any:
    """The ``p``-norms of the differences of all pairs of different rows: the upper triangle of ``cdist``.

    Raises RuntimeError unless ``input`` is a matrix.

    >>> import twofold as torch
    >>> torch.nn.functional.pdist(torch.tensor([[0.0], [1.0], [3.0]]))
    tensor([1., 3., 2.])
    """
    need_axes("input", input, 2)
    count = input.shape[0]
    first, second = numpy.triu_indices(count, 1)
    return ops.take(ops.reshape(ops.cdist(input, input, p, _NEVER), (-1,)), first * count + second)


@public(methods=("dist",))
def dist(input: Any, other: Any, p: float = 2.0) -> Any:
    """The ``p``-norm of all elements of ``input - other``.

    >>> import twofold as torch
    >>> torch.dist(torch.tensor([1.0, 2.0]), torch.tensor([4.0, 6.0]))
    tensor(5.)
    """
    return ops.norm(ops.reshape(ops.subtract(input, other), (-1,)), p)
