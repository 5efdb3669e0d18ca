"""``Module``: a computation with parameters, buffers and children."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any, TypeVar

from twofold import _core
from twofold.dtypes import DType, as_dtype, bfloat16, float16, float32, float64
from twofold.frontend.function import check_compile_options
from twofold.frontend.options import check_device
from twofold.frontend.purity import stateful
from twofold.nn import state
from twofold.nn.hook_registration import Hooked
from twofold.nn.hooks import call_with_hooks, registered
from twofold.nn.parameter import Buffer, Parameter, Registry
from twofold.ops.base import FUNCTIONS
from twofold.ops.shape.contiguity import format_name
from twofold.ops.signatures import shows
from twofold.tracebacks import end_at_user

Tensor = _core.Tensor
M = TypeVar("M", bound="Module")

_REGISTRIES = ("_parameters", "_buffers", "_modules")


def indented(text: str, spaces: int) -> str:
    """``text`` with all lines but the first moved to the right."""
    return text.replace("\n", "\n" + " " * spaces)


def _own_parameters(module: Any) -> Iterable[tuple[str, Any]]:
    return module.__dict__["_parameters"].items()


def _own_buffers(module: Any) -> Iterable[tuple[str, Any]]:
    return module.__dict__["_buffers"].items()


class Module(Hooked):
    """Base of all networks: write ``__init__`` (calling ``super().__init__()``) and ``forward``.

    Parameters, buffers and modules assigned to attributes are registered and take part in ``parameters()``,
    ``state_dict()`` and ``to()``.

    >>> import twofold as torch
    >>> class Scale(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = torch.nn.Parameter(torch.tensor(2.0))
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> Scale()(torch.tensor(3.0)).item()
    6.0
    """

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]
    _version = 1
    forward: Callable[..., Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args or kwargs:
            given = (
                f"an unexpected keyword argument '{next(iter(kwargs))}'"
                if kwargs
                else f"{len(args)} positional arguments"
            )
            raise TypeError(f"{type(self).__name__}.__init__() got {given}")
        attributes = self.__dict__
        attributes["training"] = True
        for name in _REGISTRIES:
            attributes[name] = Registry(self)
        attributes["_non_persistent_buffers_set"] = set()
        attributes["_forward_hooks"] = {}
        attributes["_forward_pre_hooks"] = {}
        attributes["_backward_hooks"] = {}
        attributes["_backward_pre_hooks"] = {}

    shows(__init__, __init__, without=("args", "kwargs"))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run ``forward`` and the hooks."""
        try:
            if self._hooked:
                return call_with_hooks(self, args, kwargs)
            return self.forward(*args, **kwargs)
        except Exception as error:  # the boundary of modules, as fast as can be
            end_at_user(error)
            raise

    def forward(self, *input: Any) -> Any:  # type: ignore[no-redef]
        """The computation; every module defines it."""
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    # Attributes

    def __getattr__(self, name: str) -> Any:
        # Registered members are among the attributes, but for those of a registry that a program put there.
        for registry in _REGISTRIES:
            found = self.__dict__.get(registry)
            if found is not None and name in found:
                return found[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        attributes = self.__dict__
        if isinstance(value, Parameter):
            self._need("_parameters", "parameters")
            self._remove_from(name, "_buffers", "_modules")
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            self._need("_modules", "module")
            self._remove_from(name, "_parameters", "_buffers")
            attributes["_modules"][name] = registered("module", self, name, value)
        elif isinstance(value, Buffer):
            self._need("_buffers", "buffer")
            self._remove_from(name, "_parameters", "_modules")
            self.register_buffer(name, value, value.persistent)
        else:
            self._set_plain(name, value)

    def _set_plain(self, name: str, value: Any) -> None:
        """Set what is neither parameter nor module: a registered name takes only what fits it."""
        attributes = self.__dict__
        for registry, kind in zip(_REGISTRIES, ("parameter", "buffer", "child module"), strict=True):
            found = attributes.get(registry)
            if found is None or name not in found:
                continue
            if value is not None and not (kind == "buffer" and state.is_kept(value)):
                wanted = {
                    "parameter": "torch.nn.Parameter",
                    "buffer": "torch.Tensor",
                    "child module": "torch.nn.Module",
                }
                raise TypeError(
                    f"cannot assign '{_kind(value)}' as {kind} '{name}' ({wanted[kind]} or None expected)"
                )
            found[name] = value if kind == "parameter" else registered(kind.split()[-1], self, name, value)
            return
        if name in _REGISTRIES and isinstance(attributes.get(name), Registry):
            value = dict(value) if value is attributes[name] else value
            attributes[name].clear()
        object.__setattr__(self, name, value)

    def _need(self, registry: str, what: str) -> None:
        if registry not in self.__dict__:
            raise AttributeError(f"cannot assign {what} before Module.__init__() call")

    def _remove_from(self, name: str, *registries: str) -> None:
        attributes = self.__dict__
        for registry in registries:
            attributes[registry].pop(name, None)
        attributes.pop(name, None)
        attributes["_non_persistent_buffers_set"].discard(name)

    def __delattr__(self, name: str) -> None:
        for registry in _REGISTRIES:
            if name in self.__dict__.get(registry, ()):
                del self.__dict__[registry][name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __getstate__(self) -> dict[str, Any]:
        kept = dict(self.__dict__)
        for registry in _REGISTRIES:
            kept[registry] = dict(kept[registry])
            for name in kept[registry]:
                kept.pop(name, None)
        return kept

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__dict__.update(kept)
        for registry in _REGISTRIES:
            self.__dict__[registry] = Registry(self)
            self.__dict__[registry].update(kept[registry])

    # Registration

    def _check_name(self, name: Any, kind: str, registry: str) -> None:
        self._need(registry, {"parameter": "parameter", "buffer": "buffer"}.get(kind, "module"))
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {type(name).__name__}")
        if "." in name:
            raise KeyError(
                f'{kind} name can\'t contain "."' + (f', got: "{name}"' if kind == "module" else "")
            )
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if hasattr(self, name) and name not in self.__dict__[registry]:
            raise KeyError(f"attribute '{name}' already exists")

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter; None reserves the name."""
        self._check_name(name, "parameter", "_parameters")
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{_kind(param)}' object to parameter '{name}' "
                f"(torch.nn.Parameter or None required)"
            )
        self._parameters[name] = None if param is None else registered("parameter", self, name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that belongs to the state of the module, but that no optimiser changes."""
        self._check_name(name, "buffer", "_buffers")
        if tensor is not None and not state.is_kept(tensor):
            raise TypeError(
                f"cannot assign '{_kind(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        self._buffers[name] = registered("buffer", self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a child."""
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{type(module).__name__} is not a Module subclass")
        self._check_name(name, "module", "_modules")
        self._modules[name] = registered("module", self, name, module)

    register_module = add_module

    # Walking

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all below it, with their dotted names, each once."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                below = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, below, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """This module and all below it, each once, or with ``remove_duplicate=False`` as often as it is there."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The direct children with their names."""
        memo = set()
        for name, module in self._modules.items():
            if module is not None and module not in memo:
                memo.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """The direct children."""
        for _, module in self.named_children():
            yield module

    def _named_members(
        self, get_members_fn: Any, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """What a function gives of each module, pairs of names and members, with dotted names."""
        memo = set()
        modules = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else iter([(prefix, self)])
        )
        for position, module in modules:
            for name, member in get_members_fn(module):
                if member is None or id(member) in memo:
                    continue
                if remove_duplicate:
                    memo.add(id(member))
                yield (f"{position}.{name}" if position else name), member

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """All parameters with their dotted names."""
        return self._named_members(_own_parameters, prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """All parameters."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """All buffers with their dotted names."""
        return self._named_members(_own_buffers, prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """All buffers."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def get_submodule(self, target: str) -> Module:
        """The module with a dotted name; raises AttributeError."""
        found: Any = self
        for name in filter(None, target.split(".")):
            if not hasattr(found, name):
                raise AttributeError(f"{type(found).__name__} has no attribute `{name}`")
            found = getattr(found, name)
            if not isinstance(found, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return found

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put ``module`` at a dotted name; ``strict``: only in place of one that is there."""
        path, _, name = target.rpartition(".")
        if not name:
            raise ValueError("Cannot set the submodule without a target name!")
        parent = self.get_submodule(path)
        if strict and name not in parent._modules:
            raise AttributeError(f"{type(parent).__name__} has no attribute `{name}`")
        setattr(parent, name, module)

    def _get_member(self, target: str, registry: str, kind: str) -> Any:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if name not in module.__dict__[registry]:
            raise AttributeError(f"`{name}` is not {kind}")
        return module.__dict__[registry][name]

    def get_parameter(self, target: str) -> Parameter:
        """The parameter with a dotted name; raises AttributeError."""
        return self._get_member(target, "_parameters", "an nn.Parameter")

    def get_buffer(self, target: str) -> Tensor:
        """The buffer with a dotted name; raises AttributeError."""
        return self._get_member(target, "_buffers", "a buffer")

    # State

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> Any:
        """Parameters and persistent buffers by dotted name, detached but showing later changes."""
        names = ("destination", "prefix", "keep_vars")
        given = {"destination": destination, "prefix": prefix, "keep_vars": keep_vars} | dict(
            zip(names, args)
        )
        return state.state_of(self, **given)

    get_extra_state = state.get_extra_state
    set_extra_state = state.set_extra_state
    _save_to_state_dict = state.save_own_state
    _load_from_state_dict = state.load_own_state

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
        """Copy parameters and buffers from a state; returns the missing and the unexpected keys.

        Raises RuntimeError where shapes differ, and if ``strict`` where keys do.
        """
        return state.load_state(self, state_dict, strict, assign)

    def _apply(self: M, function: Callable[[Tensor], Tensor], recurse: bool = True) -> M:
        """Replace every parameter, gradient and buffer, here and (``recurse``) below, by ``function`` of it."""
        for module in self.children() if recurse else ():
            module._apply(function)
        with _core.GradientMode(False):
            for parameter in self._parameters.values():
                if parameter is not None:
                    _replace(parameter, function)
            for name, buffer in self._buffers.items():
                if buffer is not None:
                    self._buffers[name] = function(buffer)
        return self

    def apply(self: M, fn: Callable[[Module], Any]) -> M:
        """Call ``fn`` with every module, children first."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def to(
        self: M,
        *args: Any,
        dtype: Any = None,
        device: Any = None,
        non_blocking: bool = False,
        memory_format: Any = None,
    ) -> M:
        """Convert all floating and complex parameters and buffers to a dtype.

        ``non_blocking`` has no effect, as there is one device, nor has ``memory_format``: parameters stay in
        row-major order, and no value depends on it.
        """
        for argument in args:
            if isinstance(argument, Tensor):
                dtype = argument.dtype
            elif isinstance(argument, str) or hasattr(argument, "index"):
                device = argument
            elif argument is not None and not isinstance(argument, bool):
                dtype = argument
        check_device(device)
        if memory_format is not None:
            format_name(memory_format)
        if dtype is None:
            return self
        wanted = as_dtype(dtype)
        if wanted.kind not in "fc":
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired "
                f"dtype={wanted!r}"
            )
        return self._apply(lambda tensor: tensor.to(wanted) if tensor.dtype.kind in "fc" else tensor)

    def _with_floats(self: M, dtype: DType) -> M:
        """Convert floating parameters and buffers; complex ones stay."""
        return self._apply(lambda tensor: tensor.to(dtype) if tensor.dtype.kind == "f" else tensor)

    def float(self: M) -> M:
        """Convert to float32."""
        return self._with_floats(float32)

    def double(self: M) -> M:
        """Convert to float64."""
        return self._with_floats(float64)

    def half(self: M) -> M:
        """Convert to float16."""
        return self._with_floats(float16)

    def bfloat16(self: M) -> M:
        """Convert to bfloat16."""
        return self._with_floats(bfloat16)

    def type(self: M, dst_type: Any) -> M:
        """Convert all parameters and buffers to a dtype."""
        return self._apply(lambda tensor: tensor.type(dst_type))

    def cpu(self: M) -> M:
        """The module itself."""
        return self

    def cuda(self: M, device: Any = None) -> M:
        """Raises RuntimeError: there is no such device."""
        return self.to(device="cuda" if device is None else device)

    def to_empty(self: M, *, device: Any, recurse: bool = True) -> M:
        """Forget the values of parameters and buffers: they become 0."""
        check_device(device)
        return self._apply(FUNCTIONS["zeros_like"], recurse)

    def share_memory(self: M) -> M:
        """Move parameters and buffers to memory that processes forked from here on share; see ``share_memory_``."""
        for tensor in (*self.parameters(), *self.buffers()):
            tensor.share_memory_()
        return self

    def compile(
        self,
        *,
        fullgraph: bool = False,
        dynamic: bool | None = None,
        backend: Any = "inductor",
        mode: str | None = None,
        options: Any = None,
        disable: bool = False,
    ) -> None:
        """Check the options of ``twofold.compile``; every repeated part is compiled without being told to."""
        check_compile_options(backend, mode, options)

    def train(self: M, mode: bool = True) -> M:
        """Set training mode, here and below."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self: M) -> M:
        """Leave training mode."""
        return self.train(False)

    def requires_grad_(self: M, requires_grad: bool = True) -> M:
        """Set whether the parameters require gradients."""
        for parameter in self.parameters():
            parameter.requires_grad = requires_grad
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or make them 0."""
        for parameter in self.parameters():
            if parameter._dense_grad is None:
                continue
            if set_to_none:
                parameter.grad = None
            else:
                parameter._dense_grad.detach_().zero_()

    # Display

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """The settings of the module, as shown in its repr."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        own = extra.split("\n") if extra else []
        children = [f"({name}): {indented(repr(module), 2)}" for name, module in self._modules.items()]
        if len(own) == 1 and not children:
            return f"{self._get_name()}({own[0]})"
        lines = own + children
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)" if lines else f"{self._get_name()}()"

    def _repr_html_(self) -> str:
        return str(import_module("twofold.frontend.html").module_html(self))

    def __dir__(self) -> list[str]:
        return sorted(name for name in {*dir(type(self)), *self.__dict__} if not name[0].isdigit())


def _kind(value: Any) -> str:
    """The type of a value for a message."""
    return value.type() if isinstance(value, Tensor) else type(value).__name__


def _replace(parameter: Parameter, function: Callable[[Tensor], Tensor]) -> None:
    changed = function(parameter)
    if changed is parameter:
        return
    gradient, sparse = parameter._dense_grad, parameter._sparse_grad
    parameter.grad = None
    parameter.data = changed
    if gradient is not None:
        parameter.grad = function(gradient)
        parameter._sparse_grad = sparse


stateful.append(Module)
