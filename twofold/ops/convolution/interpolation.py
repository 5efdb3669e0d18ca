"""Images and signals in other sizes: nearest, linear, cubic and area interpolation.

One axis after another is multiplied by a matrix with a few neighbours in each row, see ``resampling``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cmp_to_key
from math import ceil
from typing import Any

import numpy

from twofold.dtypes import DType, float32, int64, uint8
from twofold.errors import ArgumentError, DTypeError, ShapeError
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.types import Shape, TensorType, tensor_type
from twofold.ops.autograd_names import of_resize
from twofold.ops.base import Custom, apply, composite, convert, custom, iota, ops, public, strong
from twofold.ops.convolution.resampling import Line, along
from twofold.ops.docstrings import shown
from twofold.ops.examples import example

LINEAR = {"linear": 1, "bilinear": 2, "trilinear": 3}
SMOOTH = {**LINEAR, "bicubic": 2}
MODES = (*SMOOTH, "nearest", "nearest-exact", "area")


@custom
class count_up_to(Custom):
    """For each position ``i < size`` how many elements of a sorted table are at most ``i``; attributes ``(size,)``."""

    functions = ()
    differentiable = False

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        return make_node(self, attrs, tuple(inputs), tensor_type(int64, (attrs[0],)))

    def parameters(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[int, ...]:
        return (inputs[0].shape[0], attrs[0])

    def work(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> tuple[int, int]:
        return min(output.size, 1), 1

    def emit(self, builder: Any, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> None:
        b = builder
        count, size, target = b.param(0), b.param(1), b.buffer(1)
        zero = b.const(0, int64)
        with b.loop(0, size) as i:
            b.store(target, i, zero)
        with b.loop(0, count) as o:
            position = b.maximum(b.load(b.input(0), o, int64), 0)
            with b.if_(b.cmp("lt", position, size)):
                b.store(target, position, b.add(b.load(target, position, int64), 1))
        with b.loop(0, size, carry=[zero]) as (i, (total,)):
            after = b.add(total, b.load(target, i, int64))
            b.store(target, i, after)
            b.loop_next([after])

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        return numpy.searchsorted(arrays[0], numpy.arange(attrs[0]), "right")

    def samples(self) -> Sequence[Any]:
        return [example((5,), numpy.array([-1, 0, 0, 2, 7])), example((0,), numpy.array([1, 2]))]


def line_of(first: Any, last: Any, size: int, weights: Any = None) -> Line:
    """The line whose rows use the elements ``first ... last - 1``, both growing, of an axis of ``size``."""
    first_use, last_use = (apply("count_up_to", table, attrs=(size,)) for table in (last, first))
    return Line(first, last, first_use, last_use, weights)


CORNERS, EDGES, STARTS = "corners", "edges", "starts"
"""What is laid on each other: centres of the corner elements, outer edges, or centres of the first elements."""


def pace(size: int, wanted: int, placing: str, scale: float | None) -> float:
    """How far apart in the input two neighbours of the result lie."""
    if placing == CORNERS:
        return (size - 1) / (wanted - 1) if wanted > 1 else 0.0
    return 1 / scale if scale is not None and scale > 0 else size / max(wanted, 1)


def nearest_line(size: int, wanted: int, scale: float | None, centered: bool) -> Line:
    """One element for each: that at ``floor(o * pace)``, or with ``centered`` at ``floor((o + 0.5) * pace)``."""
    number = convert(iota((wanted,)), float32) + (0.5 if centered else 0.0)
    first = ops.minimum(convert(ops.floor(number * pace(size, wanted, EDGES, scale)), int64), size - 1)
    return line_of(first, first + 1, size)


def source_positions(size: int, wanted: int, placing: str, scale: float | None, dtype: DType) -> Any:
    """Where in the input the elements of the result lie."""
    number, step = convert(iota((wanted,)), dtype), pace(size, wanted, placing, scale)
    return (number + 0.5) * step - 0.5 if placing == EDGES else number * step


def smooth_line(size: int, wanted: int, placing: str, scale: float | None, cubic: bool, dtype: DType) -> Line:
    """Two neighbours for each element, or with ``cubic`` four; positions outside count for the border."""
    position = source_positions(size, wanted, placing, scale, dtype)
    position = position if cubic else ops.maximum(position, 0.0)
    below = ops.minimum(convert(ops.floor(position), int64), size - 1)
    t = ops.clamp(position - convert(below, dtype), 0.0, 1.0)
    if cubic:
        taps = [(below + k - 1, cubic_weight(t, k, -0.75)) for k in range(4)]
    else:
        taps = [(below, 1 - t), (below + 1, t)]
    limited = [(ops.clamp(index, 0, size - 1), weight) for index, weight in taps]
    first, last = limited[0][0], limited[-1][0] + 1
    rows = []
    for k in range(min(len(taps), size)):
        parts = [ops.where(ops.equal(index, first + k), weight, 0.0) for index, weight in limited]
        rows.append(ops.reshape(sum(parts[1:], parts[0]), (1, wanted)))
    return line_of(first, last, size, ops.concatenate(rows, 0) if len(rows) > 1 else rows[0])


def cubic_weight(t: Any, number: int, a: float) -> Any:
    """The weight of neighbour ``number`` (0 to 3) at ``t`` between neighbours 1 and 2.

    Source: Keys, Cubic Convolution Interpolation for Digital Image Processing, 1981, eq. 4.
    """
    x = (t + 1, t, 1 - t, 2 - t)[number]
    if number in (1, 2):
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return ((x - 5) * x + 8) * x * a - 4 * a


def _filter(x: Any, cubic: bool) -> Any:
    """The triangle, or the cubic of Keys with ``a = -0.5``, at distances ``x``."""
    x = ops.abs(x)
    if not cubic:
        return ops.maximum(1 - x, 0.0)
    near, far = (1.5 * x - 2.5) * x * x + 1, ((x - 5) * x + 8) * x * -0.5 + 2
    return ops.where(ops.less(x, 1), near, ops.where(ops.less(x, 2), far, 0.0))


def antialiased_line(
    size: int, wanted: int, placing: str, scale: float | None, cubic: bool, dtype: DType
) -> Line:
    """All elements under a filter that is as wide as the step between two elements of the result."""
    step = pace(size, wanted, placing, scale)
    wide = max(step, 1.0)
    support = (2 if cubic else 1) * wide
    center = (convert(iota((wanted,)), dtype) + 0.5) * step
    first = ops.maximum(convert(center - support + 0.5, int64), 0)
    last = ops.minimum(convert(center + support + 0.5, int64), size)
    most = min(2 * ceil(support) + 1, size)
    number = ops.reshape(iota((most,)), (most, 1))
    distance = (convert(number + first, dtype) - center + 0.5) * (1 / wide)
    weights = ops.where(ops.less(number, last - first), _filter(distance, cubic), 0.0)
    total = apply("sum", weights, attrs=((0,), True))
    return line_of(first, last, size, weights / ops.where(ops.equal(total, 0), 1.0, total))


def _line(
    size: int, wanted: int, mode: str, placing: str, scale: float | None, antialias: bool, dtype: DType
) -> Line:
    if mode in ("nearest", "nearest-exact"):
        return nearest_line(size, wanted, scale, mode == "nearest-exact")
    make = antialiased_line if antialias else smooth_line
    return make(size, wanted, placing, scale, mode == "bicubic", dtype)


def _unchanged(size: int, wanted: int, mode: str, scale: float | None, antialias: bool) -> bool:
    """Whether an axis keeps its elements."""
    if antialias or mode == "nearest-exact" or size != wanted:
        return size == wanted and scale in (None, 1)
    return True if mode != "bicubic" else scale in (None, 1)


def _in_order(shape: Shape, wanted: dict[int, int]) -> list[int]:
    """The axes in the order in which they are resized, by the size that is wanted of each.

    What shrinks most comes first, so that less is left to do; of two that shrink alike the first one, else the last
    one, which is the slowest. Sizes may be symbols: whether two ratios are equal is not asked, as few would meet that.
    """

    def order(one: int, other: int) -> int:
        ratios = wanted[one] * shape[other], wanted[other] * shape[one]
        if ratios[0] < ratios[1]:
            return -1
        if ratios[1] < ratios[0]:
            return 1
        return one - other if wanted[one] < shape[one] else other - one

    return sorted(wanted, key=cmp_to_key(order))


@composite
class resize:
    """The last axes in other sizes.

    Attributes ``(mode, sizes, placing, scales, antialias)``; a scale of None is the ratio of the sizes.
    """

    autograd_name = of_resize

    functions = ()
    kinds = "uif"

    def compute(
        x: Any, mode: str, sizes: tuple[int, ...], placing: str, scales: tuple[Any, ...], antialias: bool
    ) -> Any:
        x, count, take = strong(x), len(sizes), mode in ("nearest", "nearest-exact")
        if not take and x.dtype.kind != "f" and (x.dtype is not uint8 or mode not in ("bilinear", "bicubic")):
            raise DTypeError(f"mode {mode!r} takes floating dtypes, not {x.dtype.name}", "Cast it first.")
        dtype = float32 if x.dtype.kind != "f" else x.dtype.compute
        made = x if take else convert(x, dtype)
        axes = range(x.ndim - count, x.ndim)
        wanted_of, scale_of = (dict(zip(axes, numbers, strict=True)) for numbers in (sizes, scales))
        for axis in _in_order(x.shape, wanted_of):
            size, wanted, scale = x.shape[axis], wanted_of[axis], scale_of[axis]
            if not _unchanged(size, wanted, mode, scale, antialias):
                line = _line(size, wanted, mode, placing, scale, antialias, dtype)
                made = along(made, axis, line, take=take)
        if x.dtype is uint8 and not take:
            made = ops.clamp(ops.round(made), 0.0, 255.0)
        return convert(made, x.dtype)

    samples = lambda: [
        example(("nearest", (5,), EDGES, (None,), False), (2, 3, 3)),
        example(("nearest", (2, 7), EDGES, (None, 1.4), False), (1, 2, 4, 5)),
        example(("nearest-exact", (3, 9), EDGES, (None, None), False), numpy.arange(20).reshape(1, 1, 4, 5)),
        example(("linear", (7,), EDGES, (None,), False), (2, 3, 3)),
        example(("bilinear", (7, 3), CORNERS, (None, None), False), (1, 2, 4, 5)),
        example(("bilinear", (2, 9), EDGES, (0.6, 1.9), False), (1, 2, 4, 5)),
        example(("bicubic", (7, 3), EDGES, (None, None), False), (1, 2, 4, 5)),
        example(("bicubic", (5, 3), CORNERS, (None, None), False), (1, 2, 2, 1)),
        example(("bilinear", (3, 9), STARTS, (None, None), False), (1, 2, 4, 5)),
        example(("trilinear", (1, 4, 5), EDGES, (None,) * 3, False), (1, 2, 2, 3, 2)),
        example(("bilinear", (2, 7), EDGES, (None, None), True), (1, 2, 5, 5)),
        example(("bicubic", (2, 3), EDGES, (None, None), True), (1, 2, 5, 7)),
    ]


# Public forms


def _sizes(
    input: Any, size: Any, scale_factor: Any, recompute: Any
) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    """The sizes of the result and the scales to use, None for the ratio of the sizes."""
    before = tuple(input.shape)[2:]
    count = len(before)
    if (size is None) == (scale_factor is None):
        raise ArgumentError(
            f"size={size} and scale_factor={scale_factor}",
            "only one of size or scale_factor should be defined.",
        )
    given = size if size is not None else scale_factor
    each = tuple(given) if isinstance(given, (tuple, list)) else (given,) * count
    if len(each) != count:
        name = "size" if size is not None else "scale_factor"
        raise ArgumentError(f"{name}={given!r} for {count} axes", f"Give a number, or {count} of them.")
    if size is not None:
        if recompute:
            raise ArgumentError(
                "recompute_scale_factor is not meaningful with an explicit size", "Leave it out."
            )
        sizes = tuple(int(wanted) for wanted in each)
        scales: tuple[float | None, ...] = (None,) * count
    else:
        sizes = tuple(int(length * factor) for length, factor in zip(before, each, strict=True))
        scales = (None,) * count if recompute else tuple(float(factor) for factor in each)
    if min(sizes, default=1) < 1 or 0 in before:
        raise ShapeError(f"sizes {before} to {sizes}", "Input and output sizes should be greater than 0.")
    return sizes, scales


@public()
def interpolate(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Any:
    """An input ``(batch, channels, ...)`` with its one to three last axes in another size.

    ``mode`` is ``"nearest"``, ``"nearest-exact"``, ``"area"``, ``"linear"`` (3 axes), ``"bilinear"`` or
    ``"bicubic"`` (4) or ``"trilinear"`` (5). ``align_corners`` lays the centres of the corner elements on each
    other in place of the outer edges. Without ``recompute_scale_factor`` positions follow ``scale_factor`` itself,
    not the ratio of the sizes. ``antialias`` averages over all that an element of a smaller result covers.

    >>> import twofold as torch
    >>> x = torch.tensor([[[1.0, 2.0]]])
    >>> torch.nn.functional.interpolate(x, scale_factor=2)
    tensor([[[1., 1., 2., 2.]]])
    >>> torch.nn.functional.interpolate(x, size=3, mode="linear", align_corners=True)
    tensor([[[1.0000, 1.5000, 2.0000]]])
    """
    count = len(input.shape) - 2
    if mode not in MODES or not 1 <= count <= 3 or SMOOTH.get(mode, count) != count:
        raise ArgumentError(
            f"mode {mode!r} for an input with {count + 2} axes",
            "Use 'nearest', 'nearest-exact' or 'area' for 3, 4 or 5 axes, 'linear' for 3, 'bilinear' or "
            "'bicubic' for 4, 'trilinear' for 5.",
        )
    if align_corners is not None and mode not in SMOOTH:
        raise ArgumentError(
            f"align_corners={align_corners} with mode {mode!r}",
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | "
            "trilinear.",
        )
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ArgumentError(
            f"antialias=True with mode {mode!r}",
            "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D tensor as input.",
        )
    sizes, scales = _sizes(input, size, scale_factor, recompute_scale_factor)
    if mode == "area":
        return apply("adaptive_avg_pool", input, attrs=(sizes,))
    return apply(
        "resize", input, attrs=(mode, sizes, CORNERS if align_corners else EDGES, scales, bool(antialias))
    )


@public()
def upsample(
    input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: Any = None
) -> Any:
    """``interpolate`` under its old name.

    >>> import twofold as torch
    >>> torch.nn.functional.upsample(torch.tensor([[[1.0, 2.0]]]), size=4)
    tensor([[[1., 1., 2., 2.]]])
    """
    return ops.interpolate(input, size, scale_factor, mode, align_corners)


@public()
def upsample_nearest(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """``interpolate`` to the nearest element.

    >>> import twofold as torch
    >>> torch.nn.functional.upsample_nearest(torch.tensor([[[1.0, 2.0]]]), size=4)
    tensor([[[1., 1., 2., 2.]]])
    """
    return ops.interpolate(input, size, scale_factor, "nearest")


@public()
def upsample_bilinear(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """``interpolate`` with mode ``"bilinear"`` and ``align_corners=True``.

    >>> import twofold as torch
    >>> torch.nn.functional.upsample_bilinear(torch.tensor([[[[1.0, 3.0]]]]), size=(1, 3))
    tensor([[[[1., 2., 3.]]]])
    """
    return ops.interpolate(input, size, scale_factor, "bilinear", True)


def _antialiased(name: str, mode: str) -> Any:
    def call(
        input: Any,
        output_size: Any,
        align_corners: bool,
        scale_factors: Any = None,
        *,
        scales_h: float | None = None,
        scales_w: float | None = None,
    ) -> Any:
        scales = (scales_h, scales_w) if scale_factors is None else tuple(scale_factors)
        if output_size is None:
            pairs = zip(tuple(input.shape)[2:], scales, strict=True)
            output_size = [int(size * scale) for size, scale in pairs]
        sizes, _ = _sizes(input, tuple(output_size), None, None)
        return apply("resize", input, attrs=(mode, sizes, CORNERS if align_corners else EDGES, scales, True))

    call.__name__ = name
    call.__doc__ = shown(
        f"""``interpolate`` with mode ``"{mode}"`` and ``antialias=True``, as the operation beneath it.""",
        ">>> x = torch.full((1, 1, 4, 4), 7.0)",
        f">>> torch.{name}(x, (1, 2), False).round()",
        "tensor([[[[7., 7.]]]])",
    )
    return call


for _name, _mode in (("_upsample_bilinear2d_aa", "bilinear"), ("_upsample_bicubic2d_aa", "bicubic")):
    public(_name)(_antialiased(_name, _mode))
