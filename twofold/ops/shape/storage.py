"""Where the elements of a tensor lie in the storage that it shares with others.

Views end at the handle: each knows its parent and the operation that shows it, and the layout in the storage
follows from that chain when somebody asks. Every chain ends at a root, a handle with storage of its own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from twofold import _core
from twofold.ir.layout import Layout, row_major
from twofold.ir.types import Shape
from twofold.ops.base import apply, ops


class Storage(NamedTuple):
    """Where the elements of a tensor lie; offset and strides count elements of the tensor's own dtype."""

    root: Any
    offset: int
    size: Shape
    stride: Shape


def root_of(tensor: Any) -> Any:
    """The handle that owns the storage of ``tensor``: itself, unless it is a view."""
    return tensor if tensor._base is None else tensor._base


def layout_of(tensor: Any) -> Layout:
    """Sizes, strides and offset of a tensor in its storage."""
    steps = []
    while (view := tensor._view) is not None:
        tensor, *step = view
        steps.append(step)
    shape = tensor.type_.shape  # of declared tensors, too
    found: Any = Layout(tensor.dtype, shape, row_major(shape))
    for op, attrs, inputs in reversed(steps):
        if op is not None:
            found = op.layout(attrs, found, inputs)
    return found


def storage_of(tensor: Any) -> Storage:
    """Where the elements of a tensor lie: ``(root, offset, size, stride)``.

    ``root`` is the handle that owns the memory, a dense tensor in row-major order; all tensors that share memory have
    the same root, the object itself. Offset and strides count elements of ``tensor.dtype`` from the start of the
    root's memory. ``alias_of(root, tensor.dtype)`` is that memory as a vector of this dtype, so the same view of it
    is made by ``alias_of(root, dtype).as_strided(size, stride, offset)``.

    >>> import twofold as torch
    >>> x = torch.arange(6).reshape(2, 3)
    >>> root, offset, size, stride = storage_of(x.t()[1:])
    >>> root is storage_of(x).root, offset, size, stride
    (True, 1, (2, 2), (1, 3))
    >>> alias_of(root, torch.int64).as_strided(size, stride, offset)
    tensor([[1, 4],
            [2, 5]])
    """
    layout = layout_of(tensor)
    return Storage(root_of(tensor), layout.offset, layout.size, layout.stride)


def alias_of(tensor: Any, dtype: Any = None) -> Any:
    """The whole storage of a tensor as a vector of ``dtype`` (default: that of the tensor), which shares its memory."""
    return _as_vector(root_of(tensor), dtype or tensor.dtype)


def storage_beside(tensor: Any) -> Any:
    """The whole storage of a view as a vector of its dtype, through which gradients flow as through the view.

    What is written to a tensor of ``detach`` reaches the tensor, but no gradient of it what it was detached from.

    >>> import twofold as torch
    >>> x, value = torch.zeros(4), torch.ones(2, requires_grad=True)
    >>> storage_beside(x.view(2, 2))[1:3] = value
    >>> storage_beside(x.detach()[2:]).requires_grad, x.requires_grad
    (False, True)
    """
    shown, is_cut = tensor, False
    while (view := shown._view) is not None:
        if view[1] is None:  # detached
            if _is_whole(shown):
                break
            is_cut = True
        shown = view[0]
    vector = _as_vector(shown, tensor.dtype)
    if not tensor.requires_grad:
        return vector.detach() if is_cut or vector.requires_grad else vector
    if vector.requires_grad or not _core.grad_enabled():
        return vector
    layout = layout_of(tensor)  # a leaf that shows the memory of a tensor without gradient
    return apply(
        "write_view", vector, tensor, attrs=("as_strided", (layout.size, layout.stride, layout.offset))
    )


def _is_whole(view: Any) -> bool:
    """Whether a view shows its root's elements in their order."""
    return layout_of(view).is_row_major and bool(view.type_.nbytes == root_of(view).type_.nbytes)


def _as_vector(root: Any, dtype: Any) -> Any:
    flat = ops.reshape(root, (-1,)) if root.type_.size else ops.reshape(root, (0,))
    if flat.dtype is dtype:
        return flat
    if flat.dtype.kind == "c":
        flat = ops.reshape(ops.view_as_real(flat), (-1,))
    if dtype.kind == "c":
        flat = ops.view_as_complex(
            ops.reshape(flat if flat.dtype is dtype.real else ops.bitcast(flat, dtype.real), (-1, 2))
        )
    return flat if flat.dtype is dtype else ops.bitcast(flat, dtype)
