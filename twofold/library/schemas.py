"""Schemas of operators: ``f(Tensor x, int n=2, *, float s=1.0) -> Tensor``, read, written and bound to arguments."""

from __future__ import annotations

import ast
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from twofold import _core
from twofold.dtypes import DType
from twofold.frontend.device import Device

Tensor = _core.Tensor

_NAMES = {
    Tensor: "Tensor",
    int: "SymInt",
    float: "float",
    bool: "bool",
    str: "str",
    complex: "Scalar",
    DType: "ScalarType",
    Device: "Device",
}
_CLASSES: dict[str, tuple[type, ...]] = {
    "Tensor": (Tensor,),
    "SymInt": (int,),
    "int": (int,),
    "float": (float, int),
    "bool": (bool,),
    "str": (str,),
    "Scalar": (int, float, complex),
    "ScalarType": (DType,),
    "Device": (Device, str),
}


class Argument(NamedTuple):
    """One argument: its type is a name of ``_CLASSES``, with ``?`` where it may be None and ``[]`` for lists."""

    name: str
    type: str
    default: Any
    is_keyword: bool
    is_mutated: bool

    def takes(self, value: Any) -> bool:
        """Whether a value has the type."""
        return _fits(value, self.type)


def _fits(value: Any, kind: str) -> bool:
    if kind.endswith("?"):
        return value is None or _fits(value, kind[:-1])
    if kind.endswith("]"):
        inner = kind[: kind.index("[")]
        return isinstance(value, (list, tuple)) and all(_fits(one, inner) for one in value)
    if isinstance(value, bool) and kind not in ("bool", "Scalar"):
        return False
    return isinstance(value, _CLASSES[kind])


