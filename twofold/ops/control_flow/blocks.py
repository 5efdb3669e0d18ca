"""Rows that are computed some at a time, in a loop, so that values in between are never stored for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from twofold.dtypes import int64
from twofold.ir.bind import constant, input_node
from twofold.ir.graph import interned
from twofold.ir.types import tensor_type
from twofold.ops.base import ops
from twofold.ops.control_flow.programs import LoopSpec, inputs_below, renumbered, run
from twofold.ops.shape.movement import slice_axis

WHOLE = 4 << 20
"""Bytes of a value that is stored whole."""

BLOCK = 512 << 10
"""Bytes of a block of it: they stay in the second level cache."""

ROWS = 128
"""Rows of a block at least, where the other operand of a product is packed for each block."""

Body = Callable[[Any, Sequence[Any], Sequence[Any], Sequence[Any]], tuple[Sequence[Any], Sequence[Any]]]
"""Makes carried values and rows of the number of the first row (None: of all), of carried values, rows, fixed ones."""


def in_blocks(
    body: Body, carried: Sequence[Any], rows: Sequence[Any], fixed: Sequence[Any], most: Any
) -> tuple[list[Any], list[Any]]:
    """The last carried values, and all rows, that ``body`` makes of at most so many ``rows`` at a time.

    Rows lie along the first axes.
    """
    length = rows[0].shape[0]
    count = -(-length // most)
    if count == 1:
        last, made = body(None, carried, rows, fixed)
        return list(last), list(made)
    size = length // count
    whole, rest = count * size, length - count * size
    blocks = [ops.reshape(slice_axis(x, 0, 0, whole), (count, size, *x.shape[1:])) for x in rows]
    own = [tensor_type(x.dtype, x.shape[1:]) for x in blocks]
    types = [tensor_type(int64, ()), *[x.type for x in carried], *own, *[x.type for x in fixed]]
    first, *inputs = [input_node(k, type) for k, type in enumerate(types)]
    cuts = len(carried), len(carried) + len(rows)
    last, made = body(first, inputs[: cuts[0]], inputs[cuts[0] : cuts[1]], inputs[cuts[1] :])
    outputs, given = [*last, *made], [*carried, *blocks, *fixed]
    counts = first.id in inputs_below(outputs)
    if counts:
        outputs, given, inputs = [first + size, *outputs], [constant(0, int64), *given], [first, *inputs]
    spec = LoopSpec(renumbered(outputs, inputs), counts + len(carried), len(rows), count)
    found = run("loop", (interned(spec),), given)[counts:-1]
    last = found[: len(carried)]
    joined = [ops.reshape(x, (whole, *x.shape[2:])) for x in found[len(carried) :]]
    if not rest:
        return list(last), joined
    tails = [slice_axis(x, 0, whole, rest) for x in rows]
    last, made = body(constant(whole, int64), last, tails, fixed)
    return list(last), [ops.cat([x, tail]) for x, tail in zip(joined, made, strict=True)]
