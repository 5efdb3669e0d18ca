"""Pooling over the last one, two or three axes, with and without a batch axis."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy

from twofold.dtypes import int64
from twofold.errors import ArgumentError, ShapeError
from twofold.ir.bind import constant
from twofold.ir.types import Shape
from twofold.ops.autograd_names import of_pooling
from twofold.ops.base import apply, composite, convert, ops, public, strong
from twofold.ops.convolution.resampling import along, share_line
from twofold.ops.convolution.window_loops import Span, Spans
from twofold.ops.convolution.window_tables import chosen
from twofold.ops.convolution.windows import INSIDE, PADDED
from twofold.ops.docstrings import shown
from twofold.ops.examples import example
from twofold.ops.promotion import autocast


class ValuesAndIndices(NamedTuple):
    """What a pooling with ``return_indices`` gives: the largest elements, and where in its plane each lies."""

    output: Any
    indices: Any


# Arguments


def each(value: Any, count: int, name: str) -> tuple[int, ...]:
    """An argument given once, or once for each of ``count`` axes."""
    given = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if len(given) == 1:
        given *= count
    if len(given) != count or not all(isinstance(number, (int, numpy.integer)) for number in given):
        raise ArgumentError(f"{name}={value!r}", f"Give an integer, or {count} of them.")
    return tuple(int(number) for number in given)


def need_planes(input: Any, count: int) -> Shape:
    """The last ``count`` sizes of an input ``(channels, ...)`` or ``(batch, channels, ...)``."""
    shape = tuple(input.shape)
    axes = ", ".join(("depth", "height", "width")[3 - count :]) if count > 1 else "length"
    if len(shape) not in (count + 1, count + 2):
        raise ShapeError(
            f"an input with {len(shape)} axes", f"Use (batch, channels, {axes}) or (channels, {axes})."
        )
    if 0 in shape[len(shape) - count - 1 :]:
        raise ShapeError(
            f"an input of shape {shape} has no elements in a sample", "Only the batch may be empty."
        )
    return shape[len(shape) - count :]


def pooled_size(size: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> int:
    """How many windows fit; with ``ceil_mode`` the last may reach over the end, but begins inside.

    >>> pooled_size(7, 2, 2, 0, 1, False), pooled_size(7, 2, 2, 0, 1, True)
    (3, 4)
    """
    rest = size + 2 * padding - dilation * (kernel - 1) - 1
    count = (rest + (stride - 1 if ceil_mode else 0)) // stride + 1
    if ceil_mode and (count - 1) * stride >= size + padding:
        count -= 1
    return count


def sliding(
    sizes: Shape, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> tuple[Span, ...]:
    """The windows of each axis from PyTorch's arguments, checked."""
    count = len(sizes)
    kernels = each(kernel_size, count, "kernel_size")
    steps = (
        kernels
        if stride is None or (isinstance(stride, (tuple, list)) and not stride)
        else each(stride, count, "stride")
    )
    pads, apart = each(padding, count, "padding"), each(dilation, count, "dilation")
    if min(kernels) < 1 or min(steps) < 1 or min(apart) < 1:
        raise ArgumentError(
            f"kernel_size {kernels}, stride {steps}, dilation {apart}", "Each must be at least 1."
        )
    spans = []
    for size, kernel, step, pad, gap in zip(sizes, kernels, steps, pads, apart, strict=True):
        reach = gap * (kernel - 1) + 1
        if not 0 <= pad <= reach // 2:
            raise ArgumentError(
                f"padding {pad} for windows over {reach} positions",
                f"pad must be non-negative and should be at most half of effective kernel size: {reach // 2}.",
            )
        windows = pooled_size(size, kernel, step, pad, gap, ceil_mode)
        if windows < 1:
            raise ShapeError(
                f"windows over {reach} positions do not fit size {size} with padding {pad}, "
                "the output size is too small",
                f"Use a kernel_size of at most {max(1, (size + 2 * pad - 1) // gap + 1)}, or more padding.",
            )
        spans.append(Span(windows, kernel, step, gap, pad))
    return tuple(spans)


def three(spans: Sequence[Span]) -> Spans:
    """The windows of three axes, of which the first may be trivial."""
    return (*(Span(1),) * (3 - len(spans)), *spans)  # type: ignore[return-value]


