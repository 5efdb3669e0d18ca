"""Rules of the source text: short files, short functions, no path of one machine."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILE_LINES = 600
FUNCTION_LINES = 60
FOLDERS = ("twofold", "csrc", "tests", "bench", "docs", "examples", "tools", ".ci")
SUFFIXES = {".py", ".pyi", ".cc", ".h", ".md", ".toml", ".txt", ".cmake"}
TOP_FILES = ("README.md", "Makefile", "CMakeLists.txt", "pyproject.toml", ".ci/run")

SOURCES = sorted(
    path
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*")
    if path.suffix in SUFFIXES and "__pycache__" not in path.parts
)
PYTHON = [path for path in SOURCES if path.suffix == ".py"]
CODE = [path for path in SOURCES if path.suffix in {".py", ".cc", ".h"}]
TEXTS = SOURCES + [ROOT / name for name in TOP_FILES if (ROOT / name).exists()]

# Put together from parts, so that this file does not match itself.
MACHINE_PATH = re.compile(
    r"(?<![\w.<>)])/(?:" + "|".join(("ho" + "me", "wo" + "rk", "ro" + "ot", "Us" + "ers")) + r")/\w"
)


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_files_are_short() -> None:
    lines = {name_of(path): len(path.read_text(encoding="utf-8").splitlines()) for path in CODE}
    found = {name: count for name, count in lines.items() if count > FILE_LINES}
    assert not found, f"more than {FILE_LINES} lines, to be split: {found}"


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements in ``node``, and no expressions, of which there are ten times as many."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for inner in getattr(node, field, []):
            yield inner
            yield from statements(inner)


def long_functions(text: str) -> list[str]:
    return [
        f"line {node.lineno}: {node.name} has {node.end_lineno - node.lineno + 1} lines"
        for node in statements(ast.parse(text))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > FUNCTION_LINES
    ]


def test_functions_are_short() -> None:
    found = {name_of(path): long_functions(path.read_text(encoding="utf-8")) for path in PYTHON}
    assert not any(found.values()), {name: functions for name, functions in found.items() if functions}


def test_no_path_of_one_machine() -> None:
    found = [
        f"{name_of(path)}:{number}: {line.strip()}"
        for path in TEXTS
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if MACHINE_PATH.search(line)
    ]
    assert not found, "\n".join(found)


def test_the_rules_would_be_seen_broken() -> None:
    assert long_functions("def f():\n" + "    pass\n" * FUNCTION_LINES)
    assert long_functions("if 1:\n try:\n  pass\n except E:\n  def f():\n" + "    pass\n" * FUNCTION_LINES)
    assert not long_functions("def f():\n" + "    pass\n" * (FUNCTION_LINES - 1))
    assert MACHINE_PATH.search("see /" + "home/someone/x")
    assert not MACHINE_PATH.search("net" + "work/layers, home/x and a/" + "home/x")
