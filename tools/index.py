"""Writes down which module has what, so that the package imports a module when a name of it is first used.

    python tools/index.py            # or: make generated

``twofold/index.py``: operation entries and public functions by the module that enters them. ``twofold/names.py``: what
packages import under ``if TYPE_CHECKING``. A test compares the files with what is written here.
"""

from __future__ import annotations

import ast
import importlib
import json
import subprocess
import sys
import textwrap
import types
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "twofold"
_TABLES = ("ENTRIES", "FUNCTIONS", "LIBRARIES", "MATH")
_LISTS = ("OPERATORS", "CREATES")
_WIDTH = 106
_INDEX = '''"""Which module enters what; written by tools/index.py from the operation entries.

``ENTRIES`` are operations by module, ``FUNCTIONS`` public functions: the names of one joined by commas, ``.x`` a method
and ``!x`` the in-place method ``x_``. ``MATH`` are functions that kernels compute with by module, ``LIBRARIES`` public
functions by what computes for them on the host.
"""

'''
_NAMES = '''"""What packages import when it is first used, by package and module; written by tools/index.py."""

'''


# What packages import late


def _checked_imports(path: Path) -> Iterator[ast.ImportFrom]:
    """The imports of a file that stand under ``if TYPE_CHECKING``."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            yield from (one for one in node.body if isinstance(one, ast.ImportFrom))


def module_name(path: Path) -> str:
    """The name of the module in a file of the package."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def names() -> dict[str, dict[str, list[str]]]:
    """For each module with late names, the names by the module that has them; ``a=b`` is ``b as a``, ``*`` all."""
    found: dict[str, dict[str, list[str]]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        if "attach(__name__" not in path.read_text():
            continue
        table: dict[str, list[str]] = defaultdict(list)
        for node in _checked_imports(path):
            table[str(node.module)] += [
                alias.name if alias.asname in (None, alias.name) else f"{alias.asname}={alias.name}"
                for alias in node.names
            ]
        found[module_name(path)] = dict(table)
    return found


def _written_out(names: dict[str, dict[str, list[str]]]) -> dict[str, dict[str, list[str]]]:
    """The names with those that a star stands for: what the modules imported so have defined that can be called."""
    for package, table in names.items():
        starred = [source for source, listed in table.items() if "*" in listed]
        explicit = {entry.partition("=")[0] for listed in table.values() for entry in listed}
        found: dict[str, Any] = {}
        for source in starred:
            table[source].remove("*")
            members = vars(importlib.import_module(source))
            for name, value in members.items():
                # what a module imports from others than these is for its own use
                own = callable(value) and getattr(value, "__module__", "") in starred
                shown = not name.startswith("_") or name in members.get("__all__", ())
                if own and shown and name not in explicit:
                    if found.setdefault(name, value.__module__) != value.__module__:
                        raise ValueError(f"{package}.{name} is in two modules: import it by name")
                    if value.__module__ == source or not hasattr(sys.modules[value.__module__], name):
                        table[source].append(name)
    return names


def _check_names(names: dict[str, dict[str, list[str]]]) -> None:
    """Raise ValueError for a late name that would be hidden by a module of the package."""
    for package, table in names.items():
        folder = ROOT.joinpath(*package.split("."))
        for source, listed in table.items():
            for name in (entry.partition("=")[0] for entry in listed):
                if source != package and ((folder / f"{name}.py").exists() or (folder / name).is_dir()):
                    raise ValueError(f"{package}.{name} is also a module: import it without TYPE_CHECKING")


# What modules enter

_ENTERING = {
    "twofold.ir.op": {"register"},
    "twofold.compiler.lower.math.core": {"function", "wide"},
    "twofold.ops.base": {"public", "publish"},
}
_KINDS = {"source", "elementwise", "reduction", "view", "contraction", "custom", "host", "composite"}


def _enters(path: Path) -> bool:
    """Whether a module may enter operations or public functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module in _ENTERING:
            used = {alias.name for alias in node.names} & (_ENTERING[node.module] | _KINDS)
            if used:
                return True
    return PACKAGE / "ops" in path.parents


class _Recorder:
    """Notes, for each name that is entered in a table, the module that runs."""

    def __init__(self) -> None:
        self.modules: dict[int, dict[str, str]] = defaultdict(dict)

    def enter(self, table: Any, name: str, value: Any) -> None:
        """In place of ``Registry.enter``."""
        modules = self.modules[id(table)]
        if name in modules:
            raise ValueError(f"{name!r} is entered twice, by {modules[name]} and {_running()}")
        modules[name] = _running()
        table[name] = value


def _running() -> str:
    """The innermost module of the package that is being imported."""
    frame: Any = sys._getframe(2)
    while frame.f_code.co_name != "<module>" or not frame.f_globals["__name__"].startswith("twofold."):
        frame = frame.f_back
    return str(frame.f_globals["__name__"])


def _put(tables: dict[str, Any]) -> None:
    """Have modules find these tables in place of those of the files."""
    index, names = types.ModuleType("twofold.index"), types.ModuleType("twofold.names")
    vars(index).update({name: table for name, table in tables.items() if name != "NAMES"})
    vars(names).update(NAMES=tables["NAMES"])
    sys.modules.update({"twofold.index": index, "twofold.names": names})


def _alone() -> None:
    """Make modules importable without the package around them, and with empty tables."""
    package = types.ModuleType("twofold")
    package.__path__ = [str(PACKAGE)]
    sys.modules["twofold"] = package
    _put({name: {} for name in (*_TABLES, "NAMES")} | dict.fromkeys(_LISTS, ""))


def _groups(base: Any) -> dict[Any, list[str]]:
    """The names of each public function, as they are written in the index."""
    found: dict[Any, list[str]] = defaultdict(list)
    for name, function in base.FUNCTIONS.items():
        found[function].append(name)
    for name, function in base.METHODS.items():
        found[function].append("." + name)
    for function, group in found.items():
        if getattr(base.BY_CALL.get(function), "inplace", False) or base.INPLACE.get(function):
            group += ["!" + name[1:] for name in group if name[0] == "." and not name.startswith(".__")]
    return found


def _record() -> dict[str, Any]:
    """The tables of entries and functions, from modules that are imported without the package around them."""
    _alone()
    recorder = _Recorder()
    importlib.import_module("twofold.lazy").Registry.enter = lambda *entered: recorder.enter(*entered)
    for path in sorted(PACKAGE.rglob("*.py")):
        if _enters(path):
            importlib.import_module(module_name(path))
    base = importlib.import_module("twofold.ops.base")
    registry, groups = importlib.import_module("twofold.ir.op").REGISTRY, _groups(base)
    where = {**recorder.modules[id(base.METHODS)], **recorder.modules[id(base.FUNCTIONS)]}
    entries, functions, libraries = (defaultdict[str, list[str]](list) for _ in range(3))
    for name, module in recorder.modules[id(registry)].items():
        entries[module].append(name)
    for group in groups.values():
        functions[where[group[0].lstrip(".")]].append(",".join(group))
    known: dict[Any, str] = {}
    for function in dict.fromkeys(base.FUNCTIONS.values()):
        if library := _library_of(function, known, registry, base.Host):
            libraries[library].append(groups[function][0])
    ops = registry.values()
    math: dict[str, list[str]] = defaultdict(list)
    for name, module in recorder.modules[
        id(importlib.import_module("twofold.compiler.lower.math").FUNCTIONS)
    ].items():
        math[module].append(name)
    return {
        "ENTRIES": entries,
        "FUNCTIONS": functions,
        "LIBRARIES": libraries,
        "MATH": math,
        "OPERATORS": [op.name for op in ops if getattr(op, "operators", ())],
        "CREATES": [name for op in ops if getattr(op, "creates", "") for name in op.functions],
    }


# Which library computes for a function: one whose entry it binds, itself or in a function that it calls


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _mentioned(function: FunctionType, registry: dict[str, Any]) -> Iterator[Any]:
    """The entries and functions that a function names."""
    for code in _codes(function.__code__):
        for name in code.co_names:
            yield function.__globals__.get(name)
        for constant in code.co_consts:
            if isinstance(constant, str):
                yield registry.get(constant)
    for cell in function.__closure__ or ():
        yield cell.cell_contents


def _library_of(value: Any, known: dict[Any, str], registry: dict[str, Any], host: type) -> str:
    if isinstance(value, host):
        return str(value.library)  # type: ignore[attr-defined]
    if getattr(value, "kind", "") == "composite":
        value = getattr(value, "rule_compute", None)
    function = getattr(value, "__func__", value)
    if not isinstance(function, FunctionType) or not function.__module__.startswith("twofold.ops"):
        return ""
    if function not in known:
        known[function] = ""  # while it is looked at
        mentioned = (_library_of(one, known, registry, host) for one in _mentioned(function, registry))
        known[function] = next((library for library in mentioned if library), "")
    return known[function]


# The file


def _strings(words: list[str], indent: str) -> str:
    lines = textwrap.wrap(
        " ".join(words), _WIDTH - len(indent), break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(f'{indent}"{line}{" " if k + 1 < len(lines) else ""}"' for k, line in enumerate(lines))


def _table(table: dict[str, Any], indent: str = "    ") -> str:
    parts = []
    for key, value in sorted(table.items()):
        if isinstance(value, dict):
            parts.append(f'{indent}"{key}": {{\n{_table(value, indent + "    ")}{indent}}},\n')
        else:
            line = f'{indent}"{key}": "{" ".join(value)}",\n'
            several = f'{indent}"{key}": (\n{_strings(value, indent + "    ")}\n{indent}),\n'
            parts.append(line if len(line) <= _WIDTH else several)
    return "".join(parts)


def _asked(question: str, given: Any) -> Any:
    """What this program answers in a process of its own."""
    run = subprocess.run(
        [sys.executable, __file__, question],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    if run.returncode:
        raise RuntimeError(run.stderr)
    return json.loads(run.stdout)


def _joined(table: dict[str, Any]) -> dict[str, Any]:
    """A table as the file has it, with strings in place of lists."""
    return {
        key: " ".join(value) if isinstance(value, list) else _joined(value) for key, value in table.items()
    }


def _with_stars(tables: dict[str, Any]) -> dict[str, dict[str, list[str]]]:
    """The names of packages written out, in a process with these tables."""
    _put(_joined(tables))
    sys.path.insert(0, str(ROOT))
    return _written_out(tables["NAMES"])


def files() -> dict[Path, str]:
    """The files by their paths."""
    found = _asked("--entries", None)
    found["NAMES"] = _asked("--names", {**found, "NAMES": names()})
    _check_names(found["NAMES"])
    parts = [_INDEX]
    parts += [f"{name}: dict[str, str] = {{\n{_table(found[name])}}}\n" for name in _TABLES]
    parts += [f"{name} = (\n{_strings(found[name], '    ')}\n)\n" for name in _LISTS]
    written = f"{_NAMES}NAMES: dict[str, dict[str, str]] = {{\n{_table(found['NAMES'])}}}\n"
    return {PACKAGE / "index.py": "".join(parts), PACKAGE / "names.py": written}


def main(arguments: list[str]) -> None:
    """Write the files, or answer a question of the process that does."""
    if arguments:
        print(json.dumps(_record() if arguments == ["--entries"] else _with_stars(json.load(sys.stdin))))
        return
    for path, text in files().items():
        path.write_text(text)


if __name__ == "__main__":
    main(sys.argv[1:])
