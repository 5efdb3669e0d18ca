"""Patches: all windows of an image as columns, and columns summed back into an image."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy

from twofold.dtypes import complex64
from twofold.errors import ShapeError
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.types import Shape, TensorType, tensor_type
from twofold.ops import kernels
from twofold.ops.base import Custom, apply, composite, custom, ops, strong
from twofold.ops.convolution.convolutions import per_axis, result_size
from twofold.ops.convolution.window_sizes import Windows, patches
from twofold.ops.elementwise.complex_functions import parts
from twofold.ops.examples import example

_LANES = kernels.LANES


def _numbers(attrs: Attributes, image: Shape, kernel: Shape, result: Shape) -> tuple[int, ...]:
    """Strides, paddings, dilations, and the sizes of image, kernel and result."""
    return (*attrs[0], *attrs[1], *attrs[2], *image, *kernel, *result)


class Patches(Custom):
    """Both directions, between images ``(planes, height, width)`` and columns ``(planes, *kernel, *result)``."""

    functions = ()

    def parameters(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[int, ...]:
        image, columns = sorted((inputs[0].shape, output.shape), key=len)
        return _numbers(attrs, image[1:], columns[1:3], columns[3:])

    def work(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> tuple[int, int]:
        if not output.size:
            return 0, 1
        return output.size // output.shape[-1], kernels.grain(4096, output.shape[-1])


@custom
class windows_of_image(Patches):
    """``columns[p, i, j, y, x] = image[p, y * s - l + i * d, x * s - l + j * d]``, zero outside.

    Attributes ``(strides, paddings, dilations, sizes of the kernel, sizes of the result)``, of two axes each.
    """

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        (x,) = inputs
        return make_node(self, attrs, (x,), tensor_type(x.dtype, (x.shape[0], *attrs[3], *attrs[4])))

    def code_key(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[Any, ...]:
        return (attrs[0][1] == 1,)

    def emit(self, builder: Any, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> None:
        b, dtype = builder, output.dtype
        sy, sx, ly, lx, dy, dx, height, width, kernel_y, kernel_x, rows, columns = (
            b.param(k) for k in range(12)
        )
        with b.loop(b.begin, b.end) as item:
            rest, y = kernels.split(b, item, rows)
            rest, j = kernels.split(b, rest, kernel_x)
            plane, i = kernels.split(b, rest, kernel_y)
            line = b.add(b.sub(b.mul(y, sy), ly), b.mul(i, dy))
            inside = b.and_(b.cmp("ge", line, 0), b.cmp("lt", line, height))
            source = b.mul(b.add(b.mul(plane, height), line), width)
            with b.loop(0, columns, _LANES) as x:
                first = b.add(b.sub(b.mul(x, sx), lx), b.mul(j, dx))
                positions = b.add(b.splat(first), b.mul(b.iota(), b.splat(sx)))
                valid = b.and_(b.cmp("ge", positions, 0), b.cmp("lt", positions, b.splat(width)))
                stored = b.lane_mask(b.sub(columns, x))
                valid = b.and_(b.and_(valid, stored), b.splat(inside))
                at = b.add(source, first)
                if attrs[0][1] == 1:
                    values = b.load(b.input(0), at, dtype, _LANES, mask=valid)
                else:
                    values = b.load_strided(b.input(0), at, sx, dtype, mask=valid)
                b.store(b.buffer(1), b.add(b.mul(item, columns), x), values, mask=stored)

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        return (apply("image_of_windows", cotangent, attrs=(*attrs[:3], inputs[0].shape[1:])),)

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        (x,) = arrays
        strides, paddings, dilations, kernel, result = attrs
        moves = Windows((1, *strides), (0, *paddings), (1, *dilations))
        found = patches(x[:, None, None], moves, (1, *kernel), (1, *result))
        return found.reshape((x.shape[0], *kernel, *result))

    def samples(self) -> Sequence[Any]:
        return [
            example(((1, 1), (1, 1), (1, 1), (3, 3), (5, 18)), (2, 5, 18)),
            example(((2, 3), (0, 1), (1, 2), (2, 2), (2, 3)), (3, 4, 7)),
            example(((1, 1), (0, 0), (1, 1), (2, 2), (2, 2)), (0, 3, 3)),
            example(((2, 3), (0, 1), (1, 2), (2, 2), (2, 3)), (3, 4, 7), dtype=complex64),
        ]


@custom
class image_of_windows(Patches):
    """Columns summed into the positions of the image they come from; the way back of ``windows_of_image``.

    Attributes ``(strides, paddings, dilations, sizes of the image)``. Terms are added in the order of the
    kernel's positions, half types in float32.
    """

    kinds = "iufc"

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        (x,) = inputs
        if x.dtype.kind == "c":
            return ops.complex(*[apply("image_of_windows", part, attrs=attrs) for part in parts(x)])
        return make_node(self, attrs, (x,), tensor_type(x.dtype, (x.shape[0], *attrs[3])))

    def emit(self, builder: Any, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> None:
        b = builder
        sx, ly, height, width, kernel_y = (b.param(k) for k in (1, 2, 6, 7, 8))
        with b.loop(b.begin, b.end) as item:
            plane, line = kernels.split(b, item, height)
            # positions of one phase of the stride lie side by side in the columns
            with b.loop(0, b.minimum(sx, width)) as phase:
                count = b.idiv(b.add(b.sub(width, phase), b.sub(sx, 1)), sx)
                with b.loop(0, count, _LANES) as x:
                    mask = b.lane_mask(b.sub(count, x))
                    zero = b.const(0, output.dtype.compute, _LANES)
                    vertical = b.loop(0, kernel_y, carry=[zero])
                    with vertical as (i, (total,)):
                        away = b.sub(b.add(line, ly), b.mul(i, b.param(4)))
                        position = (b.add(b.mul(plane, kernel_y), i), away, phase, x)
                        b.loop_next([self._line(b, output, position, (total, mask))])
                    at = b.add(b.mul(item, width), b.add(b.mul(x, sx), phase))
                    value = b.cast(vertical.results[0], output.dtype)
                    b.store_strided(b.buffer(1), at, sx, value, mask=mask)

    def _line(self, b: Any, output: TensorType, position: tuple[Any, ...], sums: tuple[Any, Any]) -> Any:
        """Emit ``sums`` plus what one line of the kernel adds."""
        sy, sx, lx, dx, kernel_x, rows, columns = (b.param(k) for k in (0, 1, 3, 5, 9, 10, 11))
        (before, away, phase, x), (total, mask) = position, sums
        y = b.idiv(away, sy)
        meets = b.and_(b.cmp("ge", away, 0), b.cmp("lt", y, rows))
        meets = b.and_(meets, b.cmp("eq", b.mul(y, sy), away))
        last = b.select(meets, kernel_x, b.const(0, kernel_x.dtype))
        horizontal = b.loop(0, last, carry=[total])
        with horizontal as (j, (found,)):
            # counted from far left, so that the division rounds down
            shift = b.add(b.sub(b.add(phase, lx), b.mul(j, dx)), b.mul(b.mul(kernel_x, dx), sx))
            base = b.idiv(shift, sx)
            whole = b.cmp("eq", b.mul(base, sx), shift)
            start = b.add(b.sub(base, b.mul(kernel_x, dx)), x)
            positions = b.iota(start)
            valid = b.and_(b.cmp("ge", positions, 0), b.cmp("lt", positions, b.splat(columns)))
            valid = b.and_(b.and_(valid, mask), b.splat(whole))
            at = b.add(b.mul(b.add(b.mul(b.add(b.mul(before, kernel_x), j), rows), y), columns), start)
            values = b.load(b.input(0), at, output.dtype, _LANES, mask=valid)
            b.loop_next([b.add(found, b.cast(values, output.dtype.compute))])
        return horizontal.results[0]

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        sizes = inputs[0].shape
        return (apply("windows_of_image", cotangent, attrs=(*attrs[:3], sizes[1:3], sizes[3:])),)

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        (columns,), (strides, paddings, dilations, sizes) = arrays, attrs
        _, kernel_y, kernel_x, rows, across = columns.shape
        result = numpy.zeros((columns.shape[0], *sizes), columns.dtype)
        for i, j, y, x in numpy.ndindex(kernel_y, kernel_x, rows, across):
            at = (
                y * strides[0] - paddings[0] + i * dilations[0],
                x * strides[1] - paddings[1] + j * dilations[1],
            )
            if 0 <= at[0] < sizes[0] and 0 <= at[1] < sizes[1]:
                result[:, at[0], at[1]] += columns[:, i, j, y, x]
        return result

    def samples(self) -> Sequence[Any]:
        return [
            example(((1, 1), (1, 1), (1, 1), (5, 18)), (2, 3, 3, 5, 18)),
            example(((2, 3), (0, 1), (1, 2), (4, 7)), (3, 2, 2, 2, 3)),
            example(((1, 1), (0, 0), (1, 1), (3, 3)), (0, 2, 2, 2, 2)),
            example(((2, 3), (0, 1), (1, 2), (4, 7)), (3, 2, 2, 2, 3), dtype=complex64),
        ]


Settings = tuple[Shape, Shape, Shape, Shape]


def _settings(kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Settings:
    """Strides, paddings, dilations and kernel sizes of two axes each."""
    return (
        per_axis("stride", stride, 2, 1), per_axis("padding", padding, 2, 0), per_axis("dilation", dilation, 2, 1),
        per_axis("kernel_size", kernel_size, 2, 1),
    )  # fmt: skip


def _counts(sizes: Shape, strides: Shape, paddings: Shape, dilations: Shape, kernel: Shape) -> Shape:
    """How many windows fit along each axis."""
    axes = zip(sizes, [(pad, pad) for pad in paddings], kernel, strides, dilations, strict=True)
    return tuple(result_size(*numbers) for numbers in axes)


@composite
class im2col:
    """All windows of images ``(batch, channels, height, width)`` as ``(batch, channels * positions, windows)``.

    PyTorch's ``nn.functional.unfold``; the batch may be missing. Raises ShapeError where no window fits.

    >>> import twofold as torch
    >>> torch.nn.functional.unfold(torch.arange(6.0).reshape(1, 1, 2, 3), (1, 2))
    tensor([[[0., 1., 3., 4.],
             [1., 2., 4., 5.]]])
    """

    methods = ()
    signature = "input"
    call = staticmethod(
        lambda input, kernel_size, dilation=1, padding=0, stride=1: apply(
            "im2col", input, attrs=_settings(kernel_size, dilation, padding, stride)
        )
    )

    @staticmethod
    def compute(x: Any, strides: Shape, paddings: Shape, dilations: Shape, kernel: Shape) -> Any:
        x = strong(x)
        if x.ndim not in (3, 4):
            raise ShapeError(f"an input with {x.ndim} axes", "Use (batch, channels, height, width).")
        counts = _counts(x.shape[-2:], strides, paddings, dilations, kernel)
        planes = ops.reshape(x, (prod(x.shape[:-2]), *x.shape[-2:]))
        found = apply("windows_of_image", planes, attrs=(strides, paddings, dilations, kernel, counts))
        return ops.reshape(found, (*x.shape[:-3], x.shape[-3] * prod(kernel), prod(counts)))

    samples = lambda: [
        example(((1, 1), (0, 0), (1, 1), (2, 2)), (2, 2, 3, 4)),
        example(((2, 1), (1, 0), (1, 2), (2, 3)), (2, 5, 6)),
    ]


@composite
class col2im:
    """Columns ``(batch, channels * positions, windows)`` summed into images: PyTorch's ``nn.functional.fold``.

    Raises ShapeError where the columns are not those of images of ``output_size``.

    >>> import twofold as torch
    >>> torch.nn.functional.fold(torch.ones(1, 2, 2), (1, 3), (1, 2))
    tensor([[[[1., 2., 1.]]]])
    """

    methods = ()
    signature = "input"
    call = staticmethod(
        lambda input, output_size, kernel_size, dilation=1, padding=0, stride=1: apply(
            "col2im",
            input,
            attrs=(
                *_settings(kernel_size, dilation, padding, stride),
                per_axis("output_size", output_size, 2, 1),
            ),
        )
    )

    @staticmethod
    def compute(
        x: Any, strides: Shape, paddings: Shape, dilations: Shape, kernel: Shape, sizes: Shape
    ) -> Any:
        x = strong(x)
        if x.ndim not in (2, 3):
            raise ShapeError(f"an input with {x.ndim} axes", "Use (batch, channels * positions, windows).")
        counts, positions = _counts(sizes, strides, paddings, dilations, kernel), prod(kernel)
        rows, windows = x.shape[-2:]
        if rows % positions or windows != prod(counts):
            raise ShapeError(
                f"columns of shape {(rows, windows)} for images of {sizes}, kernels of {kernel}",
                f"Use a multiple of {positions} rows and {prod(counts)} columns.",
            )
        channels = rows // positions
        planes = prod(x.shape[:-2]) * channels
        columns = ops.reshape(x, (planes, *kernel, *counts))
        found = apply("image_of_windows", columns, attrs=(strides, paddings, dilations, sizes))
        return ops.reshape(found, (*x.shape[:-2], channels, *sizes))

    samples = lambda: [
        example(((1, 1), (0, 0), (1, 1), (2, 2), (3, 4)), (2, 8, 6)),
        example(((2, 1), (1, 0), (1, 2), (2, 3), (5, 6)), (12, 6)),
    ]
