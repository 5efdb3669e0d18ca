"""Tensors in memory that processes share; loaded by the first ``share_memory_``."""

from __future__ import annotations

import mmap
import os
import weakref
from multiprocessing.reduction import DupFd, ForkingPickler
from typing import Any

import numpy

from twofold import _core
from twofold.dtypes import bfloat16
from twofold.errors import ArgumentError
from twofold.frontend.creation import from_numpy

Tensor = _core.Tensor


class Block(mmap.mmap):
    """A mapping of a file in memory, which other processes map, too."""

    descriptor: int

    @classmethod
    def of(cls, descriptor: int, size: int) -> Block:
        """The mapping of an open file, which it closes at its end."""
        block = cls(descriptor, size)
        block.descriptor = descriptor
        weakref.finalize(block, os.close, descriptor)
        _blocks.add(block)
        return block

    @classmethod
    def new(cls, size: int) -> Block:
        """The mapping of a new file of ``size`` bytes, or of one byte."""
        descriptor = os.memfd_create("twofold")
        os.truncate(descriptor, max(size, 1))
        return cls.of(descriptor, max(size, 1))

    def extent(self) -> tuple[int, int]:
        """The address and the number of bytes."""
        array = numpy.frombuffer(self, numpy.uint8)
        return int(array.ctypes.data), array.nbytes


_blocks: weakref.WeakSet[Block] = weakref.WeakSet()


def share(tensor: Tensor) -> None:
    """Move the values of a tensor to a mapping that processes have, too, which are forked or given it from here on."""
    if tensor._base is not None:
        raise ArgumentError("share_memory_: the tensor is a view", "Share the tensor that it is a view of.")
    if tensor.dtype is bfloat16:
        raise ArgumentError(
            "share_memory_: arrays of bfloat16 do not exist", "Share it in float16 or float32."
        )
    if not is_shared(tensor):
        values: Any = tensor.detach().numpy()
        shared = numpy.frombuffer(Block.new(values.nbytes), values.dtype, values.size).reshape(values.shape)
        shared[...] = values
        tensor.data = from_numpy(shared)
    for kind in (Tensor, type(tensor)):
        ForkingPickler.register(kind, _sent)


def is_shared(tensor: Tensor) -> bool:
    """Whether the values of a tensor lie in such a mapping."""
    return _block_of(tensor) is not None


def _block_of(tensor: Tensor) -> tuple[Block, int] | None:
    """The mapping that the values of a tensor lie in, and the offset of the first of them."""
    address: int = tensor.detach().data_ptr() if _blocks else 0
    for block in list(_blocks):
        start, size = block.extent()
        if start <= address < start + size:
            return block, address - start
    return None


def _sent(tensor: Tensor) -> Any:
    """How a tensor is sent to another process: a shared one without its values."""
    found = _block_of(tensor)
    if found is None:
        return tensor.__reduce_ex__(2)
    block, offset = found
    array = tensor.detach().numpy()
    layout = (array.shape, array.dtype, offset, array.strides)
    state = (type(tensor), block, layout, tensor.requires_grad and tensor.is_leaf)
    return (_received, state, dict(tensor.__dict__)) if tensor.__dict__ else (_received, state)


def _received(kind: type[Tensor], block: Block, layout: Any, requires_grad: bool) -> Tensor:
    shape, dtype, offset, strides = layout
    made = kind(from_numpy(numpy.ndarray(shape, dtype, block, offset, strides)))
    made.requires_grad = requires_grad
    return made


def _block_received(sent: Any, size: int) -> Block:
    return Block.of(sent.detach(), size)


ForkingPickler.register(Block, lambda block: (_block_received, (DupFd(block.descriptor), len(block))))
