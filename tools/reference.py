"""Writes the reference pages of all public operations from their entries.

    python tools/reference.py        # or: make generated

One page in ``docs/reference`` for each module that has public functions of tensors, and an index of all names.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from stubs import ENTRIES, written

import twofold
from twofold.frontend.install import PUBLIC
from twofold.ops.base import METHODS

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "reference"


def _names() -> dict[Any, list[str]]:
    """All public names of each function."""
    found: dict[Any, list[str]] = defaultdict(list)
    for name, function in PUBLIC.items():
        found[written(function)].append(name)
    return found


def signature(name: str) -> str:
    """The parameters of what has this name, as they are written in a call, without annotations."""
    found: Any = twofold
    for part in name.split("."):
        found = getattr(found, part, None)
    shown = inspect.signature(PUBLIC[name] if found is None else found)
    plain = [one.replace(annotation=inspect.Parameter.empty) for one in shown.parameters.values()]
    return str(inspect.Signature(plain))


def dtypes(entry: Any) -> str:
    """The dtypes that an entry takes, in words."""
    kinds = entry.kinds + ("c" if entry.on_complex is not None and "c" not in entry.kinds else "")
    words = {"b": "bool", "i": "integers", "u": "" if "i" in kinds else "unsigned integers"}
    words |= {"f": "floats", "c": "complex numbers"}
    return ", ".join(word for kind in kinds if (word := words[kind]))


def facts(function: Any, names: list[str]) -> list[str]:
    """What the entry says beside its docstring."""
    lines = []
    methods = [
        name for name, one in METHODS.items() if written(one) is function and not name.startswith("__")
    ]
    operators = [name for name, one in METHODS.items() if written(one) is function and name.startswith("__")]
    if methods:
        shown = [f"`x.{name}`" for name in methods]
        shown += [f"`x.{name}_`" for name in methods if hasattr(twofold.Tensor, name + "_")]
        lines.append("Methods: " + ", ".join(shown))
    if operators:
        lines.append("Operators: " + ", ".join(f"`{name}`" for name in operators))
    if len(names) > 1:
        lines.append("Also: " + ", ".join(f"`{name}`" for name in names[1:]))
    entry = ENTRIES.get(function)
    if entry is not None:
        lines.append(f"Takes: {dtypes(entry)}")
        lines.append(f"Gradient: {'yes' if entry.differentiable else 'none'}")
    return [f"- {line}" for line in lines]


def _description(function: Any) -> str:
    """The docstring, its examples as code."""
    text = inspect.cleandoc(function.__doc__ or "")
    return re.sub(
        r"((?:^>>>.*\n?(?:^(?!>>>)\S.*\n?|^\.\.\. .*\n?)*)+)", r"```python\n\1\n```\n", text, flags=re.M
    )


def page(module: Any, functions: list[Any], names: dict[Any, list[str]]) -> str:
    """The page of one module."""
    heading, _, rest = inspect.cleandoc(module.__doc__ or "").partition("\n")
    parts = [f"# {heading.rstrip('.')}", rest.strip()]
    for function in functions:
        own = names[function]
        parts += [f"## {own[0]}", f"```python\ntwofold.{own[0]}{signature(own[0])}\n```"]
        parts += [_description(function), "\n".join(facts(function, own))]
    return re.sub(r"\n{3,}", "\n\n", "\n\n".join(part for part in parts if part)) + "\n"


def index(pages: dict[str, list[Any]], names: dict[Any, list[str]]) -> str:
    """All names, in the order of the alphabet."""
    positions = {
        name: module for module, functions in pages.items() for one in functions for name in names[one]
    }
    first = {name: names[one][0] for functions in pages.values() for one in functions for name in names[one]}
    lines = [
        "# Reference of all operations",
        "Written by `make generated` from the entries in `twofold/ops`; the same names exist as methods of the"
        " tensor where the pages say so, and both ways of declaring use the same entries.",
        "## Pages",
        "\n".join(f"- [{heading(module)}]({page_name(module)})" for module in sorted(pages)),
        "## Names",
        " · ".join(
            f"[{name}]({page_name(positions[name])}#{first[name].replace('.', '').lower()})"
            for name in sorted(positions)
        ),
    ]
    return "\n\n".join(lines) + "\n"


def page_name(module: str) -> str:
    """The file of a module's page."""
    return module.rpartition(".")[2] + ".md"


def heading(module: str) -> str:
    """What a module's page is about."""
    return inspect.cleandoc(sys.modules[module].__doc__ or "").partition("\n")[0].rstrip(".")


def files() -> dict[Path, str]:
    """Every page by its path."""
    names = _names()
    pages: dict[str, list[Any]] = defaultdict(list)
    for function in names:
        pages[function.__module__].append(function)
    found = {FOLDER / "README.md": index(pages, names)}
    for module, functions in pages.items():
        found[FOLDER / page_name(module)] = page(sys.modules[module], functions, names)
    return found


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    made = files()
    for stale in set(FOLDER.glob("*.md")) - set(made):
        stale.unlink()
    for path, text in made.items():
        path.write_text(text)
