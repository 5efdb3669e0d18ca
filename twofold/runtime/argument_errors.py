"""Errors for public functions that are called with invalid arguments."""

from __future__ import annotations

import builtins
import dis
import inspect
import os
import re
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import numpy

from twofold import _core
from twofold.errors import ArgumentError, DTypeError, IndexRangeError, TwofoldError, at_operation
from twofold.runtime.tracing import at_call, here
from twofold.tracebacks import UNWORDED, end_at_user

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_NUMPY = os.path.dirname(os.path.abspath(numpy.__file__)) + os.sep
_HAS_LINE = re.compile(r", at .+:\d+")
_IS_WORDED = re.compile(r"[\w()-]+: .+\.$", re.DOTALL)  # what, and what to change: a message of the core
_MAX_LETTERS = 40  # of an argument in a message

_WORDED: tuple[tuple[type[Exception], type[TwofoldError]], ...] = (
    (TypeError, DTypeError),
    (AttributeError, DTypeError),
    (IndexError, IndexRangeError),
    (LookupError, ArgumentError),
    (ValueError, ArgumentError),
    (AssertionError, ArgumentError),
    (ArithmeticError, ArgumentError),
    (RuntimeError, ArgumentError),
)
"""Errors that Python and NumPy raise for invalid arguments, and the errors that users get in their place."""


def locate_error(
    error: Exception, function: Any, arguments: tuple[Any, ...], keywords: tuple[str, ...] | None
) -> Exception:
    """The error of a public function with its operands, and a traceback that ends at the user's line.

    Args:
        error: The error.
        function: The function.
        arguments: Its positional arguments, then those that ``keywords`` name.
        keywords: The names of keyword arguments.
    """
    found = error if function in UNWORDED else _with_message(error, function, arguments, keywords)
    end_at_user(found)
    return found


def _with_message(
    error: Exception, function: Any, arguments: tuple[Any, ...], keywords: tuple[str, ...] | None
) -> Exception:
    """The error with operands and line; ``error`` itself if it has these."""
    code = inspect.unwrap(function).__code__
    positional = len(arguments) - len(keywords or ())
    names = [code.co_varnames[k] if k < code.co_argcount else f"operand {k}" for k in range(positional)]
    if not isinstance(error, TwofoldError):
        made = _argument_error(
            error, function, dict(zip([*names, *(keywords or ())], arguments, strict=True))
        )
        if made is not None:
            made.__cause__ = error
        return made or error
    if error.located or _HAS_LINE.search(str(error)):
        return error
    tensors = [k for k in range(positional) if isinstance(arguments[k], _core.Tensor)]
    values = [arguments[k] for k in tensors]
    return at_call(
        error, _spoken(function), [names[k] for k in tensors], [value.type_ for value in values], values
    )


def _argument_error(error: Exception, function: Any, arguments: dict[str, Any]) -> TwofoldError | None:
    """The error in place of one of Python or NumPy; None if it has a message of this package, or is the user's."""
    text = str(error)
    if _HAS_LINE.search(text) or _IS_WORDED.match(text):
        return None
    worded = next((worded for kind, worded in _WORDED if isinstance(error, kind)), None)
    unfinished = isinstance(error, (NotImplementedError, RecursionError))
    if worded is None or unfinished or not _raised_implicitly(error.__traceback__):
        return None
    parts = [f"{name}={_shown(value)}" for name, value in arguments.items()]
    what = f"cannot work with these arguments ({text})"
    fix = f"It is {_spoken(function)}{_signature(function)}."
    return at_operation(worded(what, fix), _spoken(function), parts, here())


def _spoken(function: Any) -> str:
    """The name that users have for a function."""
    name: str = function.__name__
    return name[:-1] if name.endswith("_") and hasattr(builtins, name[:-1]) else name


def _raised_implicitly(trace: TracebackType | None) -> bool:
    """Whether code of this package or NumPy raised an error without a ``raise`` statement."""
    if trace is None:  # the call itself did not fit the signature, which Python says
        return False
    last = trace
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if not name.startswith((_PACKAGE, _NUMPY)):
            return False
        last, trace = trace, trace.tb_next
    if last.tb_frame.f_code.co_filename.startswith(_NUMPY):
        return True
    return _operation_at(last) != "RAISE_VARARGS"


def _operation_at(trace: TracebackType) -> str:
    code = trace.tb_frame.f_code
    return next((step.opname for step in dis.get_instructions(code) if step.offset == trace.tb_lasti), "")


def _shown(value: Any) -> str:
    if isinstance(value, _core.Tensor):
        return str(value.type_)
    if isinstance(value, Sequence) and not isinstance(value, str):
        inner = ", ".join(_shown(item) for item in value)
        return f"[{inner}]" if len(inner) <= _MAX_LETTERS else f"{type(value).__name__} of {len(value)}"
    text = repr(value)
    return text if len(text) <= _MAX_LETTERS else type(value).__name__


def _signature(function: Any) -> str:
    try:
        found = inspect.signature(function)
        bare = [part.replace(annotation=part.empty) for part in found.parameters.values()]
        return str(found.replace(parameters=bare, return_annotation=found.empty))
    except (TypeError, ValueError):
        return "(...)"
