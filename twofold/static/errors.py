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
