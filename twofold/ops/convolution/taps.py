"""Weighted sums of elements at indices, the same for all channels: what sampling at any positions comes down to.

Images are ``[batch, channels, elements]``; each tap has an index ``[batch, 1, positions]`` of int32 or int64, and a
weight of that shape. A negative index adds nothing. The sum is linear in the image and in the weights, so that the
three primitives are each other's gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from twofold.dtypes import int64
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.types import TensorType, tensor_type
from twofold.ops import kernels
from twofold.ops.base import Custom, apply, custom
from twofold.ops.examples import example
from twofold.ops.shape.movement import slice_axis

LANES = kernels.LANES


class Taps(Custom):
    """What the primitives share."""

    functions = ()
    kinds = "f"
    half_types = False

    def taps(self, count: int) -> int:
        """The number of taps of a node with so many inputs."""
        return (count - 1) // 2

    def sizes(self, attrs: Attributes, types: Sequence[TensorType]) -> tuple[Any, Any, Any]:
        """Channels, elements and positions."""
        raise NotImplementedError

    def parameters(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[int, ...]:
        sizes = self.sizes(attrs, inputs)
        return (*sizes, -(-sizes[2] // LANES))

    def code_key(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[Any, ...]:
        return ()


class OverPositions(Taps):
    """A work item is sixteen positions of a batch element, for all channels."""

    def sizes(self, attrs: Attributes, types: Sequence[TensorType]) -> tuple[Any, Any, Any]:
        """Those of an image and of indices, which come first."""
        image, index = types[:2]
        return image.shape[1], image.shape[2], index.shape[2]

    def work(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> tuple[int, int]:
        channels, _, positions = self.sizes(attrs, inputs)
        each = channels * self.taps(len(inputs)) * 4
        return inputs[1].shape[0] * -(-positions // LANES), kernels.grain(4096, each)

    def emit(self, builder: Any, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> None:
        b, positions = builder, builder.param(2)
        with b.loop(b.begin, b.end) as item:
            batch, block = kernels.split(b, item, b.param(3))
            low = b.mul(block, LANES)
            count = b.sub(positions, low)
            branch = b.if_(b.cmp("ge", count, LANES))
            with branch:
                self._block(b, inputs, batch, low, None)
            with branch.else_():
                self._block(b, inputs, batch, low, b.lane_mask(count))

    def _block(self, b: Any, types: Sequence[TensorType], batch: Any, low: Any, mask: Any) -> None:
        """Emit the results of sixteen positions."""
        row = b.add(b.mul(batch, b.param(2)), low)
        index, inside = [], []
        for t in range(self.taps(len(types))):
            found = b.load(b.input(1 + t), row, types[1].dtype, LANES, mask=mask)
            known = b.cmp("ge", found, 0)
            known = known if mask is None else b.and_(known, mask)
            inside.append(known)
            index.append(b.cast(b.select(known, found, 0), int64))
        first = b.mul(b.mul(batch, b.param(0)), b.param(1))
        read = lambda c: _read(b, types[0].dtype, b.add(first, b.mul(c, b.param(1))), index, inside)
        self.channels(b, types, batch, low, mask, read)

    def channels(
        self,
        b: Any,
        types: Sequence[TensorType],
        batch: Any,
        low: Any,
        mask: Any,
        values: Callable[[Any], list[Any]],
    ) -> None:
        """Emit what is made of the ``values`` of each channel: a vector for each tap."""
        raise NotImplementedError


def _read(b: Any, dtype: Any, first: Any, index: Sequence[Any], inside: Sequence[Any]) -> list[Any]:
    """Emit the elements at the indices of the channel that begins at ``first``, 0 where there is none."""
    plane = b.offset(b.input(0), first, dtype)
    return [
        b.select(known, b.load_indices(plane, at, dtype), b.const(0, dtype, LANES))
        for at, known in zip(index, inside, strict=True)
    ]


def _in_pairs(*arrays: Any) -> tuple[Any, Any]:
    """Arrays of indices and of weights as ``[batch, taps, positions]``."""
    half = len(arrays) // 2
    return numpy.concatenate(arrays[:half], 1), numpy.concatenate(arrays[half:], 1)


def _apart(x: Any, taps: int) -> list[Any]:
    """The tap of each row of ``[batch, taps, positions]``."""
    return [slice_axis(x, 1, t, 1) for t in range(taps)]


def _at(image: Any, index: Any) -> Any:
    """NumPy's elements of all channels: ``[batch, channels, taps, positions]``."""
    found = numpy.take_along_axis(image[:, :, None], numpy.maximum(index, 0)[:, None], 3)
    return numpy.where(index[:, None] < 0, 0, found)


