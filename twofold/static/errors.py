"""TensorFlow's errors: ``tf.errors``. All are OpError; what nothing here raises is there for ``except``."""

from __future__ import annotations

from twofold.errors import FailedPreconditionError as FailedPreconditionError
from twofold.errors import GraphError
from twofold.errors import InvalidArgumentError as InvalidArgumentError

OpError = GraphError


class AbortedError(OpError):
    """What ran was given up."""


class AlreadyExistsError(OpError):
    """What was to be made is there."""


class DataLossError(OpError):
    """What was read is damaged."""


class DeadlineExceededError(OpError):
    """The time was up."""


class InternalError(OpError):
    """A mistake of the library."""


class NotFoundError(OpError):
    """What was asked for is not there."""


class PermissionDeniedError(OpError):
    """What was asked for is not allowed."""


class ResourceExhaustedError(OpError):
    """Memory or the like has run out."""


class UnauthenticatedError(OpError):
    """Who asks is not known."""


class UnavailableError(OpError):
    """What was asked for cannot be had now."""


class UnimplementedError(OpError):
    """What was asked for does not exist yet."""


class UnknownError(OpError):
    """None of the others."""


class CancelledError(GraphError):
    """What was waited for was given up."""


class OutOfRangeError(GraphError):
    """An iterator has no more elements."""


OK = 0
_ERRORS: list[type[OpError]] = [
    CancelledError,
    UnknownError,
    InvalidArgumentError,
    DeadlineExceededError,
    NotFoundError,
    AlreadyExistsError,
    PermissionDeniedError,
    ResourceExhaustedError,
    FailedPreconditionError,
    AbortedError,
    OutOfRangeError,
    UnimplementedError,
    InternalError,
    UnavailableError,
    DataLossError,
    UnauthenticatedError,
]
"""The errors in the order of their codes from 1 on."""

(
    CANCELLED,
    UNKNOWN,
    INVALID_ARGUMENT,
    DEADLINE_EXCEEDED,
    NOT_FOUND,
    ALREADY_EXISTS,
    PERMISSION_DENIED,
    RESOURCE_EXHAUSTED,
    FAILED_PRECONDITION,
    ABORTED,
    OUT_OF_RANGE,
    UNIMPLEMENTED,
    INTERNAL,
    UNAVAILABLE,
    DATA_LOSS,
    UNAUTHENTICATED,
) = range(1, len(_ERRORS) + 1)
for _code, _error in enumerate(_ERRORS, 1):
    _error.error_code = _code


def exception_type_from_error_code(error_code: int) -> type[OpError]:
    """The error of a code.

    >>> import twofold.static as tf
    >>> tf.errors.exception_type_from_error_code(tf.errors.NOT_FOUND).__name__
    'NotFoundError'
    """
    return _ERRORS[error_code - 1]


def error_code_from_exception_type(cls: type[OpError]) -> int:
    """The code of an error; that of an unknown one for others."""
    return next((code for code, error in enumerate(_ERRORS, 1) if error is cls), UNKNOWN)
