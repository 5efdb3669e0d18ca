"""Products, maxima and minima of what several indices bring to one position, in the order of the index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from twofold.dtypes import int64
from twofold.ir.node import Attributes, Node, make_node
from twofold.ops import kernels
from twofold.ops.base import apply, convert, custom, ops
from twofold.ops.examples import example
from twofold.ops.indexing.gather import Scatter, scatter_indices

_COMBINED: dict[str, Any] = {
    "prod": numpy.multiply,
    "max": numpy.maximum,
    "min": numpy.minimum,
}


@custom
class scatter_combine(Scatter):
    """``data`` combined with ``updates`` at ``index``, one after another; attributes ``(kind,)``: prod, max or min.

    ``NONNEGATIVE`` may be a second attribute. Inputs ``(data, index, updates)``.
    """

    kinds = "iuf"
    index = 1
    call = staticmethod(
        lambda data, index, updates, kind: apply("scatter_combine", data, index, updates, attrs=(kind,))
    )

    def build(self, attrs: Attributes, inputs: Sequence[Node]) -> Node:
        self.check_kind(inputs[0].dtype)
        return make_node(self, attrs, tuple(inputs), inputs[0].type)

    def begin(self, b: Any, dtype: Any, target: Any, at: Any, count: Any) -> None:
        kernels.copy(b, dtype, target, at, b.input(0), at, count)

    def code_key(self, attrs: Attributes, inputs: Any, output: Any) -> tuple[Any, ...]:
        return (*attrs, *super().code_key(attrs, inputs, output))

    def update(self, b: Any, attrs: Attributes, dtype: Any, old: Any, new: Any) -> Any:
        wide = dtype.compute
        if wide is dtype:
            return b.combine(attrs[0], old, new)
        return b.cast(b.combine(attrs[0], b.cast(old, wide), b.cast(new, wide)), dtype)

    def vjp(
        self, attrs: Attributes, cotangent: Node, output: Node, inputs: tuple[Node, ...]
    ) -> Sequence[Node | None]:
        data, index, updates = inputs
        rule = _product_gradient if attrs[0] == "prod" else _extreme_gradient
        wide = [convert(x, x.dtype.compute) for x in (cotangent, output, data, updates)]
        first, second = rule(index, *wide)
        return convert(first, data.dtype), None, convert(second, data.dtype)

    def reference(self, attrs: Attributes, *arrays: Any) -> Any:
        data, index, updates = arrays
        result = data.copy()
        _COMBINED[attrs[0]].at(result, scatter_indices(index, data.shape[0], data.shape[2]), updates)
        return result

    def samples(self) -> Sequence[Any]:
        some = numpy.array([[[4, 0, -5], [1, 2, 3]], [[0, 0, 0], [0, -1, 0]]])
        return [
            made
            for kind in _COMBINED
            for made in (
                example((kind,), (1, 5, 17), numpy.array([[[4], [-1], [0], [4]]]), (1, 4, 17)),
                example((kind,), (2, 5, 3), some, (2, 2, 3)),
                example((kind,), (2, 4, 1), numpy.array([[[1], [3], [1]]]), (2, 3, 1)),
                example(
                    (kind,),
                    numpy.arange(4).reshape(1, 4, 1),
                    numpy.array([[[1], [1]]]),
                    numpy.array([[[7], [-3]]]),
                ),
                example((kind,), (1, 3, 2), numpy.zeros((1, 0, 1), numpy.int64), (1, 0, 2)),
            )
        ]


def _summed(index: Node, values: Any, size: int) -> Any:
    return apply("scatter_sum", index, values, attrs=(size,))


def _gathered(values: Any, index: Node) -> Any:
    return apply("gather_block", values, index)


def _extreme_gradient(index: Node, ct: Any, y: Any, data: Any, updates: Any) -> tuple[Any, Any]:
    """Shared evenly among all that are equal to the result."""
    own, chosen = ops.equal(data, y), ops.equal(updates, _gathered(y, index))
    ties = _summed(index, convert(chosen, ct.dtype), data.shape[1]) + convert(own, ct.dtype)
    share = ct / ties
    return ops.where(own, share, 0), ops.where(chosen, _gathered(share, index), 0)


def _product_gradient(index: Node, ct: Any, y: Any, data: Any, updates: Any) -> tuple[Any, Any]:
    """The product of all others: the product without zeros over the element, or nothing beside another zero."""
    own_zero, zero = ops.equal(data, 0), ops.equal(updates, 0)
    own, others = ops.where(own_zero, 1, data), ops.where(zero, 1, updates)
    product = apply("scatter_combine", own, index, others, attrs=("prod",))
    zeros = _summed(index, convert(zero, int64), data.shape[1]) + convert(own_zero, int64)

    def share(element: Any, is_zero: Any, whole: Any, count: Any, cotangent: Any) -> Any:
        alone = ops.equal(count, convert(is_zero, int64))
        return ops.where(alone, cotangent * whole / element, 0)

    reached = [_gathered(value, index) for value in (product, zeros, ct)]
    return share(own, own_zero, product, zeros, ct), share(others, zero, *reached)
