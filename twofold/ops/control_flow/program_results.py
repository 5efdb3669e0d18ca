"""How calls of programs with several results stand in a trace, where every call has one.

All results of one dtype are one flat tensor, of which each is a block. So a program runs once for its results,
and its gradient once for all cotangents that come back. Passes take the parts apart again.
"""

from __future__ import annotations

from math import prod
from typing import Any

from twofold.dtypes import DType, int64
from twofold.ir.bind import constant
from twofold.ir.node import Node
from twofold.ir.types import Shape, TensorType
from twofold.ops.base import apply, composite, ops
from twofold.ops.control_flow.programs import run


@composite
class program_results:
    """All results of one dtype of a program, flat and end to end; a single one keeps its shape.

    Attributes ``(name of the operation, its content, dtype, parameters of the content)``.
    """

    returns_program = True
    functions = ()
    methods = ()
    call = staticmethod(lambda *inputs, attrs: apply("program_results", *inputs, attrs=attrs))

    @staticmethod
    def compute(*values: Any) -> Node:
        *inputs, name, content, dtype, sizes = values
        parts = [part for part in run(name, (content.at(sizes),), inputs) if part.dtype is dtype]
        if len(parts) == 1:
            return parts[0]
        flat: Node = ops.concatenate([ops.reshape(part, (part.type.size,)) for part in parts])
        return flat


@composite
class result_block:
    """Elements from ``start`` of a flat tensor, in ``shape``; both are attributes."""

    is_program_result = True
    functions = ()
    methods = ()

    @staticmethod
    def compute(flat: Node, start: int, shape: Shape) -> Node:
        block = apply("slice", flat, constant(start, int64), attrs=((prod(shape),), (1,), (0,)))
        made: Node = ops.reshape(block, shape)
        return made


def call_program(
    name: str, content: Any, sizes: tuple[Any, ...], types: list[TensorType], inputs: list[Any]
) -> list[Any]:
    """The results, of ``types``, of a program on tensors; recorded or declared as its inputs are."""
    groups: dict[DType, list[int]] = {}
    for position, type in enumerate(types):
        groups.setdefault(type.dtype, []).append(position)
    found: list[Any] = [None] * len(types)
    for dtype, positions in groups.items():
        flat = apply("program_results", *inputs, attrs=(name, content, dtype, sizes))
        if len(positions) == 1:
            found[positions[0]] = flat
            continue
        start = 0
        for position in positions:
            shape = tuple(types[position].shape)
            found[position] = apply("result_block", flat, attrs=(start, shape))
            start += prod(shape)
    return found
