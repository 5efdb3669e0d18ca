"""Normalisation by neighbours, and slices brought to a largest norm."""

from __future__ import annotations

from typing import Any

import numpy

from twofold.dtypes import complex64, float32
from twofold.errors import ArgumentError, ShapeError
from twofold.ops.base import apply, composite, convert, normalize_axis, ops, strong
from twofold.ops.convolution.resampling import along, window_line
from twofold.ops.examples import example
from twofold.ops.reduction.softmax import floating


@composite
class local_response_norm:
    """``x / (k + alpha * mean of squares in size neighbouring channels) ** beta``; channels are axis 1.

    Source: Krizhevsky, Sutskever, Hinton, ImageNet Classification, 2012, section 3.3.

    >>> import twofold as torch
    >>> torch.nn.functional.local_response_norm(torch.ones(1, 3, 1), 3, alpha=3.0, beta=1.0).flatten()
    tensor([0.3333, 0.2500, 0.3333])
    """

    def call(input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Any:
        if len(input.shape) < 3:
            raise ShapeError(
                f"an input with {len(input.shape)} axes",
                "Expected 3D or higher: (batch, channels, ...).",
            )
        if not isinstance(size, int) or size < 1:
            raise ArgumentError(f"size={size!r}", "Use a positive number of channels.")
        return apply("local_response_norm", input, alpha, beta, k, attrs=(size,))

    def compute(x: Any, alpha: Any, beta: Any, k: Any, size: int) -> Any:
        wide = floating(x if x.dtype.kind == "f" else convert(x, float32))
        channels = x.shape[1]
        total = along(wide * wide, 1, window_line(channels, channels, size, 1, size // 2))
        result = wide / ops.pow(total * (alpha / size) + k, beta)
        return result if x.dtype.kind != "f" and x.type.size else convert(result, strong(x).dtype)

    def reference(x: Any, alpha: Any, beta: Any, k: Any, size: int) -> Any:
        low = size // 2
        square = x * x
        total = [square[:, max(c - low, 0) : c - low + size].sum(1) for c in range(x.shape[1])]
        return x / (numpy.stack(total, 1) * alpha / size + k) ** beta

    samples = lambda: (
        [
            example((size,), (2, 5, 3), numpy.array(0.5), numpy.array(0.75), numpy.array(1.0))
            for size in (1, 2, 3, 9)
        ]
        + [example((2,), numpy.arange(12).reshape(2, 3, 2), *map(numpy.array, (0.5, 0.75, 1.0)))]
    )


@composite
class renorm:
    """The slices along ``dim`` whose ``p``-norm is larger than ``maxnorm`` scaled down to it.

    >>> import twofold as torch
    >>> torch.renorm(torch.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """

    methods = ("renorm",)
    inplace = True

    def call(input: Any, p: float, dim: int, maxnorm: float) -> Any:
        ndim = len(input.shape)
        if ndim < 2:
            raise ShapeError(f"an input with {ndim} axes", "renorm needs at least 2 dimensions.")
        if not p > 0 or maxnorm < 0:
            raise ArgumentError(f"p={p}, maxnorm={maxnorm}", "Use a positive p and a maxnorm of at least 0.")
        return apply("renorm", input, maxnorm, attrs=(float(p), normalize_axis(dim, ndim)))

    def compute(x: Any, largest: Any, p: float, axis: int) -> Any:
        wide = x if x.dtype.kind == "c" else floating(x)
        length = ops.norm(wide, p, tuple(k for k in range(x.ndim) if k != axis), True)
        factor = ops.where(ops.greater(length, largest), largest / (length + 1e-7), 1.0)
        return convert(wide * factor, strong(x).dtype)

    def reference(x: Any, largest: Any, p: float, axis: int) -> Any:
        flat = numpy.moveaxis(x, axis, 0).reshape(x.shape[axis], -1)
        length = numpy.linalg.norm(flat, p, axis=1)
        factor = numpy.where(length > largest, largest / (length + 1e-7), 1)
        return x * factor.reshape([-1 if k == axis else 1 for k in range(x.ndim)])

    samples = lambda: [
        example((2.0, 0), (3, 4), numpy.array(1.5)),
        example((1.0, 1), (2, 3, 4), numpy.array(4.0)),
        example((3.0, 2), (2, 3, 4), numpy.array(0.5)),
        example((2.0, 0), (3, 4), numpy.array(1.5), dtype=complex64),
    ]
