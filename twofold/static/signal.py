"""Frames, windows and transforms of signals: ``tf.signal``, ``tf.contrib.signal``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from twofold.dtypes import float32
from twofold.errors import ArgumentError
from twofold.ops.base import ops
from twofold.runtime.tracing import here
from twofold.static import linalg, math
from twofold.static.api.namespaces import look_up
from twofold.static.api.op_functions import (
    Number,
    as_dtype,
    constant,
    convert_to_tensor,
    numbers,
    operation,
    whole,
)
from twofold.static.arrays import shape_ops
from twofold.static.arrays.creation import pad as padded
from twofold.static.graph.docstrings import example
from twofold.static.python.tensor_util import constant_value

_Window = Callable[..., Any]


@operation("Frame", default="frame")
@example("tf.signal.frame([1, 2, 3, 4, 5], 3, 2)", "[[1 2 3]\n [3 4 5]]")
def frame(
    signal: Any,
    frame_length: Number,
    frame_step: Number,
    pad_end: Number = False,
    pad_value: Number = 0,
    axis: Number = -1,
) -> Any:
    """Windows of ``frame_length`` elements along ``axis``, ``frame_step`` apart, which become one axis more.

    Elements that fill no window are left out, or filled up with ``pad_value`` if ``pad_end`` is true.
    """
    length, step, along = whole(frame_length), whole(frame_step), whole(axis)
    along = along + signal.ndim if along < 0 else along
    size = signal.shape[along]
    count = None if pad_end or size >= length else 0
    missing = (
        (-(-size // step) - 1) * step + length - size if pad_end else 0 if count is None else length - size
    )
    signal = ops.pad(signal, (*[0] * (2 * (signal.ndim - 1 - along)), 0, missing), value=numbers(pad_value))
    windows = ops.movedim(ops.unfold(signal, along, length, step), -1, along + 1)
    return windows if count is None else ops.narrow(windows, along, 0, count)


@operation("OverlapAndAdd", default="overlap_and_add")
@example("tf.signal.overlap_and_add([[1, 2, 3], [3, 4, 5]], 2)", "[1 2 6 4 5]")
def overlap_and_add(signal: Any, frame_step: Number) -> Any:
    """Sums of frames, the last but one axis, that begin ``frame_step`` elements after each other."""
    if signal.ndim < 2:
        raise ValueError(f"overlap_and_add: a signal of {signal.ndim} axes has no frames. Give 2 at least.")
    step, (*outer, frames, length) = whole(frame_step), signal.shape
    pieces = -(-length // step)
    filled = ops.pad(signal, (0, pieces * step - length))
    rows = ops.reshape(filled, (*outer, frames, pieces, step))
    total = None
    for piece in range(pieces):
        row = ops.reshape(ops.select(rows, -2, piece), (*outer, frames * step))
        moved = ops.pad(row, (piece * step, (pieces - 1 - piece) * step))
        total = moved if total is None else ops.add(total, moved)
    return ops.narrow(total, -1, 0, (frames - 1) * step + length)


def _cosine(length: Any, periodic: Any, dtype: Any, name: str | None, offset: float) -> Any:
    """A raised cosine; a periodic one of an even length is that of a length more without its last element."""
    size, wraps = int(_known("window_length", length)), bool(_known("periodic", periodic))
    kind = as_dtype(dtype)
    if kind.kind != "f":
        raise ValueError(f"window: dtype {kind.name} is not floating, at {here()}. Use float32 or float64.")
    last = size + int(wraps and size % 2 == 0) - 1
    values = (
        offset - (1 - offset) * numpy.cos(2 * numpy.pi * numpy.arange(size) / last) if size > 1 else [1.0]
    )
    return constant(numpy.asarray(values[:size], kind.numpy), name=name)


def _known(what: str, value: Any) -> Any:
    found = constant_value(value) if hasattr(value, "dtype") else value
    if found is None:
        raise ArgumentError(f"signal: {what} is not known before a run, at {here()}", "Give a Python number.")
    return found


@example("tf.signal.hann_window(4)", "[0.  0.5 1.  0.5]")
def hann_window(
    window_length: Any, periodic: Any = True, dtype: Any = float32, name: str | None = None
) -> Any:
    """Hann's window, 0 at its ends; for transforms ``periodic``, for filters not."""
    return _cosine(window_length, periodic, dtype, name or "hann_window", 0.5)


@example("tf.signal.hamming_window(4)", "[0.08 0.54 1.   0.54]")
def hamming_window(
    window_length: Any, periodic: Any = True, dtype: Any = float32, name: str | None = None
) -> Any:
    """Hamming's window, 0.08 at its ends; for transforms ``periodic``, for filters not."""
    return _cosine(window_length, periodic, dtype, name or "hamming_window", 0.54)


