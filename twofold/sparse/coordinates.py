"""``SparseTensor``: coordinates and values, what they are made from, and what operators make of them.

A product costs as many steps as there are values; what has no sparse form raises instead of becoming dense.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from twofold import _core, dtypes
from twofold.dtypes import DType, Size, as_dtype
from twofold.errors import ArgumentError, IndexRangeError, ShapeError
from twofold.frontend.creation import tensor
from twofold.frontend.options import check_device, check_options, sparse_coo
from twofold.ir.op import REGISTRY
from twofold.ops.base import Elementwise, normalize_axis, ops
from twofold.ops.shape.shapes import many_axes
from twofold.sparse.history import HasHistory
from twofold.sparse.products import dense_product, sparse_product
from twofold.sparse.selection import selected

Tensor = _core.Tensor


@functools.cache
def _is_zero_at_zero(op: Elementwise) -> bool:
    """Whether it is a function of one element alone that keeps zeros, so that it has a sparse form."""
    if op.parameter_names() != ["input"]:
        return False
    with numpy.errstate(all="ignore"):
        return not numpy.any(op.reference((), numpy.zeros((), float if "f" in op.kinds else int)))


class SparseTensor(HasHistory):
    """Some elements of a tensor by their coordinates; all others are zero, and a coordinate met twice counts twice.

    ``_indices()`` is [sparse axes, count] of int64, and ``_values()`` is [count, dense axes...]; gradients flow through
    the values. Functions of PyTorch's names take it where there is a sparse form.

    >>> import twofold as torch
    >>> x = torch.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
    >>> x @ torch.ones(3, 1)
    tensor([[3.],
            [4.]])
    """

    is_sparse = True
    is_sparse_csr = is_cuda = is_quantized = is_complex = False
    layout = sparse_coo

    def __init__(self, indices: Tensor, values: Tensor, size: Sequence[int], coalesced: bool = False) -> None:
        self._coordinates = indices
        self._elements = values
        self._size = Size(size)
        self._coalesced = coalesced

    def __getattr__(self, name: str) -> Callable[[], SparseTensor]:
        """The methods of functions of one element that are zero at zero, such as ``sin()``."""
        op = REGISTRY.get(name)
        if not isinstance(op, Elementwise) or name not in op.methods or not _is_zero_at_zero(op):
            raise AttributeError(f"a sparse tensor has no {name!r}; to_dense() may have")

        def method() -> SparseTensor:
            found = self.coalesce()
            return found._with(getattr(ops, name)(found._elements))

        return method

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """What a function makes of sparse tensors: the method of its name, or the product or sum with a dense one."""
        name, given = getattr(func, "__name__", ""), dict(kwargs or {})
        args = args or tuple(given.pop(one) for one in ("input", "other", "mat2", "vec") if one in given)
        if isinstance(args[0], cls):
            method = getattr(args[0], name, None)
            if method is None or getattr(method, "__func__", method) is func:
                return NotImplemented
            return method(*args[1:], **given)
        reflected = _REFLECTED.get(name)
        if reflected is None or given or len(args) != 2:
            return NotImplemented
        return getattr(args[1], reflected)(args[0])

    def _with(self, values: Tensor) -> SparseTensor:
        return SparseTensor(self._coordinates, values, self._size, self._coalesced)

    def map_values(self, function: Callable[[Tensor], Tensor]) -> SparseTensor:
        """What a function of the values makes of it."""
        return self._with(function(self._elements))

    # What is known without computing.

    @property
    def shape(self) -> Size:
        """The sizes of all axes."""
        return self._size

    def size(self, dim: int | None = None) -> Any:
        """``shape``, or the size of one axis."""
        return self._size if dim is None else self._size[dim]

    @property
    def dtype(self) -> DType:
        """The dtype of the values."""
        return self._elements.dtype

    @property
    def device(self) -> Any:
        """The device of the values."""
        return self._elements.device

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._size)

    def dim(self) -> int:
        """The number of axes."""
        return len(self._size)

    ndimension = dim

    def norm(self, p: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
        """The ``p``-norm of all elements, a positive number.

        Raises ArgumentError for one over some axes, and for another ``p``, of which zeros have a part.
        """
        if dim is not None or keepdim or (p != "fro" and not p > 0):
            raise ArgumentError("norm of a sparse tensor: only that of all elements", "Use to_dense() first.")
        return ops.norm(self.coalesce()._elements, 2 if p == "fro" else p, dtype=dtype)

    def zeros_like(self, *, dtype: Any = None) -> SparseTensor:
        """A tensor of the same shape without any elements."""
        values = ops.zeros((0, *self._elements.shape[1:]), dtype=dtype or self.dtype)
        return SparseTensor(self._coordinates[:, :0], values, self._size, True)

    def sparse_dim(self) -> int:
        """The number of axes that have coordinates: the first ones."""
        return int(self._coordinates.shape[0])

    def dense_dim(self) -> int:
        """The number of axes that each value has."""
        return self.ndim - self.sparse_dim()

    def numel(self) -> int:
        """The number of elements, zeros included."""
        return math.prod(self._size)

    def __len__(self) -> int:
        return int(self._size[0])

    def _nnz(self) -> int:
        return int(self._elements.shape[0])

    def is_coalesced(self) -> bool:
        """Whether coordinates come in order, none twice."""
        return self._coalesced

    def _indices(self) -> Tensor:
        return self._coordinates

    def _values(self) -> Tensor:
        return self._elements

    def indices(self) -> Tensor:
        """The coordinates; raises RuntimeError before ``coalesce``."""
        return self._need_coalesced("indices")._coordinates

    def values(self) -> Tensor:
        """The values; raises RuntimeError before ``coalesce``."""
        return self._need_coalesced("values")._elements

    def _need_coalesced(self, what: str) -> SparseTensor:
        if not self._coalesced:
            raise RuntimeError(f"{what}: coordinates may come twice. Call coalesce() first.")
        return self

    # Forms without a history, or with one of their own.

    def detach(self) -> SparseTensor:
        """The same elements without their history."""
        return self._with(self._elements.detach())

    def clone(self) -> SparseTensor:
        """A copy."""
        return self._with(self._elements.clone())

    # Other forms of the same elements.

    def copy_(self, src: SparseTensor, non_blocking: bool = False) -> SparseTensor:
        """Take the elements of another sparse tensor of the same sizes; ``non_blocking`` is alike, with one device.

        Raises RuntimeError where the sizes differ, TypeError for a dense tensor.
        """
        if not isinstance(src, SparseTensor):
            raise TypeError("copy_: a dense tensor into a sparse one. Give src.to_sparse().")
        if src.shape != self.shape:
            raise RuntimeError(f"copy_: sizes differ, {tuple(src.shape)} into {tuple(self.shape)}")
        self._coordinates = src._coordinates.clone()
        self._elements, self._coalesced = src._elements.to(self.dtype).clone(), src._coalesced
        return self

    def to_dense(self, dtype: Any = None) -> Tensor:
        """All elements as a tensor."""
        axes = self.sparse_dim()
        count, rest = math.prod(self._size[:axes]), self._size[axes:]
        values = self._elements if dtype is None else self._elements.to(dtype)
        base = ops.zeros((count, *rest), dtype=values.dtype)
        return ops.reshape(ops.index_add(base, 0, self._flat(range(axes)), values), self._size)

    def to_sparse(self, sparse_dim: int | None = None, *, layout: Any = None) -> SparseTensor:
        """The tensor itself, or one of another number of sparse axes."""
        if sparse_dim in (None, self.sparse_dim()) and layout in (None, sparse_coo):
            return self
        return nonzeros(self.to_dense(), sparse_dim, layout)

    def _flat(self, axes: Sequence[int]) -> Tensor:
        """For each value, its position among the elements of some axes, row by row."""
        found = ops.zeros((self._nnz(),), dtype=dtypes.int64)
        for axis in axes:
            found = found * self._size[axis] + self._coordinates[axis]
        return found

    def coalesce(self) -> SparseTensor:
        """The same elements with coordinates in order, none twice: the values of equal coordinates are added."""
        if self._coalesced:
            return self
        axes = self.sparse_dim()
        positions, places = ops.unique(self._flat(range(axes)), return_inverse=True)
        base = ops.zeros((positions.shape[0], *self._size[axes:]), dtype=self.dtype)
        values = ops.index_add(base, 0, places, self._elements)
        indices = ops.stack(list(ops.unravel_index(positions, tuple(self._size[:axes]))), 0)
        return SparseTensor(indices, values, self._size, True)

    def to(
        self,
        *args: Any,
        dtype: Any = None,
        device: Any = None,
        non_blocking: bool = False,
        copy: bool = False,
    ) -> SparseTensor:
        """In another dtype, as ``Tensor.to``."""
        options = {"dtype": dtype, "device": device, "non_blocking": non_blocking, "copy": copy}
        return self._with(self._elements.to(*args, **options))

    def type(self, dtype: Any) -> SparseTensor:
        """In another dtype."""
        return self._with(self._elements.type(dtype))

    def cpu(self) -> SparseTensor:
        """The tensor itself: there is one device."""
        return self

    def float(self) -> SparseTensor:
        """In float32."""
        return self.to(dtypes.float32)

    def double(self) -> SparseTensor:
        """In float64."""
        return self.to(dtypes.float64)

    def long(self) -> SparseTensor:
        """In int64."""
        return self.to(dtypes.int64)

    def cuda(self, device: Any = "cuda") -> SparseTensor:
        """Raises RuntimeError for another device than the CPU, the only one."""
        check_device(device)
        return self

    def transpose(self, dim0: int, dim1: int) -> SparseTensor:
        """Two of the sparse axes exchanged."""
        axes = self.sparse_dim()
        order = list(range(axes))
        one, two = normalize_axis(dim0, self.ndim), normalize_axis(dim1, self.ndim)
        if max(one, two) >= axes:
            raise ShapeError(f"transpose: axis {max(one, two)} is dense", "Exchange sparse axes.")
        order[one], order[two] = order[two], order[one]
        size = [self._size[axis] for axis in order] + list(self._size[axes:])
        return SparseTensor(self._coordinates[order], self._elements, size)

    def t(self) -> SparseTensor:
        """A matrix with its axes exchanged."""
        if self.ndim != 2:
            raise ShapeError(f"t: shape {tuple(self._size)} is no matrix", "Use transpose(dim0, dim1).")
        return self.transpose(0, 1)

    @property
    def T(self) -> SparseTensor:
        """``t()``."""
        return self.t()

    @property
    def mT(self) -> SparseTensor:
        """The last two axes exchanged."""
        return self.transpose(-2, -1)

    def __getitem__(self, index: int) -> Any:
        """The row ``index``, without its axis: sparse as long as a sparse axis is left."""
        if not isinstance(index, (int, numpy.integer)):
            raise TypeError(
                f"index: {index!r:.40} is no whole number. Sparse tensors have rows by number alone."
            )
        if not -len(self) <= index < len(self):
            raise IndexRangeError(f"index: {index} is outside an axis of size {len(self)}", "Use one inside.")
        here = ops.reshape(ops.nonzero(self._coordinates[0] == index % len(self)), (-1,))
        values = ops.index_select(self._elements, 0, here)
        if self.sparse_dim() == 1:
            return ops.sum(values, 0)
        return SparseTensor(
            ops.index_select(self._coordinates[1:], 1, here), values, self._size[1:], self._coalesced
        )

    def index_select(self, dim: int, index: Tensor) -> SparseTensor:
        """The slices number ``index`` of an axis, in that order."""
        axis, found = normalize_axis(dim, self.ndim), self.coalesce()
        size = (*self._size[:axis], index.shape[0], *self._size[axis + 1 :])
        if axis >= self.sparse_dim():
            values = ops.index_select(found._elements, axis - self.sparse_dim() + 1, index)
            return SparseTensor(found._coordinates, values, size, True)
        positions, elements = selected(found._coordinates[axis], index, self._size[axis])
        coordinates = ops.index_select(found._coordinates, 1, elements)
        coordinates = ops.index_copy(coordinates, 0, tensor([axis]), positions.unsqueeze(0))
        return SparseTensor(coordinates, ops.index_select(found._elements, 0, elements), size)

    # Arithmetic.

    def __neg__(self) -> SparseTensor:
        return self._with(-self._elements)

    neg = negative = __neg__

    def add(self, other: Any, *, alpha: Any = 1) -> SparseTensor:
        """The sum of two sparse tensors; ``dense + sparse`` is dense."""
        if not isinstance(other, SparseTensor):
            raise TypeError("add: a sparse tensor and a dense one. Use dense + sparse, which is dense.")
        if self._size != other._size or self.sparse_dim() != other.sparse_dim():
            what = f"add: shapes {tuple(self._size)} and {tuple(other._size)}"
            raise ShapeError(what, "Give tensors of one shape and of as many sparse axes.")
        values = other._elements if isinstance(alpha, int) and alpha == 1 else other._elements * alpha
        wide = dtypes.promote_types(self.dtype, values.dtype)
        elements = ops.cat([self._elements.to(wide), values.to(wide)], 0)
        return SparseTensor(
            ops.cat([self._coordinates, other._coordinates], 1), elements, self._size
        ).coalesce()

    __add__ = add

    def __radd__(self, dense: Any) -> Any:
        return dense + self.to_dense() if isinstance(dense, Tensor) else NotImplemented

    def sub(self, other: Any, *, alpha: Any = 1) -> SparseTensor:
        """The difference of two sparse tensors; ``dense - sparse`` is dense."""
        return self.add(other, alpha=-alpha)

    __sub__ = subtract = sub

    def __rsub__(self, dense: Any) -> Any:
        return dense - self.to_dense() if isinstance(dense, Tensor) else NotImplemented

    def mul(self, other: Any) -> SparseTensor:
        """Times a number, or element by element times a dense tensor that broadcasts or a sparse one."""
        if isinstance(other, SparseTensor):
            return self.coalesce().mul(other.to_dense())
        if not isinstance(other, Tensor) or not other.ndim:
            return self._with(self._elements * other)
        whole = ops.broadcast_to(other, self._size)
        return self._with(self._elements * whole[tuple(self._coordinates)])

    __mul__ = __rmul__ = multiply = mul

    def div(self, other: Any) -> SparseTensor:
        """Over a number."""
        if isinstance(other, SparseTensor) or (isinstance(other, Tensor) and other.ndim):
            raise TypeError("div: what has zeros cannot divide. Divide a sparse tensor by a number.")
        return self._with(self._elements / other)

    __truediv__ = divide = true_divide = div

    def mm(self, mat2: Any) -> Any:
        """The matrix product: dense with a dense matrix, sparse with a sparse one."""
        return sparse_product(self, mat2) if isinstance(mat2, SparseTensor) else dense_product(self, mat2)

    def mv(self, vec: Tensor) -> Tensor:
        """The product with a vector."""
        return ops.squeeze(self.mm(ops.unsqueeze(vec, 1)), 1)

    def matmul(self, other: Any) -> Any:
        """``mm``, or ``mv`` for a vector."""
        return self.mv(other) if isinstance(other, Tensor) and other.ndim == 1 else self.mm(other)

    __matmul__ = spmm = smm = matmul

    def linear(self, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """``nn.functional.linear``: the product with the transpose of ``weight``, and ``bias`` added."""
        made = self.mm(ops.transpose(weight, 0, 1))
        return made if bias is None else made + bias

    def __rmatmul__(self, dense: Any) -> Any:
        if not isinstance(dense, Tensor):
            return NotImplemented
        if dense.ndim == 1:
            return self.t().mv(dense)
        return ops.transpose(self.t().mm(ops.transpose(dense, 0, 1)), 0, 1)

    def sum(self, dim: Any = None, dtype: Any = None) -> Any:
        """``torch.sparse.sum``."""
        given = self if dtype is None else self.to(as_dtype(dtype))
        if dim is None:
            return ops.sum(given._values())
        gone = set(many_axes([dim] if isinstance(dim, int) else dim, given.ndim))
        axes = given.sparse_dim()
        inner = [axis - axes + 1 for axis in gone if axis >= axes]
        values = ops.sum(given._values(), inner) if inner else given._values()
        left = [axis for axis in range(axes) if axis not in gone]
        if not left:
            return ops.sum(values, 0)
        size = [given.shape[axis] for axis in range(given.ndim) if axis not in gone]
        if len(left) == axes:
            return type(self)(given._indices(), values, size, given.is_coalesced())
        return type(self)(given._indices()[left], values, size).coalesce()

    # What is shown of it.

    def __repr__(self) -> str:
        indent = " " * len("tensor(indices=")
        indices = repr(self._coordinates).replace("\n", "\n" + indent)
        values = repr(self._elements.detach()).replace("\n", "\n" + " " * len("       values="))
        parts = [f"size={tuple(self._size)}", f"nnz={self._nnz()}", f"layout={self.layout}"]
        if self.requires_grad:
            leaf = self._elements.grad_fn is None
            parts.append("requires_grad=True" if leaf else f"grad_fn={self._elements.grad_fn}")
        return f"tensor(indices={indices},\n       values={values},\n       {', '.join(parts)})"

    def __bool__(self) -> bool:
        raise TypeError("bool: a sparse tensor has no truth value. Ask its to_dense().")

    def numpy(self) -> numpy.ndarray:
        """Raises TypeError: an array has all elements."""
        raise TypeError("numpy: a sparse tensor is no array. Call to_dense() first.")


_REFLECTED = {
    **dict.fromkeys(("mm", "matmul", "mv"), "__rmatmul__"),
    "add": "__radd__",
    "subtract": "__rsub__",
    "multiply": "__rmul__",
}
"""Functions of a dense and a sparse tensor, in this order, and the methods of the sparse one."""


def sparse_coo_tensor(
    indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> SparseTensor:
    """The sparse tensor of ``values`` at ``indices``, a row of coordinates for each sparse axis.

    Without ``size`` it is the least that holds the coordinates. Coordinates outside of ``size`` are reported when they
    are used, or here with ``check_invariants``.

    >>> import twofold as torch
    >>> x = torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
    >>> x
    tensor(indices=tensor([[0, 1, 1],
                           [2, 0, 2]]),
           values=tensor([3., 4., 5.]),
           size=(2, 3), nnz=3, layout=twofold.sparse_coo)
    >>> x.to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 5.]])
    """
    check_options(device, pin_memory=pin_memory)
    where = indices if isinstance(indices, Tensor) else tensor(indices, dtype=dtypes.int64)
    what = values if isinstance(values, Tensor) else tensor(values)
    where = where.to(dtypes.int64)
    what = what if dtype is None else what.to(as_dtype(dtype))
    if where.ndim != 2 or not what.ndim or where.shape[1] != what.shape[0]:
        text = f"sparse_coo_tensor: indices of shape {tuple(where.shape)} and values of shape {tuple(what.shape)}"
        raise ShapeError(text, "Give [sparse axes, count] and [count, dense axes...].")
    if size is None:
        whole = [int(row.max().item()) + 1 if row.shape[0] else 0 for row in where] + list(what.shape[1:])
    else:
        whole = [int(axis) for axis in size]
    if len(whole) != where.shape[0] + what.ndim - 1 or whole[where.shape[0] :] != list(what.shape[1:]):
        text = (
            f"sparse_coo_tensor: size {tuple(whole)} for {where.shape[0]} sparse axes and "
            f"values of shape {tuple(what.shape)}"
        )
        raise ShapeError(text, "Give the sizes of the sparse axes and then those of each value.")
    if check_invariants:
        _check_inside(where, whole)
    if requires_grad:
        what = what.detach().requires_grad_()
    return SparseTensor(
        where, what, whole, bool(is_coalesced) if is_coalesced is not None else what.shape[0] < 2
    )


def _check_inside(indices: Tensor, size: Sequence[int]) -> None:
    for row, count in zip(indices, size):
        if row.shape[0] and not bool(((row >= 0) & (row < count)).all().item()):
            text = f"sparse_coo_tensor: a coordinate is outside an axis of size {count}"
            raise IndexRangeError(text, "Give coordinates inside, or a larger size.")


def nonzeros(input: Tensor, sparse_dim: int | None, layout: Any) -> SparseTensor:
    """``Tensor.to_sparse``."""
    axes = input.ndim if sparse_dim is None else sparse_dim
    if layout is not None and layout is not sparse_coo:
        raise ArgumentError(
            f"to_sparse: layout {layout!r} is not available", "Use sparse_coo, or leave it out."
        )
    if not 1 <= axes <= input.ndim:
        what = f"to_sparse: sparse_dim {axes} of {input.ndim} axes"
        raise ArgumentError(what, "Give one between 1 and the number of axes.")
    there = input.detach() != 0
    for _ in range(input.ndim - axes):
        there = ops.any(there, -1)
    indices = ops.transpose(ops.nonzero(there), 0, 1)
    return SparseTensor(indices, input[tuple(indices)], input.shape, True)


def spmm(input: Any, mat2: Any) -> Any:
    """The matrix product, as ``mm``: programs of PyTorch 0.x call it so for a sparse ``input``.

    >>> import twofold as torch
    >>> x = torch.sparse_coo_tensor([[0], [1]], [2.0], (2, 2))
    >>> torch.spmm(x, torch.eye(2))
    tensor([[0., 2.],
            [0., 0.]])
    """
    if not isinstance(input, (SparseTensor, Tensor)):
        raise ArgumentError(f"spmm: input is {input!r}", "Give a sparse or dense matrix.")
    return input.mm(mat2)


class _SparseType(type):
    """Classes such as ``sparse.FloatTensor``: a call makes a sparse tensor of the dtype, and such are instances."""

    dtype: DType

    def __call__(cls, indices: Any, values: Any, size: Any = None) -> SparseTensor:
        return sparse_coo_tensor(indices, values, size, dtype=cls.dtype)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, SparseTensor) and instance.dtype is cls.dtype


TYPES: dict[str, Any] = {
    name: _SparseType(
        name, (), {"dtype": dtype, "__doc__": f"Sparse tensors of {dtype.name}, as PyTorch wrote them."}
    )
    for name, dtype in (
        ("FloatTensor", dtypes.float32),
        ("DoubleTensor", dtypes.float64),
        ("LongTensor", dtypes.int64),
        ("IntTensor", dtypes.int32),
    )
}
