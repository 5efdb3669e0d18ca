"""What the variables of a function hold at a line, so that later changes do not reach it."""

from __future__ import annotations

import collections
import enum
import functools
import keyword
from collections.abc import Callable, Mapping
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy

from twofold import _core
from twofold.debug.names import Built, Given, Held
from twofold.debug.recording import Recording
from twofold.dtypes import DType

Tensor = _core.Tensor
_CONSTANTS = (
    *(type(None), bool, int, float, complex, str, bytes, range, slice, type, type(...), type(NotImplemented)),
    *(
        FunctionType,
        BuiltinFunctionType,
        ModuleType,
        DType,
        enum.Enum,
        BaseException,
        numpy.generic,
        numpy.dtype,
    ),
)
_MOST_PARTS = 4096  # of all that one variable holds
_MOST_BYTES = 1 << 16  # of an array
_HEAP_TYPE = 1 << 9  # the flag of classes that are defined in Python


class _Unknown(Exception):
    """What a variable holds may change without notice."""


def is_symbolic(value: Any) -> bool:
    """Whether a value stands for one of a graph that is being declared."""
    return isinstance(value, Tensor) and value._is_symbolic


class Snapshot:
    """Variables by name, all that they hold pinned; ``resolve`` gives their parts the numbers of a recording.

    What may change unseen is left out.

    Args:
        names: The variables. Tensors in them are what they hold now, whatever is written to them later.
        known: Handles of the values that are known so far, by key; it grows.
    """

    __slots__ = ("names",)

    def __init__(self, names: Mapping[str, Any], known: dict[int, Any]) -> None:
        self.names: dict[str, Held] = {}
        tensors: dict[int, Any] = {}
        for name, value in names.items():
            if not name or (name.isidentifier() and not keyword.iskeyword(name)):
                inside: dict[int, Any] = {}
                try:
                    self.names[name] = _Shape(inside).of(value)
                    tensors.update(inside)
                except _Unknown:
                    pass
        if tensors:
            leaves: Any = _core.close((), tuple(tensors.values()), _core.declaration_mark()).leaves
            for (handle,) in leaves:
                known.setdefault(_core.value_key(handle), handle)
        pinned = {number: known[_core.value_key(one)] for number, one in tensors.items()}
        self._replace(lambda one: pinned[id(one)])

    def resolve(self, recording: Recording) -> None:
        """Have the numbers of values stand for the values."""
        self._replace(recording.give)

    def _replace(self, change: Callable[[Any], Any]) -> None:
        self.names = {name: _mapped(held, change) for name, held in self.names.items()}


def _mapped(held: Any, change: Callable[[Any], Any]) -> Any:
    """A value's parts with all tensors changed."""
    if isinstance(held, Tensor):
        return change(held)
    if isinstance(held, (tuple, list)):
        return type(held)([_mapped(one, change) for one in held])
    if isinstance(held, dict):
        return {key: _mapped(one, change) for key, one in held.items()}
    if isinstance(held, Built):
        return Built(held.kind, held.make, _mapped(held.content, change))
    return held


class _Shape:
    """The parts of one value; ``tensors`` are those in it by ``id``."""

    def __init__(self, tensors: dict[int, Any]) -> None:
        self.tensors = tensors
        self._left = _MOST_PARTS
        self._inside: set[int] = set()

    def of(self, value: Any) -> Any:
        """A value as tensors, what never changes, and containers of such; raises _Unknown for others."""
        tensor = value if isinstance(value, Tensor) else _tensor_of(value)
        if tensor is not None:
            if tensor._is_symbolic:
                raise _Unknown
            self.tensors[id(tensor)] = tensor
            return tensor
        if isinstance(value, _CONSTANTS):
            return Given(value)
        self._left -= 1
        if self._left < 0 or id(value) in self._inside:
            raise _Unknown
        self._inside.add(id(value))
        try:
            return self._compound(value)
        finally:
            self._inside.discard(id(value))

    def _compound(self, value: Any) -> Any:
        kind = type(value)
        if kind in (tuple, list):
            return kind([self.of(one) for one in value])
        if kind is dict:
            return {self._key(key): self.of(one) for key, one in value.items()}
        if isinstance(value, tuple):
            return Built(kind, functools.partial(tuple.__new__, kind), [self.of(one) for one in value])
        if kind in (set, frozenset):
            return Given(kind([self._key(one) for one in value]))
        if kind is collections.deque:
            make: Any = functools.partial(collections.deque, maxlen=value.maxlen)
            return Built((kind, value.maxlen), make, [self.of(one) for one in value])
        if kind in (collections.OrderedDict, collections.Counter):
            return Built(kind, kind, {self._key(key): self.of(one) for key, one in value.items()})
        if kind is collections.defaultdict:
            make = functools.partial(kind, value.default_factory)
            return Built(kind, make, {self._key(key): self.of(one) for key, one in value.items()})
        if kind is numpy.ndarray and value.nbytes <= _MOST_BYTES and not value.dtype.hasobject:
            return Given(value.copy())
        return self._object(value, kind)

    def _key(self, key: Any) -> Any:
        """A key of a dictionary or an element of a set."""
        if isinstance(key, Tensor) or not isinstance(key, (*_CONSTANTS, tuple, frozenset)):
            raise _Unknown
        for one in key if isinstance(key, (tuple, frozenset)) else ():
            self._key(one)
        return key

    def _object(self, value: Any, kind: Any) -> Any:
        """An object of a class of Python's that is its attributes; what is not known of them is left out."""
        attributes = getattr(value, "__dict__", None)
        if type(attributes) is not dict or not kind.__flags__ & _HEAP_TYPE or hasattr(kind, "__del__"):
            raise _Unknown
        if kind.__new__ is not object.__new__ or any("__slots__" in vars(one) for one in kind.__mro__[:-1]):
            raise _Unknown
        found: dict[str, Any] = {}
        for name, one in attributes.items():
            try:
                found[name] = self.of(one)
            except _Unknown:
                if self._left < 0 or hasattr(kind, "__dataclass_fields__"):
                    raise
        return Built(kind, functools.partial(_made, kind), found)


def _made(kind: Any, attributes: dict[str, Any]) -> Any:
    made = object.__new__(kind)
    made.__dict__.update(attributes)
    return made


def _tensor_of(value: Any) -> Any:
    """The tensor that an expression of DyNet stands for, or None."""
    return value._tensor if isinstance(value, _core.Expression) else None
