"""Flags of the command line and the start of a program: ``tf.app`` and ``tf.flags``."""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any


class Flags:
    """The values of all flags, read from the command line when the first is asked for.

    >>> flags = Flags()
    >>> flags.define("steps", 5, "How many steps.", int)
    >>> flags.parse(["--steps=7", "--other=1"])
    ['--other=1']
    >>> flags.steps
    7
    """

    def __init__(self) -> None:
        self.__dict__["_parser"] = argparse.ArgumentParser(allow_abbrev=False)
        self.__dict__["_values"] = None
        self.__dict__["_set"] = {}

    def define(self, name: str, default: Any, words: str | None, convert: Callable[[str], Any]) -> None:
        """Add a flag; raises ValueError for one that is there."""
        try:
            self._parser.add_argument(f"--{name}", default=default, type=convert, help=words, dest=name)
        except argparse.ArgumentError:
            raise ValueError(f"flags: --{name} is defined twice. Choose another name.") from None
        self.__dict__["_values"] = None

    def define_switch(self, name: str, default: Any, words: str | None) -> None:
        """Add a flag that is true or false: ``--name``, ``--noname`` or ``--name=false``."""
        self.define(name, default, words, _truth)
        self._parser._option_string_actions[f"--{name}"].nargs = "?"
        self._parser._option_string_actions[f"--{name}"].const = True
        self._parser.add_argument(f"--no{name}", dest=name, action="store_false", default=argparse.SUPPRESS)

    def parse(self, arguments: Sequence[str]) -> list[str]:
        """Read flags from arguments; those that are left."""
        values, left = self._parser.parse_known_args(list(arguments))
        self.__dict__["_values"] = values
        return left

    def flag_values_dict(self) -> dict[str, Any]:
        """All flags by name.

        >>> flags = Flags()
        >>> flags.define("rate", 0.5, None, float)
        >>> flags.flag_values_dict()
        {'rate': 0.5}
        """
        names = [action.dest for action in self._parser._actions if action.dest != "help"]
        return {name: getattr(self, name) for name in dict.fromkeys(names)}

    def _parse_flags(self) -> None:
        """Read the flags from the command line, as programs for TensorFlow before 1.5 ask for."""
        self.parse(sys.argv[1:])

    def __getattr__(self, name: str) -> Any:
        if name == "__flags":  # where programs for TensorFlow before 1.5 look
            return self.flag_values_dict()
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self._set:
            return self._set[name]
        if self._values is None:
            self.parse(sys.argv[1:])
        try:
            return getattr(self._values, name)
        except AttributeError:
            raise AttributeError(f"flags: --{name} is not defined. Define it first.") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self._set[name] = value


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "t", "1", "yes", "false", "f", "0", "no"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
    return text.lower() in ("true", "t", "1", "yes")


FLAGS = Flags()
"""The flags of the program."""


_OLDER = {"flag_name": "name", "default_value": "default", "docstring": "help"}
"""What arguments were called before TensorFlow 1.5, by which it still takes them."""


def _also_older(define: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(define)
    def with_older(*args: Any, **kwargs: Any) -> None:
        for older, name in _OLDER.items():
            if older in kwargs and name in kwargs:
                raise TypeError(f"{name!r} is given twice, also as {older!r}")
        define(*args, **{_OLDER.get(key, key): value for key, value in kwargs.items()})

    return with_older


def _definer(convert: Callable[[str], Any], words: str) -> Callable[..., None]:
    def define(name: str, default: Any, help: str | None = None) -> None:
        FLAGS.define(name, default, help, convert)

    define.__doc__ = f"Add a flag that is {words}."
    return _also_older(define)


@_also_older
def _define_switch(name: str, default: Any, help: str | None = None) -> None:
    """Add a flag that is true or false."""
    FLAGS.define_switch(name, default, help)


@_also_older
def _define_enum(name: str, default: Any, enum_values: Sequence[str], help: str | None = None) -> None:
    """Add a flag that is one of some texts."""

    def chosen(text: str) -> str:
        if text not in enum_values:
            raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(enum_values)}")
        return text

    FLAGS.define(name, default, help, chosen)


def _listed(text: str) -> list[str]:
    return text.split(",") if text else []


flags = SimpleNamespace(
    FLAGS=FLAGS,
    DEFINE_string=_definer(str, "text"),
    DEFINE_integer=_definer(int, "a whole number"),
    DEFINE_float=_definer(float, "a number"),
    DEFINE_list=_definer(_listed, "a list with commas"),
    DEFINE_boolean=_define_switch,
    DEFINE_bool=_define_switch,
    DEFINE_enum=_define_enum,
)


def run(main: Callable[[list[str]], Any] | None = None, argv: Sequence[str] | None = None) -> None:
    """Read the flags, call ``main`` (that of the program unless given) with what is left, and exit."""
    given = list(sys.argv if argv is None else argv)
    function = main or sys.modules["__main__"].main
    sys.exit(function([*given[:1], *FLAGS.parse(given[1:])]))


app = SimpleNamespace(flags=flags, run=run)
