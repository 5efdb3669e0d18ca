"""Operations that apply another operation to each sample of a batch; ``transforms.vmap`` makes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from twofold.dtypes import uint8
from twofold.ir.bind import input_node
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.op import REGISTRY, HostOp, LoopOp, ViewOp
from twofold.ir.types import Shape, TensorType
from twofold.ops.base import Custom, Host, View, custom, host, strong, view
from twofold.ops.examples import example
from twofold.transforms.vmap import batched_type, batched_vjp, sample_type


def _inner_types(attrs: Attributes, inputs: Sequence[TensorType]) -> list[TensorType]:
    flags = attrs[2]
    return [sample_type(type) if flag else type for type, flag in zip(inputs, flags, strict=True)]


class _Batched:
    """A batched operation; attributes ``(name, attributes, flags)``: flagged inputs have the batch axis."""

    functions: tuple[str, ...] = ()

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        """The node, whose type is that of the operation for one sample with the batch axis."""
        values = tuple(strong(node) for node in inputs)
        name, inner, flags = attrs
        types = _inner_types(attrs, [value.type for value in values])
        single = REGISTRY[name].build(inner, [input_node(k, type) for k, type in enumerate(types)])
        size = next(value.shape[0] for value, flag in zip(values, flags, strict=True) if flag)
        return make_node(self, attrs, values, batched_type(single.type, size))  # type: ignore[arg-type]

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        """The gradient rule of the operation, batched."""
        return batched_vjp(attrs, cotangent, output, inputs)

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        """The reference of the operation for each sample."""
        return self._each(REGISTRY[attrs[0]].reference, attrs, arrays)

    def _each(self, function: Any, attrs: Attributes, arrays: Sequence[Any]) -> Any:
        _, inner, flags = attrs
        size = next(len(array) for array, flag in zip(arrays, flags, strict=True) if flag)
        pairs = list(zip(arrays, flags, strict=True))
        if not size:
            own = [numpy.zeros(array.shape[1:], array.dtype) if flag else array for array, flag in pairs]
            return numpy.asarray(function(inner, *own))[None][:0]
        results = [
            numpy.asarray(function(inner, *[array[sample] if flag else array for array, flag in pairs]))
            for sample in range(size)
        ]
        return numpy.stack(results)


@view
class batched_view(_Batched, View):
    """A view of each sample."""

    def index_map(self, attrs: Attributes, input_shape: Shape, output_shape: Shape) -> Any:
        name, inner, _ = attrs
        op = REGISTRY[name]
        assert isinstance(op, ViewOp)
        mapping = op.index_map(inner, input_shape[1:], output_shape[1:])
        if mapping is None:
            return None
        moved = [(None if axis is None else axis + 1, step, offset) for axis, step, offset in mapping]
        return ((0, 1, 0), *moved)

    def samples(self) -> Sequence[Any]:
        return [
            example(("flip", ((0,),), (True,)), (3, 5)),
            example(("reshape", ((6,),), (True,)), (2, 3, 2)),
        ]


class _SampleBuilder:
    """A kernel builder whose buffers are those of one sample, and whose range is all of its work items.

    There is no table of these buffers, so they cannot be indexed at run time.
    """

    buffer_at = None

    def __init__(self, builder: Any, buffers: Sequence[Any], end: Any) -> None:
        self._builder = builder
        self._buffers = buffers
        self.begin, self.end = builder.const(0, end.dtype), end

    def buffer(self, index: int) -> Any:
        return self._buffers[index]

    input = buffer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._builder, name)


@custom
class batched_kernel(_Batched, Custom):
    """The kernel of a custom operation in a loop over samples, which are distributed among threads.

    Its parameters are those of the operation, the number of work items of a sample, the number of elements of one
    sample of each flagged buffer, and the bytes of scratch memory of a sample.
    """

    may_fail = True
    kinds = "iuf"

    def _operation(self, attrs: Attributes) -> LoopOp:
        op = REGISTRY[attrs[0]]
        assert isinstance(op, LoopOp)
        return op

    def parameters(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[int, ...]:
        _, inner, flags = attrs
        types, single = _inner_types(attrs, inputs), sample_type(output)
        op = self._operation(attrs)
        strides = [type.size for type, flag in zip(types, flags, strict=True) if flag]
        own = tuple(op.parameters(inner, types, single))
        return (
            *own,
            op.work(inner, types, single)[0],
            *strides,
            single.size,
            self._sample_scratch(attrs, inputs, output),
        )

    def scratch(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> int:
        return output.shape[0] * self._sample_scratch(attrs, inputs, output)

    def _sample_scratch(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> int:
        """The scratch memory of one sample in bytes, a multiple of a cache line."""
        single = sample_type(output)
        own = self._operation(attrs).scratch(attrs[1], _inner_types(attrs, inputs), single)
        return -(-own // 64) * 64

    def work(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> tuple[int, int]:
        types, single = _inner_types(attrs, inputs), sample_type(output)
        items, grain = self._operation(attrs).work(attrs[1], types, single)
        return (output.shape[0], max(1, grain // items)) if items else (0, 1)

    def code_key(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[Any, ...]:
        name, inner, flags = attrs
        types, single = _inner_types(attrs, inputs), sample_type(output)
        op = self._operation(attrs)
        count, has_scratch = (
            len(op.parameters(inner, types, single)),
            self._sample_scratch(attrs, inputs, output) > 0,
        )
        return (name, flags, count, has_scratch, op.code_key(inner, types, single))

    def emit(self, builder: Any, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> None:
        b, (_, inner, flags) = builder, attrs
        types, single = _inner_types(attrs, inputs), sample_type(output)
        op = self._operation(attrs)
        first = len(op.parameters(inner, types, single))
        items = b.param(first)
        with b.loop(b.begin, b.end) as sample:
            buffers, number = [], first + 1
            for position, (type, flag) in enumerate(zip((*types, single), (*flags, True), strict=True)):
                pointer = b.buffer(position)
                if flag:
                    pointer = b.offset(pointer, b.mul(sample, b.param(number)), type.dtype)
                    number += 1
                buffers.append(pointer)
            if self._sample_scratch(attrs, inputs, output):
                buffers.append(b.offset(b.buffer(len(buffers)), b.mul(sample, b.param(number)), uint8))
            op.emit(_SampleBuilder(b, buffers, items), inner, types, single)

    def failure(self, index: int, inputs: Sequence[TensorType], attrs: Attributes) -> tuple[str, str]:
        entry: Any = REGISTRY[attrs[0]]
        what, fix = entry.failure(index, _inner_types(attrs, inputs), attrs[1])
        return str(what), str(fix)

    def samples(self) -> Sequence[Any]:
        scan = ("cumulative_sum", (), (True,))
        return [
            example(scan, (3, 2, 17, 1)),
            example(scan, (2, 2, 5, 19)),
            example(("linear_scan", (), (True, False)), (3, 2, 4, 5), (2, 4, 5)),
            example(("linear_scan", (), (False, True)), (2, 4, 5), (3, 2, 4, 5)),
            example(("concatenate", (0,), (True, False)), (3, 2, 4), (5, 4)),
        ]


@host
class batched_host(_Batched, Host):
    """A host operation on the arrays of each sample."""

    def host(self, attrs: Attributes, *arrays: Any) -> Any:
        op = REGISTRY[attrs[0]]
        assert isinstance(op, HostOp)
        return self._each(op.host, attrs, arrays)
