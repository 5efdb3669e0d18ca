"""Softmax and its relatives, similarity, normalisation to unit length."""

from __future__ import annotations

from typing import Any

import numpy

from twofold.dtypes import as_dtype, bfloat16
from twofold.errors import DTypeError, ShapeError
from twofold.ops.axes import given_once
from twofold.ops.base import (
    FUNCTIONS,
    apply,
    broadcast,
    broadcast_shapes,
    common_dtype,
    composite,
    convert,
    normalize_axis,
    ops,
    public,
    restore_axes,
    strong,
)
from twofold.ops.building_blocks import rounded_once
from twofold.ops.examples import example
from twofold.ops.shape.movement import slice_axis


def floating(x: Any) -> Any:
    """``x`` in the dtype that arithmetic on it runs in: half types in float32.

    Raises DTypeError for integers and bools.
    """
    x = strong(x)
    if x.dtype.kind != "f":
        raise DTypeError(f"takes floating dtypes, not {x.dtype.name}", "Cast with .to(float32) first.")
    return convert(x, x.dtype.compute)


def total(x: Any, *axes: int) -> Any:
    """The sum over ``axes``, which stay with size 1."""
    return restore_axes(apply("sum", x, attrs=(tuple(sorted(axes)), False)), tuple(axes), x.shape)


def shifted(x: Any, axis: int) -> tuple[Any, Any]:
    """``x`` minus its largest element along ``axis``, and the sum of its exponentials.

    The shift is a constant for gradients, as it cancels in everything computed from both.
    """
    if x.shape[axis] == 0:
        return x, total(x, axis)
    top = apply("amax", x, attrs=((axis,),))
    z = x - restore_axes(ops.stop_gradient(top), (axis,), x.shape)
    return z, total(ops.exp(z), axis)


def _unnamed_axis(ndim: int) -> int:
    """The axis of a softmax without ``dim``, as PyTorch keeps it for old programs: 0 for 0, 1 and 3 axes, else 1."""
    return 0 if ndim in (0, 1, 3) else 1


def _axis_call(name: str, default: int | None = None) -> Any:
    def call(input: Any, dim: Any = default, *, axis: Any = None, dtype: Any = None) -> Any:
        position = given_once(dim=None if dim == default else dim, axis=axis)
        if position is None:
            position = _unnamed_axis(len(input.shape)) if default is None else default
        value = input if dtype is None else ops.cast(input, as_dtype(dtype))
        return apply(name, value, attrs=(normalize_axis(position, len(input.shape)),))

    return call


def _softmax(x: Any, axis: int) -> Any:
    wide = floating(x)
    if not wide.ndim:
        return ops.reshape(_softmax(ops.reshape(x, (1,)), 0), ())
    z, s = shifted(wide, axis)
    return convert(ops.exp(z) / s, strong(x).dtype)


def _softmax_gradient(ct: Any, y: Any, x: Any, axis: int) -> Any:
    if not y.ndim:
        return (ct * 0,)
    wide, p = convert(ct, ct.dtype.compute), convert(y, y.dtype.compute)
    return (convert(p * (wide - total(wide * p, axis)), ct.dtype),)


def _exact_softmax(x: Any, axis: int) -> Any:
    e = numpy.exp(x - x.max(axis, keepdims=True, initial=-numpy.inf))
    return e / e.sum(axis, keepdims=True)


def _softmax_samples() -> Any:
    calls = (((3, 17), 1), ((3, 17), 0), ((2, 3, 4), 1), ((5,), 0), ((4, 1), 1), ((0, 3), 1))
    return [example((axis,), shape) for shape, axis in calls]


@composite
class softmax:
    """``exp(x) / sum(exp(x))`` along ``dim``, computed from ``x`` minus its maximum.

    Without ``dim``, along axis 0 for 0, 1 and 3 axes, else along axis 1.

    >>> import twofold as torch
    >>> torch.softmax(torch.tensor([[0.0, 1.0], [5.0, 5.0]]), dim=1)
    tensor([[0.2689, 0.7311],
            [0.5000, 0.5000]])
    """

    functions = ("softmax", "special.softmax")
    methods = ("softmax",)
    call = _axis_call("softmax")
    compute = _softmax
    vjp = _softmax_gradient
    reference = _exact_softmax
    samples = _softmax_samples


@composite
class log_softmax:
    """``x - log(sum(exp(x)))`` along ``dim``, computed from ``x`` minus its maximum.

    >>> import twofold as torch
    >>> torch.log_softmax(torch.tensor([0.0, 1.0]), dim=0)
    tensor([-1.3133, -0.3133])
    """

    functions = ("log_softmax", "special.log_softmax")
    methods = ("log_softmax",)
    call = _axis_call("log_softmax")

    def compute(x: Any, axis: int) -> Any:
        wide = floating(x)
        if not wide.ndim:
            return convert(wide * 0, strong(x).dtype)
        z, s = shifted(wide, axis)
        return convert(z - ops.log(s), strong(x).dtype)

    def vjp(ct: Any, y: Any, x: Any, axis: int) -> Any:
        if not y.ndim:
            return (ct * 0,)
        wide, log_p = convert(ct, ct.dtype.compute), convert(y, y.dtype.compute)
        return (convert(wide - ops.exp(log_p) * total(wide, axis), ct.dtype),)

    reference = lambda x, axis: numpy.log(_exact_softmax(x, axis))
    samples = _softmax_samples


