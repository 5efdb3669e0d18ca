"""``Expression``: a tensor seen as DyNet sees it, a column vector, matrix or more, with a batch beside.

The axes of the tensor are DyNet's dimensions in reverse, after the axis of the batch where that is not 1. So the
memory is DyNet's, column by column; ``W * x`` is one product of the stored tensors in reverse; columns, and the
elements of a batch, lie one after the other; and a bias is broadcast over columns as NumPy broadcasts. A single number
may be stored without axes.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, TypeVar

import numpy

from twofold import _core
from twofold.dynet.graph import operation, refresh, state
from twofold.errors import ShapeError, describe_operand
from twofold.frontend.gradients import grad
from twofold.frontend.install import PUBLIC

Tensor = _core.Tensor
T = TypeVar("T")


def _of_core(methods: type[T]) -> type[T]:
    """The type of the core with the methods of a class, whose own instances the garbage collector would visit."""
    for name, value in vars(methods).items():
        if name != "__slots__":
            setattr(_core.Expression, name, value)
    return _core.Expression  # type: ignore[return-value]


@_of_core
class Expression(_core.Expression):
    """A value of the graph.

    >>> import twofold.dynet as dy
    >>> x = dy.inputVector([1, 2, 3])
    >>> (x * 2 + 1).value(), x.dim()
    ([3.0, 5.0, 7.0], ((3,), 1))
    """

    __slots__ = ()

    def dim(self) -> tuple[tuple[int, ...], int]:
        """The dimensions of an element of the batch, and the size of the batch."""
        shape = tuple(self._tensor.shape)
        return (shape[1:] if self._batch != 1 else shape)[::-1] or (1,), self._batch

    def __repr__(self) -> str:
        return f"expression {self.dim()[0]} x {self._batch}"

    def _repr_html_(self) -> str:
        refresh()
        return str(import_module("twofold.frontend.html").tensor_html(self._tensor))

    def npvalue(self, recalculate: bool = False) -> numpy.ndarray[Any, Any]:
        """The value as an array: dimensions first, the batch last where it is not 1."""
        refresh(recalculate)
        return to_array(self._tensor, self._batch)

    def scalar_value(self, recalculate: bool = False) -> float:
        """The value of an expression of one number."""
        refresh(recalculate)
        return float(self._tensor.item())

    def vec_value(self, recalculate: bool = False) -> list[float]:
        """All numbers in a list, column by column."""
        refresh(recalculate)
        return self._tensor.detach().reshape(-1).tolist()

    def value(self, recalculate: bool = False) -> Any:
        """A float, the list of a vector, or an array."""
        refresh(recalculate)
        tensor, batch = self._tensor, self._batch
        if tensor.ndim == 0:
            return tensor.item()
        if tensor.ndim - (batch != 1) > 1:
            return to_array(tensor, batch)
        numbers = tensor.detach().reshape(-1).tolist()
        return numbers[0] if len(numbers) == 1 else numbers

    def tensor_value(self, recalculate: bool = False) -> Any:
        """The value with functions to look at it: ``as_numpy``, ``argmax``, ``topk``."""
        refresh(recalculate)
        return Values(self._tensor.detach(), self._batch)

    def forward(self, recalculate: bool = False) -> None:
        """Compute the value now."""
        refresh(recalculate)
        self._tensor.detach().numpy()

    def backward(self, full: bool = False) -> None:
        """Add the gradient of this number to that of each parameter.

        Args:
            full: Has no effect: ``gradient`` finds the gradient of any expression.

        >>> import twofold.dynet as dy
        >>> w = dy.Model().add_parameters(2, init=1)
        >>> dy.dot_product(w, dy.inputVector([3, 4])).backward()
        >>> w.grad_as_array()
        array([3., 4.])
        """
        refresh()
        root = self._tensor
        if root.numel() != self._batch:
            raise ValueError(
                f"backward: the expression must be a single number, not of dimensions {self.dim()[0]}. "
                "Add its numbers up first, such as with sum_elems."
            )
        if root.ndim:
            root = root.sum()
        state.root = root
        if not root.requires_grad:
            return
        root.backward(retain_graph=True)
        for leaf in state.inputs.values():
            leaf.grad = None

    def gradient(self) -> numpy.ndarray[Any, Any]:
        """The gradient of the expression that ``backward`` was last called on with respect to this one."""
        if state.root is None:
            raise RuntimeError("gradient: call backward() on an expression of this graph first")
        found = None
        if self._tensor.requires_grad and state.root.requires_grad:
            (found,) = grad(state.root, self._tensor, retain_graph=True, allow_unused=True)
        if found is None:
            return numpy.zeros_like(to_array(self._tensor, self._batch))
        return to_array(found, self._batch)

    def __add__(self, other: Any) -> Expression:
        if state.watcher is None and isinstance(other, Expression) and self._batch == 1 and other._batch == 1:
            return Expression(self._tensor + other._tensor)
        return self._add(other)

    @operation
    def _add(self, other: Any) -> Expression:
        if isinstance(other, Expression):
            a, b, batch = aligned(self, other)
            return Expression(a + b, batch)
        return Expression(self._tensor + other, self._batch)

    @operation
    def __radd__(self, other: Any) -> Expression:
        return Expression(self._tensor + other, self._batch)

    def __sub__(self, other: Any) -> Expression:
        if state.watcher is None and isinstance(other, Expression) and self._batch == 1 and other._batch == 1:
            return Expression(self._tensor - other._tensor)
        return self._sub(other)

    @operation
    def _sub(self, other: Any) -> Expression:
        if isinstance(other, Expression):
            a, b, batch = aligned(self, other)
            return Expression(a - b, batch)
        return Expression(self._tensor - other, self._batch)

    @operation
    def __rsub__(self, other: Any) -> Expression:
        return Expression(other - self._tensor, self._batch)

    def __mul__(self, other: Any) -> Expression:
        if state.watcher is None and isinstance(other, Expression) and self._batch == 1 and other._batch == 1:
            a, b = self._tensor, other._tensor
            if a.ndim == 2 and b.ndim:
                return Expression(product(b, a))
        return self._mul(other)

    @operation
    def _mul(self, other: Any) -> Expression:
        if isinstance(other, Expression):
            return matrix_product(self, other)
        return Expression(self._tensor * other, self._batch)

    @operation
    def __rmul__(self, other: Any) -> Expression:
        return Expression(self._tensor * other, self._batch)

    def __truediv__(self, other: Any) -> Expression:
        if state.watcher is None and isinstance(other, Expression) and self._batch == 1 and other._batch == 1:
            return Expression(self._tensor / other._tensor)
        return self._truediv(other)

    @operation
    def _truediv(self, other: Any) -> Expression:
        if isinstance(other, Expression):
            a, b, batch = aligned(self, other)
            return Expression(a / b, batch)
        return Expression(self._tensor / other, self._batch)

    @operation
    def __rtruediv__(self, other: Any) -> Expression:
        return Expression(other / self._tensor, self._batch)

    @operation
    def __neg__(self) -> Expression:
        return Expression(-self._tensor, self._batch)

    @operation
    def __pow__(self, other: Any) -> Expression:
        if isinstance(other, Expression):
            a, b, batch = aligned(self, other)
            return Expression(a**b, batch)
        return Expression(self._tensor**other, self._batch)

    @operation
    def __getitem__(self, index: Any) -> Expression:
        if isinstance(index, (int, numpy.integer)):
            size = self._tensor.shape[-1] if rank_of(self) else 1
            if not -size <= index < size:
                raise IndexError(
                    f"index {index} is outside of {size} rows. Use one from {-size} to {size - 1}."
                )
            return element(self, int(index) % size)
        return sliced(self, index if isinstance(index, tuple) else (index,))


def to_array(tensor: Any, batch: int) -> numpy.ndarray[Any, Any]:
    """A stored tensor as an array of DyNet's dimensions, the batch last; of float64, as DyNet's are."""
    array = tensor.detach().numpy().T
    if array.ndim <= (batch != 1):
        array = array.reshape((1,) if batch == 1 else (1, batch))
    return numpy.array(array, numpy.float64, order="C")


def aligned(x: Expression, y: Expression) -> tuple[Any, Any, int]:
    """The tensors of two expressions so that they broadcast, and the size of the batch."""
    a, b, p, q = x._tensor, y._tensor, x._batch, y._batch
    if p == 1 and q == 1:
        return a, b, 1
    if p != q and p != 1 and q != 1:
        raise ValueError(
            f"batches of {p} and {q} elements. Give both the same, or one of them a single element."
        )
    n, m = a.ndim - (p != 1), b.ndim - (q != 1)
    if n < m and p != 1:
        a = a.reshape(p, *[1] * (m - n), *a.shape[1:])
    elif m < n and q != 1:
        b = b.reshape(q, *[1] * (n - m), *b.shape[1:])
    return a, b, q if p == 1 else p


def need_alike(what: str, *xs: Expression) -> None:
    """Raise ValueError unless all expressions have the same dimensions; those of 1 at the end do not count."""
    first = xs[0]._tensor.shape
    if all(x._batch == 1 and x._tensor.shape == first for x in xs):
        return
    dims = [x.dim()[0] for x in xs]
    for other in dims[1:]:
        count = max(len(dims[0]), len(other))
        one, two = ((*given, *[1] * (count - len(given))) for given in (dims[0], other))
        if one != two:
            raise ValueError(
                f"{what}: dimensions {dims[0]} and {other}. Give expressions of the same dimensions."
            )


def of_rank(x: Expression, rank: int) -> Any:
    """The tensor of ``x`` with at least ``rank`` dimensions beside the batch: further ones are 1."""
    tensor = x._tensor
    missing = rank + (x._batch != 1) - tensor.ndim
    if missing <= 0:
        return tensor
    shape = tuple(tensor.shape)
    if x._batch == 1:
        return tensor.reshape([1] * missing + list(shape))
    return tensor.reshape([shape[0]] + [1] * missing + list(shape[1:]))


def rank_of(x: Expression) -> int:
    """How many dimensions an element of the batch is stored with."""
    return x._tensor.ndim - (x._batch != 1)


def matrix_product(x: Expression, y: Expression) -> Expression:
    """``x * y`` of matrices; a vector is a matrix of one column."""
    a, b, p, q = x._tensor, y._tensor, x._batch, y._batch
    if p == 1 and q == 1 and a.ndim == 2 and b.ndim:
        return Expression(product(b, a))
    n, m = a.ndim - (p != 1), b.ndim - (q != 1)
    if n < 2:
        if m and b.shape[-1] != 1:
            raise ValueError(
                f"matrix product: the inner dimensions differ, of {x.dim()[0]} and {y.dim()[0]}. "
                "Use cmult for a product element by element."
            )
        a, b, batch = aligned(x, y)
        return Expression(a * b, batch)
    if m == 0:
        b = b.reshape(-1, 1) if q != 1 else b.reshape(1)
    if p != 1 and q != 1 and m < 2:
        if p != q:
            raise ValueError(
                f"batches of {p} and {q} elements. Give both the same, or one of them a single element."
            )
        return Expression(product(b.unsqueeze(1), a).squeeze(1), p)
    return Expression(product(b, a), q if p == 1 else p)


def product(b: Any, a: Any) -> Any:
    """``a * b`` in DyNet's order of dimensions; raises ShapeError in these where the inner ones differ."""
    try:
        return b @ a
    except ShapeError as error:
        left, right = (tuple(reversed(one.shape)) for one in (a, b))
        worded = ShapeError(
            f"*: inner dimensions differ, {left[1]} columns against {right[0]} rows: "
            + describe_operand("left", f"{a.type_.dtype.name} {left}", a._where)
            + describe_operand(", right", f"{b.type_.dtype.name} {right}", b._where),
            f"Make the left one of {right[0]} columns, or transpose one of them.",
        )
        worded.__traceback__ = error.__traceback__
        raise worded from None


