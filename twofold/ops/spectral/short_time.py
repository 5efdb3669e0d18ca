"""The short-time Fourier transform: transforms of windowed frames of a signal, and the way back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from twofold.dtypes import complex64
from twofold.errors import ArgumentError, DTypeError, ShapeError
from twofold.ir.node import Attributes, Node, make_node
from twofold.ops.base import Host, apply, composite, filled, host, ops, public
from twofold.ops.examples import example
from twofold.ops.linear_algebra.matrices import observed, to_dtype
from twofold.ops.promotion import autocast
from twofold.ops.samples import Sample
from twofold.ops.shape.movement import axis_numbers, slice_axis
from twofold.ops.spectral.fourier import resized

_LEAST = 1e-11  # a smaller sum of squared windows cannot be divided by


def _positions(count: int, size: int, hop: int) -> Any:
    """The node of the positions of the elements of all frames in the signal."""
    shape = (count, size)
    return ops.reshape(axis_numbers(0, shape) * hop + axis_numbers(1, shape), (count * size,))


def _by_parts(name: str, x: Any, attrs: Attributes) -> Any:
    """A linear map of complex values, part by part."""
    return ops.complex(apply(name, ops.real(x), attrs=attrs), apply(name, ops.imag(x), attrs=attrs))


@composite
class frames:
    """Frames of ``size`` elements of the last of two axes, ``hop`` apart: attributes ``(size, hop)``."""

    functions = ()
    methods = ()
    title = "stft"
    signature = "input"

    @staticmethod
    def compute(x: Any, size: int, hop: int) -> Any:
        if x.dtype.kind == "c":
            return _by_parts("frames", x, (size, hop))
        count = (x.shape[-1] - size) // hop + 1
        return ops.reshape(ops.index_select(x, 1, _positions(count, size, hop)), (x.shape[0], count, size))

    @staticmethod
    def reference(x: Any, size: int, hop: int) -> Any:
        return numpy.lib.stride_tricks.sliding_window_view(x, size, 1)[:, ::hop]

    samples = lambda: [
        example((3, 2), (2, 8)),
        example((4, 4), (1, 9)),
        example((2, 3), (2, 5), dtype=complex64),
    ]


@composite
class overlap_add:
    """The sum of frames ``[rows, frames, size]`` laid ``hop`` apart: attributes ``(hop,)``."""

    functions = ()
    methods = ()
    title = "istft"
    signature = "input"

    @staticmethod
    def compute(x: Any, hop: int) -> Any:
        if x.dtype.kind == "c":
            return _by_parts("overlap_add", x, (hop,))
        rows, count, size = x.shape
        nothing = filled(0, x.dtype, (rows, size + hop * (count - 1)))
        return ops.index_add(nothing, 1, _positions(count, size, hop), ops.reshape(x, (rows, count * size)))

    @staticmethod
    def reference(x: Any, hop: int) -> Any:
        rows, count, size = x.shape
        result = numpy.zeros((rows, size + hop * (count - 1)), x.dtype)
        for k in range(count):
            result[:, k * hop : k * hop + size] += x[:, k]
        return result

    samples = lambda: [
        example((2,), (2, 3, 4)),
        example((3,), (1, 2, 2)),
        example((1,), (2, 2, 3), dtype=complex64),
    ]


@host
class covering(Host):
    """The sums of squared windows themselves, if none is 0."""

    functions = ()
    title = "istft"
    signature = "window"

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        return make_node(self, attrs, tuple(inputs), inputs[0].type)

    def host(self, attrs: Attributes, *arrays: Any) -> Any:
        (total,) = arrays
        if total.size and abs(total).min() <= _LEAST:
            position = int(abs(total).reshape(-1).argmin())
            raise ArgumentError(
                f"no window covers element {position} of the signal",
                "Use a window without zeros at its ends, or a smaller hop_length.",
            )
        return total

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        return self.host(attrs, *arrays)

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        return (cotangent,)

    def samples(self) -> Sequence[Sample]:
        return [example((), numpy.array([[1.0, 2.0, 0.5]], numpy.float32))]


def _whole_window(window: Any, like: Any, size: int, length: int, name: str) -> Any:
    """The window in the middle of ``size`` elements; None where it is all ones."""
    if not 0 < length <= size:
        raise ArgumentError(f"win_length={length} for n_fft={size}", "Use 1 to n_fft.")
    if window is None:
        if length == size:
            return None
        window = ops.ones(length, dtype=like.dtype.real)
    if tuple(window.shape) != (length,):
        raise ShapeError(
            f"{name} of shape {tuple(window.shape)} for win_length={length}", f"Give {length} elements."
        )
    left = (size - length) // 2
    return ops.pad(window, (left, size - length - left)) if length < size else window


def _hop(hop_length: int | None, n_fft: int) -> int:
    hop = n_fft // 4 if hop_length is None else hop_length
    if hop < 1:
        raise ArgumentError(f"hop_length={hop}", "Use at least 1.")
    return hop


def _scaling(normalized: bool) -> str:
    return "ortho" if normalized else "backward"


@public(methods=("stft",))
@autocast("float32")
def stft(
    input: Any,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Any = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Any:
    """Fourier transforms of frames of ``n_fft`` elements, ``hop_length`` (n_fft // 4) apart: ``[*, frequency, frame]``.

    The signal is one- or two-dimensional (batch first); with ``center`` frame t is centred at ``t * hop_length``, for
    which the signal is padded by ``pad_mode``. Frames are multiplied by ``window``, which has ``win_length`` elements.
    ``onesided``: only the first half of the frequencies, the default for real values. ``normalized``: scaled by the
    root of n_fft. Without ``return_complex``, which real inputs must give, the parts are a last axis.

    >>> import twofold as torch
    >>> torch.stft(torch.ones(8), 4, center=False, return_complex=True).shape
    twofold.Size([3, 5])
    """
    is_complex = input.dtype.kind == "c" or (window is not None and window.dtype.kind == "c")
    if return_complex is None and not is_complex:
        raise ArgumentError("return_complex is missing", "Give return_complex=True.")
    if input.dtype.kind not in "fc":
        raise DTypeError(f"input is {input.dtype.name}", "Cast it with .to() to float32 first.")
    if len(input.shape) not in (1, 2):
        raise ShapeError(f"input has {len(input.shape)} axes", "Give one signal, or a batch of them.")
    if align_to_window:
        raise ArgumentError("align_to_window=True", "Leave it out: frames start at multiples of hop_length.")
    onesided = not is_complex if onesided is None else onesided
    if onesided and is_complex:
        raise ArgumentError("onesided=True for complex values", "Leave it out: all frequencies matter.")
    hop = _hop(hop_length, n_fft)
    signal = input if len(input.shape) == 2 else ops.unsqueeze(input, 0)
    if center:
        signal = ops.pad(signal, (n_fft // 2, n_fft // 2), pad_mode)
    if not 0 < n_fft <= signal.shape[1]:
        raise ArgumentError(f"n_fft={n_fft} for a signal of {signal.shape[1]}", "Use 1 to that length.")
    cut = apply("frames", signal, attrs=(n_fft, hop))
    whole = _whole_window(window, input, n_fft, n_fft if win_length is None else win_length, "window")
    cut = cut if whole is None else ops.multiply(cut, whole)
    if onesided:
        found = apply("half_transform", cut, attrs=((2,), _scaling(normalized)))
    else:
        found = apply(
            "complex_transform", to_dtype(cut, cut.dtype.complex), attrs=((2,), True, _scaling(normalized))
        )
    found = ops.transpose(found, 1, 2)
    found = found if len(input.shape) == 2 else ops.squeeze(found, 0)
    return ops.view_as_real(found) if return_complex is False else found


@public(methods=("istft",))
@observed
def istft(
    input: Any,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Any = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Any:
    """The signal whose ``stft`` is nearest to ``input``, of ``length`` elements if that is given.

    Frames are transformed back, multiplied by the window, added up where they overlap, and divided by the sum of
    the squared windows (Griffin and Lim, Signal estimation from modified short-time Fourier transform, 1984, equation
    6). Raises ArgumentError where that sum is 0.

    >>> import twofold as torch
    >>> x = torch.arange(16.0)
    >>> torch.allclose(torch.istft(torch.stft(x, 8, return_complex=True), 8), x, atol=1e-4)
    True
    """
    if input.dtype.kind != "c" or len(input.shape) not in (2, 3):
        raise ShapeError(
            f"{input.dtype.name} with {len(input.shape)} axes is no result of stft",
            "Give complex values of shape [*, frequency, frame].",
        )
    found = input if len(input.shape) == 3 else ops.unsqueeze(input, 0)
    count = found.shape[1]
    onesided = count != n_fft if onesided is None else onesided
    expected = n_fft // 2 + 1 if onesided else n_fft
    if count != expected or not found.shape[2]:
        raise ShapeError(
            f"{count} frequencies in {found.shape[2]} frames for n_fft={n_fft}",
            f"Give {expected} frequencies in at least one frame.",
        )
    if return_complex and onesided:
        raise ArgumentError("return_complex=True from half the frequencies", "Use onesided=False.")
    hop = _hop(hop_length, n_fft)
    whole = _whole_window(window, input, n_fft, n_fft if win_length is None else win_length, "window")
    cut = _frames_back(ops.transpose(found, 1, 2), n_fft, return_complex, normalized)
    if whole is None:
        whole = ops.ones(n_fft, dtype=input.dtype.real)
    total = apply("overlap_add", ops.multiply(cut, whole), attrs=(hop,))
    squares = ops.expand(ops.multiply(whole, whole), (1, cut.shape[1], n_fft))
    weight = apply("overlap_add", squares, attrs=(hop,))
    signal = _cut_out(total, weight, n_fft // 2 if center else 0, center, length)
    return signal if len(input.shape) == 3 else ops.squeeze(signal, 0)


def _frames_back(found: Any, n_fft: int, whole: bool, normalized: bool) -> Any:
    """The frames of a signal from their transforms ``[rows, frames, frequencies]``."""
    if whole:
        return apply("complex_transform", found, attrs=((2,), False, _scaling(normalized)))
    half = slice_axis(found, 2, 0, n_fft // 2 + 1)
    return apply("real_transform", half, attrs=((2,), _scaling(normalized), n_fft))


def _cut_out(total: Any, weight: Any, start: int, center: bool, length: int | None) -> Any:
    """The part of the signal from ``start`` on that frames cover, each element divided by its weight."""
    there = total.shape[1] - start
    known = max(there - start if length is None and center else there, 0)
    known = known if length is None else min(length, known)
    weight = apply("covering", slice_axis(weight, 1, start, known))
    signal = ops.divide(slice_axis(total, 1, start, known), weight)
    return signal if length is None else resized(signal, 1, length)
