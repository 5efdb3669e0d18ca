"""Loops around the values of a nest without reductions, and the entry point for every form of nest."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from twofold.compiler.lower.addresses import decompose, divide, of_level, once
from twofold.compiler.lower.builder import Builder
from twofold.compiler.lower.expression import Expression, Position, weight
from twofold.compiler.lower.loopnest import LoopNest
from twofold.compiler.lower.reducing import emit_rows
from twofold.compiler.lower.values import LANES, Val

Body = Callable[[Val, int, "Val | None"], None]

_HEAVY = 48
"""Bodies of more instructions get one masked loop: a second copy for the last elements costs more than masks."""


def emit(nest: LoopNest) -> str:
    """The LLVM text of a nest's kernel."""
    builder = Builder()
    code = Expression(nest, builder)
    _emitter(nest.form)(code)
    return builder.finish()


def _emitter(form: str) -> Callable[[Expression], None]:
    if form == "tiles":
        from twofold.compiler.lower.tiles import emit_tiles

        return emit_tiles
    if form in ("columns", "strips"):
        from twofold.compiler.lower.columns import emit_columns

        return emit_columns
    emitters = {
        "scalar": _scalar, "small": _flat, "flat": _flat, "grid": _grid, "rows": emit_rows, "blocks": emit_rows,
    }  # fmt: skip
    return emitters[form]


def sweep(code: Expression, begin: Val, end: Val, heavy: bool, body: Body) -> None:
    """Emit ``body(index, lanes, mask)`` over [begin, end), sixteen at a time, the last ones masked."""
    b = code.b
    if heavy:
        with b.loop(begin, end, LANES) as i:
            body(i, LANES, b.lane_mask(b.sub(end, i)))
        return
    whole = b.add(begin, b.and_(b.sub(end, begin), -LANES))
    with b.loop(begin, whole, LANES) as i:
        body(i, LANES, None)
    rest = b.sub(end, whole)
    with b.if_(b.cmp("gt", rest, 0)):
        body(whole, LANES, b.lane_mask(rest))


def _element(code: Expression, pointers: Sequence[Val | None], outer: dict[int, Val]) -> Body:
    """What a loop over elements does at one position: all steps that vary there, then the stores."""
    varying = of_level(code, 2)

    def body(index: Val, lanes: int, mask: Val | None) -> None:
        position = Position(index, lanes, mask, pointers, dict(outer))
        code.evaluate(varying, position)
        for number in range(len(code.nest.stores)):
            code.store(number, position)

    return body


def _scalar(code: Expression) -> None:
    values, starts = once(code)
    pointers = [code.pointer(number, where) for number, where in enumerate(starts)]
    position = Position(0, 1, None, pointers, values)
    for number in range(len(code.nest.stores)):
        code.store(number, position)


def _flat(code: Expression) -> None:
    b = code.b
    values, starts = once(code)
    pointers = [code.pointer(number, where) for number, where in enumerate(starts)]
    body = _element(code, pointers, values)
    if code.nest.form == "small":
        body(b.begin, LANES, b.lane_mask(b.sub(b.end, b.begin)))
        return
    if code.nest.streams:
        _streamed(code, pointers, values)
        return
    sweep(code, b.begin, b.end, weight(code.nest.steps) > _HEAVY, body)


def _streamed(code: Expression, pointers: Sequence[Val | None], outer: dict[int, Val]) -> None:
    """Whole vectors are written past the caches; they begin where vectors of the first result do."""
    b, numbers = code.b, range(len(code.nest.stores))
    ends = [
        (pointer, code.accesses[at].dtype)
        for at in map(code.access_of_store, numbers)
        if (pointer := pointers[at]) is not None
    ]
    first = b.minimum(b.begin_of_vector(ends[0][0], b.add(b.begin, LANES - 1), ends[0][1]), b.end)
    lie = [b.begins_vector(pointer, first, dtype) for pointer, dtype in ends]
    varying = of_level(code, 2)

    def body(index: Val, count: Val | None) -> None:
        mask = None if count is None else b.lane_mask(count)
        position = Position(index, LANES, mask, pointers, dict(outer))
        code.evaluate(varying, position)
        for n in numbers:
            code.store(n, position, streams=lie[n] if mask is None else None)

    whole = b.add(first, b.and_(b.sub(b.end, first), -LANES))
    with b.if_(b.cmp("lt", b.begin, first)):
        body(b.begin, b.sub(first, b.begin))
    with b.loop(first, whole, LANES) as i:
        body(i, None)
    with b.if_(b.cmp("lt", whole, b.end)):
        body(whole, b.sub(b.end, whole))


def _grid(code: Expression) -> None:
    b, nest = code.b, code.nest
    values, starts = once(code)
    inner = code.size(len(nest.outer))
    piece = code.parameter("piece", 0)
    pieces = divide(b, b.add(inner, b.sub(piece, 1)), piece)
    with b.loop(b.begin, b.end) as item:
        row = divide(b, item, pieces)
        first = b.mul(b.sub(item, b.mul(row, pieces)), piece)
        coordinates = decompose(code, row, range(len(nest.outer)))
        pointers: list[Val | None] = [
            code.pointer(number, code.moved(number, where, range(len(nest.outer)), coordinates))
            for number, where in enumerate(starts)
        ]
        position = Position(0, 1, None, pointers, dict(values))
        code.evaluate(of_level(code, 1), position)
        last = b.minimum(b.add(first, piece), inner)
        sweep(code, first, last, weight(nest.steps) > _HEAVY, _element(code, pointers, position.values))
