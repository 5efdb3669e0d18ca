"""HDF5 files, in which Keras keeps models: groups of arrays and attributes, by the package ``h5py``."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from twofold.errors import ArgumentError
from twofold.files import atomic_write


@dataclass
class Group:
    """What a file or a group holds: attributes, and groups and arrays by name."""

    attributes: dict[str, Any] = field(default_factory=dict)
    members: dict[str, Any] = field(default_factory=dict)

    def at(self, path: str) -> Any:
        """The group or array at a path with slashes; raises KeyError where there is none."""
        found: Any = self
        for part in filter(None, path.split("/")):
            found = found.members[part]
        return found

    def put(self, path: str, value: Any) -> Any:
        """Enter a group or an array at a path; the groups above it are made."""
        *above, last = path.split("/")
        group = self
        for part in above:
            group = group.members.setdefault(part, Group())
        group.members[last] = value
        return value


def _h5py() -> Any:
    try:
        return import_module("h5py")
    except ImportError:
        what = "models are kept in HDF5 files by the package h5py, which is not installed"
        raise ImportError(f"{what}. Install it, or twofold[keras].") from None


def write(path: Any, group: Group) -> None:
    """Write a group as a file, wholly or not at all.

    Raises:
        ImportError: The package ``h5py`` is not installed.
    """
    made = io.BytesIO()
    with _h5py().File(made, "w") as file:
        _enter(file, group)
    with atomic_write(path) as target:
        target.write(made.getbuffer())


def _enter(target: Any, group: Group) -> None:
    target.attrs.update(group.attributes)
    for name, member in group.members.items():
        if isinstance(member, Group):
            _enter(target.create_group(name), member)
        else:
            target.create_dataset(name, data=member)


def read(path: Any) -> Group:
    """The group that a file holds.

    Raises:
        ArgumentError: It is no HDF5 file.
        FileNotFoundError: There is none.
        ImportError: The package ``h5py`` is not installed.
    """
    library = _h5py()
    with open(path, "rb") as source:
        if not library.is_hdf5(path):
            raise ArgumentError(f"{path} is no HDF5 file", "Give one that a model was saved to.")
        with library.File(source, "r") as file:
            return _group(file, library)


def _group(source: Any, library: Any) -> Group:
    members = {
        name: _group(member, library) if isinstance(member, library.Group) else member[()]
        for name, member in source.items()
    }
    return Group(dict(source.attrs), members)
