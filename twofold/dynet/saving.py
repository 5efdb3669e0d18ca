"""``save`` and ``load`` of parameters, builders and the user's own classes: ``name.data`` and ``name.meta``.

What describes builders is kept as JSON. Reading calls nothing but ``from_spec`` of classes that the program has
imported or defined itself.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from twofold.dynet import storage
from twofold.dynet.lookups import LookupParameters
from twofold.dynet.parameter_collection import ParameterCollection
from twofold.dynet.parameters import Parameters
from twofold.files import atomic_write


def _described(value: Any) -> Any:
    """A part of a ``spec`` for JSON."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (tuple, list)):
        return {"tuple" if isinstance(value, tuple) else "list": [_described(one) for one in value]}
    if isinstance(value, dict):
        return {"dict": [[_described(key), _described(one)] for key, one in value.items()]}
    if callable(value) and getattr(value, "__module__", None):
        return {"name": [value.__module__, value.__qualname__]}
    raise TypeError(
        f"save: {type(value).__name__} in a spec; use numbers, strings, lists, classes and functions"
    )


def _named(module: str, name: str) -> Any:
    """A class or function of a module that the program has imported."""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is None or getattr(found, "__module__", None) != module:
        raise ValueError(f"load: import or define {module}.{name} first")
    return found


def _read(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "name":
        return _named(*content)
    if kind == "dict":
        return {_read(key): _read(one) for key, one in content}
    items = [_read(one) for one in content]
    return tuple(items) if kind == "tuple" else items


def save(basename: str, objects: Iterable[Any]) -> None:
    """Write parameters, tables and builders to ``basename.data`` and ``basename.meta``.

    An object of another class needs ``param_collection()``, ``spec``, and ``from_spec(spec, model)``.

    >>> import tempfile
    >>> import twofold.dynet as dy
    >>> m = dy.ParameterCollection()
    >>> p, builder = m.add_parameters(3, init=1), dy.LSTMBuilder(1, 2, 3, m)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dy.save(folder + "/model", [p, builder])
    ...     q, other = dy.load(folder + "/model", dy.ParameterCollection())
    >>> q.value(), other.spec
    ([1.0, 1.0, 1.0], (1, 2, 3, False, 1.0))
    """
    described, named = [], []
    for thing in objects:
        if isinstance(thing, (Parameters, LookupParameters)):
            described.append([thing.kind, thing.name()])
            named.append((thing.name(), thing))
        else:
            collection = thing.param_collection()
            cls = type(thing)
            described.append([_described(cls), _described(thing.spec), collection.name()])
            named += collection._named("")
    storage.write(basename + ".data", named, False)
    with atomic_write(basename + ".meta") as file:
        file.write(json.dumps({"twofold.dynet": described}).encode())


def load(basename: str, params: ParameterCollection) -> list[Any]:
    """The objects that ``save`` wrote, in the same order; their parameters are added to ``params``."""
    return list(load_generator(basename, params))


def load_generator(basename: str, params: ParameterCollection) -> Iterator[Any]:
    """The objects that ``save`` wrote, one after the other."""
    with open(basename + ".meta", "rb") as file:
        content = file.read()
    try:
        described = json.loads(content)["twofold.dynet"]
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{basename}.meta was not saved by twofold.dynet") from None
    for kind, *rest in described:
        if kind == "Parameter":
            yield params.load_param(basename + ".data", rest[0])
        elif kind == "LookupParameter":
            yield params.load_lookup_param(basename + ".data", rest[0])
        else:
            made = _read(kind).from_spec(_read(rest[0]), params)
            made.param_collection().populate(basename + ".data", rest[1])
            yield made
