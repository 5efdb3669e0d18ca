"""Writing to tensors that exist: results of ``out=``, other shapes, and elements one by one."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy

from twofold import _core
from twofold.errors import ArgumentError, ShapeError
from twofold.ir.layout import row_major
from twofold.ops.base import apply, ops
from twofold.ops.shape.contiguity import ORDERS, format_name
from twofold.ops.shape.shapes import given_integers
from twofold.ops.shape.storage import alias_of

Tensor = _core.Tensor


def write_out(out: Any, result: Any) -> Any:
    """What a call with ``out=`` returns: ``out`` itself, holding the result, in whose shape it is brought.

    Raises RuntimeError where a gradient would have to flow.
    """
    if not isinstance(out, Tensor):
        for one, value in zip(out, result, strict=True):
            write_out(one, value)
        return type(result)(*out) if hasattr(result, "_fields") else tuple(out)
    if _core.grad_enabled() and (out.requires_grad or result.requires_grad):
        raise RuntimeError(
            "out=: no gradient flows into a given tensor. Assign the result, or use no_grad()."
        )
    if tuple(out.shape) == tuple(result.shape):
        return out._assign(result)
    if result.dtype.kind == "f" and out.dtype.kind != "f":
        raise RuntimeError(
            f"out=: a result of {result.type_} cannot be stored in {out.type_}. Convert it first."
        )
    out._share_storage(result if result.dtype is out.dtype else apply("cast", result, attrs=(out.dtype,)))
    return out


def resize_(self: Tensor, *sizes: Any, size: Any = None, memory_format: Any = None) -> Tensor:
    """In-place: another shape, with the first elements in row-major order; new ones are 0.

    A view, and a tensor that has views, show what follows their first element in the storage; a tensor whose storage
    has too few elements gets another one, which its views do not show. Raises RuntimeError for a tensor that requires
    grad, and for a view where its storage has too few elements.

    >>> import twofold as torch
    >>> torch.arange(4)[1:].resize_(2, 1)
    tensor([[1],
            [2]])
    """
    shape = given_integers(sizes, size=size)
    if format_name(memory_format) in ORDERS:
        raise ArgumentError(f"resize_ to {memory_format!r}", "Use contiguous(memory_format=...).")
    if self.requires_grad:
        raise RuntimeError(f"resize_: {self.type_} requires grad. Use reshape or pad.")
    if shape == tuple(self.shape):
        return self
    count, is_view = prod(shape), self._base is not None
    if is_view or (self._has_views and count <= prod(self.shape)):
        whole = alias_of(self.detach()).detach()
        if self.storage_offset() + count > whole.shape[0]:
            raise RuntimeError(f"resize_: {self.type_} is a view of too few elements. Use reshape or pad.")
        show(self, whole.as_strided(shape, row_major(shape), self.storage_offset()))
    else:
        flat = ops.ravel(self.detach())
        if count > flat.shape[0]:
            flat = ops.pad(flat, (0, count - flat.shape[0]))
        self._share_storage(ops.copied(ops.reshape(ops.narrow(flat, 0, 0, count), shape)))
    self._count_change()
    return self


def resize_as_(self: Tensor, other: Tensor, *, memory_format: Any = None) -> Tensor:
    """In-place: the shape of ``other``; see ``resize_``."""
    return resize_(self, tuple(other.shape), memory_format=memory_format)


def set_(
    self: Tensor,
    source: Any = None,
    storage_offset: int = 0,
    size: Sequence[int] | None = None,
    stride: Sequence[int] | None = None,
) -> Tensor:
    """In-place: show the storage of ``source``, a tensor or a storage, from now on; without one, of no elements.

    A tensor takes the sizes and strides of a tensor unless ``size`` is given; of a storage it shows all elements.

    >>> import twofold as torch
    >>> x, y = torch.zeros(2), torch.tensor([1.0, 2.0, 3.0])
    >>> x.set_(y)[0] = 5
    >>> y, torch.zeros(0).set_(y, 1, (2,))
    (tensor([5., 2., 3.]), tensor([2., 3.]))
    """
    if source is None:
        if storage_offset or size is not None or stride is not None:
            raise ArgumentError("set_ with sizes, strides or an offset, but no source", "Give source, too.")
        shown = apply("zeros", attrs=((0,), self.dtype))
    else:
        is_tensor = isinstance(source, Tensor)
        shown = source.detach() if is_tensor else alias_of(source.root, self.dtype)
        if size is not None:
            steps = row_major(tuple(size)) if stride is None else tuple(stride)
            shown = alias_of(shown.detach()).detach().as_strided(tuple(size), steps, storage_offset)
        elif storage_offset or stride is not None:
            raise ArgumentError("set_ with an offset or strides but no size", "Give size, too.")
    show(self, shown)
    self._count_change()
    return self


def show(self: Tensor, other: Tensor) -> None:
    """Have ``self`` share the storage of ``other``; nothing changes where it does and is laid out alike.

    Else each step of a loop such as ``x.data = x.data.view(3)`` would make a view of the view before.
    """
    base = other._base
    is_own = base is not None and base is (self if self._base is None else self._base)
    if is_own and _laid_out(self) == _laid_out(other):
        return
    if is_own:
        # leave the storage first, so that no view above `other` stays one of the tensor that is to show it
        self._share_storage(other.detach().clone())
        above = other._view
        while above is not None:
            above = above[0]._view
    self._share_storage(other)


def _laid_out(one: Tensor) -> tuple[Any, ...]:
    return one.dtype, one.shape, one.stride(), one.storage_offset()


def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """In-place: write ``fill_value`` where all positions are equal; ``wrap`` goes on below a tall matrix.

    Raises ShapeError for fewer than two axes, and for more than two of different sizes.
    """
    shape = tuple(self.shape)
    if len(shape) < 2 or (len(shape) > 2 and len(set(shape)) > 1):
        raise ShapeError(f"a diagonal of shape {shape}", "Use a matrix, or equal sizes.")
    step = sum(prod(shape[axis + 1 :]) for axis in range(len(shape)))
    rows = shape[0] if wrap and len(shape) == 2 else min(shape)
    last = prod(shape) if rows == shape[0] else min(shape) * step
    positions = numpy.arange(0, min(last, prod(shape)), step)
    if not len(positions):
        return self
    value = ops.cast(fill_value, self.dtype) if isinstance(fill_value, Tensor) else fill_value
    written = ops.index_fill(ops.ravel(self), 0, _core.from_array(positions, False), value)
    return self._assign(ops.reshape(written, shape))


def apply_(self: Tensor, function: Any) -> Tensor:
    """In-place: each element becomes ``function`` of it, called in Python."""
    array = self.detach().numpy()
    values = numpy.array([function(x) for x in array.reshape(-1).tolist()], array.dtype)
    return self._assign(_core.from_array(values.reshape(array.shape), False))


def map_(self: Tensor, other: Tensor, function: Any) -> Tensor:
    """In-place: each element becomes ``function`` of it and of that of ``other``, called in Python."""
    if tuple(other.shape) != tuple(self.shape):
        raise ArgumentError(f"shapes {tuple(self.shape)} and {tuple(other.shape)}", "Make them equal.")
    array, more = self.detach().numpy(), other.detach().numpy()
    pairs = zip(array.reshape(-1).tolist(), more.reshape(-1).tolist(), strict=True)
    values = numpy.array([function(x, y) for x, y in pairs], array.dtype)
    return self._assign(_core.from_array(values.reshape(array.shape), False))


METHODS: dict[str, Any] = {
    function.__name__: function for function in (resize_, resize_as_, set_, fill_diagonal_, apply_, map_)
}
