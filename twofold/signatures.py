"""Signatures that are data: rows of names with their defaults."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

REQUIRED: Any = inspect.Parameter.empty
"""The default of a parameter that must be given."""


def signature(text: str) -> inspect.Signature:
    """The signature with these parameters, whose defaults are literals.

    >>> str(signature("units, rate=0.5, *, training, seed=None"))
    '(units: Any, rate: Any = 0.5, *, training: Any, seed: Any = None) -> Any'
    """
    found: Any = ast.parse(f"lambda {text}: 0", mode="eval").body
    given, defaults = found.args.args, [ast.literal_eval(one) for one in found.args.defaults]
    values = [REQUIRED] * (len(given) - len(defaults)) + defaults
    made = signature_of({one.arg: value for one, value in zip(given, values, strict=True)})
    kind = inspect.Parameter.KEYWORD_ONLY
    only = [
        inspect.Parameter(
            one.arg, kind, default=REQUIRED if value is None else ast.literal_eval(value), annotation=Any
        )
        for one, value in zip(found.args.kwonlyargs, found.args.kw_defaults, strict=True)
    ]
    return made.replace(parameters=[*made.parameters.values(), *only])


def parameters(text: str) -> dict[str, Any]:
    """The names and defaults, which are literals, of parameters as a signature has them.

    >>> parameters("units, rate=0.5, name=None")["rate"]
    0.5
    """
    return {name: one.default for name, one in signature(text).parameters.items()}


def arguments(
    name: str, of: inspect.Signature, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments of a call by name, defaults included; raises TypeError with the function's ``name``.

    >>> arguments("dense", signature("units, rate=0.5"), [4], {})
    {'units': 4, 'rate': 0.5}
    """
    found = bound(name, of, args, kwargs)
    found.apply_defaults()
    return dict(found.arguments)


def bound(
    name: str, of: inspect.Signature, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> inspect.BoundArguments:
    """The arguments that a call gives; raises TypeError with the function's ``name``.

    >>> bound("dense", signature("units, rate=0.5"), [4], {}).arguments
    {'units': 4}
    """
    try:
        return of.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None


def signature_of(parameters: Mapping[str, Any]) -> inspect.Signature:
    """The signature with these names and defaults in order.

    >>> str(signature_of({"units": REQUIRED, "name": None}))
    '(units: Any, name: Any = None) -> Any'
    """
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    found = [
        inspect.Parameter(name, kind, default=value, annotation=Any) for name, value in parameters.items()
    ]
    return inspect.Signature(found, return_annotation=Any)
