"""Compilation of symbolic expressions to straight-line code, which the core evaluates for new sizes."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from twofold.ir.recording import Recording
from twofold.ir.sizes import Monomial, Symbol, float_bits, identity, real

OPERATIONS = (
    "iadd", "imul", "floordiv", "mod", "imin", "imax", "lookup",
    "to_float", "fadd", "fmul", "fdiv", "ffloor",
    "eq", "lt", "le", "feq", "flt", "fle",
)  # fmt: skip
"""The operations, in the order of the opcodes of the core; floats are held as the bits of a float64."""

_CODES = {name: code for code, name in enumerate(OPERATIONS)}
_ON_FLOATS = ("fadd", "fmul", "fdiv", "feq", "flt", "fle")

Position = tuple[str, int]
"""An operand: "input", "constant", "operation" or "table", and its number."""

Encoded = bytes
"""Byte code of the core: 32-bit counts of inputs, constants, tables, steps, steps that guards need, results and guards;
then constants, lengths of tables, tables, steps, results and guards. See ``SizeProgram.encoded``."""


class SizeProgram:
    """Straight-line code of expressions and guards.

    Registers hold the inputs, then constants, then a result for each operation.

    Args:
        recording: The recording that expressions and guards are of.
        expressions: What is computed.
        guards: The conditions under which the results are valid.
        registers: The number of the input for each position in the recording, if not all of them are inputs.
        inputs: The number of inputs, if not all of the recording.

    Attributes:
        code: The steps ``(opcode, register, register)``.
        checking: The number of steps that guards need; they come first.
        results: The registers of the expressions.
        guards: Registers of comparisons, and the results that are required of them.
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
        # guards first, as they fail for most programs
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
        return self._number(real(value) if name in _ON_FLOATS else value)

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
                total = part if total is None else self._operation("iadd", total, part)
            assert total is not None
            self._positions[key] = total
        return self._positions[key]

    def _product(self, monomial: Monomial, factor: int) -> Position:
        product = self._constant(factor) if factor != 1 or not monomial else None
        for atom in monomial:
            part = self._atom(atom)
            product = part if product is None else self._operation("imul", product, part)
        assert product is not None
        return product

    def _atom(self, atom: int) -> Position:
        name, *arguments = self.recording.atom(atom)
        if name == "input":
            return "input", arguments[0] if self._registers is None else self._registers[arguments[0]]
        if name == "lookup":
            table, index = arguments
            if table not in self.tables:
                self.tables.append(table)
            return self._operation(name, ("table", self.tables.index(table)), self._number(index))
        return self._operation(name, self._number(arguments[0]), self._number(arguments[1]))

    def encoded(self) -> Encoded:
        """The byte code.

        Raises:
            OverflowError: A constant does not fit into 64 bits.
        """
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
