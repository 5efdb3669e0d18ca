"""Parametrisations: a tensor of a module computed from others at every use, so that it keeps a property.

The module becomes an instance of a class of its own, on which the tensor is a property; the tensors it is
computed from are parameters of ``module.parametrizations.<name>``.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from twofold import _core
from twofold.nn.containers import ModuleDict, ModuleList
from twofold.nn.module import Module
from twofold.nn.parameter import Parameter

Tensor = _core.Tensor

_cached: dict[tuple[int, str], Tensor] = {}
_depth = [0]


@contextmanager
def cached() -> Iterator[None]:
    """Compute every parametrised tensor only once inside a ``with`` block."""
    _depth[0] += 1
    try:
        yield
    finally:
        _depth[0] -= 1
        if not _depth[0]:
            _cached.clear()


class ParametrizationList(ModuleList):
    """The parametrisations of one tensor, applied one after the other, and what the first starts from.

    That is ``original``, or ``original0``, ``original1``, ... where a ``right_inverse`` gives several tensors.
    """

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        super().__init__(modules)
        self.unsafe = unsafe
        value: Any = original
        for module in reversed(list(modules)):
            if hasattr(module, "right_inverse"):
                with _no_grad(), suppress(NotImplementedError):  # one that has none starts from the value
                    value = module.right_inverse(value)
        self.is_tensor = isinstance(value, Tensor)
        self.ntensors = 1 if self.is_tensor else len(value)
        if self.is_tensor:
            self._put("original", value if value is not original else original, original)
        else:
            for k, part in enumerate(value):
                self._put(f"original{k}", part, original)

    def _put(self, name: str, value: Tensor, like: Tensor) -> None:
        if value is like and isinstance(like, Parameter):
            self.register_parameter(name, like)
        elif isinstance(like, Parameter):
            self.register_parameter(name, Parameter(value.detach(), like.requires_grad))
        else:
            self.register_buffer(name, value.detach())

    def originals(self) -> tuple[Tensor, ...]:
        """What the first parametrisation is given."""
        if self.is_tensor:
            return (self.original,)
        return tuple(getattr(self, f"original{k}") for k in range(self.ntensors))

    def right_inverse(self, value: Tensor) -> None:
        """Set the originals so that the parametrised tensor becomes ``value``, as far as it can."""
        with _no_grad():
            found: Any = value
            for module in reversed(list(self.children())):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse."
                    )
                found = module.right_inverse(found)
            for old, new in zip(self.originals(), (found,) if self.is_tensor else found, strict=True):
                old.copy_(new)

    def forward(self) -> Tensor:
        """The parametrised tensor."""
        first, *rest = list(self.children())
        value = first(*self.originals())
        for module in rest:
            value = module(value)
        return value


@contextmanager
def _no_grad() -> Iterator[None]:
    with _core.GradientMode(False):
        yield


def _property(name: str) -> property:
    def compute(self: Any) -> Tensor:
        made: Any = self.parametrizations[name]
        if not _depth[0]:
            return made()
        key = (id(self), name)
        if key not in _cached:
            _cached[key] = made()
        return _cached[key]

    return property(compute, lambda self, value: self.parametrizations[name].right_inverse(value))


def _own_class(module: Module) -> None:
    """Make ``module`` the only instance of a class derived from its own."""
    base = type(module)

    def reduce(self: Any, protocol: Any = None) -> Any:
        raise RuntimeError("a module with parametrizations cannot be pickled. Save its state_dict().")

    def deepcopy(self: Any, memo: dict[int, Any]) -> Any:
        members = {name: value for name, value in vars(type(self)).items() if isinstance(value, property)}
        made = base.__new__(base)
        memo[id(self)] = made
        made.__setstate__(copy.deepcopy(self.__getstate__(), memo))
        _own_class(made)
        for name, value in members.items():
            setattr(type(made), name, value)
        return made

    own = {"__reduce_ex__": reduce, "__deepcopy__": deepcopy}
    module.__class__ = type(f"Parametrized{base.__name__}", (base,), own)


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Compute the parameter or buffer ``tensor_name`` by ``parametrization`` whenever it is read.

    ``parametrization.right_inverse``, if there is one, gives the start. Several are applied in the order they
    were registered. Unless ``unsafe``, dtype and shape must stay the same. Raises ValueError otherwise, and
    where there is no such tensor.

    >>> import twofold as torch
    >>> class Symmetric(torch.nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).mT
    >>> layer = torch.nn.Linear(3, 3)
    >>> layer = torch.nn.utils.parametrize.register_parametrization(layer, "weight", Symmetric())
    >>> bool((layer.weight == layer.weight.mT).all())
    True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        given: Any = module
        parts = given.parametrizations[tensor_name]
        if hasattr(parametrization, "right_inverse"):
            with _no_grad():
                wanted = getattr(module, tensor_name)
                if parametrization(parametrization.right_inverse(wanted)).shape != wanted.shape:
                    raise ValueError(f"the parametrization changes the shape {tuple(wanted.shape)}")
        parts.append(parametrization)
        return module
    members = {**module._buffers, **module._parameters}
    original = members.get(tensor_name)
    if original is None:
        raise ValueError(f"module {module!r} does not have a parameter, a buffer, or a parametrized element "
                         f"with name {tensor_name!r}")  # fmt: skip
    made = ParametrizationList([parametrization], original, unsafe)
    with _no_grad():
        value = made()
    if not unsafe and (value.dtype is not original.dtype or value.shape != original.shape):
        raise ValueError(
            f"the parametrization makes {value.type_} of {original.type_}. Pass unsafe=True to allow it."
        )
    delattr(module, tensor_name)
    if not is_parametrized(module):
        _own_class(module)
        module.parametrizations = ModuleDict()
    module.parametrizations[tensor_name] = made
    setattr(type(module), tensor_name, _property(tensor_name))
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a tensor (None: any) of the module is parametrised."""
    found = module._modules.get("parametrizations")
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make ``tensor_name`` a plain tensor again: with its present value, or with that of the original.

    Raises ValueError where it is not parametrised, or where there are several originals and
    ``leave_parametrized`` is False.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"module {module!r} does not have a parametrization on {tensor_name}")
    given: Any = module
    parts = given.parametrizations[tensor_name]
    originals = parts.originals()
    if not leave_parametrized and len(originals) > 1:
        raise ValueError("leave_parametrized=False needs a tensor with one original.")
    with _no_grad():
        value = getattr(module, tensor_name).detach().clone() if leave_parametrized else originals[0]
    learned = isinstance(originals[0], Parameter)
    delattr(type(module), tensor_name)
    del given.parametrizations[tensor_name]
    if learned:
        kept = value if isinstance(value, Parameter) else Parameter(value, originals[0].requires_grad)
        module.register_parameter(tensor_name, kept)
    else:
        module.register_buffer(tensor_name, value)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__mro__[1]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class of the module without its parametrisations."""
    return inspect.getmro(type(module))[1] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Give ``to_module`` the parametrisations of ``from_module`` (of one tensor, or all) and their originals."""
    if not is_parametrized(from_module, tensor_name):
        return to_module
    source: Any = from_module
    for name in [tensor_name] if tensor_name is not None else list(source.parametrizations):
        parts = source.parametrizations[name]
        if name not in {**to_module._parameters, **to_module._buffers} and not is_parametrized(
            to_module, name
        ):
            to_module.register_parameter(name, Parameter(getattr(from_module, name).detach().clone()))
        for part in list(parts.children()):
            register_parametrization(to_module, name, part, unsafe=parts.unsafe)
        target: Any = to_module
        with _no_grad():
            for old, new in zip(target.parametrizations[name].originals(), parts.originals(), strict=True):
                old.copy_(new)
    return to_module