def element(x: Expression, index: int, dim: int = 0) -> Expression:
    """The element of ``x`` at ``index`` along ``dim``, which disappears."""
    tensor, batch = x._tensor, x._batch
    rank = tensor.ndim - (batch != 1)
    if dim >= max(rank, 1):
        raise ValueError(
            f"pick: dimension {dim} of an expression of dimensions {x.dim()[0]}. Use one from 0 to {max(rank, 1) - 1}."
        )
    if index < 0 or (rank == 0 and index):
        raise IndexError(
            f"index {index} of an expression of dimensions {x.dim()[0]}. Use one from 0 to its size minus 1."
        )
    if rank == 0:
        return x
    if tensor.ndim == 1:
        return Expression(tensor.gather(0, index))
    return Expression(tensor.index_select(-1 - dim, index), batch)


def sliced(x: Expression, slices: tuple[Any, ...]) -> Expression:
    """Slices along the first dimensions; one more than there are dimensions is for the batch."""
    if not all(isinstance(one, slice) for one in slices):
        raise TypeError("an expression is indexed by a number, a slice or several slices")
    dims, batch = x.dim()
    tensor = of_rank(x, len(dims))
    if len(slices) > len(dims) + 1:
        raise IndexError(f"{len(slices)} slices of an expression of dimensions {dims}")
    if batch == 1 and len(slices) > len(dims):
        tensor = tensor.unsqueeze(0)
    slices += (slice(None),) * (tensor.ndim - len(slices))
    for one in slices:
        if one.step is not None and one.step <= 0:
            raise IndexError(f"the step of a slice must be positive, not {one.step}")
    made = tensor[tuple(slices[::-1])]
    if made.ndim == len(dims):
        return Expression(made)
    return batched(made)