def planes(x: Any, count: int) -> Any:
    """``x`` as ``[planes, depth, height, width]``, of whose last axes ``count`` are those pooled over."""
    shape = x.shape
    return ops.reshape(x, (prod(shape[:-count]), *(1,) * (3 - count), *shape[-count:]))


def unfolded(made: Any, x: Any, count: int) -> Any:
    """What became of ``planes(x, count)`` with the leading axes of ``x``."""
    return ops.reshape(made, (*x.shape[:-count], *made.shape[4 - count :]))


# Sliding windows


def _window_samples(*tail: Any) -> Any:
    row, square = (Span(4, 3, 2, 1, 1),), (Span(2, 2, 2), Span(3, 3, 2, 1, 1))
    cube = (Span(1, 2), Span(2, 2), Span(2, 2, 2))
    return [
        example((row, *tail), (2, 3, 7)),
        example((square, *tail), (3, 4, 5)),
        example((cube, *tail), (2, 2, 3, 4)),
    ]


@composite
class max_pool:
    """The largest element of each window; attributes ``(spans,)``, one span for each of the last axes."""

    autograd_name = of_pooling("MaxPool", "WithIndices")
    functions = ()
    kinds = "iuf"

    def compute(x: Any, spans: tuple[Span, ...]) -> Any:
        x = strong(x)
        made = apply("window_max", planes(x, len(spans)), attrs=(three(spans),))
        return unfolded(made, x, len(spans))

    samples = _window_samples


@composite
class max_pool_indices:
    """Where in its plane the largest element of each window lies; attributes as for ``max_pool``."""

    functions = ()
    kinds = "iuf"
    differentiable = False

    def compute(x: Any, spans: tuple[Span, ...]) -> Any:
        x = strong(x)
        made = apply("window_argmax", planes(ops.stop_gradient(x), len(spans)), attrs=(three(spans),))
        return unfolded(made, x, len(spans))

    samples = _window_samples


@composite
class avg_pool:
    """The sum over each window, divided; attributes ``(spans, divisor)``, see ``window_sum``."""

    autograd_name = of_pooling("AvgPool")
    functions = ()
    kinds = "iuf"

    def compute(x: Any, spans: tuple[Span, ...], divisor: int) -> Any:
        x = strong(x)
        made = apply("window_sum", planes(x, len(spans)), attrs=(three(spans), divisor))
        return unfolded(made, x, len(spans))

    samples = lambda: [*_window_samples(PADDED), *_window_samples(INSIDE), *_window_samples(5)]


