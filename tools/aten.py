"""Writes which overloads PyTorch's operators have, of those that there are here: ``python tools/aten.py``.

Needs PyTorch, whose registry it reads. An operator is what PyTorch binds directly under a public name, so that its
arguments are those of the operator, or a function whose parameters have the names of the operator's arguments.
"""

from __future__ import annotations

import inspect
import textwrap
from pathlib import Path
from typing import Any

import torch

import twofold
from twofold.library.aten import owner_of

PATH = Path(__file__).parents[1] / "twofold" / "library" / "aten_overloads.py"


def overloads() -> dict[str, list[str]]:
    """Names of overloads by operator; those of named dimensions are left out."""
    found: dict[str, list[str]] = {}
    for full in sorted(torch._C._dispatch_get_all_op_names()):
        namespace, _, name = full.partition("::")
        operator, _, overload = name.partition(".")
        if namespace == "aten" and not ("name" in overload.lower() and operator != "rename"):
            found.setdefault(operator, []).append(overload or "default")
    return found


def is_loss(name: str) -> bool:
    """Whether an operator has a reduction."""
    packet = getattr(torch.ops.aten, name)
    schema = getattr(packet, packet.overloads()[0])._schema
    return any(one.name == "reduction" for one in schema.arguments)


def function(name: str, package: Any) -> Any:
    """The function or method of an operator."""
    owner, _, own = owner_of(name, package, is_loss(name)).partition(" ")
    value = package
    for part in owner.split(".") if owner else ():
        value = getattr(value, part)
    return getattr(value, own)


def is_bound(name: str) -> bool:
    """Whether PyTorch's public function or method is the operator itself."""
    found = function(name, torch)
    return (
        not inspect.isfunction(found) and not inspect.isclass(found) and not inspect.isdatadescriptor(found)
    )


def arguments(name: str, overloads: list[str]) -> str | None:
    """What the arguments are called here, in order; None where they do not fit the parameters."""
    try:
        parameters = list(inspect.signature(function(name, twofold)).parameters.values())
    except (TypeError, ValueError):
        return None
    if parameters[0].kind == inspect.Parameter.VAR_POSITIONAL:
        return "*"
    own, longest = [one.name for one in parameters], list[str]()
    for overload in overloads:
        schema = getattr(getattr(torch.ops.aten, name), overload)._schema
        if any(one.is_out for one in schema.arguments):
            continue
        names = [_own_name(one.name, index, own) for index, one in enumerate(schema.arguments)]
        required = [
            one
            for one, argument in zip(names, schema.arguments, strict=True)
            if not argument.has_default_value()
        ]
        if not set(required) <= set(own) or (len(schema.returns) != 1 and "with_indices" not in name):
            return None
        positional = [
            one for one, argument in zip(names, schema.arguments, strict=True) if not argument.kwarg_only
        ]
        shorter, longer = sorted((longest, positional), key=len)
        if longer[: len(shorter)] != shorter:
            return None
        longest = longer
    return " ".join(longest)


def _own_name(name: str, index: int, own: list[str]) -> str:
    """The parameter that an argument is: the first for self, and ``split_size_or_sections`` for ``split_size``."""
    same = index < len(own) and (name == "self" or own[index].startswith(f"{name}_or_"))
    return own[index] if same else name


def main() -> None:
    """Write the table."""
    entries = []
    for name, names in overloads().items():
        if not owner_of(name, twofold):
            continue
        direct = bool(owner_of(name, torch)) and is_bound(name) and not is_loss(name)
        order = "" if direct else arguments(name, names)
        if order is not None:
            entries.append(f"{name}: {' '.join(names)}" + (f" ({order})" if order else ""))
    text = "\n".join(textwrap.wrap("; ".join(entries), 118))
    PATH.write_text(
        '"""Overloads of PyTorch\'s operators; written by tools/aten.py.\n\n'
        "In parentheses stand the names of the arguments, where functions here are called by these.\n"
        f'"""\n\nOVERLOADS = """\n{text}\n"""\n'
    )


if __name__ == "__main__":
    main()
