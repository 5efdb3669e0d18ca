"""Element-wise loops over two axes where some operands lie along the one and some along the other."""

from __future__ import annotations

from collections.abc import Sequence

from twofold.compiler.lower.addresses import decompose, divide, of_level, once
from twofold.compiler.lower.expression import Expression, Position
from twofold.compiler.lower.squares import fill_square, square
from twofold.compiler.lower.values import LANES, Val


def emit_tiles(code: Expression) -> None:
    """A nest of the form ``tiles``; see the module's docstring."""
    b, nest = code.b, code.nest
    values, starts = once(code)
    across = len(nest.outer) - 1
    rows, inner, piece = code.size(across), code.size(across + 1), code.parameter("piece", 0)
    blocks = b.shr(b.add(rows, LANES - 1), 4)
    pieces = divide(b, b.add(inner, b.sub(piece, 1)), piece)
    squares = {number: square(code, code.access_of(number)) for number in nest.transposed()}
    with b.loop(b.begin, b.end) as item:
        rest = divide(b, item, blocks)
        outer = divide(b, rest, pieces)
        row = b.mul(b.sub(item, b.mul(rest, blocks)), LANES)
        first = b.mul(b.sub(rest, b.mul(outer, pieces)), piece)
        last = b.minimum(b.add(first, piece), inner)
        coordinates = [*decompose(code, outer, range(across)), row]
        corner = [
            code.moved(number, where, range(across + 1), coordinates) for number, where in enumerate(starts)
        ]
        with b.loop(first, last, LANES) as column:
            for number, memory in squares.items():
                access = code.access_of(number)
                pointer = code.pointer(access, corner[access])
                fill_square(code, access, memory, pointer, column, last, b.lane_mask(b.sub(rows, row)))
            mask = b.lane_mask(b.sub(last, column))
            with b.loop(0, b.minimum(b.sub(rows, row), LANES)) as line:
                _line(code, corner, squares, dict(values), line, column, mask)


def _line(
    code: Expression,
    corner: Sequence[Val],
    squares: dict[int, Val],
    values: dict[int, Val],
    line: Val,
    column: Val,
    mask: Val,
) -> None:
    """One row of a square: what is transposed comes from the stack, all else from where it lies."""
    b, nest = code.b, code.nest
    across = len(nest.outer) - 1
    pointers: list[Val | None] = [
        code.pointer(number, code.moved(number, where, [across], [line]))
        for number, where in enumerate(corner)
    ]
    code.evaluate(of_level(code, 1), Position(0, 1, None, pointers, values))
    position = Position(column, LANES, mask, pointers, values)
    for number, memory in squares.items():
        values[number] = b.load(memory, b.mul(line, LANES), nest.steps[number].dtype, LANES)
    code.evaluate(of_level(code, 2), position)
    for number in range(len(nest.stores)):
        code.store(number, position)
