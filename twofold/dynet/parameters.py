"""Parameters, tables of them, and the collections that own and name them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy

from twofold.dynet import storage
from twofold.dynet.elementwise import check_device
from twofold.dynet.expression import Expression, batched, to_array
from twofold.dynet.graph import operation, replayable, state
from twofold.dynet.initializers import NumpyInitializer, chosen
from twofold.dynet.options import weight_decay
from twofold.dynet.shapes import indices_of
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

    def _set(self, value: Any) -> None:
        state.updates += 1
        with _no_grad:
            self._tensor._assign(value)

    def zero(self) -> None:
        """Set all values to 0."""
        self._set(CREATION["zeros_like"](self._tensor))

    def scale(self, s: float) -> None:
        """Multiply all values by ``s``."""
        self._set(self._tensor.detach() * s)

    def scale_gradient(self, s: float) -> None:
        """Multiply the gradient by ``s``."""
        if self._tensor.grad is not None:
            self._tensor.grad = self._tensor.grad.detach() * s

    def _gradient(self) -> Any:
        gradient = self._tensor.grad
        return CREATION["zeros_like"](self._tensor.detach()) if gradient is None else gradient

    def shape(self) -> tuple[int, ...]:
        """The dimensions; of a table, the number of rows first."""
        return self._arranged(tuple(self._tensor.shape))

    def _arranged(self, axes: tuple[int, ...]) -> tuple[int, ...]:
        return axes[::-1]

    def _array(self, tensor: Any) -> numpy.ndarray[Any, Any]:
        """Stored values in the order of ``shape``."""
        array = tensor.detach().numpy()
        return numpy.array(array.transpose(self._arranged(tuple(range(array.ndim)))), order="C")

    def as_array(self) -> numpy.ndarray[Any, Any]:
        """The values."""
        return self._array(self._tensor)

    def grad_as_array(self) -> numpy.ndarray[Any, Any]:
        """The gradient, which backward passes since the last update added up."""
        return self._array(self._gradient())

    def _assign_array(self, arr: Any) -> None:
        array = numpy.asarray(arr, numpy.float32)
        if array.shape != self.shape():
            raise ValueError(f"an array of shape {array.shape} does not fit {self} of shape {self.shape()}")
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

    def expr(self, update: bool = True) -> Expression:
        """The parameter, or without ``update`` a constant of its values."""
        return self if update else Expression(self._tensor.detach())

    def set_value(self, arr: Any) -> None:
        """Assign the values of an array."""
        self._assign_array(arr)

    def clip_inplace(self, left: float, right: float) -> None:
        """Limit all values to ``left`` and ``right``."""
        self._set(self._tensor.detach().clamp(left, right))


class LookupParameters(Parameter):
    """A table of vectors, or of expressions of more dimensions, by number.

    >>> import twofold.dynet as dy
    >>> table = dy.ParameterCollection().add_lookup_parameters((5, 2), init=3)
    >>> table[1].value(), table.batch([0, 4]).dim()
    ([3.0, 3.0], ((2,), 2))
    """

    __slots__ = ()
    kind = "LookupParameter"

    def __repr__(self) -> str:
        return f"LookupParameter {self._name}"

    def _arranged(self, axes: tuple[int, ...]) -> tuple[int, ...]:
        return (axes[0], *axes[:0:-1])

    def __len__(self) -> int:
        return int(self._tensor.shape[0])

    def __getitem__(self, index: int) -> Expression:
        return lookup(self, index)

    def __iter__(self) -> Iterator[Expression]:
        return (lookup(self, i) for i in range(len(self)))

    def batch(self, i: Sequence[int]) -> Expression:
        """A batch of rows."""
        return lookup_batch(self, i)

    def expr(self) -> LookupParameters:
        """The whole table, which is an expression itself."""
        return self

    def init_from_array(self, arr: Any) -> None:
        """Assign the first rows."""
        array = numpy.asarray(arr, numpy.float32)
        if len(array) > len(self):
            raise ValueError(f"{len(array)} rows for {self} of {len(self)}")
        values = self.as_array()
        values[: len(array)] = array
        self._assign_array(values)

    def init_row(self, i: int, row: Any) -> None:
        """Assign a row, from a list of its numbers column by column."""
        values = self._tensor.detach().numpy().copy()
        values[i] = numpy.asarray(row, numpy.float32).reshape(values[i].shape)
        self._set(from_numpy(values))

    def row_as_array(self, row: int) -> numpy.ndarray[Any, Any]:
        """The values of a row."""
        return to_array(self._tensor[row], 1)

    def rows_as_array(self, rows: Sequence[int]) -> numpy.ndarray[Any, Any]:
        """The values of some rows."""
        return self.as_array()[list(rows)]

    def row_grad_as_array(self, row: int) -> numpy.ndarray[Any, Any]:
        """The gradient of a row."""
        return to_array(self._gradient()[row], 1)

    def rows_grad_as_array(self, rows: Sequence[int]) -> numpy.ndarray[Any, Any]:
        """The gradients of some rows."""
        return self.grad_as_array()[list(rows)]


class LookedUp(Expression):
    """A row of a table whose index may be assigned."""

    __slots__ = ("index",)

    def set(self, i: Any) -> None:
        """Look up another row when a value is next looked at."""
        self.index = i
        replayable().outdated = True


def lookup(p: LookupParameters, index: int | None = None, update: bool = True) -> Expression:
    """The row of a table at ``index``; without an index the first, until another is assigned by ``set``.

    With ``update=False`` it is a constant, through which no gradient flows.

    >>> import twofold.dynet as dy
    >>> table = dy.Model().add_lookup_parameters((3, 2), init=1)
    >>> dy.lookup(table, 2).value()
    [1.0, 1.0]
    """
    if index is not None:
        return _row(p, index, update)
    replayable()
    made = LookedUp(p._tensor)
    made.index = 0
    return _assigned_row(made, p, update)


@operation
def _row(p: LookupParameters, index: int, update: bool) -> Expression:
    table = p._tensor
    count = table.shape[0]
    if not 0 <= index < count:
        raise IndexError(f"row {index} of a table of {count}")
    if not update:
        table = table.detach()
    if table.ndim == 2:
        return Expression(_embedding(int(index), table))
    return Expression(table.index_select(0, int(index)))


@operation
def _assigned_row(made: LookedUp, p: LookupParameters, update: bool) -> Expression:
    made._tensor = _row(p, made.index, update)._tensor
    return made


@operation
def lookup_batch(p: LookupParameters, indices: Sequence[int], update: bool = True) -> Expression:
    """A batch of the rows of a table at ``indices``."""
    table = p._tensor if update else p._tensor.detach()
    places = indices_of(indices)
    rows = _embedding(places, table) if table.ndim == 2 else table.index_select(0, places)
    return batched(rows)


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


class ParameterCollection:
    """Parameters under one name, which ends with a slash.

    >>> import twofold.dynet as dy
    >>> m = dy.ParameterCollection()
    >>> sub = m.add_subcollection("encoder")
    >>> sub.add_parameters(3, name="b").name(), m.add_parameters(3).name(), m.parameter_count()
    ('/encoder/b', '/_0', 6)
    """

    def __init__(self, parent: ParameterCollection | None = None) -> None:
        self._parent: ParameterCollection | None = None
        self._name = "/"
        self._own: list[Any] = []
        self._taken: dict[tuple[str, bool], int] = {}
        self._decay = weight_decay()
        if parent is not None:
            self._parent, self._name = parent, parent._free_name("", True) + "/"

    def name(self) -> str:
        """The full name."""
        return self._name

    def _free_name(self, name: str, collection: bool) -> str:
        if "/" in name or " " in name:
            raise ValueError(f"the name {name!r} holds a slash or a space")
        count = self._taken.get((name, collection), 0)
        self._taken[name, collection] = count + 1
        return self._name + (f"{name}_{count}" if count or not name else name)

    def _enter(self, made: Any) -> None:
        owner: ParameterCollection | None = self
        while owner is not None:
            owner._own.append(made)
            owner = owner._parent

    def add_subcollection(self, name: str | None = None) -> ParameterCollection:
        """A collection that belongs to this one."""
        made = ParameterCollection()
        made._parent, made._name = self, self._free_name(name or "", True) + "/"
        return made

    def add_parameters(
        self,
        dim: Any,
        init: Any = None,
        name: str = "",
        device: str = "",
        scale: float = 1.0,
        mean: float = 0.0,
        std: float = 1.0,
    ) -> Parameters:
        """Add a parameter.

        Args:
            dim: The dimensions.
            init: A number, an array, an initialiser, or one of glorot (default), uniform, normal, identity, saxe, he.
            name: The name inside of the collection.
            device: The name of the device: ``"CPU"``.
            scale: The largest value of "uniform".
            mean: The mean of "normal".
            std: The standard deviation of "normal".

        >>> import twofold.dynet as dy
        >>> dy.Model().add_parameters((2, 2), init="identity").as_array()
        array([[1., 0.],
               [0., 1.]], dtype=float32)
        """
        check_device(device)
        if isinstance(init, numpy.ndarray):
            dim, init = init.shape, NumpyInitializer(init)
        dims = tuple(int(d) for d in dim) if isinstance(dim, (tuple, list)) else (int(dim),)
        values = chosen(init, dims, scale, mean, std).values(dims[::-1], False)
        made = Parameters(values, self._free_name(name, False), self)
        self._enter(made)
        return made

    def add_lookup_parameters(
        self,
        dim: Any,
        init: Any = None,
        name: str = "",
        device: str = "",
        scale: float = 1.0,
        mean: float = 0.0,
        std: float = 1.0,
    ) -> LookupParameters:
        """Add a table; ``dim`` is the number of rows and the dimensions of one. Others as in ``add_parameters``."""
        check_device(device)
        if isinstance(init, numpy.ndarray):
            dim, init = init.shape, NumpyInitializer(init)
        dims = tuple(int(d) for d in dim) if isinstance(dim, (tuple, list)) else (int(dim), 1)
        shape = (dims[0], *dims[:0:-1])
        made = LookupParameters(
            chosen(init, dims, scale, mean, std).values(shape, True), self._free_name(name, False), self
        )
        self._enter(made)
        return made

    def parameters_from_numpy(self, array: Any, name: str = "", device: str = "") -> Parameters:
        """Add a parameter with the values of an array."""
        return self.add_parameters(array.shape, numpy.asarray(array), name, device)

    def lookup_parameters_from_numpy(self, array: Any, name: str = "", device: str = "") -> LookupParameters:
        """Add a table with the rows of an array."""
        return self.add_lookup_parameters(array.shape, numpy.asarray(array), name, device)

    def parameters_list(self) -> list[Parameters]:
        """All parameters, those of collections inside too."""
        return [p for p in self._own if isinstance(p, Parameters)]

    def lookup_parameters_list(self) -> list[LookupParameters]:
        """All tables, those of collections inside too."""
        return [p for p in self._own if isinstance(p, LookupParameters)]

    def parameter_count(self) -> int:
        """How many numbers there are."""
        return sum(p._tensor.numel() for p in self._own)

    def _root(self) -> ParameterCollection:
        found = self
        while found._parent is not None:
            found = found._parent
        return found

    def get_weight_decay(self) -> float:
        """What share of every value an update takes away."""
        return self._root()._decay

    def set_weight_decay(self, lam: float) -> None:
        """Set what share of every value an update takes away."""
        if lam < 0:
            raise ValueError(f"a weight decay is not below 0; this is {lam}")
        self._root()._decay = lam

    set_weight_decay_lambda = set_weight_decay

    def _named(self, key: str) -> list[tuple[str, Any]]:
        start = len(self._name)
        return [((key.rstrip("/") + "/" if key else self._name) + p.name()[start:], p) for p in self._own]

    def save(self, fname: str, name: str = "", append: bool = False) -> None:
        """Write all values to a file, under ``name`` or that of the collection."""
        storage.write(fname, self._named(name), append)

    def populate(self, fname: str, key: str = "") -> None:
        """Read all values from a file, in the order in which they were saved; ``key`` is where their names begin."""
        storage.populate_all(self._own, fname, key)

    def write_to_textfile(self, fname: str, key: str = "", append: bool = False) -> None:
        """Write all values in DyNet's text format."""
        storage.write_text(fname, self._named(key), append)

    def populate_from_textfile(self, fname: str, key: str = "") -> None:
        """Read all values from a file, of DyNet's text format too."""
        self.populate(fname, key)

    def load_param(self, fname: str, key: str) -> Parameters:
        """Add the parameter that a file holds under ``key``."""
        return self.parameters_from_numpy(storage.one(fname, key, "Parameter"))

    def load_lookup_param(self, fname: str, key: str) -> LookupParameters:
        """Add the table that a file holds under ``key``."""
        return self.lookup_parameters_from_numpy(storage.one(fname, key, "LookupParameter"))


Model = ParameterCollection
