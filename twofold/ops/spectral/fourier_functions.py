"""The functions of ``twofold.fft``, written with the three transforms of ``twofold.ops.spectral.fourier``.

``n`` or ``s`` says how many elements of each axis are transformed (cut off or filled up with zeros at the end).
``norm`` says which way is scaled by one over that number: "backward" (the default), "forward", or "ortho" for both
by the square root of it. Integers and bools become float32.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from twofold.dtypes import DType, as_dtype, float32, float64
from twofold.errors import ArgumentError, DTypeError, ShapeError
from twofold.ops.base import apply, composite, convert, iota, ops, publish
from twofold.ops.docstrings import shown
from twofold.ops.linear_algebra.matrices import to_dtype
from twofold.ops.promotion import autocast
from twofold.ops.samples import Sample
from twofold.ops.shape.shapes import many_axes
from twofold.ops.spectral.fourier import TURNED, resized


def _floating(x: Any, name: str) -> Any:
    dtype = x.dtype
    if dtype.kind in "biu":
        return x * 1.0
    if dtype.real.itemsize < 4:
        raise DTypeError(f"{name} is {dtype.name}", "Cast it with .to() to float32 first.")
    return x


def _real(x: Any) -> Any:
    if x.dtype.kind == "c":
        raise DTypeError(f"input is {x.dtype.name}, not real", "Use the function without the letter r or ih.")
    return _floating(x, "input")


def _complex(x: Any) -> Any:
    x = _floating(x, "input")
    return to_dtype(x, x.dtype.complex)


def _norm(norm: str | None) -> str:
    if norm not in (None, *TURNED):
        raise ArgumentError(f"norm={norm!r}", "Use 'backward', 'forward' or 'ortho'.")
    return norm or "backward"


def _axes_and_sizes(x: Any, s: Any, dim: Any) -> tuple[tuple[int, ...], list[int]]:
    """The axes to transform, in the order given, and their sizes (-1: as they are)."""
    ndim = len(x.shape)
    s = (s,) if isinstance(s, int) else s
    if dim is None and s is not None:
        if len(s) > ndim:
            raise ArgumentError(f"{len(s)} sizes for {ndim} axes", "Give at most one size for each axis.")
        dim = tuple(range(ndim - len(s), ndim))
    axes = many_axes(dim, ndim)
    if not ndim and axes:
        raise ShapeError("a scalar has no axis to transform", "Give at least one axis: unsqueeze it.")
    sizes = [-1] * len(axes) if s is None else [operator.index(size) for size in s]
    if len(sizes) != len(axes):
        raise ArgumentError(f"{len(sizes)} sizes for {len(axes)} axes", "Give as many sizes as axes.")
    return axes, [x.shape[axis] if size == -1 else size for axis, size in zip(axes, sizes, strict=True)]


def _checked(sizes: Sequence[int]) -> None:
    for size in sizes:
        if size < 1:
            raise ArgumentError(f"a transform of {size} elements", "Transform at least one.")


def _shaped(x: Any, axes: Sequence[int], sizes: Sequence[int]) -> Any:
    _checked(sizes)
    for axis, size in zip(axes, sizes, strict=True):
        x = resized(x, axis, size)
    return x


def _whole(x: Any, s: Any, dim: Any, forward: bool, norm: str) -> Any:
    x = _complex(x)
    axes, sizes = _axes_and_sizes(x, s, dim)
    x = _shaped(x, axes, sizes)
    return apply("complex_transform", x, attrs=(axes, forward, norm)) if axes else x


def _half(x: Any, s: Any, dim: Any, forward: bool, norm: str) -> Any:
    """The half transform over the last axis, then the whole one over the others; backward is its conjugate."""
    x = _real(x)
    axes, sizes = _axes_and_sizes(x, s, dim)
    if not axes:
        raise ArgumentError("no axis to transform", "Name at least one.")
    x = _shaped(x, axes, sizes)
    x = apply("half_transform", x, attrs=(axes[-1:], norm if forward else TURNED[norm]))
    if len(axes) > 1:
        x = apply("complex_transform", x, attrs=(axes[:-1], True, norm if forward else TURNED[norm]))
    return x if forward else ops.conj(x)


def _back(x: Any, s: Any, dim: Any, forward: bool, norm: str) -> Any:
    """Real values from a half: the whole transform over the other axes, then the real one over the last."""
    x = _complex(x)
    axes, sizes = _axes_and_sizes(x, s, dim)
    if not axes:
        raise ArgumentError("no axis to transform", "Name at least one.")
    given = None if s is None else (s if isinstance(s, int) else s[-1])
    last = 2 * (x.shape[axes[-1]] - 1) if given is None or given == -1 else sizes[-1]
    _checked([last])
    x = _shaped(x, axes, [*sizes[:-1], last // 2 + 1])
    if forward:
        x, norm = ops.conj(x), TURNED[norm]
    if len(axes) > 1:
        x = apply("complex_transform", x, attrs=(axes[:-1], False, norm))
    return apply("real_transform", x, attrs=(axes[-1:], norm, last))


Compute = Callable[[Any, Any, Any, bool, str], Any]


def _one(name: str, compute: Compute, forward: bool, doc: str) -> None:
    def function(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
        return compute(input, n, (operator.index(dim),), forward, _norm(norm))

    _publish(name, function, doc)


def _two(name: str, compute: Compute, forward: bool, doc: str) -> None:
    def function(input: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Any:
        return compute(input, s, dim, forward, _norm(norm))

    _publish(name, function, doc)


def _many(name: str, compute: Compute, forward: bool, doc: str) -> None:
    def function(input: Any, s: Any = None, dim: Any = None, norm: str | None = None) -> Any:
        return compute(input, s, dim, forward, _norm(norm))

    _publish(name, function, doc)


def _publish(name: str, function: Callable[..., Any], doc: str, policy: str = "float32") -> None:
    autocast(policy)(function)
    function.__name__ = function.__qualname__ = "fft." + name
    expression, result = _EXAMPLES[name]
    function.__doc__ = shown(doc, f">>> torch.fft.{name}({expression}", result)
    publish(function, ("fft." + name,))


_EXAMPLES = {
    "fft": ("torch.tensor([1.0, 2.0, 3.0, 4.0]))", "tensor([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j])"),
    "fft2": ("torch.tensor([[1.0, 2.0], [3.0, 4.0]]))", "tensor([[10.+0.j, -2.+0.j], [-4.+0.j, 0.+0.j]])"),
    "fftn": ("torch.ones(2, 2))", "tensor([[4.+0.j, 0.+0.j], [0.+0.j, 0.+0.j]])"),
    "ifft": ("torch.tensor([4.0, 0.0]))", "tensor([2.+0.j, 2.+0.j])"),
    "ifft2": ("torch.tensor([[4.0, 0.0], [0.0, 0.0]])).real", "tensor([[1., 1.], [1., 1.]])"),
    "ifftn": ("torch.tensor([[4.0, 0.0], [4.0, 0.0]])).real", "tensor([[2., 2.], [0., 0.]])"),
    "rfft": ("torch.tensor([1.0, 2.0, 3.0, 4.0]))", "tensor([10.+0.j, -2.+2.j, -2.+0.j])"),
    "rfft2": ("torch.ones(2, 3)).real", "tensor([[6., 0.], [0., 0.]])"),
    "rfftn": ("torch.ones(2, 2, 3)).shape", "twofold.Size([2, 2, 2])"),
    "irfft": ("torch.tensor([4.0, 0.0, 0.0]))", "tensor([1., 1., 1., 1.])"),
    "irfft2": ("torch.tensor([[6.0, 0.0], [0.0, 0.0]]), (2, 3))", "tensor([[1., 1., 1.], [1., 1., 1.]])"),
    "irfftn": ("torch.tensor([[4.0, 0.0], [4.0, 0.0]]))", "tensor([[2., 2.], [0., 0.]])"),
    "hfft": ("torch.tensor([2.0, 1.0, 0.0]))", "tensor([4., 2., 0., 2.])"),
    "hfft2": ("torch.tensor([[1.0, 2.0], [3.0, 4.0]]))", "tensor([[10., -2.], [-4., 0.]])"),
    "hfftn": ("torch.ones(2, 2))", "tensor([[4., 0.], [0., 0.]])"),
    "ihfft": ("torch.tensor([4.0, 2.0, 0.0, 2.0])).real", "tensor([2., 1., 0.])"),
    "ihfft2": ("torch.tensor([[10.0, -2.0], [-4.0, 0.0]])).real", "tensor([[1., 2.], [3., 4.]])"),
    "ihfftn": ("torch.tensor([[4.0, 0.0], [4.0, 0.0]])).real", "tensor([[2., 2.], [0., 0.]])"),
    "fftshift": ("torch.fft.fftfreq(4))", "tensor([-0.5000, -0.2500,  0.0000,  0.2500])"),
    "ifftshift": ("torch.tensor([-2, -1, 0, 1]))", "tensor([ 0,  1, -2, -1])"),
}
"""For each function an expression behind its name and the parenthesis, and what it prints."""


_SETTINGS = """

