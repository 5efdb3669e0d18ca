"""References of the public functions on signals and images: Fourier, windows, padding, pooling, resizing."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy
from array_entries import mirrored, transform
from declare import call, complexes, normal, public, uniform
from image_entries import sampled, taps
from window_entries import adaptively, flat_index, pooled, windows

# Fourier


def sized(x: Any, axes: Any, sizes: Any) -> Any:
    """``x`` cut off or filled up with zeros along axes."""
    for axis, size in zip(axes, sizes):
        if size is None or size == -1:
            continue
        x = numpy.take(x, range(min(size, x.shape[axis])), axis)
        missing = size - x.shape[axis]
        x = numpy.pad(x, [(0, missing if k == axis % x.ndim else 0) for k in range(x.ndim)])
    return x


def axes_of(x: Any, s: Any, dim: Any) -> tuple[Any, Any]:
    """The axes to transform and the sizes asked for."""
    if dim is None:
        dim = tuple(range(x.ndim)) if s is None else tuple(range(x.ndim - len(s), x.ndim))
    dim = (dim,) if isinstance(dim, int) else tuple(dim)
    return tuple(axis % x.ndim for axis in dim), [None] * len(dim) if s is None else list(s)


def spectrum(kind: str, x: Any, s: Any = None, dim: Any = None, norm: Any = None) -> Any:
    """Every transform by the matrix of the plain one."""
    axes, sizes = axes_of(x, s, dim)
    *before, last = axes
    if kind in ("fft", "ifft"):
        return transform(sized(x, axes, sizes), axes, kind == "fft", norm)
    if kind == "rfft":
        x = transform(sized(x, axes, sizes), axes, True, norm)
        return numpy.take(x, range(x.shape[last] // 2 + 1), last)
    if kind == "ihfft":
        x = transform(sized(x, axes, sizes), axes, False, norm)
        return numpy.take(x, range(x.shape[last] // 2 + 1), last)
    size = 2 * (x.shape[last] - 1) if sizes[-1] is None else sizes[-1]
    x = sized(x, (*before, last), [*sizes[:-1], size // 2 + 1])
    if kind == "irfft":
        x = transform(x, before, False, norm)
        return transform(mirrored(x, last, size), (last,), False, norm).real
    x = transform(x, before, True, norm)  # hfft: the forward transform of a Hermitian signal
    return transform(mirrored(x, last, size), (last,), True, norm).real


def line(kind: str) -> Any:
    """The transform along one axis."""
    return lambda x, n=None, dim=-1, norm=None: spectrum(kind, x, None if n is None else (n,), dim, norm)


def plane(kind: str) -> Any:
    """The transform along two axes."""
    return lambda x, s=None, dim=(-2, -1), norm=None: spectrum(kind, x, s, dim, norm)


def space(kind: str) -> Any:
    """The transform along any axes."""
    return lambda x, s=None, dim=None, norm=None: spectrum(kind, x, s, dim, norm)


NORMS = ("forward", "backward", "ortho")


def calls_of(kind: str, form: str) -> Any:
    """Calls of one of the functions."""
    make = normal if kind in ("rfft", "ihfft") else complexes

    def calls() -> Any:
        if form == "":
            return [
                *[call(make(2, 5), norm=norm) for norm in NORMS],
                call(make(2, 6)),
                call(make(4, 3), 6, 0),
                call(make(2, 7), n=4),
            ]
        some = [call(make(3, 4, 5)), call(make(2, 3, 4), norm="ortho"), call(make(3, 4), (4, 3), (0, 1))]
        return [*some, call(make(4, 3), dim=(1, 0), norm="forward"), call(make(3, 4), s=(2, 5))]

    return calls


for _kind in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    public(f"fft.{_kind}", line(_kind), calls_of(_kind, ""))
    public(f"fft.{_kind}2", plane(_kind), calls_of(_kind, "2"))
    public(f"fft.{_kind}n", space(_kind), calls_of(_kind, "n"))
public("fft.fft", line("fft"), lambda: [call(normal(2, 5)), call(normal(4), 3)])
public("fft.fftn", space("fft"), lambda: [call(normal(3, 2, 4), dim=(0, 2))])


def _shifted(sign: int) -> Any:
    def rule(x: Any, dim: Any = None) -> Any:
        axes = range(x.ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
        for axis in axes:
            half = x.shape[axis] // 2
            size = x.shape[axis]
            x = numpy.take(x, [(k - sign * half) % size for k in range(size)], axis)
        return x

    return rule


SHIFTS = lambda: [call(normal(5)), call(normal(4, 5)), call(normal(4, 5), 1), call(normal(4, 5, 3), (0, 2))]
public("fft.fftshift", _shifted(1), SHIFTS)
public("fft.ifftshift", _shifted(-1), SHIFTS)


def _whole_window(window: Any, n_fft: int, win_length: Any) -> Any:
    length = n_fft if win_length is None else win_length
    window = numpy.ones(length) if window is None else window
    left = (n_fft - length) // 2
    return numpy.pad(window, (left, n_fft - length - left))


def _stft(
    x: Any,
    n_fft: int,
    hop_length: Any = None,
    win_length: Any = None,
    window: Any = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: Any = None,
    **options: Any,
) -> Any:
    hop = n_fft // 4 if hop_length is None else hop_length
    weights = _whole_window(window, n_fft, win_length)
    batched = x if x.ndim == 2 else x[None]
    if center:
        batched = numpy.pad(batched, ((0, 0), (n_fft // 2, n_fft // 2)), pad_mode)
    count = (batched.shape[1] - n_fft) // hop + 1
    frames = numpy.stack([batched[:, k * hop : k * hop + n_fft] * weights for k in range(count)], -1)
    found = transform(frames, (1,), True, "ortho" if normalized else "backward")
    if (onesided is None and x.dtype.kind != "c") or onesided:
        found = found[:, : n_fft // 2 + 1]
    return found if x.ndim == 2 else found[0]


public(
    "stft",
    _stft,
    lambda: [
        call(normal(40), 8, return_complex=True),
        call(normal(2, 40), 8, 3, window=numpy.hanning(8), return_complex=True),
        call(normal(40), 8, win_length=6, window=numpy.hamming(6), center=False, return_complex=True),
        call(normal(40), 9, normalized=True, onesided=False, pad_mode="constant", return_complex=True),
        call(complexes(40), 8, return_complex=True),
    ],
)


def _istft_calls() -> Any:
    window = numpy.hanning(10)[1:-1]
    made = []
    for x in (normal(40), normal(2, 40)):
        made.append(call(_stft(x, 8, 2, window=window), 8, 2, window=window, length=40))
        made.append(call(_stft(x, 8, 4), 8, 4, length=36))
    made.append(call(_stft(normal(40), 8, 4, normalized=True), 8, 4, normalized=True))
    made.append(call(_stft(normal(40), 8, 2, center=False, window=window), 8, 2, window=window, center=False))
    made.append(call(_stft(complexes(40), 8, 4), 8, 4, onesided=False, return_complex=True))
    return made


def _istft(
    x: Any,
    n_fft: int,
    hop_length: Any = None,
    win_length: Any = None,
    window: Any = None,
    center: bool = True,
    normalized: bool = False,
    onesided: Any = None,
    length: Any = None,
    return_complex: bool = False,
) -> Any:
    """Each was made by ``_stft`` from these signals, and comes back."""
    shape = (40,) if x.ndim == 2 else (2, 40)
    signal = complexes(40) if return_complex else normal(*shape)
    return signal[..., : 40 if length is None else length]


public("istft", _istft, _istft_calls)

# Padding


def _pad(x: Any, pad: Any, mode: str = "constant", value: Any = None) -> Any:
    sides = [(pad[2 * k], pad[2 * k + 1]) for k in range(len(pad) // 2)][::-1]
    for axis, (low, high) in enumerate(sides, x.ndim - len(sides)):
        size = x.shape[axis]
        positions = numpy.arange(-low, size + high)
        inside = (positions >= 0) & (positions < size)
        if mode == "reflect":
            positions = (
                abs((positions - (size - 1)) % (2 * (size - 1)) - (size - 1)) if size > 1 else positions * 0
            )
        elif mode == "circular":
            positions = positions % size
        else:
            positions = positions.clip(0, size - 1)
        x = numpy.take(x, positions, axis)
        if mode == "constant":
            keep = inside.reshape([-1 if k == axis else 1 for k in range(x.ndim)])
            x = numpy.where(keep, x, 0.0 if value is None else value)
    return x


public(
    "pad",
    _pad,
    lambda: [
        call(normal(2, 3), (1, 2)),
        call(normal(2, 3), (1, 2, 0, 1), value=5.0),
        call(normal(2, 5), (-1, -2)),
        call(normal(1, 2, 5), (2, 1), mode="reflect"),
        call(normal(1, 2, 5), (2, 1), "replicate"),
        call(normal(1, 2, 5), (2, 4), mode="circular"),
        call(normal(1, 1, 4, 5), (2, 1, 3, 0), mode="reflect"),
        call(normal(1, 1, 4, 5), (2, 1, 3, 4), mode="circular"),
    ],
)
public(
    "constant_pad_nd",
    lambda x, pad, value=0: _pad(x, pad, "constant", value),
    lambda: [call(normal(2, 3), (1, 2)), call(normal(2, 3), (1, -1, 0, 1), 5.0)],
)

# Pooling


def many(value: Any, count: int) -> tuple[int, ...]:
    """One number for each axis."""
    return (value,) * count if isinstance(value, int) else tuple(value) * (count if len(value) == 1 else 1)


def spans_of(x: Any, count: int, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool) -> Any:
    """The windows of each axis, as the entries' attributes say them."""
    stride = kernel if stride is None else stride
    found = []
    sizes = x.shape[x.ndim - count :]
    for size, k, s, p, d in zip(
        sizes, *(many(value, count) for value in (kernel, stride, padding, dilation))
    ):
        free = size + 2 * p - d * (k - 1) - 1
        windows_ = (math.ceil(free / s) if ceil else free // s) + 1
        while (windows_ - 1) * s >= size + p:  # the last window begins inside
            windows_ -= 1
        found.append(SimpleNamespace(windows=windows_, kernel=k, stride=s, dilation=d, low=p))
    return found


def _max_pool(count: int) -> Any:
    def rule(
        x: Any,
        kernel: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        spans = spans_of(x, count, kernel, stride, padding, dilation, ceil_mode)
        values = pooled(x, spans, lambda positions: max(x[position] for position in positions))
        if not return_indices:
            return values
        best = lambda positions: flat_index(max(positions, key=lambda position: x[position]), x.shape, count)
        return values, pooled(x, spans, best, numpy.int64)

    return rule


def _avg_pool(count: int) -> Any:
    def rule(
        x: Any,
        kernel: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: Any = None,
    ) -> Any:
        spans = spans_of(x, count, kernel, stride, padding, 1, ceil_mode)
        sums = pooled(x, spans, lambda positions: sum(x[position] for position in positions))
        sizes = x.shape[x.ndim - count :]
        divisors = numpy.zeros(sums.shape)
        for at, positions in windows(x, spans):
            whole = 1
            for number, span, size in zip(at[x.ndim - count :], spans, sizes):
                start = number * span.stride - span.low
                whole *= min(start + span.kernel, size + span.low) - start
            divisors[at] = whole if count_include_pad else len(positions)
        return sums / (divisors if divisor_override is None else divisor_override)

    return rule


def _pool_calls(count: int, maximum: bool) -> Any:
    shape = (2, 2, 7, 6, 5)[: 2 + count]

    def calls() -> Any:
        found = [
            call(normal(*shape), 2),
            call(normal(*shape), 3, 2, 1),
            call(normal(*shape[1:]), (3, 2, 2)[:count], stride=(2, 1, 2)[:count]),
            call(normal(*shape), 2, 3, ceil_mode=True),
            call(normal(*shape), 3, 2, 1, ceil_mode=True),
        ]
        if maximum:
            found += [
                call(normal(*shape), 2, dilation=2, stride=1),
                call(normal(*shape), 3, 2, 1, return_indices=True),
            ]
        else:
            found += [
                call(normal(*shape), 3, 2, 1, count_include_pad=False),
                call(normal(*shape), 3, 2, 1, divisor_override=5),
                call(normal(*shape), 3, 2, 1, ceil_mode=True, count_include_pad=False),
                call(normal(*shape), 2, divisor_override=-3),
            ]
        return found

    return calls


def _lp_pool(count: int) -> Any:
    def rule(x: Any, p: float, kernel: Any, stride: Any = None, ceil_mode: bool = False) -> Any:
        spans = spans_of(x, count, kernel, stride, 0, 1, ceil_mode)
        sums = pooled(x, spans, lambda positions: sum(x[position] ** p for position in positions))
        if ceil_mode:  # PyTorch scales a mean, whose last window is smaller, by the whole kernel
            kernels = math.prod(many(kernel, count))
            sums = sums / pooled(x, spans, len) * kernels
        return (numpy.sign(sums) * numpy.maximum(abs(sums), 0)) ** (1 / p)

    return rule


def _adaptive(count: int, maximum: bool) -> Any:
    def rule(x: Any, wanted: Any, return_indices: bool = False) -> Any:
        wanted = many(wanted, count) if isinstance(wanted, int) else wanted
        wanted = [size if one is None else one for one, size in zip(wanted, x.shape[x.ndim - count :])]
        if not maximum:
            return adaptively(
                x, wanted, lambda positions: sum(x[position] for position in positions) / len(positions)
            )
        values = adaptively(x, wanted, lambda positions: max(x[position] for position in positions))
        if not return_indices:
            return values
        best = lambda positions: flat_index(max(positions, key=lambda position: x[position]), x.shape, count)
        return values, adaptively(x, wanted, best, numpy.int64)

    return rule


def _adaptive_calls(count: int, maximum: bool) -> Any:
    shape = (2, 2, 7, 6, 5)[: 2 + count]

    def calls() -> Any:
        found = [
            call(normal(*shape), 3),
            call(normal(*shape[1:]), (3, 6, 2)[:count]),
            call(normal(*shape), 1),
        ]
        if count > 1:
            found.append(call(normal(*shape), (2, None, 3)[:count]))
        return found + ([call(normal(*shape), 3, return_indices=True)] if maximum else [])

    return calls


def _unpool(count: int) -> Any:
    def rule(
        x: Any, positions: Any, kernel: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
    ) -> Any:
        steps = many(kernel if stride is None else stride, count)
        usual = [
            (size - 1) * step - 2 * pad + k
            for size, step, pad, k in zip(x.shape[-count:], steps, many(padding, count), many(kernel, count))
        ]
        sizes = usual if output_size is None else list(output_size)[-count:]
        found = numpy.zeros((*x.shape[:-count], *sizes))
        for at in numpy.ndindex(*x.shape):
            found[(*at[: x.ndim - count], *numpy.unravel_index(positions[at], sizes))] = x[at]
        return found

    return rule


def _unpool_calls(count: int) -> Any:
    shape = (2, 2, 6, 4, 4)[: 2 + count]
    pooling = _max_pool(count)

    def calls() -> Any:
        values, positions = pooling(normal(*shape), 2, return_indices=True)
        wide = [*shape[:2], *[size + 1 for size in shape[2:]]]
        more, where = pooling(normal(*wide), 2, return_indices=True)
        return [
            call(values, positions, 2),
            call(values, positions, 2, 2),
            call(more, where, 2, output_size=wide[2:]),
        ]

    return calls


for _count in (1, 2, 3):
    public(f"max_pool{_count}d", _max_pool(_count), _pool_calls(_count, True))
    public(f"avg_pool{_count}d", _avg_pool(_count), _pool_calls(_count, False))
    public(f"adaptive_avg_pool{_count}d", _adaptive(_count, False), _adaptive_calls(_count, False))
    public(f"adaptive_max_pool{_count}d", _adaptive(_count, True), _adaptive_calls(_count, True))
    public(f"max_unpool{_count}d", _unpool(_count), _unpool_calls(_count))
    public(
        f"lp_pool{_count}d",
        _lp_pool(_count),
        lambda shape=(2, 2, 7, 6, 5)[: 2 + _count]: [
            call(uniform(0.1, 2, *shape), 2, 2),
            call(uniform(0.1, 2, *shape), 3.0, 3, 2),
            call(uniform(0.1, 2, *shape), 1, 2, 3),
        ],
    )


def _pool_backward(
    ct: Any, x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, indices: Any
) -> Any:
    found = numpy.zeros_like(x)
    for at in numpy.ndindex(*ct.shape):
        found[(*at[:-2], *numpy.unravel_index(indices[at], x.shape[-2:]))] += ct[at]
    return found


def _backward_calls() -> Any:
    x = normal(2, 2, 5, 6)
    _, positions = _max_pool(2)(x, 3, 2, 1, return_indices=True)
    return [call(normal(*positions.shape), x, 3, 2, 1, 1, False, positions)]


public("max_pool2d_with_indices_backward", _pool_backward, _backward_calls)

# Resizing


def resized(x: Any, sizes: Any, mode: str, placing: str, scales: Any, antialias: bool) -> Any:
    """The last axes in other sizes, by the matrix of every axis."""
    first = x.ndim - len(sizes)
    for k, (wanted, scale) in enumerate(zip(sizes, scales)):
        size = x.shape[first + k]
        matrix = numpy.zeros((wanted, size))
        for at in range(wanted):
            for position, weight in taps(size, wanted, at, mode, placing, scale, antialias):
                matrix[at, position] += weight
        x = numpy.moveaxis(numpy.tensordot(matrix, x, (1, first + k)), 0, first + k)
    return x


def _interpolate(
    x: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: Any = None,
    recompute_scale_factor: Any = None,
    antialias: bool = False,
) -> Any:
    count = x.ndim - 2
    if mode == "area":
        return _adaptive(count, False)(x, size)
    scales: Any = [None] * count
    if scale_factor is not None:
        given = (scale_factor,) * count if isinstance(scale_factor, (int, float)) else scale_factor
        size = [math.floor(n * s) for n, s in zip(x.shape[2:], given)]
        scales = scales if recompute_scale_factor else given
    size = many(size, count) if isinstance(size, int) else size
    return resized(x, size, mode, "corners" if align_corners else "edges", scales, antialias)


def _image_calls() -> Any:
    images = {1: normal(1, 2, 5), 2: normal(1, 2, 4, 5), 3: normal(1, 1, 3, 4, 2)}
    made = [call(images[n], size=7) for n in images]
    made += [call(images[n], scale_factor=1.7) for n in images]
    for n, mode in ((1, "linear"), (2, "bilinear"), (2, "bicubic"), (3, "trilinear")):
        made.append(call(images[n], (7, 3, 5)[:n], mode=mode))
        made.append(call(images[n], (7, 3, 5)[:n], mode=mode, align_corners=True))
        made.append(call(images[n], scale_factor=(1.7, 0.6, 2.0)[:n], mode=mode, recompute_scale_factor=True))
        made.append(call(images[n], scale_factor=(1.7, 0.6, 2.0)[:n], mode=mode))
    made.append(call(images[2], (2, 3), mode="area"))
    made.append(call(images[2], (7, 3), mode="nearest-exact"))
    made.append(call(images[2], (2, 3), mode="bilinear", antialias=True))
    made.append(call(images[2], (2, 3), mode="bicubic", antialias=True))
    return made


public("interpolate", _interpolate, _image_calls)
public(
    "upsample",
    _interpolate,
    lambda: [
        call(normal(1, 2, 4), 7),
        call(normal(1, 2, 4, 3), scale_factor=2, mode="bilinear", align_corners=True),
    ],
)
public(
    "upsample_nearest",
    _interpolate,
    lambda: [call(normal(1, 2, 4, 3), 7), call(normal(1, 2, 4), scale_factor=2)],
)
public(
    "upsample_bilinear",
    lambda x, size=None, scale_factor=None: _interpolate(x, size, scale_factor, "bilinear", True),
    lambda: [call(normal(1, 2, 4, 3), (7, 5)), call(normal(1, 2, 4, 3), scale_factor=2)],
)


def _antialiased(mode: str) -> Any:
    return lambda x, sizes, align_corners, scale_factors=None: resized(
        x, sizes, mode, "corners" if align_corners else "edges", [None] * 2, True
    )


AA_CALLS = lambda: [call(normal(1, 2, 6, 7), (3, 4), False), call(normal(1, 2, 3, 4), (5, 6), False)]
public("_upsample_bilinear2d_aa", _antialiased("bilinear"), AA_CALLS)
public("_upsample_bicubic2d_aa", _antialiased("bicubic"), AA_CALLS)


def _grid_sampler(x: Any, grid: Any, mode: int, padding: int, align: bool) -> Any:
    names = ("bilinear", "nearest", "bicubic")[mode], ("zeros", "border", "reflection")[padding]
    found = numpy.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for at in numpy.ndindex(*grid.shape[:-1]):
        found[(at[0], slice(None), *at[1:])] = sampled(x[at[0]], grid[at][::-1].tolist(), *names, align)
    return found


PLANES = lambda: [
    call(normal(2, 2, 4, 5), 0.8 * normal(2, 3, 2, 2), mode, padding, align)
    for mode in (0, 1, 2)
    for padding in (0, 1, 2)
    for align in (False, True)
]
SPACES = lambda: [
    call(normal(1, 2, 3, 4, 5), 0.8 * normal(1, 2, 2, 2, 3), mode, padding, False)
    for mode in (0, 1)
    for padding in (0, 1, 2)
]
public("grid_sampler", _grid_sampler, lambda: [*PLANES(), *SPACES()])
public("grid_sampler_2d", _grid_sampler, PLANES)
public("grid_sampler_3d", _grid_sampler, SPACES)
