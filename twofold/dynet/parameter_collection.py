"""Collections, which own and name parameters."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy

from twofold.dynet import storage
from twofold.dynet.elementwise import check_device
from twofold.dynet.initializers import NumpyInitializer, chosen
from twofold.dynet.lookups import LookupParameters
from twofold.dynet.options import weight_decay
from twofold.dynet.parameters import Parameters


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

    def __repr__(self) -> str:
        held = f"{self.parameter_count()} numbers in {len(self._own)} parameters"
        return f"<dynet.ParameterCollection {self._name!r}: {held}>"

    def _repr_html_(self) -> str:
        html = import_module("twofold.frontend.html")
        return str(html.collection_html(f"ParameterCollection {self._name}", self._own))

    def name(self) -> str:
        """The full name."""
        return self._name

    def _free_name(self, name: str, collection: bool) -> str:
        if "/" in name or " " in name:
            raise ValueError(f"the name {name!r} holds a slash or a space. Leave them out.")
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
               [0., 1.]])
        """
        check_device(device)
        if isinstance(init, numpy.ndarray):
            dim, init = init.shape, NumpyInitializer(init)
        dims = tuple(int(d) for d in dim) if isinstance(dim, (tuple, list)) else (int(dim),)
        values = chosen(init, dims, scale, mean, std).values(dims[::-1])
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
        if isinstance(init, NumpyInitializer):
            raise ValueError("add_lookup_parameters: give an array of rows instead of a NumpyInitializer")
        if isinstance(init, numpy.ndarray):
            dim, init = init.shape, NumpyInitializer(numpy.moveaxis(init, 0, -1))
        dims = tuple(int(d) for d in dim) if isinstance(dim, (tuple, list)) else (int(dim), 1)
        shape = (dims[0], *dims[:0:-1])
        made = LookupParameters(
            chosen(init, dims, scale, mean, std).values(shape), self._free_name(name, False), self
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
        return sum(p._stored().numel() for p in self._own)

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