_INDEX = [numpy.array([[[4, -1, 0]], [[0, 0, 3]]]), numpy.array([[[2, 4, 1]], [[-1, 4, 4]]])]
_LONG = [(numpy.arange(42).reshape(2, 1, 21) * factor % 6 - 1).astype(numpy.int32) for factor in (1, 5, 7)]


@custom
class tap_sum(OverPositions):
    """``result[n, c, p]`` is the sum over taps of ``image[n, c, index[n, p]] * weight[n, p]``, in their order.

    Inputs ``(image, indices..., weights...)``.
    """

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        image, index = inputs[:2]
        shape = (*image.shape[:2], index.shape[2])
        return make_node(self, (), tuple(inputs), tensor_type(image.dtype, shape))

    def channels(
        self,
        b: Any,
        types: Sequence[TensorType],
        batch: Any,
        low: Any,
        mask: Any,
        values: Callable[[Any], list[Any]],
    ) -> None:
        """The sum of each channel."""
        dtype, taps = types[0].dtype, self.taps(len(types))
        row = b.add(b.mul(batch, b.param(2)), low)
        weights = [b.load(b.input(1 + taps + t), row, dtype, LANES, mask=mask) for t in range(taps)]
        with b.loop(0, b.param(0)) as c:
            total = None
            for value, weight in zip(values(c), weights, strict=True):
                part = b.mul(value, weight)
                total = part if total is None else b.add(total, part)
            at = b.add(b.mul(b.add(b.mul(batch, b.param(0)), c), b.param(2)), low)
            b.store(b.buffer(len(types)), at, total, mask=mask)

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        image, *pairs = inputs
        taps = len(pairs) // 2
        products = apply("tap_products", image, *pairs[:taps], cotangent)
        passed = apply("tap_scatter", cotangent, *pairs, attrs=(image.shape[2],))
        return (passed, *[None] * taps, *_apart(products, taps))

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        image, (index, weight) = arrays[0], _in_pairs(*arrays[1:])
        return (_at(image, index) * weight[:, None]).sum(2)

    def samples(self) -> Sequence[Any]:
        return [
            example((), (2, 3, 5), *_INDEX, (2, 1, 3), (2, 1, 3)),
            example((), (2, 1, 5), *_LONG, *[(2, 1, 21)] * 3),
            example((), (2, 0, 5), *_INDEX, (2, 1, 3), (2, 1, 3)),
        ]


