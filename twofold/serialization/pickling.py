"""Python's pickler and unpickler with PyTorch's names for tensors, so that either library reads the other's files."""

from __future__ import annotations

import pickle
import types
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy

from twofold import _core
from twofold.dtypes import DType, Size
from twofold.errors import ArgumentError
from twofold.frontend.device import Device
from twofold.nn.parameter import Buffer, Parameter
from twofold.ops.shape.storage import storage_of
from twofold.serialization import constructors
from twofold.serialization.constructors import CONSTANTS, CONSTRUCTORS, MODULES
from twofold.serialization.safe import name_of
from twofold.serialization.storages import KINDS, UNTYPED, StorageKind

Tensor = _core.Tensor
_Operation = type(_core.operation_callable(None, -1, len))

_NAMES: dict[Any, tuple[str, str]] = {
    **{build: name for name, build in CONSTRUCTORS.items() if name[0].startswith("torch")},
    Tensor: ("torch", "Tensor"),
    Parameter: ("torch.nn.parameter", "Parameter"),
    Buffer: ("torch", "Tensor"),
}


class SavedStorage:
    """One storage that tensors refer to while they are written."""

    def __init__(self, key: str, kind: StorageKind, dtype: DType, array: numpy.ndarray) -> None:
        self.key = key
        self.kind = kind
        self.dtype = dtype
        self.array = array
        self.numel = array.nbytes // (kind.dtype.itemsize if kind.dtype else 1)


class _Names:
    """What a pickler writes for tensors, storages and the small types around them."""

    storages: dict[Any, SavedStorage]
    roots: list[Tensor]  # kept while their addresses are keys

    def persistent_id(self, obj: Any) -> Any:
        """The description of a storage; None for anything else."""
        if type(obj) is SavedStorage:
            return ("storage", obj.kind, obj.key, "cpu", obj.numel)
        return None

    def reducer_override(self, obj: Any) -> Any:
        """How one of our own types is written."""
        if isinstance(obj, Tensor):
            return self._reduced(obj)
        if type(obj) is Size:
            return constructors.as_size, (tuple(obj),)
        if type(obj) is Device:
            return constructors.as_device, (str(obj),)
        if isinstance(obj, (DType, StorageKind)):
            return obj.name
        if type(obj) is _Operation:
            return name_of(obj)[1]
        return NotImplemented

    def save_function(self, obj: Any) -> None:
        """Write the name of a function."""
        self.save_global(obj)

    def save_global(self, obj: Any, name: str | None = None) -> None:
        """Write a name: PyTorch's for what it has, too."""
        if isinstance(obj, DType):
            found: tuple[str, str] | None = ("torch", obj.name)
        elif isinstance(obj, StorageKind):
            found = (obj.module, obj.name)
        elif type(obj) is _Operation:
            found = name_of(obj)
        else:
            found = _NAMES.get(obj) if isinstance(obj, type) or callable(obj) else None
        if found is None:
            super().save_global(obj, name)  # type: ignore[misc]
            return
        self.write(pickle.GLOBAL + f"{found[0]}\n{found[1]}\n".encode())  # type: ignore[attr-defined]
        self.memoize(obj)  # type: ignore[attr-defined]

    def _reduced(self, tensor: Tensor) -> Any:
        kind, attributes = type(tensor), getattr(tensor, "__dict__", None)
        own = kind not in (Tensor, Parameter, Buffer)
        if kind is Parameter:
            plain = tensor.detach()
            build: Any = constructors.rebuild_parameter
            args: tuple[Any, ...] = (plain, tensor.requires_grad, OrderedDict())
            if attributes and not own:
                return constructors.rebuild_parameter_with_state, (*args, attributes)
        else:
            build, args = self._over_storage(tensor)
        if own or (attributes and kind is Tensor):
            return constructors.rebuild_from_type, (build, kind, args, attributes or {})
        return build, args

    def _over_storage(self, tensor: Tensor) -> Any:
        root, *layout = storage_of(tensor)
        array, dtype = root.detach()._numpy().reshape(-1), tensor.dtype
        key = array.__array_interface__["data"][0] if array.nbytes else id(root)
        storage = self.storages.get(key)
        if storage is None:
            self.roots.append(root)
            storage = SavedStorage(str(len(self.storages)), KINDS.get(dtype, UNTYPED), dtype, array)
            self.storages[key] = storage
        if storage.dtype is not dtype:
            raise RuntimeError(
                f"save: tensors of {storage.dtype.name} and of {dtype.name} share their memory. Save a clone of one."
            )
        args: tuple[Any, ...] = (storage, *layout, tensor.requires_grad, OrderedDict())
        if storage.kind is UNTYPED:
            return constructors.rebuild_untyped, (*args, dtype)
        return constructors.rebuild_tensor, args


def pickled(obj: Any, file: Any, module: Any, protocol: int) -> list[SavedStorage]:
    """Write the pickle of ``obj`` to ``file``; returns the storages that it refers to.

    Raises ArgumentError for a module whose pickler cannot be extended.
    """
    base = getattr(module, "_Pickler", None) or module.Pickler
    if not issubclass(base, pickle._Pickler):
        raise ArgumentError(
            f"pickle_module {module.__name__}, whose Pickler does not extend Python's own in Python",
            "Use pickle, or dill.",
        )
    # the pickler looks functions up in this table rather than calling its own method
    dispatch = {**base.dispatch, types.FunctionType: _Names.save_function}
    kind = type("Pickler", (_Names, base), {"dispatch": dispatch})
    pickler = kind(file, protocol)
    pickler.storages, pickler.roots = {}, []
    pickler.dump(obj)
    return list(pickler.storages.values())


def trusted(file: Any, module: Any, storage: Callable[[Any], Any], options: dict[str, Any]) -> Any:
    """The object in a pickle that is trusted: names are imported and called, as pickle does."""

    class Unpickler(module.Unpickler):
        def persistent_load(self, description: Any) -> Any:
            return storage(description)

        def find_class(self, source: str, name: str) -> Any:
            key = (MODULES.get(source, source), name)
            if key in CONSTANTS:
                return CONSTANTS[key]
            if key in CONSTRUCTORS and key[0].startswith("torch"):
                return {"Tensor": Tensor, "Parameter": Parameter}.get(name, CONSTRUCTORS[key])
            if source == "torch" or source.startswith("torch."):  # modules that PyTorch wrote whole
                source = "twofold" + source.removeprefix("torch")
            return super().find_class(source, name)

    return Unpickler(file, **options).load()
