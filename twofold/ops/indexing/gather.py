"""Gathering and scattering along an axis, with indices that are checked in the kernel.

Primitive form: data ``[outer, size, inner]``, values ``[outer, count, inner]`` and an int64 index
``[outer or 1, count, inner or 1]``, to which public forms are reshaped. Negative indices count from the end, unless
the last attribute is ``NONNEGATIVE``: then the kernel fails for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy

from twofold.dtypes import complex64, int64
from twofold.errors import ArgumentError, DTypeError, ShapeError
from twofold.ir.bind import constant
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.op import Assembly
from twofold.ir.sizes import maximum, minimum
from twofold.ir.types import Shape, TensorType, tensor_type
from twofold.ops import kernels
from twofold.ops.base import (
    Custom,
    apply,
    broadcast,
    broadcast_shapes,
    composite,
    convert,
    custom,
    filled,
    normalize_axis,
    ops,
    public,
    strong,
)
from twofold.ops.examples import example
from twofold.ops.indexing.row_products import block_share
from twofold.ops.shape.movement import axis_numbers, slice_axis

_BLOCK = 64  # columns that one work item scatters; threads never share a column
_PART, _MOST_PARTS = 1 << 15, 16  # elements of a part of the rows, and how many parts there are
_SPARSE = 16  # times as many rows as updates in each part: then each item may look at all updates
_LARGE_BYTES = 16 << 20  # more than a share of the last level cache
_RUN = 4096  # single elements that one work item gathers
NONNEGATIVE = "nonnegative"  # the attribute of a primitive whose indices do not count from the end


def need_index(index: Node) -> Node:
    """``index`` as int64; raises DTypeError for anything but integers."""
    if index.dtype.kind not in "iu":
        raise DTypeError(f"an index of {index.dtype.name}", "Cast it with .to(int64) first.")
    return convert(index, int64)


def wraps(attrs: Attributes) -> bool:
    """Whether the indices of a primitive may count from the end."""
    last = attrs[-1] if attrs else None
    return not (isinstance(last, str) and last == NONNEGATIVE)


def outside(index: int, size: int, lowest: int) -> tuple[str, str]:
    """What to say of an index outside an axis, and what to change."""
    if not size:
        return f"index {index} into an axis without elements", "Select from an axis that has elements."
    return f"index {index} is outside an axis of size {size}", f"Use indices from {lowest} to {size - 1}."


def _full(index: Any, outer: int, inner: int) -> Any:
    return numpy.broadcast_to(index, (outer, index.shape[1], inner))


class Indexed(Custom):
    """What the primitives on ``[outer, size, inner]`` share."""

    functions = ()
    checks = True
    index: int = 0  # which input holds the index

    def failure(self, index: int, inputs: Sequence[TensorType], attrs: Attributes) -> tuple[str, str]:
        """The index and the size of the axis."""
        size = inputs[0].shape[1] if self.index else attrs[0]
        return outside(index, size, -size if wraps(attrs) else 0)

    def index_at(self, b: Any, types: Sequence[TensorType], outer: Any, k: Any, j: Any, count: Any) -> Any:
        """The element of the index for position ``(outer, k, j)``; code depends on which axes it has."""
        shape = types[self.index].shape
        at = b.add(b.mul(outer, count), k) if shape[0] != 1 else k
        return b.load(b.input(self.index), b.add(b.mul(at, b.param(2)), j) if shape[2] != 1 else at, int64)

    def code_key(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[Any, ...]:
        shape = inputs[self.index].shape
        return (wraps(attrs), shape[0] != 1, shape[2] != 1, *(size == 1 for size in output.shape))


@custom
class gather_block(Indexed):
    """``result[a, k, j] = data[a, index[a, k, j], j]``; inputs ``(data, index)``."""

    index = 1
    copies = True

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        data, index = inputs
        shape = (data.shape[0], index.shape[1], data.shape[2])
        return make_node(self, attrs, (data, index), tensor_type(data.dtype, shape))

    def parameters(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[int, ...]:
        return (inputs[0].shape[1], *output.shape[1:], -(-output.shape[1] // _RUN))

    def work(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> tuple[int, int]:
        outer, count, inner = output.shape
        if _in_runs(output):
            return outer * -(-count // _RUN), kernels.grain(16384, minimum(count, _RUN))
        return outer * count if inner else 0, kernels.grain(16384, inner)

    def emit(self, builder: Any, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> None:
        (self._emit_runs if _in_runs(output) else self._emit_rows)(builder, inputs, output, wraps(attrs))

    def _emit_runs(self, b: Any, inputs: Sequence[TensorType], output: TensorType, wraps: bool) -> None:
        """Single elements, sixteen at a time where that is faster."""
        size, count = b.param(0), b.param(1)
        with b.loop(b.begin, b.end) as item:
            outer, run = (
                (b.const(0, int64), item) if output.shape[0] == 1 else kernels.split(b, item, b.param(3))
            )
            low, first = b.mul(run, _RUN), b.mul(outer, size)
            length = b.minimum(b.sub(count, low), _RUN)
            at = b.add(b.mul(outer, count), low)
            found = low if inputs[1].shape[0] == 1 else at

            def body(
                j: Any, lanes: int, mask: Any, first: Any = first, at: Any = at, found: Any = found
            ) -> None:
                index = b.load(b.input(1), b.add(found, j), int64, lanes, mask=mask)
                if lanes == 1:
                    position = b.add(first, kernels.checked_index(b, index, size, wraps))
                    value = b.load(b.input(0), position, output.dtype)
                else:
                    position = b.add(first, kernels.checked_indices(b, index, size, mask, wraps))
                    value = b.load_indices(b.input(0), position, output.dtype, mask)
                b.store(b.buffer(2), b.add(at, j), value, mask=mask)

            if b.gathers():
                kernels.run(b, length, body)
            else:
                with b.loop(0, length) as j:
                    body(j, 1, None)

    def _emit_rows(self, b: Any, inputs: Sequence[TensorType], output: TensorType, wraps: bool) -> None:
        dtype, data, target = output.dtype, b.input(0), b.buffer(2)
        size, count, inner = b.param(0), b.param(1), b.param(2)
        one_column = output.shape[2] == 1
        with b.loop(b.begin, b.end) as row:
            outer, k = self._row_of(b, row, count, output)
            first, at = b.mul(outer, size), b.mul(row, inner)
            if inputs[1].shape[2] == 1:
                index = self.index_at(b, inputs, outer, k, 0, count)
                position = kernels.checked_index(b, index, size, wraps)
                if one_column:
                    b.store(target, row, b.load(data, b.add(first, position), dtype))
                else:
                    kernels.copy(b, dtype, target, at, data, b.mul(b.add(first, position), inner), inner)
            else:
                with b.loop(0, inner) as j:
                    index = self.index_at(b, inputs, outer, k, j, count)
                    position = kernels.checked_index(b, index, size, wraps)
                    value = b.load(data, b.add(b.mul(b.add(first, position), inner), j), dtype)
                    b.store(target, b.add(at, j), value)

    def _row_of(self, b: Any, row: Any, count: Any, output: TensorType) -> tuple[Any, Any]:
        if output.shape[0] == 1:
            return b.const(0, int64), row
        if output.shape[1] == 1:
            return row, b.const(0, int64)
        return kernels.split(b, row, count)

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        data, index = inputs
        return apply("scatter_sum", index, cotangent, attrs=(data.shape[1],)), None

    def shares(self, cotangent: Node, node: Node, inputs: tuple[Node, ...]) -> Sequence[Any] | None:
        own, none = self.vjp(node.attrs, cotangent, node, inputs)
        return block_share(cotangent, own, *inputs), none

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        data, index = arrays
        return numpy.take_along_axis(data, _full(index, data.shape[0], data.shape[2]), 1)

    def samples(self) -> Sequence[Any]:
        return [
            example((), (1, 5, 17), numpy.array([[[4], [-1], [0]]])),
            example((), (2, 5, 3), numpy.array([[[4, 0, -5], [1, 2, 3]], [[0, 0, 0], [1, -1, 1]]])),
            example((), (3, 4, 1), numpy.array([[[1]], [[3]], [[0]]])),
            example((), (2, 4, 33), numpy.array([[[1], [1]]])),
            example((), (1, 4, 3), numpy.zeros((1, 0, 1), numpy.int64)),
            example((), (1, 9, 1), numpy.array([[[1], [8], [-1]]])),
            example((), (3, 9, 1), numpy.arange(-9, 9).reshape(1, 18, 1)),
            example((), (2, 9, 1), numpy.arange(-9, 9).reshape(2, 9, 1).repeat(2, 1)),
            example((NONNEGATIVE,), (3, 9, 1), numpy.arange(18).reshape(1, 18, 1) % 9),
            example((NONNEGATIVE,), (2, 5, 17), numpy.array([[[4], [0]]])),
        ]


def _in_runs(output: TensorType) -> bool:
    """Whether single elements are gathered, several for each index of the first axis."""
    return output.shape[2] == 1 and output.shape[1] != 1


def _within(b: Any, position: Any, top: Any, bottom: Any) -> Any:
    return b.and_(b.cmp("ge", position, top), b.cmp("lt", position, bottom))


class Scatter(Indexed):
    """A work item owns some columns, or some of many rows, and takes their updates in the order of the index."""

    def work(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> tuple[int, int]:
        blocks, parts = self._divided(inputs, output)
        return output.shape[0] * blocks * parts, 1

    def parameters(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[int, ...]:
        blocks, parts = self._divided(inputs, output)
        _, size, inner = output.shape
        return size, inputs[self.index].shape[1], inner, blocks, parts, -(-size // parts)

    def _divided(self, inputs: Sequence[TensorType], output: TensorType) -> tuple[int, int]:
        """Blocks of columns, and parts of rows: several where few updates reach many rows, as each item sees all."""
        _, size, inner = output.shape
        enough = minimum(size * inner // _PART, size // (_SPARSE * maximum(1, inputs[self.index].shape[1])))
        parts = maximum(1, minimum(_MOST_PARTS, enough))
        return 1 + maximum(0, 2 - parts) * (-(-inner // _BLOCK) - 1), parts

    def begin(self, b: Any, dtype: Any, target: Any, at: Any, count: Any) -> None:
        """Emit what ``count`` elements of the result are before the updates."""
        raise NotImplementedError

    def update(self, b: Any, attrs: Attributes, dtype: Any, old: Any, new: Any) -> Any:
        """Emit what an element is after an update."""
        raise NotImplementedError

    def emit(self, builder: Any, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> None:
        b, dtype = builder, output.dtype
        target, updates = b.buffer(len(inputs)), b.input(len(inputs) - 1)
        size, count, inner, blocks, parts, each = (b.param(k) for k in range(6))
        with b.loop(b.begin, b.end) as item:
            rest = b.idiv(item, blocks)
            outer = b.idiv(rest, parts)
            low = b.mul(b.sub(item, b.mul(rest, blocks)), _BLOCK)
            # rows that one item owns whole lie next to each other, and are one run
            whole = b.cmp("eq", blocks, 1)
            width = b.select(whole, inner, b.minimum(b.sub(inner, low), _BLOCK))
            first = b.mul(outer, size)
            top = b.minimum(b.mul(b.sub(rest, b.mul(outer, parts)), each), size)
            bottom = b.minimum(b.add(top, each), size)
            own = b.sub(bottom, top)
            rows, run = b.select(whole, 1, own), b.select(whole, b.mul(own, inner), width)
            with b.loop(0, rows) as row:
                start = b.add(b.add(first, top), row)
                self.begin(b, dtype, target, b.add(b.mul(start, inner), low), run)
            with b.loop(0, count) as k:
                source = b.add(b.mul(b.add(b.mul(outer, count), k), inner), low)
                if inputs[self.index].shape[2] == 1:
                    index = self.index_at(b, inputs, outer, k, 0, count)
                    position = kernels.checked_index(b, index, size, wraps(attrs))
                    with b.if_(_within(b, position, top, bottom)):
                        if output.shape[2] == 1:
                            at, new = b.add(first, position), b.load(updates, source, dtype)
                            b.store(target, at, self.update(b, attrs, dtype, b.load(target, at, dtype), new))
                        else:
                            at = b.add(b.mul(b.add(first, position), inner), low)
                            self._columns(b, attrs, dtype, target, at, updates, source, width)
                else:
                    with b.loop(0, width) as j:
                        index = self.index_at(b, inputs, outer, k, b.add(low, j), count)
                        position = kernels.checked_index(b, index, size, wraps(attrs))
                        with b.if_(_within(b, position, top, bottom)):
                            at = b.add(b.add(b.mul(b.add(first, position), inner), low), j)
                            new = b.load(updates, b.add(source, j), dtype)
                            b.store(target, at, self.update(b, attrs, dtype, b.load(target, at, dtype), new))

    def _columns(
        self,
        b: Any,
        attrs: Attributes,
        dtype: Any,
        target: Any,
        at: Any,
        updates: Any,
        source: Any,
        width: Any,
    ) -> None:
        def body(j: Any, lanes: int, mask: Any) -> None:
            new = b.load(updates, b.add(source, j), dtype, lanes, mask=mask)
            old = b.load(target, b.add(at, j), dtype, lanes, mask=mask)
            b.store(target, b.add(at, j), self.update(b, attrs, dtype, old, new), mask=mask)

        kernels.run(b, width, body)


@custom
class scatter_sum(Scatter):
    """Zeros of ``size`` rows with ``updates`` added at ``index``.

    Inputs ``(index, updates)``, attributes ``(size,)``, perhaps with ``NONNEGATIVE``.
    """

    assembly = Assembly.SEGMENT_SUM
    index = 0
    kinds = "iufc"

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        index, updates = inputs
        self.check_kind(updates.dtype)
        if updates.dtype.kind == "c":
            parts = ops.real(updates), ops.imag(updates)
            return ops.complex(*[apply("scatter_sum", index, part, attrs=attrs) for part in parts])
        shape = (updates.shape[0], attrs[0], updates.shape[2])
        return make_node(self, attrs, (index, updates), tensor_type(updates.dtype, shape))

    def begin(self, b: Any, dtype: Any, target: Any, at: Any, count: Any) -> None:
        zero = b.const(0, dtype)
        if b.streams():
            # a table that no cache holds, of which most rows stay as they are now
            large = b.cmp("ge", b.mul(b.param(0), b.param(2)), _LARGE_BYTES // dtype.itemsize)
            kernels.fill_large(b, dtype, target, at, zero, count, large)
        else:
            kernels.fill(b, dtype, target, at, zero, count)

    def update(self, b: Any, attrs: Attributes, dtype: Any, old: Any, new: Any) -> Any:
        wide = dtype.compute
        if wide is dtype:
            return b.add(old, new)
        return b.cast(b.add(b.cast(old, wide), b.cast(new, wide)), dtype)

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        return None, apply("gather_block", cotangent, inputs[0])

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        index, updates = arrays
        outer, _, inner = updates.shape
        result = numpy.zeros((outer, attrs[0], inner), updates.dtype)
        numpy.add.at(result, scatter_indices(index, outer, inner), updates)
        return result

    def samples(self) -> Sequence[Any]:
        return [
            example((5,), numpy.array([[[4], [-1], [0]]]), (1, 3, 17)),
            example((5,), numpy.array([[[4, 0, -5], [1, 2, 3]], [[0, 0, 0], [0, -1, 1]]]), (2, 2, 3)),
            example((4,), numpy.array([[[1], [1]]]), (2, 2, 130)),
            example((4,), numpy.zeros((1, 0, 1), numpy.int64), (1, 0, 3)),
            example((4,), numpy.array([[[1], [3], [1]]]), (1, 3, 1)),
            example((4,), numpy.array([[[1], [3], [1]]]), (2, 3, 1)),
            example((4,), numpy.array([[[1], [3], [1]]]), (2, 3, 1), dtype=complex64),
            example((4, NONNEGATIVE), numpy.array([[[1], [3], [1]]]), (2, 3, 5)),
            example((4001,), numpy.array([[[2000], [-1], [2000], [2001], [0]]]), (1, 5, 17)),
        ]


def scatter_indices(index: Any, outer: int, inner: int) -> tuple[Any, Any, Any]:
    """The NumPy index of what updates reach."""
    full = _full(index, outer, inner)
    first, _, last = numpy.indices(full.shape)
    return first, full, last


@custom
class scatter_set(Scatter):
    """``data`` with ``updates`` written at ``index``, of equal indices the last.

    Inputs ``(data, index, updates)``.
    """

    assembly = Assembly.SCATTER
    index = 1

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        data, index, updates = inputs
        return make_node(self, attrs, (data, index, updates), data.type)

    def begin(self, b: Any, dtype: Any, target: Any, at: Any, count: Any) -> None:
        kernels.copy(b, dtype, target, at, b.input(0), at, count)

    def update(self, b: Any, attrs: Attributes, dtype: Any, old: Any, new: Any) -> Any:
        return new

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        data, index, updates = inputs
        kept = apply("scatter_set", cotangent, index, filled(0, updates.dtype, updates.shape))
        if index.shape[1] == 1:
            return kept, None, apply("gather_block", cotangent, index)
        # of equal indices only the last write reached the result
        turn = axis_numbers(1, updates.shape)
        last = apply("scatter_set", filled(0, int64, data.shape), index, turn)
        won = ops.equal(apply("gather_block", last, index), turn)
        return kept, None, ops.where(won, apply("gather_block", cotangent, index), 0)

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        data, index, updates = arrays
        result, full = data.copy(), _full(index, data.shape[0], data.shape[2])
        for a, k, j in numpy.ndindex(full.shape):
            result[a, full[a, k, j], j] = updates[a, k, j]
        return result

    def samples(self) -> Sequence[Any]:
        return [
            example((), (1, 5, 17), numpy.array([[[4], [-1], [0]]]), (1, 3, 17)),
            example((), (2, 5, 3), numpy.array([[[4, 0, -5], [1, 2, 3]]] * 2), (2, 2, 3)),
            example((), (2, 4, 65), numpy.array([[[1], [1]]]), (2, 2, 65)),
            example((), (1, 4, 1), numpy.array([[[1], [1]]]), (1, 2, 1)),
            example((NONNEGATIVE,), (1, 4, 3), numpy.array([[[1], [3]]]), (1, 2, 3)),
            example((), (1, 9001, 8), numpy.array([[[4500, 1, -1, 0, 4501, 9000, 7, 4499]] * 2]), (1, 2, 8)),
        ]


# Public forms


def three_axes(x: Node, axis: int) -> Shape:
    """The shape of ``x`` with everything before and everything after an axis merged."""
    return prod(x.shape[:axis]), x.shape[axis], prod(x.shape[axis + 1 :])


@composite
class gather:
    """Elements along ``dim`` at ``index``, which has the axes of the result.

    ``result[i][j] = input[index[i][j]][j]`` for ``dim=0``; on other axes ``index`` may be shorter.

    >>> import twofold as torch
    >>> torch.gather(torch.tensor([[1, 2], [3, 4]]), 1, torch.tensor([[0, 0], [1, 0]]))
    tensor([[1, 1],
            [4, 3]])
    """

    methods = ("gather",)

    @staticmethod
    def call(input: Any, dim: int, index: Any, *, sparse_grad: bool = False) -> Any:
        if sparse_grad:
            raise ArgumentError("gather: sparse_grad=True", "Leave it out: the gradient is dense.")
        return apply("gather", input, index, attrs=(normalize_axis(dim, len(input.shape)), NONNEGATIVE))

    @staticmethod
    def compute(x: Any, index: Any, axis: int, *lowest: str) -> Any:
        shape = index.shape
        if not index.type.size:
            nothing = slice_axis(ops.reshape(strong(x), (-1,)), 0, 0, 0)  # of x, whose gradient is zeros
            return ops.reshape(nothing, need_index(index).shape)
        x, index = same_outside(strong(x), need_index(index), axis)
        blocks = [ops.reshape(value, three_axes(value, axis)) for value in (x, index)]
        return ops.reshape(apply("gather_block", *blocks, attrs=lowest), shape)

    reference = lambda x, index, axis, *lowest: numpy.take_along_axis(x, index, axis)
    samples = lambda: [
        example((1,), (2, 3), numpy.array([[0, 2, -1, 1], [1, 1, 1, 1]])),
        example((0,), (3, 2), numpy.array([[0, 2]])),
        example((2,), (2, 2, 17), numpy.array([[[16], [3]], [[0], [1]]])),
    ]


def same_outside(x: Any, index: Any, axis: int) -> tuple[Any, Any]:
    """``x`` cut to the size of ``index`` on all other axes."""
    x = x if x.ndim else ops.reshape(x, (1,))
    index = index if index.ndim else ops.reshape(index, (1,))
    if x.ndim != index.ndim:
        raise ShapeError(
            f"an index with {index.ndim} axes for {x.ndim}", "Give the index as many axes as the input."
        )
    for position in range(x.ndim):
        if position != axis and index.shape[position] > x.shape[position]:
            raise ShapeError(
                f"the index has size {index.shape[position]} on axis {position}, the input {x.shape[position]}",
                "Use an index that is not larger there.",
            )
        if position != axis and index.shape[position] != x.shape[position]:
            x = slice_axis(x, position, constant(0, int64), index.shape[position])
    return x, index


@composite
class take_along_axis:
    """Elements along an axis at ``indices``; the other axes broadcast, as in NumPy.

    >>> import twofold as torch
    >>> torch.take_along_axis(torch.tensor([[1, 2], [3, 4]]), torch.tensor([[1], [0]]), axis=1)
    tensor([[2],
            [3]])
    """

    @staticmethod
    def call(input: Any, indices: Any, axis: int | None = -1) -> Any:
        if axis is None:
            input, indices, axis = ops.ravel(input), ops.ravel(indices), 0
        return apply("take_along_axis", input, indices, attrs=(normalize_axis(axis, len(input.shape)),))

    @staticmethod
    def compute(x: Any, index: Any, axis: int) -> Any:
        if x.ndim != index.ndim:
            raise ShapeError(
                f"indices with {index.ndim} axes for {x.ndim}", "Give as many axes as the input has."
            )
        ends = [broadcast_shapes(*pair) for pair in zip(_cut(x, axis), _cut(index, axis), strict=True)]
        x = broadcast(strong(x), (*ends[0], x.shape[axis], *ends[1]))
        index = broadcast(need_index(index), (*ends[0], index.shape[axis], *ends[1]))
        return apply("gather", x, index, attrs=(axis,))

    reference = lambda x, index, axis: numpy.take_along_axis(x, index, axis)
    samples = lambda: [
        example((1,), (2, 3), numpy.array([[2], [0]])),
        example((0,), (4, 3), numpy.array([[2, 1, 0]])),
    ]


@public(methods=("take_along_dim",))
def take_along_dim(input: Any, indices: Any, dim: int | None = None) -> Any:
    """Elements along ``dim`` (default: of the flattened input) at ``indices``; the other axes broadcast.

    >>> import twofold as torch
    >>> torch.take_along_dim(torch.tensor([[1, 2], [3, 4]]), torch.tensor([3, 0]))
    tensor([4, 1])
    """
    return ops.take_along_axis(input, indices, dim)


def _cut(x: Any, axis: int) -> tuple[Shape, Shape]:
    return x.shape[:axis], x.shape[axis + 1 :]


@composite
class index_select:
    """The slices along ``dim`` at ``index``, whose axes replace that axis.

    >>> import twofold as torch
    >>> torch.index_select(torch.tensor([[1, 2], [3, 4]]), 0, torch.tensor([1, 0, 1]))
    tensor([[3, 4],
            [1, 2],
            [3, 4]])
    """

    methods = ("index_select",)

    @staticmethod
    def call(input: Any, dim: int, index: Any) -> Any:
        # as in PyTorch; in ``take``, as in the array API, an index without axes removes the axis
        index = ops.reshape(index, (1,)) if getattr(index, "shape", None) == () else index
        attrs = (normalize_axis(dim, len(input.shape)), NONNEGATIVE)
        return apply("index_select", input, index, attrs=attrs)

    @staticmethod
    def compute(x: Any, index: Any, axis: int, *lowest: str) -> Any:
        x, index = strong(x), need_index(index)
        shape = (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :]) if x.ndim else ()
        x = x if x.ndim else ops.reshape(x, (1,))
        blocks = ops.reshape(x, three_axes(x, axis)), ops.reshape(index, (1, -1, 1))
        return ops.reshape(apply("gather_block", *blocks, attrs=lowest), shape)

    reference = lambda x, index, axis, *lowest: numpy.take(x, index, axis)
    samples = lambda: [
        example((0,), (5, 3), numpy.array([4, 0, -1])),
        example((1,), (2, 5, 3), numpy.array([[1], [1]])),
        example((1,), (2, 5), numpy.array(3)),
        example((0,), (5, 17), numpy.zeros((0,), numpy.int64)),
    ]


@public(methods=("take",))
def take(input: Any, index: Any, axis: int | None = None) -> Any:
    """The slices along an axis at ``index``; without ``axis``, elements of the flattened input.

    >>> import twofold as torch
    >>> torch.take(torch.tensor([[1, 2], [3, 4]]), torch.tensor([3, 0]))
    tensor([4, 1])
    """
    axis, input = (0, ops.ravel(input)) if axis is None else (axis, input)
    return apply("index_select", input, index, attrs=(normalize_axis(axis, len(input.shape)),))
