"""How copies of a variable on several machines are kept alike; on one machine all are the same."""

from __future__ import annotations

from enum import Enum


class VariableSynchronization(Enum):
    """When copies of a variable are made alike.

    >>> import twofold.static as tf
    >>> tf.VariableSynchronization.AUTO.value
    0
    """

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


class VariableAggregation(Enum):
    """How copies of a variable are made one.

    >>> import twofold.static as tf
    >>> tf.VariableAggregation.MEAN.value
    2
    """

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3
    ONLY_FIRST_TOWER = 3  # noqa: PIE796