@custom
class tap_products(OverPositions):
    """``result[n, t, p]`` is the sum of ``image[n, c, index[n, p]] * factor[n, c, p]`` over channels, in their order.

    Inputs ``(image, indices..., factor)``.
    """

    def taps(self, count: int) -> int:
        """The others are the image and the factor."""
        return count - 2

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        image, index = inputs[:2]
        shape = (index.shape[0], self.taps(len(inputs)), index.shape[2])
        return make_node(self, (), tuple(inputs), tensor_type(image.dtype, shape))

    def channels(
        self,
        b: Any,
        types: Sequence[TensorType],
        batch: Any,
        low: Any,
        mask: Any,
        values: Callable[[Any], list[Any]],
    ) -> None:
        """The sum over channels of each tap."""
        dtype, taps = types[0].dtype, self.taps(len(types))
        loop = b.loop(0, b.param(0), carry=[b.const(0, dtype, LANES)] * taps)
        with loop as (c, sums):
            at = b.add(b.mul(b.add(b.mul(batch, b.param(0)), c), b.param(2)), low)
            factor = b.load(b.input(1 + taps), at, dtype, LANES, mask=mask)
            b.loop_next(
                [b.add(one, b.mul(value, factor)) for one, value in zip(sums, values(c), strict=True)]
            )
        for t, total in enumerate(loop.results):
            at = b.add(b.mul(b.add(b.mul(batch, taps), t), b.param(2)), low)
            b.store(b.buffer(len(types)), at, total, mask=mask)

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        image, *indices, factor = inputs
        weights = _apart(cotangent, len(indices))
        passed = apply("tap_scatter", factor, *indices, *weights, attrs=(image.shape[2],))
        return (passed, *[None] * len(indices), apply("tap_sum", image, *indices, *weights))

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        image, *indices, factor = arrays
        index = numpy.concatenate(indices, 1)
        return (_at(image, index) * factor[:, :, None]).sum(1)

    def samples(self) -> Sequence[Any]:
        return [
            example((), (2, 3, 5), *_INDEX, (2, 3, 3)),
            example((), (2, 1, 5), *_LONG, (2, 1, 21)),
            example((), (2, 0, 5), *_INDEX, (2, 0, 3)),
        ]


@custom
class tap_scatter(Taps):
    """Zeros ``[batch, channels, size]`` with ``updates[n, c, p] * weight[n, p]`` added at ``index[n, p]`` of each tap.

    Positions are taken in their order, the taps of each in theirs. Inputs ``(updates, indices..., weights...)``,
    attributes ``(size,)``. A work item is a channel.
    """

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        updates = inputs[0]
        shape = (*updates.shape[:2], attrs[0])
        return make_node(self, attrs, tuple(inputs), tensor_type(updates.dtype, shape))

    def sizes(self, attrs: Attributes, types: Sequence[TensorType]) -> tuple[Any, Any, Any]:
        """Those of the result and of indices."""
        return types[0].shape[1], attrs[0], types[1].shape[2]

    def work(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> tuple[int, int]:
        return inputs[0].shape[0] * inputs[0].shape[1], 1

    def emit(self, builder: Any, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> None:
        b, dtype, taps = builder, output.dtype, self.taps(len(inputs))
        size, positions, target = b.param(1), b.param(2), b.buffer(len(inputs))
        with b.loop(b.begin, b.end) as item:
            batch, first = b.idiv(item, b.param(0)), b.mul(item, size)
            kernels.fill(b, dtype, target, first, b.const(0, dtype), size)
            with b.loop(0, positions) as p:
                update = b.load(b.input(0), b.add(b.mul(item, positions), p), dtype)
                row = b.add(b.mul(batch, positions), p)
                for t in range(taps):
                    index = b.cast(b.load(b.input(1 + t), row, inputs[1].dtype), int64)
                    with b.if_(b.cmp("ge", index, 0)):
                        at = b.add(first, index)
                        part = b.mul(update, b.load(b.input(1 + taps + t), row, dtype))
                        b.store(target, at, b.add(b.load(target, at, dtype), part))

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        updates, *pairs = inputs
        taps = len(pairs) // 2
        products = apply("tap_products", cotangent, *pairs[:taps], updates)
        return (apply("tap_sum", cotangent, *pairs), *[None] * taps, *_apart(products, taps))

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        updates, (index, weight) = arrays[0], _in_pairs(*arrays[1:])
        result = numpy.zeros((*updates.shape[:2], attrs[0]), updates.dtype)
        for n, t, p in numpy.argwhere(index >= 0):
            result[n, :, index[n, t, p]] += updates[n, :, p] * weight[n, t, p]
        return result

    def samples(self) -> Sequence[Any]:
        return [
            example((5,), (2, 3, 3), *_INDEX, (2, 1, 3), (2, 1, 3)),
            example((5,), (2, 1, 21), *_LONG, *[(2, 1, 21)] * 3),
        ]