def _max_pool(count: int) -> Any:
    def call(
        input: Any,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        spans = sliding(need_planes(input, count), kernel_size, stride, padding, dilation, ceil_mode)
        values = apply("max_pool", input, attrs=(spans,))
        if not return_indices:
            return values
        return ValuesAndIndices(values, apply("max_pool_indices", input, attrs=(spans,)))

    call.__name__ = f"max_pool{count}d"
    call.__doc__ = shown(
        f"The largest element of each window that slides over the last {_AXES[count]}.\n\n"
        "NaN counts as largest. With ``return_indices`` also the position of each in its plane (of equal elements the\n"
        f"first), for ``max_unpool{count}d``. ``ceil_mode`` keeps a last window that reaches over the end.",
        *_example(count, f"max_pool{count}d(x, {WINDOW[count]})", "tensor([3., 4.])"),
    )
    return call


_AXES = {1: "axis", 2: "two axes", 3: "three axes"}
WINDOW = {1: "2", 2: "(1, 2)", 3: "(1, 1, 2)"}
"""The window of the examples, by the number of axes."""


def _example(count: int, call: str, result: str) -> tuple[str, ...]:
    """A pooling of four numbers along the last axis, and what comes out."""
    sizes = "1, " * count
    return (
        f">>> x = torch.tensor([1.0, 3.0, 4.0, 2.0]).reshape(1, {sizes}4)",
        f">>> torch.nn.functional.{call}.flatten()",
        result,
    )


def _uniform(spans: Sequence[Span], sizes: Shape, divisor: int) -> bool:
    """Whether every window counts all its positions."""
    for span, size in zip(spans, sizes, strict=True):
        pad = 0 if divisor == INSIDE else span.low
        last = (span.windows - 1) * span.stride - span.low + span.kernel
        if span.low > pad or last > size + pad:
            return False
    return True


def _avg_pool(count: int) -> Any:
    def call(
        input: Any,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Any:
        sizes = need_planes(input, count)
        spans = sliding(sizes, kernel_size, stride, padding, 1, ceil_mode)
        divisor = PADDED if count_include_pad else INSIDE
        if divisor_override is not None:
            if divisor_override == 0:
                raise ArgumentError("divisor_override=0", "The divisor must not be zero.")
            divisor = int(divisor_override)
            if divisor < 0:
                return ops.negative(apply("avg_pool", input, attrs=(spans, -divisor)))
        elif _uniform(spans, sizes, divisor):
            divisor = prod(span.kernel for span in spans)
        return apply("avg_pool", input, attrs=(spans, divisor))

    call.__name__ = f"avg_pool{count}d"
    call.__doc__ = shown(
        f"The mean over each window that slides over the last {_AXES[count]}.\n\n"
        "Positions in the padding count as zeros, or with ``count_include_pad=False`` not at all;\n"
        "``divisor_override`` divides the sums by a number of its own.",
        *_example(count, f"avg_pool{count}d(x, {WINDOW[count]})", "tensor([2., 3.])"),
    )
    return call


def _lp_pool(count: int) -> Any:
    def call(
        input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> Any:
        mean = _CALLS["avg_pool", count](ops.pow(input, norm_type), kernel_size, stride, 0, ceil_mode)
        size = prod(each(kernel_size, count, "kernel_size"))
        total = ops.multiply(ops.multiply(ops.sign(mean), ops.relu(ops.abs(mean))), size)
        return ops.pow(total, 1.0 / norm_type)

    call.__name__ = f"lp_pool{count}d"
    call.__doc__ = shown(
        f"``sum(x**p)**(1/p)`` over each window that slides over the last {_AXES[count]}; p is ``norm_type``.",
        *_example(count, f"lp_pool{count}d(x, 2, {WINDOW[count]})", "tensor([3.1623, 4.4721])"),
    )
    return call


# Windows of adaptive size


def _wanted(input: Any, output_size: Any, count: int) -> tuple[int, ...]:
    """The sizes asked for, None meaning that of the input."""
    sizes = need_planes(input, count)
    given = tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size,) * count
    if len(given) != count:
        raise ArgumentError(f"output_size={output_size!r}", f"Give an integer, or {count} of them.")
    found = tuple(size if wanted is None else int(wanted) for wanted, size in zip(given, sizes, strict=True))
    if min(found) < 0:
        raise ArgumentError(
            f"output_size={output_size!r}", "Elements of output_size must be greater than or equal to 0."
        )
    return found


def _even(x: Any, wanted: tuple[int, ...]) -> tuple[Span, ...] | None:
    """The windows, if they are all equal."""
    sizes = x.shape[-len(wanted) :]
    if any(count == 0 or size % count for size, count in zip(sizes, wanted, strict=True)):
        return None
    pairs = zip(sizes, wanted, strict=True)
    return tuple(Span(count, size // count, size // count) for size, count in pairs)


_ADAPTIVE = (((3,), (2, 3, 7)), ((2, 3), (2, 5, 7)), ((2, 2), (2, 3, 4, 6)), ((1, 1), (3, 4, 5)))


@composite
class adaptive_avg_pool:
    """The mean over windows that cover the last axes; attributes ``(wanted,)``, the sizes of the result."""

    autograd_name = of_pooling("AdaptiveAvgPool")
    functions = ()
    kinds = "f"

    def compute(x: Any, wanted: tuple[int, ...]) -> Any:
        x, count = strong(x), len(wanted)
        if all(size == 1 for size in wanted):
            return ops.mean(x, tuple(range(x.ndim - count, x.ndim)), True)
        spans = _even(x, wanted)
        if spans is not None:
            return apply("avg_pool", x, attrs=(spans, prod(span.kernel for span in spans)))
        made, breadth = convert(x, x.dtype.compute), None
        for k, size in enumerate(wanted):
            axis = x.ndim - count + k
            line = share_line(x.shape[axis], size)
            made = along(made, axis, line) if x.shape[axis] != size else made
            counts = ops.reshape(convert(line.last - line.first, made.dtype), (size, *(1,) * (count - 1 - k)))
            breadth = counts if breadth is None else breadth * counts
        return convert(made / breadth, x.dtype)

    samples = lambda: [example((wanted,), shape) for wanted, shape in _ADAPTIVE]


@composite
class adaptive_max_pool_indices:
    """Where in its plane the largest element of each window lies; attributes as for ``adaptive_avg_pool``."""

    functions = ()
    kinds = "f"
    differentiable = False

    def compute(x: Any, wanted: tuple[int, ...]) -> Any:
        x, count = ops.stop_gradient(strong(x)), len(wanted)
        spans = _even(x, wanted)
        if spans is not None:
            return apply("max_pool_indices", x, attrs=(spans,))
        whole = ops.reshape(constant(0, int64), (1, 1))
        tables = [table for _ in range(3 - count) for table in (whole, whole + 1)]
        for k, size in enumerate(wanted):
            line = share_line(x.shape[x.ndim - count + k], size)
            tables += [ops.reshape(line.first, (1, size)), ops.reshape(line.last, (1, size))]
        return unfolded(apply("table_argmax", planes(x, count), *tables), x, count)

    samples = lambda: [example((wanted,), shape) for wanted, shape in _ADAPTIVE]


@composite
class adaptive_max_pool:
    """The largest element of each of the windows of ``adaptive_avg_pool``; attributes ``(wanted,)``."""

    functions = ()
    kinds = "f"

    def compute(x: Any, wanted: tuple[int, ...]) -> Any:
        x, count = strong(x), len(wanted)
        spans = _even(x, wanted)
        if spans is not None:
            return apply("max_pool", x, attrs=(spans,))
        positions = apply("adaptive_max_pool_indices", x, attrs=(wanted,))
        return unfolded(chosen(planes(x, count), planes(positions, count)), x, count)

    samples = lambda: [example((wanted,), shape) for wanted, shape in _ADAPTIVE]


def _adaptive_avg_pool(count: int) -> Any:
    def call(input: Any, output_size: Any) -> Any:
        return apply("adaptive_avg_pool", input, attrs=(_wanted(input, output_size, count),))

    call.__name__ = f"adaptive_avg_pool{count}d"
    call.__doc__ = shown(
        f"The mean over windows that cover the last {_AXES[count]} in ``output_size`` steps.\n\n"
        "Window ``o`` of an axis of size ``n`` is ``floor(o*n/output) ... ceil((o+1)*n/output) - 1``; an\n"
        "``output_size`` of None keeps the size of its axis.",
        *_example(count, f"adaptive_avg_pool{count}d(x, {WINDOW[count]})", "tensor([2., 3.])"),
    )
    return call


def _adaptive_max_pool(count: int) -> Any:
    def call(input: Any, output_size: Any, return_indices: bool = False) -> Any:
        attrs = (_wanted(input, output_size, count),)
        values = apply("adaptive_max_pool", input, attrs=attrs)
        if not return_indices:
            return values
        return ValuesAndIndices(values, apply("adaptive_max_pool_indices", input, attrs=attrs))

    call.__name__ = f"adaptive_max_pool{count}d"
    call.__doc__ = shown(
        f"The largest element of each of the windows of ``adaptive_avg_pool{count}d``.\n\n"
        "With ``return_indices`` also the position of each in its plane.",
        *_example(count, f"adaptive_max_pool{count}d(x, {WINDOW[count]})", "tensor([3., 4.])"),
    )
    return call


_MAKERS = {
    "max_pool": _max_pool,
    "avg_pool": _avg_pool,
    "lp_pool": _lp_pool,
    "adaptive_avg_pool": _adaptive_avg_pool,
    "adaptive_max_pool": _adaptive_max_pool,
}
_CALLS = {
    (name, count): public(f"{name}{count}d")(autocast("float32" if count == 3 else "")(make(count)))
    for name, make in _MAKERS.items()
    for count in (1, 2, 3)
}
