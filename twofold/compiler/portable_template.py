"""Plans for symbolic sizes as what is kept on disk: several under one key, each for the sizes that meet its guards."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from twofold import _core
from twofold.compiler.portable_program import kernel_by, key_of, spent_on
from twofold.compiler.saved_plans import saved_plans
from twofold.ir.size_program import Encoded

if TYPE_CHECKING:
    from twofold.compiler.compile import FlatProgram

Plan = TypeVar("Plan")


def _with_kernels(program: tuple[Any, ...], kernel: Callable[[Any], Any]) -> tuple[Any, ...]:
    """The steps of a program with ``kernel`` of what names it in each."""
    steps, *rest = program
    made = []
    for name, *step, inside in steps:
        if inside is not None:
            if callable(inside[0]):
                raise NotImplementedError("functions of the host stay in their process")
            programs, *others = inside
            inside = [_with_kernels(part, kernel) for part in programs], *others
        made.append((kernel(name), *step, inside))
    return made, *rest


class ProgramTemplate(NamedTuple):
    """A program for symbolic sizes, and what is said of it where a compile is told."""

    encoded: tuple[Encoded, tuple[Any, ...]]
    """What the core takes: its numbers, and its steps with what they need beside."""
    bodies: int = 1
    new_bodies: int = 1
    calls: int = 1
    new_kernels: int = 0
    plan_seconds: float = 0.0
    kernel_seconds: float = 0.0
    for_all_sizes: bool = True

    @classmethod
    def of(cls, encoded: tuple[Encoded, tuple[Any, ...]], program: FlatProgram) -> ProgramTemplate:
        """What was just planned as ``program``."""
        return cls(encoded, *spent_on(program))

    @property
    def instructions(self) -> list[Any]:
        """Its steps."""
        steps: list[Any] = self.encoded[1][0]
        return steps

    def portable(self) -> tuple[Any, ...]:
        """It with kernels named by the keys of their texts; its numbers come first."""
        sizes, program = self.encoded
        return sizes, _with_kernels(program, key_of), self.bodies, self.calls

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (self.portable(), self[1:])

    @classmethod
    def found(cls, portable: tuple[Any, ...]) -> ProgramTemplate:
        """It in a process that has found it; LookupError where neither memory nor disk holds a kernel."""
        sizes, program, bodies, calls = portable
        return cls((sizes, _with_kernels(program, kernel_by)), bodies, 0, calls)


def _received(portable: tuple[Any, ...], rest: tuple[Any, ...]) -> ProgramTemplate:
    """A template from another process; LookupError where neither memory nor disk holds a kernel."""
    return ProgramTemplate(ProgramTemplate.found(portable).encoded, *rest)


def fitting(
    key: bytes | None,
    values: Sequence[int],
    make: Callable[[], Plan | None] | None,
    write: Callable[[Plan], tuple[Any, ...]],
    read: Callable[[tuple[Any, ...]], Plan],
) -> Plan | None:
    """A plan for ``values``: one kept under ``key`` whose guards hold, else what ``make`` gives, which is kept beside.

    ``write`` gives what is kept, whose first item is a size program with the guards; ``read`` makes a plan of it, or
    raises LookupError. That ``make`` gives None is kept for these values alone. Without ``make`` none is made.
    """
    plans, own = saved_plans(), tuple(values)
    entries: list[Entry] = plans.read_own(key) or []
    entry, found = _fitting(entries, own, read)
    if entry is None and (own, _NOT_IN_PACKAGE) not in entries:
        entry, found = _fitting(packaged := plans.read_package(key) or [], own, read)
        if entry is not None:
            plans.keep_last(key, [*entries, entry])
        elif packaged and make is None:
            plans.keep_last(key, [*entries, (own, _NOT_IN_PACKAGE)])
    if entry is not None or make is None:
        return found
    made = make()
    entries = [entry for entry in entries if entry[0] != own]
    with contextlib.suppress(NotImplementedError):
        plans.keep_last(key, [*entries, (own, None if made is None else write(made))])
    return made


Entry = tuple[tuple[int, ...], Any]
"""The values that a plan was made for, and what is kept of it."""

_NOT_IN_PACKAGE = False
"""In place of a plan: the package has none for these values."""


def _fitting(
    entries: Sequence[Entry], own: tuple[int, ...], read: Callable[[tuple[Any, ...]], Plan]
) -> tuple[Entry | None, Plan | None]:
    """The first entry that holds for values, and its plan."""
    for entry in entries:
        made_for, written = entry
        if not written:
            if written is None and made_for == own:
                return entry, None
        elif _core.run_size_program(written[0], own) is not None:
            with contextlib.suppress(LookupError):  # a kernel was dropped from the disk
                return entry, read(written)
    return None, None
