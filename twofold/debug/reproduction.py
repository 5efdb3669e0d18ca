"""Scripts that show, with nothing but their own data, that a program has other bits than its operations."""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy

from twofold import _core
from twofold.dtypes import DType
from twofold.ops.base import FUNCTIONS
from twofold.runtime.tracing import public_name
from twofold.tracebacks import positions

Tensor = _core.Tensor
_HEAD = '''"""Shows that {name}, called at {where}, has other bits in a compiled program than alone."""

import pathlib
import pickle

import numpy

import twofold as torch
from twofold.debug.verification import call, show

data = numpy.load(pathlib.Path(__file__).with_suffix(".npz"))
'''


def write_script(
    run: Any, calls: Sequence[int], made: Mapping[int, Any], culprit: Any, directory: str | os.PathLike[str]
) -> str | None:
    """Write the calls of a run, with the data that they read in an ``.npz`` file beside; returns the path.

    None where something cannot be written, such as a graph among the attributes of a call.

    Args:
        run: The run.
        calls: The numbers of its calls that the script makes.
        made: Results of some of these that are data in the script.
        culprit: What it shows.
        directory: Where it is written.
    """
    try:
        writer = _Writer(run, made)
        for number in calls:
            writer.write(number)
    except (pickle.PicklingError, TypeError, AttributeError, ValueError, RecursionError):
        return None
    entry, line = run.entries[culprit.call], run.lines[culprit.call]
    head = _HEAD.format(name=public_name(entry[2]), where=_where(line[0]) or "an unknown line")
    kept = ", ".join(f"v{number}" for number in culprit.kept)
    body = "".join(f"    {one}\n" for one in writer.calls)
    body = f'\n\ndef program():\n{body}    return [{kept}]\n\n\nshow(program, "{culprit.tier}")\n'
    path = Path(directory).absolute() / f"{public_name(entry[2]).rpartition('.')[2]}_differs.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join([head, *writer.inputs, body]), encoding="utf-8")
    numpy.savez(path.with_suffix(".npz"), **writer.data)
    return str(path)


def _where(location: int) -> str:
    """``file:line`` of a call."""
    chain = positions(location)
    return chain[0].where if chain else ""


class _Writer:
    """The lines of a script and the arrays that they read."""

    def __init__(self, run: Any, made: Mapping[int, Any]) -> None:
        self.run, self.made = run, made
        self.inputs: list[str] = []
        self.calls: list[str] = []
        self.data: dict[str, Any] = {}
        self._known: set[str] = set()

    def write(self, number: int) -> None:
        """Write one call."""
        if number in self.made:
            self._input(f"v{number}", self.made[number])
            return
        _, refs, op, attrs, *_ = self.run.entries[number]
        operands = [f"v{ref}" if ref >= 0 else self._leaf(~ref) for ref in refs]
        name = public_name(op)
        if not attrs and name in FUNCTIONS and "." not in name:
            text = f"torch.{name}({', '.join(operands)})"
        else:
            text = f"call({', '.join([repr(op.name), self._attributes(number, attrs), *operands])})"
        where = _where(self.run.lines[number][0])
        self.calls.append(f"v{number} = {text}" + (f"  # {where}" if where else ""))

    def _leaf(self, position: int) -> str:
        self._input(f"x{position}", self.run.inputs[position])
        return f"x{position}"

    def _input(self, name: str, value: Any) -> None:
        if name in self._known:
            return
        self._known.add(name)
        if isinstance(value, Tensor):
            array = numpy.asarray(value.detach().numpy())
            if array.dtype.kind not in "biufc":
                raise TypeError(f"values {value.type_} cannot be written")
            self.data[name] = array
            self.inputs.append(f"{name} = torch.tensor(data[{name!r}], dtype=torch.{value.dtype.name})\n")
        else:
            self.inputs.append(f"{name} = {_literal(value)}\n")

    def _attributes(self, number: int, attrs: tuple[Any, ...]) -> str:
        written = _written(attrs)
        if written is None:
            name = f"attributes_{number}"
            self.data[name] = numpy.frombuffer(pickle.dumps(attrs, pickle.HIGHEST_PROTOCOL), numpy.uint8)
            return f"pickle.loads(data[{name!r}].tobytes())"
        return written


def _literal(value: Any) -> str:
    """A number as Python text."""
    text = repr(value)
    return f"float({text!r})" if isinstance(value, float) and not text.strip("-")[0].isdigit() else text


def _written(value: Any) -> str | None:
    """Attributes as Python text, or None."""
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return _literal(value)
    if isinstance(value, DType):
        return f"torch.{value.name}"
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        parts = [_written(one) for one in value]
        if all(part is not None for part in parts):
            return f"({', '.join(str(part) for part in parts)}{',' * (len(parts) == 1)})"
    return None
