"""Signatures of functions that pass their arguments on: what they show is what they take."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from inspect import Parameter, Signature, signature
from numbers import Number
from typing import Any

from twofold.tracebacks import warn_user


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


def scales_first(*scales: str) -> Callable[[Any], Any]:
    """Let a function take its scales by position, too, as PyTorch before version 1.5 did; then it warns.

    One scale stands behind the first operand. Of two, the first stands before or behind the first operand, as in
    ``addmm(beta, input, alpha, mat1, mat2)`` and ``input.addmm(beta, alpha, mat1, mat2)``; the second may be left out.

    >>> import twofold as torch, warnings
    >>> with warnings.catch_warnings(record=True) as warned:
    ...     torch.ones(2).add(10, torch.ones(2)), len(warned)
    (tensor([11., 11.]), 1)
    """

    def decorate(function: Any) -> Any:
        places = [one for one in signature(function).parameters.values() if one.kind is not one.KEYWORD_ONLY]
        last = len(places) - 1

        @functools.wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            if len(args) <= last + 1:
                return function(*args, **options)
            head, operands = args[:-last], args[-last:]
            numbers = [one for one in head if isinstance(one, Number)]
            if len(head) == 2 and not numbers and getattr(head[1], "shape", None) == ():
                numbers = [*numbers, head[1]]  # a tensor without axes is a number
            if len(head) - len(numbers) != 1 or len(numbers) > len(scales):
                return function(*args, **options)  # which says what it takes
            given = dict(zip(scales, numbers))
            _warn_of_order(call.__name__, list(given))
            first = next(one for one in head if not isinstance(one, Number))
            return function(first, *operands, **given, **options)

        return call

    return decorate


def _warn_of_order(name: str, scales: Sequence[str]) -> None:
    """Warn, at the program's line, of scales before their operands."""
    instead = ", ".join(f"{scale}=" for scale in scales)
    message = f"{name}: numbers before the operands are deprecated. Give them behind these, as {instead}"
    warn_user(message)


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
