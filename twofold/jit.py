"""PyTorch's names for scripted functions: a function stays what it is, as every program runs fused.

A scripted or traced function computes what the function computes, so it is the function itself, or the module. Files
of scripted modules are not written or read: keep the ``state_dict``.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from types import NoneType, UnionType
from typing import Any, Final, NamedTuple, NoReturn, TypeVar, Union, get_args, get_origin

from twofold.lazy import other_files
from twofold.nn.module import Module

T = TypeVar("T")

__all__ = [
    "Attribute",
    "Error",
    "Final",
    "RecursiveScriptModule",
    "ScriptFunction",
    "ScriptModule",
    "TopLevelTracedModule",
    "TracerWarning",
    "annotate",
    "export",
    "fork",
    "freeze",
    "ignore",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "optimize_for_inference",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "trace",
    "trace_module",
    "unused",
    "wait",
]


class ScriptModule(Module):
    """The base of modules that a program declares for scripts: a module. What ``script`` returns is of its own class.

    >>> import twofold as torch
    >>> class Double(torch.jit.ScriptModule):
    ...     @torch.jit.script_method
    ...     def forward(self, x):
    ...         return 2 * x
    >>> Double()(torch.ones(1))
    tensor([2.])
    >>> isinstance(torch.nn.ReLU(), torch.jit.ScriptModule)
    False
    """

    @property
    def original_name(self) -> str:
        """The name of the class."""
        return type(self).__name__


class TracerWarning(Warning):
    """What a trace would warn of: never given, as every call follows its own branches."""


class Error(Exception):
    """What compiled scripts would raise: never raised, as a function raises what its lines say."""


class RecursiveScriptModule:
    """The class of modules that PyTorch compiles from Python; here no module is one, as ``script`` returns its own.

    >>> import twofold as torch
    >>> isinstance(torch.jit.script(torch.nn.ReLU()), torch.jit.RecursiveScriptModule)
    False
    """


class TopLevelTracedModule:
    """The class of modules that PyTorch traces; here no module is one, as ``trace`` returns its own.

    >>> import twofold as torch
    >>> isinstance(torch.jit.trace(torch.nn.ReLU(), torch.ones(1)), torch.jit.TopLevelTracedModule)
    False
    """


class ScriptFunction:
    """The class of functions that PyTorch compiles; here no function is one, as ``script`` returns its own.

    >>> import twofold as torch
    >>> isinstance(torch.jit.script(torch.relu), torch.jit.ScriptFunction)
    False
    """


class TensorType:
    """The type of tensors in scripts, as annotations name it; no object is an instance of it.

    >>> import twofold as torch
    >>> isinstance(torch.ones(1), torch.TensorType)
    False
    """


class Attribute(NamedTuple):
    """A value with its type, as classes to be scripted declare it."""

    value: Any
    type: Any


def isinstance(obj: Any, target_type: Any) -> bool:
    """Whether a value is of a type; of containers, whether their elements are of the types in brackets, too.

    Args:
        obj: The value.
        target_type: A class, such a form as ``list[int]``, ``tuple[int, str]``, ``dict[str, Tensor]`` or
            ``Optional[int]``, or a tuple of them.

    >>> import twofold as torch
    >>> torch.jit.isinstance([1, 2], list[int]), torch.jit.isinstance([1, "a"], list[int])
    (True, False)
    """
    if type(target_type) is tuple:
        return any(isinstance(obj, one) for one in target_type)
    origin, parts = get_origin(target_type), get_args(target_type)
    if origin in (Union, UnionType):
        return any(isinstance(obj, NoneType if one is None else one) for one in parts)
    if origin is None or not parts:
        return builtins.isinstance(obj, origin or target_type)
    if not builtins.isinstance(obj, origin):
        return False
    if origin is dict:
        return all(isinstance(key, parts[0]) and isinstance(value, parts[1]) for key, value in obj.items())
    if origin is tuple and parts[-1] is not Ellipsis:
        return len(obj) == len(parts) and all(map(isinstance, obj, parts))
    return all(isinstance(one, parts[0]) for one in obj)


_FILES = "Keep the state_dict with torch.save, and make the module in the program that loads it."


def script(obj: T, optimize: Any = None, example_inputs: Any = None) -> T:
    """The function, class or module itself. ``example_inputs`` would tell types, which every call has itself.

    >>> import twofold as torch
    >>> @torch.jit.script
    ... def double(x):
    ...     return x * 2
    >>> double(torch.tensor([1.0, 2.0]))
    tensor([2., 4.])
    """
    return obj


def script_method(fn: T) -> T:
    """The method itself."""
    return fn


export = unused = script_if_tracing = _script_if_tracing = _overload = _overload_method = script_method


def ignore(drop: Any = False, **options: Any) -> Any:
    """The function itself; also ``ignore(drop=True)`` as a decorator."""
    return drop if callable(drop) else script_method


def trace(
    func: T,
    example_inputs: Any = None,
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    *,
    example_kwarg_inputs: Mapping[str, Any] | None = None,
) -> T:
    """The function or module itself, which unlike a trace follows the branches of each call.

    Args:
        func: The function or module.
        example_inputs: It is called once with these, a tensor or several, so that errors show here.
        optimize: Without effect, as in PyTorch.
        check_trace: Without effect, as are ``check_tolerance`` and ``strict``: a function agrees with itself.
        check_inputs: A list of further inputs that it is called with.
        check_tolerance: See ``check_trace``.
        strict: See ``check_trace``.
        example_kwarg_inputs: Arguments by name for the same call; RuntimeError beside ``example_inputs``.

    >>> import twofold as torch
    >>> layer = torch.nn.Linear(2, 1)
    >>> torch.jit.trace(layer, torch.ones(1, 2)) is layer
    True
    """
    call: Any = func
    if example_kwarg_inputs is not None:
        if example_inputs is not None:
            raise RuntimeError("only one of example_inputs and example_kwarg_inputs should be specified")
        call(**example_kwarg_inputs)
    for given in ([] if example_inputs is None else [example_inputs], check_inputs or []):
        for inputs in given:
            call(*(inputs if isinstance(inputs, (tuple, list)) else (inputs,)))
    return func


def trace_module(
    mod: T,
    inputs: Mapping[str, Any],
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
) -> T:
    """The module itself; each method that ``inputs`` names is called once with what it gives.

    Args:
        mod: The module.
        inputs: By name of a method its inputs.
        optimize: Without effect, as in PyTorch.
        check_trace: Without effect, see ``trace``.
        check_inputs: A list of further such dicts.
        check_tolerance: Without effect, see ``trace``.
        strict: Without effect, see ``trace``.

    >>> import twofold as torch
    >>> layer = torch.nn.Linear(2, 1)
    >>> torch.jit.trace_module(layer, {"forward": torch.ones(1, 2)}) is layer
    True
    """
    for named in (inputs, *(check_inputs or [])):
        for name, given in named.items():
            trace(mod if name == "forward" else getattr(mod, name), given)
    return mod


def freeze(
    mod: T, preserved_attrs: Any = None, optimize_numerics: bool = True, preserve_parameters: bool = False
) -> T:
    """The module itself; RuntimeError for one that trains."""
    if getattr(mod, "training", False):
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() first."
        )
    return mod


def optimize_for_inference(mod: T, other_methods: Any = None) -> T:
    """The module itself; RuntimeError for one that trains."""
    return freeze(mod)


def annotate(the_type: Any, the_value: T) -> T:
    """The value."""
    return the_value


def is_scripting() -> bool:
    """Whether this runs as a scripted function: no.

    >>> import twofold as torch
    >>> torch.jit.is_scripting(), torch.jit.is_tracing()
    (False, False)
    """
    return False


is_tracing = is_scripting


def save(m: Any, f: Any, _extra_files: Any = None) -> NoReturn:
    """Raise NotImplementedError: files of scripted modules are not written."""
    raise NotImplementedError(f"jit.save: scripted modules are not written to files. {_FILES}")


def load(f: Any, map_location: Any = None, _extra_files: Any = None) -> NoReturn:
    """Raise NotImplementedError: files of scripted modules are not read."""
    raise NotImplementedError(f"jit.load: files of scripted modules are not read. {_FILES}")


def fork(func: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """What the function returns, for ``wait``."""
    return func(*args, **kwargs)


def wait(future: T) -> T:
    """The result of ``fork``."""
    return future


other_files(
    __name__,
    {
        "annotations": (
            "Any=typing:Any Dict=typing:Dict List=typing:List Optional=typing:Optional Tuple=typing:Tuple "
            "BroadcastingList1=typing:List BroadcastingList2=typing:List BroadcastingList3=typing:List"
        )
    },
)
