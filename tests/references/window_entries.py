"""References of entries that slide windows: convolutions the other way, pooling, patches, signal windows."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy
import scipy.signal
from declare import entry


def conv_transpose(
    x: Any, weight: Any, bias: Any, strides: Any, paddings: Any, extra: Any, groups: int, dilations: Any
) -> Any:
    """Every input element adds its kernel to the result, one by one."""
    batched = x if x.ndim == len(strides) + 2 else x[None]
    sizes, kernel = batched.shape[2:], weight.shape[2:]
    outside = [
        (size - 1) * stride + gap * (k - 1) + 1 + more
        for size, stride, gap, k, more in zip(sizes, strides, dilations, kernel, extra)
    ]
    per_group = weight.shape[1]
    found = numpy.zeros((len(batched), per_group * groups, *outside), numpy.result_type(x, weight))
    inputs = batched.shape[1] // groups
    for n, c in itertools.product(range(len(batched)), range(batched.shape[1])):
        group = c // inputs
        for at in numpy.ndindex(*sizes):
            for where in numpy.ndindex(*kernel):
                position = tuple(a * s + w * d for a, s, w, d in zip(at, strides, where, dilations))
                out = slice(group * per_group, (group + 1) * per_group)
                found[(n, out, *position)] += batched[(n, c, *at)] * weight[(c, slice(None), *where)]
    cut = tuple(slice(pad, size - pad) for pad, size in zip(paddings, outside))
    found = found[(slice(None), slice(None), *cut)]
    if bias is not None:
        found = found + bias.reshape(-1, *[1] * len(strides))
    return found if batched is x else found[0]


@entry("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def _conv_transpose(x: Any, weight: Any, *rest: Any) -> Any:
    *bias, strides, paddings, extra, groups, dilations = rest
    return conv_transpose(x, weight, *(bias or [None]), strides, paddings, extra, groups, dilations)


def windows(x: Any, spans: Any) -> Any:
    """Over all planes and windows: ``(index of the result, positions inside the input)``."""
    count = len(spans)
    lead, sizes = x.shape[: x.ndim - count], x.shape[x.ndim - count :]
    for at in numpy.ndindex(*lead, *[span.windows for span in spans]):
        lines = []
        for number, span, size in zip(at[len(lead) :], spans, sizes):
            line = [number * span.stride - span.low + k * span.dilation for k in range(span.kernel)]
            lines.append([position for position in line if 0 <= position < size])
        yield at, [(*at[: len(lead)], *position) for position in itertools.product(*lines)]


def pooled(x: Any, spans: Any, rule: Any, dtype: Any = None) -> Any:
    """``rule`` of the positions of every window."""
    count = len(spans)
    shape = (*x.shape[: x.ndim - count], *[span.windows for span in spans])
    found = numpy.zeros(shape, dtype or x.dtype)
    for at, positions in windows(x, spans):
        found[at] = rule(positions)
    return found


def flat_index(position: Any, shape: Any, count: int) -> int:
    """The number of a position in its plane of the last ``count`` axes."""
    return int(numpy.ravel_multi_index(position[len(position) - count :], shape[len(shape) - count :]))


@entry("max_pool")
def _max_pool(x: Any, spans: Any) -> Any:
    return pooled(x, spans, lambda positions: max(x[position] for position in positions))


@entry("max_pool_indices")
def _max_pool_positions(x: Any, spans: Any) -> Any:
    def first(positions: Any) -> int:
        return flat_index(max(positions, key=lambda position: x[position]), x.shape, len(spans))

    return pooled(x, spans, first, numpy.int64)


@entry("avg_pool")
def _avg_pool(x: Any, spans: Any, divisor: int) -> Any:
    count = len(spans)
    found = pooled(x, spans, lambda positions: sum(x[position] for position in positions))
    if divisor > 0:
        return found / divisor
    if divisor == -2:  # only the positions inside
        return found / pooled(x, spans, len)
    sizes = x.shape[x.ndim - count :]

    def inside_padding(at: Any) -> int:
        number = 1
        for k, span, size in zip(at[len(at) - count :], spans, sizes):
            start = k * span.stride - span.low
            number *= min(start + span.kernel, size + span.low) - start
        return number

    counts = numpy.zeros(found.shape)
    for at in numpy.ndindex(*found.shape):
        counts[at] = inside_padding(at)
    return found / counts


def adaptive(x: Any, wanted: Any) -> Any:
    """``(index of the result, positions)`` of windows from floor(k n / m) to ceil((k + 1) n / m)."""
    count = len(wanted)
    lead, sizes = x.shape[: x.ndim - count], x.shape[x.ndim - count :]
    for at in numpy.ndindex(*lead, *wanted):
        lines = []
        for k, size, number in zip(at[len(lead) :], sizes, wanted):
            lines.append(range(k * size // number, -(-(k + 1) * size // number)))
        yield at, [(*at[: len(lead)], *position) for position in itertools.product(*lines)]


def adaptively(x: Any, wanted: Any, rule: Any, dtype: Any = None) -> Any:
    """``rule`` of the positions of every adaptive window."""
    found = numpy.zeros((*x.shape[: x.ndim - len(wanted)], *wanted), dtype or x.dtype)
    for at, positions in adaptive(x, wanted):
        found[at] = rule(positions)
    return found


@entry("adaptive_avg_pool")
def _adaptive_avg_pool(x: Any, wanted: Any) -> Any:
    return adaptively(
        x, wanted, lambda positions: sum(x[position] for position in positions) / len(positions)
    )


@entry("adaptive_max_pool")
def _adaptive_max_pool(x: Any, wanted: Any) -> Any:
    return adaptively(x, wanted, lambda positions: max(x[position] for position in positions))


@entry("adaptive_max_pool_indices")
def _adaptive_max_pool_positions(x: Any, wanted: Any) -> Any:
    def first(positions: Any) -> int:
        return flat_index(max(positions, key=lambda position: x[position]), x.shape, len(wanted))

    return adaptively(x, wanted, first, numpy.int64)


@entry("fractional_max_pool_indices")
def _fractional(x: Any, samples: Any, kernel: Any, wanted: Any) -> Any:
    count = len(wanted)
    sizes = x.shape[x.ndim - count :]
    lead = x.shape[: x.ndim - count]
    samples = samples.reshape(*lead, count)
    found = numpy.zeros((*lead, *wanted), numpy.int64)
    for at in numpy.ndindex(*found.shape):
        lines = []
        for k, (number, size, wide, windows_) in enumerate(zip(at[len(lead) :], sizes, kernel, wanted)):
            # with two axes the last takes the first sample
            u = samples[(*at[: len(lead)], count - 1 - k if count == 2 else k)]
            start = size - wide
            if number < windows_ - 1:
                pace = (size - wide) / (windows_ - 1)
                start = int((number + u) * pace) - int(u * pace)
            lines.append(range(start, start + wide))
        positions = [(*at[: len(lead)], *position) for position in itertools.product(*lines)]
        found[at] = flat_index(max(positions, key=lambda position: x[position]), x.shape, count)
    return found


@entry("elements_at")
def _elements_at(x: Any, positions: Any, count: int) -> Any:
    found = numpy.zeros(positions.shape, x.dtype)
    for at in numpy.ndindex(*positions.shape):
        where = numpy.unravel_index(positions[at], x.shape[x.ndim - count :])
        found[at] = x[(*at[: x.ndim - count], *where)]
    return found


@entry("max_unpool")
def _max_unpool(x: Any, positions: Any, sizes: Any) -> Any:
    count = len(sizes)
    found = numpy.zeros((*x.shape[: x.ndim - count], *sizes), x.dtype)
    for at in numpy.ndindex(*x.shape):
        found[(*at[: x.ndim - count], *numpy.unravel_index(positions[at], sizes))] = x[at]
    return found


@entry("max_pool_share")
def _max_pool_share(ct: Any, x: Any, positions: Any, count: int) -> Any:
    found = numpy.zeros(x.shape, ct.dtype)
    sizes = x.shape[x.ndim - count :]
    for at in numpy.ndindex(*ct.shape):
        found[(*at[: x.ndim - count], *numpy.unravel_index(positions[at], sizes))] += ct[at]
    return found


def patches(shape: Any, strides: Any, paddings: Any, dilations: Any, kernel: Any) -> Any:
    """``(position in the kernel, number of the window, position in the image)``, also outside the image."""
    counts = [
        (size + 2 * pad - gap * (k - 1) - 1) // step + 1
        for size, pad, gap, k, step in zip(shape, paddings, dilations, kernel, strides)
    ]
    for number, window in enumerate(numpy.ndindex(*counts)):
        for position, within in enumerate(numpy.ndindex(*kernel)):
            where = [w * s - p + k * d for w, s, p, k, d in zip(window, strides, paddings, within, dilations)]
            yield position, number, tuple(where)


@entry("im2col")
def _im2col(x: Any, strides: Any, paddings: Any, dilations: Any, kernel: Any) -> Any:
    batched = x if x.ndim == 4 else x[None]
    table = list(patches(batched.shape[2:], strides, paddings, dilations, kernel))
    area, numbers = int(numpy.prod(kernel)), 1 + max(number for _, number, _ in table)
    found = numpy.zeros((*batched.shape[:2], area, numbers), x.dtype)
    for position, number, (row, column) in table:
        if 0 <= row < batched.shape[2] and 0 <= column < batched.shape[3]:
            found[:, :, position, number] = batched[:, :, row, column]
    found = found.reshape(len(batched), -1, numbers)
    return found if x.ndim == 4 else found[0]


@entry("col2im")
def _col2im(x: Any, strides: Any, paddings: Any, dilations: Any, kernel: Any, sizes: Any) -> Any:
    batched = x if x.ndim == 3 else x[None]
    area = int(numpy.prod(kernel))
    split = batched.reshape(len(batched), -1, area, batched.shape[-1])
    found = numpy.zeros((*split.shape[:2], *sizes), x.dtype)
    for position, number, (row, column) in patches(sizes, strides, paddings, dilations, kernel):
        if 0 <= row < sizes[0] and 0 <= column < sizes[1]:
            found[:, :, row, column] += split[:, :, position, number]
    return found if x.ndim == 3 else found[0]


# Signal windows, by SciPy


def _window(name: str, rule: Any) -> None:
    def reference(*rest: Any) -> Any:
        *values, size, symmetric, dtype = rest
        return rule(size, bool(symmetric), *map(float, values)).astype(dtype.numpy)

    entry(name)(reference)


SIGNAL = scipy.signal.windows
_window("general_cosine_window", lambda n, sym, *a: SIGNAL.general_cosine(n, a, sym))
_window("general_hamming_window", lambda n, sym, alpha: SIGNAL.general_hamming(n, alpha, sym))
_window("hamming_window", lambda n, sym: SIGNAL.hamming(n, sym))
_window("hann_window", lambda n, sym: SIGNAL.hann(n, sym))
_window("blackman_window", lambda n, sym: SIGNAL.blackman(n, sym))
_window("nuttall_window", lambda n, sym: SIGNAL.nuttall(n, sym))
_window("bartlett_window", lambda n, sym: SIGNAL.bartlett(n, sym))
_window("cosine_window", lambda n, sym: SIGNAL.cosine(n, sym))
_window("gaussian_window", lambda n, sym, std: SIGNAL.gaussian(n, std, sym))
_window("kaiser_window", lambda n, sym, beta: SIGNAL.kaiser(n, beta, sym))
_window(
    "exponential_window",
    # SciPy's of one element is 1 wherever the centre is, PyTorch's is not
    lambda n, sym, center, tau: (
        numpy.array([math.exp(-center / tau)])
        if n == 1
        else SIGNAL.exponential(n, center, tau, False)
        if n
        else numpy.zeros(0)
    ),
)
