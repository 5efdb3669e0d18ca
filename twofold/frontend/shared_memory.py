"""Tensors in memory that processes share; loaded by the first ``share_memory_``."""

from __future__ import annotations

import mmap
import weakref
from typing import Any

import numpy

from twofold import _core
from twofold.dtypes import bfloat16
from twofold.errors import ArgumentError
from twofold.frontend.creation import from_numpy

Tensor = _core.Tensor

_blocks: weakref.WeakSet[Any] = weakref.WeakSet()


def share(tensor: Tensor) -> None:
    """Move the values of a tensor to an anonymous mapping that processes forked from here on have too."""
    if tensor._base is not None:
        raise ArgumentError("share_memory_: the tensor is a view", "Share the tensor that it is a view of.")
    if tensor.dtype is bfloat16:
        raise ArgumentError(
            "share_memory_: arrays of bfloat16 do not exist", "Share it in float16 or float32."
        )
    if not is_shared(tensor):
        values: Any = tensor.detach().numpy()
        block: Any = mmap.mmap(-1, max(values.nbytes, 1))
        shared = numpy.frombuffer(block, values.dtype, values.size).reshape(values.shape)
        shared[...] = values
        tensor.data = from_numpy(shared)
        _blocks.add(block)


def is_shared(tensor: Tensor) -> bool:
    """Whether the values of a tensor lie in such a mapping."""
    if not _blocks:
        return False
    address: int = tensor.detach().data_ptr()
    return any(start <= address < start + size for start, size in map(_extent, list(_blocks)))


def _extent(block: Any) -> tuple[int, int]:
    array = numpy.frombuffer(block, numpy.uint8)
    return int(array.ctypes.data), array.nbytes
