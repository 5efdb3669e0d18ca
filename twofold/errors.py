"""Error classes and the one module that writes error messages: what, both sides, where, and what to change.

Rules raise with ``what`` and ``fix``; whoever binds the operation adds its name, each operand with dtype,
shape and the line that made it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold.tracebacks import ending_here


class TwofoldError(Exception):
    """Base of all errors that Twofold raises on purpose; ``what`` and ``fix`` hold the two halves.

    Its traceback ends at the user's line, below the frames of the package that raised it.
    """

    def __init__(self, what: str, fix: str = "") -> None:
        self.what = what
        self.fix = fix
        self.located = False
        self.placed = False  # at another line than that of the call which raises it
        self.label: Any = None  # of an error met while running: what was computed
        self.call: tuple[str, Sequence[Any]] | None = None  # what is wrong with which operands
        super().__init__(f"{what}. {fix}" if fix else f"{what}.")
        self.__traceback__ = ending_here()


class ShapeError(TwofoldError, RuntimeError, ValueError):
    """Shapes do not fit; caught as RuntimeError (PyTorch's habit) and as ValueError (TensorFlow's)."""


class MaskError(ShapeError, IndexError):
    """A mask does not have the shape of what it selects from; caught as IndexError, too, as in PyTorch."""


class DTypeError(TwofoldError, TypeError, RuntimeError):
    """An element type does not fit; caught as TypeError and as RuntimeError."""


class AxisError(TwofoldError, IndexError, ValueError):
    """An axis lies outside the tensor; caught as IndexError (PyTorch) and as ValueError (NumPy)."""


class ArgumentError(TwofoldError, RuntimeError, ValueError):
    """An argument has a value that the operation cannot take."""


class AnomalyError(TwofoldError, RuntimeError, FloatingPointError):
    """A value is NaN or infinite, and none was among those that it was computed of; see ``detect_anomaly``."""


class VerificationError(TwofoldError, RuntimeError):
    """A compiled program has other bits than its operations one by one; see ``twofold.debug.verify``.

    ``compiled`` and ``alone`` are the two results of the call, ``index`` that of their first element that differs,
    ``script`` the path of a script that shows it, or None.
    """

    compiled: Any
    alone: Any
    index: tuple[int, ...]
    script: str | None


class GradientError(TwofoldError, RuntimeError):
    """A gradient was asked for that does not exist."""


class UndefinedGradientError(GradientError, NotImplementedError):
    """A gradient was asked for that has no formula."""


class GraphError(TwofoldError, RuntimeError, ValueError):
    """A graph is used in a way its state forbids: finalised, closed, foreign, or without a value.

    TensorFlow's ``(node_def, op, message)``, which programs make their own errors with, is taken too: by position the
    first two are then ``what`` and ``fix``.
    """

    error_code: int | None = None

    def __init__(
        self,
        what: Any = None,
        fix: Any = "",
        message: str | None = None,
        error_code: int | None = None,
        *,
        node_def: Any = None,
        op: Any = None,
    ) -> None:
        if error_code is not None:
            self.error_code = error_code
        if message is None:
            self.node_def, self.op = node_def, op
            super().__init__(what, fix)
            return
        self.node_def, self.op = what if node_def is None else node_def, (fix or None) if op is None else op
        super().__init__(message)
        self.args = (message,)

    @property
    def message(self) -> str:
        """The text of the error."""
        return str(self)


class InvalidArgumentError(GraphError):
    """A run of a declared graph was given, or came to, values that it cannot take."""


class FailedPreconditionError(GraphError):
    """A run of a declared graph needs what is not there yet, such as the value of a variable."""


class IndexRangeError(InvalidArgumentError, IndexError):
    """An index lies outside its axis."""


class ValueRangeError(IndexRangeError):
    """An element lies outside the range that an operation takes."""


class DivisionError(InvalidArgumentError, ZeroDivisionError):
    """An integer is divided by zero."""


_INVALID: dict[type[TwofoldError], type[TwofoldError]] = {}


def invalid(kind: type[TwofoldError]) -> type[TwofoldError]:
    """The class of an error of a run: InvalidArgumentError and what the error is besides."""
    if issubclass(kind, GraphError):
        return kind
    if issubclass(InvalidArgumentError, kind):
        return InvalidArgumentError
    if kind not in _INVALID:
        _INVALID[kind] = type(kind.__name__, (kind, InvalidArgumentError), {"__doc__": kind.__doc__})
    return _INVALID[kind]


def as_invalid(error: TwofoldError) -> TwofoldError:
    """An error of a run that ends at the user's line, as the InvalidArgumentError of a session."""
    worded = invalid(type(error))(error.what, error.fix)
    worded.located, worded.placed = error.located, error.placed
    worded.__traceback__, worded.__notes__ = error.__traceback__, getattr(error, "__notes__", [])
    return worded


class LinAlgError(InvalidArgumentError):
    """A matrix does not have what a computation needs: an inverse, a Cholesky factor, convergence."""


def described(tensor: Any) -> str:
    """A tensor for a message: its type, and where it was declared."""
    where = tensor._where
    return f"{tensor.type_} ({where})" if where else str(tensor.type_)


def describe_operand(name: str, type_text: str, where: str | None) -> str:
    """One operand for a message: ``x float32[2,3] (train.py:12)``."""
    return f"{name} {type_text} ({where})" if where else f"{name} {type_text}"


def at_operation(
    error: TwofoldError, operation: str, operands: Sequence[str], where: str | None
) -> TwofoldError:
    """The same error, worded for one use of an operation, with its operands and line."""
    what = f"{operation}: {error.what}"
    if operands:
        what += ": " + ", ".join(operands)
    if where:
        what += f", at {where}"
    worded = type(error)(what, error.fix)
    worded.located = True
    return worded
