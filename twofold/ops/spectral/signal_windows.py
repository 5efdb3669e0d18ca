"""Windows that fade a signal out at both ends; computed in float64 and rounded once.

Formulas of F. J. Harris, "On the use of windows for harmonic analysis with the discrete Fourier transform", 1978;
that of Nuttall from A. H. Nuttall, "Some windows with very good sidelobe behavior", 1981. A symmetric window of ``M``
elements spans ``M - 1`` steps; a periodic one spans ``M``, as if the first element of the next period followed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy

from twofold.dtypes import DType, as_dtype, float32, float64
from twofold.errors import ArgumentError, DTypeError
from twofold.ir.sizes import maximum, real
from twofold.ops.base import apply, composite, convert, iota, ops
from twofold.ops.samples import Sample

_BLACKMAN = (0.42, 0.5, 0.08)
_NUTTALL = (0.3635819, 0.4891775, 0.1365995, 0.0106411)


def _declare(name: str, length: int, symmetric: bool, dtype: Any, *numbers: Any) -> Any:
    """A call of an entry below, its numbers as operands; raises for a negative length and for other dtypes."""
    found = as_dtype(dtype or float32)
    if length < 0:
        raise ArgumentError(f"a window of {length} elements", "Use 0 or more.")
    if found.kind != "f":
        raise DTypeError(f"a window of {found.name}", "Windows are floats: use float32 or float64.")
    return apply(name, *map(float, numbers), attrs=(int(length), bool(symmetric), found))


def _positive(what: str, value: Any) -> Any:
    if value <= 0:
        raise ArgumentError(f"{what} is {value}", "Use a number above 0.")
    return value


def _calls(*numbers: float) -> Sequence[Sample]:
    arrays, dtypes = tuple(numpy.array(number) for number in numbers), (float64,) * len(numbers)
    lengths = ((0, True), (1, True), (1, False), (7, True), (8, True), (8, False))
    return [Sample((length, sym, float32), arrays, dtypes) for length, sym in lengths]


def _positions(length: int) -> Any:
    return convert(iota((length,)), float64)


def _steps(length: int, symmetric: bool) -> Any:
    """How many steps the window spans, as a float; no window is shorter than one step."""
    return real(maximum(length - 1 if symmetric or length == 1 else length, 1))


def _cosines(weights: Sequence[Any], length: int, symmetric: bool, dtype: DType) -> Any:
    """The sum of (-1)**k weight[k] cos(2 pi k n / steps); 1 for a window of one element."""
    angle = _positions(length) * (2 * math.pi / _steps(length, symmetric))
    total = angle * 0.0 + (1.0 if length == 1 else weights[0])
    for k, weight in enumerate(weights[1:] if length > 1 else (), 1):
        total = total + ops.cos(angle * float(k)) * weight * (-1.0) ** k
    return convert(total, dtype)


def _plain(name: str) -> Any:
    """The public function of a window without parameters."""

    def call(M: int, *, sym: bool = True, dtype: Any = float32) -> Any:
        return _declare(name, M, sym, dtype)

    return staticmethod(call)


class _Window:
    """What the entries share: functions alone, whose results are new and have no gradients."""

    methods = ()
    creates = "default"
    differentiable = False
    samples = lambda: _calls()


@composite
class general_cosine_window(_Window):
    """A sum of cosines with the weights ``a``, of alternating signs, over one period.

    >>> import twofold as torch
    >>> torch.signal.windows.general_cosine(5, a=[0.5, 0.5])
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """

    functions = ("signal.windows.general_cosine",)
    compute = lambda *given: _cosines(given[:-3], *given[-3:])
    samples = lambda: _calls(0.5, 0.3, 0.2)

    @staticmethod
    def call(M: int, *, a: Iterable[float], sym: bool = True, dtype: Any = float32) -> Any:
        if not isinstance(a, Iterable):
            raise TypeError(f"a is {a!r}. Give the weights as a list.")
        weights = list(a)
        if not weights:
            raise ArgumentError("a has no weights", "Give at least one.")
        return _declare("general_cosine_window", M, sym, dtype, *weights)


@composite
class general_hamming_window(_Window):
    """``alpha - (1 - alpha) * cos(2 pi n / steps)``.

    >>> import twofold as torch
    >>> torch.signal.windows.general_hamming(5, alpha=0.5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """

    functions = ("signal.windows.general_hamming",)
    compute = lambda alpha, *attrs: _cosines((alpha, 1.0 - alpha), *attrs)
    samples = lambda: _calls(0.6)

    @staticmethod
    def call(M: int, *, alpha: float = 0.54, sym: bool = True, dtype: Any = float32) -> Any:
        return _declare("general_hamming_window", M, sym, dtype, alpha)


@composite
class hamming_window(_Window):
    """``0.54 - 0.46 * cos(2 pi n / steps)``.

    >>> import twofold as torch
    >>> torch.signal.windows.hamming(5)
    tensor([0.0800, 0.5400, 1.0000, 0.5400, 0.0800])
    """

    functions = ("signal.windows.hamming",)
    compute = lambda *attrs: _cosines((0.54, 0.46), *attrs)
    call = _plain("hamming_window")


@composite
class hann_window(_Window):
    """``0.5 - 0.5 * cos(2 pi n / steps)``.

    >>> import twofold as torch
    >>> torch.signal.windows.hann(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    >>> torch.signal.windows.hann(4, sym=False)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """

    functions = ("signal.windows.hann",)
    compute = lambda *attrs: _cosines((0.5, 0.5), *attrs)
    call = _plain("hann_window")


@composite
class blackman_window(_Window):
    """``0.42 - 0.5 * cos(2 pi n / steps) + 0.08 * cos(4 pi n / steps)``.

    >>> import twofold as torch
    >>> torch.signal.windows.blackman(5)[1:4]
    tensor([0.3400, 1.0000, 0.3400])
    """

    functions = ("signal.windows.blackman",)
    compute = lambda *attrs: _cosines(_BLACKMAN, *attrs)
    call = _plain("blackman_window")


@composite
class nuttall_window(_Window):
    """The sum of four cosines with the lowest side lobes.

    >>> import twofold as torch
    >>> torch.signal.windows.nuttall(5)
    tensor([3.6280e-04, 2.2698e-01, 1.0000e+00, 2.2698e-01, 3.6280e-04])
    """

    functions = ("signal.windows.nuttall",)
    compute = lambda *attrs: _cosines(_NUTTALL, *attrs)
    call = _plain("nuttall_window")


def _bartlett(length: int, symmetric: bool, dtype: DType) -> Any:
    steps = _steps(length, symmetric)
    if length == 1:
        return convert(_positions(1) + 1.0, dtype)
    return convert(1.0 - ops.abs(_positions(length) * 2.0 - steps) / steps, dtype)


@composite
class bartlett_window(_Window):
    """A triangle: ``1 - abs(2 n / steps - 1)``.

    >>> import twofold as torch
    >>> torch.signal.windows.bartlett(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """

    functions = ("signal.windows.bartlett",)
    compute = _bartlett
    call = _plain("bartlett_window")


def _half_wave(length: int, symmetric: bool, dtype: DType) -> Any:
    return convert(ops.sin((_positions(length) + 0.5) * (math.pi / (_steps(length, symmetric) + 1))), dtype)


@composite
class cosine_window(_Window):
    """Half a wave: ``sin(pi * (n + 0.5) / (steps + 1))``.

    >>> import twofold as torch
    >>> torch.signal.windows.cosine(3)
    tensor([0.5000, 1.0000, 0.5000])
    """

    functions = ("signal.windows.cosine",)
    # one element is the middle of the wave
    compute = lambda length, *attrs: _bartlett(1, *attrs) if length == 1 else _half_wave(length, *attrs)
    call = _plain("cosine_window")


def _middle(length: int, symmetric: bool) -> float:
    return (length - 1 if symmetric or length == 1 else length) / 2


@composite
class exponential_window(_Window):
    """``exp(-abs(n - center) / tau)``; the centre of a periodic window may be chosen.

    >>> import twofold as torch
    >>> torch.signal.windows.exponential(5)
    tensor([0.1353, 0.3679, 1.0000, 0.3679, 0.1353])
    """

    functions = ("signal.windows.exponential",)
    compute = lambda center, tau, length, symmetric, dtype: convert(
        ops.exp(-ops.abs(_positions(length) - center) / tau), dtype
    )
    samples = lambda: _calls(3.0, 1.5)

    @staticmethod
    def call(
        M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, dtype: Any = float32
    ) -> Any:
        if sym and center is not None:
            raise ArgumentError(
                "a symmetric window has its centre in the middle", "Leave out center, or use sym=False."
            )
        middle = _middle(M, sym) if center is None else center
        return _declare("exponential_window", M, sym, dtype, middle, _positive("tau", tau))


@composite
class gaussian_window(_Window):
    """``exp(-((n - center) / std)**2 / 2)``.

    >>> import twofold as torch
    >>> torch.signal.windows.gaussian(5)
    tensor([0.1353, 0.6065, 1.0000, 0.6065, 0.1353])
    """

    functions = ("signal.windows.gaussian",)
    compute = lambda std, length, symmetric, dtype: convert(
        ops.exp(ops.square((_positions(length) - _middle(length, symmetric)) / std) * -0.5), dtype
    )
    samples = lambda: _calls(1.5)

    @staticmethod
    def call(M: int, *, std: float = 1.0, sym: bool = True, dtype: Any = float32) -> Any:
        return _declare("gaussian_window", M, sym, dtype, _positive("std", std))


def _kaiser(beta: Any, length: int, symmetric: bool, dtype: DType) -> Any:
    """With the scaled Bessel function, as the other overflows where beta is large."""
    steps = _steps(length, symmetric)
    if length == 1:
        return _bartlett(1, symmetric, dtype)
    position = _positions(length) * 2.0 / steps - 1.0
    width = ops.sqrt(ops.maximum(1.0 - position * position, 0.0)) * beta
    return convert(ops.i0e(width) / ops.i0e(beta) * ops.exp(width - beta), dtype)


@composite
class kaiser_window(_Window):
    """``i0(beta * sqrt(1 - (2 n / steps - 1)**2)) / i0(beta)``.

    >>> import twofold as torch
    >>> torch.signal.windows.kaiser(5)
    tensor([5.2773e-05, 2.1567e-01, 1.0000e+00, 2.1567e-01, 5.2773e-05])
    """

    functions = ("signal.windows.kaiser",)
    compute = lambda beta, *attrs: _kaiser(convert(beta, float64), *attrs)
    samples = lambda: _calls(8.0)

    @staticmethod
    def call(M: int, *, beta: float = 12.0, sym: bool = True, dtype: Any = float32) -> Any:
        if beta < 0:
            raise ArgumentError(f"beta is {beta}", "Use 0 or more.")
        return _declare("kaiser_window", M, sym, dtype, beta)
