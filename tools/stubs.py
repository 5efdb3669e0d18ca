"""Writes the type stubs of what the package puts together from the operation entries when it is imported.

    python tools/stubs.py            # or: make generated

``twofold/__init__.pyi``, one stub for each namespace such as ``twofold/linalg.pyi``, and
``twofold/_methods.pyi``, the methods of the tensor type. A test compares the files with what is written here.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import pkgutil
import re
import sys
import textwrap
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import twofold
from twofold.dtypes import DType
from twofold.frontend.install import PUBLIC
from twofold.ir.op import REGISTRY
from twofold.ops.base import METHODS

ROOT = Path(__file__).resolve().parent.parent
MODULES = [
    one.name
    for one in pkgutil.iter_modules(twofold.__path__)
    if one.name != "__main__" and isinstance(getattr(twofold, one.name, twofold), types.ModuleType)
]
"""All modules of the package: a program may import any; some give the tensor type further methods."""
for _module in MODULES:
    importlib.import_module(f"twofold.{_module}")

NAMESPACES = sorted({name.partition(".")[0] for name in PUBLIC if "." in name} & set(dir(twofold)))
_TYPING = ("Any", "Callable", "Sequence", "Iterable", "Iterator", "Mapping")
_BUILTINS = (
    "bool",
    "bytes",
    "complex",
    "dict",
    "float",
    "int",
    "list",
    "object",
    "set",
    "slice",
    "str",
    "tuple",
)
_HEAD = '''"""{doc}; written by tools/stubs.py from the operation entries."""

import builtins
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

'''
_BY_HAND = frozenset(
    {"__eq__", "__getattribute__", "__getitem__", "__init__", "__ne__", "__new__", "__setitem__"}
)


def written(function: Any) -> Any:
    """The Python function behind a callable of the core, or behind a function that passes its arguments on."""
    return inspect.unwrap(function)


ENTRIES = {written(op.call): op for op in REGISTRY.values() if hasattr(op, "call")}


class _Known(ast.NodeTransformer):
    """An annotation in names that every stub has; others become Any."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in _BUILTINS:
            return ast.copy_location(ast.parse(f"builtins.{node.id}", mode="eval").body, node)
        return node if node.id in (*_TYPING, "Tensor") else ast.Name("Any")

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        return ast.Name("Any")


def annotation(value: Any) -> str:
    """The source of an annotation."""
    if value is inspect.Parameter.empty:
        return "Any"
    text = value if isinstance(value, str) else getattr(value, "__name__", "Any")
    return ast.unparse(_Known().visit(ast.parse(text, mode="eval")))


def result(function: Callable[..., Any], declared: Any) -> str:
    """The annotation of what a function returns: a tensor, where it does nothing but declare one operation."""
    text = annotation(declared)
    if text != "Any":
        return text
    function = written(function)
    entry = ENTRIES.get(function)
    if entry is not None and entry.arity is not None and not entry.checks_numbers:
        return "Tensor"
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        return "Any"
    returns = re.findall(r"\breturn\b(.*)", source) or re.findall(r"lambda[^:]*:(.*)", source)
    return "Tensor" if returns and all(part.lstrip().startswith("apply(") for part in returns) else "Any"


def _default(value: Any) -> str:
    plain = isinstance(value, (bool, int, str, type(None))) or (isinstance(value, float) and value == value)
    return repr(value) if plain and abs(hash(value)) != hash(float("inf")) else "..."


def definition(name: str, function: Callable[..., Any], method: bool = False) -> str:
    """The ``def`` of a function, or of a method whose first parameter is the tensor."""
    parts, bare, only_names, before = [], True, False, None
    for position, parameter in enumerate(inspect.signature(function).parameters.values()):
        kind, text = parameter.kind, parameter.name
        if method and position == 0:
            before = kind
            parts.append("*args: Any" if kind is parameter.VAR_POSITIONAL else "self")
            if kind is parameter.VAR_POSITIONAL:
                parts.insert(0, "self")
            continue
        if position and before is parameter.POSITIONAL_ONLY and kind is not before:
            parts.append("/")
        before = kind
        if kind is parameter.KEYWORD_ONLY and bare and not only_names:
            parts.append("*")
        only_names = only_names or kind is parameter.KEYWORD_ONLY
        bare = bare and kind is not parameter.VAR_POSITIONAL
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(kind, "")
        text = f"{stars}{text}: {annotation(parameter.annotation)}"
        if parameter.default is not parameter.empty:
            text += f" = {_default(parameter.default)}"
        parts.append(text)
    if before is inspect.Parameter.POSITIONAL_ONLY:
        parts.append("/")
    back = result(function, inspect.signature(function).return_annotation)
    return f"def {name}({', '.join(parts)}) -> {back}: ..."


