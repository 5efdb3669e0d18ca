"""Docstrings of functions that are made from entries or from tables."""

from __future__ import annotations

import inspect
import textwrap
from typing import Any

from twofold.dtypes import bool_, float32, int64

_NOTE = "Computed by {}: the last bits may differ between types of processor and versions of NumPy."
_KIND_NAMES = {"b": "bools", "i": "integers", "f": "floats", "c": "complex numbers"}


def shown(text: str, *lines: str) -> str:
    """``text``, and below it an example: statements ``>>> ...`` and what they print.

    >>> shown("Twice it.", ">>> torch.tensor(4) * 2", "tensor(8)").splitlines()
    ['Twice it.', '', '>>> import twofold as torch', '>>> torch.tensor(4) * 2', 'tensor(8)']
    """
    return "\n".join((text.strip(), "", ">>> import twofold as torch", *lines))


def with_library(doc: str, library: str) -> str:
    """``doc``, which says above its example what computes for the function."""
    text, mark, example = doc.partition("\n\n>>>")
    if not mark:
        # as written in a function of the module's own, indented
        text, mark, example = doc.partition("\n\n    >>>")
    indent = "    " if mark.endswith("    >>>") else ""
    note = textwrap.fill(_NOTE.format(library), 110, initial_indent=indent, subsequent_indent=indent)
    return f"{text.rstrip()}\n\n{note}{mark}{example}"


def with_dtypes(op: Any) -> str:
    """The docstring of an element-wise entry with what its rules say of dtypes, shapes and errors."""
    text, mark, example = inspect.cleandoc(op.doc).partition("\n\n>>>")
    several = len(op.parameter_names()) > 1
    said = ["Operands broadcast to one shape (else ShapeError) and meet in one dtype."] if several else []
    if op.result_dtype(float32)[1] is bool_:
        said.append("The result is bool.")
    elif op.result_dtype(int64)[1] is float32 and "i" in op.kinds:
        said.append("Integers and bools give float32.")
    else:
        said.append(
            f"The result has the {'dtype of the operands' if several else 'shape and dtype of the input'}."
        )
    refused = [name for kind, name in _KIND_NAMES.items() if kind not in op.kinds]
    if op.on_complex is not None and refused and refused[-1] == _KIND_NAMES["c"]:
        refused.pop()
    if refused:
        *others, last = refused
        said.append(f"Raises DTypeError for {', '.join(others)}{' and ' * bool(others)}{last}.")
    return "\n".join((text, "", *said)) + mark + example
