"""TensorFlow's functions that are public functions of the package under other names: one row of a table each."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from typing import Any

from twofold.ops.base import FUNCTIONS
from twofold.static.define import operation
from twofold.static.graph import check_same_dtype

RENAMED: dict[str, Callable[..., Any]] = {}
"""The functions made here, by the types of their operations, which are those of the nodes in a ``GraphDef``."""


def renamed(type: str, function: str, parameters: str = "x", **fixed: Any) -> Callable[..., Any]:
    """The function that declares an operation of ``type``: ``function`` of tensors called ``parameters``.

    ``fixed`` are its other arguments. Several tensors must have one dtype. The docstring is derived from its own.

    >>> import twofold.static as tf
    >>> tf.floormod.__doc__.splitlines()[-2:]
    ['>>> torch.remainder(torch.tensor([7, -7]), 3)', 'tensor([1, 2])']
    """
    names = parameters.split()

    def body(*args: Any, **named: Any) -> Any:
        values = [*args, *[named[name] for name in names[len(args) :]]]
        return FUNCTIONS[function](*check_same_dtype(*values), **fixed)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    body.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, kind, annotation=Any) for name in names], return_annotation=Any
    )
    body.__name__ = body.__qualname__ = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type).lower()
    body.__doc__ = _derived(function, names, fixed)
    body.__module__ = sys._getframe(1).f_globals["__name__"]  # whose name it is
    made = RENAMED[type] = operation(type)(body)
    return made


def _derived(function: str, names: list[str], fixed: dict[str, Any]) -> str:
    """What a public function says of itself, with other names of its tensors."""
    text = inspect.getdoc(FUNCTIONS[function]) or ""
    said, _, example = text.partition(">>>")
    first = said.partition("\n\n")[0]
    for own, name in zip(("input", "other"), names):
        first = re.sub(rf"\b{own}\b", name, first)
    given = "".join(f", {name}={value!r}" for name, value in fixed.items())
    return f"{first.strip()}\n\nThe operation of ``twofold.{function}``{given}:\n\n>>>{example}".rstrip()
