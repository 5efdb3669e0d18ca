"""Graphs declared once for all sizes: bodies run on tensors whose open sizes are symbols, and a run evaluates the rest.

What a body computes from sizes is an expression of those that are fed, and what it decides is a guard. The core keeps
the graph with both, see ``csrc/open_graph.h``; sizes that meet its guards need no Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from twofold import _core
from twofold.config import config
from twofold.ir.attribute_numbers import numbers_in, with_examples
from twofold.ir.named_sizes import NamedSizes
from twofold.ir.size_program import SizeProgram
from twofold.ir.sizes import declared_over, is_symbolic
from twofold.ir.types import TensorType
from twofold.ir.unknown import UNKNOWN_RANK
from twofold.static.replay import Needed, Replay, Walk
from twofold.static.values import Source


def declared_for_all_sizes(
    walk: Walk, kept: Sequence[Source], types: Sequence[TensorType], declared: Sequence[TensorType]
) -> tuple[Any, ...] | None:
    """What the core takes of a graph for all sizes: those that ``declared`` leaves open, and are now as in ``types``.

    None where no size is open, and where a body needs the numbers in a way that symbols do not offer.
    """
    varies = [_open_sizes(own, type) for own, type in zip(declared, types)]
    if not any(map(any, varies)):
        return None
    try:
        return _declared(walk, kept, NamedSizes(types, varies))
    except (Needed, MemoryError):
        raise
    except Exception as error:
        if "templates" in config.log:
            log = import_module("twofold.compiler.log").log
            log("templates", f"no graph for all sizes: {error!r}")
        return None


def _open_sizes(declared: TensorType, type: TensorType) -> list[bool]:
    """Which sizes of a type its declaration leaves open; a size of 1, which broadcasts, is one of its own."""
    known = declared.shape if declared.shape != UNKNOWN_RANK else (-1,) * len(type.shape)
    return [own < 0 and size != 1 for own, size in zip(known, type.shape)]


def _declared(walk: Walk, kept: Sequence[Source], sizes: NamedSizes) -> tuple[Any, ...]:
    with declared_over(sizes):
        inputs, outputs = Replay(walk, kept, sizes.types_of_inputs).run()
    parts: list[tuple[Any, Any, int]] = []
    numbers: list[Any] = []
    for _, tensor, _, attrs, *_ in _core.calls_above(outputs, False):
        if attrs is not None and is_symbolic(attrs):
            own = numbers_in(attrs)
            parts.append((tensor, with_examples(attrs), len(own)))
            numbers += own
    for tensor, symbol in sizes.operands:
        parts.append((tensor, None, 1))
        numbers.append(symbol)
    return inputs, outputs, SizeProgram(sizes, numbers, sizes.guards).encoded(), parts
