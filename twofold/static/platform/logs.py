"""``tf.logging``: messages of a program, to standard error from a level on."""

from __future__ import annotations

import logging as _logging
import sys
from typing import Any

DEBUG, INFO, WARN, ERROR, FATAL = 10, 20, 30, 40, 50

_counts: dict[tuple[str, int], int] = {}


def _made() -> _logging.Logger:
    logger = _logging.getLogger("tensorflow")
    if not logger.handlers and not _logging.getLogger().handlers:
        handler = _logging.StreamHandler(_Stderr())
        handler.setFormatter(_logging.Formatter(_logging.BASIC_FORMAT))
        logger.addHandler(handler)
    if logger.level == _logging.NOTSET:
        logger.setLevel(WARN)
    return logger


class _Stderr:
    """Standard error as it is when something is written."""

    def write(self, words: str) -> int:
        return sys.stderr.write(words)

    def flush(self) -> None:
        sys.stderr.flush()


def get_logger() -> _logging.Logger:
    """The logger that shows the messages.

    >>> import twofold.static as tf
    >>> tf.get_logger().name
    'tensorflow'
    """
    return _made()


def get_verbosity() -> int:
    """The level from which messages are shown: ``WARN`` unless set."""
    return _made().getEffectiveLevel()


def set_verbosity(v: int) -> None:
    """Show messages of this level and above."""
    _made().setLevel(v)


def log(level: int, msg: str, *args: Any) -> None:
    """Show ``msg % args`` if its level is shown."""
    _made().log(level, msg, *args)


def vlog(level: int, msg: str, *args: Any) -> None:
    """As ``log``."""
    _made().log(level, msg, *args)


def debug(msg: str, *args: Any) -> None:
    """Show ``msg % args`` if DEBUG is shown."""
    _made().debug(msg, *args)


def info(msg: str, *args: Any) -> None:
    """Show ``msg % args`` if INFO is shown."""
    _made().info(msg, *args)


def warning(msg: str, *args: Any) -> None:
    """Show ``msg % args`` if WARN is shown.

    >>> warning("not shown: %d", 1) if get_verbosity() > WARN else None
    """
    _made().warning(msg, *args)


warn = warning


def error(msg: str, *args: Any) -> None:
    """Show ``msg % args`` if ERROR is shown."""
    _made().error(msg, *args)


def fatal(msg: str, *args: Any) -> None:
    """Show ``msg % args`` if FATAL is shown; the program goes on."""
    _made().fatal(msg, *args)


def log_if(level: int, msg: str, condition: Any, *args: Any) -> None:
    """Show a message where ``condition`` holds."""
    if condition:
        log(level, msg, *args)


def _count() -> int:
    frame = sys._getframe(2)
    position = frame.f_code.co_filename, frame.f_lineno
    _counts[position] = _counts.get(position, -1) + 1
    return _counts[position]


def log_every_n(level: int, msg: str, n: int, *args: Any) -> None:
    """Show a message the first time that a line is reached, and every ``n``-th after."""
    log_if(level, msg, _count() % n == 0, *args)


def log_first_n(level: int, msg: str, n: int, *args: Any) -> None:
    """Show a message the first ``n`` times that a line is reached."""
    log_if(level, msg, _count() < n, *args)


def flush() -> None:
    """Hand over what was shown."""
    sys.stderr.flush()
