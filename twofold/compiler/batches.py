"""Batched calls of an operation or a body: the key of their plans, and those that are saved.

The planner is imported only where no plan is saved.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from twofold import _core
from twofold.compiler.portable_template import ProgramTemplate, matching_plan
from twofold.compiler.saved_plans import saved_plans
from twofold.config import config
from twofold.ir.attribute_numbers import numbers_in
from twofold.ir.node import Attributes
from twofold.ir.op import Op
from twofold.ir.types import TensorType

Member = tuple[Op, Attributes, tuple[int, ...]]
"""A call in a body, and its operands: the position of an earlier member, or ``~k`` for input ``k`` of the body."""


class Batch(NamedTuple):
    """A body whose calls are batched.

    Attributes:
        members: The calls in the body; one for a single operation.
        outputs: The members whose results it returns.
        types: The types of its inputs for one sample.
        flags: For each input, whether it has a leading batch axis; if none has, the program is that of one call.
    """

    members: Sequence[Member]
    outputs: tuple[int, ...]
    types: tuple[TensorType, ...]
    flags: tuple[bool, ...]

    @property
    def numbers(self) -> list[int]:
        """The sizes of its inputs, then the integers in attributes of its members: symbols of its plans."""
        sizes = [size for type in self.types for size in type.shape]
        return sizes + [number for _, attrs, _ in self.members for number in numbers_in(attrs)]

    @property
    def key(self) -> bytes | None:
        """The key of its plans in the disk cache; None if they cannot be saved."""
        calls = [(op, attrs) for op, attrs, _ in self.members]
        structure = tuple([refs for _, _, refs in self.members]), self.outputs, self.flags
        return saved_plans().key_for_sizes(calls, self.types, True, "batch", *structure)

    def saved(self, count: int) -> ProgramTemplate | None:
        """The saved plan for ``count`` calls."""
        values = [count, *self.numbers]
        return matching_plan(self.key, values, None, ProgramTemplate.portable, ProgramTemplate.restored)

    def __str__(self) -> str:
        first, count = self.members[0][0].name, len(self.members)
        if count > 1:
            return f"{count} calls from {first} on"
        return f"{first} of {', '.join(map(str, self.types))}"


def plan_batch(
    family: Any,
    members: Sequence[Member],
    outputs: tuple[int, ...],
    types: tuple[TensorType, ...],
    flags: tuple[bool, ...],
    count: int,
    saved_only: bool,
) -> bool:
    """Plan a batched body for every batch size, and pass the plan to the core.

    Args:
        family: What the core adds the plan to.
        members: See ``Batch``.
        outputs: As well.
        types: As well.
        flags: As well.
        count: The batch size at hand.
        saved_only: Whether a plan is only looked for, and none is made.

    Returns:
        False if there will be no plan now.
    """
    batch = Batch(members, outputs, types, flags)
    found = batch.saved(count)
    if found is not None:
        add_plan(family, batch, found)
        return True
    if saved_only:
        return False
    from twofold.compiler.requests import plan_batch as plan

    return plan(family, batch, count)


def add_plan(family: Any, batch: Batch, found: ProgramTemplate | None) -> None:
    """Pass a plan to the core, or that there is none; the log tells it."""
    _core.add_batch_plan(family, None if found is None else found.encoded)
    if "compile" in config.log:
        from twofold.compiler.log import log

        kernels = "one by one" if found is None else f"{found.new_kernels} new kernels"
        log("compile", f"{batch}, for many calls at once: {kernels}")
