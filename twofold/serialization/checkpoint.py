"""``save`` and ``load``: checkpoints in the format of PyTorch, read without running anything of the file."""

from __future__ import annotations

import io
import os
import pickle
from collections.abc import Callable
from typing import IO, Any, TypeAlias

from twofold.errors import ArgumentError
from twofold.files import atomic_write, remove_stale
from twofold.progress import Progress
from twofold.serialization import legacy
from twofold.serialization.archive import ALIGNMENT, ArchiveReader, ArchiveWriter
from twofold.serialization.machine import Machine
from twofold.serialization.pickling import SavedStorage, pickled, trusted
from twofold.serialization.safe import safe_by_name
from twofold.serialization.storages import Storage, described, restored

MAP_LOCATION: TypeAlias = Callable[[Any, str], Any] | dict[str, Any] | str | None
"""Where ``load`` puts tensors of other devices, as programs annotate it."""

FILE_LIKE: TypeAlias = str | os.PathLike[str] | IO[bytes]
"""What ``save`` writes to and ``load`` reads, as programs annotate it."""

DEFAULT_PROTOCOL = 2
_ZIP = b"PK\x03\x04"


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write ``obj`` to a path or a file, in the format of PyTorch's checkpoints, which it reads, too.

    A path gets its new content at once, or keeps the old one. Tensors that share memory share it again when
    they are loaded. Other objects are pickled, and load with ``weights_only=False`` alone.

    Args:
        obj: Containers, numbers and tensors, such as a ``state_dict``; or anything that pickles.
        f: A path, or a file opened for writing in binary mode.
        pickle_module: A module with a ``Pickler``: pickle, or one that extends it in Python.
        pickle_protocol: The protocol; PyTorch's own safe loader reads 2.

    Raises:
        ArgumentError: The format before PyTorch 1.6 is asked for, or a pickler that cannot be extended.

    >>> import twofold as torch
    >>> import io
    >>> file = io.BytesIO()
    >>> torch.save({"w": torch.ones(2)}, file)
    >>> _ = file.seek(0)
    >>> torch.load(file)
    {'w': tensor([1., 1.])}
    """
    if not _use_new_zipfile_serialization:
        raise ArgumentError(
            "save in the format before PyTorch 1.6", "Leave the argument out: all read the zip format."
        )
    body = io.BytesIO()
    storages = pickled(obj, body, pickle_module, pickle_protocol)
    if hasattr(f, "write"):
        _write(f, "archive", body, storages, not _disable_byteorder_record)
        return
    root = os.path.splitext(os.path.basename(os.fspath(f)))[0]
    with atomic_write(f) as file:
        _write(file, root or "archive", body, storages, not _disable_byteorder_record)


def _write(file: Any, root: str, body: io.BytesIO, storages: list[SavedStorage], byte_order: bool) -> None:
    archive = ArchiveWriter(file, root)
    archive.add("data.pkl", body.getbuffer())
    archive.add(".format_version", b"1")
    archive.add(".storage_alignment", str(ALIGNMENT).encode())
    if byte_order:
        archive.add("byteorder", b"little")
    for storage in storages:
        archive.add(f"data/{storage.key}", storage.array.reshape(-1).view("uint8"))
    archive.add("version", b"3\n")
    archive.close()


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Read a checkpoint of ``save`` or of PyTorch.

    By default nothing of the file is called: tensors, containers, numbers and what ``add_safe_globals`` declared
    are all that it may hold.

    Args:
        f: A path, or a file opened for reading in binary mode.
        map_location: Where tensors of other devices go: "cpu", a dictionary of devices, or a function of a storage
            and a device. Tensors of a device that is not there need it.
        pickle_module: What unpickles a trusted file; pickle by default.
        weights_only: Whether the file is not trusted; False runs whatever code it refers to. By default True,
            unless ``pickle_module`` is given.
        mmap: Whether storages may be mapped into memory, which needs a path; so far they are read at once, with the
            same values.
        **pickle_load_args: ``encoding`` of strings that Python 2 wrote; for a trusted file, any option of its
            unpickler.

    Raises:
        RuntimeError: The file is no checkpoint, is cut off or was changed, or its device is not there.
        UnpicklingError: The file holds something else than a state, or what no ``save`` writes.

    >>> import twofold as torch
    >>> import io
    >>> file = io.BytesIO()
    >>> torch.save({"weight": torch.tensor([1.0, 2.0])}, file)
    >>> torch.load(io.BytesIO(file.getvalue()))
    {'weight': tensor([1., 2.])}
    """
    if weights_only is None:
        weights_only = pickle_module is None
    if weights_only and pickle_module is not None:
        raise RuntimeError("load: weights_only reads without pickle. Leave pickle_module out.")
    if weights_only and set(pickle_load_args) - {"encoding"}:
        raise TypeError(
            f"load: options {sorted(pickle_load_args)} are for trusted files. Pass weights_only=False."
        )
    if mmap and hasattr(f, "read"):
        raise ValueError("load: mmap maps a file of the file system. Give its path.")
    loader = _Loader(map_location, None if weights_only else pickle_module or pickle, pickle_load_args)
    if hasattr(f, "read"):
        name = str(getattr(f, "name", "the file"))
        return loader.load(f if _starts_here(f) else io.BytesIO(f.read()), name)
    remove_stale(f)
    with open(f, "rb") as file:
        return loader.load(file, os.fspath(f))


def _starts_here(file: Any) -> bool:
    return bool(getattr(file, "seekable", lambda: False)()) and file.tell() == 0


class _Loader:
    """How one file is read: with the machine, or with the pickler of ``module`` where the file is trusted."""

    def __init__(self, map_location: Any, module: Any, options: dict[str, Any]) -> None:
        self._location = map_location
        self._module = module
        self._options = options

    def load(self, file: Any, name: str) -> Any:
        start = file.read(len(_ZIP))
        file.seek(0)
        if start != _ZIP:
            return legacy.load(file, name, self._location, self._options.get("encoding", "utf-8"))
        archive = ArchiveReader(file, name)
        if "data.pkl" not in archive:
            raise RuntimeError(
                f"load: {name} is no checkpoint: it has no record data.pkl. Give a file of save."
            )
        swapped = "byteorder" in archive and archive.read("byteorder") == b"big"
        storages: dict[str, Storage] = {}

        def storage(description: Any) -> Storage:
            dtype, key, location, nbytes = described(description)
            if key not in storages:
                if archive.size(f"data/{key}") < nbytes:
                    raise pickle.UnpicklingError(f"storage {key} has {nbytes} bytes, its record less")
                found = Storage(archive.array(f"data/{key}"), dtype, swapped)
                storages[key] = restored(found, location, self._location)
                shown.advance()
            if storages[key].dtype is not dtype:
                raise pickle.UnpicklingError(f"storage {key} is there with two dtypes")
            return storages[key]

        body = archive.read("data.pkl")
        with Progress("loading", archive.count("data/"), "tensor") as shown:
            if self._module is None:
                return Machine(body, storage, safe_by_name(), self._options.get("encoding", "utf-8")).run()
            return trusted(io.BytesIO(body), self._module, storage, self._options)
