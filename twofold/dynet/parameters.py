"""Parameters, tables of them, and the collections that own and name them."""

from __future__ import annotations

from typing import Any

import numpy

from twofold.dynet import storage
from twofold.dynet.expression import Expression
from twofold.dynet.graph import state
from twofold.frontend.creation import CREATION, from_numpy
from twofold.frontend.gradients import no_grad
from twofold.frontend.install import PUBLIC

_embedding = PUBLIC["embedding"]
_no_grad = no_grad()


class Parameter(Expression):
    """What parameters and tables share: a name, values, gradients and files."""

    __slots__ = ("_name", "_updated", "collection")
    kind = ""

    def __init__(self, tensor: Any, name: str, collection: Any) -> None:
        super().__init__(tensor)
        self._name, self._updated, self.collection = name, True, collection
        tensor.requires_grad = True

    def name(self) -> str:
        """The full name."""
        return self._name

    def is_updated(self) -> bool:
        """Whether trainers change the parameter."""
        return self._updated

    def set_updated(self, b: bool) -> None:
        """Set whether trainers change the parameter."""
        self._updated = bool(b)

    def _clear(self) -> None:
        """Forget the gradient."""
        self._tensor.grad = None

    def _set(self, value: Any) -> None:
        state.updates += 1
        with _no_grad:
            self._tensor._assign(value)

    def _stored(self) -> Any:
        """The tensor of the values."""
        return self._tensor

    def zero(self) -> None:
        """Set all values to 0."""
        self._set(CREATION["zeros_like"](self._stored()))

    def scale(self, s: float) -> None:
        """Multiply all values by ``s``."""
        self._set(self._stored().detach() * s)

    def scale_gradient(self, s: float) -> None:
        """Multiply the gradient by ``s``."""
        if self._tensor.grad is not None:
            self._tensor.grad = self._tensor.grad.detach() * s

    def _gradient(self) -> Any:
        gradient = self._tensor.grad
        return CREATION["zeros_like"](self._tensor.detach()) if gradient is None else gradient

    def shape(self) -> tuple[int, ...]:
        """The dimensions; of a table, the number of rows first."""
        return self._arranged(tuple(self._stored().shape))

    def _arranged(self, axes: tuple[int, ...]) -> tuple[int, ...]:
        return axes[::-1]

    def _array(self, tensor: Any) -> numpy.ndarray[Any, Any]:
        """Stored values in the order of ``shape``, of float64, as DyNet's are."""
        array = tensor.detach().numpy()
        axes = self._arranged(tuple(range(array.ndim)))
        return numpy.array(array.transpose(axes), numpy.float64, order="C")

    def as_array(self) -> numpy.ndarray[Any, Any]:
        """The values."""
        return self._array(self._stored())

    def grad_as_array(self) -> numpy.ndarray[Any, Any]:
        """The gradient, which backward passes since the last update added up."""
        return self._array(self._gradient())

    def _assign_array(self, arr: Any) -> None:
        array = numpy.asarray(arr, numpy.float32)
        if array.shape != self.shape():
            raise ValueError(
                f"an array of shape {array.shape} does not fit {self} of shape {self.shape()}. Give one of that shape."
            )
        axes = self._arranged(tuple(range(array.ndim)))
        self._set(from_numpy(numpy.array(array.transpose(axes), order="C")))

    def save(self, fname: str, key: str = "", append: bool = False) -> None:
        """Write the values to a file, under ``key`` or the name; ``append`` keeps what the file holds."""
        storage.write(fname, [(key or self._name, self)], append)

    def populate(self, fname: str, key: str = "") -> None:
        """Read the values from a file: those under ``key``, or the first ones."""
        storage.populate_one(self, fname, key)

    def write_to_textfile(self, fname: str, key: str = "", append: bool = False) -> None:
        """Write the values in DyNet's text format."""
        storage.write_text(fname, [(key or self._name, self)], append)

    def populate_from_textfile(self, fname: str, key: str = "") -> None:
        """Read the values from a file, of DyNet's text format too."""
        self.populate(fname, key)


class Parameters(Parameter):
    """A parameter, which is an expression itself.

    >>> import twofold.dynet as dy
    >>> p = dy.ParameterCollection().add_parameters((2, 3), init=1)
    >>> p, p.shape(), (p * dy.inputVector([1, 2, 3])).value()
    (Parameter /_0, (2, 3), [6.0, 6.0])
    """

    __slots__ = ()
    kind = "Parameter"

    def __repr__(self) -> str:
        return f"Parameter {self._name}"

    def expr(self, update: bool = False) -> Expression:
        """The parameter with ``update``, else a constant of its values."""
        return self if update else Expression(self._tensor.detach())

    def set_value(self, arr: Any) -> None:
        """Assign the values of an array."""
        self._assign_array(arr)

    def clip_inplace(self, left: float, right: float) -> None:
        """Limit all values to ``left`` and ``right``."""
        self._set(self._tensor.detach().clamp(left, right))


def parameter(*args: Any) -> Any:
    """The parameters themselves: they are expressions. One gives one, several give a list.

    >>> import twofold.dynet as dy
    >>> p = dy.Model().add_parameters(2)
    >>> dy.parameter(p) is p
    True
    """
    items = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
    return items[0] if len(items) == 1 and items is args else list(items)


def const_parameter(*args: Any) -> Any:
    """Parameters as constants, through which no gradient flows."""
    items = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
    made = [Expression(p._tensor.detach()) for p in items]
    return made[0] if len(made) == 1 and items is args else made
