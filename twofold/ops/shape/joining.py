"""Operations that lay blocks into a larger tensor: concatenation, padding, replaced slices."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, pairwise
from math import prod
from typing import Any

import numpy

from twofold.dtypes import int64
from twofold.errors import ArgumentError, ShapeError
from twofold.ir.bind import constant
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.op import Assembly
from twofold.ir.sizes import current_sizes
from twofold.ir.types import Shape, TensorType, size_text, tensor_type
from twofold.ops import kernels
from twofold.ops.axes import given_once
from twofold.ops.base import (
    Custom,
    apply,
    broadcast,
    common_dtype,
    composite,
    convert,
    custom,
    elementwise,
    normalize_axis,
    ops,
    strong,
)
from twofold.ops.examples import example
from twofold.ops.shape.movement import block, run_time_index, slice_axis


@elementwise
class clamp_index:
    """A start limited to ``0 … highest``, so that a block at it lies inside its tensor."""

    functions = ()
    signature = "start"
    kinds = "iu"
    differentiable = False
    lower = lambda b, x, highest: b.maximum(b.minimum(x, highest), 0)
    reference = lambda x, highest: numpy.clip(x, 0, highest)
    attribute_samples = ((4,),)


class Group:
    """Adjacent axes of a block operation taken as one; ``start`` numbers the run-time start, or None."""

    __slots__ = ("inner", "outer", "scale", "start", "step")

    def __init__(self, outer: int, inner: int, step: int, start: int | None) -> None:
        self.outer, self.inner, self.step, self.start, self.scale = outer, inner, step, start, 1


def group_axes(outer: Shape, inner: Shape, steps: Sequence[int], axes: Sequence[int]) -> list[Group]:
    """The axes of a block of shape ``inner`` inside ``outer``, whole ones merged into those before."""
    groups: list[Group] = []
    for axis, (large, small, step) in enumerate(zip(outer, inner, steps, strict=True)):
        if axis not in axes and groups and groups[-1].step == 1:
            last = groups[-1]
            last.outer, last.inner, last.scale = last.outer * large, last.inner * small, last.scale * large
        else:
            groups.append(Group(large, small, step, axes.index(axis) if axis in axes else None))
    return groups or [Group(1, 1, 1, None)]


class Block(Custom):
    """A tensor with a block of another laid into it; subclasses say what is around the block."""

    functions = ()
    value: int  # the input that holds the block
    first: int  # the input that holds the first start

    def groups(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> list[Group]:
        steps, axes = attrs[-2:]
        return group_axes(output.shape, inputs[self.value].shape, steps, axes)

    def starts(self, inputs: Sequence[Node], outer: Shape, attrs: Attributes) -> list[Node]:
        """The checked starts of a block with attributes ``(..., steps, axes)``."""
        steps, axes = attrs[-2:]
        inner = inputs[self.value].type.shape
        if len(inner) != len(outer) or len(axes) != len(inputs) - self.first:
            raise ShapeError(f"a block of {len(inner)} axes in {len(outer)}", "Give the block as many axes.")
        found = []
        for axis, (large, small) in enumerate(zip(outer, inner, strict=True)):
            span = (small - 1) * steps[axis] + 1 if small else 0
            if span > large or (axis not in axes and small != large):
                raise ShapeError(
                    f"a block of size {small} does not fit axis {axis} of size {large}",
                    f"Make it at most {large}.",
                )
            if axis in axes:
                found.append(run_time_index(inputs[self.first + axes.index(axis)], large - span))
        return found

    def parameters(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[int, ...]:
        groups = self.groups(attrs, inputs, output)
        return tuple(number for g in groups for number in (g.outer, g.inner, g.step, g.scale))

    def work(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> tuple[int, int]:
        groups = self.groups(attrs, inputs, output)
        return prod(g.outer for g in groups[:-1]), kernels.grain(16384, groups[-1].outer)

    def code_key(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[Any, ...]:
        groups = self.groups(attrs, inputs, output)
        return tuple((g.start, g.step == 1) for g in groups)

    def surround(self, b: Any, dtype: Any, target: Any, at: Any, count: Any) -> None:
        """Emit the ``count`` elements from ``at`` of the result as they are without the block."""
        raise NotImplementedError

    def emit(self, builder: Any, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> None:
        b, dtype = builder, output.dtype
        groups = self.groups(attrs, inputs, output)
        source, target = b.input(self.value), b.buffer(len(inputs))
        outer, inner, step = ([b.param(4 * k + part) for k in range(len(groups))] for part in range(3))
        zero = b.const(0, int64)
        starts = []
        for k, group in enumerate(groups):
            start = zero
            if group.start is not None:
                # limited again here: a wrong start must never write outside the result
                span = b.add(b.mul(b.sub(inner[k], 1), step[k]), 1)
                start = b.mul(b.load(b.input(self.first + group.start), 0, int64), b.param(4 * k + 3))
                start = kernels.clamp(b, start, zero, b.sub(outer[k], span))
            starts.append(start)
        last = len(groups) - 1
        with b.loop(b.begin, b.end) as row:
            steps = [None if group.step == 1 else step[k] for k, group in enumerate(groups[:last])]
            inside, index = _locate(b, row, outer[:last], inner[:last], steps, starts)
            at = b.mul(row, outer[last])
            with b.if_(inside):
                self._row(
                    b,
                    dtype,
                    groups[last].step == 1,
                    target,
                    at,
                    source,
                    b.mul(index, inner[last]),
                    outer[last],
                    inner[last],
                    step[last],
                    starts[last],
                )
            with b.if_(b.not_(inside)):
                self.surround(b, dtype, target, at, outer[last])

    def _row(
        self,
        b: Any,
        dtype: Any,
        dense: bool,
        target: Any,
        at: Any,
        source: Any,
        source_at: Any,
        outer: Any,
        inner: Any,
        step: Any,
        start: Any,
    ) -> None:
        """Emit one row of the result that the block reaches."""
        if dense:
            after = b.add(start, inner)
            self.surround(b, dtype, target, at, start)
            kernels.copy(b, dtype, target, b.add(at, start), source, source_at, inner)
            self.surround(b, dtype, target, b.add(at, after), b.sub(outer, after))
            return
        self.surround(b, dtype, target, at, outer)
        with b.loop(0, inner) as j:
            value = b.load(source, b.add(source_at, j), dtype)
            b.store(target, b.add(b.add(at, start), b.mul(j, step)), value)


def _locate(
    b: Any, row: Any, outer: Sequence[Any], inner: Sequence[Any], steps: Sequence[Any], starts: Any
) -> tuple[Any, Any]:
    """Emit whether row ``row`` of the result meets the block, and which row of the block it is.

    A step is None where elements are adjacent: a division takes as long as the copy of a short row.
    """
    inside, index, rest, stride = b.cmp("eq", row, row), b.const(0, int64), row, b.const(1, int64)
    for k in range(len(outer) - 1, -1, -1):
        above = b.idiv(rest, outer[k]) if k else b.const(0, int64)
        away = b.sub(b.sub(rest, b.mul(above, outer[k])), starts[k])
        number = away if steps[k] is None else b.idiv(away, steps[k])
        inside = b.and_(inside, b.and_(b.cmp("ge", away, 0), b.cmp("lt", number, inner[k])))
        if steps[k] is not None:
            inside = b.and_(inside, b.cmp("eq", b.mul(number, steps[k]), away))
        index = b.add(index, b.mul(number, stride))
        stride = b.mul(stride, inner[k])
        rest = above
    return inside, index


@custom
class pad_block(Block):
    """A tensor of ``shape`` filled with a scalar, with the input laid into it.

    Attributes ``(shape, steps, axes)``, inputs ``(x, fill, starts of axes...)``; elements lie ``steps``
    apart.
    """

    autograd_name = "ConstantPadNdBackward0"
    assembly = Assembly.PAD
    value, first = 0, 2

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        x = strong(inputs[0])
        starts = self.starts(inputs, attrs[0], attrs)
        return make_node(
            self, attrs, (x, convert(inputs[1], x.dtype), *starts), tensor_type(x.dtype, attrs[0])
        )

    def batching_rule(
        self, node: Node, values: Sequence[Node], flags: Sequence[bool], size: int
    ) -> Node | None:
        """Samples are one more whole axis in front, if their blocks begin at the same positions."""
        if not flags[0] or any(flags[1:]):
            return None
        shape, steps, axes = node.attrs
        attrs = ((size, *shape), (1, *steps), tuple(axis + 1 for axis in axes))
        return make_node(self, attrs, tuple(values), tensor_type(node.dtype, (size, *node.shape)))

    def surround(self, b: Any, dtype: Any, target: Any, at: Any, count: Any) -> None:
        kernels.fill(b, dtype, target, at, b.load(b.input(1), 0, dtype), count)

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        x, fill, *starts = inputs
        _, steps, axes = attrs
        inner = apply("slice", cotangent, *starts, attrs=(x.shape, steps, axes))
        if fill.op.name == "constant" or (fill.op.name == "cast" and fill.inputs[0].op.name == "constant"):
            return (inner, None, *[None] * len(starts))
        blank = apply(
            "slice_update", cotangent, broadcast(constant(0, x.dtype), x.shape), *starts, attrs=(steps, axes)
        )
        return (inner, apply("sum", blank, attrs=(tuple(range(blank.ndim)), False)), *[None] * len(starts))

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        (shape, steps, axes), (x, value, *starts) = attrs, arrays
        result = numpy.full(shape, value, x.dtype)
        result[_block_of(x.shape, steps, axes, starts)] = x
        return result

    def samples(self) -> Sequence[Any]:
        return [
            example(((5, 18), (1, 1), (0,)), (3, 18), (), 1),
            example(((9, 20), (2, 3), (0, 1)), (3, 5), (), 3, 4),
            example(((4, 3, 20), (1, 1, 1), (1, 2)), (4, 2, 17), (), 1, 3),
            example(((4,), (1,), (0,)), (0,), (), 1),
            example(
                ((6, 2, 3), (1, 1, 1), (0,)), numpy.arange(12).reshape(2, 2, 3) % 2 == 0, numpy.array(True), 2
            ),
        ]


def _block_of(
    inner: Shape, steps: Sequence[int], axes: Sequence[int], starts: Sequence[Any]
) -> tuple[Any, ...]:
    begin = [0] * len(inner)
    for axis, start in zip(axes, starts, strict=True):
        begin[axis] = int(start)
    return block(begin, inner, steps)


@custom
class slice_update(Block):
    """A new tensor like ``base`` with a block replaced: ``base[start:stop:step] = value``.

    Attributes ``(steps, axes)``, inputs ``(base, value, starts of axes...)``; the other axes are whole.
    """

    assembly = Assembly.UPDATE_SLICE
    value, first = 1, 2

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        base = strong(inputs[0])
        starts = self.starts(inputs, base.shape, attrs)
        return make_node(self, attrs, (base, convert(inputs[1], base.dtype), *starts), base.type)

    def surround(self, b: Any, dtype: Any, target: Any, at: Any, count: Any) -> None:
        kernels.copy(b, dtype, target, at, b.input(0), at, count)

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        _, value, *starts = inputs
        steps, axes = attrs
        inner = apply("slice", cotangent, *starts, attrs=(value.shape, steps, axes))
        blank = broadcast(constant(0, value.dtype), value.shape)
        outer = apply("slice_update", cotangent, blank, *starts, attrs=attrs)
        return (outer, inner, *[None] * len(starts))

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        (steps, axes), (base, value, *starts) = attrs, arrays
        result = base.copy()
        result[_block_of(value.shape, steps, axes, starts)] = value
        return result

    def samples(self) -> Sequence[Any]:
        return [
            example(((1, 1), (0,)), (5, 18), (3, 18), 1),
            example(((2, 3), (0, 1)), (9, 20), (3, 5), 3, 4),
            example(((1, 1, 1), (1, 2)), (4, 3, 20), (4, 2, 17), 1, 3),
            example(((1,), (0,)), (4,), (0,), 1),
        ]


def _check_joinable(axis: int, shapes: Sequence[Shape]) -> None:
    """Raises ShapeError for the first shape that differs beside ``axis``; empty vectors fit everywhere."""
    some = [(k, shape) for k, shape in enumerate(shapes) if shape != (0,)]
    first = some[0][1] if some else ()
    beside = [index for index in range(len(first)) if index != axis]
    for position, shape in some:
        if len(shape) != len(first) or any(
            shape[index] != first[index] and min(shape[index], first[index]) >= 0 for index in beside
        ):
            what = f"tensor {position} of shape {_text(shape)} beside {_text(first)} along axis {axis}"
            raise ShapeError(what, "Make all axes but that one equal.")


def _text(shape: Shape) -> str:
    """A shape for a message."""
    return f"({', '.join(map(size_text, shape))}{',' * (len(shape) == 1)})"


def _of_one_dtype(given: Sequence[Any]) -> list[Any]:
    dtypes = [value.dtype for value in given]
    if all(one is dtypes[0] for one in dtypes):
        return list(given)
    dtype, _ = common_dtype([tensor_type(value.dtype, ()) for value in given])
    return [apply("cast", value, attrs=(dtype,)) for value in given]


_FEW, _WIDTH, _MOST = 8, 16, 64
"""More inputs than the first are joined in stages if they are small, in groups of the second number; large ones, each
of whose copies takes time, if there are more than the last."""

_SMALL = 4096
"""Elements of an input that is small."""


def in_groups(given: Sequence[Any], width: int = _WIDTH) -> list[Sequence[Any]]:
    """Groups of ``width``, then of half as many, and what is left, so that programs which join ever other numbers of
    tensors, such as one for each step of a sequence, share few rules, gradients and kernels.

    >>> list(map(len, in_groups(range(45))))
    [16, 16, 8, 5]
    """
    count = len(given)
    cuts = [*range(0, count, width), count]
    if width // 2 < cuts[-1] - cuts[-2] < width:
        cuts.insert(-1, cuts[-2] + width // 2)
    return [given[begin:end] for begin, end in pairwise(cuts)]


def _groups(given: Sequence[Any]) -> list[Sequence[Any]]:
    """The inputs in groups that are joined first."""
    if len(given) <= _FEW:
        return [given]
    declared = isinstance(given[0], Node) or current_sizes() is not None  # as many in every run
    if not declared and all(prod(one.shape) <= _SMALL for one in given):
        return in_groups(given)
    return [given[begin : begin + _MOST] for begin in range(0, len(given), _MOST)]


@custom
class concatenate(Custom):
    """The inputs behind each other along an axis.

    Raises ShapeError where other axes differ in size.

    >>> import twofold as torch
    >>> torch.cat((torch.tensor([[1, 2]]), torch.tensor([[3, 4], [5, 6]])))
    tensor([[1, 2],
            [3, 4],
            [5, 6]])
    >>> torch.cat((torch.tensor([[1, 2]]), torch.tensor([[3]])), dim=1)
    tensor([[1, 2, 3]])
    """

    assembly = Assembly.CONCATENATE
    autograd_name = "CatBackward0"
    autocast = "widest"
    functions = ("concatenate", "cat", "concat")
    _unrolled = 8  # more inputs than this are copied by a loop over the inputs
    _row = 4096  # longer rows are shared by work items

    @staticmethod
    def call(tensors: Sequence[Any], dim: int = 0, axis: int | None = None) -> Any:
        given = list(tensors)
        if not given:
            raise ArgumentError("no tensors to concatenate", "Give at least one.")
        sizes = [tensor.shape for tensor in given]
        index = normalize_axis(given_once(dim=dim or None, axis=axis) or 0, max(map(len, sizes)))
        groups = _groups(given)
        if len(groups) > 1:
            if sizes.count(sizes[0]) != len(sizes):
                _check_joinable(index, [tuple(shape) for shape in sizes])
            groups = _groups(_of_one_dtype(given))
        while len(groups) > 1:
            groups = _groups(
                [apply("concatenate", *group, attrs=(index,)) if group[1:] else group[0] for group in groups]
            )
        return apply("concatenate", *groups[0], attrs=(index,))

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        (axis,) = attrs
        dtype, _ = common_dtype([node.type for node in inputs])
        _check_joinable(axis, [node.type.shape for node in inputs])
        some = [node for node in inputs if node.type.shape != (0,)] or inputs[:1]
        values = [strong(convert(node, dtype)) for node in some]
        if len(values) == 1:
            return values[0]
        while len(values) > _MOST:
            values = [self._join(axis, values[k : k + _MOST]) for k in range(0, len(values), _MOST)]
        return self._join(axis, values)

    def _join(self, axis: int, values: Sequence[Node]) -> Node:
        if len(values) == 1:
            return values[0]
        shape = values[0].shape
        total = sum(value.shape[axis] for value in values)
        return make_node(
            self, (axis,), values, tensor_type(values[0].dtype, (*shape[:axis], total, *shape[axis + 1 :]))
        )

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        (axis,), start, pieces = attrs, 0, []
        for value in inputs:
            size = value.shape[axis]
            pieces.append(slice_axis(cotangent, axis, constant(start, int64), size))
            start += size
        return pieces

    def batching_rule(
        self, node: Node, values: Sequence[Node], flags: Sequence[bool], size: int
    ) -> Node | None:
        """Samples are one more axis in front, if all inputs have them."""
        if not all(flags):
            return None
        type = tensor_type(node.dtype, (size, *node.shape))
        return make_node(self, (node.attrs[0] + 1,), tuple(values), type)

    def parameters(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[int, ...]:
        total, *sizes = [prod(type.shape[attrs[0] :]) for type in (output, *inputs)]
        return (len(inputs), total, *sizes, *chain.from_iterable((0, size) for size in sizes))

    def row_axis(self, attrs: Attributes) -> int | None:
        """The axis along which inputs are joined."""
        axis: int = attrs[0]
        return axis

    def work(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> tuple[int, int]:
        (axis,) = attrs
        if self._by_rows(axis, output):
            return prod(output.shape[:axis]), kernels.grain(16384, prod(output.shape[axis:]))
        return output.size, 16384

    def _by_rows(self, axis: int, output: TensorType) -> bool:
        """Whether a work item is a row, rather than an element."""
        return axis > 0 and prod(output.shape[axis:]) <= self._row

    def code_key(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[Any, ...]:
        (axis,) = attrs
        if len(inputs) > self._unrolled:
            return (0, self._by_rows(axis, output))
        return (len(inputs), self._by_rows(axis, output), *(self._single(axis, type) for type in inputs))

    @staticmethod
    def _single(axis: int, type: TensorType) -> bool:
        """Whether a row of an input is one element."""
        return all(size == 1 for size in type.shape[axis:])

    def emit(self, builder: Any, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> None:
        b, dtype, by_rows = builder, output.dtype, self._by_rows(attrs[0], output)
        count, total = b.param(0), b.param(1)

        def piece(k: Any, row: Any, at: Any, source: Any, target: Any, single: bool) -> Any:
            """Emit a row of an input and give where the next one begins."""
            if isinstance(k, int):
                size, offset, stride = (
                    b.param(n) for n in (k + 2, len(inputs) + 2 * k + 2, len(inputs) + 2 * k + 3)
                )
            else:
                where = b.add(b.add(count, 2), b.mul(k, 2))
                size, offset, stride = (b.param_at(n) for n in (b.add(k, 2), where, b.add(where, 1)))
            source_at, after = b.add(b.mul(row, stride), offset), b.add(at, size)
            if by_rows and single:
                b.store(target, at, b.load(source, source_at, dtype))
            elif by_rows:
                kernels.copy(b, dtype, target, at, source, source_at, size)
            else:
                low, high = kernels.clamp(b, b.begin, at, after), kernels.clamp(b, b.end, at, after)
                source_at = b.add(source_at, b.sub(low, at))
                kernels.copy(b, dtype, target, low, source, source_at, b.maximum(b.sub(high, low), 0))
            return after

        def pieces(row: Any) -> None:
            at = b.mul(row, total)
            if len(inputs) <= self._unrolled or b.buffer_at is None:
                for k, type in enumerate(inputs):
                    single = len(inputs) <= self._unrolled and self._single(attrs[0], type)
                    at = piece(k, row, at, b.input(k), b.buffer(len(inputs)), single)
                return
            with b.loop(0, count, carry=[at]) as (k, (at,)):
                b.loop_next([piece(k, row, at, b.buffer_at(k), b.buffer_at(count), False)])

        if by_rows:
            with b.loop(b.begin, b.end) as row:
                pieces(row)
            return
        with b.if_(b.cmp("lt", b.begin, b.end)):
            last = b.idiv(b.sub(b.end, 1), total)
            with b.loop(b.idiv(b.begin, total), b.add(last, 1)) as row:
                pieces(row)

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        return numpy.concatenate(arrays, attrs[0])

    def samples(self) -> Sequence[Any]:
        return [
            example((0,), (2, 3), (1, 3), (4, 3)),
            example((1,), (2, 3), (2, 17), (2, 0)),
            example((2,), (2, 3, 16), (2, 3, 1)),
            example((0,), (5,), (7,)),
            example((0,), *[(2,)] * 40),
            example((1,), *[(3, size) for size in (1, 20, 0, 3, 2, 17, 1, 1, 4, 5)]),
            example((0,), *[(2,)] * 70),
        ]


@composite
class stack:
    """The inputs of one shape behind each other along a new axis; raises ShapeError where shapes differ.

    >>> import twofold as torch
    >>> torch.stack((torch.tensor([1, 2]), torch.tensor([3, 4])))
    tensor([[1, 2],
            [3, 4]])
    >>> torch.stack((torch.tensor([1, 2]), torch.tensor([3, 4])), dim=1)
    tensor([[1, 3],
            [2, 4]])
    """

    autograd_name = "StackBackward0"
    autocast = "widest"

    @staticmethod
    def call(tensors: Sequence[Any], dim: int = 0, axis: int | None = None) -> Any:
        given = list(tensors)
        if not given:
            raise ArgumentError("no tensors to stack", "Give at least one.")
        index = normalize_axis(given_once(dim=dim or None, axis=axis) or 0, len(given[0].shape) + 1)
        if len(_groups(given)) == 1:
            return apply("stack", *given, attrs=(index,))
        _check_equal_shapes([tuple(tensor.shape) for tensor in given])
        groups = _groups(_of_one_dtype(given))
        return ops.concatenate([apply("stack", *group, attrs=(index,)) for group in groups], index)

    def compute(*arguments: Any) -> Any:
        *values, axis = arguments
        _check_equal_shapes([tuple(value.shape) for value in values])
        return ops.concatenate([ops.unsqueeze(value, axis) for value in values], axis)

    def reference(*arguments: Any) -> Any:
        *values, axis = arguments
        return numpy.stack(values, axis)

    samples = lambda: [
        example((0,), (3,), (3,)),
        example((2,), (2, 3), (2, 3), (2, 3)),
        example((1,), *[(2, 1)] * 17),
        example((0,), ()),
    ]


def _check_equal_shapes(shapes: Sequence[Shape]) -> None:
    for position, shape in enumerate(shapes):
        if shape != shapes[0]:
            what = f"tensor {position} of shape {_text(shape)} beside {_text(shapes[0])}"
            raise ShapeError(what, "Make all shapes equal.")
