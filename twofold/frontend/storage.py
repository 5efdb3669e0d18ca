"""What tensors say of the storage that they share, and memory shared with NumPy arrays of any strides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy

from twofold import _core
from twofold.dtypes import uint8
from twofold.errors import ArgumentError
from twofold.ir.layout import Layout, dense_order, is_dense
from twofold.ir.op import Op
from twofold.ir.types import Shape, TensorType
from twofold.ops.base import FUNCTIONS, apply
from twofold.ops.shape.contiguity import ORDERS, format_name
from twofold.ops.shape.storage import layout_of, root_of, storage_of

Tensor = _core.Tensor


_FAR = 1 << 40
"""A start behind the end of every axis."""


def view_layout(op: Op, attrs: Any, type: TensorType, stride: Shape, count: int) -> Any:
    """The strides of a view of a tensor of ``type`` and ``stride``, and where it begins.

    Args:
        op: The operation that shows the view.
        attrs: Its attributes.
        type: The type of the tensor.
        stride: The strides of the tensor.
        count: How many inputs the operation has beside the tensor: integers on which the strides do not depend.

    Returns:
        None where strides cannot express the view. Its strides and a tuple: how many elements it begins behind the
        tensor, and for each further input how many for each step of it, and its highest value. The tuple is None
        for elements of another size, and for a rule that does not depend on where the tensor begins.
    """

    def found_at(offset: int, *starts: int) -> Layout | None:
        inputs = (*starts, *(0,) * (count - len(starts)))
        return op.layout(attrs, Layout(type.dtype, type.shape, stride, offset), inputs)

    found, moved = found_at(0), found_at(_FAR)
    if found is None:
        return None
    same_size = found.dtype.itemsize == type.dtype.itemsize
    if not same_size or moved is None or moved.offset - found.offset != _FAR:
        return found.stride, None
    begin = [found.offset]
    for number in range(count):
        next_one, last = (found_at(0, *(0,) * number, start) for start in (1, _FAR))
        assert next_one is not None and last is not None
        step = next_one.offset - found.offset
        begin += [step, (last.offset - found.offset) // step if step else 0]
    return found.stride, tuple(begin)


def view_array(tensor: Tensor) -> numpy.ndarray:
    """The NumPy array that shows the same memory as a view."""
    root, layout = root_of(tensor).detach(), layout_of(tensor)
    memory = root._numpy().reshape(-1).view(numpy.uint8)
    itemsize = layout.dtype.itemsize
    if 0 in layout.size:
        return numpy.ndarray(layout.size, layout.dtype.numpy, memory, 0)
    stride = tuple(step * itemsize for step in layout.stride)
    return numpy.ndarray(layout.size, layout.dtype.numpy, memory, layout.offset * itemsize, stride)


def write_storage(tensor: Tensor, value: Tensor) -> Tensor:
    """What the root of a view is once ``value`` is written to the view, of which no two elements are one."""
    root, layout = root_of(tensor), layout_of(tensor)
    if tensor.dtype is not root.dtype or any(step < 0 for step in layout.stride):
        raise ArgumentError(
            "writing to a part of an expanded tensor", "Write to the tensor before it is expanded."
        )
    root = root if tensor.requires_grad or not root.requires_grad else root.detach()
    return apply("write_view", root, value, attrs=("as_strided", (layout.size, layout.stride, layout.offset)))


def shared_tensor(array: numpy.ndarray) -> Tensor:
    """A tensor that shares the memory of an array of any strides that are not negative.

    Raises ValueError for negative strides, and where memory is not aligned to elements.
    """
    itemsize = array.itemsize
    if any(step < 0 for step in array.strides) and array.size:
        raise ArgumentError(
            f"an array of strides {array.strides}: at least one stride is negative, which tensors cannot share",
            "Give a copy: array.copy().",
        )
    if any(step % itemsize for step in array.strides) or not array.flags.aligned:
        raise ArgumentError(
            f"an array of strides {array.strides} whose elements of {itemsize} bytes are not aligned",
            "Give a copy: array.copy().",
        )
    if array.flags.c_contiguous:
        return _core.from_array(array, True)
    stride = tuple(step // itemsize for step in array.strides)
    order = dense_order(array.shape, stride)
    if is_dense(array.shape, stride, order):
        inverse = tuple(order.index(axis) for axis in range(len(order)))
        return _core.from_array(array.transpose(order), True).permute(inverse)
    return _core.from_array_span(array).as_strided(array.shape, stride)


def stride(self: Tensor, dim: int | None = None) -> Any:
    """Elements of the storage between neighbours along each axis.

    Those of views are PyTorch's. The result of an operation is always dense in row-major order, where PyTorch keeps
    the order of the operand's axes: ``(x.t() + 1).stride()`` and ``x.t().clone().stride()`` are those of a new tensor.

    >>> import twofold as torch
    >>> x = torch.zeros(2, 3, 5)
    >>> x.stride(), x.transpose(0, 2).stride(), x.stride(-1)
    ((15, 5, 1), (1, 5, 15), 1)
    """
    found = self._strides
    if dim is None:
        return found
    if not -len(found) <= dim < max(len(found), 1):
        raise IndexError(f"stride: axis {dim} of a tensor with {len(found)} axes. Use one of its axes.")
    return found[dim]


def storage_offset(self: Tensor) -> int:
    """Elements of the storage in front of the first element.

    >>> import twofold as torch
    >>> torch.zeros(2, 3)[1].storage_offset()
    3
    """
    return 0 if self._view is None else layout_of(self).offset


def is_contiguous(self: Tensor, memory_format: Any = None) -> bool:
    """Whether the elements lie side by side in row-major order, or in the order of ``memory_format``.

    >>> import twofold as torch
    >>> x = torch.zeros(2, 3)
    >>> x.is_contiguous(), x.t().is_contiguous(), x[1].is_contiguous()
    (True, False, True)
    """
    name = format_name(memory_format)
    if name == "contiguous_format":
        return self._is_row_major
    if name == "preserve_format":
        raise ArgumentError(
            "is_contiguous: preserve_format is no order of the axes", "Use contiguous_format."
        )
    order, size = ORDERS[name], tuple(self.shape)
    return len(order) == len(size) and is_dense(size, self._strides, order)


def data_ptr(self: Tensor) -> int:
    """The address of the first element, 0 if there is none.

    It is the same for all views that start there, and holds until one of these is changed in place: an in-place
    operation gives the storage new memory, unless a NumPy array shares it.

    >>> import twofold as torch
    >>> x = torch.zeros(2, 3)
    >>> x[1].data_ptr() - x.data_ptr(), x.clone().data_ptr() == x.data_ptr()
    (12, False)
    """
    layout = layout_of(self)
    own = self._data_ptr() if self._view is None else root_of(self)._data_ptr()
    return own + layout.offset * layout.dtype.itemsize if self.type_.size else 0


class UntypedStorage:
    """The memory that a tensor and its views share, as bytes.

    >>> import twofold as torch
    >>> x = torch.zeros(2, 3)
    >>> x[1].untyped_storage() == x.untyped_storage(), x[1].untyped_storage().nbytes()
    (True, 24)
    """

    def __init__(self, root: Tensor | int = 0) -> None:
        """The memory of a tensor that is no view, or a number of bytes of its own."""
        self.root = root if isinstance(root, Tensor) else FUNCTIONS["zeros"](root, dtype=uint8)

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return data_ptr(self.root)

    def nbytes(self) -> int:
        """How many bytes there are."""
        return int(self.root.type_.nbytes)

    size = __len__ = nbytes

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and self.root is other.root

    def __hash__(self) -> int:
        return id(self.root)


def untyped_storage(self: Tensor) -> UntypedStorage:
    """The memory that the tensor shares with its views; equal for all that share it.

    >>> import twofold as torch
    >>> x = torch.zeros(2, 3)
    >>> x.t().untyped_storage().data_ptr() == x.data_ptr()
    True
    """
    return UntypedStorage(root_of(self))


class TypedStorage:
    """The memory that a tensor and its views share, as elements of the tensor's dtype in the order of addresses.

    >>> import twofold as torch
    >>> x = torch.tensor([[1, 2], [3, 4]])
    >>> x.t()[1].storage().tolist(), len(x.storage()), x.storage()[2]
    ([1, 2, 3, 4], 4, 3)
    """

    def __init__(self, root: Tensor, dtype: Any) -> None:
        self._root, self.dtype = root, dtype
        self.device = root.device

    def _elements(self) -> Any:
        count = self._root.type_.size
        line = self._root.detach().as_strided((count,), (1,))
        return line if line.dtype is self.dtype else line.view(self.dtype)

    def elements(self, dtype: Any) -> Any:
        """The elements as a tensor that shares the memory; RuntimeError where they are of another dtype."""
        if dtype is not self.dtype:
            raise RuntimeError(f"a storage of {self.dtype.name} elements as a tensor of {dtype.name}")
        return self._elements()

    def data_ptr(self) -> int:
        """The address of the first element."""
        return data_ptr(self._root)

    def nbytes(self) -> int:
        """How many bytes there are."""
        return int(self._root.type_.nbytes)

    def element_size(self) -> int:
        """How many bytes an element takes."""
        return int(self.dtype.itemsize)

    def size(self) -> int:
        """How many elements there are."""
        return self.nbytes() // self.element_size()

    __len__ = size

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def tolist(self) -> list[Any]:
        """All elements."""
        return self._elements().tolist()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __getitem__(self, index: int) -> Any:
        return self._elements()[index].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._elements()[index] = value

    def fill_(self, value: Any) -> TypedStorage:
        """Set all elements to a number."""
        self._elements().fill_(value)
        return self

    def untyped(self) -> UntypedStorage:
        """The same memory as bytes."""
        return UntypedStorage(self._root)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedStorage) and self._root is other._root and self.dtype is other.dtype

    def __hash__(self) -> int:
        return id(self._root)

    def __repr__(self) -> str:
        lines = "".join(f" {value}\n" for value in self.tolist())
        end = f"[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {self.size()}]"
        return f"{lines}{end}"


def storage(self: Tensor) -> TypedStorage:
    """The memory that the tensor shares with its views, as elements of its dtype.

    >>> import twofold as torch
    >>> x = torch.zeros(2, 3)
    >>> x[1].storage().size(), x[1].storage().data_ptr() == x.data_ptr()
    (6, True)
    """
    return TypedStorage(root_of(self), self.dtype)


def is_set_to(self: Tensor, other: Tensor) -> bool:
    """Whether both show the same memory, with the same sizes and strides.

    >>> import twofold as torch
    >>> x = torch.tensor([1, 2])
    >>> x.is_set_to(x.view(2)), x.is_set_to(x.clone())
    (True, False)
    """
    own, its = storage_of(self), storage_of(other)
    return own.root is its.root and own[1:] == its[1:] and self.dtype is other.dtype


METHODS: dict[str, Any] = {
    "stride": stride,
    "storage_offset": storage_offset,
    "is_contiguous": is_contiguous,
    "is_set_to": is_set_to,
    "data_ptr": data_ptr,
    "storage": storage,
    "untyped_storage": untyped_storage,
}
