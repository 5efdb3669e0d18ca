"""Views: operations whose elements are elements of their input at other positions.

Beside the usual rules each view has ``write(base, value, *other inputs, *attrs)``: ``base`` with the elements
that the view shows replaced by ``value``, which is how a write through a view reaches its base. Some have
``cut(axis, size, *attrs)``: the attributes that show ``size`` elements of the result's ``axis``, of a base that has
no others.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy

from twofold.dtypes import int64
from twofold.errors import ArgumentError, DTypeError, ShapeError
from twofold.ir.bind import constant
from twofold.ir.layout import Layout
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.op import REGISTRY, ViewForm
from twofold.ir.sizes import Symbol
from twofold.ir.types import Shape, TensorType, tensor_type
from twofold.ops.autograd_names import of_permutation
from twofold.ops.axes import given_once
from twofold.ops.base import (
    Composite,
    View,
    apply,
    broadcast,
    composite,
    convert,
    filled,
    iota,
    ops,
    strong,
    view,
    whole_number,
)
from twofold.ops.examples import example
from twofold.ops.indexing.row_products import row_share
from twofold.ops.kinds import Operation
from twofold.ops.shape import shapes
from twofold.ops.shape.shapes import inverse, many_axes


def _cut_shape(axis: int, size: int, shape: Shape) -> Attributes:
    return ((*shape[:axis], size, *shape[axis + 1 :]),)


@view
class reshape:
    """The same elements in row-major order in another shape; one size may be -1 and is inferred.

    The result shares memory with the input where strides can show it, else it is a copy; ``view`` always shares.
    Raises ShapeError where the number of elements differs.

    >>> import twofold as torch
    >>> torch.reshape(torch.arange(6), (2, -1))
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """

    autograd_name = "ViewBackward0"
    form = ViewForm.RESHAPE
    methods = ("reshape",)
    functions = ("reshape",)
    is_view = True
    may_copy = True

    @staticmethod
    def call(input: Any, *sizes: Any, shape: Any = None) -> Any:
        wanted = shapes.given_integers(sizes, shape=shape)
        return apply("reshape", input, attrs=(shapes.infer_shape(wanted, element_count(input)),))

    @staticmethod
    def result(x: TensorType, shape: Shape) -> TensorType:
        if shape.count(-1):
            shape = shapes.infer_shape(shape, x.size)
        if tensor_type(x.dtype, shape).size != x.size:
            shapes.infer_shape(shape, x.size)
        return tensor_type(x.dtype, shape)

    index_map = lambda before, after, shape: None
    vjp = lambda ct, y, x, shape: (ops.reshape(ct, x.shape),)
    batch = lambda size, shape: ((size, *shape),)
    cut = _cut_shape
    write = lambda base, value, shape: ops.reshape(value, base.shape)
    layout = lambda source, shape: source.reshaped(shapes.infer_shape(shape, prod(source.size)))
    reference = lambda x, shape: numpy.reshape(x, shape)
    samples = lambda: [example((shape,), (2, 3, 4)) for shape in ((6, 4), (24,), (4, 3, 2, 1))]


@view
class permute:
    """The axes in another order: axis ``k`` of the result is axis ``dims[k]`` of the input.

    >>> import twofold as torch
    >>> torch.permute(torch.zeros(2, 3, 5), (2, 0, 1)).shape
    twofold.Size([5, 2, 3])
    """

    autograd_name = of_permutation
    form = ViewForm.PERMUTE
    methods = ("permute",)
    functions = ("permute", "permute_dims")
    is_view = True

    @staticmethod
    def call(input: Any, *axes: Any, dims: Any = None) -> Any:
        ndim = len(input.shape)
        order = many_axes(shapes.given_integers(axes, dims=dims), ndim)
        if len(order) != ndim:
            raise ArgumentError(f"{len(order)} axes in the order of {ndim}", "Name every axis once.")
        return apply("permute", input, attrs=(order,))

    result = lambda x, order: tensor_type(x.dtype, tuple(x.shape[axis] for axis in order))

    @staticmethod
    def index_map(before: Shape, after: Shape, order: Sequence[int]) -> Any:
        return tuple((index, 1, 0) for index in inverse(order))

    vjp = lambda ct, y, x, order: (ops.permute(ct, inverse(order)),)
    batch = lambda size, order: ((0, *(axis + 1 for axis in order)),)
    cut = lambda axis, size, order: (order,)
    write = lambda base, value, order: ops.permute(value, inverse(order))
    layout = lambda source, order: source._replace(
        size=tuple(source.size[axis] for axis in order), stride=tuple(source.stride[axis] for axis in order)
    )
    reference = lambda x, order: numpy.transpose(x, order)
    samples = lambda: [example((order,), (2, 3, 17)) for order in ((2, 0, 1), (0, 2, 1), (2, 1, 0))]


@view
class broadcast_to:
    """The input expanded to ``shape``: new axes in front, and axes of size 1 repeated, without copies.

    >>> import twofold as torch
    >>> torch.broadcast_to(torch.tensor([[1], [2]]), (2, 3))
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """

    autograd_name = "ExpandBackward0"
    form = ViewForm.BROADCAST
    methods = ("broadcast_to",)
    is_view = True

    @staticmethod
    def call(input: Any, shape: Any = None, *, size: Any = None) -> Any:
        wanted = shapes.given_integers(() if shape is None else (shape,), size=size)
        return apply("broadcast_to", input, attrs=(shapes.expanded(input.shape, wanted),))

    result = lambda x, shape: tensor_type(x.dtype, shapes.expanded(x.shape, shape))

    @staticmethod
    def index_map(before: Shape, after: Shape, shape: Shape) -> Any:
        extra = len(after) - len(before)
        return tuple(
            (axis + extra, 1, 0) if size == after[axis + extra] else (None, 0, 0)
            for axis, size in enumerate(before)
        )

    vjp = lambda ct, y, x, shape: (sum_to(ct, x.shape),)
    batch = lambda size, shape: ((size, *shape),)
    cut = _cut_shape
    layout = lambda source, shape: source.expanded(shapes.expanded(source.size, shape))

    @staticmethod
    def write(base: Any, value: Any, shape: Shape) -> Any:
        if prod(base.shape) == prod(value.shape):
            return ops.reshape(value, base.shape)
        if 0 in value.shape:
            return base
        fix = "Write to the tensor before it is expanded, or to a .clone()."
        raise ShapeError("writing to an expanded tensor, several elements of which are one in memory", fix)

    reference = lambda x, shape: numpy.broadcast_to(x, shape)
    samples = lambda: [
        example((shape,), x)
        for x, shape in (((3, 1), (3, 5)), ((1, 17), (2, 3, 17)), ((), (4,)), ((1,), (0,)))
    ]


def repeated_axes(shape: Shape, wide: Shape) -> tuple[int, ...]:
    """The axes of ``wide`` that broadcasting ``shape`` to it makes or repeats."""
    extra = len(wide) - len(shape)
    return tuple(
        axis for axis, size in enumerate(wide) if axis < extra or (shape[axis - extra] == 1 and size != 1)
    )


def sum_to(value: Any, shape: Shape) -> Any:
    """``value`` summed over the axes in which it is larger than ``shape``: the gradient of broadcasting.

    What was broadcast along leading axes gets its rows added in their order, as in sums over calls, after a sum within
    each row over the axes that were broadcast behind. What has no axes of its own gets a row for each index of the
    first.
    """
    axes = repeated_axes(shape, value.shape)
    rows = next((k for k, axis in enumerate(axes) if axis != k), len(axes))
    if rows == len(value.shape):
        rows = min(rows, 1)
    if not rows or value.dtype.kind != "f":
        summed = apply("sum", value, attrs=(axes, False)) if axes else value
    else:
        each = apply("sum", value, attrs=(axes[rows:], False)) if axes[rows:] else value
        summed = apply("ordered_sum", each, attrs=(axes[:rows], False))
    return summed if tuple(summed.shape) == tuple(shape) else ops.reshape(summed, shape)


@view
class flip:
    """The order of the elements reversed along ``dims``.

    >>> import twofold as torch
    >>> torch.flip(torch.tensor([[1, 2], [3, 4]]), (1,))
    tensor([[2, 1],
            [4, 3]])
    """

    methods = ("flip",)

    @staticmethod
    def call(input: Any, *axes: Any, dims: Any = None) -> Any:
        given = given_once(axes=(axes[0] if len(axes) == 1 else axes) if axes else None, dims=dims)
        return apply("flip", input, attrs=(tuple(sorted(many_axes(given, len(input.shape)))),))

    result = lambda x, axes: tensor_type(x.dtype, x.shape)

    @staticmethod
    def index_map(before: Shape, after: Shape, axes: Sequence[int]) -> Any:
        return tuple(
            (axis, -1, size - 1) if axis in axes else (axis, 1, 0) for axis, size in enumerate(before)
        )

    vjp = lambda ct, y, x, axes: (apply("flip", ct, attrs=(axes,)),)
    batch = lambda size, axes: (tuple(axis + 1 for axis in axes),)
    write = lambda base, value, axes: apply("flip", value, attrs=(axes,))
    reference = lambda x, axes: numpy.flip(x, axes)
    samples = lambda: [example((axes,), (3, 17)) for axes in ((0,), (1,), (0, 1))]


@view
class slice_(View):
    """A block of the input: ``sizes`` elements per axis, ``steps`` apart, from starts known at run time.

    Attributes ``(sizes, steps, axes)``: inputs 1, 2, ... hold the starts of ``axes``; others are whole.
    A start that is a tensor is clamped, so that the block lies inside the input.
    """

    functions = ()
    form = ViewForm.SLICE
    is_view = True

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        x, (sizes, steps, axes) = strong(inputs[0]), attrs
        if len(axes) != len(inputs) - 1:
            raise ArgumentError(f"{len(inputs) - 1} starts for {len(axes)} axes", "Give one start per axis.")
        starts = []
        for axis, start in zip(axes, inputs[1:], strict=True):
            span = (sizes[axis] - 1) * steps[axis] + 1 if sizes[axis] else 0
            if span > x.shape[axis] or steps[axis] < 1:
                apart = f"{sizes[axis]} elements {steps[axis]} apart"
                what = f"{apart} do not fit size {x.shape[axis]} of axis {axis}"
                raise ShapeError(what, "Use a smaller size or step.")
            starts.append(run_time_index(start, x.shape[axis] - span))
        if any(sizes[axis] != size for axis, size in enumerate(x.shape) if axis not in axes):
            raise ShapeError(f"axes other than {axes} must be whole", "Name every axis that is cut.")
        return make_node(self, attrs, (x, *starts), tensor_type(x.dtype, sizes))

    def index_map(self, attrs: Attributes, input_shape: Shape, output_shape: Shape) -> Any:
        _sizes, steps, axes = attrs
        offsets = {axis: ("input", position) for position, axis in enumerate(axes, 1)}
        return tuple((axis, steps[axis], offsets.get(axis, 0)) for axis in range(len(input_shape)))

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        _, steps, axes = attrs
        x, *starts = inputs
        padded = apply("pad_block", cotangent, 0, *starts, attrs=(x.shape, steps, axes))
        return (padded, *[None] * len(starts))

    def rule_batch(self, size: int, sizes: Shape, steps: Shape, axes: Shape) -> Attributes:
        return (size, *sizes), (1, *steps), tuple(axis + 1 for axis in axes)

    def write(self, base: Any, value: Any, *rest: Any) -> Any:
        *starts, _, steps, axes = rest
        return apply("slice_update", base, value, *starts, attrs=(steps, axes))

    def shares(self, cotangent: Node, node: Node, inputs: tuple[Node, ...]) -> Sequence[Any] | None:
        if len(inputs) != 2:
            return None
        own, *others = self.vjp(node.attrs, cotangent, node, inputs)
        return [row_share(cotangent, own, node, *inputs), *others]

    def layout(self, attrs: Attributes, source: Layout, inputs: Sequence[Any]) -> Layout | None:
        sizes, steps, axes = attrs
        offset = source.offset
        for axis, start in zip(axes, inputs, strict=True):
            highest = source.size[axis] - ((sizes[axis] - 1) * steps[axis] + 1 if sizes[axis] else 0)
            offset += source.stride[axis] * min(max(int(start), 0), highest)
        stride = tuple(one * step for one, step in zip(source.stride, steps, strict=True))
        return source._replace(size=sizes, stride=stride, offset=offset)

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        sizes, steps, axes = attrs
        x, *starts = arrays
        begin = [0] * x.ndim
        for axis, start in zip(axes, starts, strict=True):
            begin[axis] = int(start)
        return x[block(begin, sizes, steps)]

    def samples(self) -> Sequence[Any]:
        return [
            example(((3, 18), (1, 1), (0,)), (7, 18), 2),
            example(((3, 5), (2, 3), (0, 1)), (7, 18), 1, 3),
            example(((7, 0), (1, 1), (1,)), (7, 18), 0),
        ]


def block(begin: Sequence[int], sizes: Sequence[int], steps: Sequence[int]) -> tuple[Any, ...]:
    """The NumPy index of a block."""
    return tuple(
        slice(b, b + (n - 1) * s + 1 if n else b, s) for b, n, s in zip(begin, sizes, steps, strict=True)
    )


def run_time_index(start: Node, highest: int) -> Node:
    """A start as an int64 scalar node; one that a tensor holds is clamped to ``0 … highest``.

    Starts that come from Python integers were checked when the call was made.
    """
    if start.type.dtype.kind not in "iu" or start.type.shape:
        raise DTypeError(f"a start of type {start.type}", "Use an integer scalar.")
    value = convert(start, int64)
    origin = value.inputs[0] if value.op.name == "cast" else value
    if start.type.weak or origin.type.weak or value.op.name in ("constant", "clamp_index"):
        return value
    clamped: Node = apply("clamp_index", value, attrs=(highest,))
    return clamped


def slice_axis(input: Any, axis: int, start: Any, size: int, step: int = 1) -> Any:
    """``size`` elements of one axis, ``step`` apart, from ``start``, which may change from run to run."""
    shape = tuple(input.shape)
    if size == shape[axis] and step == 1 and isinstance(start, (int, Symbol)):
        return input
    sizes = (*shape[:axis], size, *shape[axis + 1 :])
    steps = (*(1,) * axis, step, *(1,) * (len(shape) - axis - 1))
    return apply("slice", input, start, attrs=(sizes, steps, (axis,)))


@composite
class write_view(Composite):
    """``base`` with the elements that a view of it shows replaced by a value.

    Attributes ``(name, attributes of the view)``; inputs: base, value, and the other inputs of the view.
    """

    autograd_name = "torch::autograd::CopySlices"
    functions = ()
    title = "assignment to elements"
    is_written_view = True

    def parameter_names(self) -> list[str]:
        """Names of the tensor parameters."""
        return ["input", "value"]

    samples = Operation.samples  # none: each view is written to in tests of its own

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        name, inner = attrs
        base, value, *rest = inputs
        base = strong(base)
        entry: Any = REGISTRY[name]
        shown = entry.build(inner, (base, *rest))
        shape, value = shown.shape, convert(value, shown.dtype)
        while value.ndim > len(shape) and value.shape[0] == 1:
            value = ops.reshape(value, value.shape[1:])
        written: Node = entry.write(base, broadcast(value, shape), *rest, *inner)
        return written


@view
class diagonal:
    """The elements at ``row + offset = column`` of the axes ``dim1`` and ``dim2``, as a new last axis.

    >>> import twofold as torch
    >>> torch.diagonal(torch.tensor([[1, 2, 3], [4, 5, 6]]), offset=1)
    tensor([2, 6])
    """

    methods = ("diagonal",)
    is_view = True

    @staticmethod
    def call(input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
        first, second = many_axes((dim1, dim2), len(input.shape))
        return apply("diagonal", input, attrs=(whole_number(offset, "offset"), first, second))

    @staticmethod
    def result(x: TensorType, offset: int, first: int, second: int) -> TensorType:
        kept = tuple(size for axis, size in enumerate(x.shape) if axis not in (first, second))
        rows, columns = x.shape[first] + min(offset, 0), x.shape[second] - max(offset, 0)
        return tensor_type(x.dtype, (*kept, max(min(rows, columns), 0)))

    @staticmethod
    def index_map(before: Shape, after: Shape, offset: int, first: int, second: int) -> Any:
        positions = iter(range(len(before)))
        result = [
            (0, 1, 0) if axis in (first, second) else (next(positions), 1, 0) for axis in range(len(before))
        ]
        result[first] = (len(after) - 1, 1, max(-offset, 0))
        result[second] = (len(after) - 1, 1, max(offset, 0))
        return tuple(result)

    @staticmethod
    def vjp(ct: Any, y: Any, x: Any, offset: int, first: int, second: int) -> Any:
        embedded, on_diagonal = _embedded_diagonal(ct, x.shape, offset, first, second)
        return (ops.where(on_diagonal, embedded, 0),)

    @staticmethod
    def write(base: Any, value: Any, offset: int, first: int, second: int) -> Any:
        embedded, on_diagonal = _embedded_diagonal(value, base.shape, offset, first, second)
        return ops.where(on_diagonal, embedded, base)

    @staticmethod
    def layout(source: Layout, offset: int, first: int, second: int) -> Layout:
        size, stride = list(source.size), list(source.stride)
        length = max(min(size[first] + min(offset, 0), size[second] - max(offset, 0)), 0)
        skipped = stride[second] * offset if offset >= 0 else -stride[first] * offset
        step = stride[first] + stride[second]
        for axis in sorted((first, second), reverse=True):
            del size[axis], stride[axis]
        offset = source.offset + (skipped if length else 0)
        return source._replace(size=(*size, length), stride=(*stride, step), offset=offset)

    batch = lambda size, offset, first, second: (offset, first + 1, second + 1)
    reference = lambda x, offset, first, second: numpy.diagonal(x, offset, first, second)
    samples = lambda: [
        example((0, 0, 1), (3, 5)),
        example((-1, 2, 0), (4, 2, 4)),
        example((7, 0, 1), (3, 5)),
    ]


def _embedded_diagonal(value: Node, shape: Shape, offset: int, first: int, second: int) -> tuple[Node, Node]:
    """``value`` laid along the axis ``first`` of a tensor of ``shape``, and the mask of the diagonal."""
    kept = [axis for axis in range(len(shape)) if axis not in (first, second)]
    rows, length = shape[first], value.shape[-1]
    mask = ops.equal(ops.add(axis_numbers(first, shape), offset), axis_numbers(second, shape))
    if length == 0:
        return filled(0, value.dtype, shape), mask
    if length != rows:
        target = (*value.shape[:-1], rows)
        start = constant(max(-offset, 0), int64)
        value = apply("pad_block", value, 0, start, attrs=(target, (1,) * len(target), (len(kept),)))
    order = [
        len(kept) + (axis == second) if axis in (first, second) else kept.index(axis)
        for axis in range(len(shape))
    ]
    return broadcast(ops.permute(ops.unsqueeze(value, -1), order), shape), mask


def axis_numbers(axis: int, shape: Shape) -> Any:
    """The int64 node of ``shape`` that holds each element's position on ``axis``."""
    size = shape[axis]
    line = ops.reshape(iota((size,)), (size, *[1] * (len(shape) - axis - 1)))
    return broadcast(line, shape)


def element_count(input: Any) -> int:
    """How many elements ``input`` has."""
    size = 1
    for length in input.shape:
        size *= length
    return size
