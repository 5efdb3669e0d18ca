"""What docstrings say of the library that computes for a function, derived from the entries that it is made of.

A function uses a library if an entry that it binds says so, itself or in a function that it calls.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

from twofold.ir.op import REGISTRY, Op
from twofold.ops.base import FUNCTIONS, Host

_NOTE = "Computed by {}: the last bits may differ between types of processor and versions of NumPy."


def add_notes() -> None:
    """Say it in the docstring of every public function that uses a library."""
    known: dict[Any, str] = {}
    for function in dict.fromkeys(FUNCTIONS.values()):
        library = _of_function(function, known)
        if library and function.__doc__:
            text, mark, example = function.__doc__.partition("\n\n>>>")
            if not mark:
                # as written in a function of the module's own, indented
                text, mark, example = function.__doc__.partition("\n\n    >>>")
            indent = "    " if mark.endswith("    >>>") else ""
            note = textwrap.fill(_NOTE.format(library), 110, initial_indent=indent, subsequent_indent=indent)
            function.__doc__ = f"{text.rstrip()}\n\n{note}{mark}{example}"


def _of_entry(op: Any, known: dict[Any, str]) -> str:
    if isinstance(op, Host):
        return op.library
    if op.kind != "composite" or not hasattr(op, "rule_compute"):
        return ""
    return _of_function(op.rule_compute, known)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _mentioned(function: FunctionType) -> Iterator[Any]:
    """The entries and functions that a function names."""
    for code in _codes(function.__code__):
        for name in code.co_names:
            yield function.__globals__.get(name)
        for constant in code.co_consts:
            if isinstance(constant, str):
                yield REGISTRY.get(constant)
    for cell in function.__closure__ or ():
        yield cell.cell_contents


def _of_function(function: Any, known: dict[Any, str]) -> str:
    function = getattr(function, "__func__", function)
    if not isinstance(function, FunctionType) or not function.__module__.startswith("twofold.ops"):
        return ""
    if function not in known:
        known[function] = ""  # while it is looked at
        for value in _mentioned(function):
            found = _of_entry(value, known) if isinstance(value, Op) else _of_function(value, known)
            if found:
                known[function] = found
                break
    return known[function]
