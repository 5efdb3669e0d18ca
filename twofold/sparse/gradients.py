"""``RowGradient``: the gradient of a table that was looked up with ``sparse=True``."""

from __future__ import annotations

import functools
from typing import Any

from twofold import _core
from twofold.sparse.coordinates import SparseTensor, nonzeros

Tensor = _core.Tensor


class RowGradient(SparseTensor):
    """The rows of a gradient that are not all zeros, in order; in-place operations change the gradient.

    Values are found when they are first asked for. Those that a program changes one by one, without an operation of the
    gradient, are its own.

    >>> import twofold as torch
    >>> table = torch.nn.Embedding(4, 2, sparse=True)
    >>> table(torch.tensor([2, 0, 2])).sum().backward()
    >>> table.weight.grad
    tensor(indices=tensor([[0, 2]]),
           values=tensor([[1., 1.],
                          [2., 2.]]),
           size=(4, 2), nnz=2, layout=twofold.sparse_coo)
    """

    def __init__(self, gradient: Tensor) -> None:
        self._gradient, self._size, self._coalesced = gradient, gradient.shape, True

    @functools.cached_property
    def _found(self) -> SparseTensor:
        return nonzeros(self._gradient, 1, None)

    @property
    def _coordinates(self) -> Tensor:  # type: ignore[override]
        return self._found._indices()

    @property
    def _elements(self) -> Tensor:  # type: ignore[override]
        return self._found._values()

    def to_dense(self, dtype: Any = None) -> Tensor:
        """The gradient as a tensor of its own."""
        return self._gradient.clone() if dtype is None else self._gradient.to(dtype, copy=True)

    def _changed(self) -> RowGradient:
        self.__dict__.pop("_found", None)
        return self

    def mul_(self, other: Any) -> RowGradient:
        """Multiply the gradient by a number."""
        self._gradient.mul_(other)
        return self._changed()

    def div_(self, other: Any) -> RowGradient:
        """Divide the gradient by a number."""
        self._gradient.div_(other)
        return self._changed()

    def zero_(self) -> RowGradient:
        """Make the gradient zero."""
        self._gradient.zero_()
        return self._changed()

    def detach_(self) -> RowGradient:
        """Take the gradient out of its graph."""
        self._gradient.detach_()
        return self
