"""Checkpoints from before PyTorch 1.6: pickles one after the other, then the storages."""

from __future__ import annotations

from pickle import UnpicklingError
from typing import Any

import numpy

from twofold import _core
from twofold.dtypes import DType
from twofold.serialization.machine import Machine
from twofold.serialization.safe import safe_by_name
from twofold.serialization.storages import Storage, described, restored

_MAGIC = 0x1950A86A20F9469CFC6C
_VERSION = 1001


class _Placeholder(Storage):
    """A storage while its bytes are still to be found: every tensor over it is empty."""

    def tensor(
        self, dtype: DType, offset: Any, size: Any, stride: Any, name: str = "rebuild_tensor"
    ) -> _core.Tensor:
        """An empty tensor."""
        return _core.from_array(numpy.zeros(0, dtype.numpy), False, dtype.code)


def load(file: Any, name: str, location: Any, encoding: str) -> Any:
    """The state in an old checkpoint; raises RuntimeError for a file that is none.

    The bytes stand behind the pickle that says how long they are, so the pickle is read twice.
    """
    content = file.read()
    try:
        magic = Machine(content, _no_storage, {}, encoding)
        found = magic.run()
    except UnpicklingError:
        found = None
    if found != _MAGIC:
        raise RuntimeError(
            f"load: {name} is no checkpoint: it is neither a zip file of save nor a file of PyTorch before 1.6."
        )
    position = magic.position
    for expected in (_VERSION, None):
        machine = Machine(content, _no_storage, {}, encoding, position)
        found = machine.run()
        if expected is not None and found != expected:
            raise RuntimeError(f"load: {name} has version {found!r:.40}, which is not known.")
        position = machine.position
    if not isinstance(found, dict) or found.get("little_endian") is not True:
        raise RuntimeError(f"load: {name} was written on a big-endian machine, which is not supported.")

    sizes: dict[str, tuple[DType | None, str, int]] = {}

    def noted(description: Any) -> Storage:
        dtype, key, device, nbytes = described(description)
        if nbytes > len(content) or sizes.setdefault(key, (dtype, device, nbytes)) != (dtype, device, nbytes):
            raise UnpicklingError(f"storage {key} of {nbytes} bytes is not in the file")
        return _Placeholder(numpy.zeros(0, numpy.uint8), dtype)

    safe = safe_by_name()
    machine = Machine(content, noted, safe, encoding, position)
    machine.run()
    storages = _read_storages(content, name, machine.position, sizes, location, encoding)
    return Machine(
        content, lambda description: storages[described(description)[1]], safe, encoding, position
    ).run()


def _read_storages(
    content: bytes, name: str, position: int, sizes: dict[str, Any], location: Any, encoding: str
) -> dict[str, Storage]:
    machine = Machine(content, _no_storage, {}, encoding, position)
    keys = machine.run()
    if type(keys) is not list or sorted(map(str, keys)) != sorted(sizes):
        raise RuntimeError(f"load: {name} is corrupt: its list of storages does not fit its tensors.")
    position, storages = machine.position, {}
    for key in keys:
        dtype, device, nbytes = sizes[key]
        count = int.from_bytes(content[position : position + 8], "little")
        position += 8
        if count * (dtype.itemsize if dtype else 1) != nbytes or position + nbytes > len(content):
            raise RuntimeError(f"load: {name} is truncated or corrupt: storage {key} is not whole.")
        data = numpy.frombuffer(content, numpy.uint8, nbytes, position).copy()
        storages[key] = restored(Storage(data, dtype), device, location)
        position += nbytes
    return storages


def _no_storage(description: Any) -> Storage:
    raise UnpicklingError("a storage where none is expected")
