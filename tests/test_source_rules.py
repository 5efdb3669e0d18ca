"""Rules of the source text: short files, short functions, no path of one machine."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("path", CODE, ids=name_of)
def test_file_is_short(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= FILE_LINES, f"{name_of(path)} has {lines} lines; split it at {FILE_LINES}"


def long_functions(text: str) -> list[str]:
    return [
        f"line {node.lineno}: {node.name} has {node.end_lineno - node.lineno + 1} lines"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > FUNCTION_LINES
    ]


@pytest.mark.parametrize("path", PYTHON, ids=name_of)
def test_functions_are_short(path: Path) -> None:
    found = long_functions(path.read_text(encoding="utf-8"))
    assert not found, f"{name_of(path)}: " + "; ".join(found)


@pytest.mark.parametrize("path", TEXTS, ids=name_of)
def test_no_path_of_one_machine(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    found = [
        f"{name_of(path)}:{number}: {line.strip()}"
        for number, line in enumerate(lines, 1)
        if MACHINE_PATH.search(line)
    ]
    assert not found, "\n".join(found)


def test_the_rules_would_be_seen_broken() -> None:
    assert long_functions("def f():\n" + "    pass\n" * FUNCTION_LINES)
    assert not long_functions("def f():\n" + "    pass\n" * (FUNCTION_LINES - 1))
    assert MACHINE_PATH.search("see /" + "home/someone/x")
    assert not MACHINE_PATH.search("net" + "work/layers, home/x and a/" + "home/x")