class Schema(NamedTuple):
    """What an operator takes and returns."""

    name: str
    overload: str
    arguments: tuple[Argument, ...]
    returns: str
    text: str

    def bound(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """All positional values and all of keywords, defaults included.

        Raises:
            RuntimeError: Arguments that are missing, unknown or of another type.
        """
        positional = [one for one in self.arguments if not one.is_keyword]
        if len(args) > len(positional):
            raise RuntimeError(
                f"{self.name}() expected at most {len(positional)} argument(s) but received {len(args)} argument(s). "
                f"Declaration: {self.text}"
            )
        given = {one.name: value for one, value in zip(positional, args, strict=False)}
        for name, value in kwargs.items():
            if name in given or all(one.name != name for one in self.arguments):
                how = "twice" if name in given else "and is not known"
                raise RuntimeError(
                    f"{self.name}() argument '{name}' is given {how}. Declaration: {self.text}"
                )
            given[name] = value
        for position, one in enumerate(self.arguments):
            value = given.setdefault(one.name, one.default)
            if value is inspect.Parameter.empty:
                raise RuntimeError(
                    f"{self.name}() is missing value for argument '{one.name}'. Declaration: {self.text}"
                )
            if not one.takes(value):
                raise RuntimeError(
                    f"{self.name}() Expected a value of type '{one.type}' for argument '{one.name}' but instead found "
                    f"type '{type(value).__name__}'. Position: {position}. Declaration: {self.text}"
                )
        values = [given[one.name] for one in positional]
        return values, {one.name: given[one.name] for one in self.arguments if one.is_keyword}


_SCHEMA = re.compile(r"\s*([\w:]+)(?:\.(\w+))?\s*\((.*)\)\s*->\s*(.+?)\s*", re.DOTALL)
_ARGUMENT = re.compile(r"(\w+)(\(\w+(!?)\))?((?:\[\d*\]|\?)*)\s+(\w+)(?:\s*=\s*(.+))?")
_WORDS = {"None": None, "True": True, "False": False}


def parse(text: str) -> Schema:
    """The schema that a text gives.

    Raises:
        RuntimeError: For text of another form, and types that are not known.
    """
    found = _SCHEMA.fullmatch(text)
    if found is None:
        raise RuntimeError(
            f"{text!r} is no schema. Write it as 'f(Tensor x, int n=2, *, float s=1.0) -> Tensor'."
        )
    name, overload, inner, returns = found.groups()
    arguments, is_keyword = [], False
    for one in _split(inner):
        if one == "*":
            is_keyword = True
            continue
        arguments.append(_argument(one, is_keyword, text))
    return Schema(name, overload or "", tuple(arguments), returns, text)


def _split(inner: str) -> list[str]:
    """The texts between commas that are not inside of brackets."""
    found, depth = [""], 0
    for character in inner:
        depth += (character in "([") - (character in ")]")
        if character == "," and not depth:
            found.append("")
        else:
            found[-1] += character
    return [one.strip() for one in found if one.strip()]


def _argument(text: str, is_keyword: bool, schema: str) -> Argument:
    found = _ARGUMENT.fullmatch(text)
    if found is None or found[1] not in _CLASSES:
        raise RuntimeError(
            f"{text!r} of {schema!r} is no argument. Use types of {', '.join(_CLASSES)}, with [] and ?."
        )
    default: Any = inspect.Parameter.empty
    if found[6] is not None:
        default = _WORDS[found[6]] if found[6] in _WORDS else ast.literal_eval(found[6])
    return Argument(found[5], found[1] + found[4], default, is_keyword, bool(found[3]))


# From annotations


def infer_schema(
    prototype_function: Callable[..., Any],
    /,
    *,
    mutates_args: str | Iterable[str],
    op_name: str | None = None,
) -> str:
    """The schema of a function, as text, by the annotations of its parameters and result.

    Args:
        prototype_function: The function.
        mutates_args: Names of the tensors that it writes to; ``"unknown"`` for all.
        op_name: A name that the text begins with.

    Raises:
        ValueError: A parameter or result without an annotation, or with one that has no counterpart.

    >>> import twofold as torch
    >>> def scaled(x: torch.Tensor, n: int = 2) -> torch.Tensor: ...
    >>> torch.library.infer_schema(scaled, mutates_args=())
    '(Tensor x, SymInt n=2) -> Tensor'
    """
    signature = inspect.signature(prototype_function)
    hints = _hints(prototype_function)
    every = mutates_args == "unknown"
    mutated = set() if isinstance(mutates_args, str) else set(mutates_args)
    if isinstance(mutates_args, str) and not every:
        raise ValueError(f"infer_schema: mutates_args is {mutates_args!r}. Give names, or 'unknown'.")
    unknown = mutated - set(signature.parameters)
    if unknown:
        raise ValueError(f"infer_schema: mutates_args names {sorted(unknown)}, which are no parameters.")
    found, has_keywords = [], False
    for name, parameter in signature.parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise ValueError(f"infer_schema(func): {parameter} takes any number of arguments. Name each.")
        if parameter.kind is parameter.KEYWORD_ONLY and not has_keywords:
            has_keywords = True
            found.append("*")
        if name not in hints:
            raise ValueError(f"infer_schema(func): Parameter {name} must have a type annotation.")
        kind = _kind(hints[name], name)
        if (every or name in mutated) and kind.startswith("Tensor"):
            kind = f"Tensor(a{len(found) - has_keywords}!){kind[len('Tensor') :]}"
        elif name in mutated:
            raise ValueError(f"infer_schema: parameter {name} of mutates_args is no tensor.")
        found.append(f"{kind} {name}{_default(parameter, name)}")
    if "return" not in hints:
        raise ValueError("infer_schema(func): the result must have a type annotation.")
    return f"{op_name or ''}({', '.join(found)}) -> {_returned(hints['return'])}"


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function)
    except NameError as error:
        raise ValueError(f"infer_schema(func): an annotation has no meaning: {error}.") from error


def _kind(hint: Any, name: str) -> str:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if set(inner) == {int, float, bool}:
            return "Scalar"
        if len(inner) == 2 and type(None) in inner:
            return _kind(next(one for one in inner if one is not type(None)), name) + "?"
    elif origin in (list, Sequence, tuple) and inner and set(inner[1:]) <= {...}:
        return _kind(inner[0], name) + "[]"
    elif isinstance(hint, type) and hint in _NAMES:
        return _NAMES[hint]
    raise ValueError(f"infer_schema(func): Parameter {name} has unsupported type {hint}.")


def _default(parameter: inspect.Parameter, name: str) -> str:
    value = parameter.default
    if value is parameter.empty:
        return ""
    if value is not None and not isinstance(value, (bool, int, float, str)):
        raise ValueError(
            f"infer_schema(func): Parameter {name} has an unsupported default value type {type(value)}."
        )
    return f'="{value}"' if isinstance(value, str) else f"={value}"


def _returned(hint: Any) -> str:
    if hint is None or hint is type(None):
        return "()"
    if typing.get_origin(hint) is tuple:
        return "(" + ", ".join(_kind(one, "return") for one in typing.get_args(hint)) + ")"
    return _kind(hint, "return")