Each axis is cut off or filled up with zeros to the size given, if any. ``norm``: "backward" (the default) scales
the inverse by one over that size, "forward" the other way, "ortho" both by its square root. Raises ArgumentError
for another ``norm``, DTypeError for half types.
"""

for _prefix, _compute, _forward, _what in (
    ("", _whole, True, "The discrete Fourier transform"),
    ("i", _whole, False, "The inverse discrete Fourier transform"),
    ("r", _half, True, "The first half of the discrete Fourier transform of real values"),
    ("ir", _back, False, "Real values from the first half of their discrete Fourier transform"),
    ("h", _back, True, "The real discrete Fourier transform of values of which the first half is given"),
    ("ih", _half, False, "The first half of the inverse discrete Fourier transform of real values"),
):
    _one(_prefix + "fft", _compute, _forward, _what + " along ``dim``." + _SETTINGS)
    _two(_prefix + "fft2", _compute, _forward, _what + " over two axes." + _SETTINGS)
    _many(_prefix + "fftn", _compute, _forward, _what + " over ``dim``, by default all axes." + _SETTINGS)


def _frequencies(spacing: Any, count: int, dtype: DType, half: bool) -> Any:
    position = iota((count // 2 + 1 if half else count,))
    if not half:
        position = ops.where(ops.greater_equal(position, (count + 1) // 2), position - count, position)
    return convert(convert(position, dtype) * (1 / (spacing * count)), dtype)


def _count(n: int) -> int:
    count = operator.index(n)
    _checked([count])
    return count


def _spaced() -> list[Sample]:
    return [Sample((n, float32), (numpy.array(0.5),), (float64,)) for n in (1, 4, 5)]


@composite
class frequencies:
    """The frequencies of the elements of a transform of ``n`` samples that are ``d`` apart.

    >>> import twofold as torch
    >>> torch.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """

    functions = ("fft.fftfreq",)
    methods = ()
    creates = "default"
    differentiable = False
    compute = lambda spacing, count, dtype: _frequencies(spacing, count, dtype, False)
    reference = lambda spacing, count, dtype: numpy.fft.fftfreq(count, spacing)
    samples = lambda: _spaced()

    @staticmethod
    def call(n: int, d: float = 1.0, *, dtype: Any = None) -> Any:
        return apply("frequencies", float(d), attrs=(_count(n), as_dtype(dtype or float32)))


@composite
class half_frequencies:
    """The frequencies of the elements of the half transform of ``n`` real samples that are ``d`` apart.

    >>> import twofold as torch
    >>> torch.fft.rfftfreq(4, d=0.5)
    tensor([0.0000, 0.5000, 1.0000])
    """

    functions = ("fft.rfftfreq",)
    methods = ()
    creates = "default"
    differentiable = False
    compute = lambda spacing, count, dtype: _frequencies(spacing, count, dtype, True)
    reference = lambda spacing, count, dtype: numpy.fft.rfftfreq(count, spacing)
    samples = lambda: _spaced()

    @staticmethod
    def call(n: int, d: float = 1.0, *, dtype: Any = None) -> Any:
        return apply("half_frequencies", float(d), attrs=(_count(n), as_dtype(dtype or float32)))


def _shift(name: str, halves: Callable[[int], int], doc: str) -> None:
    def function(input: Any, dim: Any = None) -> Any:
        axes = many_axes(dim, len(input.shape))
        if not axes:
            return input
        return ops.roll(input, tuple(halves(input.shape[axis]) for axis in axes), axes)

    _publish(name, function, doc, "")


_shift(
    "fftshift",
    lambda size: size // 2,
    "The elements rolled so that frequency 0 is in the middle of each axis.",
)
_shift("ifftshift", lambda size: (size + 1) // 2, "What undoes ``fftshift``.")
