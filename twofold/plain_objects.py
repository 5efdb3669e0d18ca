"""Objects that are what their attributes say, as JSON: specs of DyNet's builders, vocabularies.

Reading makes objects of classes that the program has imported or defined, and calls nothing of theirs.
"""

from __future__ import annotations

import base64
import collections
import sys
from typing import Any

import numpy

_SEQUENCES = {"tuple": tuple, "list": list, "set": set, "frozenset": frozenset}
_MAPPINGS = {"dict": dict, "ordered": collections.OrderedDict, "counter": collections.Counter}
_FACTORIES = {cls.__name__: cls for cls in (int, float, bool, str, list, tuple, dict, set)}
_OWN_WAYS = ("__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__new__", "__del__")


def described(value: Any) -> Any:
    """A part of a ``spec`` for JSON."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, numpy.generic) and value.dtype.kind in "biuf":
        return value.item()
    if isinstance(value, numpy.ndarray) and value.dtype.kind in "biuf":
        return {"array": [value.dtype.str, value.shape, base64.b64encode(value.tobytes()).decode()]}
    for kind, sequence in _SEQUENCES.items():
        if type(value) is sequence:
            return {kind: [described(one) for one in value]}
    for kind, mapping in _MAPPINGS.items():
        if type(value) is mapping:
            return {kind: [[described(key), described(one)] for key, one in value.items()]}
    if type(value) is collections.defaultdict:
        for name, factory in _FACTORIES.items():
            if value.default_factory is factory:
                return {"default": [name, described(dict(value))]}
    name = getattr(value, "__qualname__", "<")
    if callable(value) and getattr(value, "__module__", None) and "<" not in name:
        return {"name": [value.__module__, name]}
    if _is_plain(type(value)):
        return {"object": [described(type(value)), described(vars(value))]}
    raise TypeError(
        f"save: {type(value).__name__} in a spec; use numbers, strings, arrays, containers, classes and functions that "
        "a module defines, and objects with nothing but attributes"
    )


def _is_plain(cls: type) -> bool:
    """Whether an object of ``cls`` is what its ``__dict__`` says, and nothing is called as it is made or forgotten."""
    return cls.__dictoffset__ != 0 and all(
        getattr(cls, name, None) is getattr(object, name, None) for name in _OWN_WAYS
    )


def named(module: str, name: str) -> Any:
    """A class or function of a module that the program has imported."""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is None or getattr(found, "__module__", None) != module:
        raise ValueError(f"load: import or define {module}.{name} first")
    return found


def read(value: Any) -> Any:
    """The part of a ``spec`` that ``described`` gave for JSON."""
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "name":
        return named(*content)
    if kind == "array":
        dtype, shape, data = content
        return numpy.frombuffer(base64.b64decode(data), numpy.dtype(dtype)).reshape(shape).copy()
    if kind == "default":
        return collections.defaultdict(_FACTORIES[content[0]], read(content[1]))
    if kind == "object":
        return _made(read(content[0]), read(content[1]))
    if kind in _MAPPINGS:
        return _MAPPINGS[kind]({read(key): read(one) for key, one in content})
    return _SEQUENCES[kind](read(one) for one in content)


def _made(cls: Any, attributes: dict[str, Any]) -> Any:
    if not isinstance(cls, type) or not _is_plain(cls):
        raise ValueError(f"load: {cls!r} is no class whose objects have nothing but attributes")
    made: Any = object.__new__(cls)
    vars(made).update(attributes)
    return made
