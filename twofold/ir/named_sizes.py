"""Sizes that stand in the core's types as names while a graph is declared for all sizes at once.

The core's types hold integers. A symbol has a negative one there, its name; the type that a program is shown has the
symbol again. So functions of tensors compute with symbols, and what they decide is a guard of the graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold import _core
from twofold.dtypes import int64
from twofold.ir.bind import input_node
from twofold.ir.node import Attributes
from twofold.ir.op import Op
from twofold.ir.recording import Recording
from twofold.ir.sizes import Symbol
from twofold.ir.types import TensorType, tensor_type
from twofold.ir.unknown import new_unknown_size


class NamedSizes(Recording):
    """A recording over the open sizes of inputs: those of ``types`` where ``varies`` says so.

    >>> from twofold.dtypes import float32
    >>> sizes = NamedSizes([tensor_type(float32, (16, 8))], [(True, False)])
    >>> [sizes.symbolic(type).shape for type in sizes.types_of_inputs]
    [(s0, 8)]
    """

    def __init__(self, types: Sequence[TensorType], varies: Sequence[Sequence[bool]]) -> None:
        pairs = [list(zip(type.shape, own, strict=True)) for type, own in zip(types, varies, strict=True)]
        values = [size for pair in pairs for size, own in pair if own]
        super().__init__(values, [0] * len(values))
        self._names: dict[int, int] = {}
        self._by_name: dict[int, Symbol] = {}
        self.operands: list[tuple[Any, Symbol]] = []
        """Declared tensors that are sizes, with these."""
        given = iter(self.inputs)
        self.types_of_inputs = [
            self.named(
                tensor_type(type.dtype, tuple([next(given) if own else n for n, own in pair]), type.weak)
            )
            for type, pair in zip(types, pairs)
        ]

    def _name(self, size: Any) -> int:
        if not isinstance(size, Symbol):
            return int(size)
        name = self._names.get(size.number)
        if name is None:
            name = self._names[size.number] = new_unknown_size()
            self._by_name[name] = size
        return name

    def named(self, type: TensorType) -> TensorType:
        """A type with names in place of symbols."""
        return tensor_type(type.dtype, tuple([self._name(size) for size in type.shape]), type.weak)

    def symbolic(self, type: TensorType) -> TensorType:
        """A type with symbols in place of names; one that was declared elsewhere stays as it is."""
        if not any(size in self._by_name for size in type.shape):
            return type
        shape: Any = tuple([size if size >= 0 else self._by_name[size] for size in type.shape])
        return tensor_type(type.dtype, shape, type.weak)

    def result_type(self, op: Op, attrs: Attributes, types: Sequence[TensorType]) -> TensorType:
        """The type of a call, by its rule on symbols."""
        inputs = [input_node(k, self.symbolic(type)) for k, type in enumerate(types)]
        return self.named(op.build(attrs, inputs).type)

    def operand(self, symbol: Symbol) -> Any:
        """A declared tensor that is this size when the graph runs, as a Python number."""
        made = _core.placeholder(tensor_type(int64, (), True))
        self.operands.append((made, symbol))
        return made