def _length(frame_length: Any, fft_length: Any) -> int:
    """That of the transform: the power of two that a frame fits into, unless given."""
    if fft_length is not None:
        return int(_known("fft_length", fft_length))
    return 1 << max(int(_known("frame_length", frame_length)) - 1, 0).bit_length()


@example("print(tf.signal.stft(tf.zeros([8]), 4, 2).shape)", "(3, 3)")
def stft(
    signals: Any,
    frame_length: Any,
    frame_step: Any,
    fft_length: Any = None,
    window_fn: _Window | None = hann_window,
    pad_end: bool = False,
    name: str | None = None,
) -> Any:
    """Fourier transforms of frames, times ``window_fn(frame_length, dtype=...)`` unless that is None.

    ``fft_length`` is the power of two that a frame fits into, unless given.
    """
    frames = frame(convert_to_tensor(signals), frame_length, frame_step, pad_end)
    if window_fn is not None:
        frames = math.multiply(frames, window_fn(frame_length, dtype=frames.dtype))
    return linalg.rfft(frames, [_length(frame_length, fft_length)], name=name)


@example(
    "x = tf.constant([1.0, 2.0, 3.0, 4.0])",
    "print(tf.signal.inverse_stft(tf.signal.stft(x, 2, 2, window_fn=None), 2, 2, window_fn=None).shape)",
    "(4,)",
)
def inverse_stft(
    stfts: Any,
    frame_length: Any,
    frame_step: Any,
    fft_length: Any = None,
    window_fn: _Window | None = hann_window,
    name: str | None = None,
) -> Any:
    """The signals whose ``stft`` these are, if ``window_fn`` is ``inverse_stft_window_fn`` of the step."""
    size, length = _length(frame_length, fft_length), int(_known("frame_length", frame_length))
    frames = linalg.irfft(convert_to_tensor(stfts), [size])
    if length <= size:
        frames = frames[..., :length]
    else:
        paddings = [[0, 0]] * (frames.shape.ndims - 1) + [[0, length - size]]
        frames = padded(frames, paddings)
    if window_fn is not None:
        frames = math.multiply(frames, window_fn(frame_length, dtype=frames.dtype))
    return overlap_and_add(frames, frame_step, name=name)