def _importable(value: Any) -> bool:
    """Whether a value is found under its own name in the module that says it has it."""
    module = sys.modules.get(getattr(value, "__module__", None) or "")
    return module is not None and getattr(module, getattr(value, "__qualname__", ""), None) is value


def _declaration(name: str, value: Any) -> str | None:
    if isinstance(value, DType):
        return f"{name}: DType"
    if isinstance(value, type | types.FunctionType) and _importable(value) and value.__module__ != "twofold":
        return f"from {value.__module__} import {value.__qualname__} as {name}"
    if isinstance(value, types.ModuleType):
        return None
    if isinstance(value, builtins.float | builtins.int | builtins.str):
        return f"{name}: builtins.{type(value).__name__}"
    if callable(value) and not isinstance(value, type):
        try:
            return definition(name, value)
        except (TypeError, ValueError):
            return f"{name}: Any"
    return f"{name}: Any"


def _sorted(lines: Iterator[str]) -> str:
    kept = dict.fromkeys(lines)
    imports = sorted(line for line in kept if line.startswith("from "))
    return "\n".join([*imports, "", *(line for line in kept if not line.startswith("from "))]) + "\n"


def package() -> str:
    """The stub of the package itself."""
    names = [
        name
        for name in dir(twofold)
        if not name.startswith("_") and name not in ("Any", "Tensor", "builtins")
    ]
    lines = [found for name in sorted(names) if (found := _declaration(name, getattr(twofold, name)))]
    fixed = [f"from twofold import {one} as {one}" for one in MODULES]
    fixed += ["from twofold._core import Tensor as Tensor", "__version__: str"]
    return _HEAD.format(doc="Names of the package") + _sorted(iter([*fixed, *lines]))


def namespace(name: str) -> str:
    """The stub of one namespace of functions."""
    module = getattr(twofold, name)
    names = [one for one in getattr(module, "__all__", dir(module)) if not one.startswith("_")]
    lines = [found for one in sorted(names) if (found := _declaration(one, getattr(module, one)))]
    fixed = ["from twofold._core import Tensor as Tensor"]
    return _HEAD.format(doc=f"Names of twofold.{name}") + _sorted(iter([*fixed, *lines]))


def methods() -> str:
    """The stub of the methods of the tensor type that the core does not have itself."""
    lines = []
    for name in sorted(dir(twofold.Tensor)):
        value = inspect.getattr_static(twofold.Tensor, name)
        if name in _BY_HAND or (name.startswith("_") and not name.startswith("__")):
            continue
        if isinstance(value, property):
            lines.append(f"@property\ndef {name}(self) -> Any: ...")
        elif isinstance(value, staticmethod):
            lines.append(f"@staticmethod\n{definition(name, value.__func__)}")
        elif isinstance(value, types.WrapperDescriptorType) and name in METHODS:
            lines.append(
                f"def {name}(self, {'other: Any' if _operands(name) > 1 else ''}) -> Tensor: ...".replace(
                    ", )", ")"
                )
            )
        elif isinstance(value, types.FunctionType) or type(value).__name__ == "Operation":
            if name.startswith("__") and hasattr(object, name):
                continue
            lines.append(definition(name, value, method=True))
    body = textwrap.indent("\n".join(lines), "    ")
    head = _HEAD.format(doc="Methods of the tensor") + "from twofold._core import Tensor\n\n"
    return head + f"class TensorMethods:\n{body}\n"


def _operands(operator: str) -> int:
    return len(inspect.signature(METHODS[operator]).parameters)


def files() -> dict[Path, str]:
    """Every stub by its path."""
    position = ROOT / "twofold"
    found = {position / "__init__.pyi": package(), position / "_methods.pyi": methods()}
    for name in NAMESPACES:
        if Path(str(getattr(twofold, name).__file__)).name != "__init__.py":
            found[position / f"{name}.pyi"] = namespace(name)
    return found


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text)
