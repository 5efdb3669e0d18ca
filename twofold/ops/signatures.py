"""Signatures of functions that pass their arguments on: what they show is what they take."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from inspect import Parameter, Signature
from typing import Any


def with_names(function: Any, names: Sequence[str]) -> Any:
    """``function`` with other names for its parameters, in order.

    >>> double = with_names(lambda x: 2 * x, ["input"])
    >>> double(input=4), list(inspect.signature(double).parameters)
    (8, ['input'])
    """
    code, before = function.__code__, function.__annotations__
    old = code.co_varnames[: len(names)]
    function.__annotations__ = {
        **{new: before.get(name, "Any") for new, name in zip(names, old)},
        "return": "Any",
    }
    function.__code__ = code.replace(co_varnames=(*names, *code.co_varnames[len(names) :]))
    return function


def keyword(name: str, default: Any = None, annotation: Any = "Any") -> Parameter:
    """A parameter that is given by its name alone."""
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def positional(name: str, default: Any = Parameter.empty, annotation: Any = "Any") -> Parameter:
    """A parameter that is given by its position or by its name."""
    return Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=annotation)


def extended(function: Callable[..., Any], *added: Parameter, without: Sequence[str] = ()) -> Signature:
    """The signature of ``function`` with further parameters, each behind those of its kind that are there.

    >>> str(extended(lambda x, *, a=1: x, keyword("out", annotation=Parameter.empty)))
    '(x, *, a=1, out=None)'
    """
    found = inspect.signature(function)
    kept = [one for name, one in found.parameters.items() if name not in without]
    names = {one.name for one in kept}
    kept += [one for one in added if one.name not in names]
    return found.replace(parameters=sorted(kept, key=lambda one: one.kind))


def shows(made: Any, function: Callable[..., Any], *added: Parameter, without: Sequence[str] = ()) -> Any:
    """``made``, whose signature is that of ``function`` with further parameters."""
    made.__signature__ = _returning(made, extended(function, *added, without=without))
    return made


def _returning(made: Any, found: Signature) -> Signature:
    """``found`` with what ``made`` itself is declared to return."""
    own = getattr(made, "__annotations__", {}).get("return", "Any")
    return found if own in ("Any", Any) else found.replace(return_annotation=own)


def method_like(made: Any, function: Callable[..., Any], without: Sequence[str] = ("out",)) -> Any:
    """``made``, whose signature is that of ``function`` behind ``self``."""
    found = extended(function, without=without)
    shown = found.replace(parameters=[positional("self"), *found.parameters.values()])
    made.__signature__ = _returning(made, shown)
    return made