@composite
class softmin:
    """``softmax(-x)`` along ``dim``.

    >>> import twofold as torch
    >>> torch.nn.functional.softmin(torch.tensor([0.0, 1.0]), dim=0)
    tensor([0.7311, 0.2689])
    """

    call = _axis_call("softmin")
    compute = lambda x, axis: _softmax(-x, axis)
    reference = lambda x, axis: _exact_softmax(-x, axis)
    samples = _softmax_samples


@composite
class glu:
    """The first half along ``dim`` times the sigmoid of the second half.

    >>> import twofold as torch
    >>> torch.nn.functional.glu(torch.tensor([3.0, 5.0, 0.0, 100.0]))
    tensor([1.5000, 5.0000])
    """

    call = _axis_call("glu", -1)

    @rounded_once
    def compute(x: Any, axis: int) -> Any:
        if not x.ndim or x.shape[axis] % 2:
            size = x.shape[axis] if x.ndim else "none"
            raise ShapeError(f"size {size} of axis {axis} has no two halves", "Use an even size.")
        half = x.shape[axis] // 2
        return slice_axis(x, axis, 0, half) * ops.sigmoid(slice_axis(x, axis, half, half))

    def reference(x: Any, axis: int) -> Any:
        a, b = numpy.split(x, 2, axis)
        return a / (1 + numpy.exp(-b))

    samples = lambda: [example((1,), (3, 34)), example((0,), (4, 3))]


@composite
class cosine_similarity:
    """The inner product along ``dim`` over the product of the lengths (each at least ``eps``).

    >>> import twofold as torch
    >>> torch.cosine_similarity(torch.tensor([[1.0, 0.0]]), torch.tensor([[3.0, 4.0]]))
    tensor([0.6000])
    """

    autograd_name = "SumBackward1"

    def call(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Any:
        return apply("cosine_similarity", x1, x2, eps, attrs=(dim,))

    def compute(a: Any, b: Any, eps: Any, axis: int) -> Any:
        shape = broadcast_shapes(a.shape, b.shape)
        axis = normalize_axis(axis, len(shape))
        result, _ = common_dtype([strong(a).type, strong(b).type])
        # whole numbers beside floats are floats
        a, b = (value if value.dtype.kind == "f" else convert(value, result) for value in (a, b))
        a, b = broadcast(floating(a), shape), broadcast(floating(b), shape)
        if not shape:
            a, b = ops.reshape(a, (1,)), ops.reshape(b, (1,))

        def add_up(value: Any) -> Any:
            return apply("sum", value, attrs=((axis,), False))

        # one square root of the product, as the smallest positive length is then still resolved
        lengths = [ops.maximum(add_up(value * value), eps * eps) for value in (a, b)]
        return convert(add_up(a * b) / ops.sqrt(lengths[0] * lengths[1]), result)

    def reference(a: Any, b: Any, eps: Any, axis: int) -> Any:
        lengths = [numpy.maximum(numpy.sqrt((x * x).sum(axis)), eps) for x in (a, b)]
        return (a * b).sum(axis) / (lengths[0] * lengths[1])

    samples = lambda: [
        example((1,), (3, 17), (3, 17), numpy.array(1e-8)),
        example((0,), (3, 2), (3, 1), numpy.array(1e-8)),
        example((-1,), (3, 5), (3, 5), numpy.array(1e-8), dtype=bfloat16, smooth=False),
    ]


@composite
class normalize:
    """The input over its ``p``-norm along ``dim`` (at least ``eps``): one axis, several, or all for None.

    >>> import twofold as torch
    >>> torch.nn.functional.normalize(torch.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """

    autograd_name = "DivBackward0"

    def call(input: Any, p: float = 2.0, dim: Any = 1, eps: float = 1e-12) -> Any:
        if dim is None or isinstance(dim, (tuple, list)):
            length = FUNCTIONS["linalg.vector_norm"](input, p, dim, True)
            return ops.divide(input, ops.maximum(length, eps))
        return apply("normalize", input, eps, attrs=(float(p), normalize_axis(dim, len(input.shape))))

    def compute(x: Any, eps: Any, p: float, axis: int) -> Any:
        length = ops.norm(x, p, axis, True)
        return x / ops.maximum(length, eps)

    reference = lambda x, eps, p, axis: x / numpy.maximum(numpy.linalg.norm(x, p, axis, keepdims=True), eps)
    samples = lambda: [
        example((2.0, 1), (3, 17), numpy.array(1e-12)),
        example((1.0, 0), (3, 2), numpy.array(1e-12)),
    ]


@public()
def pairwise_distance(x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Any:
    """The ``p``-norm of ``x1 - x2 + eps`` along the last axis.

    >>> import twofold as torch
    >>> torch.pairwise_distance(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]]))
    tensor([5.0000])
    """
    return ops.norm(ops.add(ops.subtract(x1, x2), eps), p, -1, keepdim)
