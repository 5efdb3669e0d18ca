"""Creation functions beside the operations: scalars, ranges, and memory layouts by name only.

Every tensor is dense and row-major, so a stride or an order of axes in memory is checked and changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy

from twofold import _core
from twofold.dtypes import as_dtype
from twofold.errors import ArgumentError
from twofold.frontend.creation import CREATION, as_tensor, from_dlpack, tensor
from twofold.frontend.legacy import WHOLE
from twofold.frontend.options import OPTIONS, check_options
from twofold.frontend.options import get_default_dtype as default_dtype
from twofold.ops.promotion import need_fitting_tensor
from twofold.ops.signatures import method_like, shows

Tensor = _core.Tensor


def scalar_tensor(
    s: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor without axes that holds ``s``, of the default dtype unless given.

    >>> import twofold as torch
    >>> torch.scalar_tensor(2)
    tensor(2.)
    """
    check_options(device, layout, pin_memory)
    need_fitting_tensor(s, as_dtype(dtype or default_dtype()))
    return tensor(s, dtype=dtype or default_dtype(), requires_grad=requires_grad)


def range_(start: Any = 0, end: Any = None, step: Any = 1, *, dtype: Any = None, **options: Any) -> Tensor:
    """``start``, ``start + step``, ... up to and including ``end``, of the default dtype unless given.

    >>> import twofold as torch
    >>> torch.range(1, 3)
    tensor([1., 2., 3.])
    """
    start, end = (0, start) if end is None else (start, end)
    if step == 0:
        raise ArgumentError("step is 0", "Use a positive or negative step.")
    count = math.floor((end - start) / step) + 1
    whole = all(isinstance(value, int) for value in (start, step))
    # half a step behind the last, where rounding cannot add one
    behind = start + count * step if whole else start + (count - 0.5) * step
    return CREATION["arange"](start, behind, step, dtype=dtype or default_dtype(), **options)


def empty_strided(size: Sequence[int], stride: Sequence[int], **options: Any) -> Tensor:
    """Zeros of ``size``; raises ArgumentError unless there is one stride per size.

    >>> import twofold as torch
    >>> torch.empty_strided((2, 3), (1, 2)).shape
    twofold.Size([2, 3])
    """
    if len(size) != len(stride):
        raise ArgumentError(f"{len(size)} sizes and {len(stride)} strides", "Give one stride per size.")
    return CREATION["empty"](tuple(size), **options)


def empty_permuted(size: Sequence[int], physical_layout: Sequence[int], **options: Any) -> Tensor:
    """Zeros of ``size``; raises ArgumentError unless ``physical_layout`` names every axis once.

    >>> import twofold as torch
    >>> torch.empty_permuted((2, 3), (1, 0)).shape
    twofold.Size([2, 3])
    """
    if sorted(physical_layout) != list(range(len(size))):
        raise ArgumentError(f"physical_layout {tuple(physical_layout)}", "Name every axis once.")
    return CREATION["empty"](tuple(size), **options)


def asarray(
    obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None, requires_grad: bool = False
) -> Tensor:
    """Anything that holds numbers as a tensor, which shares memory where that is possible unless ``copy``.

    Raises ValueError where ``copy=False`` and a copy is needed.

    >>> import twofold as torch
    >>> torch.asarray([1.0, 2.0], dtype=torch.float64)
    tensor([1., 2.], dtype=twofold.float64)
    """
    wanted = None if dtype is None else as_dtype(dtype)
    shares = isinstance(obj, (Tensor, numpy.ndarray)) or hasattr(obj, "__dlpack__")
    if copy is False and (not shares or (wanted is not None and as_dtype(obj.dtype) is not wanted)):
        raise ArgumentError("copy=False where the data must be converted", "Leave copy out.")
    if isinstance(obj, Tensor):
        obj = obj.detach() if obj.requires_grad and not requires_grad else obj
    elif not isinstance(obj, numpy.ndarray) and shares:
        obj = from_dlpack(obj)
    made = tensor(obj, dtype=wanted, device=device) if copy else as_tensor(obj, wanted, device)
    return made.requires_grad_() if requires_grad and not made.requires_grad else made


def frombuffer(
    buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """``count`` elements (-1: all) of a buffer from byte ``offset`` on, as they are now: they are copied.

    >>> import twofold as torch
    >>> torch.frombuffer(bytearray([1, 0, 2, 0]), dtype=torch.int16)
    tensor([1, 2], dtype=twofold.int16)
    """
    wanted = as_dtype(dtype)
    array = numpy.frombuffer(buffer, wanted.numpy, count, offset)
    made = _core.from_array(array, False, wanted.code)
    return made.requires_grad_() if requires_grad else made


def new_empty_strided(
    self: Tensor, size: Sequence[int], stride: Sequence[int], *, dtype: Any = None, **options: Any
) -> Tensor:
    """``empty_strided`` in this tensor's dtype unless another is given."""
    return empty_strided(size, stride, dtype=dtype or self.dtype, **options)


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """This tensor in the dtype of ``other``."""
    return self.to(other.dtype)


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether both have one shape.

    >>> import twofold as torch
    >>> torch.is_same_size(torch.zeros(2, 3), torch.ones(2, 3))
    True
    """
    return tuple(input.shape) == tuple(other.shape)


def is_nonzero(input: Tensor) -> bool:
    """Whether the one element is not zero; raises RuntimeError for another number of elements.

    >>> import twofold as torch
    >>> torch.is_nonzero(torch.tensor([0.5])), torch.is_nonzero(torch.tensor(0))
    (True, False)
    """
    return bool(input.item())


METHODS: dict[str, Any] = {
    "new_empty_strided": new_empty_strided,
    "type_as": type_as,
    "is_signed": lambda self: self.dtype.kind in "ifc",
    "get_device": lambda self: -1,
    "nbytes": property(lambda self: self.type_.nbytes),
}

for _made in (empty_strided, empty_permuted, range_):
    shows(_made, _made, *OPTIONS, without=("options",))
method_like(new_empty_strided, empty_strided)

_MAKERS: tuple[Any, ...] = (scalar_tensor, empty_strided, empty_permuted, asarray, frombuffer)
CREATION.update({"range": range_, **{made.__name__: made for made in _MAKERS}})
WHOLE.update({"is_nonzero": is_nonzero, "is_same_size": is_same_size})
