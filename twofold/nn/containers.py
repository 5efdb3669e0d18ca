"""Modules and parameters in sequence, in lists and in dictionaries."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

from twofold import _core
from twofold.nn.module import Module, indented
from twofold.nn.parameter import Parameter

Tensor = _core.Tensor


def _position(index: Any, count: int) -> int:
    position = operator.index(index)
    if not -count <= position < count:
        raise IndexError(f"index {position} is out of range")
    return position % count


class Sequential(Module):
    """Modules run one after the other, each on the result of the one before; also from a dictionary of names.

    >>> import twofold as torch
    >>> torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    Sequential(
      (0): Linear(in_features=2, out_features=3, bias=True)
      (1): ReLU()
    )
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], Mapping):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for index, module in enumerate(args):
                self.add_module(str(index), module)

    def forward(self, input: Any) -> Any:
        """Run the modules in order."""
        for module in self._modules.values():
            input = module(input)  # type: ignore[misc]
        return input

    def _key(self, index: Any) -> str:
        return next(islice(self._modules, _position(index, len(self)), None))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(dict(list(self._modules.items())[index]))
        return self._modules[self._key(index)]

    def __setitem__(self, index: Any, module: Module) -> None:
        setattr(self, self._key(index), module)

    def __delitem__(self, index: Any) -> None:
        for key in list(self._modules)[index] if isinstance(index, slice) else [self._key(index)]:
            delattr(self, key)
        kept = list(self._modules.values())
        self._modules.clear()
        self._modules.update({str(k): module for k, module in enumerate(kept)})

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._modules.values()))

    def __add__(self, other: Any) -> Sequential:
        return Sequential(*self, *other)

    def __iadd__(self, other: Any) -> Sequential:
        return self.extend(other)

    def __mul__(self, count: int) -> Sequential:
        """The same modules ``count`` times, one round after the other."""
        if not isinstance(count, int) or count <= 0:
            raise ValueError(f"Sequential times {count!r}. Use a positive integer.")
        return Sequential(*list(self) * count)

    __rmul__ = __mul__

    def pop(self, key: Any) -> Module:
        """Take a module out and return it."""
        module: Module = self[key]
        del self[key]
        return module

    def append(self, module: Module) -> Sequential:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Module) -> Sequential:
        """Add a module before ``index``."""
        modules = list(self)
        modules.insert(index, module)
        self._modules.clear()
        self._modules.update({str(k): one for k, one in enumerate(modules)})
        return self

    def extend(self, sequential: Iterable[Module]) -> Sequential:
        """Add modules at the end."""
        for module in list(sequential):
            self.append(module)
        return self


class ModuleList(Module):
    """A list whose modules are registered.

    >>> import twofold as torch
    >>> torch.nn.ModuleList([torch.nn.Linear(2, 2) for _ in range(3)])
    ModuleList(
      (0-2): 3 x Linear(in_features=2, out_features=2, bias=True)
    )
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self._modules.values())[index])  # type: ignore[arg-type]
        return self._modules[str(_position(index, len(self)))]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, str(_position(index, len(self))), module)

    def __delitem__(self, index: Any) -> None:
        kept = list(self._modules.values())
        del kept[index]
        self._renumber(kept)

    def _renumber(self, modules: list[Any]) -> None:
        self._modules.clear()
        self._modules.update({str(k): module for k, module in enumerate(modules)})

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._modules.values()))

    def __iadd__(self, modules: Iterable[Module]) -> ModuleList:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList(chain(self, other))

    def append(self, module: Module) -> ModuleList:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> ModuleList:
        """Add modules at the end."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}"
            )
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> None:
        """Add a module before ``index``."""
        modules = list(self)
        modules.insert(index, module)
        self._renumber(modules)

    def pop(self, key: int) -> Module:
        """Take a module out and return it."""
        found = self[key]
        del self[key]
        return found

    def __repr__(self) -> str:
        shown = [repr(module) for module in self]
        if not shown:
            return f"{self._get_name()}()"
        lines, start = [], 0
        for position in range(1, len(shown) + 1):
            if position < len(shown) and shown[position] == shown[start]:
                continue
            count = position - start
            text = (
                f"({start}): {shown[start]}"
                if count == 1
                else f"({start}-{position - 1}): {count} x {shown[start]}"
            )
            lines.append(indented(text, 2))
            start = position
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"


class ModuleDict(Module):
    """A dictionary whose modules are registered.

    >>> import twofold as torch
    >>> layers = torch.nn.ModuleDict({"first": torch.nn.Linear(2, 3), "act": torch.nn.ReLU()})
    >>> list(layers), layers["first"](torch.ones(4, 2)).shape
    (['first', 'act'], twofold.Size([4, 3]))
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Take all modules out."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Take a module out and return it."""
        return self._modules.pop(key)

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._modules.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Names and modules."""
        return self._modules.items()

    def values(self) -> Iterable[Any]:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Add modules from a dictionary or from pairs."""
        for key, module in modules.items() if hasattr(modules, "items") else modules:
            self[key] = module


def _as_parameter(value: Any) -> Any:
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _listed(items: Iterable[tuple[Any, Any]], kind: Callable[[Any], str]) -> str:
    """A line for each value under its position or name: ``kind`` says what a parameter's elements are."""
    return "\n".join(
        f"  ({key}): Parameter containing: [{kind(value)} of size {'x'.join(map(str, value.shape))}]"
        if isinstance(value, Parameter)
        else f"  ({key}): Object of type: {type(value).__name__}"
        for key, value in items
    )


class ParameterList(Module):
    """A list whose tensors are parameters.

    >>> import twofold as torch
    >>> weights = torch.nn.ParameterList([torch.ones(2), torch.zeros(3)])
    >>> [weight.shape for weight in weights.parameters()]
    [twofold.Size([2]), twofold.Size([3])]
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)([self[k] for k in range(*index.indices(len(self)))])
        return getattr(self, str(_position(index, self._size)))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, str(_position(index, self._size)), _as_parameter(value))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([self[k] for k in range(self._size)])

    def __iadd__(self, values: Iterable[Any]) -> ParameterList:
        return self.extend(values)

    def append(self, value: Any) -> ParameterList:
        """Add a tensor at the end, as a parameter."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Add tensors at the end."""
        for value in list(values):
            self.append(value)
        return self

    def extra_repr(self) -> str:
        """One line for each parameter."""
        return _listed(enumerate(self), lambda value: f"torch.{value.dtype.name}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """A list is not called."""
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dictionary whose tensors are parameters.

    >>> import twofold as torch
    >>> settings = torch.nn.ParameterDict({"scale": torch.ones(2)})
    >>> settings["scale"].requires_grad, [name for name, _ in settings.named_parameters()]
    (True, ['scale'])
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        return self._parameters[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.register_parameter(key, _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._parameters[key]

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def __contains__(self, key: object) -> bool:
        return key in self._parameters

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._parameters.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Names and parameters."""
        return self._parameters.items()

    def values(self) -> Iterable[Any]:
        """The parameters."""
        return self._parameters.values()

    def update(self, parameters: Any) -> None:
        """Add parameters from a dictionary or from pairs."""
        for key, value in parameters.items() if hasattr(parameters, "items") else parameters:
            self[key] = value

    def extra_repr(self) -> str:
        """One line for each parameter."""
        return _listed(self.items(), lambda value: f"torch.{value.type().rpartition('.')[2]}")
