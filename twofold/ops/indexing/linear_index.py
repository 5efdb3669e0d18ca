"""The position in merged axes of one index for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from twofold.dtypes import int64
from twofold.ir.node import Attributes, Node, make_node
from twofold.ir.types import TensorType, tensor_type
from twofold.ops import kernels
from twofold.ops.base import Custom, custom
from twofold.ops.examples import example
from twofold.ops.indexing.gather import outside as outside_axis
from twofold.ops.indexing.gather import wraps


@custom
class linear_index(Custom):
    """One index into merged axes from one index per axis, each checked.

    Attributes ``(sizes,)``, perhaps with ``NONNEGATIVE``.
    """

    functions = ()
    title = "index"
    checks = True
    differentiable = False

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        return make_node(self, attrs, tuple(inputs), tensor_type(int64, inputs[0].shape))

    def parameters(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[int, ...]:
        sizes: tuple[int, ...] = attrs[0]
        return sizes

    def work(self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> tuple[int, int]:
        return output.size, 16384

    def code_key(
        self, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[Any, ...]:
        return (wraps(attrs), len(inputs))

    def failure(self, index: int, inputs: Sequence[TensorType], attrs: Attributes) -> tuple[str, str]:
        """The index and the sizes of the axes, as only one of them is known to be too small."""
        sizes: tuple[int, ...] = attrs[0]
        least = [-size if wraps(attrs) else 0 for size in sizes]
        outside = [k for k, size in enumerate(sizes) if not least[k] <= index < size]
        if len(outside) == 1:
            what, fix = outside_axis(index, sizes[outside[0]], least[outside[0]])
            return what.replace("an axis", f"indexed axis {outside[0]}") if len(sizes) > 1 else what, fix
        what = f"index {index} is outside its axis, which is one of sizes {sizes}"
        return what, f"Use indices from {'-size' if wraps(attrs) else '0'} to size - 1."

    def emit(self, builder: Any, attrs: Attributes, inputs: Sequence[TensorType], output: TensorType) -> None:
        b = builder
        with b.loop(b.begin, b.end) as i:
            total = b.const(0, int64)
            for k in range(len(inputs)):
                index = b.load(b.input(k), i, int64)
                position = kernels.checked_index(b, index, b.param(k), wraps(attrs))
                total = b.add(b.mul(total, b.param(k)), position)
            b.store(b.buffer(len(inputs)), i, total)

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        wrapped = [numpy.where(x < 0, x + size, x) for x, size in zip(arrays, attrs[0], strict=True)]
        return numpy.ravel_multi_index(tuple(wrapped), attrs[0])

    def samples(self) -> Sequence[Any]:
        return [example(((4, 5),), numpy.array([3, -1, 0]), numpy.array([4, 0, -5]))]