def batched(tensor: Any) -> Expression:
    """An expression of a tensor whose first axis is the batch, whatever its size."""
    size = tensor.shape[0]
    return Expression(tensor, size) if size != 1 else Expression(tensor.squeeze(0))


class Values:
    """Computed values, with DyNet's functions to look at them: the ``Tensor`` of its interface."""

    def __init__(self, tensor: Any, batch: int) -> None:
        self._tensor, self._batch = tensor, batch

    def as_numpy(self) -> numpy.ndarray[Any, Any]:
        """The values as an array."""
        return to_array(self._tensor, self._batch)

    def __str__(self) -> str:
        return str(self.as_numpy())

    def argmax(self, dim: int = 0, num: int = 1) -> Values:
        """The indices of the ``num`` largest values along ``dim``, the largest first."""
        return self.topk(dim, num)[1]

    def topk(self, dim: int = 0, num: int = 1) -> tuple[Values, Values]:
        """The ``num`` largest values along ``dim`` and their indices, the largest first."""
        values, indices = PUBLIC["topk"](self._tensor, num, -1 - dim)
        return Values(values, self._batch), Values(indices, self._batch)

    def categorical_sample_log_prob(self, dim: int = 0, num: int = 1) -> Values:
        """``num`` indices along ``dim``, sampled by the logarithms of their probabilities."""
        moved = PUBLIC["movedim"](self._tensor, -1 - dim, -1)
        rows = PUBLIC["softmax"](moved.reshape(-1, moved.shape[-1]), -1)
        sampled = rows.multinomial(num, replacement=True).reshape(*moved.shape[:-1], num)
        return Values(PUBLIC["movedim"](sampled, -1, -1 - dim), self._batch)
