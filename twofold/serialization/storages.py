"""Storages: the untyped memory behind the tensors of a checkpoint, and the names of their element types in files."""

from __future__ import annotations

import math
import sys
from pickle import UnpicklingError
from typing import Any

import numpy

from twofold import _core, dtypes
from twofold.dtypes import DType
from twofold.frontend.options import check_device

Tensor = _core.Tensor


def default_restore_location(storage: Any, location: str) -> Any:
    """The storage itself, for functions that programs give as ``map_location``; RuntimeError for another device."""
    check_device(location)
    return storage


class StorageKind:
    """The class of a storage as a file names it; only a name here. ``dtype`` is None for one of bytes."""

    __slots__ = ("dtype", "module", "name")

    def __init__(self, module: str, name: str, dtype: DType | None) -> None:
        self.module = module
        self.name = name
        self.dtype = dtype

    def __repr__(self) -> str:
        return f"{self.module}.{self.name}"


KINDS = {
    dtype: StorageKind("torch", f"{name}Storage", dtype)
    for name, dtype in (
        ("Double", dtypes.float64),
        ("Float", dtypes.float32),
        ("Half", dtypes.float16),
        ("BFloat16", dtypes.bfloat16),
        ("Long", dtypes.int64),
        ("Int", dtypes.int32),
        ("Short", dtypes.int16),
        ("Char", dtypes.int8),
        ("Byte", dtypes.uint8),
        ("Bool", dtypes.bool_),
        ("ComplexDouble", dtypes.complex128),
        ("ComplexFloat", dtypes.complex64),
    )
}
UNTYPED = StorageKind("torch.storage", "UntypedStorage", None)
"""Storages of bytes; the tensor says its dtype. PyTorch uses them for dtypes that it took up later."""


class Storage:
    """The memory of one storage of a file: ``data`` is its bytes, which the first tensor over it takes.

    A ``map_location`` function is given one and returns it.
    """

    def __init__(self, data: numpy.ndarray, dtype: DType | None, swapped: bool = False) -> None:
        self._data: numpy.ndarray | None = data
        self._swapped = swapped
        self.nbytes = len(data)
        self.dtype = dtype
        self._base: Tensor | None = None

    def __repr__(self) -> str:
        return f"<storage of {self.nbytes} bytes of a file>"

    def cpu(self) -> Storage:
        """The storage itself."""
        return self

    def tensor(
        self, dtype: DType, offset: Any, size: Any, stride: Any, name: str = "rebuild_tensor"
    ) -> Tensor:
        """The tensor with elements at ``offset + sum(index * stride)``, over this memory.

        Raises UnpicklingError unless sizes, strides and offset are numbers within the storage.
        """
        if self.dtype not in (None, dtype):
            raise UnpicklingError(f"{name}: a tensor of {dtype.name} over a storage of {self.dtype}")
        elements = self.nbytes // dtype.itemsize
        count = _checked_layout(elements, dtype, offset, size, stride, name)
        whole = offset == 0 and count == elements and _is_dense(size, stride)
        if self._base is None and whole:
            self._base = self._take(dtype, size)
            return self._base
        if not count:
            return _core.from_array(numpy.zeros(size, dtype.numpy), False, dtype.code)
        if self._base is None:
            self._base = self._take(dtype, (elements,))
        if self._base.dtype is not dtype:
            raise UnpicklingError(f"{name}: one storage with tensors of {self._base.dtype} and {dtype.name}")
        base = self._base.detach()
        if _is_dense(size, stride):
            flat = base.view(-1)
            return (flat if whole else flat[offset : offset + count]).view(size)
        return base.as_strided(size, stride, offset)

    def _take(self, dtype: DType, size: Any) -> Tensor:
        """The tensor that holds all of the memory, a copy of the bytes, which are then dropped."""
        assert self._data is not None
        count = self.nbytes // dtype.itemsize
        array = self._data[: count * dtype.itemsize].view(dtype.numpy)
        self._data = None
        if self._swapped:
            array = array.byteswap()
        if dtype.kind == "b":
            array = array.view(numpy.uint8) != 0
        return _core.from_array(array.reshape(size), False, dtype.code)


def _is_dense(size: Any, stride: Any) -> bool:
    step = 1
    for length, given in zip(reversed(size), reversed(stride), strict=True):
        if length != 1 and given != step:
            return False
        step *= length
    return True


def _checked_layout(elements: int, dtype: DType, offset: Any, size: Any, stride: Any, name: str) -> int:
    """The number of elements of a tensor in a storage of ``elements``; raises UnpicklingError unless it fits."""
    for numbers in (size, stride):
        if not isinstance(numbers, tuple) or not all(type(n) is int and n >= 0 for n in numbers):
            raise UnpicklingError(
                f"{name}: sizes and strides are tuples of numbers from 0, not {numbers!r:.100}"
            )
    if type(offset) is not int or offset < 0:
        raise UnpicklingError(f"{name}: an offset is a number from 0, not {offset!r:.100}")
    if len(size) != len(stride) or len(size) > 32:
        raise UnpicklingError(f"{name}: {len(size)} sizes and {len(stride)} strides")
    if math.prod(max(n, 1) for n in size) * dtype.itemsize > sys.maxsize:
        raise UnpicklingError(f"{name}: a tensor of shape {size} is too large for any memory")
    count = math.prod(size)
    last = offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    if count and last >= elements:
        raise UnpicklingError(
            f"{name}: element {last} of a storage of {elements} {dtype.name} elements; the file is damaged"
        )
    return count


def described(description: Any) -> tuple[DType | None, str, str, int]:
    """Dtype, key, device and bytes of a storage, from what a pickle says of it.

    Raises UnpicklingError for anything else.
    """
    fits = (
        type(description) is tuple
        and len(description) in (5, 6)
        and description[0] == "storage"
        and type(description[1]) is StorageKind
        and type(description[2]) is str
        and type(description[3]) is str
        and type(description[4]) is int
        and description[4] >= 0
        and description[5:] in ((), (None,))
    )
    if not fits:
        raise UnpicklingError(f"{description!r:.200} is no storage that is supported")
    _, kind, key, location, count = description[:5]
    return kind.dtype, key, location, count * (kind.dtype.itemsize if kind.dtype else 1)


def restored(storage: Storage, location: str, map_location: Any) -> Storage:
    """``storage``, saved from the device ``location``, on the CPU, as ``map_location`` says.

    Raises RuntimeError for a device that is not there.
    """
    if isinstance(map_location, dict):
        target = map_location.get(location, location)
    elif callable(map_location):
        found = map_location(storage, location)
        if found is None:
            target = location
        elif found is storage:
            return storage
        else:
            raise RuntimeError(
                f"load: map_location returned {type(found).__name__}. Return the storage it was given, or None."
            )
    else:
        target = location if map_location is None else map_location
    try:
        check_device(target)
    except RuntimeError:
        raise RuntimeError(
            f"load: the file holds tensors of device {location!r}, which go to {str(target)!r}, and that is not "
            "available. Pass map_location='cpu'."
        ) from None
    return storage
