"""Gradients of sparse tensors: those of their values."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from twofold import _core
from twofold.errors import ArgumentError

if TYPE_CHECKING:
    from twofold.sparse.coordinates import SparseTensor

Tensor = _core.Tensor


class HasHistory:
    """What sparse tensors say about gradients. A leaf is one whose values are none of a computation."""

    _elements: Tensor
    _coordinates: Tensor
    _with: Callable[[Tensor], SparseTensor]

    @property
    def requires_grad(self) -> bool:
        """Whether gradients of the values are recorded."""
        return bool(self._elements.requires_grad)

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        self._elements.requires_grad_(wanted)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Record gradients of the values from here on."""
        self._elements.requires_grad_(requires_grad)
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether it was made by the program, rather than computed of what requires gradients."""
        return bool(self._elements.is_leaf)

    @property
    def grad_fn(self) -> Any:
        """What computed the values, or None for a leaf."""
        return self._elements.grad_fn

    def retain_grad(self) -> None:
        """Keep the gradient though it is no leaf."""
        self._elements.retain_grad()

    @property
    def grad(self) -> SparseTensor | None:
        """The gradients of the values at their coordinates.

        What is written must be None or a sparse tensor of the same coordinates: raises ArgumentError for another one.
        """
        found = self._elements.grad
        return None if found is None else self._with(found)

    @grad.setter
    def grad(self, given: SparseTensor | None) -> None:
        if given is None:
            self._elements.grad = None
            return
        if not isinstance(given, HasHistory):
            raise ArgumentError(
                "grad of a sparse tensor: a dense tensor", "Use a sparse one of the same coordinates."
            )
        same = given._coordinates.shape == self._coordinates.shape
        if not same or not bool((given._coordinates == self._coordinates).all()):
            raise ArgumentError(
                "grad of a sparse tensor: the coordinates differ", "Give it those of the tensor."
            )
        self._elements.grad = given._elements

    @grad.deleter
    def grad(self) -> None:
        self._elements.grad = None
