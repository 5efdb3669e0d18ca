"""PyTorch's older constructors, and comparisons of whole tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from twofold import _core, dtypes
from twofold.dtypes import DType
from twofold.frontend.creation import check_device, tensor
from twofold.frontend.options import get_default_dtype
from twofold.frontend.storage import TypedStorage
from twofold.ops.base import FUNCTIONS
from twofold.ops.docstrings import shown

Tensor = _core.Tensor


def construct(*args: Any, device: Any = None, dtype: DType | None = None) -> Tensor:
    """What calling a tensor type makes: from data, or zeros from sizes, in ``dtype`` or the default dtype.

    A tensor made from a storage shares its memory. Raises TypeError for sizes that are no whole numbers, RuntimeError
    for a storage of another dtype.
    """
    check_device(device)
    dtype = dtype or get_default_dtype()
    if len(args) == 1 and not isinstance(args[0], (int, dtypes.Size)):
        if isinstance(args[0], (float, complex, str)):
            raise TypeError(
                f"Tensor: data is a {type(args[0]).__name__}. Give sizes or a sequence; tensor() takes one number."
            )
        given = args[0]
        if isinstance(given, TypedStorage):
            return given.elements(dtype)
        iterable = not isinstance(given, (list, tuple, numpy.ndarray, Tensor))
        return tensor(list(given) if iterable else given, dtype=dtype)
    sizes = args[0] if len(args) == 1 and isinstance(args[0], dtypes.Size) else args
    if not all(isinstance(size, (int, numpy.integer)) for size in sizes):
        raise TypeError(f"Tensor: sizes {tuple(sizes)!r:.80} are not all whole numbers.")
    return FUNCTIONS["zeros"](tuple(int(size) for size in sizes) if sizes else (0,), dtype=dtype)


class _TensorType(type):
    """Classes such as ``FloatTensor``: a call makes a tensor, and tensors of the dtype are instances."""

    dtype: DType

    def __call__(cls, *args: Any, device: Any = None) -> Tensor:
        """From data, a storage or sizes: ``FloatTensor([1, 2])``, ``FloatTensor(2, 3)``."""
        return construct(*args, device=device, dtype=cls.dtype)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype


def _constructor(name: str, dtype: DType) -> _TensorType:
    text = shown(
        f"A {dtype.name} tensor from data or from sizes; ``isinstance`` asks for the dtype.",
        f">>> x = torch.{name}([1, 0])",
        f">>> x.dtype, torch.{name}(2, 3).shape, isinstance(x, torch.{name})",
        f"({dtype!r}, twofold.Size([2, 3]), True)",
    )
    return _TensorType(name, (), {"dtype": dtype, "__doc__": text})


CONSTRUCTORS = {
    name: _constructor(name, dtype)
    for name, dtype in (
        ("FloatTensor", dtypes.float32),
        ("DoubleTensor", dtypes.float64),
        ("HalfTensor", dtypes.float16),
        ("LongTensor", dtypes.int64),
        ("IntTensor", dtypes.int32),
        ("ShortTensor", dtypes.int16),
        ("CharTensor", dtypes.int8),
        ("ByteTensor", dtypes.uint8),
        ("BoolTensor", dtypes.bool_),
        ("BFloat16Tensor", dtypes.bfloat16),
    )
}


class _StorageType(type):
    """Classes such as ``FloatStorage``: a call makes a storage, and storages of the dtype are instances."""

    dtype: DType

    def __call__(cls, *args: Any) -> TypedStorage:
        """Elements from a sequence, or as many as a number says: ``FloatStorage([1, 2])``, ``FloatStorage(2)``."""
        if len(args) > 1 or not isinstance(args[0] if args else 0, (int, Sequence, TypedStorage)):
            raise TypeError(f"{cls.__name__}: give a number of elements or a sequence of them")
        return construct(*args, dtype=cls.dtype).storage()

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, TypedStorage) and instance.dtype is cls.dtype

    def from_buffer(
        cls, buffer: Any, byte_order: str | None = None, count: int = -1, offset: int = 0
    ) -> TypedStorage:
        """Elements copied from bytes, of which ``byte_order`` says where the lowest of an element stands.

        Args:
            buffer: Bytes, or what shows its memory as bytes.
            byte_order: "little", "big" or "native"; may be left out for elements of one byte.
            count: How many elements; below 0 all.
            offset: Where the first byte stands.
        """
        orders: dict[str, Any] = {"little": "<", "big": ">", "native": "="}
        if byte_order not in orders and cls.dtype.itemsize > 1:
            raise ValueError(f"from_buffer: byte_order is {byte_order!r}. Give 'little', 'big' or 'native'.")
        stored = numpy.dtype(cls.dtype.numpy).newbyteorder(orders.get(byte_order or "native", "="))
        values = numpy.frombuffer(buffer, stored, count, offset)
        return tensor(values.astype(cls.dtype.numpy), dtype=cls.dtype).storage()


def _storage_type(name: str, dtype: DType) -> _StorageType:
    text = shown(
        f"Memory of {dtype.name} elements, from a number of them or a sequence; ``isinstance`` asks for the dtype.",
        f">>> x = torch.{name}([1, 0])",
        f">>> x.tolist() == [1, 0], x.dtype, isinstance(x, torch.{name})",
        f"(True, {dtype!r}, True)",
    )
    return _StorageType(name, (), {"dtype": dtype, "__doc__": text})


STORAGES = {
    name: _storage_type(name, made.dtype)
    for name, made in ((one.replace("Tensor", "Storage"), made) for one, made in CONSTRUCTORS.items())
}
STORAGES["Storage"] = STORAGES["FloatStorage"]


def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have one shape and equal elements; ``eq`` compares element by element.

    >>> import twofold as torch
    >>> x = torch.tensor([1, 2])
    >>> torch.equal(x, torch.tensor([1, 2])), torch.equal(x, torch.tensor([1]))
    (True, False)
    """
    return tuple(input.shape) == tuple(other.shape) and bool((input == other).all().item())


def allclose(
    input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    """Whether ``isclose`` holds everywhere.

    >>> import twofold as torch
    >>> torch.allclose(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.000001]))
    True
    """
    return bool(FUNCTIONS["isclose"](input.detach(), other.detach(), rtol, atol, equal_nan).all().item())


def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is a floating one.

    >>> import twofold as torch
    >>> torch.is_floating_point(torch.tensor([1.0])), torch.is_floating_point(torch.tensor([1]))
    (True, False)
    """
    return input.dtype.kind == "f"


def is_complex(input: Tensor) -> bool:
    """Whether the dtype is a complex one.

    >>> import twofold as torch
    >>> torch.is_complex(torch.tensor([1j])), torch.is_complex(torch.tensor([1.0]))
    (True, False)
    """
    return input.dtype.is_complex


def numel(input: Tensor) -> int:
    """Number of elements.

    >>> import twofold as torch
    >>> torch.numel(torch.zeros(2, 3))
    6
    """
    return input.type_.size


WHOLE: dict[str, Any] = {"equal": equal, "allclose": allclose}
"""Comparisons that are also methods."""
