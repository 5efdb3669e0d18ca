"""``tensorflow.python.training.slot_creator``: variables that an optimizer keeps beside those that it trains."""

from __future__ import annotations

from typing import Any

from twofold.static.arrays import creation
from twofold.static.optimizers.optimizer import slot_of
from twofold.static.variables.variable import Variable

__all__ = ["create_slot", "create_slot_with_initializer", "create_zeros_slot"]


def create_slot(primary: Variable, val: Any, name: str, colocate_with_primary: bool = True) -> Variable:
    """A variable named after ``primary`` and ``name`` that is ``val`` at first; there is one device to be on."""
    return slot_of(primary, val, name)


def create_slot_with_initializer(
    primary: Variable, initializer: Any, shape: Any, dtype: Any, name: str, colocate_with_primary: bool = True
) -> Variable:
    """A variable named after ``primary`` and ``name``, of ``shape`` and ``dtype`` by ``initializer`` at first."""
    return slot_of(primary, lambda: initializer(shape, dtype=dtype), name)


def create_zeros_slot(
    primary: Variable, name: str, dtype: Any = None, colocate_with_primary: bool = True
) -> Variable:
    """A variable named after ``primary`` and ``name``, zeros of its shape at first."""
    return slot_of(primary, lambda: creation.zeros_like(primary, dtype=dtype), name)
