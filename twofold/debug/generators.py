"""Generators as variables of a stepped run: they show where they stood at a line, and what their variables held."""

from __future__ import annotations

import os
from types import CodeType, GeneratorType, SimpleNamespace
from typing import Any, NamedTuple


class Standing(NamedTuple):
    """Where a generator stands: its code and qualified name, and the line, which is None at its end."""

    code: CodeType
    name: str
    line: int | None

    @classmethod
    def of(cls, generator: GeneratorType[Any, Any, Any]) -> Standing:
        """Where a generator stands now."""
        frame = generator.gi_frame
        return cls(generator.gi_code, generator.__qualname__, None if frame is None else frame.f_lineno)


class ShownGenerator:
    """A generator of a run, as it was: it has the attributes of one, but cannot go on."""

    __slots__ = ("gi_code", "gi_frame", "gi_running", "gi_yieldfrom", "standing")

    def __init__(self, standing: Standing, variables: dict[str, Any]) -> None:
        self.standing, self.gi_code = standing, standing.code
        self.gi_frame = None
        if standing.line is not None:
            self.gi_frame = SimpleNamespace(
                f_code=standing.code, f_lineno=standing.line, f_locals=variables, f_back=None
            )
        self.gi_running, self.gi_yieldfrom = False, None

    def __iter__(self) -> ShownGenerator:
        return self

    def __next__(self) -> Any:
        raise RuntimeError(f"{self!r} is shown as it was in the run, and cannot go on. Look at its gi_frame.")

    def __repr__(self) -> str:
        where = f"{os.path.basename(self.gi_code.co_filename)}:{self.standing.line}"
        state = "at its end" if self.standing.line is None else f"suspended at {where}"
        return f"<generator object {self.standing.name} at {id(self):#x}, {state}>"