@example("tf.signal.inverse_stft_window_fn(2)(4)", "[0. 1. 1. 1.]")
def inverse_stft_window_fn(
    frame_step: Any, forward_window_fn: _Window = hann_window, name: str | None = None
) -> _Window:
    """The function of a window with which ``inverse_stft`` undoes ``stft`` with ``forward_window_fn``."""
    step = int(_known("frame_step", frame_step))

    def inverse_window(frame_length: Any, dtype: Any = float32) -> Any:
        length = int(_known("frame_length", frame_length))
        forward = forward_window_fn(frame_length, dtype=dtype)
        overlaps = -(-length // step)
        squares = padded(math.square(forward), [[0, overlaps * step - length]])
        sums = math.reduce_sum(shape_ops.reshape(squares, [overlaps, step]), 0, keepdims=True)
        spread = shape_ops.reshape(shape_ops.tile(sums, [overlaps, 1]), [overlaps * step])
        return math.divide(forward, spread[:length], name=name)

    return inverse_window


@example("print(tf.signal.linear_to_mel_weight_matrix(4, 9).shape)", "(9, 4)")
def linear_to_mel_weight_matrix(
    num_mel_bins: int = 20,
    num_spectrogram_bins: int = 129,
    sample_rate: Any = 8000,
    lower_edge_hertz: float = 125.0,
    upper_edge_hertz: float = 3800.0,
    dtype: Any = float32,
    name: str | None = None,
) -> Any:
    """The matrix by which spectrograms are multiplied for bands of the mel scale, which are triangles.

    The band of frequency 0 has no weight.
    """
    rate = float(_known("sample_rate", sample_rate))
    checks = {
        "num_mel_bins must be positive": num_mel_bins > 0,
        "lower_edge_hertz must be non-negative": lower_edge_hertz >= 0,
        "lower_edge_hertz must be smaller than upper_edge_hertz": lower_edge_hertz < upper_edge_hertz,
        "sample_rate must be positive": rate > 0,
        "upper_edge_hertz must not be larger than the Nyquist frequency": upper_edge_hertz <= rate / 2,
        "dtype must be a floating point type": as_dtype(dtype).kind == "f",
    }
    for what, holds in checks.items():
        if not holds:
            raise ValueError(f"linear_to_mel_weight_matrix: {what}, at {here()}.")
    mel = lambda hertz: 1127.0 * numpy.log1p(numpy.asarray(hertz) / 700.0)
    bins = mel(numpy.linspace(0.0, rate / 2, num_spectrogram_bins)[1:])[:, None]
    edges = numpy.linspace(mel(lower_edge_hertz), mel(upper_edge_hertz), num_mel_bins + 2)
    lower, center, upper = edges[:-2], edges[1:-1], edges[2:]
    slopes = numpy.minimum((bins - lower) / (center - lower), (upper - bins) / (upper - center))
    weights = numpy.pad(numpy.maximum(slopes, 0.0), [[1, 0], [0, 0]])
    return constant(weights.astype(as_dtype(dtype).numpy), name=name or "linear_to_mel_weight_matrix")


@example("tf.signal.mfccs_from_log_mel_spectrograms([[1.0, 1.0]])", "[[2. 0.]]")
def mfccs_from_log_mel_spectrograms(log_mel_spectrograms: Any, name: str | None = None) -> Any:
    """Cepstral coefficients of logarithms of mel spectrograms: their cosine transform, over sqrt(2 bins)."""
    values = convert_to_tensor(log_mel_spectrograms)
    bins = values.shape.as_list()[-1]
    if not bins:
        raise ValueError(
            f"mfccs_from_log_mel_spectrograms: {bins} bins, at {here()}. Give a known number, not 0."
        )
    return math.multiply(dct(values), 1.0 / numpy.sqrt(2.0 * bins), name=name)


def _cosines(type: int, size: int, orthonormal: bool) -> numpy.ndarray:
    """The matrix of a cosine transform: a row for each element, a column for each coefficient."""
    n, k = numpy.arange(size)[:, None], numpy.arange(size)
    if type == 1:
        made = 2 * numpy.cos(numpy.pi * k * n / (size - 1))
        made[[0, -1]] /= 2
        return made
    if type == 4:
        made = 2 * numpy.cos(numpy.pi * (2 * k + 1) * (2 * n + 1) / (4 * size))
        return made / numpy.sqrt(2 * size) if orthonormal else made
    made = 2 * numpy.cos(numpy.pi * k * (2 * n + 1) / (2 * size))
    if orthonormal:
        made /= numpy.sqrt(2 * size)
        made[:, 0] /= numpy.sqrt(2)
    if type == 3:
        made = made.T.copy()
        made[0] /= 1 if orthonormal else 2
    return made


@example("tf.signal.dct([1.0, 1.0])", "[4. 0.]")
def dct(
    input: Any,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    name: str | None = None,
) -> Any:
    """The cosine transform of ``type`` 1, 2, 3 or 4 along the last axis, cut or filled with zeros to ``n``.

    ``norm="ortho"`` makes it orthonormal; type 1 has no such form.
    """
    if type not in (1, 2, 3, 4):
        raise ValueError(f"Types I, II, III and IV (I)DCT are supported, not {type}, at {here()}.")
    if axis != -1:
        raise NotImplementedError(f"axis must be -1. Got: {axis}, at {here()}.")
    if norm not in (None, "ortho") or (type == 1 and norm == "ortho"):
        raise ValueError(
            f"dct: norm {norm!r} of type {type}, at {here()}. Use None, or 'ortho' for the other types."
        )
    if n is not None and n < 1:
        raise ValueError(f"n should be a positive integer or None, not {n}, at {here()}.")
    values = convert_to_tensor(input, float32 if isinstance(input, (list, tuple)) else None)
    size = values.shape.as_list()[-1]
    if size is None:
        raise ValueError(
            f"dct: the size of the last axis is not known, at {here()}. Give it to the placeholder."
        )
    if type == 1 and (n or size) < 2:
        raise ValueError(f"Type I DCT requires the dimension to be greater than one, at {here()}.")
    if n is not None and n <= size:
        values = values[..., :n]
    elif n is not None:
        values = padded(values, [[0, 0]] * (values.shape.ndims - 1) + [[0, n - size]])
    return _transformed(values, _cosines(type, n or size, norm == "ortho"), name)


def _transformed(values: Any, matrix: numpy.ndarray, name: str | None) -> Any:
    weights = constant(matrix.astype(values.dtype.numpy))
    return math.tensordot(values, weights, [[values.shape.ndims - 1], [0]], name=name)


@example("tf.signal.idct([4.0, 0.0])", "[4. 4.]")
def idct(
    input: Any,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    name: str | None = None,
) -> Any:
    """The transform that undoes ``dct`` of a type, up to a factor unless ``norm="ortho"``."""
    return dct(input, {2: 3, 3: 2}.get(type, type), n, axis, norm, name)


__getattr__, __dir__ = look_up(__name__)
