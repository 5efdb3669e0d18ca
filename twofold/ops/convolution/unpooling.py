"""Pooling over randomly placed windows, and unpooling."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy

from twofold.dtypes import int64
from twofold.errors import ArgumentError, DTypeError, ShapeError
from twofold.ops.base import apply, composite, convert, filled, iota, ops, public, strong
from twofold.ops.convolution.pooling import (
    WINDOW,
    ValuesAndIndices,
    each,
    need_planes,
    planes,
    sliding,
    unfolded,
)
from twofold.ops.convolution.window_tables import chosen
from twofold.ops.docstrings import shown
from twofold.ops.examples import example
from twofold.ops.indexing.gather import NONNEGATIVE
from twofold.ops.promotion import autocast


def _random_starts(sample: Any, size: int, kernel: int, count: int) -> Any:
    """Where ``count`` windows begin, for each plane: ``int((o + u) * a) - int(u * a)``, the last at the end.

    Source: Graham, Fractional Max-Pooling, 2014, section 2, with ``a = (size - kernel) / (count - 1)``.
    """
    last = filled(size - kernel, int64, (sample.shape[0], 1))
    if count == 1:
        return last
    pace = (size - kernel) / (count - 1)
    number = ops.reshape(convert(iota((count - 1,)), sample.dtype), (1, count - 1))
    starts = convert((number + sample) * pace, int64) - convert(sample * pace, int64)
    return ops.concatenate([starts, last], 1)


@composite
class fractional_max_pool_indices:
    """Where in its plane the largest element of each window lies, for randomly placed windows.

    Inputs ``(x, samples)`` with a sample from [0, 1) for each plane and axis, attributes ``(kernel, wanted)``.
    """

    functions = ()
    kinds = "f"
    differentiable = False

    def compute(x: Any, samples: Any, kernel: tuple[int, ...], wanted: tuple[int, ...]) -> Any:
        x, count = ops.stop_gradient(strong(x)), len(wanted)
        flat = planes(x, count)
        samples = convert(ops.stop_gradient(samples), samples.dtype.compute)
        samples = ops.reshape(samples, (flat.shape[0], count))
        zeros = filled(0, int64, (flat.shape[0], 1))
        tables = [table for _ in range(3 - count) for table in (zeros, zeros + 1)]
        for k, (size, wide, windows) in enumerate(zip(x.shape[-count:], kernel, wanted, strict=True)):
            # of two axes the last takes the first sample
            own = ops.narrow(samples, 1, count - 1 - k if count == 2 else k, 1)
            starts = _random_starts(own, size, wide, windows)
            tables += [starts, starts + wide]
        return unfolded(apply("table_argmax", flat, *tables), x, count)

    samples = lambda: [
        example(((2, 3), (2, 3)), (2, 3, 5, 7), numpy.linspace(0, 0.9, 12).reshape(2, 3, 2)),
        example(((2, 2, 1), (2, 1, 3)), (2, 4, 3, 5), numpy.linspace(0, 0.9, 6).reshape(1, 2, 3)),
    ]


@composite
class elements_at:
    """The elements of the planes of ``x`` at ``positions``; attributes ``(count,)``, the number of their axes."""

    functions = ()
    compute = lambda x, positions, count: unfolded(
        chosen(planes(strong(x), count), planes(positions, count)), x, count
    )
    samples = lambda: [example((2,), (2, 3, 4), numpy.array([[[11, 0]], [[5, 5]]]))]


def fractional(
    input: Any,
    kernel_size: Any,
    output_size: Any,
    output_ratio: Any,
    return_indices: bool,
    samples: Any,
    count: int,
) -> Any:
    """Fractional max-pooling over the last ``count`` axes, with the random samples given.

    Raises ValueError unless exactly one of ``output_size`` and ``output_ratio`` is given, and ArgumentError for
    windows that do not fit.
    """
    sizes, kernel = need_planes(input, count), each(kernel_size, count, "kernel_size")
    if (output_size is None) == (output_ratio is None):
        raise ArgumentError("one of output_size and output_ratio is needed", "Give exactly one of them.")
    if output_ratio is not None:
        ratios = tuple(output_ratio) if isinstance(output_ratio, (tuple, list)) else (output_ratio,) * count
        output_size = tuple(int(size * ratio) for size, ratio in zip(sizes, ratios, strict=True))
    wanted = each(output_size, count, "output_size")
    for size, wide, windows in zip(sizes, kernel, wanted, strict=True):
        if wide < 1 or windows < 1 or windows + wide - 1 > size:
            raise ArgumentError(
                f"{windows} windows over {wide} positions do not fit size {size}",
                "Make output_size + kernel_size - 1 at most the size of the input.",
            )
    positions = apply("fractional_max_pool_indices", input, samples, attrs=(kernel, wanted))
    values = apply("elements_at", input, positions, attrs=(count,))
    return ValuesAndIndices(values, positions) if return_indices else values


def _unpooled_gradient(ct: Any, y: Any, x: Any, positions: Any, sizes: Any) -> Any:
    return apply("elements_at", ct, positions, attrs=(len(sizes),)), None


@composite
class max_unpool:
    """Zeros with the values laid to their positions in planes of ``sizes``; attributes ``(sizes,)``.

    Values that meet at one position must be equal, as those of ``max_pool`` are: each receives its gradient.
    """

    functions = ()

    def compute(x: Any, positions: Any, sizes: tuple[int, ...]) -> Any:
        x, count = strong(x), len(sizes)
        if positions.dtype is not int64:
            raise DTypeError(
                f"indices of {positions.dtype.name}", "Elements in indices should be type int64."
            )
        if positions.shape != x.shape:
            raise ShapeError(
                f"indices of shape {positions.shape} for values of shape {x.shape}", "Make them equal."
            )
        lead = x.shape[:-count]
        flat = (prod(lead), prod(x.shape[-count:]), 1)
        zeros = filled(0, x.dtype, (flat[0], prod(sizes), 1))
        blocks = zeros, ops.reshape(positions, flat), ops.reshape(x, flat)
        made = apply("scatter_set", *blocks, attrs=(NONNEGATIVE,))
        return ops.reshape(made, (*lead, *sizes))

    vjp = _unpooled_gradient
    samples = lambda: [
        example(((7,),), (2, 3), numpy.array([[0, 2, 6], [1, 3, 5]])),
        example(((4, 4),), (2, 1, 2), numpy.array([[[0, 15]], [[3, 2]]])),
    ]


def _unpooled_sizes(sizes: Any, kernel: Any, stride: Any, padding: Any, output_size: Any) -> tuple[int, ...]:
    """The sizes before pooling: those asked for, if they are less than a stride from the smallest."""
    count = len(sizes)
    kernel = each(kernel, count, "kernel_size")
    steps = (
        kernel
        if stride is None or (isinstance(stride, (tuple, list)) and not stride)
        else each(stride, count, "stride")
    )
    pads = each(padding, count, "padding")
    usual = tuple((n - 1) * s + k - 2 * p for n, s, k, p in zip(sizes, steps, kernel, pads, strict=True))
    if output_size is None:
        return usual
    given = tuple(int(size) for size in output_size)[-count:]
    for size, smallest, step in zip(given, usual, steps, strict=True):
        if not smallest - step < size < smallest + step:
            raise ArgumentError(
                f"output_size {given} for values that fill {usual}",
                f"Each size must be less than its stride {steps} away from that.",
            )
    return given


def _max_unpool(count: int) -> Any:
    def call(
        input: Any,
        indices: Any,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        output_size: Any = None,
    ) -> Any:
        sizes = _unpooled_sizes(need_planes(input, count), kernel_size, stride, padding, output_size)
        return apply("max_unpool", input, indices, attrs=(sizes,))

    sizes = ", ".join("1" * count)
    call.__doc__ = shown(
        f"Zeros with the values of ``max_pool{count}d`` laid back to the positions it returned.",
        f">>> x = torch.tensor([1.0, 3.0, 4.0, 2.0]).reshape(1, {sizes}, 4)",
        f">>> y, positions = torch.nn.functional.max_pool{count}d(x, {WINDOW[count]}, return_indices=True)",
        f">>> torch.nn.functional.max_unpool{count}d(y, positions, {WINDOW[count]}).flatten()",
        "tensor([0., 3., 4., 0.])",
    )
    call.__name__ = f"max_unpool{count}d"
    return call


for _count in (1, 2, 3):
    public(f"max_unpool{_count}d")(autocast("float32" if _count > 1 else "")(_max_unpool(_count)))


@composite
class max_pool_share:
    """The cotangent of pooled values brought to their positions; attributes ``(count,)``, the number of axes."""

    functions = ()

    def compute(ct: Any, x: Any, positions: Any, count: int) -> Any:
        lead, size = prod(x.shape[:-count]), prod(x.shape[-count:])
        flat = (lead, prod(positions.shape[-count:]), 1)
        made = apply(
            "scatter_sum", ops.reshape(positions, flat), ops.reshape(strong(ct), flat), attrs=(size,)
        )
        return ops.reshape(made, x.shape)

    samples = lambda: [example((2,), (2, 1, 2), (2, 3, 4), numpy.array([[[11, 0]], [[5, 5]]]))]


@public()
def max_pool2d_with_indices_backward(
    grad_output: Any,
    self: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    indices: Any,
) -> Any:
    """The gradient of ``max_pool2d`` with respect to ``self`` from that of its result and its indices.

    >>> import twofold as torch
    >>> x = torch.tensor([[[[1.0, 5.0], [3.0, 4.0]]]])
    >>> y, positions = torch.nn.functional.max_pool2d(x, 2, return_indices=True)
    >>> torch.max_pool2d_with_indices_backward(torch.ones(1, 1, 1, 1), x, 2, 2, 0, 1, False, positions)
    tensor([[[[0., 1.],
              [0., 0.]]]])
    """
    spans = sliding(need_planes(self, 2), kernel_size, stride, padding, dilation, ceil_mode)
    wanted = tuple(span.windows for span in spans)
    if tuple(indices.shape)[-2:] != wanted or tuple(grad_output.shape) != tuple(indices.shape):
        raise ShapeError(
            f"a gradient of shape {tuple(grad_output.shape)} and indices of shape {tuple(indices.shape)} "
            f"for windows {wanted}",
            "Give both the shape of the pooled values.",
        )
    return apply("max_pool_share", grad_output, self, indices, attrs=(2,))
