"""``GraphModule``: a module whose ``forward`` is a graph."""

from __future__ import annotations

import copy
import linecache
import weakref
from operator import attrgetter
from typing import Any

from twofold import _core
from twofold.fx.code import PythonCode
from twofold.fx.graph import Graph
from twofold.nn.module import Module

_count = [0]


def _paths(graph: Graph) -> list[str]:
    """What a graph calls and reads of its module."""
    return [node.target for node in graph.nodes if node.op in ("get_attr", "call_module")]


def _put(root: Module, path: str, value: Any) -> None:
    """Put a member below ``root``, with modules on the way to it."""
    *parents, name = path.split(".")
    for parent in parents:
        if getattr(root, parent, None) is None:
            setattr(root, parent, Module())
        root = getattr(root, parent)
    if isinstance(value, _core.Tensor) and type(value) is _core.Tensor and name not in root._buffers:
        root.register_buffer(name, value)
    else:
        setattr(root, name, value)


class GraphModule(Module):
    """A module that runs a graph; after the graph was changed, ``recompile`` makes its ``forward`` anew.

    Args:
        root: The module, or the dictionary by dotted names, with all that the graph calls and reads.
        graph: The graph.
        class_name: The name of the class of the module.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """An object of a class of its own, whose ``forward`` is that of the object."""
        kind = next(one for one in cls.__mro__ if "_own" not in vars(one))
        return super().__new__(type(kind.__name__, (kind,), {"_own": True}))

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = class_name
        if isinstance(root, Module):
            self.training = root.training
        for path in _paths(graph):
            value = root[path] if isinstance(root, dict) else attrgetter(path)(root)
            # of a module of which only a member was needed so far, there is one with that member alone
            if not self._has(path) or attrgetter(path)(self) is not value:
                _put(self, path, value)
        self.graph = graph

    def _has(self, path: str) -> bool:
        try:
            return attrgetter(path)(self) is not None
        except AttributeError:
            return False

    def _complete(self, other: Graph) -> None:
        """Take what the nodes of ``other`` call and read and this module has not, from the module of ``other``."""
        for path in _paths(other) if other.owning_module is not None else ():
            if not self._has(path):
                _put(self, path, attrgetter(path)(other.owning_module))

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "graph":
            super().__setattr__(name, value)
            return
        if not isinstance(value, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(value).__name__}")
        value.owning_module = self
        object.__setattr__(self, name, value)
        self.recompile()

    def recompile(self) -> PythonCode:
        """Make ``forward`` of the graph as it is now; returns its code."""
        made = self.graph.python_code("self")
        _count[0] += 1
        file, space = f"<eval_with_key>.{_count[0]}", dict(made.globals)
        linecache.cache[file] = (len(made.src), None, made.src.splitlines(True), file)
        exec(compile(made.src, file, "exec"), space)
        type(self).forward = space["forward"]
        weakref.finalize(space["forward"], linecache.cache.pop, file, None).atexit = False
        object.__setattr__(self, "_code", made.src)
        return made

    @property
    def code(self) -> str:
        """The text of ``forward``."""
        return str(self._code)

    def add_submodule(self, target: str, m: Module) -> bool:
        """Put a module at a dotted name; whether that could be done."""
        _put(self, target, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Delete the module at a dotted name; whether there was one."""
        parent, _, name = target.rpartition(".")
        owner = self.get_submodule(parent)
        if name not in owner._modules:
            return False
        delattr(owner, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Delete the modules that the graph neither calls nor reads."""
        used = set(_paths(self.graph))
        for name, _ in list(self.named_modules()):
            if name and not any(
                one == name or one.startswith(f"{name}.") or name.startswith(f"{one}.") for one in used
            ):
                self.delete_submodule(name)

    def print_readable(self, print_output: bool = True) -> str:
        """The module as the text of a class, which is also printed if ``print_output``."""
        body = self._code.strip().replace("\n", "\n    ")
        text = f"class {self._get_name()}(torch.nn.Module):\n    {body}\n"
        if print_output:
            print(text)
        return text

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        held = Module()
        held.__setstate__({**held.__getstate__(), **copy.deepcopy(self._members(), memo)})
        return GraphModule(held, copy.deepcopy(self.graph), self._get_name())

    def _members(self) -> dict[str, Any]:
        return {name: value for name, value in self.__getstate__().items() if name not in ("graph", "_code")}

    def __reduce__(self) -> Any:
        return _loaded, (self._members(), self.graph, self._get_name())

    def __str__(self) -> str:
        return f"{super().__repr__()}\n\n{self._code}\n# print_readable() shows it as the text of a class"


def _loaded(members: dict[str, Any], graph: Graph, name: str) -> GraphModule:
    held = Module()
    held.__setstate__({**held.__getstate__(), **members})
    return GraphModule(held, graph, name)
