"""Files of parameters: the safetensors format with the names and kinds in order, and DyNet's text format.

Reading runs nothing that a file names.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy

from twofold import safetensors
from twofold.files import atomic_write
from twofold.frontend.creation import from_numpy

_ORDER = "twofold.dynet"
_HEAD = re.compile(r"#(Parameter|LookupParameter)#\s+(\S+)\s+\{([\d,]*)(?:X\d+)?\}\s+(\d+)(?:\s+(\S+))?\s*$")


class Entry(NamedTuple):
    """A parameter of a file."""

    name: str
    kind: str
    array: numpy.ndarray[Any, Any]


def write(fname: str, named: Iterable[tuple[str, Any]], append: bool) -> None:
    """Write parameters under their names; ``append`` keeps those that the file holds."""
    entries = list(read(fname)) if append and os.path.exists(fname) else []
    entries += [Entry(name, p.kind, p.as_array()) for name, p in named]
    order = [[entry.name, entry.kind] for entry in entries]
    tensors = {str(position): from_numpy(entry.array) for position, entry in enumerate(entries)}
    safetensors.save_file(tensors, fname, {_ORDER: json.dumps(order)})


def write_text(fname: str, named: Iterable[tuple[str, Any]], append: bool) -> None:
    """Write parameters in DyNet's text format."""
    kept = b""
    if append and os.path.exists(fname):
        with open(fname, "rb") as file:
            kept = file.read()
    with atomic_write(fname) as file:
        file.write(kept)
        for name, p in sorted(named, key=lambda pair: pair[1].kind != "Parameter"):
            values = "".join(f"{value:+.8e} " for value in p._stored().detach().numpy().reshape(-1)) + "\n"
            dims = ",".join(str(size) for size in reversed(p._stored().shape))
            head = f"#{p.kind}# {name} {{{dims}}} {len(values)} ZERO_GRAD\n"
            file.write((head + values).encode())


def read(fname: str) -> list[Entry]:
    """The parameters of a file, of either format, in their order."""
    with open(fname, "rb") as file:
        start = file.read(1)
    if not start:
        return []
    if start == b"#":
        with open(fname, encoding="utf-8") as text:
            return _read_text(fname, text)
    try:
        opened = safetensors.safe_open(fname, framework="pt")
    except safetensors.SafetensorError:
        raise ValueError(f"{fname} is in neither format, of twofold.dynet or of DyNet's text") from None
    with opened:
        order = json.loads((opened.metadata() or {}).get(_ORDER, "null"))
        if order is None:
            raise ValueError(f"{fname} was not saved by twofold.dynet")
        return [
            Entry(name, kind, opened.get_tensor(str(position)).numpy())
            for position, (name, kind) in enumerate(order)
        ]


def _read_text(fname: str, text: Any) -> list[Entry]:
    entries = []
    for line in text:
        if not line.strip():
            continue
        head = _HEAD.match(line)
        if head is None:
            raise ValueError(f"{fname}: {line.strip()[:60]!r} is not the head of a parameter")
        kind, name, dims, _, gradient = head.groups()
        shape = [int(size) for size in dims.split(",") if size][::-1]
        values = numpy.array(text.readline().split(), numpy.float32)
        if gradient == "FULL_GRAD":
            text.readline()
        if values.size != numpy.prod(shape):
            raise ValueError(f"{fname}: {values.size} numbers for {name} of {{{dims}}}")
        array = values.reshape(shape)
        axes = (
            [0, *range(array.ndim - 1, 0, -1)] if kind == "LookupParameter" else range(array.ndim - 1, -1, -1)
        )
        entries.append(Entry(name, kind, numpy.array(array.transpose(*axes), order="C")))
    return entries


def one(fname: str, key: str, kind: str) -> numpy.ndarray[Any, Any]:
    """The array of the entry ``key``, or of the first one."""
    for entry in read(fname):
        if entry.kind == kind and (not key or entry.name == key):
            return entry.array
    raise ValueError(f"{fname} holds no {kind} {key}".rstrip())


def populate_one(p: Any, fname: str, key: str) -> None:
    """Assign a parameter."""
    p._assign_array(one(fname, key, p.kind))


def populate_all(owned: Sequence[Any], fname: str, key: str) -> None:
    """Assign parameters in the order of the file, from entries whose names begin with ``key``."""
    entries = [entry for entry in read(fname) if entry.name.startswith(key)]
    for kind in ("Parameter", "LookupParameter"):
        wanted = [p for p in owned if p.kind == kind]
        found = [entry for entry in entries if entry.kind == kind]
        if len(wanted) != len(found):
            raise ValueError(
                f"{fname} holds {len(found)} {kind}s under {key or '/'}, the collection {len(wanted)}"
            )
        for p, entry in zip(wanted, found):
            if p.shape() != entry.array.shape:
                raise ValueError(
                    f"{fname}: {entry.name} has shape {entry.array.shape}, {p} has {p.shape()}. Make the parameter as "
                    "it was saved, or load another file."
                )
    for kind in ("Parameter", "LookupParameter"):
        matched = zip((p for p in owned if p.kind == kind), (e for e in entries if e.kind == kind))
        for p, entry in matched:
            p._assign_array(entry.array)
