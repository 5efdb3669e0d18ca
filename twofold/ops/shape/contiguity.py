"""Dense copies, views that must not copy, and the orders of axes in memory.

Results of operations are dense in row-major order; only views, and what is copied to another order of axes here, lie
otherwise. A handle says so by ``_is_row_major``; nodes and placeholders have no memory, and nothing to copy.
"""

from __future__ import annotations

from typing import Any

from twofold.dtypes import DType, as_dtype
from twofold.errors import ArgumentError, ShapeError
from twofold.ir.layout import is_dense
from twofold.ops.base import apply, composite, ops, public, publish
from twofold.ops.shape import shapes
from twofold.ops.shape.movement import element_count

ORDERS = {"channels_last": (0, 2, 3, 1), "channels_last_3d": (0, 2, 3, 4, 1)}
"""The axes from the outermost in memory to the innermost, by memory format."""


def format_name(memory_format: Any) -> str:
    """The name of a memory format, of which None is the contiguous one; raises ArgumentError for anything else."""
    name = "contiguous_format" if memory_format is None else str(memory_format).rpartition(".")[2]
    if name not in ORDERS and name not in ("contiguous_format", "preserve_format"):
        raise ArgumentError(f"memory_format {memory_format!r}", "Use contiguous_format or channels_last.")
    return name


def memory_order(memory_format: Any, ndim: int) -> tuple[int, ...]:
    """The axes of ``ndim`` from the outermost in memory to the innermost.

    Raises ShapeError for a number of axes that the format does not have.
    """
    name = format_name(memory_format)
    order = ORDERS.get(name, tuple(range(ndim)))
    if len(order) != ndim:
        raise ShapeError(
            f"memory_format {name} for a tensor of {ndim} axes", f"Use it for {len(order)} axes."
        )
    return order


@composite
class clone:
    """Its input, in memory of its own."""

    functions = ()
    methods = ()
    signature = "input"
    reference = lambda x: x
    compute = lambda x: x


def dense_copy(input: Any, memory_format: Any = None) -> Any:
    """A copy whose elements lie side by side in the order of the format, row-major unless it says otherwise."""
    order = memory_order(memory_format, len(input.shape))
    if order == tuple(range(len(order))):
        return apply("clone", input)
    return ops.permute(apply("clone", ops.permute(input, order)), shapes.inverse(order))


def contiguous(input: Any, *, memory_format: Any = None) -> Any:
    """The tensor itself where its elements lie side by side in row-major order (or in ``memory_format``), else a copy.

    Raises ArgumentError for ``preserve_format``.

    >>> import twofold as torch
    >>> x = torch.tensor([[1, 2], [3, 4]])
    >>> x.contiguous() is x, x.t().contiguous().stride()
    (True, (2, 1))
    """
    if memory_format is None:
        return input if getattr(input, "_is_row_major", True) else apply("clone", input)
    if format_name(memory_format) == "preserve_format":
        raise ArgumentError("preserve_format is no order of the axes", "Use clone().")
    stride = getattr(input, "_strides", None)
    shape, order = tuple(input.shape), memory_order(memory_format, len(input.shape))
    return input if stride is None or is_dense(shape, stride, order) else dense_copy(input, memory_format)


@public(methods=("ravel",))
def ravel(input: Any) -> Any:
    """All elements in row-major order along one axis; a copy unless they lie side by side in memory.

    >>> import twofold as torch
    >>> torch.ravel(torch.tensor([[1, 2], [3, 4]]))
    tensor([1, 2, 3, 4])
    """
    return ops.reshape(contiguous(input), (element_count(input),))


def view(input: Any, *shape: Any, dtype: Any = None, size: Any = None) -> Any:
    """The same memory in another shape, or read as another dtype.

    With elements of another size the last axis has more or fewer of them. Raises ShapeError where no strides show
    the shape; ``reshape`` then copies.

    >>> import twofold as torch
    >>> x = torch.zeros(4)
    >>> x.view(2, 2)[0, 1] = 5
    >>> x
    tensor([0., 5., 0., 0.])
    """
    if size is not None:
        shape = (size,)
    if dtype is None and len(shape) == 1 and (isinstance(shape[0], DType) or hasattr(shape[0], "kind")):
        dtype = shape[0]
    if dtype is None:
        return _shared(ops.reshape(input, *shape), input)
    from twofold.ops.shape.reinterpreting import reread

    return reread(input, as_dtype(dtype))


def view_as(input: Any, other: Any) -> Any:
    """The same memory in the shape of ``other``.

    >>> import twofold as torch
    >>> torch.arange(4).view_as(torch.zeros(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    return _shared(ops.reshape(input, tuple(other.shape)), input)


def _shared(result: Any, input: Any) -> Any:
    """``result``, if it shares its memory with the input."""
    known = (
        min(input.shape, default=0) >= 0
    )  # of a size that is not declared nobody knows whether strides fit
    if known and getattr(result, "_base", result) is None:
        raise ShapeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across "
            f"two contiguous subspaces): size {tuple(result.shape)}, input of stride {input.stride()}",
            "Use .reshape(...) instead.",
        )
    return result


for _method in (contiguous, view, view_as):
    publish(_method, (), (_method.__name__,))
