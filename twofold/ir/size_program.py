"""Expressions over symbolic sizes as straight code, which the core evaluates for each new size."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from twofold.ir.recording import Recording
from twofold.ir.sizes import Monomial, Symbol, float_bits, identity, real

OPERATIONS = (
    "add", "multiply", "quotient", "modulo", "least", "most", "look_up",
    "as_real", "real_add", "real_multiply", "real_divide", "whole",
    "same", "below", "at_most", "real_same", "real_below", "real_at_most",
)  # fmt: skip
"""What a size program computes, in the order of the core's codes; real numbers are held as the bits of a float64."""

_CODES = {name: code for code, name in enumerate(OPERATIONS)}

Position = tuple[str, int]
"""Of a number in a program: an input, a constant, an operation or a table, and which one."""

Encoded = bytes
"""What the core takes: 32-bit counts of inputs, constants, tables, steps, steps that guards need, results and guards.

Then the constants, lengths of tables, tables, steps, results and guards: see ``SizeProgram.encoded``.
"""


class SizeProgram:
    """Expressions over the inputs of a recording as straight code for the core.

    Registers hold the inputs, then constants, then a result for each operation. ``results`` are the registers of
    ``expressions``; the code holds where every register in ``guards`` is 1 or 0 as said beside it. ``registers`` tells
    the input for each position in the recording where not all of them are inputs, ``inputs`` how many there are.
    """

    def __init__(
        self,
        recording: Recording,
        expressions: Sequence[Any],
        guards: Sequence[tuple[str, Any, Any, bool]],
        registers: Mapping[int, int] | None = None,
        inputs: int | None = None,
    ) -> None:
        self.recording = recording
        self.inputs = len(recording.values) if inputs is None else inputs
        self._registers = registers
        self.constants: list[int] = []
        self.tables: list[tuple[int, ...]] = []
        self._operations: list[tuple[str, Position, Position]] = []
        self._constant_indices: dict[int, int] = {}
        self._positions: dict[Any, Position] = {}
        # guards first: most programs are asked in vain whether they hold
        checks = [
            (self._operation(name, self._operand(name, a), self._operand(name, b)), holds)
            for name, a, b, holds in guards
        ]
        self.checking = len(self._operations)
        found = [self._number(expression) for expression in expressions]
        self.results = [self._register(position) for position in found]
        self.guards = [(self._register(position), holds) for position, holds in checks]
        self.code = [(_CODES[name], self._register(a), self._register(b)) for name, a, b in self._operations]

    def _register(self, position: Position) -> int:
        kind, number = position
        if kind in ("input", "table"):
            return number
        return self.inputs + number + (len(self.constants) if kind == "operation" else 0)

    def _constant(self, value: int) -> Position:
        if value not in self._constant_indices:
            self._constant_indices[value] = len(self.constants)
            self.constants.append(value)
        return "constant", self._constant_indices[value]

    def _operand(self, name: str, value: Any) -> Position:
        return self._number(real(value) if name.startswith("real_") else value)

    def _operation(self, name: str, a: Position, b: Position) -> Position:
        key = (name, a, b)
        if key not in self._positions:
            self._positions[key] = ("operation", len(self._operations))
            self._operations.append((name, a, b))
        return self._positions[key]

    def _number(self, value: Any) -> Position:
        if isinstance(value, float):
            return self._constant(float_bits(value))
        if not isinstance(value, Symbol):
            return self._constant(int(value))
        key = identity(value)
        if key not in self._positions:
            total: Position | None = None
            for monomial, factor in value.terms:
                part = self._product(monomial, factor)
                total = part if total is None else self._operation("add", total, part)
            assert total is not None
            self._positions[key] = total
        return self._positions[key]

    def _product(self, monomial: Monomial, factor: int) -> Position:
        product = self._constant(factor) if factor != 1 or not monomial else None
        for atom in monomial:
            part = self._computed(atom)
            product = part if product is None else self._operation("multiply", product, part)
        assert product is not None
        return product

    def _computed(self, atom: int) -> Position:
        name, *arguments = self.recording.atom(atom)
        if name == "input":
            return "input", arguments[0] if self._registers is None else self._registers[arguments[0]]
        if name == "look_up":
            table, index = arguments
            if table not in self.tables:
                self.tables.append(table)
            return self._operation(name, ("table", self.tables.index(table)), self._number(index))
        return self._operation(name, self._number(arguments[0]), self._number(arguments[1]))

    def encoded(self) -> Encoded:
        """The program as the core takes it; raises OverflowError where a constant does not fit into 64 bits."""
        lengths = len(self.constants), len(self.tables), len(self.code)
        counts = self.inputs, *lengths, self.checking, len(self.results), len(self.guards)
        parts = [
            array("i", counts),
            array("q", self.constants),
            array("i", map(len, self.tables)),
            *[array("q", table) for table in self.tables],
            array("i", chain.from_iterable(self.code)),
            array("i", self.results),
            array("i", [2 * position + holds for position, holds in self.guards]),
        ]
        return b"".join([part.tobytes() for part in parts])
