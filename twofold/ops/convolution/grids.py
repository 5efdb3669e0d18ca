"""Images sampled at the positions of a grid, and grids of affine maps."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy

from twofold.dtypes import int32, int64
from twofold.errors import ArgumentError, DTypeError, ShapeError
from twofold.ir.sizes import is_symbolic, real
from twofold.ops.base import apply, composite, convert, iota, ops, public, strong
from twofold.ops.convolution.interpolation import cubic_weight
from twofold.ops.docstrings import shown
from twofold.ops.examples import example
from twofold.ops.reduction.softmax import floating
from twofold.ops.shape.movement import slice_axis

MODES = ("bilinear", "nearest", "bicubic")
PADDINGS = ("zeros", "border", "reflection")


class Tap(NamedTuple):
    """One neighbour on one axis: its number, its weight, and whether the input has it (None: yes)."""

    index: Any
    weight: Any
    inside: Any


def _limited(position: Any, size: int) -> Any:
    """Positions limited to the axis; those on or beyond its ends pass no gradient on."""
    free = ops.logical_and(ops.greater(position, 0), ops.less(position, size - 1))
    return ops.where(free, position, ops.stop_gradient(ops.clamp(position, 0.0, real(size - 1))))


def _reflected(position: Any, low: float, high: float) -> Any:
    """Positions thrown back at ``low`` and ``high`` until they lie between."""
    if low == high:
        return position * 0
    away, span = ops.abs(position - low), high - low
    turns = ops.floor(away / span)
    rest = away - turns * span
    even = ops.equal(turns - 2 * ops.floor(turns / 2), 0)
    return ops.where(even, rest + low, span - rest + low)


def _padded(position: Any, size: int, padding: str, align: bool) -> Any:
    """Positions after the rule for those outside."""
    if padding == "zeros":
        return position
    if padding == "reflection":
        low, high = (0.0, size - 1.0) if align else (-0.5, size - 0.5)
        position = _reflected(position, low, high)
    return _limited(position, size)


def _tap(position: Any, weight: Any, size: int, padding: str, number: Any) -> Tap:
    """The tap at whole ``position``, whose index is of dtype ``number``."""
    inside = None
    if padding == "zeros":
        inside = ops.logical_and(ops.greater_equal(position, 0), ops.less_equal(position, size - 1))
    return Tap(ops.clamp(convert(position, number), 0, size - 1), weight, inside)


def _taps(coordinate: Any, size: int, mode: str, padding: str, align: bool, number: Any) -> list[Tap]:
    """The neighbours on one axis of positions given in -1 ... 1."""
    position = (coordinate + 1) * ((size - 1) / 2) if align else ((coordinate + 1) * size - 1) / 2
    if mode == "bicubic":
        below = ops.floor(position)
        t = position - ops.stop_gradient(below)
        wholes = [ops.stop_gradient(_padded(below + (k - 1), size, padding, align)) for k in range(4)]
        return [
            _tap(whole, cubic_weight(t, k, -0.75), size, padding, number) for k, whole in enumerate(wholes)
        ]
    position = _padded(position, size, padding, align)
    if mode == "nearest":
        tap = _tap(ops.round(position), position, size, padding, number)
        # a weight of 1 that reads the position, so that its gradient is 0 and not missing
        return [tap._replace(weight=ops.where(ops.equal(tap.index, tap.index), 1.0, position))]
    below = ops.stop_gradient(ops.floor(position))
    t = position - below
    return [_tap(below, 1 - t, size, padding, number), _tap(below + 1, t, size, padding, number)]


def _both(a: Any, b: Any, join: Any) -> Any:
    return b if a is None else a if b is None else join(a, b)


def _sampled(x: Any, grid: Any, mode: str, padding: str, align: bool) -> Any:
    count, lead, sizes = x.ndim - 2, x.shape[:2], x.shape[2:]
    positions = prod(grid.shape[1:-1])
    flat = ops.permute(ops.reshape(grid, (grid.shape[0], positions, count)), (0, 2, 1))
    few = not is_symbolic(sizes) and prod(sizes) < 2**31
    number = int32 if few else int64
    # the last number of a position belongs to the first axis
    axes = [
        _taps(slice_axis(flat, 1, count - 1 - k, 1), size, mode, padding, align, number)
        for k, size in enumerate(sizes)
    ]
    indices, weights = [], []
    for taps in product(*axes):
        index, weight, inside = taps[0]
        for size, tap in zip(sizes[1:], taps[1:], strict=True):
            index = index * size + tap.index
            weight = weight * tap.weight
            inside = _both(inside, tap.inside, ops.logical_and)
        indices.append(index if inside is None else ops.where(inside, index, -1))
        weights.append(weight)
    image = ops.reshape(x, (*lead, prod(sizes)))
    found = apply("tap_sum", image, *indices, *weights)
    return ops.reshape(found, (*lead, *grid.shape[1:-1]))


def _grid(*shape: int) -> Any:
    generator = numpy.random.default_rng(4)
    return generator.uniform(-1.4, 1.4, shape).astype(numpy.float32)


@composite
class grid_sample:
    """Images ``(batch, channels, ...)`` at positions ``(batch, ..., axes)`` between -1 and 1, last axis first.

    ``mode``: ``"bilinear"``, ``"nearest"`` or ``"bicubic"`` (2 axes). ``padding_mode`` says what lies outside:
    ``"zeros"``, the nearest ``"border"``, or the ``"reflection"``. -1 and 1 are the centres of the outermost
    elements with ``align_corners``, otherwise their edges.
    Source: Jaderberg et al., Spatial Transformer Networks, 2015, section 3.3.

    >>> import twofold as torch
    >>> image = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    >>> positions = torch.tensor([[[[0.0, 0.0], [1.0, -1.0]]]])
    >>> torch.nn.functional.grid_sample(image, positions, align_corners=True)
    tensor([[[[2.5000, 2.0000]]]])
    """

    autocast = "float32"

    def call(
        input: Any,
        grid: Any,
        mode: str = "bilinear",
        padding_mode: str = "zeros",
        align_corners: bool | None = None,
    ) -> Any:
        if mode not in MODES:
            raise ArgumentError(f"mode {mode!r}", "Use 'bilinear', 'nearest' or 'bicubic'.")
        if padding_mode not in PADDINGS:
            raise ArgumentError(f"padding_mode {padding_mode!r}", "Use 'zeros', 'border' or 'reflection'.")
        return apply("grid_sample", input, grid, attrs=(mode, padding_mode, bool(align_corners)))

    def compute(x: Any, grid: Any, mode: str, padding: str, align: bool) -> Any:
        x, grid = strong(x), strong(grid)
        count = x.ndim - 2
        if (
            count not in (2, 3)
            or grid.ndim != x.ndim
            or grid.shape[-1] != count
            or grid.shape[0] != x.shape[0]
        ):
            raise ShapeError(
                f"a grid of shape {grid.shape} for an input of shape {x.shape}",
                "Use (batch, channels, height, width) with (batch, height, width, 2), or one axis more and 3.",
            )
        if mode == "bicubic" and count != 2:
            raise ShapeError(f"mode 'bicubic' for {count} axes", "It takes inputs with 4 axes.")
        if x.dtype is not grid.dtype:
            raise DTypeError(
                f"input of {x.dtype.name} with grid of {grid.dtype.name}",
                "Expected input and grid to have same dtype.",
            )
        if 0 in x.shape[2:]:
            raise ShapeError(f"an input of shape {x.shape}", "Its spatial sizes must be at least 1.")
        return convert(_sampled(floating(x), floating(grid), mode, padding, align), x.dtype)

    samples = lambda: (
        [
            example((mode, padding, align), (2, 3, 4, 5), _grid(2, 3, 2, 2))
            for mode in MODES
            for padding, align in (
                ("zeros", False),
                ("border", True),
                ("reflection", False),
                ("reflection", True),
            )
        ]
        + [
            example((mode, padding, False), (1, 2, 3, 4, 2), _grid(1, 2, 3, 2, 3))
            for mode in MODES[:2]
            for padding in PADDINGS
        ]
    )


def _sampler(name: str, count: int) -> Any:
    def call(input: Any, grid: Any, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Any:
        if count and len(input.shape) != count + 2:
            raise ShapeError(f"an input with {len(input.shape)} axes", f"Use {count + 2} axes.")
        return ops.grid_sample(input, grid, MODES[interpolation_mode], PADDINGS[padding_mode], align_corners)

    axes = count or 2
    shape = ", ".join("1" * (axes + 1))
    call.__name__ = name
    call.__doc__ = shown(
        "``grid_sample`` with its modes numbered: 0 bilinear, 1 nearest, 2 bicubic; 0 zeros, 1 border, 2 reflection.",
        f">>> image = torch.tensor([1.0, 2.0]).reshape({shape}, 2)",
        f">>> positions = torch.tensor({[0.0] * axes}).reshape({shape}, {axes})",
        f">>> torch.{name}(image, positions, 0, 0, True).flatten()",
        "tensor([1.5000])",
    )
    return call


for _name, _count in (("grid_sampler", 0), ("grid_sampler_2d", 2), ("grid_sampler_3d", 3)):
    public(_name)(_sampler(_name, _count))


@composite
class affine_grid:
    """The positions ``theta @ (x, y, 1)`` of a map for ``grid_sample``; ``size`` is that of its result.

    ``theta`` is ``(batch, 2, 3)`` for a size ``(batch, channels, height, width)``, or ``(batch, 3, 4)`` with depth.

    >>> import twofold as torch
    >>> torch.nn.functional.affine_grid(torch.eye(2, 3)[None], (1, 1, 1, 2), align_corners=True)
    tensor([[[[-1.,  0.],
              [ 1.,  0.]]]])
    """

    functions = ("affine_grid", "affine_grid_generator")

    def call(theta: Any, size: Any, align_corners: bool | None = None) -> Any:
        return apply("affine_grid", theta, attrs=(tuple(int(one) for one in size), bool(align_corners)))

    def compute(theta: Any, size: tuple[int, ...], align: bool) -> Any:
        theta = floating(theta)
        count = len(size) - 2
        if count not in (2, 3) or theta.shape != (size[0], count, count + 1):
            raise ShapeError(
                f"theta of shape {theta.shape} for a result of size {size}",
                f"Give it the shape {(size[0], count, count + 1)}."
                if count in (2, 3)
                else "Use a size of 4 or 5 numbers.",
            )
        if min(size) < 1:
            raise ShapeError(f"a result of size {size}", "Expected non-zero, positive output size.")
        sizes, columns = size[2:], []
        for k in range(count - 1, -1, -1):
            number = convert(iota((sizes[k],)), theta.dtype)
            if align:
                line = number * (2 / (sizes[k] - 1)) - 1 if sizes[k] > 1 else number * 0
            else:
                line = (number * 2 + 1) / sizes[k] - 1
            line = ops.reshape(line, (*(1,) * k, sizes[k], *(1,) * (count - k)))
            columns.append(ops.broadcast_to(line, (*sizes, 1)))
        columns.append(ops.broadcast_to(convert(columns[0] * 0 + 1, theta.dtype), (*sizes, 1)))
        base = ops.reshape(ops.concatenate(columns, count), (prod(sizes), count + 1))
        made = ops.matmul(base, ops.permute(theta, (0, 2, 1)))
        return ops.reshape(made, (size[0], *sizes, count))

    samples = lambda: [
        example(((2, 1, 3, 4), False), (2, 2, 3)),
        example(((1, 1, 3, 1), True), (1, 2, 3)),
        example(((1, 2, 2, 3, 4), False), (1, 3, 4)),
    ]
