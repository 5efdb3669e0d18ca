"""Flags of the command line and the start of a program: ``tf.app`` and ``tf.flags``."""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Callable, Iterator, Sequence
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
        self.__dict__.update(_parser=argparse.ArgumentParser(allow_abbrev=False), _parsed=False)
        self.__dict__.update(_set={}, _defaults={}, _checks=[])
        self.__dict__["__flags"] = {}  # the values, where programs for TensorFlow before 1.5 look

    def define(
        self, name: str, default: Any, words: str | None, convert: Callable[[str], Any], **options: Any
    ) -> None:
        """Add a flag; raises ValueError for one that is there."""
        shared = {"default": argparse.SUPPRESS, "help": words, "dest": name}
        try:
            self._parser.add_argument(f"--{name}", type=convert, **shared, **options)
        except argparse.ArgumentError:
            raise ValueError(f"flags: --{name} is defined twice. Choose another name.") from None
        first = convert(default) if isinstance(default, str) and not options else default
        self._defaults[name] = self.__dict__["__flags"][name] = first
        self.__dict__["_parsed"] = False

    def define_switch(self, name: str, default: Any, words: str | None) -> None:
        """Add a flag that is true or false: ``--name``, ``--noname`` or ``--name=false``."""
        self.define(name, default, words, _truth)
        self._parser._option_string_actions[f"--{name}"].nargs = "?"
        self._parser._option_string_actions[f"--{name}"].const = True
        self._parser.add_argument(f"--no{name}", dest=name, action="store_false", default=argparse.SUPPRESS)

    def parse(self, arguments: Sequence[str]) -> list[str]:
        """Read flags from arguments; those that are left."""
        values, left = self._parser.parse_known_args(list(arguments))
        self.__dict__["__flags"].update({**self._defaults, **vars(values), **self._set})
        self.__dict__["_parsed"] = True
        return left

    def __call__(self, argv: Sequence[str], known_only: bool = False) -> list[str]:
        """Read flags from a command line, and check them; the program's name and what is left.

        With ``known_only`` unknown flags are among what is left; else they raise ValueError.
        """
        given = list(argv)
        left = self.parse(given[1:])
        unknown = [one for one in left if one.startswith("--") and one != "--"]
        if unknown and not known_only:
            raise ValueError(f"flags: {unknown[0]} is not defined. Define it, or pass known_only=True.")
        self.check()
        return [*given[:1], *left]

    def validate(self, names: Sequence[str], check: Callable[..., Any], message: str) -> None:
        """Have a program end with a message where ``check(*values)`` of some flags is false at its start."""
        for name in names:
            if name not in self._defaults:
                raise AttributeError(f"flags: --{name} is not defined. Define it first.")
        self._checks.append((list(names), check, message))

    def check(self) -> None:
        """End the program where a flag has a value that it may not have."""
        for names, check, message in self._checks:
            values = [getattr(self, name) for name in names]
            if not check(*values):
                shown = ", ".join(f"--{name}={value}" for name, value in zip(names, values))
                sys.exit(f"FATAL Flags parsing error: flag {shown}: {message}")

    def is_parsed(self) -> bool:
        """Whether the flags are read."""
        parsed: bool = self._parsed
        return parsed

    def mark_as_parsed(self) -> None:
        """Let the flags be as they are, whatever the command line says."""
        self.__dict__["_parsed"] = True

    def set_default(self, name: str, value: Any) -> None:
        """Change what a flag is where the command line does not say it."""
        self.validate([name], lambda one: True, "")
        self._defaults[name] = value
        self.__dict__["_parsed"] = False

    def flag_values_dict(self) -> dict[str, Any]:
        """All flags by name.

        >>> flags = Flags()
        >>> flags.define("rate", 0.5, None, float)
        >>> flags.flag_values_dict()
        {'rate': 0.5}
        """
        return {name: getattr(self, name) for name in self._defaults}

    def _parse_flags(self) -> None:
        """Read the flags from the command line, as programs for TensorFlow before 1.5 ask for."""
        self.parse(sys.argv[1:])

    def __getitem__(self, name: str) -> SimpleNamespace:
        """A flag: its name, its ``value`` and its ``default``."""
        if name not in self._defaults:
            raise KeyError(name)
        return SimpleNamespace(name=name, value=getattr(self, name), default=self._defaults[name])

    def __contains__(self, name: str) -> bool:
        return name in self._defaults

    def __iter__(self) -> Iterator[str]:
        return iter(self._defaults)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if not self._parsed and name not in self._set:
            self.parse(sys.argv[1:])
        try:
            return self.__dict__["__flags"][name]
        except KeyError:
            raise AttributeError(f"flags: --{name} is not defined. Define it first.") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self._set[name] = self.__dict__["__flags"][name] = value


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


