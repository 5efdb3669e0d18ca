"""Parameters: tensors that a module owns and an optimiser changes."""

from __future__ import annotations

import copy
import weakref
from importlib import import_module
from typing import Any

from twofold import _core
from twofold.frontend.creation import tensor

Tensor = _core.Tensor


class _ParameterClass(type(Tensor)):  # type: ignore[misc]
    """The class of ``Parameter``: parameters are also the tensors of other classes that were made ones."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if super().__instancecheck__(instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False)


class Parameter(Tensor, metaclass=_ParameterClass):
    """A tensor that becomes a parameter of the module it is assigned to; it requires grad by default.

    It shares the memory of ``data`` and is a leaf of its own. Of a tensor whose class handles calls
    (``__torch_function__``) it has the class. Raises TypeError where ``data`` is no tensor.

    >>> import twofold as torch
    >>> torch.nn.Parameter(torch.ones(2))
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    """

    __torch_function__ = _core.disabled_torch_function

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        """Make a leaf with the memory of ``data``."""
        if data is None:
            data = tensor([])
        elif not isinstance(data, Tensor):
            raise TypeError(f"Parameter: data is of type {type(data).__name__}. Give a tensor.")
        elif type(data) is not Tensor and cls is Parameter and _core.has_torch_function(data):
            return _of_its_class(data, requires_grad)
        made = super().__new__(cls, data)
        if requires_grad:
            made.requires_grad = True
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        """A parameter of its own, with the attributes but without the gradient."""
        made = type(self)(self.detach().clone())
        made.requires_grad = self.requires_grad
        memo[id(self)] = made
        made.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return made


def _of_its_class(data: Tensor, requires_grad: bool) -> Tensor:
    made = data.detach()
    if type(made) is not type(data):
        raise RuntimeError(
            f"Parameter: detach() of a {type(data).__name__} gives a {type(made).__name__}. Let its "
            "__torch_function__ give one of its own class."
        )
    made.requires_grad = requires_grad
    made._is_param = True  # type: ignore[attr-defined]
    return made


class Buffer(Tensor):
    """A tensor that becomes a buffer of the module it is assigned to; in its state if ``persistent``.

    >>> import twofold as torch
    >>> module = torch.nn.Module()
    >>> module.scale = torch.nn.Buffer(torch.tensor([2.0]))
    >>> module.state_dict()
    OrderedDict([('scale', tensor([2.]))])
    """

    persistent: bool
    __torch_function__ = _core.disabled_torch_function

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        """Make a tensor with the memory of ``data``."""
        made = super().__new__(cls, tensor([]) if data is None else data)
        made.persistent = persistent
        return made


def _is_asked(cls: type) -> bool:
    """Whether a class of a program has a ``__getattr__`` of its own."""
    having = next((one for one in cls.__mro__ if "__getattr__" in vars(one)), None)
    return having is not None and not having.__module__.startswith("twofold.")


class Registry(dict[str, Any]):
    """The parameters, buffers or children of a module by name, each also a plain attribute of the module.

    Reading an attribute then costs no search through the registries, and writing to a registry directly
    works. What the class of the module has, such as the method ``parameters``, is not hidden by a child of that name.
    A class with a ``__getattr__`` of its own is asked for each, as in PyTorch: its modules have no such attributes.
    """

    __slots__ = ("_owner",)

    def __init__(self, owner: Any) -> None:
        super().__init__()
        self._owner = weakref.ref(owner)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Copies and files hold a dictionary, which the module that gets it makes its own."""
        return dict, (dict(self),)

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        owner = self._owner()
        if owner is not None and not hasattr(type(owner), name) and not _is_asked(type(owner)):
            owner.__dict__[name] = value

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        self._forget(name)

    def _forget(self, name: str) -> None:
        owner = self._owner()
        if owner is not None:
            owner.__dict__.pop(name, None)

    def pop(self, name: str, *default: Any) -> Any:
        """Take an entry out and return it."""
        if name in self:
            self._forget(name)
        return super().pop(name, *default)

    def popitem(self) -> tuple[str, Any]:
        """Take the last entry out and return its name and value."""
        name, value = super().popitem()
        self._forget(name)
        return name, value

    def setdefault(self, name: str, default: Any = None) -> Any:
        """The entry of a name, which becomes ``default`` if there is none."""
        if name not in self:
            self[name] = default
        return self[name]

    def __ior__(self, other: Any) -> Registry:  # type: ignore[override,misc]
        self.update(other)
        return self

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Set several entries."""
        for name, value in dict(*args, **kwargs).items():
            self[name] = value

    def clear(self) -> None:
        """Take all entries out."""
        for name in list(self):
            del self[name]


def is_lazy(param: Any) -> bool:
    """Whether a parameter's shape is not known yet.

    >>> import twofold as torch
    >>> torch.nn.parameter.is_lazy(torch.nn.LazyLinear(2).weight)
    True
    """
    return isinstance(param, __getattr__("UninitializedParameter"))


def __getattr__(name: str) -> Any:
    # layers of unknown sizes are made of parameters, and have this one
    if name not in ("UninitializedBuffer", "UninitializedParameter", "UninitializedTensorMixin"):
        raise AttributeError(f"module {__name__} has no attribute {name!r}", name=name)
    return getattr(import_module("twofold.nn.lazy"), name)
