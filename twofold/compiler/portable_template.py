"""Serialisation of plans for symbolic sizes: several under one key, each for the sizes that meet its guards."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from twofold import _core
from twofold.compiler.portable_program import costs_of, kernel_by, key_of
from twofold.compiler.saved_plans import saved_plans
from twofold.ir.size_program import Encoded

if TYPE_CHECKING:
    from twofold.compiler.compile import FlatProgram

Plan = TypeVar("Plan")


def _with_kernels(program: tuple[Any, ...], kernel: Callable[[Any], Any]) -> tuple[Any, ...]:
    """The steps of a program with ``kernel`` applied to the kernel of each."""
    steps, *rest = program
    mapped = []
    for name, *step, nested in steps:
        if nested is not None:
            if callable(nested[0]):
                raise NotImplementedError("host functions cannot be serialised")
            programs, *others = nested
            nested = [_with_kernels(part, kernel) for part in programs], *others
        mapped.append((kernel(name), *step, nested))
    return mapped, *rest


class ProgramTemplate(NamedTuple):
    """A program for symbolic sizes, and the counts and times that the log tells."""

    encoded: tuple[Encoded, tuple[Any, ...]]
    """The form of the core: a size program, and steps."""
    bodies: int = 1
    new_bodies: int = 1
    calls: int = 1
    new_kernels: int = 0
    plan_seconds: float = 0.0
    kernel_seconds: float = 0.0
    for_all_sizes: bool = True

    @classmethod
    def of(cls, encoded: tuple[Encoded, tuple[Any, ...]], program: FlatProgram) -> ProgramTemplate:
        """The template that was planned as ``program``."""
        return cls(encoded, *costs_of(program))

    @property
    def instructions(self) -> list[Any]:
        """Its steps."""
        steps: list[Any] = self.encoded[1][0]
        return steps

    def portable(self) -> tuple[Any, ...]:
        """The serialised form, with kernels by key; the size program comes first."""
        sizes, program = self.encoded
        return sizes, _with_kernels(program, key_of), self.bodies, self.calls

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (self.portable(), self[1:])

    @classmethod
    def restored(cls, portable: tuple[Any, ...]) -> ProgramTemplate:
        """Read the serialised form; raises LookupError if neither memory nor disk has one of its kernels."""
        sizes, program, bodies, calls = portable
        return cls((sizes, _with_kernels(program, kernel_by)), bodies, 0, calls)


def _received(portable: tuple[Any, ...], statistics: tuple[Any, ...]) -> ProgramTemplate:
    """A template from another process; raises LookupError if neither memory nor disk has one of its kernels."""
    return ProgramTemplate(ProgramTemplate.restored(portable).encoded, *statistics)


def matching_plan(
    key: bytes | None,
    values: Sequence[int],
    make: Callable[[], Plan | None] | None,
    write: Callable[[Plan], tuple[Any, ...]],
    read: Callable[[tuple[Any, ...]], Plan],
) -> Plan | None:
    """Find a saved plan whose guards hold, or make and save one.

    Args:
        key: The key of the plans; None if they cannot be saved.
        values: The integers for which a plan is needed.
        make: Makes a plan, or None if there is none for these values, which is saved too. Without it none is made.
        write: Serialises a plan; the first item is a size program with the guards.
        read: Restores a plan; raises LookupError if that is impossible.

    Returns:
        The plan; None if there is none.
    """
    plans, own = saved_plans(), tuple(values)
    entries: list[PlanEntry] = plans.read_own(key) or []
    entry, found = _first_matching(entries, own, read)
    if entry is None and (own, _NOT_IN_PACKAGE) not in entries:
        entry, found = _first_matching(packaged := plans.read_package(key) or [], own, read)
        if entry is not None:
            plans.keep_last(key, [*entries, entry])
        elif packaged and make is None:
            plans.keep_last(key, [*entries, (own, _NOT_IN_PACKAGE)])
    if entry is not None or make is None:
        return found
    plan = make()
    entries = [entry for entry in entries if entry[0] != own]
    with contextlib.suppress(NotImplementedError):
        plans.keep_last(key, [*entries, (own, None if plan is None else write(plan))])
    return plan


PlanEntry = tuple[tuple[int, ...], Any]
"""The values that a plan was made for, and its serialised form, or None if there is no plan for them."""

_NOT_IN_PACKAGE = False
"""In place of a plan: the package has none for these values."""


def _first_matching(
    entries: Sequence[PlanEntry], own: tuple[int, ...], read: Callable[[tuple[Any, ...]], Plan]
) -> tuple[PlanEntry | None, Plan | None]:
    """The first entry whose guards hold for values, and its plan."""
    for entry in entries:
        made_for, written = entry
        if not written:
            if written is None and made_for == own:
                return entry, None
        elif _core.run_size_program(written[0], own) is not None:
            with contextlib.suppress(LookupError):  # a kernel was dropped from the disk
                return entry, read(written)
    return None, None