def _required(name: str, required: bool) -> None:
    if required:
        _mark_as_required(name)


def _bounded(name: str, lower: Any, upper: Any, several: bool = False) -> None:
    """Have a program end at its start where a number is outside of bounds."""
    if lower is None and upper is None:
        return
    inside = lambda value: (lower is None or value >= lower) and (upper is None or value <= upper)
    fits = lambda value: value is None or all(map(inside, value if several else [value]))
    FLAGS.validate([name], fits, f"--{name} must be from {lower} to {upper} (None: no bound).")


def _bounded_definer(convert: Callable[[str], Any], words: str, several: bool = False) -> Callable[..., None]:
    def define(
        name: str,
        default: Any,
        help: str | None = None,
        lower_bound: Any = None,
        upper_bound: Any = None,
        required: bool = False,
    ) -> None:
        if several and default is not None and not isinstance(default, (list, tuple)):
            default = [default]
        FLAGS.define(name, default, help, convert, **({"action": "append"} if several else {}))
        _bounded(name, lower_bound, upper_bound, several)
        _required(name, required)

    define.__doc__ = f"Add a flag that {words}."
    return _also_older(define)


def _definer(convert: Callable[[str], Any], words: str) -> Callable[..., None]:
    def define(name: str, default: Any, help: str | None = None, required: bool = False) -> None:
        FLAGS.define(name, default, help, convert)
        _required(name, required)

    define.__doc__ = f"Add a flag that is {words}."
    return _also_older(define)


@_also_older
def _define_switch(name: str, default: Any, help: str | None = None, required: bool = False) -> None:
    """Add a flag that is true or false."""
    FLAGS.define_switch(name, default, help)
    _required(name, required)


@_also_older
def _define_enum(
    name: str, default: Any, enum_values: Sequence[str], help: str | None = None, required: bool = False
) -> None:
    """Add a flag that is one of some texts."""

    def chosen(text: str) -> str:
        if text not in enum_values:
            raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(enum_values)}")
        return text

    FLAGS.define(name, default, help, chosen)
    _required(name, required)


def _listed(text: str) -> list[str]:
    return text.split(",") if text else []


def _mark_as_required(flag_name: str) -> None:
    """Have a program end at its start where a flag is None."""
    what = f"Flag --{flag_name} must have a value other than None."
    FLAGS.validate([flag_name], lambda value: value is not None, what)


def _mark_all_as_required(flag_names: Sequence[str]) -> None:
    """Have a program end at its start where one of some flags is None."""
    for name in flag_names:
        _mark_as_required(name)


def _register_validator(
    flag_name: str, checker: Callable[[Any], Any], message: str = "Flag validation failed"
) -> None:
    """Have a program end at its start, with a message, where ``checker`` of a flag's value is false."""
    FLAGS.validate([flag_name], checker, message)


flags = SimpleNamespace(
    FLAGS=FLAGS,
    mark_flag_as_required=_mark_as_required,
    mark_flags_as_required=_mark_all_as_required,
    register_validator=_register_validator,
    DEFINE_multi_string=_bounded_definer(str, "may be given several times, a list of texts", True),
    DEFINE_multi_integer=_bounded_definer(int, "may be given several times, a list of whole numbers", True),
    DEFINE_multi_float=_bounded_definer(float, "may be given several times, a list of numbers", True),
    DEFINE_spaceseplist=_definer(str.split, "a list with spaces"),
    DEFINE_string=_definer(str, "text"),
    DEFINE_integer=_bounded_definer(int, "is a whole number, perhaps between bounds"),
    DEFINE_float=_bounded_definer(float, "is a number, perhaps between bounds"),
    DEFINE_list=_definer(_listed, "a list with commas"),
    DEFINE_boolean=_define_switch,
    DEFINE_bool=_define_switch,
    DEFINE_enum=_define_enum,
)


def run(main: Callable[[list[str]], Any] | None = None, argv: Sequence[str] | None = None) -> None:
    """Read the flags, call ``main`` (that of the program unless given) with what is left, and exit."""
    given = list(sys.argv if argv is None else argv)
    function = main or sys.modules["__main__"].main
    sys.exit(function(FLAGS(given, known_only=True)))


app = SimpleNamespace(flags=flags, run=run)
