"""``save`` and ``load`` of parameters, builders and the user's own classes: ``name.data`` and ``name.meta``.

What describes builders is kept as JSON. Reading calls nothing but ``from_spec`` of classes that the program has
imported or defined itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from twofold.dynet import storage
from twofold.dynet.lookups import LookupParameters
from twofold.dynet.parameter_collection import ParameterCollection
from twofold.dynet.parameters import Parameters
from twofold.files import atomic_write
from twofold.plain_objects import described, read


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
    entries, named = [], []
    for thing in objects:
        if isinstance(thing, (Parameters, LookupParameters)):
            entries.append([thing.kind, thing.name()])
            named.append((thing.name(), thing))
        else:
            collection = thing.param_collection()
            cls = type(thing)
            entries.append([described(cls), described(thing.spec), collection.name()])
            named += collection._named("")
    storage.write(basename + ".data", named, False)
    with atomic_write(basename + ".meta") as file:
        file.write(json.dumps({"twofold.dynet": entries}).encode())


def load(basename: str, params: ParameterCollection) -> list[Any]:
    """The objects that ``save`` wrote, in the same order; their parameters are added to ``params``."""
    return list(load_generator(basename, params))


def load_generator(basename: str, params: ParameterCollection) -> Iterator[Any]:
    """The objects that ``save`` wrote, one after the other."""
    with open(basename + ".meta", "rb") as file:
        content = file.read()
    try:
        entries = json.loads(content)["twofold.dynet"]
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{basename}.meta was not saved by twofold.dynet") from None
    for kind, *rest in entries:
        if kind == "Parameter":
            yield params.load_param(basename + ".data", rest[0])
        elif kind == "LookupParameter":
            yield params.load_lookup_param(basename + ".data", rest[0])
        else:
            made = read(kind).from_spec(read(rest[0]), params)
            made.param_collection().populate(basename + ".data", rest[1])
            yield made
