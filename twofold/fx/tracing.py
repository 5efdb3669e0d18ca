"""``Tracer`` and ``symbolic_trace``: the graph of a module or function, from one call with proxies."""

from __future__ import annotations

import builtins
import inspect
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from twofold import _core
from twofold.fx.code import WRAPPED_NAMES
from twofold.fx.graph import Graph
from twofold.fx.graph_module import GraphModule
from twofold.fx.node import Argument
from twofold.fx.proxy import Proxy, TracerBase
from twofold.nn.containers import Sequential
from twofold.nn.module import Module

Tensor = _core.Tensor
_wrapped: list[tuple[dict[str, Any], str]] = []
"""The global names whose calls are recorded whole."""


def wrap(fn_or_name: Any) -> Any:
    """Record calls of a function as they are, rather than what it does.

    Args:
        fn_or_name: A function of the module that calls this, or its name, such as ``"len"``; also as a decorator.

    >>> import twofold as torch
    >>> from twofold import fx
    >>> @fx.wrap
    ... def twice(x):
    ...     return x + x
    >>> [node.name for node in fx.symbolic_trace(lambda x: twice(x).exp()).graph.nodes]
    ['x', 'twice', 'exp', 'output']
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = sys._getframe(1)
    space = (
        frame.f_globals
        if isinstance(fn_or_name, str)
        else getattr(fn_or_name, "__globals__", frame.f_globals)
    )
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    if (
        WRAPPED_NAMES not in space
    ):  # generated code names its wrapped functions itself, and lives no longer for it
        _wrapped.append((space, name))
    return fn_or_name


def _find_proxy(*values: Any) -> Proxy | None:
    for value in values:
        if isinstance(value, Proxy):
            return value
        inner = (
            value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
        )
        found = _find_proxy(*inner)
        if found is not None:
            return found
    return None


def _recording(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, whose calls with proxies are recorded."""

    def call(*args: Any, **kwargs: Any) -> Any:
        proxy = _find_proxy(args, kwargs)
        if proxy is None:
            return function(*args, **kwargs)
        made = proxy.tracer.create_proxy("call_function", function, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made

    return call


class Tracer(TracerBase):
    """Makes the graph of a module or function; methods may be overridden to change how.

    Args:
        autowrap_modules: Modules whose functions, called with proxies, are recorded as they are.
        autowrap_functions: Functions that are recorded as they are.

    >>> import twofold as torch
    >>> graph = torch.fx.Tracer().trace(torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU()))
    >>> [(node.op, node.target) for node in graph.nodes]
    [('placeholder', 'input'), ('call_module', '0'), ('call_module', '1'), ('output', 'output')]
    """

    proxy_buffer_attributes: ClassVar[bool] = False

    def __init__(
        self, autowrap_modules: tuple[Any, ...] = (math,), autowrap_functions: tuple[Any, ...] = ()
    ) -> None:
        named = [item for module in autowrap_modules for item in vars(module).items() if item[0][0] != "_"]
        self._autowrapped = {id(value) for _, value in named if callable(value)} | set(
            map(id, autowrap_functions)
        )
        self._searched = [vars(module) for module in autowrap_modules]
        self._searched += [one.__globals__ for one in autowrap_functions if hasattr(one, "__globals__")]
        self.root: Module = Module()

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether calls of a module are recorded whole: those of all layers of the package but ``Sequential``."""
        return type(m).__module__.startswith("twofold.nn.") and not isinstance(m, Sequential)

    def path_of_module(self, mod: Module) -> str:
        """The dotted name of a module below the one that is traced; raises NameError for another one."""
        for name, found in self.root.named_modules():
            if found is mod:
                return name
        raise NameError("module is not installed as a submodule")

    def call_module(self, m: Module, forward: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
        """What a call of a module gives: a proxy for that of a leaf, else what ``forward`` returns."""
        path = self.path_of_module(m)
        if self.is_leaf_module(m, path):
            return self.create_proxy("call_module", path, args, kwargs)
        return forward(*args, **kwargs)

    def _argument(self, value: Any) -> Argument:
        if isinstance(value, Tensor):
            return self.create_node("get_attr", self._path_of_tensor(value), (), {})
        return super()._argument(value)

    def _path_of_tensor(self, value: Any) -> str:
        """The name of a parameter, buffer or other tensor of the module, which a constant becomes."""
        for name, found in (*self.root.named_parameters(), *self.root.named_buffers()):
            if found is value:
                return name
        for path, module in self.root.named_modules():
            for name, found in vars(module).items():
                if found is value:
                    return f"{path}.{name}" if path else name
        number = 0
        while hasattr(self.root, f"_tensor_constant{number}"):
            number += 1
        setattr(self.root, f"_tensor_constant{number}", value)
        return f"_tensor_constant{number}"

    def _placeholders(
        self, function: Callable[..., Any], concrete: dict[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """What to call ``function`` with: a proxy for each argument, and the values given for some."""
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        parameters = inspect.signature(function).parameters
        if unknown := [name for name in concrete if name not in parameters]:
            raise TypeError(
                f"symbolic_trace: concrete_args has {', '.join(map(repr, unknown))}, the arguments are "
                f"{', '.join(map(repr, parameters))}. Give values of those."
            )
        for name, parameter in parameters.items():
            if name not in concrete and parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise NotImplementedError(
                    f"symbolic_trace: how many arguments are {parameter} is not known. Give them in concrete_args."
                )
            default = () if parameter.default is parameter.empty else (parameter.default,)
            value = (
                concrete[name] if name in concrete else self.create_proxy("placeholder", name, default, {})
            )
            if parameter.kind is parameter.KEYWORD_ONLY:
                kwargs[name] = value
            elif parameter.kind is parameter.VAR_KEYWORD:
                kwargs.update(value)
            else:
                args.extend(value if parameter.kind is parameter.VAR_POSITIONAL else (value,))
        return args, kwargs

    def trace(self, root: Any, concrete_args: dict[str, Any] | None = None) -> Graph:
        """The graph of a module or function.

        Args:
            root: It is called once, with proxies; what it does beside operations on them happens now.
            concrete_args: Values of some arguments, by name, which the graph then does not take.
        """
        self.root = root if isinstance(root, Module) else Module()
        self.graph = Graph(tracer_cls=type(self))
        function = type(root).forward.__get__(root) if isinstance(root, Module) else root
        if isinstance(root, Module) and "forward" in vars(root):
            function = root.forward
        args, kwargs = self._placeholders(function, concrete_args or {})
        with self._patched(function):
            result = function(*args, **kwargs)
        self.create_node("output", "output", (self.create_arg(result),), {})
        return self.graph

    def _names_of_autowrapped(self, function: Any) -> Iterator[tuple[dict[str, Any], str]]:
        """The global names, where ``function`` and the modules below it look, of what is recorded as it is."""
        callers = [
            function,
            *(module.forward for module in self.root.modules() if hasattr(module, "forward")),
        ]
        spaces = [*self._searched, *(getattr(one, "__globals__", {}) for one in callers)]
        for space in {id(space): space for space in spaces}.values():
            own = space.get(WRAPPED_NAMES, ())
            yield from (
                (space, name)
                for name, value in list(space.items())
                if id(value) in self._autowrapped or name in own
            )
            yield from ((space, name) for name in own if name not in space)  # one of Python's

    @contextmanager
    def _patched(self, function: Any) -> Iterator[None]:
        """Inside, calls of modules go by way of ``call_module``, and those of wrapped functions are recorded."""
        plain = Module.__call__

        def call(module: Module, *args: Any, **kwargs: Any) -> Any:
            if _find_proxy(args, kwargs) is None:
                return plain(module, *args, **kwargs)
            forward = lambda *args, **kwargs: plain(module, *args, **kwargs)
            return self.call_module(module, forward, args, kwargs)

        found = [
            *((space, name) for space, name in _wrapped if _is_callable_there(space, name)),
            *self._names_of_autowrapped(function),
        ]
        before: list[tuple[dict[str, Any], str, Any]] = []
        try:
            Module.__call__ = call  # type: ignore[method-assign, assignment]
            for space, name in {(id(space), name): (space, name) for space, name in found}.values():
                before.append((space, name, space.get(name, before)))
                space[name] = _recording(space[name] if name in space else getattr(builtins, name))
            yield
        finally:
            Module.__call__ = plain  # type: ignore[method-assign]
            for space, name, value in reversed(before):
                if value is before:
                    del space[name]
                else:
                    space[name] = value


def _is_callable_there(space: dict[str, Any], name: str) -> bool:
    """Whether a module still has a name, or it is one of Python's; special methods are never replaced."""
    return not name.startswith("__") and (name in space or hasattr(builtins, name))


def symbolic_trace(root: Any, concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """A module that does what ``root`` does, with its graph, which may be read and changed.

    Args:
        root: A module, or a function. What it does must not depend on values: that raises TraceError.
        concrete_args: Values of some arguments, by name, which the result then does not take.

    >>> import twofold as torch
    >>> traced = torch.fx.symbolic_trace(lambda x, y: torch.relu(x) + y)
    >>> print(traced.code.strip())
    def forward(self, x, y):
        relu = torch.relu(x);  x = None
        add = relu + y;  relu = y = None
        return add
    >>> traced(torch.tensor([-1.0, 2.0]), 1.0)
    tensor([1., 3.])
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else getattr(root, "__name__", "function")
    return GraphModule(tracer.root, graph, name)
