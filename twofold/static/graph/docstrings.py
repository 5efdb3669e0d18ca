"""Docstrings put together from what a function does and an example of it, which is data."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

D = TypeVar("D")

START = "session.run(tf.global_variables_initializer())"
START_LOCAL = "session.run(tf.local_variables_initializer())"


def with_example(text: str, *lines: str) -> str:
    """``text`` and an example: statements in a session, an expression that it runs and prints, and what it prints.

    An expression that begins with ``print(`` stands as it is.

    >>> import twofold.static as tf
    >>> tf.cumsum.__doc__.splitlines()[-2:]
    ['...     print(session.run(tf.cumsum([1, 2, 3, 4])))', '[ 1  3  6 10]']
    """
    *setup, expression, result = lines
    shown = expression if expression.lstrip().startswith("print(") else f"print(session.run({expression}))"
    opening = ">>> import twofold.static as tf\n>>> with tf.Graph().as_default(), tf.Session() as session:"
    statements = [f"...     {line}" for line in (*setup, shown)]
    return "\n".join((inspect.cleandoc(text), "", opening, *statements, result))


def example(*lines: str) -> Callable[[D], D]:
    """A decorator that puts an example, as ``with_example`` takes it, at the end of a docstring.

    >>> import twofold.static as tf
    >>> print(tf.identity.__doc__.splitlines()[-1])
    [1 2]
    """

    def enter(described: D) -> D:
        described.__doc__ = with_example(described.__doc__ or "", *lines)
        return described

    return enter


def described(function: Callable[..., Any], name: str, text: str, *lines: str) -> Callable[..., Any]:
    """``function`` with the name and the docstring of a row of a table; ``lines`` are its example, if it has one."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = with_example(text, *lines) if lines else text
    return function
