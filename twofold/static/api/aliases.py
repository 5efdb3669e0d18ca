"""TensorFlow's functions that are public functions of the package under other names: one row of a table each."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from typing import Any

from twofold.ops.base import FUNCTIONS
from twofold.static.api.op_functions import axis_of, operation, sizes, whole
from twofold.static.graph.graph_elements import check_same_dtype

RENAMED: dict[str, Callable[..., Any]] = {}
"""The functions of tensors alone made here, by the types of their operations, which are those of ``GraphDef``."""

_CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "axis": axis_of,
    "dtype": lambda value: value,
    "sizes": sizes,
    "whole": whole,
}
"""What becomes of arguments that are no tensors, by the kinds of their parameters."""


def _parameter(name: str, kind: str) -> inspect.Parameter:
    """A parameter of a body, whose annotation says how ``operation`` converts an argument for it."""
    annotation = "Dtype" if kind == "dtype" else "Number" if kind else Any
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=annotation)


def renamed(
    type: str, function: str, parameters: str = "x", order: str | None = None, **fixed: Any
) -> Callable[..., Any]:
    """The function that declares an operation of ``type``: ``function`` with other names of its parameters.

    Several tensors must have one dtype. The docstring is derived from that of ``function``.

    Args:
        type: That of the operations.
        function: The name of a public function.
        parameters: Names of tensors, and of other arguments with their kind, one of ``_CONVERTERS``, such as
            ``shape:sizes``.
        order: The names in the order in which ``function`` takes them, if that is another one.
        **fixed: Further arguments of ``function``.

    >>> import twofold.static as tf
    >>> tf.floormod.__doc__.splitlines()[-2:]
    ['>>> torch.remainder(torch.tensor([7, -7]), 3)', 'tensor([1, 2])']
    """
    kinds = {name: kind for name, _, kind in (text.partition(":") for text in parameters.split())}
    tensors = [name for name, kind in kinds.items() if not kind]
    ordered = list(kinds) if order is None else order.split()

    def body(*args: Any, **named: Any) -> Any:
        found = {**dict(zip(kinds, args)), **named}
        found.update(zip(tensors, check_same_dtype(*[found[name] for name in tensors])))
        for name, kind in kinds.items():
            if kind:
                found[name] = _CONVERTERS[kind](found[name])
        return FUNCTIONS[function](*[found[name] for name in ordered], **fixed)

    body.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [_parameter(*one) for one in kinds.items()], return_annotation=Any
    )
    body.__name__ = body.__qualname__ = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type).lower()
    body.__doc__ = _derived(function, ordered, fixed)
    body.__module__ = sys._getframe(1).f_globals["__name__"]  # whose name it is
    made = operation(type)(body)
    if not any(kinds.values()):
        RENAMED[type] = made
    return made


def _derived(function: str, names: list[str], fixed: dict[str, Any]) -> str:
    """What a public function says of itself, with other names of its parameters, in the order of its own."""
    text = inspect.getdoc(FUNCTIONS[function]) or ""
    said, _, example = text.partition(">>>")
    first = said.partition("\n\n")[0]
    own_names = [
        one.name
        for one in inspect.signature(FUNCTIONS[function]).parameters.values()
        if one.kind is not one.VAR_POSITIONAL
    ]
    for own, name in zip(own_names, names):
        words = own if own in ("input", "other") else f"(?<=``){own}(?=``)"
        first = re.sub(rf"\b{words}\b", name, first)
    given = "".join(f", {name}={value!r}" for name, value in fixed.items())
    return f"{first.strip()}\n\nThe operation of ``twofold.{function}``{given}:\n\n>>>{example}".rstrip()
