"""Rows of attention: their weights, weighted sums and gradients, and blocks of them, as scores are too large to store.

A row of scores depends on no other, and sums over rows go on from block to block. So bits do not depend on the blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from twofold.dtypes import bool_
from twofold.ops.base import apply, convert, filled, ops
from twofold.ops.contraction.matrix_products import transposed
from twofold.ops.control_flow import blocks
from twofold.ops.control_flow.blocks import in_blocks
from twofold.ops.reduction.softmax import floating, total
from twofold.ops.shape.movement import axis_numbers, slice_axis, sum_to


class Rows(NamedTuple):
    """Rows of a query with all that they see; ``mask`` broadcasts to their scores.

    ``row`` is the number of the first among those of its head, ``element`` that of the first score among all.
    """

    query: Any
    key: Any
    value: Any
    mask: Any | None
    scale: Any
    stream: tuple[Any, ...]
    causal: bool
    row: Any = None
    element: Any = None

    def weights(self) -> Any:
        """The softmax of the scores; zeros for a query that may see no key."""
        scores = ops.matmul(self.query * self.scale, transposed(self.key))
        last = scores.ndim - 1
        if self.causal:
            shape = scores.shape
            own = axis_numbers(last - 1, shape)
            seen = ops.less_equal(axis_numbers(last, shape), own if self.row is None else own + self.row)
            scores = ops.where(seen, scores, -math.inf)
        if self.mask is None:
            return apply("softmax", scores, attrs=(last,))
        if self.mask.dtype is bool_:
            scores = ops.where(self.mask, scores, -math.inf)
        else:
            scores = scores + convert(self.mask, scores.dtype)
        if not scores.shape[last]:
            return apply("softmax", scores, attrs=(last,))
        top = ops.unsqueeze(apply("amax", scores, attrs=((last,),)), last)
        blind = ops.equal(top, -math.inf)
        return ops.where(blind, 0, apply("softmax", ops.where(blind, 0, scores), attrs=(last,)))

    def dropped(self, weights: Any) -> Any:
        """The weights after dropout: the same ones whenever it is asked."""
        if not self.stream:
            return weights
        first = () if self.element is None else (self.element,)
        return apply("random_dropout", weights, *self.stream, *first)

    def result(self) -> Any:
        """The weighted sums."""
        return ops.matmul(self.dropped(self.weights()), self.value)

    def scores_gradient(self, ct: Any) -> tuple[Any, Any]:
        """The cotangent of the scores, and the weights after dropout."""
        weights = self.weights()
        # the value may have further axes of a batch, over which the weights and their dropout are the same
        arrived = self.dropped(sum_to(ops.matmul(ct, transposed(self.value)), weights.shape))
        scored = weights * (arrived - total(weights * arrived, weights.ndim - 1))
        return scored, self.dropped(weights)


_SMALL = 64 << 10
"""Bytes of the scores of a head that is not worth a block of its own."""


class Blocks:
    """A call whose operands have the batch axes ``batch``, in blocks of heads, or of rows of one head."""

    def __init__(self, rows: Rows, batch: tuple[Any, ...]) -> None:
        self.rows, self.batch = rows, batch
        self.length, self.keys = rows.query.shape[-2], rows.key.shape[-2]
        self.head_bytes = self.length * self.keys * rows.scale.dtype.itemsize
        self.heads = math.prod(batch)
        self.at_a_time = 1 if self.head_bytes * 2 > blocks.BLOCK else blocks.BLOCK // self.head_bytes

    @staticmethod
    def fit(rows: Rows, batch: tuple[Any, ...]) -> bool:
        """Whether scores of these operands are worth it, and all have the batch axes that the mask has."""
        own = math.prod(batch) * rows.query.shape[-2] * rows.key.shape[-2] * rows.scale.dtype.itemsize
        if own <= blocks.WHOLE:
            return False
        if rows.mask is None:
            return True
        shape = (*batch, rows.query.shape[-2], rows.key.shape[-2])
        extra = len(shape) - rows.mask.ndim
        return extra >= 0 and all(a == 1 or a == b for a, b in zip(rows.mask.shape, shape[extra:]))

    def _flat(self, x: Any) -> Any:
        """``x`` with one axis of heads in front of its matrices."""
        wide = ops.broadcast_to(x, (*self.batch, *x.shape[-2:]))
        return ops.reshape(wide, (self.heads, *x.shape[-2:]))

    def _mask(
        self,
    ) -> tuple[Sequence[Any], Sequence[Any], Callable[[Any, Sequence[Any], Sequence[Any]], Any]]:
        """The mask as rows or as a fixed value, and what gives that of a block from its first head and these."""
        mask = self.rows.mask
        if mask is None:
            return (), (), lambda first, rows, fixed: None
        shape = (*(1,) * (len(self.batch) + 2 - mask.ndim), *mask.shape)
        mask, lead, last = ops.reshape(mask, shape), shape[:-2], shape[-2:]
        if all(size == 1 for size in lead):
            return (), (ops.reshape(mask, last),), lambda first, rows, fixed: fixed[0]
        alone = self.at_a_time == 1 and last[0] != 1 and self.head_bytes >= _SMALL
        if not alone or lead == self.batch:
            return (self._flat(mask),), (), lambda first, rows, fixed: rows[0]
        strides = [math.prod(self.batch[axis + 1 :]) for axis in range(len(lead))]

        def at(first: Any, rows: Sequence[Any], fixed: Sequence[Any]) -> Any:
            own = mask if first is None else fixed[0]
            for axis, (size, stride) in enumerate(zip(lead, strides, strict=True)):
                if size != 1:
                    own = slice_axis(own, axis, ops.remainder(ops.floor_divide(first, stride), size), 1)
            return ops.reshape(own, (1, *last))

        return (), (mask,), at

    def _run(self, further: Sequence[Any], make: Callable[[Rows, Sequence[Any]], Sequence[Any]]) -> list[Any]:
        """What ``make`` gives for the rows of each block of heads and of ``further`` values, for all heads."""
        given, (masked, shared, mask) = self.rows, self._mask()
        rows = [*map(self._flat, (given.query, given.key, given.value, *further)), *masked]
        fixed = [given.scale, *given.stream, *shared]

        def body(first: Any, _: Any, rows: Sequence[Any], fixed: Sequence[Any]) -> Any:
            query, key, value = map(floating, rows[:3])
            scale, *stream = fixed[: 1 + len(given.stream)]
            own = mask(first, rows[3 + len(further) :], fixed[1 + len(given.stream) :])
            element = None if first is None or not stream else first * (self.length * self.keys)
            block = Rows(query, key, value, own, scale, tuple(stream), given.causal, None, element)
            return (), make(block, rows[3 : 3 + len(further)])

        made = in_blocks(body, (), rows, fixed, self.at_a_time)[1]
        return [ops.reshape(x, (*self.batch, *x.shape[1:])) for x in made]

    def result(self, dtype: Any) -> Any:
        """The weighted sums."""

        def make(block: Rows, _: Sequence[Any]) -> Sequence[Any]:
            if not self._divides(block):
                return (convert(block.result(), dtype),)
            made = self._in_rows(block, (), (), lambda rows, _, more: ((), (convert(rows.result(), dtype),)))
            return tuple(ops.unsqueeze(x, 0) for x in made[1])

        return self._run((), make)[0]

    def gradient(self, ct: Any) -> list[Any]:
        """The cotangents of query, key and value, in the dtype of the arithmetic, and of the scores."""

        def make(block: Rows, further: Sequence[Any]) -> Sequence[Any]:
            (ct,) = further
            if self._divides(block):
                return self._gradient_in_rows(block, ct)
            ct = convert(ct, block.query.dtype)
            scored, dropped = block.scores_gradient(ct)
            products = ((scored, block.key), (transposed(scored), block.query))
            by_key, by_query = (ops.matmul(*sides) * block.scale for sides in products)
            return by_key, by_query, ops.matmul(transposed(dropped), ct), scored

        return self._run((ct,), make)

    def _divides(self, block: Rows) -> bool:
        return block.query.shape[0] == 1 and self.length > self._most_rows()

    def _most_rows(self) -> Any:
        size = self.keys * self.rows.scale.dtype.itemsize
        return blocks.ROWS if size * blocks.ROWS > blocks.BLOCK else blocks.BLOCK // size

    def _in_rows(
        self,
        block: Rows,
        further: Sequence[Any],
        carried: Sequence[Any],
        make: Callable[[Rows, Sequence[Any], Sequence[Any]], Any],
    ) -> tuple[list[Any], list[Any]]:
        """What ``make`` gives for blocks of rows of one head, see ``in_blocks``."""
        query, key, value = (ops.reshape(x, x.shape[1:]) for x in block[:3])
        mask = block.mask
        if mask is not None and mask.ndim == 3:
            mask = ops.reshape(mask, mask.shape[1:])
        each = mask is not None and mask.shape[0] != 1
        masks = () if mask is None else (mask,)
        rows = [query, *[ops.reshape(x, x.shape[1:]) for x in further], *(masks if each else ())]
        places = [] if block.element is None else [block.element]
        fixed = [key, value, block.scale, *block.stream, *places, *(() if each else masks)]

        def body(first: Any, carried: Sequence[Any], rows: Sequence[Any], fixed: Sequence[Any]) -> Any:
            query, *others = rows
            key, value, scale, *rest = fixed
            stream = tuple(rest[: len(block.stream)])
            own = others[-1] if each else rest[-1] if masks else None
            element = None if first is None else first * self.keys
            if places:
                element = rest[len(stream)] if element is None else element + rest[len(stream)]
            part = Rows(query, key, value, own, scale, stream, block.causal, first, element)
            return make(part, carried, others[: len(further)])

        return in_blocks(body, carried, rows, fixed, self._most_rows())

    def _gradient_in_rows(self, block: Rows, ct: Any) -> Sequence[Any]:
        def make(rows: Rows, carried: Sequence[Any], further: Sequence[Any]) -> Any:
            ct = convert(further[0], rows.query.dtype)
            scored, dropped = rows.scores_gradient(ct)
            by_query = apply("accumulate_product", scored, rows.query, carried[0])
            by_weights = apply("accumulate_product", dropped, ct, carried[1])
            return (by_query, by_weights), (ops.matmul(scored, rows.key) * rows.scale, scored)

        start = [filled(0, x.dtype, x.shape[1:]) for x in (block.key, block.value)]
        (by_query, by_weights), (by_key, scored) = self._in_rows(block, (ct,), start, make)
        found = by_key, by_query * block.scale, by_weights, scored
        return tuple(ops.unsqueeze(x, 0) for x in found)
